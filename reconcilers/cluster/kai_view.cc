// Defaults by schema, and the binder's state.
#include "reconcilers/cluster/kai_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/model/kai_objects.h"

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

std::vector<std::string> groups_of(const k8s::StringMap& labels) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view group) {
    if (!group.empty() && std::ranges::find(out, group) == out.end()) out.emplace_back(group);
  };
  for (const auto& label : labels) {
    const std::string_view key = label.key.view();
    if (key == kGroupLabel) add(label.value.view());
    if (!key.starts_with(kGroupPrefix)) continue;
    add(key.substr(kGroupPrefix.size()));
    // KAI's binder looks for key and value; its scheduler reads the values, and only of pods with the plain label.
    if (labels.contains(kGroupLabel)) add(label.value.view());
  }
  return out;
}

std::vector<std::string> groups_in_role(const KaiPod& pod, KaiRole role) {
  if (role == KaiRole::consumer) return groups_of(pod.meta.labels);
  if (role != KaiRole::reservation) return {};
  return {std::string(pod.meta.labels.get(kGroupLabel).value_or(""))};
}

bool KaiSharing::limits_memory() const {
  return mode == "HamiCore" || mode == kNvFractions;
}

bool is_terminally_failed(const BindRequest& request) {
  return request.phase == "Failed" && (!request.backoff_limit || request.failed_attempts >= *request.backoff_limit);
}

namespace {

constexpr std::string_view kSharingField = "spec.admission.gpuSharing";
constexpr std::string_view kModeField = "spec.global.gpuSharingMode";

// Mode -> the default of gpuSharing, which an explicit one overrides. But in mode NvFractions admission runs another
// plugin, which gpuSharing does not concern (cmd/admission/main.go, registerPlugins).
bool sharing_by_mode(std::string_view mode) {
  return mode == "NonMemoryEnforced" || mode == "HamiCore" || mode == kNvFractions;
}

KaiSharing sharing_of(const KaiConfig& config, bool knows_modes) {
  KaiSharing out;
  if (knows_modes) {
    out.mode = config.gpu_sharing_mode.value_or("NonMemoryEnforced");
    out.enabled = sharing_by_mode(out.mode);
    out.decided_by = config.gpu_sharing_mode ? kModeField : "default";
  } else {
    out.decided_by = "default";
  }
  if (config.gpu_sharing && out.mode != kNvFractions) {
    out.enabled = *config.gpu_sharing;
    out.decided_by = kSharingField;
  }
  return out;
}

std::string text_or(const std::string& text, std::string_view otherwise) {
  return text.empty() ? std::string(otherwise) : text;
}

Duration seconds_or(const std::optional<std::int64_t>& seconds, std::int64_t otherwise) {
  // Bounded, so that a typing error (hours given in milliseconds) cannot overflow; a longer wait is still safe.
  constexpr std::int64_t kMost = 7 * 24 * 3600;
  return std::chrono::seconds(seconds && *seconds > 0 ? std::min(*seconds, kMost) : otherwise);
}

// A schema that was read counts; a missing schema proves something only if the CRDs were looked for.
std::string missing_schema(const KaiWorld& kai) {
  const KaiSchema* config = kai.schemas.find(kConfigCrd);
  const KaiSchema* request = kai.schemas.find(kBindRequestCrd);
  if (kai.configs_served) {
    if (config == nullptr && kai.schemas_known)
      return fmt::format("CustomResourceDefinition {} was not found", kConfigCrd);
    for (const char* field : {"spec.binder.resourceReservation.namespace", "spec.binder.resourceReservation.appLabel"})
      if (config != nullptr && !config->has(field)) return fmt::format("{} has no field {}", kConfigCrd, field);
  }
  if (kai.bind_requests_served) {
    if (request == nullptr && kai.schemas_known)
      return fmt::format("CustomResourceDefinition {} was not found", kBindRequestCrd);
    if (request != nullptr && !request->has("spec.selectedGPUGroups") &&
        !request->has("spec.selectedFractionalGpuGroups")) {
      return fmt::format("{} has neither spec.selectedGPUGroups nor spec.selectedFractionalGpuGroups", kBindRequestCrd);
    }
  }
  return {};
}

void add_class(KaiView& view, const std::optional<std::string>& name, std::string_view otherwise, const char* field) {
  const std::string chosen = name.value_or(std::string(otherwise));
  if (!chosen.empty()) view.runtime_classes.emplace_back(field, chosen);
}

}  // namespace

