// A node in a change whose content, or whose DaemonSets' templates, have moved on: what its pods have read by then, and
// which of them that leaves to be replaced. Creation times and ControllerRevisions tell; labels are the last word of
// GFD.
#pragma once

#include <map>
#include <set>
#include <string>

#include "reconcilers/node/node_patch.h"

namespace gso {

class LoadedContent {
 public:
  // Both outlive this.
  LoadedContent(const NodeView& view, const NodeChange& change) : view_(view), change_(change) {}

  // The difference between what the node shows and what is in the ConfigMap, as if it had just been edited.
  [[nodiscard]] ChangePlan from_what_it_shows() const;
  // What is to be replaced for that: pods that are known to have read the present content and are of the present
  // templates stay, but for a plugin whose MPS daemon is replaced or ended: it comes after that.
  [[nodiscard]] std::map<Component, std::set<std::string>> older_pods(const ChangePlan& next) const;
  // Of the pods that came for the listed ones: what was not to be replaced (the MPS daemon, mostly) may be old, and
  // where none came (the node is lost) there is nothing to replace. `unchanged`: since when the text of the node's own
  // key is known to be what it is.
  [[nodiscard]] bool is_older(WallTime unchanged) const;

 private:
  [[nodiscard]] const ConfigMap* content() const;
  // What is there now, and by the template that names it.
  [[nodiscard]] bool has_read(Component component, const Pod& pod, const ConfigMap& content) const;
  [[nodiscard]] bool is_of_old_template(Component component, const Pod& pod) const;
  [[nodiscard]] bool daemon_may_be_older() const;

  const NodeView& view_;
  const NodeChange& change_;
};

}  // namespace gso
