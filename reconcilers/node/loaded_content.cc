#include "reconcilers/node/loaded_content.h"

#include <algorithm>

#include "reconcilers/cluster/config_maps.h"

namespace gso {

Transition keep_daemon(Transition by_sight, const Shape& shown, const ProfilePtr& daemon, const Profile& after) {
  if (by_sight != Transition::change_mps || shown != shape_of(after) || daemon == nullptr) return by_sight;
  const bool is_same = !steps_for(transition_between(daemon->profile(), after)).touches_mps;
  return is_same ? Transition::reshare : by_sight;
}

ProfilePtr of_kept_daemon(const NodeChange& change, const ProfilePtr& begun_for) {
  return steps_for(change.kind).touches_mps ? nullptr : begun_for;
}

const ConfigMap* LoadedContent::content() const {
  return view_.snapshot.world.configmaps.find(view_.installation.config_map_key());
}

bool LoadedContent::is_of_old_template(Component component, const Pod& pod) const {
  const Operand* operand = view_.installation.find(component, view_.node);
  return operand != nullptr && is_old_template(*operand, pod);
}

bool LoadedContent::has_read(Component component, const Pod& pod, const ConfigMap& content) const {
  const auto known_since = data_known_since(view_.snapshot.world, content);
  const PlannerSettings& settings = view_.snapshot.settings;
  return known_since && loaded_after(pod, *known_since + clock_difference(settings), settings.projection) &&
         !is_from_the_future(pod, view_.snapshot.now) && !is_of_old_template(component, pod);
}

ChangePlan LoadedContent::from_what_it_shows() const {
  const bool daemon = !view_.pods.mps.empty();
  ChangePlan next;
  const Shape shown = observed_shape(view_.node, daemon);
  const Profile& after = view_.facts.profile->profile();
  next.kind = keep_daemon(transition_from(shown, after), shown, profile_of_daemon(), after);
  next.cause = ChangeCause::edited;
  return next;
}

// The labels come from GFD: an MPS daemon that started during this change might have loaded the text before the last
// edit.
ProfilePtr LoadedContent::profile_of_daemon() const {
  const ConfigMap* now = content();
  const bool is_new =
      now != nullptr && !view_.pods.mps.empty() && has_read(Component::mps, *view_.pods.mps.front(), *now);
  if (is_new) return view_.facts.profile;
  return of_kept_daemon(change_, begun_for_);
}

std::map<Component, std::set<std::string>> LoadedContent::older_pods(const ChangePlan& next) const {
  auto out = pods_to_replace(view_, next);
  const ConfigMap* now = content();
  if (now == nullptr || next.kind == Transition::leave_mps) return out;
  for (const Component component : {Component::mps, Component::gfd, Component::plugin}) {
    const auto entry = out.find(component);
    const auto daemon = out.find(Component::mps);
    const bool follows = component == Component::plugin && daemon != out.end() && !daemon->second.empty();
    if (entry == out.end() || follows) continue;
    for (const Pod* pod : view_.pods.of(component)) {
      if (has_read(component, *pod, *now)) entry->second.erase(pod->meta.uid);
    }
  }
  return out;
}

std::optional<WallTime> LoadedContent::unchanged_seed() const {
  const ConfigMap* now = content();
  if (now == nullptr) return std::nullopt;
  const bool shows_time = now->data_time_known && now->data_changed <= view_.snapshot.now;
  return shows_time ? std::nullopt : std::optional(change_.listed);
}

// One check is enough: later pods are newer. The last edit might have changed another key.
bool LoadedContent::is_older(WallTime unchanged, Duration tolerance) const {
  const ConfigMap* now = content();
  if (now == nullptr) return false;
  const WallTime known = data_known_since(view_.snapshot.world, *now).value_or(unchanged);
  // The time of the edit and the creation times come from API servers; nothing else is compared with doubt, because an
  // operator that cannot know the time of the edit would replace pods without end.
  const bool is_its_edit = now->data_time_known && known <= unchanged;
  const WallTime since = is_its_edit ? known + clock_difference(view_.snapshot.settings)
                                     : std::min(known, unchanged) - std::chrono::ceil<WallTime::duration>(tolerance);
  return std::ranges::any_of(change_.pods, [&](const auto& entry) {
    const auto& pods = view_.pods.of(entry.first);
    return !pods.empty() && (!created_after(*pods.front(), since) || is_of_old_template(entry.first, *pods.front()));
  });
}

}  // namespace gso
