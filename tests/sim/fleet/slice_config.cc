#include "tests/sim/fleet/slice_config.h"

#include <yaml-cpp/yaml.h>

#include <charconv>

namespace gso::sim {
namespace {

using Error = std::unexpected<std::string>;

constexpr std::string_view kPrefix = "nvidia.com/gpu-";
constexpr std::string_view kSuffix = "gb";

std::expected<std::int64_t, std::string> positive(const YAML::Node& entry, const char* field) {
  std::int64_t value = 0;
  if (!entry[field] || !YAML::convert<std::int64_t>::decode(entry[field], value) || entry[field].Tag() == "!")
    return Error(std::string("cannot unmarshal ") + field + " into a value of type int");
  if (value < 1) return Error(std::string(field) + " must be >= 1");
  return value;
}

// One entry: so many slices of one size, on one GPU.
std::expected<void, std::string> read_entry(const YAML::Node& entry, std::size_t gpus, SliceCounts* slices) {
  if (!entry.IsMap() || entry["name"].as<std::string>("") != "nvidia.com/gpu") return Error("unknown resource name");
  const auto size = positive(entry, "memoryGB");
  if (!size) return Error(size.error());
  const auto replicas = positive(entry, "replicas");
  if (!replicas) return Error(replicas.error());
  if (entry["rename"].as<std::string>("") != "gpu-" + std::to_string(*size) + "gb")
    return Error("rename does not fit memoryGB");
  const YAML::Node devices = entry["devices"];
  if (!devices || !devices.IsSequence() || devices.size() != 1) return Error("devices must name one GPU");
  const auto name = devices[0].as<std::string>("");
  std::size_t index = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (problem != std::errc() || end != name.data() + name.size() || index >= gpus)
    return Error("no such device: " + name);
  if (!(*slices)[index].emplace(*size, *replicas).second) return Error("duplicate entry for device " + name);
  return {};
}

std::expected<SliceConfig, std::string> read_slices(const YAML::Node& document, std::size_t gpus) {
  SliceConfig config;
  if (document.IsNull()) return config;
  if (!document.IsMap()) return Error("cannot unmarshal the config file: it is no mapping");
  if (document["version"].as<std::string>("") != "v1") return Error("unknown version");
  const YAML::Node sharing = document["sharing"];
  if (!sharing || sharing.IsNull()) return config;
  const YAML::Node mps = sharing.IsMap() ? sharing["mps"] : YAML::Node();
  if (!mps || !mps.IsMap()) return Error("cannot unmarshal sharing");
  config.fail_requests_greater_than_one = mps["failRequestsGreaterThanOne"].as<bool>(false);
  const YAML::Node resources = mps["resources"];
  if (!resources || !resources.IsSequence()) return Error("cannot unmarshal resources");
  for (const auto& entry : resources) {
    const auto read = read_entry(entry, gpus, &config.slices);
    if (!read) return Error(read.error());
  }
  return config;
}

}  // namespace

std::expected<SliceConfig, std::string> read_slice_config(std::string_view text, std::size_t gpus) {
  try {
    return read_slices(YAML::Load(std::string(text)), gpus);
  } catch (const YAML::Exception& error) {
    return Error(std::string("unable to parse the config file: ") + error.what());
  }
}

std::string slice_resource(std::int64_t gigabytes) {
  return std::string(kPrefix) + std::to_string(gigabytes) + std::string(kSuffix);
}

std::int64_t slice_size(std::string_view resource) {
  if (!resource.starts_with(kPrefix) || !resource.ends_with(kSuffix)) return 0;
  resource.remove_prefix(kPrefix.size());
  resource.remove_suffix(kSuffix.size());
  std::int64_t size = 0;
  const auto [end, problem] = std::from_chars(resource.data(), resource.data() + resource.size(), size);
  return problem == std::errc() && end == resource.data() + resource.size() ? size : 0;
}

}  // namespace gso::sim
