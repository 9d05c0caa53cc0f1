#include "tests/sim/fleet/gpu.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

namespace gso::sim {
namespace {

using Labels = std::map<std::string, std::string>;
using Error = std::unexpected<std::string>;

const std::string kGpuResource = "nvidia.com/gpu";

std::string product_label(const std::string& name) {
  std::string label;
  bool gap = false;
  for (const char c : name) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      gap = !label.empty();
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.') {
      if (gap) label += '-';
      gap = false;
      label += c;
    }
  }
  return label;
}

std::string family(int major, int minor) {
  switch (major) {
    case 1:
      return "tesla";
    case 2:
      return "fermi";
    case 3:
      return "kepler";
    case 5:
      return "maxwell";
    case 6:
      return "pascal";
    case 7:
      return minor < 5 ? "volta" : "turing";
    case 8:
      return minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
      return "hopper";
    case 10:
    case 12:
      return "blackwell";
    case 13:
      return "rubin";
    default:
      return "undefined";
  }
}

// "1g.5gb+me" as resource names and labels spell it.
std::string dotted(std::string profile) {
  std::ranges::replace(profile, '+', '.');
  return profile;
}

std::string mig_resource(const std::string& profile) {
  return "nvidia.com/mig-" + dotted(profile);
}

// product, count, replicas and sharing-strategy of one resource.
void put_resource(Labels& labels, const PluginConfig& config, const std::string& resource, const std::string& product,
                  std::int64_t count, bool sharing_off) {
  const std::int64_t replicas = sharing_off ? 0 : config.replicas_first(resource);
  const bool shared = replicas > 1;
  labels[resource + ".count"] = std::to_string(count);
  labels[resource + ".replicas"] = std::to_string(replicas);
  labels[resource + ".sharing-strategy"] = !shared ? "none" : config.mps ? "mps" : "time-slicing";
  labels[resource + ".product"] = product + (shared && !config.rename ? "-SHARED" : "");
}

void put_full_gpu(Labels& labels, const PluginConfig& config, const std::vector<Gpu>& gpus, const Gpu& model,
                  bool sharing_off) {
  const auto count = std::ranges::count(gpus, model.product, &Gpu::product);
  put_resource(labels, config, kGpuResource, product_label(model.product), count, sharing_off);
  if (model.memory_mib > 0) labels[kGpuResource + ".memory"] = std::to_string(model.memory_mib);
  if (model.compute_major > 0) {
    labels[kGpuResource + ".family"] = family(model.compute_major, model.compute_minor);
    labels[kGpuResource + ".compute.major"] = std::to_string(model.compute_major);
    labels[kGpuResource + ".compute.minor"] = std::to_string(model.compute_minor);
  }
}

void put_slice(Labels& labels, const PluginConfig& config, const std::string& resource, const Gpu& gpu,
               const MigSlice& slice, std::int64_t count) {
  put_resource(labels, config, resource, product_label(gpu.product) + "-MIG-" + dotted(slice.profile), count, false);
  labels[resource + ".memory"] = std::to_string(slice.memory_mib);
  labels[resource + ".multiprocessors"] = std::to_string(slice.multiprocessors);
  labels[resource + ".slices.gi"] = std::to_string(slice.gpu_slices);
  labels[resource + ".slices.ci"] = std::to_string(slice.compute_slices);
}

std::map<std::string, std::int64_t> slices_by_profile(const std::vector<Gpu>& gpus) {
  std::map<std::string, std::int64_t> count;
  for (const Gpu& gpu : gpus)
    for (const MigSlice& slice : gpu.slices) ++count[slice.profile];
  return count;
}

bool any_mig(const std::vector<Gpu>& gpus) {
  return std::ranges::any_of(gpus, &Gpu::mig_enabled);
}

// MIG strategy single needs every GPU cut alike.
bool single_is_valid(const std::vector<Gpu>& gpus) {
  return std::ranges::all_of(gpus, [](const Gpu& gpu) { return gpu.mig_enabled && !gpu.slices.empty(); }) &&
         slices_by_profile(gpus).size() == 1;
}

void put_single(Labels& labels, const PluginConfig& config, const std::vector<Gpu>& gpus) {
  if (single_is_valid(gpus)) {
    const Gpu& gpu = gpus.front();
    put_slice(labels, config, kGpuResource, gpu, gpu.slices.front(), slices_by_profile(gpus).begin()->second);
    return;
  }
  labels[kGpuResource + ".count"] = labels[kGpuResource + ".replicas"] = labels[kGpuResource + ".memory"] = "0";
  labels[kGpuResource + ".sharing-strategy"] = "";
  labels[kGpuResource + ".product"] = product_label(gpus.front().product) + "-MIG-INVALID";
}

void put_mixed(Labels& labels, const PluginConfig& config, const std::vector<Gpu>& gpus) {
  const auto counts = slices_by_profile(gpus);
  for (const Gpu& gpu : gpus)
    for (const MigSlice& slice : gpu.slices)
      put_slice(labels, config, mig_resource(slice.profile), gpu, slice, counts.at(slice.profile));
}

}  // namespace

