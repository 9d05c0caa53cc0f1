#include "reconcilers/partitioning/node_slices.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/slice_resource.h"
#include "reconcilers/model/stored_fields.h"

namespace gso {

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

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

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
