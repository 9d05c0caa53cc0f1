// For a node in a change whose profile text or DaemonSet templates were edited again: what its pods have read so far,
// and which pods must still be replaced. Creation times and ControllerRevisions decide this; labels only show what GFD
// wrote last.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/replace_order.h"

namespace gso {

// --- An MPS daemon that stays although the text of its node is unknown: nothing shows the migStrategy by which a
// daemon has built its devices, but what it runs with can be known otherwise.

// `by_sight`: from what the node shows (transition_from() of `shown`). If the daemon would be the same, it is not
// replaced. `daemon`: the profile that it certainly runs; null: unknown.
[[nodiscard]] Transition keep_daemon(Transition by_sight, const Shape& shown, const ProfilePtr& daemon,
                                     const Profile& after);

// The profile of the daemon of a node in a change: a change that keeps it was begun for a text with the daemon's
// settings. `begun_for`: the profile of change.to; null: unknown. Null: the change replaces the daemon.
[[nodiscard]] ProfilePtr of_kept_daemon(const NodeChange& change, const ProfilePtr& begun_for);

class LoadedContent {
 public:
  // Both outlive this. `begun_for`: the profile of change.to; null: unknown.
  LoadedContent(const NodeView& view, const NodeChange& change, ProfilePtr begun_for)
      : view_(view), change_(change), begun_for_(std::move(begun_for)) {}

  // The difference between what the node shows and what is in the ConfigMap, as if it had just been edited.
  [[nodiscard]] ChangePlan from_what_it_shows() const;
  // The pods to replace for that difference. Pods stay if they have certainly read the present content and have the
  // present templates; but a plugin is replaced after its MPS daemon is replaced or ended.
  [[nodiscard]] std::map<Component, std::set<std::string>> older_pods(const ChangePlan& next) const;
  // Considers only the successors of the listed pods: pods that were not listed (mostly the MPS daemon) might be old,
  // and if no successor was created (the node is lost) no pod can be replaced. `unchanged`: since when the text of the
  // node's own key is known to be unchanged; pods that were created no longer than `tolerance` before that count as
  // newer.
  [[nodiscard]] bool is_older(WallTime unchanged, Duration tolerance) const;
  // Since when an operator that has just been started takes the text to be unchanged, if the ConfigMap does not show
  // when it changed, or shows a time that lies in the future (the clock was set back since): since the pods were listed
  // for that text. Otherwise each start of an operator would list the new pods again, and the node's pods would be
  // replaced without end. nullopt: the ConfigMap shows the time.
  [[nodiscard]] std::optional<WallTime> unchanged_seed() const;

 private:
  [[nodiscard]] const ConfigMap* content() const;
  // The pod has certainly read the present text, and was created from the present template.
  [[nodiscard]] bool has_read(Component component, const Pod& pod, const ConfigMap& content) const;
  [[nodiscard]] bool is_of_old_template(Component component, const Pod& pod) const;
  // With which profile the node's MPS daemon certainly runs; null: none is certain.
  [[nodiscard]] ProfilePtr profile_of_daemon() const;

  const NodeView& view_;
  const NodeChange& change_;
  ProfilePtr begun_for_;
};

}  // namespace gso