Gpu a100() {
  return {.product = "NVIDIA A100-SXM4-40GB",
          .memory_mib = 40960,
          .compute_major = 8,
          .compute_minor = 0,
          .mig_capable = true};
}

Gpu a100_mig_1g(int slices) {
  Gpu gpu = a100();
  gpu.mig_enabled = true;
  gpu.slices.assign(static_cast<std::size_t>(slices),
                    MigSlice{.profile = "1g.5gb", .memory_mib = 4864, .multiprocessors = 14});
  return gpu;
}

Gpu t4() {
  return {.product = "Tesla T4", .memory_mib = 15360, .compute_major = 7, .compute_minor = 5};
}

std::string devices_json(const std::vector<Gpu>& gpus) {
  auto list = nlohmann::json::array();
  for (const Gpu& gpu : gpus) {
    auto slices = nlohmann::json::array();
    for (const MigSlice& slice : gpu.slices)
      slices.push_back({{"profile", slice.profile}, {"attributes", {{"memory", slice.memory_mib}}}});
    list.push_back({{"name", gpu.product},
                    {"memoryMiB", gpu.memory_mib},
                    {"computeCapability", {gpu.compute_major, gpu.compute_minor}},
                    {"migCapable", gpu.mig_capable},
                    {"migEnabled", gpu.mig_enabled},
                    {"pciClass", 0x030200},
                    {"migDevices", slices}});
  }
  return list.dump();
}

std::expected<std::map<std::string, std::int64_t>, std::string> plugin_devices(const PluginConfig& config,
                                                                               const std::vector<Gpu>& gpus) {
  if (config.mig_strategy != "none" && config.mig_strategy != "single" && config.mig_strategy != "mixed")
    return Error("unknown MIG strategy: " + config.mig_strategy);
  if (config.mps && config.mig_strategy == "mixed")
    return Error("using --mig-strategy=mixed is not supported with MPS");
  std::map<std::string, std::int64_t> found;  // By original name.
  const bool single = config.mig_strategy == "single" && any_mig(gpus);
  if (single && !single_is_valid(gpus))
    return Error("invalid MIG configuration for strategy single: all GPUs must be cut into slices of one kind");
  for (const Gpu& gpu : gpus) {
    if (config.mig_strategy == "none" || !gpu.mig_enabled) {
      ++found[kGpuResource];
      continue;
    }
    if (config.mps) return Error("sharing using MPS is not supported for MIG devices");
    for (const MigSlice& slice : gpu.slices) ++found[single ? kGpuResource : mig_resource(slice.profile)];
  }
  std::map<std::string, std::int64_t> registered;
  for (const auto& [resource, count] : found)
    registered[config.registered_name(resource)] = count * config.replicas_largest(resource);
  return registered;
}

std::expected<Labels, std::string> discovery_labels(const PluginConfig& config, const std::vector<Gpu>& gpus,
                                                    std::size_t pick) {
  Labels labels;
  if (gpus.empty()) return labels;
  if (config.mig_strategy != "none" && config.mig_strategy != "single" && config.mig_strategy != "mixed")
    return Error("unknown strategy: " + config.mig_strategy);
  const bool mig = any_mig(gpus);
  if (config.mps && mig) return Error("MPS sharing is not supported for mig devices");
  labels["nvidia.com/mig.capable"] = std::ranges::any_of(gpus, &Gpu::mig_capable) ? "true" : "false";
  labels["nvidia.com/mps.capable"] = config.mps ? "true" : "false";
  labels[kGpuResource + ".mode"] = "compute";
  if (config.mig_strategy != "none") labels["nvidia.com/mig.strategy"] = config.mig_strategy;
  // Models in order of their names; full GPUs override what MIG-enabled ones of the same model said.
  std::map<std::string, const Gpu*> models;
  for (const Gpu& gpu : gpus) {
    const Gpu*& model = models[gpu.product];
    if (model == nullptr || model->mig_enabled) model = &gpu;
  }
  auto chosen = models.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(pick % models.size()));
  put_full_gpu(labels, config, gpus, *chosen->second, chosen->second->mig_enabled);
  if (mig && config.mig_strategy == "single") put_single(labels, config, gpus);
  if (mig && config.mig_strategy == "mixed") put_mixed(labels, config, gpus);
  return labels;
}

std::string mps_daemon_error(const PluginConfig& config, const std::vector<Gpu>& gpus) {
  if (!config.mps) return {};
  for (const Gpu& gpu : gpus) {
    const bool turing = gpu.compute_major > 7 || (gpu.compute_major == 7 && gpu.compute_minor >= 5);
    const std::int64_t most = turing ? 48 : 16;
    const std::int64_t replicas = config.replicas_largest(kGpuResource);
    if (replicas > most) {
      return "invalid MPS configuration: invalid device maximum allowed replicas exceeded: " +
             std::to_string(replicas) + " > " + std::to_string(most);
    }
  }
  return {};
}

}  // namespace gso::sim
