// What GFD, the plugin and the MPS daemon make of a profile and GPUs: labels, allocatable, errors, what an MPS client
// gets.
#include "reconcilers/profile/expected.h"

#include <algorithm>
#include <cctype>
#include <expected>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "k8sclient/value/selectors.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/mps.h"
#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

// --- GFD's labels: full GPUs first, MIG-enabled ones below them, MIG devices above.

using Labels = std::map<std::string, std::string>;

std::string dotted(std::string profile) {
  std::replace(profile.begin(), profile.end(), '+', '.');
  return profile;
}

class ExpectedLabeller {
 public:
  ExpectedLabeller(const Profile& profile, const std::vector<Device>& devices) : profile_(profile), devices_(devices) {}

  Labels run() {
    const auto capable = std::any_of(devices_.begin(), devices_.end(), [](const Device& d) { return d.mig_capable; });
    labels_["nvidia.com/mig.capable"] = capable ? "true" : "false";
    labels_["nvidia.com/mps.capable"] = profile_.strategy() == Strategy::mps ? "true" : "false";
    labels_["nvidia.com/gpu.mode"] = mode();
    full_gpus();
    if (profile_.mig_strategy != "none") {
      labels_["nvidia.com/mig.strategy"] = profile_.mig_strategy;
      profile_.mig_strategy == "single" ? mig_single() : mig_mixed();
    }
    return std::move(labels_);
  }

 private:
  void set(std::string_view resource, std::string_view suffix, std::string value) {
    labels_[fmt::format("{}.{}", resource, suffix)] = std::move(value);
  }

  [[nodiscard]] std::string mode() const {
    const auto pci_class = devices_.front().pci_class;
    const bool same =
        std::all_of(devices_.begin(), devices_.end(), [&](const Device& d) { return d.pci_class == pci_class; });
    return same && pci_class == 0x030000 ? "graphics" : same && pci_class == 0x030200 ? "compute" : "unknown";
  }

  // Product, count, replicas and strategy of a resource. `shares`: false for the whole-GPU labels of a GPU in MIG mode.
  void base(std::string_view resource, std::string product, std::int64_t count, bool shares) {
    const std::int64_t replicas = shares ? profile_.gfd_replicas(resource) : 0;
    const bool shared = replicas > 1;
    if (shared && !profile_.active()->rename_by_default) product += "-SHARED";
    set(resource, "product", std::move(product));
    set(resource, "count", std::to_string(count));
    set(resource, "replicas", std::to_string(replicas));
    set(resource, "sharing-strategy", std::string(to_string(shared ? profile_.strategy() : Strategy::none)));
  }

  void full_gpu(const Device& device, std::int64_t count, bool shares) {
    base(kGpuResource, sanitise_product(device.name), count, shares);
    if (device.memory_mib != 0) set(kGpuResource, "memory", std::to_string(device.memory_mib));
    if (device.compute_major != 0) {
      set(kGpuResource, "family", std::string(gpu_family(device.compute_major, device.compute_minor)));
      set(kGpuResource, "compute.major", std::to_string(device.compute_major));
      set(kGpuResource, "compute.minor", std::to_string(device.compute_minor));
    }
  }

  // One model after the other writes the same keys; upstream's order of models is random, the operator's is by name.
  // The GPUs without MIG come last, so that they win.
  void full_gpus() {
    std::map<std::string, std::int64_t> counts;
    std::map<bool, std::map<std::string, const Device*>> models;
    for (const Device& device : devices_) {
      ++counts[device.name];
      models[!device.mig_enabled][device.name] = &device;
    }
    for (const auto& [shares, by_name] : models)
      for (const auto& [name, device] : by_name) full_gpu(*device, counts[name], shares);
  }

  struct MigKind {
    const Device* parent = nullptr;
    const MigDevice* device = nullptr;
    std::int64_t count = 0;
  };

  [[nodiscard]] std::map<std::string, MigKind> mig_kinds() const {
    std::map<std::string, MigKind> kinds;
    for (const Device& device : devices_) {
      for (const MigDevice& mig : device.mig_devices) {
        if (device.mig_enabled) {
          MigKind& kind = kinds[dotted(mig.profile)];
          if (kind.count++ == 0) {
            kind.parent = &device;
            kind.device = &mig;
          }
        }
      }
    }
    return kinds;
  }

