// SharingPolicy, field by field, as the CRD's schema and rules have it.
#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/crd_patterns.h"
#include "reconcilers/lint/field_check.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/maintenance_window.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/policy_words.h"
#include "reconcilers/profile/document_path.h"
#include "reconcilers/profile/expected_labels.h"
#include "reconcilers/profile/go_numbers.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/mps.h"

namespace gso {
namespace {

using namespace std::chrono_literals;
using PolicyWords = FieldCheck::Words;

// Every field of a SharingPolicy's spec, and the one place to add one: "[]" means the items of a list. Fields
// without a subfield in this list accept any content.
constexpr auto kFields = std::to_array<std::string_view>({
    "nodeSelector",
    "nodeSelector.matchLabels",
    "nodeSelector.matchExpressions",
    "nodeSelector.matchExpressions[].key",
    "nodeSelector.matchExpressions[].operator",
    "nodeSelector.matchExpressions[].values",
    "priority",
    "profile",
    "profile.configMapKey",
    "profile.inline",
    "profile.inline.strategy",
    "profile.inline.replicas",
    "profile.inline.renameByDefault",
    "profile.inline.resource",
    "profile.inline.failRequestsGreaterThanOne",
    "mode",
    "takeover",
    "deletionPolicy",
    "revisionHistoryLimit",
    "rollout",
    "rollout.mechanism",
    "rollout.maxUnavailable",
    "rollout.maxUnavailablePerGroup",
    "rollout.canary",
    "rollout.canary.nodesPerGroup",
    "rollout.canary.soak",
    "rollout.workloads",
    "rollout.cordon",
    "rollout.evictBarePods",
    "rollout.idleTimeout",
    "rollout.verifyTimeout",
    "rollout.maxFailures",
    "rollout.onFailure",
    "rollout.maintenanceWindows",
    "rollout.maintenanceWindows[].cron",
    "rollout.maintenanceWindows[].duration",
    "rollout.maintenanceWindows[].timeZone",
    "rollout.paused",
});

constexpr std::int64_t kMostReplicas = 10'000;
constexpr std::size_t kMostWindows = 16;
constexpr std::size_t kMostCron = 128;

constexpr auto kModes = texts_of(kPolicyModeWords);
constexpr auto kDeletion = texts_of(kDeletionPolicyWords);
constexpr auto kMechanism = texts_of(kMechanismWords);
constexpr auto kWorkloads = texts_of(kWorkloadModeWords);
constexpr auto kOnFailure = texts_of(kOnFailureWords);
constexpr std::array<std::string_view, 3> kStrategies{"none", "mps", "time-slicing"};

class PolicyCheck : private FieldCheck {
 public:
  explicit PolicyCheck(std::vector<Diagnostic>& diagnostics) : FieldCheck(diagnostics) {}

  // As check_policy().
  std::size_t run(const DocumentValue& policy) {
    head(policy);
    const DocumentValue* spec = policy.find("spec");
    const PathStep step(path_, "spec");
    if (spec == nullptr || !spec->is_object()) {
      error("WrongType", spec == nullptr ? policy.at : spec->at, "a SharingPolicy needs a mapping \"spec\"");
      return 0;
    }
    known_fields(*spec, "");
    std::size_t left_to_operator = 0;
    object(*spec, "nodeSelector",
           [&](const DocumentValue& v) { left_to_operator = check_selector(v, own_key(*spec), path_, diagnostics_); });
    integer(*spec, "priority", INT32_MIN, INT32_MAX);
    word(*spec, "mode", kModes);
    boolean(*spec, "takeover");
    word(*spec, "deletionPolicy", kDeletion);
    integer(*spec, "revisionHistoryLimit", 0, 1000);
    object(*spec, "profile", [this](const DocumentValue& v) { profile(v); });
    object(*spec, "rollout", [this](const DocumentValue& v) { rollout(v); });
    return left_to_operator;
  }

 private:
  // What surrounds the spec, apart from metadata.
  void head(const DocumentValue& policy) {
    static constexpr std::array<std::string_view, 5> kHead{"apiVersion", "kind", "metadata", "spec", "status"};
    for (const DocumentMember& member : policy.members) {
      const PathStep step(path_, member.key);
      if (std::find(kHead.begin(), kHead.end(), member.key) == kHead.end()) unknown_field(member, kHead);
    }
    const DocumentValue* version = policy.find("apiVersion");
    if (version == nullptr || version->text != kApiVersion) {
      const PathStep step(path_, "apiVersion");
      error("UnknownValue", version == nullptr ? policy.at : version->at,
            fmt::format("the API server serves SharingPolicies as {} only", kApiVersion));
    }
  }

