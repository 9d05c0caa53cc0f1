// The slices of a node: as its annotation keeps them, and as they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/objects.h"

namespace gso {

// --- Which slices each GPU of a node carries, and the two forms of that: the profile document of nos's device plugin,
// and the name of the ConfigMap's key that holds it. Source: nebuly-ai/nos at 12e0a72,
// internal/partitioning/mps/partitioner.go (the document).

using SliceCounts = std::map<std::int64_t, std::int64_t>;  // Size in GiB -> how many, at least 1.
// The sum of the sizes, in GiB.
[[nodiscard]] std::int64_t gigabytes_of(const SliceCounts& slices);
// `by` can be negative; a count that becomes 0 or less is removed.
void add_slices(SliceCounts& slices, std::int64_t gigabytes, std::int64_t by);
// `by` times all of these.
void add_slices(SliceCounts& slices, const SliceCounts& others, std::int64_t by = 1);
// 0 if there are none of that size.
[[nodiscard]] std::int64_t count_of(const SliceCounts& slices, std::int64_t gigabytes);
// As many of each size are in `there`, or more.
[[nodiscard]] bool has_all(const SliceCounts& there, const SliceCounts& wanted);
// "2 x 10 GiB, 1 x 20 GiB"; "none" if there are none. For people.
[[nodiscard]] std::string describe(const SliceCounts& slices);

// By GPU index, without GPUs that carry none.
using Geometry = std::map<std::int64_t, SliceCounts>;
// Of all GPUs.
[[nodiscard]] SliceCounts total_of(const Geometry& geometry);
// Of that GPU.
[[nodiscard]] const SliceCounts& slices_on(const Geometry& geometry, std::size_t gpu);
// Every slice of `part` is in `whole`, on the same GPU.
[[nodiscard]] bool contains(const Geometry& whole, const Geometry& part);

// The document: equal geometries give equal texts.
[[nodiscard]] std::string profile_text(const Geometry& geometry);
// nullopt: the text is no document of that form, such as a profile of the official device plugin.
[[nodiscard]] std::optional<Geometry> read_profile(std::string_view text);

// The key of that document for that node: "gso-<node>-<hash of the node's name>-<hash of node and text>", a label value
// of at most 63 characters. The node's part is cut; the hashes decide.
[[nodiscard]] std::string profile_key(std::string_view node, std::string_view text);
// Whether the operator wrote that key with that text, for whatever node.
[[nodiscard]] bool is_profile_key(std::string_view key, std::string_view text);

// --- The annotation gpusharing.dev/partitioning of a node: what must be remembered of the last move of its profile
// label. It rides in the patch that moves the label, so that no crash separates the two.

struct PartitioningMark {
  static constexpr int kVersion = 1;
  static constexpr std::size_t kMostPods = 64;
  std::string key;        // That the label was moved to.
  std::string good;       // The key before, which the node had shown: the label returns to it if this one fails.
  WallTime moved{};       // When, by the operator's clock. Whole seconds.
  std::string before;     // What the label had before the operator moved it first; empty: nothing.
  bool labelled = false;  // The operator set the node's label nos.nebuly.com/gpu-partitioning beside its former name.
  // A key that the node did not show in time, and how often in succession that was so.
  std::string failed;
  std::int64_t failures = 0;
  // Short hashes of the uids of pods for which the label was moved, one blank between two; kMostPods at most. Behind an
  // @: when, in seconds since 1970, where that was not the last move.
  std::string pods;
  // The annotation is there and cannot be read, or was written by a newer release; every other field is then empty.
  std::string problem;
  friend bool operator==(const PartitioningMark&, const PartitioningMark&) = default;
};

// The annotation's text; equal marks give equal text.
[[nodiscard]] std::string print_mark(const PartitioningMark& mark);
// Of the node; the default where it has none. A node whose annotation cannot be read is left alone: it is not known
// which label it had before, nor which keys it needs.
[[nodiscard]] PartitioningMark mark_of(const Node& node);
// The problem, and the command that lifts it; `problem` is not empty.
[[nodiscard]] std::string unreadable_mark_text(const std::string& node, std::string_view problem);
// The owner had set only the former name of the label and has removed it: what is left was set by the operator.
[[nodiscard]] bool is_withdrawn(const Node& node, const PartitioningMark& mark);

// --- The slices of one node as its labels and annotations report them. Source: nebuly-ai/nos at 12e0a72,
// pkg/gpu/annotation.go: its gpu-agent writes nos.nebuly.com/status-gpu-<index>-<N>gb-used|free on the Node, every 10
// s.

struct GpuSlices {
  SliceCounts used;
  SliceCounts free;
  // Of the annotation gpusharing.dev/devices, else of the label nvidia.com/gpu.memory.
  std::int64_t memory_mib = 0;
};

inline constexpr std::int64_t kMiBPerGiB = 1024;
// The most GiB that slices of that GPU can have together: nos counts its memory in thousands, rounded up, and has cut
// more than there is on most GPUs. Source: nebuly-ai/nos at 12e0a72, pkg/gpu/util.go.
[[nodiscard]] std::int64_t most_cut_by_nos(const GpuSlices& gpu);

struct NodeSlices {
  std::vector<GpuSlices> gpus;  // By index; a GPU without annotations is empty.
  // Why the node cannot be partitioned: a label is missing or no number, or the report makes no sense. Then no GPU has
  // slices, and there is none if their number or memory is unknown. Empty: no problem.
  std::string problem;
  [[nodiscard]] Geometry used() const;
  [[nodiscard]] Geometry all() const;      // Used and free.
  [[nodiscard]] SliceCounts free() const;  // Of all GPUs together.
};
// "2 GPUs of 40960 MiB", "3 GPUs of 15360 to 40960 MiB". For people.
[[nodiscard]] std::string describe_gpus(const NodeSlices& slices);

[[nodiscard]] NodeSlices read_slices(const Node& node);

}  // namespace gso
