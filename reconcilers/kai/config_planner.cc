// kai.config: reports the sharing mode in force, what in kai-config cannot work, and when an upgrade reverted a manual
// setting. The last seen values are in the state ConfigMap.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "k8sclient/value/encoding.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/kai_objects.h"

namespace gso {

using namespace kai;
using OrderedJson = nlohmann::ordered_json;

namespace {

ObjectRef config_ref(const KaiConfig& config) {
  return {"kai.scheduler/v1", "Config", "", config.meta.name, config.meta.uid};
}

// Writers that render the object from a chart or a repository: what they write is no patch by hand. Newer KAI releases
// apply kai-config from a Job of their chart, as kai-config-deployer. Programs that embed Helm write under their own
// names ("terraform-provider-helm_v2.12.1_x5").
bool renders(std::string_view manager) {
  constexpr std::string_view kRenderers[] = {"helm",
                                             "argocd",
                                             "argo-cd",
                                             "kustomize-controller",
                                             "kai-config-deployer",
                                             "kai-operator",
                                             "terraform",
                                             "pulumi",
                                             "kapp",
                                             "rancher",
                                             "fleet",
                                             "opentofu",
                                             "hashicorp",
                                             "crossplane"};
  const std::string name = k8s::lower(manager);
  return name.empty() || name == "operator" ||
         std::ranges::any_of(kRenderers, [&](std::string_view renderer) { return name.starts_with(renderer); });
}

OrderedJson remembered(const KaiPass& pass) {
  const PlannerSettings& settings = pass.s.settings;
  const ConfigMap* state = pass.s.world.configmaps.find({settings.operator_namespace, settings.state_config_map});
  const auto text = key_text(state, kStateKey);
  if (!text) return OrderedJson::object();
  OrderedJson out = OrderedJson::parse(*text, nullptr, false);
  return out.is_object() ? out : OrderedJson::object();
}

class ConfigPlanner {
 public:
  ConfigPlanner(KaiPass& pass, const KaiConfig& config)
      : pass_(pass), config_(config), view_(pass.kai.view()), before_(remembered(pass)) {}

  void run() {
    report_mode();
    report_runtime_classes();
    report_pull_secrets();
    remember();
  }

 private:
  void report(Severity severity, std::string_view reason, const std::string& text) {
    pass_.finding(severity, config_ref(config_), reason, text);
    if (severity != Severity::info) pass_.event(config_ref(config_), true, reason, "CheckConfig", text);
  }

  void report_mode() {
    const KaiSharing& sharing = view_.sharing;
    std::string text = sharing.mode == kNvFractions
                           ? fmt::format("{} (decided by {})", kAsksNvFractions, sharing.decided_by)
                           : fmt::format("GPU sharing is {} (decided by {}{}{})", sharing.enabled ? "on" : "off",
                                         sharing.decided_by, sharing.mode.empty() ? "" : "; mode ", sharing.mode);
    if (!sharing.enabled) text += "; stale reservations are still deleted";
    pass_.finding(Severity::info, config_ref(config_), "KAISharingMode", text);
    if (!view_.unrecognised.empty()) {
      report(Severity::warning, "KAISchemaUnrecognised",
             fmt::format("{}: reservations are only observed, none is deleted", view_.unrecognised));
    }
  }

  void report_runtime_classes() {
    const KaiWorld& kai = pass_.s.world.kai;
    if (!kai.runtime_classes.synced()) return;
    for (const auto& [field, name] : view_.runtime_classes) {
      if (kai.runtime_classes.find(name) != nullptr) continue;
      report(Severity::error, "KAIRuntimeClassMissing",
             fmt::format("{} is {}, but no RuntimeClass of that name exists: pods that use it are rejected. Create the "
                         "RuntimeClass, or set the field to an existing one, or to \"\"",
                         field, name));
    }
  }

