// Which pods have a part of the GPUs that KAI shares on a node, from their labels and those of the reservation pods.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/explain/node.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"

namespace gso {
namespace {

SharedGpu::Part part_of(const Pod& pod) {
  const auto text = [&](std::string_view annotation) { return pod.meta.annotations.get(annotation).value_or(""); };
  return {pod.meta.key(), std::string(text(kai::kFraction)),
          std::max<std::int64_t>(parse_go_int(text(kai::kMemory), 10).value_or(0), 0)};
}

void add(SharedGpu& gpu, SharedGpu::Part part) {
  const double fraction = parse_go_float(part.fraction).value_or(0);
  if (std::isfinite(fraction) && fraction > 0) gpu.fraction += fraction;
  gpu.memory_mib += part.memory_mib;
  gpu.parts.push_back(std::move(part));
}

// "0.75 and 2000 MiB"; empty: neither.
std::string amount_text(const std::string& fraction, std::int64_t memory_mib) {
  if (memory_mib == 0) return fraction;
  return fmt::format("{}{}{} MiB", fraction, fraction.empty() ? "" : " and ", memory_mib);
}

}  // namespace

std::vector<SharedGpu> shared_gpus(const Snapshot& snapshot, const FleetIndex::Impl& index, std::string_view node) {
  const KaiWorld& kai = snapshot.world.kai;
  const std::set<ObjectKey>& reservations = index.kai.reservations_on(node);
  std::map<std::string, SharedGpu> by_group;
  for (const ObjectKey& key : reservations) {
    const KaiPod* pod = kai.pods.find(key);
    if (pod == nullptr) continue;
    SharedGpu& gpu = by_group[std::string(pod->meta.labels.get(kai::kGroupLabel).value_or(""))];
    gpu.reservations.push_back(k8s::to_string(key));
    if (gpu.device.empty()) gpu.device = pod->meta.annotations.get(kai::kDeviceAnnotation).value_or("");
  }
  const auto listed = snapshot.consumers.find(std::string(node));
  if (listed != snapshot.consumers.end()) {
    for (const Pod& pod : listed->second.pods) {
      const bool ended = pod.phase == "Succeeded" || pod.phase == "Failed";
      const bool placed = is_placed_by_kai(kai, index.kai.view(), pod.scheduler_name.view(), pod.meta.key());
      if (ended || !placed || reservations.contains(pod.meta.key())) continue;
      for (const std::string& group : groups_of(pod.meta.labels)) add(by_group[group], part_of(pod));
    }
  }
  std::vector<SharedGpu> out;
  for (auto& [group, gpu] : by_group) {
    gpu.group = group;
    std::ranges::sort(gpu.parts, {}, &SharedGpu::Part::pod);
    out.push_back(std::move(gpu));
  }
  return out;
}

std::string to_string(const SharedGpu& gpu) {
  std::vector<std::string> parts;
  for (const SharedGpu::Part& part : gpu.parts) {
    const std::string amount = amount_text(part.fraction, part.memory_mib);
    parts.push_back(fmt::format("{} {}", k8s::to_string(part.pod), amount.empty() ? "(no amount)" : amount));
  }
  std::string out = fmt::format("group {} ({}{}): {}", gpu.group, gpu.device.empty() ? "" : gpu.device + ", ",
                                gpu.reservations.empty() ? "no reservation pod holds it"
                                                         : fmt::format("held by {}", fmt::join(gpu.reservations, ", ")),
                                parts.empty() ? "no pod has a part of it" : fmt::format("{}", fmt::join(parts, ", ")));
  const std::string sum = gpu.fraction > 0 ? fmt::format("{:.6g}", gpu.fraction) : std::string();
  if (parts.size() > 1) out += fmt::format("; together {} of it", amount_text(sum, gpu.memory_mib));
  return out;
}

nlohmann::ordered_json shared_gpus_json(const std::vector<SharedGpu>& gpus) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const SharedGpu& gpu : gpus) {
    nlohmann::ordered_json pods = nlohmann::ordered_json::array();
    for (const SharedGpu::Part& part : gpu.parts) {
      pods.push_back({{"namespace", part.pod.ns},
                      {"name", part.pod.name},
                      {"fraction", part.fraction},
                      {"memoryMiB", part.memory_mib}});
    }
    out.push_back({{"group", gpu.group},
                   {"reservations", gpu.reservations},
                   {"device", gpu.device},
                   {"pods", std::move(pods)},
                   {"fraction", std::round(gpu.fraction * 1e6) / 1e6},
                   {"memoryMiB", gpu.memory_mib}});
  }
  return out;
}

std::string asked_of_kai(const k8s::StringMap& annotations) {
  std::string out;
  if (const auto fraction = annotations.get(kai::kFraction))
    out = fmt::format("a share of {} of a GPU, from KAI", shown_value(*fraction));
  if (const auto memory = annotations.get(kai::kMemory))
    out += fmt::format("{}{} MiB of a GPU, from KAI", out.empty() ? "" : ", ", shown_value(*memory));
  return out;
}

}  // namespace gso
