// What can keep a waiting pod off a node, one row for each obstacle: its name, what is said about it, and what to do.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/explain/pod_parts.h"

namespace gso {

// What GFD appends to nvidia.com/gpu.product under sharing without renameByDefault.
inline constexpr std::string_view kSharedProduct = "-SHARED";

// In the order in which a node is looked at, from what makes it no candidate at all to what is nearest to running
// there.
enum class Obstacle {
  not_selected,
  no_gpus,
  not_served,
  renamed,
  too_few,
  refused,
  none_allocatable,
  tainted,
  pressure,
  not_ready,
  cordoned,
  in_change,
  full,
  none,
};

struct Verdict {
  Obstacle obstacle = Obstacle::none;
  std::string text;      // Follows the node's name.
  std::string resource;  // The resource or label that it concerns.
  // How much of the resource the node offers; of not_selected: 0 if the node does not have the label, and more the
  // nearer its value is to the required one.
  std::int64_t most = 0;
  const Taint* taint = nullptr;
  std::vector<std::string> preemptible = {};  // Pods of lower priority that use what the pod requests.
  bool nobody_cuts = false;                   // Of a slice: no node of the cluster is partitioned.
};

// Why the pod's node selector or required node affinity excludes the node; nullopt: it selects the node. In
// pod_selection.cc.
[[nodiscard]] std::optional<Verdict> not_selected_by(const AskedPod& asked, const Node& node);

// The nodes with one obstacle.
struct Candidates {
  Verdict best;                                             // Of the node that offers most.
  std::vector<std::string> nodes;                           // The one of `best` first.
  std::map<std::string, std::vector<std::string>> by_text;  // Verdict::text -> its nodes.
};

struct ObstacleRow {
  Obstacle obstacle;
  std::string_view code;  // CamelCase, stable.
  std::string (*text)(const AskedPod& asked, const Candidates& at);
  Cure (*cure)(const AskedPod& asked, const Candidates& at);
};
// A row for each obstacle, in its order. Obstacle::none has one, too: the scheduler's own reasons (not_placed())
// replace it.
[[nodiscard]] std::span<const ObstacleRow> obstacle_rows();
[[nodiscard]] const ObstacleRow& row_of(Obstacle obstacle);

// What the verdicts say: the only text, or each with its nodes ("is full (a, b); is cordoned (c)").
[[nodiscard]] std::string texts_of(const Candidates& at);

// Sorted: "one node (gpu-1)", "7 nodes (a, b, c, d, e and 2 more)"
[[nodiscard]] std::string where_of(const Candidates& at);

// The other name of the resource: a profile with renameByDefault adds or removes the suffix.
[[nodiscard]] std::string other_name(std::string_view resource);

}  // namespace gso
