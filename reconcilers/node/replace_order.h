// What the difference between two profiles needs on one node: which pods go, in which order, what to wait for between,
// and whether running clients break. One table; its golden copy is in tests/reconcilers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/profile/profile.h"

namespace gso {

enum class Transition : std::uint8_t {
  none,
  plugin_only,  // Nothing that a label or the MPS daemon shows: failRequestsGreaterThanOne, plugin flags.
  reshare,      // Labels change, no MPS on either side.
  enter_mps,
  change_mps,  // Replicas, names or devices of a running MPS daemon.
  leave_mps,
};
[[nodiscard]] std::string_view to_string(Transition transition);

// How a profile shows outside: enough to compare with a node whose loaded text is not known any more.
struct Shape {
  Strategy strategy = Strategy::none;
  bool renamed = false;
  std::map<std::string, std::int64_t> replicas;  // Of shared resources.
  friend bool operator==(const Shape&, const Shape&) = default;
};
[[nodiscard]] Shape shape_of(const Profile& profile);
// As the node shows it: GFD's labels, else what is allocatable. `mps_pod`: an MPS pod runs there.
[[nodiscard]] Shape observed_shape(const Node& node, bool mps_pod);

[[nodiscard]] Transition transition_between(const Profile& before, const Profile& after);
// When the text before is unknown: no less than the truth (plugin and GFD always, MPS when its shape differs).
[[nodiscard]] Transition transition_from(const Shape& before, const Profile& after);

// For one node: by the text it loaded, where that is known, and by what it shows; the stronger of the two where the
// node shows something else than that text (it was relabelled, or pods were restarted by others).
[[nodiscard]] Transition transition_on(const Node& node, bool mps_pod, const Profile* before, const Profile& after);

struct Steps {
  enum class Wait { nothing, mps_ready, mps_gone };
  std::vector<Component> first;  // Deleted at once.
  Wait wait = Wait::nothing;     // Before `last`, besides the new pods of `first` being Ready.
  std::vector<Component> last;
  bool disruptive = false;   // Running CUDA clients of MPS break.
  bool touches_mps = false;  // The MPS pod comes, goes or is replaced.
  [[nodiscard]] bool replaces(Component component) const;
};
[[nodiscard]] Steps steps_for(Transition transition);

}  // namespace gso
