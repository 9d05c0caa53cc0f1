// What the groups of a rollout wait for, as one text of a status, and what of it is read back: whoever knows no more
// than the status reads it there, and an operator of another version can have written it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gso {

// `groups`: each product with what its nodes wait for. One text for all groups where they wait for the same. A full
// budget that several groups wait for is named once.
[[nodiscard]] std::string joined_waits(const std::vector<std::pair<std::string, std::string>>& groups);

// Of busy nodes, while as many nodes as allowed wait for their pods: those in `draining`, which `whose` ("policy a")
// lets wait at a time. `budget`: the setting whose half that is.
[[nodiscard]] std::string busy_nodes_text(const std::vector<std::string>& draining, std::int64_t most,
                                          std::string_view whose, std::string_view budget);

// That text about the busy nodes of the group, out of what a status says of all groups; empty: it says no such thing.
[[nodiscard]] std::string busy_nodes_text_in(const std::string& said, std::string_view product);

}  // namespace gso
