// The slices of Nebuly's fork on one node: which pod was given which, who loses its server at a change, and what nos's
// gpu-agent reports. Source: nos, internal/controllers/gpuagent/reporter.go and pkg/gpu/annotation.go.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/node_agent.h"

namespace gso::sim {

using nlohmann::json;

namespace {
constexpr std::string_view kStatus = "nos.nebuly.com/status-gpu-";
}  // namespace

SliceCounts NodeAgent::used_slices() const {
  SliceCounts used;
  for (const auto& [uid, entry] : pods_) {
    if (!entry.runner->holds_devices()) continue;
    for (const auto& [gpu, size] : entry.slices) ++used[gpu][size];
  }
  return used;
}

// Kubelet takes any free device of a resource: not the first one, so that nobody relies on that.
void NodeAgent::allocate_slices(Entry& entry) {
  for (const auto& [resource, wanted] : entry.runner->spec().gpus) {
    const std::int64_t size = slice_size(resource);
    if (size == 0) continue;
    const SliceCounts used = used_slices();
    std::vector<std::size_t> free;
    for (const auto& [gpu, sizes] : machine_.slices()) {
      const auto there = sizes.find(size);
      if (there == sizes.end()) continue;
      const auto on_gpu = used.find(gpu);
      const std::int64_t taken =
          on_gpu != used.end() && on_gpu->second.contains(size) ? on_gpu->second.at(size) : std::int64_t{0};
      for (std::int64_t i = taken; i < there->second; ++i) free.push_back(gpu);
    }
    for (std::int64_t i = 0; i < wanted && !free.empty(); ++i) {
      const auto at = static_cast<std::size_t>(site_->pace.uniform() * static_cast<double>(free.size()));
      entry.slices.emplace_back(free[at], size);
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

// The profile has fewer slices of a size on a GPU than pods were given there: the youngest pods lose.
void NodeAgent::break_clients_without_a_slice() {
  SliceCounts left = machine_.slices();
  for (auto& [uid, entry] : pods_) {
    if (!entry.runner->holds_devices()) continue;
    const bool loses =
        std::ranges::any_of(entry.slices, [&left](const auto& slice) { return --left[slice.first][slice.second] < 0; });
    if (loses) entry.runner->break_gpu_clients();
  }
}

void NodeAgent::break_slice_clients() {
  for (auto& [uid, entry] : pods_)
    if (!entry.slices.empty()) entry.runner->break_gpu_clients();
}

void NodeAgent::report_slices() {
  std::map<std::string, std::string> report;
  const SliceCounts used = used_slices();
  const auto put = [&report](std::size_t gpu, std::int64_t size, const char* state, std::int64_t count) {
    if (count <= 0) return;
    report[std::string(kStatus) + std::to_string(gpu) + "-" + std::to_string(size) + "gb-" + state] =
        std::to_string(count);
  };
  SliceCounts free = machine_.slices();
  for (const auto& [gpu, sizes] : used) {
    for (const auto& [size, count] : sizes) {
      put(gpu, size, "used", count);
      free[gpu][size] -= count;
    }
  }
  for (const auto& [gpu, sizes] : free)
    for (const auto& [size, count] : sizes) put(gpu, size, "free", count);
  const k8s::Duration late = site_->faults.late_slice_reports;
  if (late == k8s::Duration::zero()) return write_slice_report(report);
  site_->after(late, life_, [this, report = std::move(report)] { write_slice_report(report); });
}

void NodeAgent::write_slice_report(const std::map<std::string, std::string>& report) {
  if (lost_ || off_ || node_ == nullptr) return;
  json changes = json::object();
  const json& now = annotations(*node_);
  for (const auto& [key, value] : report)
    if (text(now, key) != value) changes[key] = value;
  for (const auto& [key, value] : now.items())
    if (key.starts_with(kStatus) && !report.contains(key)) changes[key] = nullptr;
  if (changes.empty()) return;
  outbox_.push({.gvr = kNodes, .key = {"", spec_.name}, .body = json{{"metadata", {{"annotations", changes}}}}.dump()});
}

}  // namespace gso::sim
