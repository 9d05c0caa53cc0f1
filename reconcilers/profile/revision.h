// The revision of a profile: a hash of what it means, not of how it is written.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/profile/profile.h"

namespace gso {

// "v1-" + 16 hex digits of a hash over the normalised profile: equal meaning, equal revision, on every cluster.
[[nodiscard]] std::string revision_of(const Profile& profile);
// False for a prefix this release does not know: such a revision reads as unrecorded, never as different.
[[nodiscard]] bool known_revision_format(std::string_view revision);

}  // namespace gso
