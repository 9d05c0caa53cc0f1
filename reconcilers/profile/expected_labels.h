// GFD's labels for a set of GPUs: the labeller half of expected_state(), and what a label can say.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/expected.h"

namespace gso {

// The labels as GFD writes them, or why GFD exits.
[[nodiscard]] std::expected<std::map<std::string, std::string>, std::string> gfd_labels(
    const Profile& profile, const std::vector<Device>& devices);

// GFD's product label: every character outside [A-Za-z0-9-_. ] dropped, blanks to '-'. Never truncated.
[[nodiscard]] std::string sanitise_product(std::string_view product);

// GFD's family label by compute capability: "turing", "ampere", …; "undefined" for one it does not know.
[[nodiscard]] std::string_view gpu_family(int compute_major, int compute_minor);

// At most 63 characters, letters and digits at both ends, '-', '_' and '.' between; empty is allowed.
[[nodiscard]] bool is_label_value(std::string_view value);

}  // namespace gso
