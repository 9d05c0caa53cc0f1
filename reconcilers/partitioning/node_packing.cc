// Best fit by decreasing size over the GPUs of a node; where that fails, a bounded search.
#include "reconcilers/partitioning/node_packing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace gso {

namespace {

// Which free slices of a GPU are given up.
struct Drop {
  SizeCounts slices;
  std::int64_t gigabytes = 0;
};

class Packer {
 public:
  Packer(const std::vector<std::int64_t>& sizes, const PackNode& node, const SizeCounts& demand)
      : sizes_(sizes), node_(node), need_(node.gpus.size()), drops_(node.gpus.size()), surplus_(sizes.size()) {
    SizeCounts supply(sizes.size());
    for (const PackGpu& gpu : node.gpus) {
      for (std::size_t t = 0; t < sizes.size(); ++t) supply[t] += gpu.free[t];
    }
    for (std::size_t t = sizes.size(); t-- > 0;) {
      const std::int32_t left = supply[t] - demand[t] - node.taken[t];
      // Where bound pods have taken more than there is, the report is late: that is no demand.
      const std::int32_t missing = supply[t] - node.taken[t] >= 0 ? -left : demand[t];
      surplus_[t] = std::max(left, 0);
      for (std::int32_t i = 0; i < missing; ++i) missing_.push_back(t);
    }
    for (std::size_t g = 0; g < node.gpus.size(); ++g) {
      need_[g] = -node.gpus[g].room;
      drops_[g].slices.resize(sizes.size());
    }
    adds_.resize(missing_.size());
  }

  std::optional<NodePacking> run() {
    if (!missing_.empty() && (!node_.changeable || !fits_by_volume())) return std::nullopt;
    if (!place_best_fit() && !search(0, 0)) return std::nullopt;
    return result();
  }

 private:
  // Of the search, in choices of a GPU: enough to compare all placements of few slices. With many slices on many GPUs
  // best fit rarely misses a placement, and a node that is full in fact would be searched in vain for each pod.
  static constexpr int kMostSteps = 400;
  static constexpr int kMostStepsOfMany = 24;
  static constexpr std::size_t kFew = 8;

  [[nodiscard]] std::int64_t droppable(std::size_t g, std::size_t t) const {
    const std::int32_t taken = node_.taken[t];
    const std::int32_t free = node_.gpus[g].free[t];
    // It is not known on which GPU the slices are that bound pods have taken: each might have all of them.
    return std::min(free - std::min(free, taken), surplus_[t] + drops_[g].slices[t]);
  }

  [[nodiscard]] bool fits_by_volume() const {
    std::int64_t wanted = 0;
    for (const std::size_t t : missing_) wanted += sizes_[t];
    std::int64_t available = 0;
    for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
      std::int64_t room = node_.gpus[g].room;
      for (std::size_t t = 0; t < sizes_.size(); ++t) room += droppable(g, t) * sizes_[t];
      available += std::max<std::int64_t>(room, 0);
    }
    return wanted <= available;
  }

