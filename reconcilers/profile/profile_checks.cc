// Checks of the plugin (validateFlags), GFD and the MPS daemon that do not depend on the node.
#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "k8sclient/value/encoding.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/mps.h"
#include "reconcilers/profile/profile_decoder.h"

namespace gso {
namespace {

// More replicas of one GPU than this, and the device list no longer fits into the kubelet's 16 MiB messages.
constexpr std::int64_t kReplicasBeyondReason = 100'000;

// mig-1g.5gb, mig-2g.10gb.me: the profiles that the plugin registers under migStrategy mixed. Those of a compute
// instance smaller than its GPU instance (1c.2g.10gb) it does not.
bool is_mig_resource(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia.com/mig-";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const auto number_then = [&name](std::string_view unit) {
    const auto digits = name.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos || !name.substr(digits).starts_with(unit)) return false;
    name.remove_prefix(digits + unit.size());
    return true;
  };
  return number_then("g.") && number_then("gb") && (name.empty() || name[0] == '.' || name[0] == '-');
}

class Checker : DocumentCheck {
 public:
  Checker(const DecodedProfile& decoded, std::vector<Diagnostic>& diagnostics)
      : DocumentCheck(diagnostics), decoded_(decoded) {}

  Profile run() {
    Profile profile;
    if (decoded_.custom_resources) {
      add_at(
          Severity::warning, "ResourcesIgnored", "resources",
          "resources is not supported and is ignored: GPUs are nvidia.com/gpu, MIG devices are named by migStrategy");
    }
    for (const auto& [path, setting] : decoded_.settings) {
      check_setting(path, setting);
      if (path == "flags.migStrategy")
        profile.mig_strategy = setting.text;
      else if (setting.text != setting.field->usual)
        profile.settings.emplace(path, setting.text);
    }
    if (!decoded_.time_slicing.resources.empty()) {
      profile.time_slicing = decoded_.time_slicing;
      check_duplicates(decoded_.time_slicing, kTimeSlicing);
      decoded_.mps ? time_slicing_loses() : check_names(decoded_.time_slicing, kTimeSlicing, profile.mig_strategy);
      check_sizes();
    }
    profile.mps = decoded_.mps;
    if (decoded_.mps) check_mps(profile);
    return profile;
  }

 private:
  static constexpr std::string_view kTimeSlicing = "sharing.timeSlicing";
  static constexpr std::string_view kMps = "sharing.mps";

  void add_at(Severity severity, std::string_view code, std::string path, std::string message) {
    const Position at = decoded_.place(path);
    add(severity, code, std::move(path), at, std::move(message));
  }

  void check_setting(const std::string& path, const DecodedSetting& setting) {
    const SettingWords* allowed = setting.field->words;
    if (setting.field->kind == FieldKind::numbers && !setting.text.empty() && setting.text != "0") {
      add_at(Severity::error, "InvalidImexChannels", path,
             fmt::format("channelIDs is [{}] and the plugin exits; only [] and [0] are allowed",
                         shown_value(setting.text)));
    }
    if (allowed != nullptr && setting.misplaced.empty()) return check_words(path, setting, *allowed);
    // A list can be empty; a word must not be empty.
    if (allowed == nullptr || setting.field->kind == FieldKind::words) return;
    add(Severity::error, allowed->code, setting.misplaced, decoded_.place(path),
        fmt::format("the field belongs at {0}; here it makes upstream read an empty {0}, and {1}", path,
                    allowed->effect));
  }

  void check_words(const std::string& path, const DecodedSetting& setting, const SettingWords& allowed) {
    for (const std::string& word : setting.words.value_or(std::vector{setting.text})) {
      const std::string advice = complaint_about(allowed, word);
      if (advice.empty()) continue;
      const bool joined = setting.words && word.find(',') != std::string::npos;  // As in the variable.
      add_at(Severity::error, allowed.code, path,
             fmt::format("\"{}\" is unknown and {}; {}", shown_value(word), allowed.effect,
                         joined ? "to set several, write a list: [envvar, volume-mounts]" : advice));
    }
  }

  // Calls visit(entry, "sharing.mps.resources[0]") for each entry.
  template <class Visit>
  static void each_entry(const SharingSection& section, std::string_view path, Visit visit) {
    for (std::size_t i = 0; i < section.resources.size(); ++i)
      visit(section.resources[i], fmt::format("{}.resources[{}]", path, i));
  }

  void check_duplicates(const SharingSection& section, std::string_view section_path) {
    std::map<std::string_view, int> first_lines;
    each_entry(section, section_path, [&](const ReplicatedResource& entry, const std::string& path) {
      const auto [first, fresh] = first_lines.try_emplace(entry.name, decoded_.place(path + ".name").line);
      if (fresh || entry.name.empty()) return;
      add_at(
          Severity::warning, "DuplicateEntry", path + ".name",
          fmt::format("{} has an entry in line {} already: GFD uses the first, the plugin uses the largest; keep one",
                      shown_value(entry.name), first->second));
    });
  }

