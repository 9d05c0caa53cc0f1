#include "tests/sim/fleet/workload.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {
constexpr const char* kWorkloadLabel = "sim.gpusharing.dev/workload";
constexpr k8s::Duration kPeriod = std::chrono::seconds(5);
}  // namespace

json consumer_pod(const ConsumerPod& pod) {
  const std::string count = std::to_string(pod.count);
  json object{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", pod.name}, {"namespace", pod.ns}, {"labels", pod.labels}}},
              {"spec",
               {{"restartPolicy", "Never"},
                {"containers",
                 json::array({{{"name", "cuda"},
                               {"image", "example/cuda-app:1"},
                               {"resources",
                                {{"limits", {{pod.resource, count}}}, {"requests", {{pod.resource, count}}}}}}})}}}};
  if (!pod.node.empty()) object["spec"]["nodeName"] = pod.node;
  if (pod.resource.starts_with("nvidia.com/gpu-")) object["spec"]["hostIPC"] = true;
  if (pod.run_for > k8s::Duration::zero())
    object["metadata"]["annotations"]["sim.gpusharing.dev/run-for"] = k8s::format_go_duration(pod.run_for);
  return object;
}

Workload::Workload(Site* site, WorkloadOptions options)
    : site_(site), options_(std::move(options)), outbox_(site->client, site->clock), active_(options_.per_node > 0) {}

void Workload::begin() {
  tick();
}

void Workload::set_per_node(std::int64_t per_node) {
  options_.per_node = per_node;
  active_ = true;
}

void Workload::tick() {
  for (const std::string& node : options_.nodes)
    if (active_) fill(node);
  site_->after(kPeriod, life_, [this] { tick(); });
}

void Workload::fill(const std::string& name) {
  const JsonPtr node = site_->nodes.find({"", name});
  if (node == nullptr || outbox_.pending() > 0) return;
  std::int64_t ours = 0;
  std::map<std::string, std::int64_t> requested;
  for (const auto& [key, pod] : site_->pods.all()) {
    if (node_of(*pod) != name) continue;
    const bool mine = labels(*pod).contains(kWorkloadLabel);
    const std::string& phase = text(member(*pod, "status"), "phase");
    if (phase == "Succeeded" || phase == "Failed") {
      if (mine) outbox_.push({.verb = Write::Verb::remove, .gvr = kPods, .key = key});
      continue;
    }
    if (mine) ++ours;
    for (const json& container : items(member(*pod, "spec"), "containers")) {
      for (const auto& [resource, count] : member(member(container, "resources"), "limits").items())
        if (count.is_string())
          requested[resource] += std::strtoll(count.get_ref<const std::string&>().c_str(), nullptr, 10);
    }
  }
  if (ours >= options_.per_node || member(*node, "spec").value("unschedulable", false)) return;
  const json& allocatable = member(member(*node, "status"), "allocatable");
  for (const char* resource : {"nvidia.com/gpu.shared", "nvidia.com/gpu"}) {
    const std::int64_t all = std::strtoll(text(allocatable, resource).c_str(), nullptr, 10);
    if (all <= requested[resource]) continue;
    const ConsumerPod pod{.node = name,
                          .name = "work-" + name + "-" + std::to_string(++names_),
                          .ns = options_.ns,
                          .resource = resource,
                          .run_for = options_.run_for,
                          .labels = {{kWorkloadLabel, "true"}}};
    outbox_.push(
        {.verb = Write::Verb::create, .gvr = kPods, .key = {pod.ns, pod.name}, .body = consumer_pod(pod).dump()});
    return;
  }
}

}  // namespace gso::sim