  // The free slices of a GPU that give at least `need` GiB: the fewest GiB, then the fewest slices.
  [[nodiscard]] std::optional<Drop> least_drop(std::size_t g, std::int64_t need) const {
    Drop out{SizeCounts(sizes_.size()), 0};
    if (need <= 0) return out;
    std::int64_t total = 0;
    SizeCounts most(sizes_.size());
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      most[t] = static_cast<std::int32_t>(std::max<std::int64_t>(droppable(g, t), 0));
      total += most[t] * sizes_[t];
    }
    if (total < need) return std::nullopt;
    constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max() / 2;
    const auto width = static_cast<std::size_t>(total) + 1;
    // fewest[v]: how many slices make up exactly v GiB; by size: how many of that size are among them.
    std::vector<std::int32_t> fewest(width, kNever);
    std::vector<std::vector<std::int32_t>> chosen(sizes_.size());
    fewest[0] = 0;
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      if (most[t] == 0) continue;
      chosen[t].resize(width);
      std::vector<std::int32_t> next = fewest;
      for (std::size_t v = 0; v < width; ++v) {
        for (std::int32_t k = 1; k <= most[t] && static_cast<std::size_t>(k * sizes_[t]) <= v; ++k) {
          const std::int32_t with = fewest[v - static_cast<std::size_t>(k * sizes_[t])] + k;
          if (with < next[v]) std::tie(next[v], chosen[t][v]) = std::pair(with, k);
        }
      }
      fewest = std::move(next);
    }
    auto v = static_cast<std::size_t>(need);
    while (fewest[v] >= kNever) ++v;  // All of them make up `total`, which is enough.
    out.gigabytes = static_cast<std::int64_t>(v);
    for (std::size_t t = sizes_.size(); t-- > 0;) {
      if (chosen[t].empty()) continue;
      out.slices[t] = chosen[t][v];
      v -= static_cast<std::size_t>(out.slices[t] * sizes_[t]);
    }
    return out;
  }

  struct Choice {
    std::int64_t cost = 0;  // GiB of free slices that are given up in addition.
    std::int64_t left = 0;  // GiB that remain on the GPU.
    std::size_t gpu = 0;
    Drop drop;
  };
  // The GPUs that can carry one more slice of that size, the best first.
  [[nodiscard]] std::vector<Choice> choices(std::size_t t) const {
    std::vector<Choice> out;
    for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
      const std::int64_t need = need_[g] + sizes_[t];
      auto drop = least_drop(g, need);
      if (!drop) continue;
      const std::int64_t cost = drop->gigabytes - drops_[g].gigabytes;
      const std::int64_t left = drop->gigabytes - need;
      out.push_back({cost, left, g, *std::move(drop)});
    }
    std::ranges::sort(out, {}, [](const Choice& c) { return std::tuple(c.cost, c.left, c.gpu); });
    return out;
  }

  // Replaces what the GPU gives up; returns what it gave up before.
  Drop exchange(std::size_t g, Drop drop) {
    for (std::size_t t = 0; t < sizes_.size(); ++t) surplus_[t] += drops_[g].slices[t] - drop.slices[t];
    return std::exchange(drops_[g], std::move(drop));
  }

  bool place_best_fit() {
    for (std::size_t i = 0; i < missing_.size(); ++i) {
      std::vector<Choice> possible = choices(missing_[i]);
      if (possible.empty()) {
        undo(i);
        return false;
      }
      adds_[i] = possible.front().gpu;
      need_[adds_[i]] += sizes_[missing_[i]];
      exchange(adds_[i], std::move(possible.front().drop));
    }
    return true;
  }

  void undo(std::size_t placed) {
    for (std::size_t i = 0; i < placed; ++i) need_[adds_[i]] -= sizes_[missing_[i]];
    for (std::size_t g = 0; g < node_.gpus.size(); ++g) exchange(g, Drop{SizeCounts(sizes_.size()), 0});
  }

  // Tries the GPUs of each slice, the best first, until all have one. Equal slices go to GPUs in ascending order.
  bool search(std::size_t i, std::size_t first_gpu) {
    if (i == missing_.size()) return true;
    if (++steps_ > (missing_.size() <= kFew ? kMostSteps : kMostStepsOfMany)) return false;
    for (Choice& choice : choices(missing_[i])) {
      const std::size_t g = choice.gpu;
      if (g < first_gpu) continue;
      need_[g] += sizes_[missing_[i]];
      Drop before = exchange(g, std::move(choice.drop));
      adds_[i] = g;
      const bool same_next = i + 1 < missing_.size() && missing_[i + 1] == missing_[i];
      if (search(i + 1, same_next ? g : 0)) return true;
      need_[g] -= sizes_[missing_[i]];
      exchange(g, std::move(before));
    }
    return false;
  }

  [[nodiscard]] NodePacking result() const {
    NodePacking out;
    for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
      out.free.push_back(node_.gpus[g].free);
      for (std::size_t t = 0; t < sizes_.size(); ++t) out.free[g][t] -= drops_[g].slices[t];
      out.destroyed += drops_[g].gigabytes;
      out.rooms.push_back(drops_[g].gigabytes - need_[g]);
    }
    for (std::size_t i = 0; i < missing_.size(); ++i) {
      ++out.free[adds_[i]][missing_[i]];
      out.added += sizes_[missing_[i]];
    }
    return out;
  }

  const std::vector<std::int64_t>& sizes_;
  const PackNode& node_;
  std::vector<std::int64_t> need_;    // By GPU: GiB that its free slices must give up; negative: its room.
  std::vector<Drop> drops_;           // By GPU.
  SizeCounts surplus_;                // Free slices of the node that nothing needs and nothing has given up.
  std::vector<std::size_t> missing_;  // Slices to be added, by decreasing size.
  std::vector<std::size_t> adds_;     // The GPU of each.
  int steps_ = 0;
};

}  // namespace

std::optional<NodePacking> pack_node(const std::vector<std::int64_t>& sizes, const PackNode& node,
                                     const SizeCounts& demand) {
  return Packer(sizes, node, demand).run();
}

}  // namespace gso
