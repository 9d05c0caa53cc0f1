// Binding and eviction of pods.
#include <fmt/format.h>

#include <cmath>

#include "tests/sim/apiserver/selectors.h"
#include "tests/sim/apiserver/writer.h"

namespace gso::sim {
namespace {

using nlohmann::json;

WriteResult created_status() {
  return {201, {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"status", "Success"}, {"code", 201}}, true};
}

bool is_ready(const json& pod) {
  const json conditions = pod.value("status", json::object()).value("conditions", json::array());
  for (const auto& c : conditions) {
    if (c.value("type", "") == "Ready") return c.value("status", "") == "True";
  }
  return false;
}

// An absolute number or a share of `total`, rounded up.
std::int64_t scaled(const json& value, std::int64_t total) {
  if (value.is_number()) return value.get<std::int64_t>();
  const double percent = std::atof(value.get<std::string>().c_str());
  return static_cast<std::int64_t>(std::ceil(percent * static_cast<double>(total) / 100.0));
}

// What the disruption controller would have put into a budget's status.
json budget_status(const json& budget, const Bucket& pods) {
  const std::string ns = budget["metadata"].value("namespace", "");
  const LabelSelector selector = LabelSelector::from_json(budget["spec"].value("selector", json()));
  std::int64_t expected = 0;
  std::int64_t healthy = 0;
  const auto [first, last] = Bucket::range(pods.objects(), ns);
  for (auto it = first; it != last; ++it) {
    if (!selector.matches(*it->second)) continue;
    ++expected;
    if (is_ready(*it->second->parsed()) && !it->second->deleting()) ++healthy;
  }
  const json& spec = budget["spec"];
  std::int64_t desired = 0;
  if (spec.contains("minAvailable")) desired = scaled(spec["minAvailable"], expected);
  else if (spec.contains("maxUnavailable")) desired = std::max<std::int64_t>(0, expected - scaled(spec["maxUnavailable"], expected));
  json status = budget.value("status", json::object());
  status["expectedPods"] = expected;
  status["currentHealthy"] = healthy;
  status["desiredHealthy"] = desired;
  status["disruptionsAllowed"] = std::max<std::int64_t>(0, healthy - desired);
  status["observedGeneration"] = budget["metadata"].value("generation", 1);
  return status;
}

ApiError disruption_refused(const json& budget) {
  const json& status = budget["status"];
  const std::string name = budget["metadata"].value("name", "");
  ApiError error(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", json::object());
  error.cause("DisruptionBudget", fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                                              status["desiredHealthy"].get<std::int64_t>(),
                                              status["currentHealthy"].get<std::int64_t>()));
  return error;
}

}  // namespace

Outcome<WriteResult> Writer::bind(const WriteRequest& request) {
  const json binding = json::parse(request.body, nullptr, false);
  if (!binding.is_object()) return std::unexpected(bad_request("the object provided is unrecognized (must be of type Binding)"));
  const std::string node = binding.value("target", json::object()).value("name", "");
  const ObjectPtr pod = bucket(*request.resource).find(request.key);
  if (pod == nullptr) return std::unexpected(not_found(request.resource->noun(), request.key.name));
  if (node.empty()) {
    return std::unexpected(invalid({"", "bindings", "Binding"}, request.key.name, {required_value("target.name")}));
  }
  json object = *pod->parsed();
  const std::string bound = object["spec"].value("nodeName", "");
  if (!bound.empty()) {
    return std::unexpected(conflict({"", "pods/binding", "Pod"}, request.key.name,
                                    fmt::format("pod {} is already assigned to node \"{}\"", request.key.name, bound)));
  }
  if (pod->deleting()) {
    return std::unexpected(conflict({"", "pods/binding", "Pod"}, request.key.name,
                                    fmt::format("pod {} is being deleted, cannot be assigned to a host", request.key.name)));
  }
  object["spec"]["nodeName"] = node;
  json& conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = json::array();
  std::erase_if(conditions.get_ref<json::array_t&>(), [](const json& c) { return c.value("type", "") == "PodScheduled"; });
  conditions.push_back({{"type", "PodScheduled"},
                        {"status", "True"},
                        {"lastProbeTime", nullptr},
                        {"lastTransitionTime", k8s::format_time(clock_.now())}});
  auto stored = commit(request.resource, pod, std::move(object), request.dry_run);
  if (!stored) return std::unexpected(stored.error());
  return created_status();
}

Outcome<WriteResult> Writer::evict(const WriteRequest& request) {
  const json eviction = json::parse(request.body, nullptr, false);
  if (!eviction.is_object()) return std::unexpected(bad_request("the object provided is unrecognized (must be of type Eviction)"));
  const std::string name = eviction.value("metadata", json::object()).value("name", request.key.name);
  if (name != request.key.name) return std::unexpected(bad_request("name in URL does not match name in Eviction object"));
  const ObjectPtr pod = bucket(*request.resource).find(request.key);
  if (pod == nullptr) return std::unexpected(not_found(request.resource->noun(), request.key.name));
  DeleteOptions options;
  const json wanted = eviction.value("deleteOptions", json::object());
  if (wanted.contains("gracePeriodSeconds")) options.grace_seconds = wanted["gracePeriodSeconds"].get<std::int64_t>();
  const json preconditions = wanted.value("preconditions", json::object());
  options.uid = preconditions.value("uid", "");
  options.resource_version = preconditions.value("resourceVersion", "");
  options.dry_run = request.dry_run;
  const json state = *pod->parsed();
  const std::string phase = state["status"].value("phase", "");
  const bool harmless = phase == "Succeeded" || phase == "Failed" || phase == "Pending" || pod->deleting();
  const ResourcePtr budgets = registry_.find("policy", "v1", "poddisruptionbudgets");
  std::vector<ObjectPtr> covering;
  const auto [first, last] = Bucket::range(bucket(*budgets).objects(), request.key.ns);
  for (auto it = first; it != last; ++it) {
    const json selector = (*it->second->parsed())["spec"].value("selector", json());
    if (LabelSelector::from_json(selector).matches(*pod)) covering.push_back(it->second);
  }
  if (!harmless && covering.size() > 1) {
    return std::unexpected(ApiError(500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                                             "does not support."));
  }
  if (!harmless && !covering.empty()) {
    json budget = *covering.front()->parsed();
    budget["status"] = budget_status(budget, bucket(*request.resource));
    if (budget["status"]["disruptionsAllowed"] <= 0 && is_ready(state)) {
      return std::unexpected(disruption_refused(budget));
    }
    if (!request.dry_run && is_ready(state)) {
      budget["status"]["disruptionsAllowed"] = budget["status"]["disruptionsAllowed"].get<std::int64_t>() - 1;
      budget["status"]["disruptedPods"][request.key.name] = k8s::format_time(clock_.now());
      replace_object(budgets, covering.front(), std::move(budget));
    }
  }
  auto removed = remove(request.resource, request.key, options);
  if (!removed) return std::unexpected(removed.error());
  return created_status();
}

}  // namespace gso::sim
