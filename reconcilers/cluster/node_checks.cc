// Checks that need a node.
#include "reconcilers/cluster/node_checks.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/profile/mps.h"

namespace gso {
namespace {

using Severity = Diagnostic::Severity;

constexpr std::string_view kGpu = "nvidia.com/gpu";

// Fields of the profile that a minor release brought. Source: api/config/v1 of the device plugin's tags.
struct KnownSince {
  std::string_view path;
  int minor;
};
constexpr std::array<KnownSince, 6> kKnownSince{{{"flags.useNodeFeatureAPI", 15},
                                                 {"flags.nvidiaDevRoot", 16},
                                                 {"flags.deviceDiscoveryStrategy", 16},
                                                 {"imex.channelIDs", 17},
                                                 {"imex.required", 17},
                                                 {"flags.gdrcopyEnabled", 18}}};

class NodeCheck {
 public:
  NodeCheck(const Profile& profile, const std::vector<Device>& devices) : profile_(profile), devices_(devices) {}

  std::vector<Diagnostic> run() {
    const Expectation expectation = expected_state(profile_, devices_);
    mps();
    mig();
    names(expectation);
    for (const auto& [label, value] : expectation.dropped_labels) {
      add(Severity::warning, "LabelDropped", "",
          fmt::format("NFD drops {}: \"{}\" is no label value (63 characters at most)", label, value));
    }
    if (expectation.labels_unreliable) {
      add(Severity::warning, "LabelsUnreliable", "",
          "the GPUs are of different models, so GFD's labels change at random; only allocatable can be relied on");
    }
    return std::move(found_);
  }

 private:
  void add(Severity severity, std::string code, std::string path, std::string message) {
    found_.push_back({severity, std::move(code), std::move(path), 0, 0, std::move(message)});
  }

  [[nodiscard]] std::ptrdiff_t mig_enabled() const {
    return std::count_if(devices_.begin(), devices_.end(), [](const Device& d) { return d.mig_enabled; });
  }

  void mps() {
    if (profile_.strategy() != Strategy::mps) {
      return;
    }
    if (const auto enabled = mig_enabled(); enabled > 0) {
      add(Severity::error, "MIGEnabled", "sharing.mps",
          fmt::format("{} of {} GPUs have MIG enabled: {}", enabled, devices_.size(), kMpsWithMig));
    }
    if (profile_.mig_strategy == "mixed") {
      add(Severity::error, "MPSWithMixedMIG", "flags.migStrategy",
          "MPS does not work with migStrategy mixed, and the plugin exits; use none or single");
    }
    const std::int64_t replicas = profile_.plugin_replicas(kGpu);
    if (replicas < 2 && !devices_.empty()) {
      add(Severity::error, "MPSMatchesNothing", "sharing.mps.resources",
          "no entry is for nvidia.com/gpu: the plugin waits forever for an MPS daemon, and the node has 0 GPUs");
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const Device& device = devices_[i];
      const auto most = mps_max_clients(device.compute_major, device.compute_minor);
      if (replicas > most) {
        add(Severity::error, "MPSReplicasAboveMaximum", "sharing.mps.resources",
            fmt::format("{} replicas, but GPU {} ({}, compute capability {}.{}) takes {} MPS clients at most; the MPS "
                        "daemon exits",
                        replicas, i, device.name, device.compute_major, device.compute_minor, most));
        return;
      }
    }
  }

  void mig() {
    const auto enabled = mig_enabled();
    if (profile_.mig_strategy == "single" && enabled > 0) {
      std::set<std::map<std::string, std::int64_t>> kinds;
      bool empty = false;
      for (const Device& device : devices_) {
        empty = empty || (device.mig_enabled && device.mig_devices.empty());
        for (const MigDevice& mig : device.mig_devices) {
          kinds.insert(mig.attributes);
        }
      }
      if (empty || kinds.size() > 1 || enabled != static_cast<std::ptrdiff_t>(devices_.size())) {
        add(Severity::error, "MIGNotUniform", "flags.migStrategy",
            "migStrategy single needs MIG devices of one kind on every GPU, or MIG disabled everywhere; the plugin "
            "exits, and GFD "
            "labels the product -MIG-INVALID");
      }
    }
  }