  void mig_labels(const std::string& resource, const std::string& profile, const MigKind& kind) {
    base(resource, fmt::format("{}-MIG-{}", sanitise_product(kind.parent->name), sanitise_product(profile)), kind.count,
         true);
    for (const auto& [name, value] : kind.device->attributes) set(resource, name, std::to_string(value));
  }

  void mig_single() {
    const auto first = std::find_if(devices_.begin(), devices_.end(), [](const Device& d) { return d.mig_enabled; });
    if (first == devices_.end()) return;  // As migStrategy none.
    const auto kinds = mig_kinds();
    const bool uniform = std::all_of(devices_.begin(), devices_.end(),
                                     [](const Device& d) { return d.mig_enabled && !d.mig_devices.empty(); });
    if (uniform && kinds.size() == 1) {
      mig_labels(std::string(kGpuResource), kinds.begin()->first, kinds.begin()->second);
      return;
    }
    set(kGpuResource, "product", sanitise_product(first->name) + "-MIG-INVALID");
    set(kGpuResource, "count", "0");
    set(kGpuResource, "replicas", "0");
    set(kGpuResource, "sharing-strategy", "");
    set(kGpuResource, "memory", "0");
  }

  void mig_mixed() {
    for (const auto& [profile, kind] : mig_kinds()) mig_labels("nvidia.com/mig-" + profile, profile, kind);
  }

  const Profile& profile_;
  const std::vector<Device>& devices_;
  Labels labels_;
};

// The labels as GFD writes them, or why GFD exits.
std::expected<Labels, std::string> gfd_labels(const Profile& profile, const std::vector<Device>& devices) {
  if (devices.empty()) return Labels{};
  for (Diagnostic& fault : mps_faults(profile, profile.mig_strategy, {&devices}))
    if (fault.code == kMigEnabled) return std::unexpected(std::move(fault.message));
  if (profile.mig_strategy != "none" && profile.mig_strategy != "single" && profile.mig_strategy != "mixed") {
    return std::unexpected(fmt::format("GFD and the plugin exit: migStrategy is \"{}\"; use none, single or mixed",
                                       shown_value(profile.mig_strategy)));
  }
  return ExpectedLabeller(profile, devices).run();
}

// --- The plugin and the MPS daemon: allocatable, errors, limits.

// The resource that the plugin registers a MIG device as under migStrategy mixed; empty for a compute instance that is
// smaller than its GPU instance (1c.2g.10gb), which it has no resource for.
std::string mixed_resource(const std::string& profile) {
  const auto first_unit = profile.find_first_not_of("0123456789");
  if (first_unit != std::string::npos && profile[first_unit] == 'c') return "";
  return "nvidia.com/mig-" + dotted(profile);
}

using DeviceCounts = std::map<std::string, std::int64_t>;

// Unshared devices by resource. `error`: gets why the plugin exits.
DeviceCounts plugin_devices(const Profile& profile, const std::vector<Device>& devices,
                            std::optional<std::string>& error) {
  DeviceCounts counts;
  if (profile.mig_strategy == "single") error = single_strategy_error(devices);
  for (const Device& device : devices) {
    if (!device.mig_enabled || profile.mig_strategy == "none") {
      ++counts[std::string(kGpuResource)];
      continue;
    }
    for (const MigDevice& mig : device.mig_devices) {
      const std::string resource =
          profile.mig_strategy == "single" ? std::string(kGpuResource) : mixed_resource(mig.profile);
      if (resource.empty()) {
        error =
            fmt::format("the plugin exits: it has no resource for MIG devices of profile {}", shown_value(mig.profile));
      } else {
        ++counts[resource];
      }
    }
  }
  return counts;
}

bool is_shared(const Profile& profile, const std::string& resource) {
  return profile.plugin_replicas(resource) > 1;
}

std::string registered_name(const Profile& profile, const std::string& resource) {
  const bool renamed = is_shared(profile, resource) && profile.active()->rename_by_default;
  return renamed ? resource + ".shared" : resource;
}