  // The chart's older spelling is dropped by the CRD, so what shows is pods that cannot pull.
  void report_pull_secrets() {
    if (config_.misspelt_pull_secret) {
      report(Severity::warning, "KAIPullSecretsIgnored",
             "spec.global.imagesPullSecret is not read by KAI: name the secrets in "
             "spec.global.additionalImagePullSecrets");
      return;
    }
    if (config_.pull_secrets > 0) return;
    for (const auto& [name, group] : pass_.kai.groups()) {
      if (!pass_.kai.attention().contains(name)) continue;
      for (const ObjectKey& key : group.reservations) {
        const KaiPod* pod = pass_.s.world.kai.pods.find(key);
        if (pod == nullptr || waiting_for(pod->waiting_reason.view()) != Waiting::pull_fails) continue;
        report(Severity::warning, "KAIPullSecretsIgnored",
               fmt::format(
                   "reservation {} cannot pull its image, and spec.global.additionalImagePullSecrets names no secret: "
                   "KAI's chart drops its value global.imagesPullSecret in some releases",
                   k8s::to_string(key)));
        return;
      }
    }
  }

  // A field that was set by hand and now has another value, from a renderer or in an object that was created again.
  [[nodiscard]] bool was_wiped(const std::string& field, const OrderedJson& before, const std::string& now) const {
    const std::string manager = text_at(before, "by");
    if (renders(manager) || text_at(before, "value") == now) return false;
    return renders(writer_of(field));
  }

  // The field manager that wrote it last; empty: none is known.
  [[nodiscard]] std::string writer_of(const std::string& field) const {
    const auto writer = config_.managers.find(field);
    return writer == config_.managers.end() ? std::string() : writer->second;
  }

  void remember() {
    OrderedJson now;
    now["uid"] = config_.meta.uid.str();
    OrderedJson fields = OrderedJson::object();
    const auto values = followed_values(config_);
    for (const auto& [field, value] : values) fields[field] = {{"value", value}, {"by", writer_of(field)}};
    now["fields"] = std::move(fields);
    OrderedJson wiped = still_wiped(values);
    find_wiped(values, wiped);
    for (const auto& [field, entry] : wiped.items()) {
      report(Severity::warning, "KAIPatchWiped",
             fmt::format("{} was {} (set by {}) and is {} since kai-config was rendered again, as a Helm upgrade does: "
                         "set it in the chart's values",
                         field, text_at(entry, "was"), text_at(entry, "by"), value_or_unset(values, field)));
    }
    if (!wiped.empty()) now["wiped"] = std::move(wiped);
    // If rollouts are only observed, no ConfigMap is written: a reverted patch is then reported only while it is seen.
    if (now == before_ || pass_.s.settings.rollouts == PolicyMode::observe) return;
    pass_.add(write_state(pass_.s.settings, {{std::string(kStateKey), now.dump()}}), "KAIConfigSeen",
              "kai-config changed");
  }

  [[nodiscard]] static std::string value_or_unset(const std::map<std::string, std::string>& values,
                                                  const std::string& field) {
    auto it = values.find(field);
    return it == values.end() ? "unset" : it->second;
  }

  // Reported until the field has its former value, or a person has set it by hand again.
  [[nodiscard]] OrderedJson still_wiped(const std::map<std::string, std::string>& values) const {
    OrderedJson out = OrderedJson::object();
    const OrderedJson known = object_at(before_, "wiped");
    for (const auto& [field, entry] : known.items()) {
      const bool by_hand = !renders(writer_of(field));
      if (!by_hand && value_or_unset(values, field) != text_at(entry, "was")) out[field] = entry;
    }
    return out;
  }

  void find_wiped(const std::map<std::string, std::string>& values, OrderedJson& wiped) const {
    const OrderedJson known = object_at(before_, "fields");
    for (const auto& [field, entry] : known.items()) {
      if (!was_wiped(field, entry, value_or_unset(values, field))) continue;
      wiped[field] = {{"was", text_at(entry, "value")}, {"by", text_at(entry, "by")}};
    }
  }

  KaiPass& pass_;
  const KaiConfig& config_;
  const KaiView& view_;
  OrderedJson before_;
};

}  // namespace

void plan_kai_config(KaiPass& pass) {
  const KaiWorld& kai = pass.s.world.kai;
  const PlannerSettings& settings = pass.s.settings;
  if (!kai.configs.synced() || !kai.incomplete.empty()) return;
  const KaiConfig* config = kai.configs.find(kConfigName);
  // If KAI was removed, the last seen values are kept and compared when it is installed again.
  if (config == nullptr || pass.s.world.unsynced_namespaces.contains(settings.operator_namespace)) return;
  ConfigPlanner(pass, *config).run();
}

}  // namespace gso
