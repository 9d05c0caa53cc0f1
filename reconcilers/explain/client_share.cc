// A profile and a node's GPUs to what one client of them gets.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/profile/expected.h"

namespace gso {

namespace {

// The GPUs with their memory, where that is known. The labels describe GPUs of one model: where GFD counts fewer than
// the machine has, there are several.
std::vector<Device> devices_with_memory(const Node& node, const NodeAssessment& a) {
  const GpuFacts facts = facts_of(node, a.recorded_gpus);
  std::vector<Device> out = devices_of(facts);
  if (facts.devices || facts.count > labelled_gpus(node)) return out;
  const std::int64_t memory = whole_number(node.meta.labels.get(kGpuMemory)).value_or(0);
  for (Device& device : out) device.memory_mib = std::max<std::int64_t>(memory, 0);
  return out;
}

}  // namespace

ClientShare client_share(const Node& node, const NodeAssessment* a) {
  ClientShare out;
  if (a == nullptr || a->profile == nullptr || !a->profile->valid || !a->expectation || a->expectation->error)
    return out;
  for (const auto* served : {&a->expectation->replicas, &a->expectation->divisible}) {
    for (const auto& [resource, replicas] : *served) {
      if (replicas < 2 || !out.resource.empty()) continue;
      out.resource = resource;
      out.strategy = a->expectation->strategy;
    }
  }
  out.is_loaded = a->loaded.revision == a->target && a->change == nullptr && a->matches();
  if (out.strategy != Strategy::mps) return out;
  for (const MpsLimits& limits : expected_state(a->profile->profile(), devices_with_memory(node, *a)).mps) {
    out.threads = limits.thread_percentage;
    out.memory_mib = limits.pinned_memory_mib_by_gpu;
    if (std::ranges::count(out.memory_mib, out.memory_mib.front()) == std::ssize(out.memory_mib))
      out.memory_mib.resize(1);
  }
  return out;
}

std::string_view ClientShare::kind() const {
  return strategy == Strategy::mps ? "MPS client" : strategy == Strategy::none ? "" : "time-slicing";
}

bool ClientShare::knows_memory() const {
  return !memory_mib.empty() && std::ranges::find(memory_mib, 0) == memory_mib.end();
}

std::string ClientShare::limits() const {
  if (strategy == Strategy::none) return {};
  std::string out = "no memory limit";
  if (strategy == Strategy::mps && !knows_memory()) {
    out = threads == 0 ? "limits not known" : fmt::format("{} % of threads, memory limit not known", threads);
  } else if (strategy == Strategy::mps) {
    const auto [least, most] = std::ranges::minmax(memory_mib);
    out = fmt::format("{} % of threads, {} MiB", threads,
                      least == most ? std::to_string(least) : fmt::format("{} to {}", least, most));
  }
  return is_loaded ? out : out + " (once the node runs its target)";
}

nlohmann::ordered_json to_json(const ClientShare& share) {
  if (share.strategy == Strategy::none) return nullptr;
  nlohmann::ordered_json memory = nlohmann::ordered_json::array();
  for (const std::int64_t mib : share.memory_mib)
    memory.push_back(mib > 0 ? nlohmann::ordered_json(mib) : nlohmann::ordered_json(nullptr));
  return {{"strategy", to_string(share.strategy)},
          {"resource", share.resource},
          {"activeThreadPercentage",
           share.threads > 0 ? nlohmann::ordered_json(share.threads) : nlohmann::ordered_json(nullptr)},
          {"pinnedMemoryMiB", std::move(memory)},
          {"loaded", share.is_loaded}};
}

}  // namespace gso
