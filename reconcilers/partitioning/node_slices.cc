#include "reconcilers/partitioning/node_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/stored_fields.h"
#include "reconcilers/profile/expected.h"

namespace gso {

using Json = nlohmann::json;

namespace {

constexpr std::string_view kRenamePrefix = "nvidia.com/";
constexpr std::int64_t kMostSlices = 1000;  // Of one size, on one GPU.

// The first `digits` hexadecimal digits of the SHA-256.
std::string hash_of(std::string_view text, std::size_t digits) {
  std::string out;
  for (const char byte : k8s::sha256(text)) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  out.resize(digits);
  return out;
}

constexpr std::string_view kKeyPrefix = "gso-";
constexpr std::size_t kNodePart = 34;
constexpr std::size_t kOwnerDigits = 10;
constexpr std::size_t kTextDigits = 12;

std::string owner_hash(std::string_view node) {
  return hash_of(node, kOwnerDigits);
}
std::string text_hash(std::string_view owner, std::string_view text) {
  return hash_of(fmt::format("{}\n{}", owner, text), kTextDigits);
}

// One entry of sharing.mps.resources; false if it is none of the fork's.
bool read_entry(const Json& entry, Geometry& out) {
  const std::string rename = text_at(entry, "rename");
  const auto gigabytes =
      slice_gigabytes(rename.starts_with(kRenamePrefix) ? rename : std::string(kRenamePrefix) + rename);
  const Json devices = list_at(entry, "devices");
  const bool names_one = devices.size() == 1 && devices.front().is_string();
  const auto index = names_one ? whole_number(devices.front().get_ref<const std::string&>()) : std::nullopt;
  const std::int64_t count = number_at(entry, "replicas");
  if (text_at(entry, "name") != kGpuResource || !gigabytes || number_at(entry, "memoryGB") != *gigabytes ||
      index.value_or(-1) < 0 || count < 1 || count > kMostSlices)
    return false;
  out[*index][*gigabytes] += count;
  return true;
}

}  // namespace

std::int64_t gigabytes_of(const SliceCounts& slices) {
  std::int64_t sum = 0;
  for (const auto& [gigabytes, count] : slices) sum += gigabytes * count;
  return sum;
}

void add_slices(SliceCounts& slices, std::int64_t gigabytes, std::int64_t by) {
  const auto at = slices.try_emplace(gigabytes, 0).first;
  at->second += by;
  if (at->second <= 0) slices.erase(at);
}

void add_slices(SliceCounts& slices, const SliceCounts& others, std::int64_t by) {
  for (const auto& [gigabytes, count] : others) add_slices(slices, gigabytes, by * count);
}

std::int64_t count_of(const SliceCounts& slices, std::int64_t gigabytes) {
  const auto at = slices.find(gigabytes);
  return at == slices.end() ? 0 : at->second;
}

bool has_all(const SliceCounts& there, const SliceCounts& wanted) {
  return std::ranges::all_of(wanted,
                             [&](const auto& slices) { return count_of(there, slices.first) >= slices.second; });
}

std::string describe(const SliceCounts& slices) {
  std::string out;
  for (const auto& [gigabytes, count] : slices)
    out += fmt::format("{}{} x {} GiB", out.empty() ? "" : ", ", count, gigabytes);
  return out.empty() ? "none" : out;
}

SliceCounts total_of(const Geometry& geometry) {
  SliceCounts out;
  for (const auto& [index, slices] : geometry) add_slices(out, slices);
  return out;
}

const SliceCounts& slices_on(const Geometry& geometry, std::size_t gpu) {
  static const SliceCounts kNone;
  const auto at = geometry.find(static_cast<std::int64_t>(gpu));
  return at == geometry.end() ? kNone : at->second;
}

bool contains(const Geometry& whole, const Geometry& part) {
  return std::ranges::all_of(part, [&](const auto& gpu) {
    return has_all(slices_on(whole, static_cast<std::size_t>(gpu.first)), gpu.second);
  });
}

std::string profile_text(const Geometry& geometry) {
  std::string out =
      "version: v1\nflags:\n  migStrategy: \"none\"\nsharing:\n  mps:\n    failRequestsGreaterThanOne: true\n"
      "    resources:";
  bool any = false;
  for (const auto& [index, slices] : geometry) {
    for (const auto& [gigabytes, count] : slices) {
      out += fmt::format("\n    - {{name: {}, rename: gpu-{}gb, memoryGB: {}, replicas: {}, devices: [\"{}\"]}}",
                         kGpuResource, gigabytes, gigabytes, count, index);
      any = true;
    }
  }
  return out + (any ? "\n" : " []\n");
}

std::optional<Geometry> read_profile(std::string_view text) {
  const k8s::Result<std::string> json = yaml_to_json(text);
  if (!json) return std::nullopt;
  const Json document = Json::parse(*json, nullptr, false);
  const Json mps = object_at(object_at(document, "sharing"), "mps");
  const Json* resources = member_at(mps, "resources");
  if (text_at(document, "version") != "v1" || resources == nullptr || !resources->is_array()) return std::nullopt;
  Geometry out;
  const bool read = std::ranges::all_of(*resources, [&](const Json& entry) { return read_entry(entry, out); });
  return read ? std::optional(std::move(out)) : std::nullopt;
}

std::string profile_key(std::string_view node, std::string_view text) {
  const std::string owner = owner_hash(node);
  return fmt::format("{}{}-{}-{}", kKeyPrefix, node.substr(0, kNodePart), owner, text_hash(owner, text));
}

bool is_profile_key(std::string_view key, std::string_view text) {
  constexpr std::size_t kHashes = kOwnerDigits + 1 + kTextDigits;  // "<hash of the node's name>-<hash of both>"
  if (!key.starts_with(kKeyPrefix) || key.size() < kKeyPrefix.size() + 1 + kHashes) return false;
  const std::string_view hashes = key.substr(key.size() - kHashes);
  const std::string_view owner = hashes.substr(0, kOwnerDigits);
  return key[key.size() - kHashes - 1] == '-' && hashes == fmt::format("{}-{}", owner, text_hash(owner, text));
}

namespace {

using stored::field;
using stored::When;

constexpr stored::Field<PartitioningMark> kMarkFields[] = {
    field<PartitioningMark, &PartitioningMark::key>("key"),
    field<PartitioningMark, &PartitioningMark::moved>("moved", When::needed),
    field<PartitioningMark, &PartitioningMark::good>("good", When::if_set),
    field<PartitioningMark, &PartitioningMark::before>("before", When::if_set),
    field<PartitioningMark, &PartitioningMark::labelled>("labelled", When::if_set),
    field<PartitioningMark, &PartitioningMark::failed>("failed", When::if_set),
    field<PartitioningMark, &PartitioningMark::failures>("failures", When::if_set),
    field<PartitioningMark, &PartitioningMark::pods>("pods", When::if_set)};

}  // namespace

std::string print_mark(const PartitioningMark& mark) {
  return stored::print_versioned<PartitioningMark, nlohmann::ordered_json>(mark, kMarkFields);
}

PartitioningMark mark_of(const Node& node) {
  const auto text = node.meta.annotations.get(kPartitioningAnnotation);
  if (!text) return {};
  PartitioningMark out;
  std::string problem = stored::read_versioned<PartitioningMark>(*text, kMarkFields, out);
  if (problem.empty()) return out;
  PartitioningMark unreadable;
  unreadable.problem = std::move(problem);
  return unreadable;
}

std::string unreadable_mark_text(const std::string& node, std::string_view problem) {
  return fmt::format(
      "its annotation {} cannot be read ({}), so it is unknown which label and keys it needs, and nothing is changed "
      "there. Correct it, or remove it (kubectl annotate node {} {}-): the operator then goes on from what the node "
      "reports, and the label from before partitioning is forgotten",
      kPartitioningAnnotation, problem, node, kPartitioningAnnotation);
}

bool is_withdrawn(const Node& node, const PartitioningMark& mark) {
  return mark.labelled && node.meta.labels.get(kNosPartitioning) == "mps" &&
         node.meta.labels.get(kNosPartitioningBefore) != "mps";
}

namespace {

// Reads a label's number from 1 to `most`; why there is none, or empty.
std::string read_number(const Node& node, std::string_view label, std::int64_t most, std::int64_t& out) {
  const auto text = node.meta.labels.get(label);
  if (!text) return fmt::format("the label {} is missing, which GPU Feature Discovery writes", label);
  const auto number = whole_number(*text);
  if (!number || *number < 1 || *number > most)
    return fmt::format("the label {} is '{}', not a number from 1 to {}", label, shown_value(*text), most);
  out = *number;
  return {};
}

// Reads one annotation "status-gpu-<index>-<N>gb-used|free"; why it makes no sense, or empty.
std::string read_status(std::string_view key, std::string_view value, NodeSlices& out) {
  const std::string_view text = key.substr(kNosStatusPrefix.size());
  const auto first = text.find('-');
  const auto second = text.find('-', first + 1);
  const auto index = whole_number(text.substr(0, first));
  const auto gigabytes = slice_gigabytes(fmt::format("nvidia.com/gpu-{}", text.substr(first + 1, second - first - 1)));
  const std::string_view status = text.substr(second + 1);
  if (index.value_or(-1) < 0 || !gigabytes || (status != "used" && status != "free"))
    return fmt::format("the annotation {} names no slice of at least 1 GiB", key);
  const auto count = whole_number(value);
  if (!count || *count < 0 || *count > kMostSlices)
    return fmt::format("the annotation {} is '{}', not a number of slices", key, value);
  if (*count == 0) return {};
  if (*index >= std::ssize(out.gpus))
    return fmt::format(
        "the annotation {} names a GPU beyond the {} of the label {}. Where GPUs of several models are, state them in "
        "the annotation {}",
        key, out.gpus.size(), kGpuCount, kDevicesAnnotation);
  GpuSlices& gpu = out.gpus[static_cast<std::size_t>(*index)];
  (status == "used" ? gpu.used : gpu.free)[*gigabytes] = *count;
  return {};
}

constexpr std::size_t kMostGpus = 256;
// 4 TiB, far more than any GPU has: what is larger is no memory, and costs a plan more than it is worth.
constexpr std::int64_t kMostMemory = std::int64_t{1} << 22;

// From the labels: GFD writes those of one model, whatever others there are.
std::string read_labelled_gpus(const Node& node, NodeSlices& out) {
  std::int64_t gpus = 0;
  std::int64_t memory = 0;
  std::string problem = read_number(node, kGpuCount, kMostGpus, gpus);
  if (problem.empty()) problem = read_number(node, kGpuMemory, kMostMemory, memory);
  if (problem.empty()) out.gpus.assign(static_cast<std::size_t>(gpus), {{}, {}, memory});
  return problem;
}

// From the annotation that states each GPU. One without memory has the least that is known of the others and the label.
std::string read_stated_gpus(const Node& node, std::string_view text, NodeSlices& out) {
  const auto devices = parse_devices(text);
  if (!devices) return fmt::format("the annotation {} cannot be read: {}", kDevicesAnnotation, devices.error().message);
  std::int64_t least = 0;
  if (!read_number(node, kGpuMemory, kMostMemory, least).empty()) least = kMostMemory + 1;
  for (const Device& device : *devices)
    if (device.memory_mib > 0) least = std::min(least, device.memory_mib);
  if (devices->empty() || devices->size() > kMostGpus || least > kMostMemory)
    return fmt::format("the annotation {} does not say how much memory the GPUs have", kDevicesAnnotation);
  for (const Device& device : *devices)
    out.gpus.push_back({{}, {}, device.memory_mib > 0 ? std::min(device.memory_mib, kMostMemory) : least});
  return {};
}

// Why the report of the node makes no sense, or empty.
std::string read_report(const Node& node, NodeSlices& out) {
  std::string problem;
  for (const auto& [key, value] : node.meta.annotations)
    if (problem.empty() && key.view().starts_with(kNosStatusPrefix))
      problem = read_status(key.view(), value.view(), out);
  if (!problem.empty()) return problem;
  for (const auto& [index, slices] : out.all()) {
    const GpuSlices& gpu = out.gpus[static_cast<std::size_t>(index)];
    if (gigabytes_of(slices) <= most_cut_by_nos(gpu)) continue;
    return fmt::format(
        "GPU {} reports slices of {} GiB, more than the {} MiB that it has by the label {} or the "
        "annotation {}: correct what is wrong there, or restart nos's gpu-agent on the node if its report is old",
        index, gigabytes_of(slices), gpu.memory_mib, kGpuMemory, kDevicesAnnotation);
  }
  return {};
}

Geometry geometry_of(const std::vector<GpuSlices>& gpus, bool with_free) {
  Geometry out;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    SliceCounts slices = gpus[i].used;
    if (with_free) add_slices(slices, gpus[i].free);
    if (!slices.empty()) out.emplace(static_cast<std::int64_t>(i), std::move(slices));
  }
  return out;
}

}  // namespace

