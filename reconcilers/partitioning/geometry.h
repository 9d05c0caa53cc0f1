// Which slices each GPU of a node carries, and the two forms of that: the profile document of nos's device plugin, and
// the name of the ConfigMap's key that holds it.
//
// Source: nebuly-ai/nos at 12e0a72, internal/partitioning/mps/partitioner.go (the document).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gso {

using SliceCounts = std::map<std::int64_t, std::int64_t>;  // Size in GiB -> how many, at least 1.
// The sum of the sizes, in GiB.
[[nodiscard]] std::int64_t gigabytes_of(const SliceCounts& slices);
// `by` can be negative; a count that becomes 0 or less is removed.
void add_slices(SliceCounts& slices, std::int64_t gigabytes, std::int64_t by);
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
// The same, for that node: no other node's key, however alike their names are.
[[nodiscard]] bool is_profile_key_of(std::string_view node, std::string_view key, std::string_view text);

}  // namespace gso
