// Best fit by decreasing size over the GPUs of a node; where that fails, a bounded search.
#include "reconcilers/partitioning/packing.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace gso {

namespace {

// Of the sizes of the whole plan a node has few, and only those are looked at: indices of sizes count in `here_`.
class Packer {
 public:
  Packer(const std::vector<std::int64_t>& sizes, const PackNode& node, const SizeCounts& demand) : node_(node) {
    SizeCounts supply(sizes.size());
    for (const PackGpu& gpu : node.gpus)
      for (std::size_t t = 0; t < sizes.size(); ++t) supply[t] += gpu.free[t];
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      if (supply[t] == 0 && demand[t] == 0) continue;
      here_.push_back(t);
      sizes_.push_back(sizes[t]);
      bound_.push_back(node.taken[t] + (node.just_taken.empty() ? 0 : node.just_taken[t]));
    }
    surplus_.resize(sizes_.size());
    for (std::size_t i = sizes_.size(); i-- > 0;) {
      const std::size_t t = here_[i];
      const std::int32_t left = supply[t] - demand[t] - node.taken[t];
      // Where bound pods have taken more than there is, the report is late: that is no demand.
      const std::int32_t missing = supply[t] - node.taken[t] >= 0 ? -left : demand[t];
      surplus_[i] = std::max(left, 0);
      missing_.insert(missing_.end(), static_cast<std::size_t>(std::max(missing, 0)), i);
    }
    adds_.resize(missing_.size());
    dropped_.resize(node.gpus.size() * sizes_.size());
    dropped_gigabytes_.resize(node.gpus.size());
    for (const PackGpu& gpu : node.gpus) {
      need_.push_back(-gpu.room);
      for (const std::size_t t : here_) free_.push_back(gpu.free[t]);
    }
  }

  std::optional<NodePacking> run() {
    if (!missing_.empty() && (!node_.changeable || !may_fit())) return std::nullopt;
    if (!place_best_fit() && !search(0, 0)) return std::nullopt;
    if (!missing_.empty()) give_up_excess();
    return result();
  }

 private:
  // Of the search, in choices of a GPU: enough to compare all placements of few slices. With many slices on many GPUs
  // best fit rarely misses a placement, and a node that is full in fact would be searched in vain for each pod.
  static constexpr int kMostSteps = 400;
  static constexpr int kMostStepsOfMany = 24;
  static constexpr std::size_t kFew = 8;

  [[nodiscard]] std::int32_t& dropped(std::size_t g, std::size_t t) { return dropped_[g * sizes_.size() + t]; }
  [[nodiscard]] std::int32_t dropped(std::size_t g, std::size_t t) const { return dropped_[g * sizes_.size() + t]; }

  // Free slices of that size that the GPU can give up in all, those included that it gives up already.
  [[nodiscard]] std::int32_t droppable(std::size_t g, std::size_t t) const {
    const std::int32_t free = free_[g * sizes_.size() + t];
    if (free == 0) return 0;
    // It is not known on which GPU the slices are that bound pods have taken: each might have all of them.
    return std::max(std::min(free - std::min(free, bound_[t]), surplus_[t] + dropped(g, t)), 0);
  }

  // False: no placement exists. Of the slices that are missing, the largest k are each at least as large as the k-th,
  // and no GPU can carry more slices of that size than fit into its room and all that it can give up.
  [[nodiscard]] bool may_fit() const {
    std::vector<std::int64_t> available(node_.gpus.size());
    std::int64_t volume = 0;
    for (std::size_t g = 0; g < available.size(); ++g) {
      available[g] = node_.gpus[g].room;
      for (std::size_t t = 0; t < sizes_.size(); ++t) available[g] += droppable(g, t) * sizes_[t];
      volume += std::max<std::int64_t>(available[g], 0);
    }
    for (std::size_t k = 0; k < missing_.size(); ++k) {
      const std::int64_t size = sizes_[missing_[k]];
      volume -= size;
      if (volume < 0) return false;
      const bool last_of_size = k + 1 == missing_.size() || missing_[k + 1] != missing_[k];
      if (!last_of_size) continue;
      std::int64_t places = 0;
      for (const std::int64_t gigabytes : available) places += gigabytes >= size ? gigabytes / size : 0;
      if (places <= static_cast<std::int64_t>(k)) return false;
    }
    return true;
  }

