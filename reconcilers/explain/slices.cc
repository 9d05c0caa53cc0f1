#include "reconcilers/explain/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/nos.h"
#include "reconcilers/partitioning/node_slices.h"

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
        "server "
        "that reserves a share of the GPU's memory must reserve a share of the slice instead",
        request.container, request.gigabytes);
    cause.command =
        fmt::format("kubectl exec {} --namespace {} --container {} -- printenv CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                    pod.meta.name, pod.meta.ns.view(), request.container);
    out.push_back(std::move(cause));
  }
  return out;
}

}  // namespace gso
