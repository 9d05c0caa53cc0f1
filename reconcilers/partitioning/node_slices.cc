#include "reconcilers/partitioning/node_slices.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/stored_fields.h"

namespace gso {

using Json = nlohmann::json;

namespace {

constexpr std::string_view kRenamePrefix = "nvidia.com/";
constexpr std::int64_t kMostSlices = 1000;

// The first `digits` hexadecimal digits of the SHA-256.
std::string hash_of(std::string_view text, std::size_t digits) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::string out;
  for (std::size_t i = 0; out.size() < digits && i < size; ++i) out += fmt::format("{:02x}", digest.at(i));
  out.resize(std::min(out.size(), digits));
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

// The two hashes at the end of a key.
struct KeyHashes {
  std::string_view owner;
  std::string_view text;
};
std::optional<KeyHashes> hashes_in(std::string_view key) {
  constexpr std::size_t kEnd = kOwnerDigits + 1 + kTextDigits;
  if (!key.starts_with(kKeyPrefix) || key.size() < kKeyPrefix.size() + kEnd + 1) return std::nullopt;
  const std::string_view end = key.substr(key.size() - kEnd);
  if (end[kOwnerDigits] != '-' || key[key.size() - kEnd - 1] != '-') return std::nullopt;
  return KeyHashes{end.substr(0, kOwnerDigits), end.substr(kOwnerDigits + 1)};
}

std::optional<std::int64_t> index_in(const Json& devices) {
  if (!devices.is_array() || devices.size() != 1 || !devices.front().is_string()) return std::nullopt;
  const auto index = whole_number(devices.front().get_ref<const std::string&>());
  return index && *index >= 0 ? index : std::nullopt;
}

// One entry of sharing.mps.resources; false if it is none of the fork's.
bool read_entry(const Json& entry, Geometry& out) {
  if (!entry.is_object()) return false;
  const auto named = entry.find("rename");
  const std::string rename = named != entry.end() && named->is_string() ? named->get<std::string>() : "";
  const std::string full = rename.starts_with(kRenamePrefix) ? rename : std::string(kRenamePrefix) + rename;
  const auto gigabytes = slice_gigabytes(full);
  const Json none;
  const auto at = [&](const char* key) -> const Json& {
    const auto found = entry.find(key);
    return found == entry.end() ? none : *found;
  };
  const auto index = index_in(at("devices"));
  const Json& replicas = at("replicas");
  if (at("name") != kGpuResource || !gigabytes || !index || at("memoryGB") != *gigabytes ||
      !replicas.is_number_integer())
    return false;
  const auto count = replicas.get<std::int64_t>();
  if (count < 1 || count > kMostSlices) return false;
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
  for (const auto& [index, slices] : geometry) {
    for (const auto& [gigabytes, count] : slices) add_slices(out, gigabytes, count);
  }
  return out;
}

bool contains(const Geometry& whole, const Geometry& part) {
  return std::ranges::all_of(part, [&](const auto& gpu) {
    const auto at = whole.find(gpu.first);
    return gpu.second.empty() || (at != whole.end() && has_all(at->second, gpu.second));
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
  const auto inside = [](const Json* object, const char* key) -> const Json* {
    if (object == nullptr || !object->is_object()) return nullptr;
    const auto found = object->find(key);
    return found == object->end() ? nullptr : &*found;
  };
  const Json* version = inside(&document, "version");
  const Json* resources = inside(inside(inside(&document, "sharing"), "mps"), "resources");
  if (version == nullptr || *version != "v1" || resources == nullptr || !resources->is_array()) return std::nullopt;
  Geometry out;
  const bool read = std::ranges::all_of(*resources, [&](const Json& entry) { return read_entry(entry, out); });
  return read ? std::optional(std::move(out)) : std::nullopt;
}

std::string profile_key(std::string_view node, std::string_view text) {
  const std::string owner = owner_hash(node);
  return fmt::format("{}{}-{}-{}", kKeyPrefix, node.substr(0, kNodePart), owner, text_hash(owner, text));
}

bool is_profile_key(std::string_view key, std::string_view text) {
  const auto hashes = hashes_in(key);
  return hashes && hashes->text == text_hash(hashes->owner, text);
}

bool is_profile_key_of(std::string_view node, std::string_view key, std::string_view text) {
  return key == profile_key(node, text);
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
    field<PartitioningMark, &PartitioningMark::failures>("failures", When::if_set)};

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

constexpr std::int64_t kMostGpus = 256;
constexpr std::int64_t kMostSlicesOfSize = 1000;

// A label's number from 1 to `most`; the reason why there is none goes to `problem`.
std::int64_t label_number(const Node& node, std::string_view label, std::int64_t most, std::string& problem) {
  const auto text = node.meta.labels.get(label);
  if (!text) {
    problem = fmt::format("the label {} is missing", label);
    return 0;
  }
  const auto number = whole_number(*text);
  if (number && *number >= 1 && *number <= most) return *number;
  problem = fmt::format("the label {} is '{}', not a number from 1 to {}", label, shown_value(*text), most);
  return 0;
}

// "status-gpu-<index>-<N>gb-used|free", without the prefix.
struct StatusKey {
  std::int64_t index = 0;
  std::int64_t gigabytes = 0;
  bool used = false;
};

std::optional<StatusKey> read_status_key(std::string_view key) {
  const auto first = key.find('-');
  const auto second = first == std::string_view::npos ? first : key.find('-', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto index = whole_number(key.substr(0, first));
  const auto gigabytes = slice_gigabytes(fmt::format("nvidia.com/gpu-{}", key.substr(first + 1, second - first - 1)));
  const std::string_view status = key.substr(second + 1);
  if (!index || *index < 0 || !gigabytes || (status != "used" && status != "free")) return std::nullopt;
  return StatusKey{*index, *gigabytes, status == "used"};
}

// Reads one annotation into `out`; why it makes no sense, or empty.
std::string read_annotation(std::string_view key, std::string_view value, NodeSlices& out) {
  const auto read = read_status_key(key.substr(kNosStatusPrefix.size()));
  if (!read) return fmt::format("the annotation {} names no slice of at least 1 GiB", key);
  const auto count = whole_number(value);
  if (!count || *count < 0 || *count > kMostSlicesOfSize)
    return fmt::format("the annotation {} is '{}', not a number of slices", key, value);
  if (*count == 0) return {};
  if (read->index >= static_cast<std::int64_t>(out.gpus.size()))
    return fmt::format("the annotation {} names a GPU beyond the label {}={}", key, kGpuCount, out.gpus.size());
  GpuSlices& gpu = out.gpus[static_cast<std::size_t>(read->index)];
  (read->used ? gpu.used : gpu.free)[read->gigabytes] = *count;
  return {};
}

Geometry geometry_of(const std::vector<GpuSlices>& gpus, bool with_free) {
  Geometry out;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    SliceCounts slices = gpus[i].used;
    if (with_free) {
      for (const auto& [gigabytes, count] : gpus[i].free) add_slices(slices, gigabytes, count);
    }
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
  for (const GpuSlices& gpu : gpus) {
    for (const auto& [gigabytes, count] : gpu.free) add_slices(out, gigabytes, count);
  }
  return out;
}

NodeSlices read_slices(const Node& node) {
  // 4 TiB, far more than any GPU has: what is larger is no memory, and costs a plan more than it is worth.
  constexpr std::int64_t kMostMemory = std::int64_t{1} << 22;
  constexpr std::int64_t kMiBPerGiB = 1024;
  NodeSlices out;
  const auto because = [](std::string problem) {
    NodeSlices none;
    none.problem = std::move(problem);
    return none;
  };
  const std::int64_t count = label_number(node, kGpuCount, kMostGpus, out.problem);
  if (out.problem.empty()) out.memory_mib = label_number(node, kGpuMemory, kMostMemory, out.problem);
  if (!out.problem.empty()) return because(out.problem);
  out.gpus.resize(static_cast<std::size_t>(count));
  for (const auto& [key, value] : node.meta.annotations) {
    if (!key.view().starts_with(kNosStatusPrefix)) continue;
    std::string problem = read_annotation(key.view(), value.view(), out);
    if (!problem.empty()) return because(std::move(problem));
  }
  for (const auto& [index, slices] : out.all()) {
    if (gigabytes_of(slices) * kMiBPerGiB <= out.memory_mib) continue;
    return because(fmt::format("GPU {} reports slices of {} GiB, more than the {} MiB of the label {}", index,
                               gigabytes_of(slices), out.memory_mib, kGpuMemory));
  }
  return out;
}

}  // namespace gso
