// Text from outside that ends up in JSON, which must be UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace k8s {

// Every byte that is not part of valid UTF-8 becomes U+FFFD, as Go's encoding/json writes it.
[[nodiscard]] std::string replace_invalid_utf8(std::string text);

// Such a text needs no replacement, and no copy of its own for that.
[[nodiscard]] bool is_valid_utf8(std::string_view text);

}  // namespace k8s
