// What upstream decodes each field into: a number in the text is a string there, or is not.
#pragma once

#include <string>

#include "reconcilers/profile/document_value.h"

namespace gso {

// The target of a field, found as upstream finds it: in `flags`, whose fields are embedded, it looks into the wrong
// struct, so that strings below flags are not converted.
[[nodiscard]] DecodeTarget target_of(DecodeTarget target, const std::string& key);

// Fields of Kubernetes objects that nothing reads, and that are large.
[[nodiscard]] bool is_left_out(DecodeTarget target, const std::string& key);

}  // namespace gso
