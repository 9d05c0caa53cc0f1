// The table of restarts within a node.
#include "reconcilers/node/replace_order.h"

#include <algorithm>

#include "reconcilers/model/foreign_names.h"

namespace gso {

std::string_view to_string(Transition transition) {
  return word_of(kTransitionWords, transition);
}

Shape shape_of(const Profile& profile) {
  Shape out{.strategy = profile.strategy()};
  const SharingSection* section = profile.active();
  if (section == nullptr) return out;
  out.renamed = section->rename_by_default;
  for (const ReplicatedResource& resource : section->resources)
    out.replicas[resource.name] = profile.plugin_replicas(resource.name);
  return out;
}

Shape observed_shape(const Node& node, bool mps_pod) {
  Shape out;
  constexpr std::string_view kReplicas = ".replicas";
  for (const auto& entry : node.meta.labels) {
    const std::string_view key = entry.key.view();
    if (!key.starts_with("nvidia.com/") || !key.ends_with(kReplicas)) continue;
    const std::int64_t replicas = whole_number(entry.value.view()).value_or(0);
    if (replicas < 2) continue;
    out.replicas[std::string(key.substr(0, key.size() - kReplicas.size()))] = replicas;
  }
  out.renamed = std::ranges::any_of(
      node.allocatable, [](const auto& entry) { return entry.first.view().ends_with(".shared") && entry.second > 0; });
  if (mps_pod)
    out.strategy = Strategy::mps;
  else if (!out.replicas.empty())
    out.strategy = Strategy::time_slicing;
  return out;
}

namespace {

// Compares the shapes only; `same_shape` is the answer if they are equal.
Transition between(const Shape& before, const Shape& after, Transition same_shape) {
  const bool was_mps = before.strategy == Strategy::mps;
  const bool is_mps = after.strategy == Strategy::mps;
  if (was_mps != is_mps) return is_mps ? Transition::enter_mps : Transition::leave_mps;
  if (before == after) return same_shape;
  return is_mps ? Transition::change_mps : Transition::reshare;
}

// Settings that GPU Feature Discovery reads; the MPS daemon reads migStrategy only.
bool gfd_settings_differ(const Profile& before, const Profile& after) {
  const auto of_gfd = [](const Profile& profile) {
    auto out = profile.settings;
    std::erase_if(out, [](const auto& entry) { return std::string_view(entry.first).starts_with("flags.plugin"); });
    return out;
  };
  return of_gfd(before) != of_gfd(after);
}

}  // namespace

Transition transition_between(const Profile& before, const Profile& after) {
  if (before == after) return Transition::none;
  const bool mig = before.mig_strategy != after.mig_strategy;
  const bool gfd = mig || gfd_settings_differ(before, after);
  const Transition same = gfd ? Transition::reshare : Transition::plugin_only;
  const Transition found = between(shape_of(before), shape_of(after), same);
  // The MPS daemon builds its devices by migStrategy.
  return found == Transition::reshare && mig && after.strategy() == Strategy::mps ? Transition::change_mps : found;
}

Transition transition_from(const Shape& before, const Profile& after) {
  return between(before, shape_of(after),
                 after.strategy() == Strategy::mps ? Transition::change_mps : Transition::reshare);
}

Transition transition_on(const Node& node, bool mps_pod, const Profile* before, const Profile& after) {
  const Shape shown = observed_shape(node, mps_pod);
  const Transition by_sight = transition_from(shown, after);
  if (before == nullptr) return by_sight;
  const Transition by_text = transition_between(*before, after);
  if (shown == shape_of(*before)) return by_text;
  if (steps_for(by_sight).touches_mps) return by_sight;
  // The text says that MPS begins, but a daemon exists already (a label set by hand keeps it): it must be replaced;
  // waiting for it is not enough.
  if (by_text == Transition::enter_mps && mps_pod) return Transition::change_mps;
  if (steps_for(by_text).touches_mps) return by_text;
  return std::max(by_text, by_sight);
}

bool Steps::replaces(Component component) const {
  return std::ranges::find(first, component) != first.end() || std::ranges::find(last, component) != last.end();
}

Steps steps_for(Transition transition) {
  using enum Component;
  using Wait = Steps::Wait;
  switch (transition) {
    case Transition::none:
      return {};
    case Transition::plugin_only:
      return {{plugin}, Wait::nothing, {}, false, false};
    case Transition::reshare:
      return {{plugin, gfd}, Wait::nothing, {}, false, false};
    // The MPS pod exists only once GFD says mps.capable, and a plugin that starts before its daemon retries every 30 s.
    case Transition::enter_mps:
      return {{gfd}, Wait::mps_ready, {plugin}, true, true};
    // A plugin that starts after the daemon finds it, and mounts the new shm.
    case Transition::change_mps:
      return {{mps, gfd}, Wait::mps_ready, {plugin}, true, true};
    // GFD takes mps.capable away, the DaemonSet controller ends the MPS pod, which resets the GPUs.
    case Transition::leave_mps:
      return {{gfd}, Wait::mps_gone, {plugin}, true, true};
  }
  return {};
}

}  // namespace gso