Geometry NodeSlices::used() const {
  return geometry_of(gpus, false);
}

Geometry NodeSlices::all() const {
  return geometry_of(gpus, true);
}

SliceCounts NodeSlices::free() const {
  SliceCounts out;
  for (const GpuSlices& gpu : gpus) add_slices(out, gpu.free);
  return out;
}

std::string describe_gpus(const NodeSlices& slices) {
  const std::string count = counted(slices.gpus.size(), "GPU");
  if (slices.gpus.empty()) return count;
  const auto [least, most] = std::ranges::minmax(slices.gpus, {}, &GpuSlices::memory_mib);
  const std::string range = least.memory_mib == most.memory_mib ? "" : fmt::format("{} to ", least.memory_mib);
  return fmt::format("{} of {}{} MiB", count, range, most.memory_mib);
}

std::int64_t most_cut_by_nos(const GpuSlices& gpu) {
  constexpr std::int64_t kMiBPerGigabyteOfNos = 1000;
  return (gpu.memory_mib + kMiBPerGigabyteOfNos - 1) / kMiBPerGigabyteOfNos;
}

NodeSlices read_slices(const Node& node) {
  NodeSlices out;
  const auto stated = node.meta.annotations.get(kDevicesAnnotation);
  out.problem = stated ? read_stated_gpus(node, *stated, out) : read_labelled_gpus(node, out);
  if (out.problem.empty()) out.problem = read_report(node, out);
  if (!out.problem.empty())
    for (GpuSlices& gpu : out.gpus) gpu = {{}, {}, gpu.memory_mib};
  return out;
}

}  // namespace gso