void add_mps_limits(const Profile& profile, const std::vector<Device>& devices, Expectation& expectation) {
  const std::int64_t replicas = profile.plugin_replicas(kGpuResource);
  if (replicas < 2) return;
  MpsLimits limits;
  limits.resource = registered_name(profile, std::string(kGpuResource));
  limits.thread_percentage = mps_thread_percentage(replicas);
  for (const Device& device : devices) {
    const std::int64_t memory = mps_pinned_memory_mib(device.memory_mib, replicas);
    limits.pinned_memory_mib_by_gpu.push_back(memory);
    limits.pinned_memory_mib = limits.pinned_memory_mib == 0 ? memory : std::min(memory, limits.pinned_memory_mib);
  }
  expectation.mps.push_back(std::move(limits));
}

void set_allocatable(const Profile& profile, const DeviceCounts& counts, Expectation& expectation) {
  for (const auto& [resource, count] : counts) {
    const std::string name = registered_name(profile, resource);
    if (name != resource) expectation.allocatable.emplace(resource, 0);
    // Products beyond 64 bits cannot be registered; they are cut off rather than wrapped.
    std::int64_t total = 0;
    if (__builtin_mul_overflow(count, profile.plugin_replicas(resource), &total)) total = INT64_MAX;
    expectation.allocatable[name] = expectation.error ? 0 : total;
  }
}

}  // namespace

std::string sanitise_product(std::string_view product) {
  std::string out;
  bool gap = false;
  for (const char c : product) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (c == ' ') {
      gap = !out.empty();
    } else if (kept) {
      if (gap) out += '-';
      gap = false;
      out += c;
    }
  }
  return out;
}

std::string_view gpu_family(int compute_major, int compute_minor) {
  std::string_view found = "undefined";
  for (const GpuFamily& each : kGpuFamilies)
    if (each.major == compute_major && each.minor <= compute_minor) found = each.name;
  return found;
}

std::optional<std::string> single_strategy_error(const std::vector<Device>& devices) {
  const auto enabled = [](const Device& d) { return d.mig_enabled; };
  if (std::none_of(devices.begin(), devices.end(), enabled)) return std::nullopt;
  std::set<std::map<std::string, std::int64_t>> kinds;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].mig_enabled && devices[i].mig_devices.empty()) {
      return fmt::format("the plugin exits: GPU {} has MIG enabled but no MIG device, which migStrategy single needs",
                         i);
    }
    for (const MigDevice& mig : devices[i].mig_devices)
      if (devices[i].mig_enabled) kinds.insert(mig.attributes);
  }
  if (kinds.size() > 1) {
    return "the plugin exits: migStrategy single needs MIG devices of one kind; use migStrategy mixed, or make them "
           "alike";
  }
  if (!std::all_of(devices.begin(), devices.end(), enabled))
    return "the plugin exits: migStrategy single needs MIG enabled on all GPUs or on none";
  return std::nullopt;
}

Expectation expected_state(const Profile& profile, const std::vector<Device>& devices) {
  Expectation expectation;
  std::set<std::string_view> models;
  for (const Device& device : devices) models.insert(device.name);
  expectation.labels_unreliable = models.size() > 1;

  if (auto labels = gfd_labels(profile, devices); labels) {
    for (auto& [key, value] : *labels) {
      (k8s::label_value_problem(value) ? expectation.dropped_labels : expectation.labels)
          .emplace(key, std::move(value));
    }
  } else {
    expectation.error = labels.error();
  }
  std::optional<std::string> error;
  const DeviceCounts counts = plugin_devices(profile, devices, error);
  const bool mps = profile.strategy() == Strategy::mps;
  if (!expectation.error) expectation.error = error;
  if (!expectation.error && mps && !devices.empty()) {
    if (auto faults = mps_faults(profile, profile.mig_strategy, {&devices}); !faults.empty())
      expectation.error = std::move(faults.front().message);
  }
  set_allocatable(profile, counts, expectation);
  if (mps && !expectation.error && !devices.empty()) add_mps_limits(profile, devices, expectation);
  return expectation;
}

}  // namespace gso
