// Rules of the built-in kinds that are not pods.
#include "tests/sim/apiserver/builtin_kinds.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/builtin_pods.h"
#include "tests/sim/apiserver/names.h"
#include "tests/sim/apiserver/selectors.h"
#include "tests/sim/apiserver/validation.h"

namespace gso::sim {
namespace {

using nlohmann::json;

constexpr std::size_t kMostConfigMapBytes = 1024 * 1024;
constexpr const char* kTemplateGeneration = "deprecated.daemonset.template.generation";

void immutable(const json& object, const json& old, const char* parent, const char* member, FieldErrors& errors) {
  const json now = object.value(parent, json::object()).value(member, json());
  if (now != old.value(parent, json::object()).value(member, json()))
    errors.push_back(invalid_value(fmt::format("{}.{}", parent, member), now, "field is immutable"));
}

void validate_workload(const json& object, FieldErrors& errors) {
  const json& spec = object["spec"];
  const json selector = spec.value("selector", json());
  const json labels = spec.value("template", json::object()).value("metadata", json::object()).value("labels", json());
  const bool daemon_set = object.value("kind", "") == "DaemonSet";
  if (!selector.is_object()) {
    if (!daemon_set) errors.push_back(required_value("spec.selector"));
  } else if (selector.empty()) {
    errors.push_back(invalid_value(
        "spec.selector", selector,
        daemon_set ? "empty selector is invalid for daemonset" : "empty selector is invalid for deployment"));
  }
  if ((selector.is_object() || daemon_set) && !LabelSelector::from_json(selector).matches(labels)) {
    errors.push_back(
        invalid_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"));
  }
  if (labels.is_object()) check_labels(labels, "spec.template.metadata.labels", errors);
  const json pod = spec.value("template", json::object()).value("spec", json::object());
  validate_pod_spec(pod, "spec.template.spec", errors);
  if (pod.value("restartPolicy", "Always") != "Always")
    errors.push_back(not_supported("spec.template.spec.restartPolicy", pod["restartPolicy"], {"Always"}));
}

std::string template_generation(const json& object) {
  return object["metadata"].value("annotations", json::object()).value(kTemplateGeneration, "0");
}

// `other` is the member that must not have the same keys, or nullptr.
void check_config_keys(const json& object, const char* member, const char* other, FieldErrors& errors) {
  auto it = object.find(member);
  if (it == object.end()) return;
  for (const auto& [key, value] : it->items()) {
    const std::string at = fmt::format("{}[{}]", member, key);
    if (auto problem = config_map_key_problem(key)) errors.push_back(invalid_value(at, key, *problem));
    if (other != nullptr && object.value(other, json::object()).contains(key))
      errors.push_back(invalid_value(at, key, fmt::format("duplicate of key present in {}", other)));
  }
}

}  // namespace

Strategy node_strategy() {
  Strategy s;
  s.create_keeps_status = true;
  s.set_defaults = [](json& node) {
    json& status = node["status"];
    if (status.contains("capacity") && !status.contains("allocatable")) status["allocatable"] = status["capacity"];
  };
  s.validate = [](const json& node, FieldErrors& errors) {
    const json taints = node["spec"].value("taints", json::array());
    std::set<std::pair<std::string, std::string>> seen;
    for (std::size_t i = 0; i < taints.size(); ++i) {
      const std::string at = fmt::format("metadata.taints[{}]", i);
      const std::string key = taints[i].value("key", "");
      if (auto problem = label_key_problem(key)) errors.push_back(invalid_value(at + ".key", key, *problem));
      check_enum(taints[i], "effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"}, at, errors);
      if (taints[i].value("effect", "").empty()) errors.push_back(required_value(at + ".effect"));
      if (!seen.emplace(key, taints[i].value("effect", "")).second) {
        FieldError error = duplicate_value(at, taints[i]);
        error.detail = "taints must be unique by key and effect pair";
        errors.push_back(std::move(error));
      }
    }
  };
  s.validate_update = [check = s.validate](const json& node, const json& old, FieldErrors& errors) {
    check(node, errors);  // The real server checks an update's taints twice, and says so twice.
    const std::string before = old["spec"].value("providerID", "");
    if (!before.empty() && node["spec"].value("providerID", "") != before) {
      errors.push_back(
          forbidden_value("spec.providerID", "node updates may not change providerID except from \"\" to valid"));
    }
  };
  return s;
}

Strategy pod_strategy() {
  Strategy s;
  s.graceful = true;
  s.returns_deleted = true;
  s.has_generation = true;
  s.set_defaults = [](json& pod) {
    set_default(pod["spec"], "enableServiceLinks", true);
    default_pod_spec(pod["spec"]);
  };
  s.prepare_create = [](json& pod) {
    pod["status"] = {{"phase", "Pending"}, {"qosClass", qos_class(pod["spec"])}};
    admit_pod_spec(pod["spec"]);
  };
  s.validate = [](const json& pod, FieldErrors& errors) { validate_pod_spec(pod["spec"], "spec", errors); };
  s.validate_update = validate_pod_update;
  return s;
}

Strategy config_map_strategy() {
  Strategy s;
  s.validate = [](const json& object, FieldErrors& errors) {
    check_config_keys(object, "data", "binaryData", errors);
    check_config_keys(object, "binaryData", nullptr, errors);
    std::size_t total = 0;
    for (const char* member : {"data", "binaryData"}) {
      const json values = object.value(member, json::object());
      for (const auto& [key, value] : values.items()) {
        const std::size_t size = value.get_ref<const std::string&>().size();
        total += member == std::string_view("data") ? size : size / 4 * 3;
      }
    }
    if (total > kMostConfigMapBytes) errors.push_back(too_long("[]", kMostConfigMapBytes));
  };
  s.validate_update = [](const json& object, const json& old, FieldErrors& errors) {
    if (!old.value("immutable", false)) return;
    if (!object.value("immutable", false))
      errors.push_back(forbidden_value("immutable", "field is immutable when `immutable` is set"));
    for (const char* member : {"data", "binaryData"})
      if (object.value(member, json::object()) != old.value(member, json::object()))
        errors.push_back(forbidden_value(member, "field is immutable when `immutable` is set"));
  };
  return s;
}

Strategy secret_strategy() {
  Strategy s = config_map_strategy();
  s.set_defaults = [](json& secret) { set_default(secret, "type", "Opaque"); };
  // stringData is written only: it is merged into data and never shown.
  s.prepare_create = [](json& secret) {
    auto it = secret.find("stringData");
    if (it == secret.end()) return;
    for (const auto& [key, value] : it->items()) secret["data"][key] = base64(value.get<std::string>());
    secret.erase("stringData");
  };
  s.prepare_update = [prepare = s.prepare_create](json& secret, const json&) { prepare(secret); };
  s.validate = nullptr;
  return s;
}

Strategy namespace_strategy() {
  Strategy s;
  s.name = Strategy::Name::label;
  s.returns_deleted = true;
  s.set_defaults = [](json& ns) {
    const std::string name = ns["metadata"].value("name", "");
    if (!name.empty()) ns["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
  };
  s.prepare_create = [](json& ns) {
    ns["spec"]["finalizers"] = {"kubernetes"};
    ns["status"] = {{"phase", "Active"}};
  };
  s.prepare_update = [](json& ns, const json& old) { ns["spec"] = old["spec"]; };
  return s;
}

Strategy daemon_set_strategy() {
  Strategy s;
  s.has_generation = true;
  s.set_defaults = [](json& object) {
    json& spec = object["spec"];
    // Conversion shows the internal template generation, 0 for an object that never had one.
    set_default(object["metadata"]["annotations"], kTemplateGeneration, "0");
    default_pod_spec(spec["template"]["spec"]);
    set_default(spec, "revisionHistoryLimit", 10);
    json& update = spec["updateStrategy"];
    set_default(update, "type", "RollingUpdate");
    if (update["type"] == "RollingUpdate") {
      set_default(update, "rollingUpdate", json::object());
      set_default(update["rollingUpdate"], "maxUnavailable", 1);
      set_default(update["rollingUpdate"], "maxSurge", 0);
    }
  };
  s.prepare_create = [](json& object) { object["metadata"]["annotations"][kTemplateGeneration] = "1"; };
  s.prepare_update = [](json& object, const json& old) {
    const int before = std::atoi(template_generation(old).c_str());
    const bool changed = object["spec"]["template"] != old["spec"]["template"];
    object["metadata"]["annotations"][kTemplateGeneration] = std::to_string(before + (changed ? 1 : 0));
  };
  s.validate = [](const json& object, FieldErrors& errors) {
    validate_workload(object, errors);
    check_enum(object["spec"]["updateStrategy"], "type", {"RollingUpdate", "OnDelete"}, "spec.updateStrategy", errors);
  };
  s.validate_update = [](const json& object, const json& old, FieldErrors& errors) {
    immutable(object, old, "spec", "selector", errors);
  };
  return s;
}

Strategy deployment_strategy() {
  Strategy s;
  s.has_generation = true;
  s.set_defaults = [](json& object) {
    json& spec = object["spec"];
    default_pod_spec(spec["template"]["spec"]);
    set_default(spec, "replicas", 1);
    if (object.value("kind", "") == "ReplicaSet") return;
    set_default(spec, "revisionHistoryLimit", 10);
    set_default(spec, "progressDeadlineSeconds", 600);
    json& strategy = spec["strategy"];
    set_default(strategy, "type", "RollingUpdate");
    if (strategy["type"] == "RollingUpdate") {
      set_default(strategy, "rollingUpdate", json::object());
      set_default(strategy["rollingUpdate"], "maxUnavailable", "25%");
      set_default(strategy["rollingUpdate"], "maxSurge", "25%");
    }
  };
  s.validate = validate_workload;
  s.validate_update = [](const json& object, const json& old, FieldErrors& errors) {
    immutable(object, old, "spec", "selector", errors);
  };
  return s;
}

Strategy controller_revision_strategy() {
  Strategy s;
  s.validate_update = [](const json& object, const json& old, FieldErrors& errors) {
    if (object.value("data", json()) != old.value("data", json()))
      errors.push_back(invalid_value("data", object.value("data", json()), "field is immutable"));
  };
  return s;
}

Strategy lease_strategy() {
  Strategy s;
  s.unconditional_update = false;
  s.create_on_update = true;
  s.validate = [](const json& lease, FieldErrors& errors) {
    const json spec = lease.value("spec", json::object());
    if (spec.contains("leaseDurationSeconds") && spec["leaseDurationSeconds"] <= 0) {
      errors.push_back(
          invalid_value("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"));
    }
    if (spec.contains("leaseTransitions") && spec["leaseTransitions"] < 0) {
      errors.push_back(
          invalid_value("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0"));
    }
  };
  return s;
}

Strategy disruption_budget_strategy() {
  Strategy s;
  s.has_generation = true;
  s.unconditional_update = false;
  s.validate = [](const json& budget, FieldErrors& errors) {
    const json spec = budget.value("spec", json::object());
    if (spec.contains("minAvailable") && spec.contains("maxUnavailable"))
      errors.push_back(invalid_value("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
  };
  return s;
}

namespace {

// What events of the new API and all events with an eventTime must have.
void validate_timed_event(const json& event, bool new_api, FieldErrors& errors) {
  const std::string involved = event["involvedObject"].value("namespace", "");
  const std::string ns = event["metadata"].value("namespace", "");
  if (involved.empty() && ns != "default" && ns != "kube-system")
    errors.push_back(invalid_value("involvedObject.namespace", involved, "does not match event.namespace"));
  const char* controller = new_api ? "reportingController" : "reportingComponent";
  const std::string reporter = event.value("reportingComponent", "");
  if (reporter.empty()) errors.push_back(required_value(controller));
  if (auto problem = label_key_problem(reporter)) errors.push_back(invalid_value(controller, reporter, *problem));
  for (const char* member : {"reportingInstance", "action", "reason"}) {
    const std::string value = event.value(member, "");
    if (value.empty()) errors.push_back(required_value(member));
    if (value.size() > 128) errors.push_back(invalid_value(member, "", "can have at most 128 characters"));
  }
  if (event.value("message", "").size() > 1024)
    errors.push_back(invalid_value("message", "", "can have at most 1024 characters"));
}

}  // namespace

Strategy event_strategy(bool new_api) {
  Strategy s;
  s.create_on_update = true;
  const auto check = [new_api](const json& event, FieldErrors& errors) {
    if (!event.value("eventTime", json()).is_null()) {
      validate_timed_event(event, new_api, errors);
      return;
    }
    const std::string involved = event["involvedObject"].value("namespace", "");
    const std::string ns = event["metadata"].value("namespace", "");
    if (involved.empty() ? ns != "default" : involved != ns)
      errors.push_back(invalid_value("involvedObject.namespace", involved, "does not match event.namespace"));
  };
  s.validate = check;
  if (!new_api) return s;
  s.validate_create = [](const json& event, FieldErrors& errors) {
    if (event.value("eventTime", json()).is_null()) errors.push_back(required_value("eventTime"));
    const std::string type = event.value("type", "");
    if (type != "Normal" && type != "Warning")
      errors.push_back(invalid_value("type", "", fmt::format("has invalid value: {}", type)));
    for (const char* member : {"firstTimestamp", "lastTimestamp", "count"})
      if (!event.value(member, json()).is_null()) errors.push_back(invalid_value(member, "", "needs to be unset"));
    if (!event.value("source", json::object()).empty())
      errors.push_back(invalid_value("source", "", "needs to be unset"));
  };
  s.validate_update = [](const json& event, const json& old, FieldErrors& errors) {
    for (const char* member :
         {"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
          "eventTime", "action", "related", "reportingComponent", "reportingInstance"}) {
      const json now = event.value(member, json());
      if (now == old.value(member, json())) continue;
      const bool renamed = member == std::string_view("reportingComponent");
      errors.push_back(invalid_value(renamed ? "reportingController" : member, now, "field is immutable"));
    }
  };
  return s;
}

Strategy rbac_strategy() {
  Strategy s;
  s.name = Strategy::Name::path_segment;
  return s;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) out += j <= bytes.size() - i ? kAlphabet[group >> (18 - 6 * j) & 63U] : '=';
  }
  return out;
}

}  // namespace gso::sim
