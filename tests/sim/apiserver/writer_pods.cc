// Binding and eviction of pods.
#include <fmt/format.h>

#include "tests/sim/apiserver/builtin_pods.h"
#include "tests/sim/apiserver/managed_fields.h"
#include "tests/sim/apiserver/selectors.h"
#include "tests/sim/apiserver/writer.h"

namespace gso::sim {
namespace {

using nlohmann::json;

WriteResult created_status() {
  return {
      201,
      nullptr,
      {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"status", "Success"}, {"code", 201}}};
}

// Adds or replaces a condition by its type.
void set_condition(json& object, json condition) {
  json& conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = json::array();
  std::erase_if(conditions.get_ref<json::array_t&>(),
                [&](const json& c) { return c.value("type", "") == condition.value("type", ""); });
  conditions.push_back(std::move(condition));
}

ApiError disruption_refused(const json& budget) {
  const json& status = budget["status"];
  const std::string name = budget["metadata"].value("name", "");
  ApiError error(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
                 json::object());
  if (status.value("observedGeneration", std::int64_t{0}) < budget["metadata"].value("generation", std::int64_t{0})) {
    error.cause("DisruptionBudget",
                fmt::format("The disruption budget {} is still being processed by the server.", name));
    error.retry_after(10);
    return error;
  }
  error.cause("DisruptionBudget",
              fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                          status["desiredHealthy"].get<std::int64_t>(), status["currentHealthy"].get<std::int64_t>()));
  return error;
}

}  // namespace

Outcome<WriteResult> Writer::bind(const WriteRequest& request) {
  const json binding = json::parse(request.body, nullptr, false);
  if (!binding.is_object())
    return std::unexpected(bad_request("the object provided is unrecognized (must be of type Binding)"));
  const std::string node = binding.value("target", json::object()).value("name", "");
  const ObjectPtr pod = bucket(*request.resource).find(request.key);
  if (pod == nullptr) return std::unexpected(not_found(request.resource->noun(), request.key.name));
  if (node.empty())
    return std::unexpected(invalid({"", "bindings", "Binding"}, request.key.name, {required_value("target.name")}));
  json object = *pod->parsed();
  const std::string bound = object["spec"].value("nodeName", "");
  if (!bound.empty()) {
    return std::unexpected(conflict({"", "pods/binding", "Pod"}, request.key.name,
                                    fmt::format("pod {} is already assigned to node \"{}\"", request.key.name, bound)));
  }
  if (pod->deleting()) {
    return std::unexpected(
        conflict({"", "pods/binding", "Pod"}, request.key.name,
                 fmt::format("pod {} is being deleted, cannot be assigned to a host", request.key.name)));
  }
  object["spec"]["nodeName"] = node;
  set_condition(object, {{"type", "PodScheduled"},
                         {"status", "True"},
                         {"lastProbeTime", nullptr},
                         {"lastTransitionTime", k8s::format_time(clock_.now())}});
  auto stored = commit(request.resource, pod, std::move(object), request.dry_run);
  if (!stored) return std::unexpected(stored.error());
  return created_status();
}