  void names(const Expectation& expectation) {
    const SharingSection* active = profile_.active();
    if (active == nullptr || devices_.empty()) {
      return;
    }
    const std::string section = profile_.mps ? "sharing.mps" : "sharing.timeSlicing";
    for (std::size_t i = 0; i < active->resources.size(); ++i) {
      const std::string& name = active->resources[i].name;
      if (!expectation.allocatable.contains(name) && !expectation.allocatable.contains(name + ".shared")) {
        add(Severity::warning, "NameMatchesNothing", fmt::format("{}.resources[{}].name", section, i),
            fmt::format("no device of this node is a {}, so the entry does nothing here", name));
      }
    }
  }

  const Profile& profile_;
  const std::vector<Device>& devices_;
  std::vector<Diagnostic> found_;
};

}  // namespace

Profile with_environment(Profile profile, const std::map<std::string, std::string>& environment) {
  if (const auto found = environment.find("MIG_STRATEGY"); found != environment.end()) {
    profile.mig_strategy = found->second;
  }
  return profile;
}

std::vector<Diagnostic> check_on_node(const Profile& profile, const std::vector<Device>& devices) {
  return NodeCheck(profile, devices).run();
}

bool knows_mps(const PluginVersion& version) {
  return !version.known_below(0, 15, 0);
}

std::vector<Diagnostic> check_on_release(const Profile& profile, const PluginVersion& version, bool by_label) {
  std::vector<Diagnostic> found;
  const auto add = [&](Severity severity, std::string code, std::string path, std::string message) {
    found.push_back({severity, std::move(code), std::move(path), 0, 0, std::move(message)});
  };
  const std::string release = version.to_string();
  if (by_label && !version.known_below(0, 18, 2)) {
    add(Severity::warning, "DefaultFirstStart", "",
        fmt::format(
            "plugin {} loads the default profile first at every start and the labelled one after it; until it has, the "
            "node shows the default",
            release));
  }
  for (const KnownSince& field : kKnownSince) {
    if (profile.settings.contains(std::string(field.path)) && version.known_below(0, field.minor, 0)) {
      add(Severity::warning, "FieldNotInRelease", std::string(field.path),
          fmt::format("plugin {} does not know the field and ignores it; it came with v0.{}.0", release, field.minor));
    }
  }
  if (profile.mps && !knows_mps(version)) {
    add(Severity::error, "MPSNotInRelease", "sharing.mps",
        fmt::format("plugin {} does not know MPS and ignores the section: the GPUs would not be shared by it; it came "
                    "with v0.15.0",
                    release));
  } else if (profile.strategy() == Strategy::mps) {
    const bool panics = version.known && !version.known_below(0, 18, 0) && version.known_below(0, 20, 0);
    add(Severity::warning, panics ? "MPSSidecarPanics" : "MPSSidecarCannotSignal", "sharing.mps",
        fmt::format("the MPS daemon of plugin {} does not load a changed profile by itself: its sidecar {}; so the "
                    "operator replaces its pod when the profile changes",
                    release, panics ? "panics" : "finds no process to signal"));
    if (profile.mps->fail_requests_greater_than_one == false && refuses_requests_above_one(profile, version)) {
      add(Severity::warning, "FailRequestsForced", "sharing.mps.failRequestsGreaterThanOne",
          fmt::format("plugin {} refuses requests above 1 all the same; false is honoured from v0.20.0 on", release));
    }
  }
  if (profile.settings.contains("flags.plugin.sharedDevicesAllocationPolicy") &&
      (!version.known || version.known_below(0, 20, 0))) {
    add(Severity::warning, "AllocationPolicyUnknown", "flags.plugin.sharedDevicesAllocationPolicy",
        fmt::format("plugin {} does not know the field and ignores it; it came with v0.20.0", release));
  }
  return found;
}

bool refuses_requests_above_one(const Profile& profile, const PluginVersion& version) {
  const SharingSection* active = profile.active();
  if (active == nullptr || profile.strategy() == Strategy::none) {
    return false;
  }
  if (!profile.mps) {
    return active->fail_requests_greater_than_one.value_or(false);
  }
  const bool forced = !version.known || version.known_below(0, 20, 0);
  return forced || active->fail_requests_greater_than_one.value_or(true);
}

std::optional<std::string> request_refusal(const Profile& profile, const PluginVersion& version,
                                           std::string_view resource, std::int64_t count) {
  const bool shared = profile.plugin_replicas(resource) > 1;
  if (!shared || count <= 1 || !refuses_requests_above_one(profile, version)) {
    return std::nullopt;
  }
  return fmt::format("{} is shared and the plugin refuses requests above 1 of it; found {}", resource, count);
}

}  // namespace gso
