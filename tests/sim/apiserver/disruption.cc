// Budgets: healthy pods counted, allowed disruptions derived.
#include "tests/sim/apiserver/disruption.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/builtin_pods.h"
#include "tests/sim/apiserver/selectors.h"

namespace gso::sim {
namespace {

using nlohmann::json;

// An absolute number or a share of `total`, rounded up.
std::int64_t scaled(const json& value, std::int64_t total) {
  if (value.is_number()) return value.get<std::int64_t>();
  const double percent = std::atof(value.get<std::string>().c_str());
  return static_cast<std::int64_t>(std::ceil(percent * static_cast<double>(total) / 100.0));
}

// The condition keeps its time while its status stays.
json condition(const json& status, std::int64_t allowed, std::int64_t generation, k8s::WallTime now) {
  json condition = {{"type", "DisruptionAllowed"},
                    {"status", allowed > 0 ? "True" : "False"},
                    {"reason", allowed > 0 ? "SufficientPods" : "InsufficientPods"},
                    {"message", ""},
                    {"observedGeneration", generation},
                    {"lastTransitionTime", k8s::format_time(now)}};
  const json old = status.value("conditions", json::array());
  for (const auto& c : old)
    if (c.value("type", "") == "DisruptionAllowed" && c.value("status", "") == condition["status"])
      condition["lastTransitionTime"] = c.value("lastTransitionTime", "");
  return condition;
}

}  // namespace

json budget_status(const json& budget, const Bucket& pods, k8s::WallTime now) {
  const json& spec = budget["spec"];
  json status = budget.value("status", json::object());
  const json spent = status.value("disruptedPods", json::object());
  json disrupted = json::object();
  const LabelSelector selector = LabelSelector::from_json(spec.value("selector", json()));
  std::int64_t expected = 0;
  std::int64_t healthy = 0;
  const auto [first, last] = Bucket::range(pods.objects(), budget["metadata"].value("namespace", ""));
  for (auto it = first; it != last; ++it) {
    const Object& pod = *it->second;
    if (!selector.matches(pod)) continue;
    ++expected;
    if (pod.deleting()) continue;
    if (spent.contains(pod.key().name))
      disrupted[pod.key().name] = spent[pod.key().name];
    else if (is_ready(*pod.parsed()))
      ++healthy;
  }
  std::int64_t desired = 0;
  if (spec.contains("minAvailable"))
    desired = scaled(spec["minAvailable"], expected);
  else if (spec.contains("maxUnavailable"))
    desired = std::max<std::int64_t>(0, expected - scaled(spec["maxUnavailable"], expected));
  const std::int64_t allowed = std::max<std::int64_t>(0, healthy - desired);
  const auto generation = budget["metadata"].value("generation", std::int64_t{1});
  status["conditions"] = json::array({condition(status, allowed, generation, now)});
  status["expectedPods"] = expected;
  status["currentHealthy"] = healthy;
  status["desiredHealthy"] = desired;
  status["disruptionsAllowed"] = allowed;
  status["observedGeneration"] = generation;
  if (disrupted.empty())
    status.erase("disruptedPods");
  else
    status["disruptedPods"] = std::move(disrupted);
  return status;
}

}  // namespace gso::sim