Outcome<WriteResult> Writer::evict(const WriteRequest& request) {
  const json eviction = json::parse(request.body, nullptr, false);
  if (!eviction.is_object())
    return std::unexpected(bad_request("the object provided is unrecognized (must be of type Eviction)"));
  if (const std::string kind = eviction.value("kind", "Eviction"); kind != "Eviction") {
    return std::unexpected(
        bad_request(fmt::format("{0} in version \"v1\" cannot be handled as a Eviction: converting (v1.{0}) "
                                "to (policy.Eviction): unknown conversion",
                                kind)));
  }
  const std::string name = eviction.value("metadata", json::object()).value("name", request.key.name);
  if (name != request.key.name)
    return std::unexpected(bad_request("name in URL does not match name in Eviction object"));
  const ObjectPtr pod = bucket(*request.resource).find(request.key);
  if (pod == nullptr) return std::unexpected(not_found(request.resource->noun(), request.key.name));
  DeleteOptions options;
  const json wanted = eviction.value("deleteOptions", json::object());
  if (wanted.contains("gracePeriodSeconds")) options.grace_seconds = wanted["gracePeriodSeconds"].get<std::int64_t>();
  const json preconditions = wanted.value("preconditions", json::object());
  options.uid = preconditions.value("uid", "");
  options.resource_version = preconditions.value("resourceVersion", "");
  options.dry_run = request.dry_run || !wanted.value("dryRun", json::array()).empty();
  DeleteOptions trial = options;
  trial.dry_run = true;
  if (auto possible = remove(request.resource, request.key, trial); !possible) return std::unexpected(possible.error());
  if (auto refused = spend_disruption(request, *pod, options.dry_run)) return std::unexpected(std::move(*refused));
  if (!options.dry_run && !pod->deleting()) {
    json marked = *pod->parsed();
    set_condition(marked, {{"type", "DisruptionTarget"},
                           {"status", "True"},
                           {"reason", "EvictionByEvictionAPI"},
                           {"message", "Eviction API: evicting"},
                           {"lastProbeTime", nullptr},
                           {"lastTransitionTime", k8s::format_time(clock_.now())}});
    auto stored = commit(request.resource, pod, std::move(marked), false);
    if (!stored) return std::unexpected(stored.error());
    options.resource_version.clear();
  }
  auto removed = remove(request.resource, request.key, options);
  if (!removed) return std::unexpected(removed.error());
  return created_status();
}

// Takes one disruption from the budget that covers the pod, if there is one; the error when it has none left.
std::optional<ApiError> Writer::spend_disruption(const WriteRequest& request, const Object& pod, bool dry_run) {
  const json state = *pod.parsed();
  const std::string phase = state["status"].value("phase", "");
  if (phase == "Succeeded" || phase == "Failed" || phase == "Pending" || pod.deleting()) return std::nullopt;
  const ResourcePtr budgets = registry_.find("policy", "v1", "poddisruptionbudgets");
  std::vector<ObjectPtr> covering;
  const auto [first, last] = Bucket::range(bucket(*budgets).objects(), request.key.ns);
  for (auto it = first; it != last; ++it) {
    const json selector = (*it->second->parsed())["spec"].value("selector", json());
    if (LabelSelector::from_json(selector).matches(pod)) covering.push_back(it->second);
  }
  if (covering.empty()) return std::nullopt;
  if (covering.size() > 1) {
    return ApiError(500, "",
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  }
  json budget = *covering.front()->parsed();
  json& status = budget["status"];
  const std::string policy = budget["spec"].value("unhealthyPodEvictionPolicy", "IfHealthyBudget");
  const auto count = [&](const char* what) { return status.value(what, std::int64_t{0}); };
  if (!is_ready(state) && (policy == "AlwaysAllow" ||
                           (count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0))) {
    return std::nullopt;
  }
  const bool observed = count("observedGeneration") >= budget["metadata"].value("generation", std::int64_t{0});
  if (!observed || count("disruptionsAllowed") <= 0) return disruption_refused(budget);
  if (dry_run) return std::nullopt;
  status["disruptionsAllowed"] = count("disruptionsAllowed") - 1;
  if (status["disruptionsAllowed"] == 0) {
    set_condition(budget, {{"type", "DisruptionAllowed"},
                           {"status", "False"},
                           {"reason", "InsufficientPods"},
                           {"message", ""},
                           {"observedGeneration", budget["metadata"].value("generation", 1)},
                           {"lastTransitionTime", k8s::format_time(clock_.now())}});
  }
  status["disruptedPods"][request.key.name] = k8s::format_time(clock_.now());
  track_update(*budgets, {"kube-apiserver", "status", clock_.now()}, *covering.front()->parsed(), budget);
  replace_object(budgets, covering.front(), std::move(budget));
  return std::nullopt;
}

}  // namespace gso::sim