  void time_slicing_loses() {
    add_at(Severity::warning, "TimeSlicingIgnored", std::string(kTimeSlicing),
           "timeSlicing is ignored because mps is set too and MPS takes precedence; remove one of the two");
  }

  void check_sizes() {
    each_entry(decoded_.time_slicing, kTimeSlicing, [&](const ReplicatedResource& entry, const std::string& path) {
      if (entry.replicas <= kReplicasBeyondReason) return;
      add_at(Severity::warning, "ReplicasBeyondReason", path + ".replicas",
             fmt::format(
                 "{} replicas parse, but the plugin's device list would be too long for the kubelet; use at most {}",
                 entry.replicas, kReplicasBeyondReason));
    });
  }

  void check_names(const SharingSection& section, std::string_view section_path, const std::string& mig_strategy) {
    each_entry(section, section_path, [&](const ReplicatedResource& entry, const std::string& path) {
      const bool mig = is_mig_resource(entry.name);
      if (entry.name.empty() || entry.name == "nvidia.com/gpu" || (mig && mig_strategy == "mixed")) return;
      const std::string why =
          !meant_resource(entry.name).empty() ? std::string("; did you mean \"nvidia.com/gpu\"?")
          : mig
              ? fmt::format(
                    ": MIG resources exist only under flags.migStrategy: mixed, and it is {} here (unless "
                    "the DaemonSet's MIG_STRATEGY overrides it)",
                    shown_value(mig_strategy))
              : std::string(": the plugin knows nvidia.com/gpu and, under migStrategy mixed, nvidia.com/mig-<profile>");
      add_at(Severity::warning, "NameMatchesNothing", path + ".name",
             fmt::format("no device has the resource {}, so this entry has no effect{}", shown_value(entry.name), why));
    });
  }

  void check_mps(const Profile& profile) {
    const SharingSection& mps = *decoded_.mps;
    check_duplicates(mps, kMps);
    if (mps.resources.empty()) return;  // Reported while decoding.
    check_names(mps, kMps, profile.mig_strategy);
    const bool names_gpus = std::ranges::any_of(mps.resources, [](const ReplicatedResource& entry) {
      return entry.name == "nvidia.com/gpu" || entry.name.empty();
    });
    for (Diagnostic& fault : mps_faults(profile, profile.mig_strategy, {})) {
      // An entry for it is there, and what is wrong with its replicas or name is reported while decoding.
      if (fault.code == kMpsMatchesNothing && names_gpus) continue;
      add_at(fault.severity, fault.code, std::move(fault.path), std::move(fault.message));
    }
    if (mps.fail_requests_greater_than_one == false) {
      add_at(Severity::info, "FailRequestsByVersion", "sharing.mps.failRequestsGreaterThanOne",
             "false is honoured from plugin v0.20.0 on; earlier releases refuse requests above 1 anyway");
    }
  }

  const DecodedProfile& decoded_;
};

// The field of flags at the path "flags.plugin.deviceListStrategy"; null: there is none.
const ProfileField* setting_at(std::string_view path) {
  const ProfileField* field = nullptr;
  ProfileFields fields = kFlags;
  for (const auto part : std::views::split(path, '.') | std::views::drop(1)) {
    field = find_field(fields, std::string_view(part.begin(), part.end()));
    if (field == nullptr) return nullptr;
    fields = field->settings;
  }
  return field;
}

}  // namespace

Position DecodedProfile::place(std::string_view path) const {
  for (auto found = places.find(path); found == places.end(); found = places.find(path)) {
    const auto end = path.find_last_of(".[");
    if (end == std::string_view::npos) return {};
    path = path.substr(0, end);
  }
  return places.find(path)->second;
}

std::optional<std::string> word_complaint(std::string_view path, std::string_view text) {
  const ProfileField* field = setting_at(path);
  if (field == nullptr || field->words == nullptr) return std::nullopt;
  const bool list = field->kind == FieldKind::words;
  while (true) {
    const std::string_view item = list ? text.substr(0, text.find(',')) : text;
    std::string complaint = complaint_about(*field->words, list ? k8s::trimmed(item) : item);
    if (!complaint.empty()) return complaint;
    if (item.size() == text.size()) return std::nullopt;
    text.remove_prefix(item.size() + 1);
  }
}

Profile check_profile(const DecodedProfile& decoded, std::vector<Diagnostic>& diagnostics) {
  return Checker(decoded, diagnostics).run();
}

}  // namespace gso
