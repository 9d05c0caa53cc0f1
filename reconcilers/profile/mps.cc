// What MPS cannot do.
#include "reconcilers/profile/mps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

constexpr std::string_view kSection = "sharing.mps";
constexpr std::string_view kEntries = "sharing.mps.resources";
constexpr std::string_view kMigField = "flags.migStrategy";

class Faults {
 public:
  Faults(const Profile& profile, std::string_view mig_strategy, const MpsGpus& gpus)
      : profile_(profile), mig_strategy_(mig_strategy), gpus_(gpus) {}

  std::vector<Diagnostic> run() {
    mig();
    if (mig_strategy_ == "mixed") {
      add(kMpsWithMixedMig, std::string(kMigField),
          "MPS does not work with migStrategy mixed: the plugin exits, even on nodes without MIG; use none or single, "
          "or time-slicing");
    }
    const bool has_gpus = gpus_.devices == nullptr || !gpus_.devices->empty();
    if (profile_.plugin_replicas(kGpuResource) < 2 && has_gpus) {
      add(kMpsMatchesNothing, std::string(kEntries),
          "no entry is for nvidia.com/gpu: the plugin waits forever for an MPS daemon that is never started, and the "
          "node has 0 GPUs; add an entry for nvidia.com/gpu");
    }
    if (gpus_.devices != nullptr)
      clients_of_devices();
    else
      clients_of_any();
    return std::move(found_);
  }

 private:
  void add(std::string_view code, std::string path, std::string message, Severity severity = Severity::error) {
    found_.push_back({severity, std::string(code), std::move(path), {}, std::move(message)});
  }

  void mig() {
    constexpr std::string_view kEffect =
        "MPS does not work there: GFD exits and the labels become outdated. Disable MIG or use time-slicing";
    const std::ptrdiff_t enabled =
        gpus_.devices == nullptr ? 0 : std::ranges::count_if(*gpus_.devices, &Device::mig_enabled);
    if (enabled > 0) {
      add(kMigEnabled, std::string(kSection),
          fmt::format("MIG is enabled on {} of {} GPUs. {}", enabled, gpus_.devices->size(), kEffect));
    } else if (gpus_.mig_enabled) {
      add(kMigEnabled, std::string(kSection), fmt::format("MIG is enabled on the node's GPUs. {}", kEffect));
    }
    if (gpus_.devices == nullptr && !gpus_.mig_enabled && mig_strategy_ == "single") {
      add("MPSWithSingleMIG", std::string(kMigField),
          "MPS with migStrategy single works only on nodes where no GPU has MIG enabled; elsewhere the plugin and GFD "
          "exit",
          Severity::info);
    }
  }

  void clients_of_devices() {
    const std::int64_t replicas = profile_.plugin_replicas(kGpuResource);
    for (std::size_t i = 0; i < gpus_.devices->size(); ++i) {
      const Device& device = (*gpus_.devices)[i];
      const bool known = device.compute_major > 0;
      const std::int64_t most =
          known ? mps_max_clients(device.compute_major, device.compute_minor) : std::int64_t{kMpsMaxClients};
      if (replicas <= most) continue;
      const std::string capability =
          known ? fmt::format("{}.{}", device.compute_major, device.compute_minor) : "unknown";
      add(kMpsReplicasAboveMaximum, std::string(kEntries),
          fmt::format("{} replicas, but GPU {} ({}, compute capability {}) accepts at most {} MPS clients; the MPS "
                      "daemon exits",
                      replicas, i, shown_value(device.name), capability, most));
      return;
    }
  }

  void clients_of_any() {
    for (std::size_t i = 0; i < profile_.mps->resources.size(); ++i) {
      const ReplicatedResource& entry = profile_.mps->resources[i];
      if (entry.name != kGpuResource) continue;
      std::string path = fmt::format("{}[{}].replicas", kEntries, i);
      if (entry.replicas > kMpsMaxClients) {
        add(kMpsReplicasAboveMaximum, std::move(path),
            fmt::format("replicas is {}; an MPS server accepts at most {} clients ({} below compute capability 7.5), "
                        "and the MPS daemon exits on more",
                        entry.replicas, kMpsMaxClients, kMpsMaxClientsBeforeTuring));
      } else if (entry.replicas > kMpsMaxClientsBeforeTuring) {
        add("MPSReplicasNeedTuring", std::move(path),
            fmt::format("more than {} replicas work only on GPUs of compute capability 7.5 and above",
                        kMpsMaxClientsBeforeTuring),
            Severity::info);
      }
    }
  }

  const Profile& profile_;
  std::string_view mig_strategy_;
  const MpsGpus& gpus_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> mps_faults(const Profile& profile, std::string_view mig_strategy, const MpsGpus& gpus) {
  // Of a section whose entries are all wrong, no strategy follows; what it asks for is looked at all the same.
  if (!profile.mps || (gpus.devices != nullptr && profile.strategy() != Strategy::mps)) return {};
  return Faults(profile, mig_strategy, gpus).run();
}

}  // namespace gso
