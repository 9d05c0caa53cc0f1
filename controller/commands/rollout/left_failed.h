// Nodes that failed and that stay as they are after their rollout: no rollout under way names them.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/commands/rollout/view.h"
#include "reconcilers/explain/reading_pass.h"

namespace gso {

struct LeftFailed {
  std::string policy;
  std::vector<RolloutFacts::NodeRow> nodes;
  std::vector<std::string> next;  // Commands that show what failed, and then the retry.
};

// The node belongs to one of the rollouts: to the nodes of its policy, ConfigMap and key.
[[nodiscard]] bool is_of_any(const Index& index, const NodeAssessment& a, const std::vector<RolloutFacts>& rollouts);

// Of all policies, or of that one; none of the nodes whose rollout is among `under_way`. `waiting`: a stop among these
// names the retry already.
[[nodiscard]] std::vector<LeftFailed> left_failed(ReadingPass& pass, const std::optional<std::string>& policy,
                                                  const std::vector<RolloutFacts>& under_way,
                                                  const std::vector<PolicyWait>& waiting);
// Without the nodes that the table of a rollout among `shown` has.
void leave_out_shown(std::vector<LeftFailed>& failed, const std::vector<RolloutFacts>& shown);
void print_left_failed(const LeftFailed& failed, std::ostream& out);
[[nodiscard]] nlohmann::ordered_json left_failed_json(const LeftFailed& failed);

// Says of failed nodes of the rollout that maxFailures does not count them, and why.
void note_uncounted(const Index& index, std::vector<RolloutFacts::NodeRow>& nodes);

}  // namespace gso
