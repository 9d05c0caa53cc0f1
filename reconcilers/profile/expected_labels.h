// GFD's labels for a set of GPUs: the labeller half of expected_state().
#pragma once

#include <expected>
#include <map>
#include <string>
#include <vector>

#include "reconcilers/profile/expected.h"

namespace gso {

// The labels as GFD writes them, or why GFD exits.
[[nodiscard]] std::expected<std::map<std::string, std::string>, std::string> gfd_labels(
    const Profile& profile, const std::vector<Device>& devices);

}  // namespace gso
