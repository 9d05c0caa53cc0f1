// What the difference between two profiles needs on one node: which pods are deleted, in which order, what to wait for
// in between, and whether running clients break. One table; its printed form is
// tests/reconcilers/node/replace_order.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/rollout_spec.h"
#include "reconcilers/profile/profile.h"

namespace gso {

enum class Transition : std::uint8_t {
  none,
  plugin_only,  // Labels and the MPS daemon do not change: failRequestsGreaterThanOne, plugin flags.
  reshare,      // Labels change, no MPS on either side.
  enter_mps,
  change_mps,  // Replicas, names or devices of a running MPS daemon.
  leave_mps,
};
// As annotations have them.
inline constexpr PolicyWord<Transition> kTransitionWords[] = {{"none", Transition::none},
                                                              {"plugin-only", Transition::plugin_only},
                                                              {"reshare", Transition::reshare},
                                                              {"enter-mps", Transition::enter_mps},
                                                              {"change-mps", Transition::change_mps},
                                                              {"leave-mps", Transition::leave_mps}};
[[nodiscard]] std::string_view to_string(Transition transition);

// The visible result of a profile: enough to compare with a node whose loaded text is no longer known.
struct Shape {
  Strategy strategy = Strategy::none;
  bool renamed = false;
  std::map<std::string, std::int64_t> replicas = {};  // Of shared resources.
  friend bool operator==(const Shape&, const Shape&) = default;
};
[[nodiscard]] Shape shape_of(const Profile& profile);
// From the node's GFD labels, else from its allocatable resources. `mps_pod`: an MPS pod runs on the node.
[[nodiscard]] Shape observed_shape(const Node& node, bool mps_pod);

[[nodiscard]] Transition transition_between(const Profile& before, const Profile& after);
// If the text before is unknown: every pod that can be affected (plugin and GFD always; the MPS daemon as well, because
// it also reads migStrategy, which no node shows).
[[nodiscard]] Transition transition_from(const Shape& before, const Profile& after);

// For one node: from the text that it loaded, if known, and from what the node shows. If the two differ (the node was
// relabelled, or another client restarted pods), the stronger one counts.
[[nodiscard]] Transition transition_on(const Node& node, bool mps_pod, const Profile* before, const Profile& after);

struct Steps {
  enum class Wait { nothing, mps_ready, mps_gone };
  std::vector<Component> first;  // Deleted at once.
  Wait wait = Wait::nothing;     // Before `last`, besides the new pods of `first` being Ready.
  std::vector<Component> last;
  bool disruptive = false;   // Running CUDA clients of MPS break.
  bool touches_mps = false;  // The MPS pod is created, deleted or replaced.
  [[nodiscard]] bool replaces(Component component) const;
};
[[nodiscard]] Steps steps_for(Transition transition);

}  // namespace gso