KaiView view_kai(const KaiWorld& kai, const KaiSettings& settings) {
  static const KaiConfig kNone;
  const KaiConfig* found = kai.configs.find(kConfigName);
  const KaiConfig& config = found ? *found : kNone;
  const KaiSchema* schema = kai.schemas.find(kConfigCrd);
  // Without the CRD (manifests), a field that is set counts as supported.
  const auto knows = [&](std::string_view field, bool used) { return schema ? schema->has(field) : used; };
  KaiView out;
  out.served = kai.configs_served || kai.bind_requests_served;
  out.configured = found != nullptr;
  out.sharing = sharing_of(config, knows(kModeField, config.gpu_sharing_mode.has_value()));
  out.ns = text_or(config.ns, kDefaultNamespace);
  out.scheduler_name = text_or(config.scheduler_name, kDefaultScheduler);
  out.queue_label = text_or(config.queue_label_key, kDefaultQueueLabel);
  out.reservations = text_or(config.reservation_namespace, kDefaultReservations);
  out.app_label = text_or(config.reservation_app_label, kDefaultReservations);
  out.scaling = text_or(config.scale_namespace, kDefaultScaling);
  out.bind_timeout = seconds_or(config.allocation_timeout, kDefaultAllocationTimeout) +
                     seconds_or(config.volume_binding_timeout, kDefaultVolumeBindingTimeout);
  out.grace = std::max(settings.grace, out.bind_timeout);
  const bool fraction_class =
      knows("spec.admission.gpuFractionRuntimeClassName", config.fraction_runtime_class.has_value());
  if (found) {
    add_class(out, config.reservation_runtime_class, fraction_class ? "" : kDefaultRuntimeClass,
              "spec.binder.resourceReservation.runtimeClassName");
    if (fraction_class)
      add_class(out, config.fraction_runtime_class, "", "spec.admission.gpuFractionRuntimeClassName");
    else
      add_class(out, config.pod_runtime_class, kDefaultRuntimeClass, "spec.admission.gpuPodRuntimeClassName");
  }
  out.unrecognised = missing_schema(kai);
  out.signature = fmt::format("{}/{}/{}/{}/{}/{}", out.configured, out.ns, out.reservations, out.app_label,
                              std::chrono::duration_cast<std::chrono::seconds>(out.grace).count(), out.served);
  return out;
}

bool is_placed_by_kai(const KaiWorld& kai, const KaiView& view, std::string_view scheduler, const ObjectKey& pod) {
  if (!view.served) return false;
  if (scheduler == view.scheduler_name) return true;
  const BindRequest* request = kai.bind_requests.find(pod);  // KAI names it like its pod.
  return request != nullptr && request->pod_name == pod.name;
}

std::string binder_trouble(const KaiWorld& kai, const KaiView& view, WallTime now, Duration quiet) {
  const Deployment* binder = kai.deployments.find(ObjectKey{view.ns, std::string(kBinder)});
  const std::string name = fmt::format("Deployment {}/{}", view.ns, kBinder);
  if (binder == nullptr) return view.configured ? name + " does not exist, although kai-config does" : std::string();
  if (binder->meta.deletion_timestamp) return name + " is being deleted";
  if (binder->observed_generation < binder->meta.generation)
    return name + " has a change that its controller has not processed yet";
  if (!binder->available_condition || binder->available < 1) return name + " is not available";
  if (binder->updated < binder->replicas || binder->available < binder->replicas) {
    return fmt::format("{} is rolling out: {} of {} pods updated, {} available", name, binder->updated,
                       binder->replicas, binder->available);
  }
  if (binder->available_since && now - *binder->available_since < quiet)
    return fmt::format("{} has been available only since {}", name, k8s::format_time(*binder->available_since));
  return {};
}

bool elects_leader(const KaiWorld& kai, const KaiView& view) {
  const Deployment* binder = kai.deployments.find(ObjectKey{view.ns, std::string(kBinder)});
  return binder != nullptr && binder->replicas > 1;
}

std::string lease_trouble(const LookupResults::Lease& lease, WallTime now, Duration quiet) {
  if (!lease.known) return {};
  if (lease.holder.empty()) return fmt::format("Lease {} of the binder has no holder", kBinderLease);
  if (lease.acquired && now - *lease.acquired < quiet) {
    return fmt::format("{} has been the binder's leader only since {}", lease.holder,
                       k8s::format_time(*lease.acquired));
  }
  return {};
}

}  // namespace gso