  // The names of the fields directly below this place.
  static std::vector<std::string_view> fields_below(const std::string& place) {
    std::vector<std::string_view> out;
    for (const std::string_view field : kFields) {
      if (field.starts_with(place) && field.find_first_of(".[", place.size()) == std::string_view::npos) {
        out.push_back(field.substr(place.size()));
      }
    }
    return out;
  }

  // `place`: of the value within the spec, with the '.' that comes before its fields.
  void known_fields(const DocumentValue& value, const std::string& place) {
    const auto fields = fields_below(place);
    if (fields.empty()) {
      return;
    }
    for (const DocumentMember& member : value.members) {
      const PathStep step(path_, member.key);
      if (std::find(fields.begin(), fields.end(), member.key) == fields.end()) {
        unknown_field(member, fields);
        continue;
      }
      known_fields(member.value, place + member.key + ".");
      for (std::size_t i = 0; i < member.value.items.size(); ++i) {
        const PathStep item(path_, i);
        known_fields(member.value.items[i], place + member.key + "[].");
      }
    }
  }

  // The key that the policy's nodes get as their label; empty: it chooses none.
  static std::string own_key(const DocumentValue& spec) {
    const DocumentValue* profile = spec.find("profile");
    if (profile == nullptr) return {};
    const DocumentValue* key = profile->find("configMapKey");
    return key != nullptr ? key->text
                          : std::string("gso-");  // The key of an inline profile is derived from its content.
  }

  void profile(const DocumentValue& value) {
    const bool key = value.find("configMapKey") != nullptr;
    const bool text = value.find("inline") != nullptr;
    if (key == text) {
      error("ProfileNotUnique", value.at,
            "set exactly one of configMapKey and inline; to follow the plugin's own choice, leave \"profile\" out");
    }
    member(value, "configMapKey", [this](const DocumentValue& v) {
      if (!v.is_string()) {
        error("KeyNoLabelValue", v.at,
              fmt::format("expected a string, the name of a key of the ConfigMap; found {}", kind_name(v.kind)));
      } else if (v.text.empty() || !is_label_value(v.text)) {
        error("KeyNoLabelValue", v.at,
              "expected a key that a node label can name: at most 63 letters, digits, '-', '_' and '.'");
      }
    });
    object(value, "inline", [this](const DocumentValue& v) { inline_profile(v); });
  }

  void inline_profile(const DocumentValue& value) {
    word(value, "strategy", kStrategies);
    const DocumentValue* chosen = value.find("strategy");
    if (chosen == nullptr || chosen->is_null()) {
      error("StrategyMissing", value.at, fmt::format("inline needs \"strategy\": {}", fmt::join(kStrategies, ", ")));
    }
    member(value, "resource", [this](const DocumentValue& v) {
      if (v.is_string() && is_nvidia_resource(v.text)) return;
      error("NameInvalid", v.at, "expected a resource of nvidia.com, such as nvidia.com/gpu or nvidia.com/mig-1g.5gb");
    });
    const DocumentValue* renames = value.find("renameByDefault");
    if (renames != nullptr && renames->boolean && value.string_at("strategy") == "none") {
      error("NothingShared", renames->at, "strategy none does not share: leave renameByDefault out");
    }
    boolean(value, "renameByDefault");
    boolean(value, "failRequestsGreaterThanOne");
    const std::string_view strategy = value.string_at("strategy");
    if (const DocumentValue* replicas = value.find("replicas"); replicas != nullptr && strategy == "none") {
      error("NothingShared", replicas->at, "strategy none does not share: leave replicas out");
    }
    if (const DocumentValue* resource = value.find("resource");
        resource != nullptr && strategy == "mps" && resource->text != "nvidia.com/gpu") {
      error("MPSSharesGPUsOnly", resource->at, "MPS shares nvidia.com/gpu only");
    }
    if (strategy == "mps" || strategy == "time-slicing") {
      if (value.find("replicas") == nullptr) {
        error("ReplicasMissing", value.at,
              fmt::format("strategy {} needs \"replicas\", an integer of 2 or more", strategy));
      }
      integer(value, "replicas", 2, strategy == "mps" ? kMpsMaxClients : kMostReplicas);
    }
  }

