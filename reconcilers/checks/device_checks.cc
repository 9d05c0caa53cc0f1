// A profile against the GPUs of a node.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/checks/check_functions.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/mps.h"

namespace gso::check {
namespace {

Complaints mps_complaints(const Setup& setup, MpsFault::Kind kind) {
  Complaints out;
  if (!setup.wants_mps()) return out;
  const std::vector<Device> devices = setup.hardware.devices();
  for (MpsFault& fault :
       mps_faults(*setup.valid_profile(), setup.mig_strategy(), {&devices, setup.hardware.mig_enabled})) {
    if (fault.kind == kind) out.push_back({std::move(fault.path), std::move(fault.message)});
  }
  return out;
}

// The node's expectation under the profile; nullopt if the profile is invalid.
std::optional<Expectation> expectation_of(const Setup& setup) {
  if (setup.valid_profile() == nullptr) return std::nullopt;
  return expected_state(setup.effective_profile(), setup.hardware.devices());
}

std::string_view section_of(const Profile& profile) {
  return profile.mps ? "sharing.mps" : "sharing.timeSlicing";
}

Complaint useless_entry(const Profile& profile, std::size_t index) {
  return {fmt::format("{}.resources[{}].name", section_of(profile), index),
          fmt::format("no device of this node is a {}, so the entry has no effect on this node",
                      profile.active()->resources[index].name)};
}

// Entries for MIG profiles that GFD's labels do not show.
Complaints useless_mig_entries(const Setup& setup, const Profile& profile) {
  Complaints out;
  const auto& shown = setup.hardware.mig_names;
  if (shown.empty() || setup.mig_strategy() != "mixed" || profile.mps) return out;
  for (std::size_t i = 0; i < profile.active()->resources.size(); ++i) {
    const std::string& name = profile.active()->resources[i].name;
    if (name.starts_with("nvidia.com/mig-") && std::ranges::find(shown, name) == shown.end()) {
      out.push_back(useless_entry(profile, i));
    }
  }
  return out;
}

}  // namespace

// A person wrote it because the labels do not describe the GPUs: without it, a change could not be verified.
Complaints devices_unreadable(const Setup& setup) {
  if (setup.hardware.unreadable.empty()) return {};
  return {
      {"", fmt::format("the annotation {} cannot be read: {}. Correct or remove it; until then the node is not changed",
                       kDevicesAnnotation, setup.hardware.unreadable)}};
}

Complaints mig_enabled(const Setup& setup) {
  return mps_complaints(setup, MpsFault::Kind::mig_enabled);
}

Complaints mps_with_mixed_mig(const Setup& setup) {
  return mps_complaints(setup, MpsFault::Kind::mixed_mig);
}

Complaints mps_matches_nothing(const Setup& setup) {
  return mps_complaints(setup, MpsFault::Kind::no_entry);
}

Complaints mps_replicas_above_maximum(const Setup& setup) {
  return mps_complaints(setup, MpsFault::Kind::too_many_clients);
}

Complaints mig_not_uniform(const Setup& setup) {
  if (setup.valid_profile() == nullptr || setup.mig_strategy() != "single") return {};
  const std::vector<Device> devices = setup.hardware.devices();
  const auto enabled = std::ranges::count_if(devices, &Device::mig_enabled);
  std::set<std::map<std::string, std::int64_t>> kinds;
  bool empty = false;
  for (const Device& device : devices) {
    empty = empty || (device.mig_enabled && device.mig_devices.empty());
    for (const MigDevice& mig : device.mig_devices) kinds.insert(mig.attributes);
  }
  const bool uniform = !empty && kinds.size() <= 1 && std::cmp_equal(enabled, devices.size());
  if (enabled == 0 || uniform) return {};
  return {{"flags.migStrategy",
           "migStrategy single needs MIG devices of one kind on every GPU, or MIG disabled everywhere; the plugin "
           "exits, and GFD labels the product -MIG-INVALID"}};
}

// The remaining reasons for which the node would have no GPUs.
Complaints gpus_cannot_be_served(const NodeSetup& setup) {
  if (setup.expectation == nullptr || !setup.expectation->error) return {};
  return {{"", *setup.expectation->error}};
}

Complaints name_matches_nothing(const Setup& setup) {
  const Profile* profile = setup.valid_profile();
  if (profile == nullptr || profile->active() == nullptr) return {};
  if (setup.hardware.mig_enabled && setup.hardware.written_down == nullptr) return useless_mig_entries(setup, *profile);
  Complaints out;
  if (setup.hardware.devices().empty()) return out;
  const std::optional<Expectation> expectation = expectation_of(setup);
  for (std::size_t i = 0; i < profile->active()->resources.size(); ++i) {
    const std::string& name = profile->active()->resources[i].name;
    const auto& served = expectation->allocatable;
    if (!served.contains(name) && !served.contains(name + ".shared")) out.push_back(useless_entry(*profile, i));
  }
  return out;
}

Complaints label_dropped(const Setup& setup) {
  Complaints out;
  const std::optional<Expectation> expectation = expectation_of(setup);
  if (!expectation) return out;
  for (const auto& [label, value] : expectation->dropped_labels) {
    out.push_back({"", fmt::format("NFD drops label {}: \"{}\" is not a valid label value (at most 63 characters)",
                                   label, shown_value(value))});
  }
  return out;
}

Complaints labels_unreliable(const Setup& setup) {
  const std::optional<Expectation> expectation = expectation_of(setup);
  if (!expectation || !expectation->labels_unreliable) return {};
  return {{"", "the GPUs are of different models, so GFD's labels change at random; rely only on allocatable"}};
}

}  // namespace gso::check
