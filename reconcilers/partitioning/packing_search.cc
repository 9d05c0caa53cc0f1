// Branch and bound over the pods in their order: each on every node that can have it, or not served.
#include <algorithm>
#include <map>
#include <utility>

#include "reconcilers/partitioning/packing_state.h"

namespace gso {

namespace {

// What makes an answer better, the first difference decides: how many pods of each priority are not served, the GiB
// that are (smaller requests first), and what it costs.
using Score = std::vector<std::int64_t>;

class Search {
 public:
  Search(PackState& state, std::size_t steps) : state_(state), steps_(state.work() + steps) {
    std::map<std::int32_t, std::size_t, std::greater<>> classes;
    for (const PackPod& pod : state.input.pods) classes.try_emplace(pod.priority, 0);
    std::size_t next = 0;
    for (auto& [priority, index] : classes) index = next++;
    for (const PackPod& pod : state.input.pods) class_of_.push_back(classes.at(pod.priority));
    classes_ = next;
  }

  void run() {
    best_ = state_.node_of;
    best_score_ = score_of_state();
    if (cannot_be_better()) return;
    for (std::size_t pod = 0; pod < best_.size(); ++pod) {
      if (state_.node_of[pod]) state_.take(pod);
    }
    Score none(classes_ + 1);
    descend(0, none);
    for (std::size_t pod = 0; pod < best_.size(); ++pod) {
      if (state_.node_of[pod]) state_.take(pod);
    }
    for (std::size_t pod = 0; pod < best_.size(); ++pod) {
      if (best_[pod]) state_.put(pod, *best_[pod]);
    }
  }

 private:
  // All pods are served, nothing is given up for them, and at most one node changes.
  [[nodiscard]] bool cannot_be_better() const {
    const auto costs = best_score_.begin() + static_cast<std::ptrdiff_t>(classes_) + 1;
    const bool all = std::all_of(best_score_.begin(), costs - 1, [](std::int64_t count) { return count == 0; });
    return all && costs[0] == 0 && costs[1] <= 1 && costs[2] == 0;
  }

  // Of the pods that are served now; the others up to `decided` are not, and later ones are taken as served for
  // nothing.
  [[nodiscard]] Score with_costs(const Score& served) const {
    Score out = served;
    std::int64_t destroyed = 0;
    std::int64_t touched = 0;
    std::int64_t disfavoured = 0;
    std::int64_t added = 0;
    for (std::size_t node = 0; node < state_.input.nodes.size(); ++node) {
      const NodePacking& packing = state_.packing(node);
      if (!packing.changed()) continue;
      destroyed += packing.destroyed;
      added += packing.added;
      ++touched;
      disfavoured += state_.input.nodes[node].busy != state_.input.prefer_busy ? 1 : 0;
    }
    out.insert(out.end(), {destroyed, touched, disfavoured, added});
    return out;
  }

  [[nodiscard]] Score score_of_state() const {
    Score served(classes_ + 1);
    for (std::size_t pod = 0; pod < state_.input.pods.size(); ++pod) {
      if (!state_.node_of[pod]) ++served[class_of_[pod]];
      if (state_.node_of[pod]) served[classes_] += gigabytes(pod);
    }
    return with_costs(served);
  }

  [[nodiscard]] std::int64_t gigabytes(std::size_t pod) const {
    std::int64_t out = 0;
    for (const std::int64_t slice : state_.input.pods[pod].slices) out += slice;
    return out;
  }

  void descend(std::size_t pod, Score& served) {
    if (state_.work() > steps_ || with_costs(served) >= best_score_) return;
    if (pod == state_.input.pods.size()) {
      best_ = state_.node_of;
      best_score_ = with_costs(served);
      return;
    }
    // Equal pods are interchangeable: they are served in their order, on nodes in ascending order.
    const bool repeats = pod > 0 && state_.kind(pod - 1) == state_.kind(pod);
    const bool skipped = repeats && !state_.node_of[pod - 1];
    const std::size_t first = repeats && !skipped ? *state_.node_of[pod - 1] : 0;
    if (!skipped) {
      for (const auto& [cost, node] : places(pod, first)) {
        state_.put(pod, node);
        served[classes_] += gigabytes(pod);
        descend(pod + 1, served);
        served[classes_] -= gigabytes(pod);
        state_.take(pod);
      }
    }
    ++served[class_of_[pod]];
    descend(pod + 1, served);
    --served[class_of_[pod]];
  }

  [[nodiscard]] std::vector<std::pair<PackCost, std::size_t>> places(std::size_t pod, std::size_t first) {
    std::vector<std::pair<PackCost, std::size_t>> out;
    for (const std::size_t node : state_.input.admissions[state_.input.pods[pod].admission]) {
      if (node < first) continue;
      if (const auto cost = state_.cost(pod, node)) out.emplace_back(*cost, node);
    }
    std::ranges::sort(out);
    return out;
  }

  PackState& state_;
  std::size_t steps_;
  std::vector<std::size_t> class_of_;  // By pod.
  std::size_t classes_ = 0;
  std::vector<std::optional<std::size_t>> best_;
  Score best_score_;
};

}  // namespace

void search_exhaustively(PackState& state, std::size_t steps) {
  Search(state, steps).run();
}

}  // namespace gso