  void rollout(const DocumentValue& value) {
    word(value, "mechanism", kMechanism);
    count_or_percent(value, "maxUnavailable");
    count_or_percent(value, "maxUnavailablePerGroup");
    object(value, "canary", [this](const DocumentValue& v) {
      integer(v, "nodesPerGroup", 0, 1000);
      duration(v, "soak");
    });
    word(value, "workloads", kWorkloads);
    boolean(value, "cordon");
    boolean(value, "evictBarePods");
    boolean(value, "paused");
    duration(value, "idleTimeout", {1s, 720h, "from 1s to 720h"});
    duration(value, "verifyTimeout", {1s, 24h, "from 1s to 24h"});
    integer(value, "maxFailures", 1, 10000);
    word(value, "onFailure", kOnFailure);
    member(value, "maintenanceWindows", [this](const DocumentValue& v) { windows(v); });
    const DocumentValue* cordon = value.find("cordon");
    const bool never = cordon != nullptr && cordon->kind == DocumentValue::Kind::boolean && !cordon->boolean;
    if (value.string_at("workloads") == "Evict" && never) {
      error("EvictNeedsCordon", cordon->at,
            "workloads: Evict needs cordon: true; otherwise evicted pods could be scheduled to the node again");
    }
    if (value.string_at("mechanism") == "DaemonSetRestart") {
      daemonset_restart(value);
    }
  }

  void windows(const DocumentValue& value) {
    if (value.kind != DocumentValue::Kind::array) {
      return error("WrongType", value.at, fmt::format("expected a list, found {}", kind_name(value.kind)));
    }
    if (value.items.size() > kMostWindows)
      error("OutOfRange", value.at,
            fmt::format("expected at most {} windows, found {}", kMostWindows, value.items.size()));
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const PathStep step(path_, i);
      const DocumentValue& item = value.items[i];
      if (!item.is_object()) {
        error("WrongType", item.at, fmt::format("expected a mapping, found {}", kind_name(item.kind)));
        continue;
      }
      MaintenanceWindow window;
      window.cron = item.string_at("cron");
      if (const auto length = parse_go_duration(item.string_at("duration")))
        window.duration = std::chrono::nanoseconds(*length);
      if (item.find("timeZone") != nullptr) window.time_zone = item.string_at("timeZone");
      const DocumentValue* cron = item.find("cron");
      if (std::string problem = window_problem(window); !problem.empty()) {
        error("InvalidWindow", item.at, std::move(problem));
      } else if (window.cron.size() > kMostCron) {
        error("InvalidWindow", cron->at, fmt::format("cron has more than {} characters", kMostCron));
      } else if (!opens(window)) {
        diagnostics_.push_back({Severity::warning, "WindowNeverOpens", path_, cron->at.line, cron->at.column,
                                "no such day exists: the window never opens, and the policy starts no node"});
      }
      const bool wrong = !diagnostics_.empty() && diagnostics_.back().code == "InvalidWindow";
      if (!wrong) duration(item, "duration");  // Its bounds are the window's.
    }
  }

  // In the five years from some day on: "0 0 31 2 *" does not.
  static bool opens(const MaintenanceWindow& window) {
    const WindowState state =
        windows_at({window}, k8s::WallTime{std::chrono::sys_days{std::chrono::year{2024} / 1 / 1}});
    return state.open || state.until.has_value();
  }

  void daemonset_restart(const DocumentValue& value) {
    const DocumentValue& mechanism = *value.find("mechanism");
    if (value.string_at("workloads") != "Interrupt") {
      error("DaemonSetRestartInterrupts", mechanism.at,
            "mechanism DaemonSetRestart cannot gate single nodes; set workloads: Interrupt");
    }
    if (value.string_at("onFailure") == "Rollback") {
      error("DaemonSetRestartPauses", value.find("onFailure")->at,
            "mechanism DaemonSetRestart cannot roll single nodes back; use onFailure: Pause");
    }
    const DocumentValue* canary = value.find("canary");
    const DocumentValue* nodes = canary != nullptr ? canary->find("nodesPerGroup") : nullptr;
    if (nodes == nullptr || nodes->text != "0") {
      error("DaemonSetRestartHasNoCanary", nodes != nullptr ? nodes->at : mechanism.at,
            "mechanism DaemonSetRestart has no canary; set nodesPerGroup: 0");
    }
    if (const DocumentValue* windows = value.find("maintenanceWindows");
        windows != nullptr && !windows->items.empty()) {
      error("DaemonSetRestartHasNoWindows", windows->at,
            "mechanism DaemonSetRestart does not support maintenanceWindows; remove them");
    }
  }
};

}  // namespace

std::span<const std::string_view> policy_fields() {
  return kFields;
}

std::size_t check_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics) {
  return PolicyCheck(diagnostics).run(policy);
}

}  // namespace gso
