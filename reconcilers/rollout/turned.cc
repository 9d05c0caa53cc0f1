#include "reconcilers/rollout/turned.h"

#include <algorithm>

namespace gso {

const ConfigMap* Turned::content() const {
  return pass_.s.world.configmaps.find(pass_.index.set_of(a_).config_map_key());
}

bool Turned::is_of_old_template(Component component, const Pod& pod) const {
  const Operand* operand = pass_.index.set_of(a_).find(component, node_);
  return operand != nullptr && is_old_template(*operand, pod);
}

bool Turned::has_read(Component component, const Pod& pod, const ConfigMap& content) const {
  return loaded_after(pod, content.data_changed, pass_.s.settings.projection) && !is_of_old_template(component, pod);
}

NodeAssessment Turned::from_what_it_shows() const {
  NodeAssessment next = a_;
  next.transition = transition_from(observed_shape(node_, !pods_.mps.empty()), a_.profile->profile());
  if (next.transition == Transition::enter_mps && !pods_.mps.empty()) next.transition = Transition::change_mps;
  if (daemon_may_be_older() && !steps_for(next.transition).touches_mps) next.transition = Transition::change_mps;
  next.way = WayIn::edited;
  return next;
}

// The labels are GFD's word: an MPS daemon that came in this flight may have loaded what stood there before the last
// change.
bool Turned::daemon_may_be_older() const {
  const bool wants_one = a_.profile->profile().strategy() == Strategy::mps;
  if (!wants_one || !steps_for(transition_).touches_mps || pods_.mps.empty()) return false;
  const ConfigMap* now = content();
  return now == nullptr || !has_read(Component::mps, *pods_.mps.front(), *now);
}

std::map<Component, std::set<std::string>> Turned::older_pods(const NodeAssessment& next) const {
  auto out = pods_to_replace(pass_, node_, next);
  const ConfigMap* now = content();
  if (now == nullptr || next.transition == Transition::leave_mps) return out;
  for (const Component component : {Component::mps, Component::gfd, Component::plugin}) {
    const auto entry = out.find(component);
    const auto daemon = out.find(Component::mps);
    const bool follows = component == Component::plugin && daemon != out.end() && !daemon->second.empty();
    if (entry == out.end() || follows) continue;
    for (const Pod* pod : pods_.of(component)) {
      if (has_read(component, *pod, *now)) entry->second.erase(pod->meta.uid);
    }
  }
  return out;
}

// Once is enough: the next ones are newer. The last change may have been another key's.
bool Turned::have_loaded_older_content(WallTime unchanged) const {
  const ConfigMap* now = content();
  return now != nullptr && std::ranges::any_of(a_.flight->replace, [&](const auto& entry) {
           const auto& pods = pods_.of(entry.first);
           return !pods.empty() && (!created_after(*pods.front(), std::min(now->data_changed, unchanged)) ||
                                    is_of_old_template(entry.first, *pods.front()));
         });
}

}  // namespace gso
