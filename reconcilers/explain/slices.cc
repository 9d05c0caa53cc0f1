#include "reconcilers/explain/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/partitioning/node_slices.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

constexpr std::int64_t kWidth = 20;
constexpr std::int64_t kMiB = 1024;  // Of a GiB.

// So many characters of the bar for `mib` of `all`: at least one for any slice.
std::int64_t width_of(std::int64_t mib, std::int64_t all) {
  if (mib <= 0 || all <= 0) return 0;
  return std::clamp<std::int64_t>((mib * kWidth + all / 2) / all, 1, kWidth);
}

std::string bar_of(const GpuSlices& gpu, std::int64_t memory_mib) {
  const std::int64_t room = gpu.free.empty() ? kWidth : kWidth - 1;  // A free slice is seen on a full GPU, too.
  const std::int64_t used = std::min(width_of(gigabytes_of(gpu.used) * kMiB, memory_mib), room);
  const std::int64_t free = std::min(width_of(gigabytes_of(gpu.free) * kMiB, memory_mib), kWidth - used);
  return fmt::format("[{:#<{}}{:-<{}}{:.<{}}]", "", used, "", free, "", kWidth - used - free);
}

}  // namespace

std::vector<GpuBar> slice_bars(const Node& node) {
  std::vector<GpuBar> out;
  if (!is_partitioned_by_nos(node)) return out;
  const NodeSlices slices = read_slices(node);
  if (!slices.problem.empty()) return out;
  for (std::size_t i = 0; i < slices.gpus.size(); ++i) {
    const GpuSlices& gpu = slices.gpus[i];
    out.push_back({static_cast<std::int64_t>(i), slices.memory_mib, gpu, bar_of(gpu, slices.memory_mib)});
  }
  return out;
}

std::string memory_of(const GpuBar& bar) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bar.memory_mib) / kMiB);
}

std::string to_string(const GpuBar& bar) {
  return fmt::format("GPU {} {} {}; used: {}; free: {}", bar.gpu, bar.bar, memory_of(bar), describe(bar.slices.used),
                     describe(bar.slices.free));
}

namespace {

constexpr std::string_view kOfSlices[] = {kSlicePlanned, kSliceUnavailable, kSliceTooLarge, kSliceRequestRefused};

}  // namespace

bool is_of_awaited_slices(const Finding& finding) {
  return finding.object.kind == "Pod" && std::ranges::find(kOfSlices, finding.reason) != std::end(kOfSlices);
}

std::vector<Finding> findings_and_slices(const Snapshot& snapshot, FleetIndex& index) {
  Plan plan = plan_all(snapshot, index, {.synced = everything_synced});
  std::erase_if(plan.findings, is_of_awaited_slices);  // The Events say the same, and more.
  for (const PlannedAction& planned : plan.actions) {
    const auto* event = std::get_if<RecordEvent>(&planned.action);
    if (event == nullptr) continue;
    Finding said{event->warning ? Severity::error : Severity::warning, event->regarding, event->reason, event->note};
    if (!is_of_awaited_slices(said)) continue;
    if (said.reason != kSliceRequestRefused) said.message.insert(0, "the pod ");  // That one begins with a container.
    plan.findings.push_back(std::move(said));
  }
  return std::move(plan.findings);
}

std::optional<PodCause> awaited_slices(const std::vector<Finding>& findings, const Pod& pod) {
  const auto said = std::ranges::find_if(findings, [&](const Finding& finding) {
    return is_of_awaited_slices(finding) && finding.object.name == pod.meta.name &&
           finding.object.ns == pod.meta.ns.view();
  });
  if (said == findings.end()) return std::nullopt;
  PodCause out{said->severity, said->reason, said->message, "gpu-sharing-operator status"};
  if (said->reason == kSlicePlanned) {
    out.options = {
        "wait: with partitioning switched on (chart value modes.partitioning), the node has the slices in a few "
        "minutes; docs/partitioning.md has the steps. If explain of the node shows them as free already, kubectl "
        "describe of the pod says what else it lacks there"};
  }
  return out;
}

std::vector<PodCause> slice_limits(const SlicePod& pod) {
  std::vector<PodCause> out;
  for (const SliceRequest& request : pod.requests) {
    if (request.count < 1) continue;
    PodCause cause;
    cause.severity = Severity::info;
    cause.code = "SliceMemory";
    cause.text = fmt::format(
        "container {} gets a slice of {} GiB: its processes together can allocate that much memory of one GPU "
        "(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT). nvidia-smi and the total of cudaMemGetInfo show the whole GPU, so a "
        "server that reserves a share of the GPU's memory must reserve a share of the slice instead",
        request.container, request.gigabytes);
    if (pod.phase == "Running") {
      cause.command =
          fmt::format("kubectl exec {} --namespace {} --container {} -- printenv CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                      pod.meta.name, pod.meta.ns.view(), request.container);
    }
    out.push_back(std::move(cause));
  }
  return out;
}

}  // namespace gso
