// A node in flight whose content, or whose DaemonSets' templates, have moved on: what its pods have read by then, and
// which of them that leaves to be replaced. Creation times and ControllerRevisions tell; labels are the last word of
// GFD.
#pragma once

#include <map>
#include <set>
#include <string>

#include "reconcilers/fleet/pass.h"

namespace gso {

class Turned {
 public:
  // All of them outlive this. `transition`: of the flight, as it began.
  Turned(const Pass& pass, const Node& node, const NodeAssessment& assessment, const NodePods& pods,
         Transition transition)
      : pass_(pass), node_(node), a_(assessment), pods_(pods), transition_(transition) {}

  // The difference between what the node shows and what stands in the ConfigMap, as if it had just been edited.
  [[nodiscard]] NodeAssessment from_what_it_shows() const;
  // What is to be replaced for that: pods that are known to have read the present content and are of the present
  // templates stay, but for a plugin whose MPS daemon is replaced or ended: it comes after that.
  [[nodiscard]] std::map<Component, std::set<std::string>> older_pods(const NodeAssessment& next) const;
  // Of the pods that came for the listed ones: what was not to be replaced (the MPS daemon, mostly) may be old, and
  // where none came (the node is lost) there is nothing to replace. `unchanged`: since when the text of the node's own
  // key is known to be what it is.
  [[nodiscard]] bool have_loaded_older_content(WallTime unchanged) const;

 private:
  [[nodiscard]] const ConfigMap* content() const;
  // What stands there now, and by the template that names it.
  [[nodiscard]] bool has_read(Component component, const Pod& pod, const ConfigMap& content) const;
  [[nodiscard]] bool is_of_old_template(Component component, const Pod& pod) const;
  [[nodiscard]] bool daemon_may_be_older() const;

  const Pass& pass_;
  const Node& node_;
  const NodeAssessment& a_;
  const NodePods& pods_;
  Transition transition_;
};

}  // namespace gso
