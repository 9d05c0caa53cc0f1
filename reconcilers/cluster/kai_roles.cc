// See kai_roles.h.
#include "reconcilers/cluster/kai_roles.h"

#include <algorithm>
#include <string_view>

#include "reconcilers/model/kai_names.h"

namespace gso {

using namespace kai;

KaiRole role_of(const KaiPod& pod, const KaiView& view) {
  const bool reserves = pod.meta.ns == view.reservations && pod.meta.labels.get(kAppLabel) == view.app_label;
  const auto group = pod.meta.labels.get(kGroupLabel);
  if (reserves) return group && !group->empty() ? KaiRole::reservation : KaiRole::unlabelled;
  const bool grouped = std::ranges::any_of(pod.meta.labels, [](const auto& label) {
    return label.key == kGroupLabel || label.key.view().starts_with(kGroupPrefix);
  });
  return grouped ? KaiRole::consumer : KaiRole::none;
}

bool is_leftover(const KaiPod& pod, const KaiView& view) {
  if (!pod.meta.labels.contains(kGroupLabel)) return false;
  const auto app = pod.meta.labels.get(kAppLabel);
  if (pod.meta.ns.view() == view.reservations) return app != view.app_label;
  return app == view.app_label || app == kDefaultReservations;
}

bool is_alive(const KaiPod& pod) {
  return pod.phase.view() != "Succeeded" && pod.phase.view() != "Failed";
}

std::vector<std::string> groups_of(const KaiPod& pod) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view group) {
    if (!group.empty() && std::ranges::find(out, group) == out.end()) out.emplace_back(group);
  };
  for (const auto& label : pod.meta.labels) {
    const std::string_view key = label.key.view();
    if (key == kGroupLabel) add(label.value.view());
    if (!key.starts_with(kGroupPrefix)) continue;
    add(key.substr(kGroupPrefix.size()));
    // KAI's binder looks for key and value; its scheduler reads the values, and only of pods with the plain label.
    if (pod.meta.labels.contains(kGroupLabel)) add(label.value.view());
  }
  return out;
}

std::vector<std::string> groups_in_role(const KaiPod& pod, KaiRole role) {
  if (role == KaiRole::consumer) return groups_of(pod);
  if (role != KaiRole::reservation) return {};
  return {std::string(pod.meta.labels.get(kGroupLabel).value_or(""))};
}

bool is_terminally_failed(const BindRequest& request) {
  return request.phase == "Failed" && (!request.backoff_limit || request.failed_attempts >= *request.backoff_limit);
}

}  // namespace gso