  // The fewest GiB of its free slices, `need` or more, that the GPU can give up; nullopt: it has not as many.
  [[nodiscard]] std::optional<std::int64_t> least_drop(std::size_t g, std::int64_t need) {
    if (need <= 0) return 0;
    std::int64_t total = 0;
    for (std::size_t t = 0; t < sizes_.size(); ++t) total += droppable(g, t) * sizes_[t];
    if (total < need) return std::nullopt;
    if (total == need) return total;
    // sums_[v]: some of these slices make up exactly v GiB.
    sums_.assign(static_cast<std::size_t>(total) + 1, 0);
    sums_[0] = 1;
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      const auto size = static_cast<std::size_t>(sizes_[t]);
      for (std::int32_t k = droppable(g, t); k > 0; --k)
        for (std::size_t v = sums_.size(); v-- > size;) sums_[v] |= sums_[v - size];
    }
    auto v = static_cast<std::size_t>(need);
    while (sums_[v] == 0) ++v;  // All of them make up `total`, which is enough.
    return static_cast<std::int64_t>(v);
  }

  // The fewest slices that the GPU can give up to make up exactly `gigabytes`, which least_drop() has found.
  [[nodiscard]] SizeCounts slices_of_drop(std::size_t g, std::int64_t gigabytes) const {
    SizeCounts out(sizes_.size());
    if (gigabytes == 0) return out;
    constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max() / 2;
    const auto width = static_cast<std::size_t>(gigabytes) + 1;
    // fewest[v]: how many slices make up exactly v GiB; by size: how many of that size are among them.
    std::vector<std::int32_t> fewest(width, kNever);
    std::vector<std::vector<std::int32_t>> chosen(sizes_.size());
    fewest[0] = 0;
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      const std::int32_t most = droppable(g, t);
      if (most == 0) continue;
      chosen[t].resize(width);
      std::vector<std::int32_t> next = fewest;
      for (std::size_t v = 0; v < width; ++v) {
        for (std::int32_t k = 1; k <= most && static_cast<std::size_t>(k * sizes_[t]) <= v; ++k) {
          const std::int32_t with = fewest[v - static_cast<std::size_t>(k * sizes_[t])] + k;
          if (with < next[v]) std::tie(next[v], chosen[t][v]) = std::pair(with, k);
        }
      }
      fewest = std::move(next);
    }
    auto v = static_cast<std::size_t>(gigabytes);
    for (std::size_t t = sizes_.size(); t-- > 0;) {
      if (chosen[t].empty()) continue;
      out[t] = chosen[t][v];
      v -= static_cast<std::size_t>(out[t] * sizes_[t]);
    }
    return out;
  }

  // A GPU that can carry one more slice: smaller is better.
  struct Choice {
    std::int64_t cost = 0;  // GiB of free slices that are given up in addition.
    std::int64_t left = 0;  // GiB that remain on the GPU.
    std::size_t gpu = 0;
    friend auto operator<=>(const Choice&, const Choice&) = default;
  };
  [[nodiscard]] std::optional<Choice> choice(std::size_t g, std::size_t t) {
    const std::int64_t need = need_[g] + sizes_[t];
    const auto drop = least_drop(g, need);
    if (!drop) return std::nullopt;
    return Choice{*drop - dropped_gigabytes_[g], *drop - need, g};
  }

  // The GPU carries one more slice of that size.
  void add(const Choice& choice, std::size_t t) {
    need_[choice.gpu] += sizes_[t];
    const std::int64_t gigabytes = dropped_gigabytes_[choice.gpu] + choice.cost;
    if (gigabytes > 0 || dropped_gigabytes_[choice.gpu] > 0)
      give_up(choice.gpu, slices_of_drop(choice.gpu, gigabytes), gigabytes);
  }

  // These slices of the GPU are given up, in place of those that were before.
  void give_up(std::size_t g, const SizeCounts& slices, std::int64_t gigabytes) {
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      surplus_[t] += dropped(g, t) - slices[t];
      dropped(g, t) = slices[t];
    }
    dropped_gigabytes_[g] = gigabytes;
  }

  [[nodiscard]] bool place_best_fit() {
    for (std::size_t i = 0; i < missing_.size(); ++i) {
      std::optional<Choice> best;
      for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
        const auto here = choice(g, missing_[i]);
        if (here && (!best || *here < *best)) best = here;
      }
      if (!best) {
        undo(i);
        return false;
      }
      adds_[i] = best->gpu;
      add(*best, missing_[i]);
    }
    return true;
  }

  void give_up_excess() {
    for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
      if (need_[g] <= dropped_gigabytes_[g]) continue;
      std::int64_t most = 0;
      for (std::size_t t = 0; t < sizes_.size(); ++t) most += droppable(g, t) * sizes_[t];
      const std::int64_t gigabytes = least_drop(g, std::min(need_[g], most)).value_or(0);
      give_up(g, slices_of_drop(g, gigabytes), gigabytes);
    }
  }

  void undo(std::size_t placed) {
    for (std::size_t i = 0; i < placed; ++i) need_[adds_[i]] -= sizes_[missing_[i]];
    const SizeCounts none(sizes_.size());
    for (std::size_t g = 0; g < node_.gpus.size(); ++g) give_up(g, none, 0);
  }

  // Tries the GPUs of each slice, the best first, until all have one. Equal slices go to GPUs in ascending order.
  [[nodiscard]] bool search(std::size_t i, std::size_t first_gpu) {
    if (i == missing_.size()) return true;
    if (++steps_ > (missing_.size() <= kFew ? kMostSteps : kMostStepsOfMany)) return false;
    std::vector<Choice> choices;
    for (std::size_t g = first_gpu; g < node_.gpus.size(); ++g)
      if (const auto here = choice(g, missing_[i])) choices.push_back(*here);
    std::ranges::sort(choices);
    for (const Choice& choice : choices) {
      const std::size_t g = choice.gpu;
      const SizeCounts before(&dropped(g, 0), &dropped(g, 0) + sizes_.size());
      const std::int64_t gigabytes_before = dropped_gigabytes_[g];
      add(choice, missing_[i]);
      adds_[i] = g;
      const bool same_next = i + 1 < missing_.size() && missing_[i + 1] == missing_[i];
      if (search(i + 1, same_next ? g : 0)) return true;
      need_[g] -= sizes_[missing_[i]];
      give_up(g, before, gigabytes_before);
    }
    return false;
  }

  [[nodiscard]] NodePacking result() const {
    NodePacking out;
    for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
      out.free.push_back(node_.gpus[g].free);
      for (std::size_t t = 0; t < sizes_.size(); ++t) out.free[g][here_[t]] -= dropped(g, t);
      out.destroyed += dropped_gigabytes_[g];
      out.rooms.push_back(dropped_gigabytes_[g] - need_[g]);
    }
    for (std::size_t i = 0; i < missing_.size(); ++i) {
      ++out.free[adds_[i]][here_[missing_[i]]];
      out.added += sizes_[missing_[i]];
    }
    return out;
  }

  const PackNode& node_;
  std::vector<std::size_t> here_;                // Indices of PackInput::sizes.
  std::vector<std::int64_t> sizes_;              // These, in GiB.
  SizeCounts free_;                              // By GPU and size.
  std::vector<std::int64_t> need_;               // By GPU: GiB that its free slices must give up; negative: its room.
  SizeCounts dropped_;                           // By GPU and size: free slices that are given up.
  std::vector<std::int64_t> dropped_gigabytes_;  // By GPU: what these make up.
  SizeCounts surplus_;                           // Free slices of the node that nothing needs and nothing has given up.
  SizeCounts bound_;                             // Free slices that bound pods have taken, or might have.
  std::vector<std::size_t> missing_;             // Slices to be added, by decreasing size.
  std::vector<std::size_t> adds_;                // The GPU of each.
  std::vector<char> sums_;                       // Of least_drop(), kept for its memory.
  int steps_ = 0;
};

}  // namespace

std::optional<NodePacking> pack_node(const std::vector<std::int64_t>& sizes, const PackNode& node,
                                     const SizeCounts& demand) {
  return Packer(sizes, node, demand).run();
}

}  // namespace gso
