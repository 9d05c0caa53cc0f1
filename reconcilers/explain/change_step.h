// What a node in a change waits for at present, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/explain/reading_pass.h"

namespace gso {

// "the node is not Ready", "waits for pod plugin-x to end", "pod mps-x container mps: CrashLoopBackOff …", "verifying:
// …". One sentence for each row of node_step.h, whose step() says which row applies, with the stops and the settings of
// the pass; also the workloads that it waits for, and deadline_text(). Never empty for a node with a change
// (`assessment.change`).
[[nodiscard]] std::string change_step(ReadingPass& pass, const Node& node, const NodeAssessment& assessment);

// The node has not shown its new profile for long, and fails if that lasts: "; if this lasts, the change fails at … at
// the latest (verifyTimeout 10m0s)". Empty: nothing is late yet, or the change does not fail for what it waits for.
[[nodiscard]] std::string deadline_text(ReadingPass& pass, const Node& node, const NodeAssessment& assessment);

// Its pods that must still be replaced, by name: "gfd gfd-x", "plugin plugin-x".
[[nodiscard]] std::vector<std::string> pods_to_go(const FleetIndex::Impl& index, const Node& node,
                                                  const NodeAssessment& assessment);

// A node in a change and its step.
struct NodeStep {
  std::string node;
  Phase phase = Phase::unmanaged;
  std::string step;
  bool ready = true;
};
// The steps of the nodes in a change to a revision of a key, by name; at most `most` of them. `id`:
// "namespace/configmap/key"; empty: of all keys.
[[nodiscard]] std::vector<NodeStep> steps_to(ReadingPass& pass, std::string_view policy, std::string_view id,
                                             std::size_t most);

}  // namespace gso
