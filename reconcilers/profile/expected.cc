// The plugin's and the MPS daemon's half of the expected state: allocatable, errors, what an MPS client gets.
#include "reconcilers/profile/expected.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/profile/expected_labels.h"
#include "reconcilers/profile/mps.h"
#include "reconcilers/profile/mps_faults.h"

namespace gso {
namespace {

// The resource that the plugin registers a MIG device as under migStrategy mixed; empty for a compute instance that is
// smaller than its GPU instance (1c.2g.10gb), which it has no resource for.
std::string mixed_resource(std::string profile) {
  const auto first_unit = profile.find_first_not_of("0123456789");
  if (first_unit != std::string::npos && profile[first_unit] == 'c') {
    return "";
  }
  std::replace(profile.begin(), profile.end(), '+', '.');
  return "nvidia.com/mig-" + profile;
}

// Unshared devices by resource, or why the plugin exits.
struct DeviceMap {
  std::map<std::string, std::int64_t> counts;
  std::optional<std::string> error;
};

std::optional<std::string> single_strategy_error(const std::vector<Device>& devices) {
  const auto enabled = [](const Device& d) { return d.mig_enabled; };
  if (std::none_of(devices.begin(), devices.end(), enabled)) {
    return std::nullopt;
  }
  std::set<std::map<std::string, std::int64_t>> kinds;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].mig_enabled && devices[i].mig_devices.empty()) {
      return fmt::format("the plugin exits: GPU {} has MIG enabled but no MIG device, which migStrategy single needs",
                         i);
    }
    for (const MigDevice& mig : devices[i].mig_devices) {
      if (devices[i].mig_enabled) {
        kinds.insert(mig.attributes);
      }
    }
  }
  if (kinds.size() > 1) {
    return "the plugin exits: migStrategy single needs MIG devices of one kind; use migStrategy mixed, or make them "
           "alike";
  }
  if (!std::all_of(devices.begin(), devices.end(), enabled)) {
    return "the plugin exits: migStrategy single needs MIG enabled on all GPUs or on none";
  }
  return std::nullopt;
}

DeviceMap plugin_devices(const Profile& profile, const std::vector<Device>& devices) {
  DeviceMap map;
  if (profile.mig_strategy == "single") {
    map.error = single_strategy_error(devices);
  }
  for (const Device& device : devices) {
    if (!device.mig_enabled || profile.mig_strategy == "none") {
      ++map.counts[std::string(kGpuResource)];
      continue;
    }
    for (const MigDevice& mig : device.mig_devices) {
      const std::string resource =
          profile.mig_strategy == "single" ? std::string(kGpuResource) : mixed_resource(mig.profile);
      if (resource.empty()) {
        map.error =
            fmt::format("the plugin exits: it has no resource for MIG devices of profile {}", shown_value(mig.profile));
      } else {
        ++map.counts[resource];
      }
    }
  }
  return map;
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
  if (replicas < 2) {
    return;
  }
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

void set_allocatable(const Profile& profile, const DeviceMap& map, Expectation& expectation) {
  for (const auto& [resource, count] : map.counts) {
    const std::string name = registered_name(profile, resource);
    if (name != resource) {
      expectation.allocatable.emplace(resource, 0);
    }
    // Products beyond 64 bits cannot be registered; they are cut off rather than wrapped.
    std::int64_t total = 0;
    if (__builtin_mul_overflow(count, profile.plugin_replicas(resource), &total)) {
      total = INT64_MAX;
    }
    expectation.allocatable[name] = expectation.error ? 0 : total;
  }
}

}  // namespace

Expectation expected_state(const Profile& profile, const std::vector<Device>& devices) {
  Expectation expectation;
  std::set<std::string_view> models;
  for (const Device& device : devices) {
    models.insert(device.name);
  }
  expectation.labels_unreliable = models.size() > 1;

  if (auto labels = gfd_labels(profile, devices); labels) {
    for (auto& [key, value] : *labels) {
      (is_label_value(value) ? expectation.labels : expectation.dropped_labels).emplace(key, std::move(value));
    }
  } else {
    expectation.error = labels.error();
  }
  const DeviceMap map = plugin_devices(profile, devices);
  const bool mps = profile.strategy() == Strategy::mps;
  if (!expectation.error) {
    expectation.error = map.error;
  }
  if (!expectation.error && mps && !devices.empty()) {
    if (auto faults = mps_faults(profile, profile.mig_strategy, {&devices}); !faults.empty()) {
      expectation.error = std::move(faults.front().message);
    }
  }
  set_allocatable(profile, map, expectation);
  if (mps && !expectation.error && !devices.empty()) {
    add_mps_limits(profile, devices, expectation);
  }
  return expectation;
}

}  // namespace gso
