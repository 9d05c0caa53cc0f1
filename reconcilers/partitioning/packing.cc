// Pods in their order, each at its cheapest place; then fewer nodes; then, for few pods, all other answers.
#include "reconcilers/partitioning/packing.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "reconcilers/partitioning/packing_state.h"

namespace gso {

namespace {

// Bounds of the work, in evaluations of nodes. Within them the answer does not depend on the machine.
constexpr std::size_t kMostMoves = 60'000;
constexpr std::size_t kSearchSteps = 12'000;
constexpr std::size_t kSearchPods = 24;

class Greedy {
 public:
  explicit Greedy(PackState& state) : state_(state) {}

  void run() {
    std::set<std::size_t> hopeless;  // Kinds of pods: as others are served, less is left for them.
    for (std::size_t pod = 0; pod < state_.input.pods.size(); ++pod) {
      if (hopeless.contains(state_.kind(pod))) continue;
      if (!serve(pod)) hopeless.insert(state_.kind(pod));
    }
    empty_nodes();
  }

 private:
  // Nodes that one search for a place has asked.
  class Visited {
   public:
    explicit Visited(std::size_t nodes) : seen_(nodes) {}
    [[nodiscard]] std::size_t size() const { return count_; }
    // False: it was there.
    bool insert(std::size_t node) {
      if (seen_[node]) return false;
      seen_[node] = true;
      ++count_;
      return true;
    }

   private:
    std::vector<bool> seen_;
    std::size_t count_ = 0;
  };

  bool serve(std::size_t pod) {
    const auto place = state_.best_place(pod);
    if (place && place->cost.added == 0) {
      state_.put(pod, place->node);
      return true;
    }
    Visited visited(state_.input.nodes.size());
    if (displace(pod, visited)) return true;
    if (place) {
      state_.put(pod, place->node);
      return true;
    }
    return eject(pod);
  }

  [[nodiscard]] bool may_work() const { return state_.work() < kMostMoves + state_.input.nodes.size() * 64; }

  // Takes the place of an equal pod that finds a free slice elsewhere, directly or in the same way: an augmenting path.
  // Each pod of the path keeps its place until the next one has gone, or two pods would be given the same slice.
  bool displace(std::size_t pod, Visited& visited) {
    constexpr std::size_t kMostDepth = 32;
    if (visited.size() > kMostDepth) return false;
    for (const std::size_t node : admission(pod)) {
      if (!may_work() || !visited.insert(node)) continue;
      std::set<std::size_t> asked;
      const std::vector<std::size_t> there = state_.pods_on[node];
      for (const std::size_t other : there) {
        const bool equal = state_.input.pods[other].slices == state_.input.pods[pod].slices;
        if (!equal || state_.kind(other) == state_.kind(pod) || !asked.insert(state_.kind(other)).second) continue;
        const auto place = state_.best_place(other, node);
        if (place && place->cost.added == 0) {
          state_.move(other, place->node);
        } else if (!displace(other, visited)) {
          continue;
        }
        if (state_.node_of[pod]) state_.take(pod);
        state_.put(pod, node);
        return true;
      }
    }
    return false;
  }

  // Moves one pod to another node to make room, where that costs least.
  bool eject(std::size_t pod) {
    struct Move {
      PackCost cost;
      std::size_t node = 0, leaving = 0, to = 0;
    };
    std::optional<Move> best;
    for (const std::size_t node : state_.input.admissions[state_.input.pods[pod].admission]) {
      std::set<std::size_t> asked;
      for (const std::size_t other : state_.pods_on[node]) {
        if (!may_work()) break;
        if (!asked.insert(state_.kind(other)).second) continue;
        const auto to = state_.best_place(other, node);
        if (!to || (best && best->cost <= to->cost) || !state_.fits_instead(pod, other, node)) continue;
        best = Move{to->cost, node, other, to->node};
      }
    }
    if (!best) return false;
    state_.move(best->leaving, best->to);
    state_.put(pod, best->node);
    return true;
  }

  // Nodes that change for few pods need not change if these find places on other nodes that change anyway.
  void empty_nodes() {
    std::vector<std::pair<std::size_t, std::size_t>> touched;
    for (std::size_t node = 0; node < state_.input.nodes.size(); ++node) {
      if (state_.packing(node).changed()) touched.emplace_back(state_.pods_on[node].size(), node);
    }
    std::ranges::sort(touched);
    for (const auto& [count, node] : touched) {
      if (may_work()) empty(node);
    }
  }

  void empty(std::size_t node) {
    std::vector<std::size_t> pods = state_.pods_on[node];
    std::ranges::sort(pods, std::greater<>());  // Larger requests come later in the order of pods.
    for (const std::size_t pod : pods) state_.take(pod);
    const bool found = std::ranges::all_of(pods, [&](std::size_t pod) {
      const auto here = state_.cost(pod, node);
      if (here && here->added == 0 && std::ranges::binary_search(admission(pod), node)) {
        state_.put(pod, node);
        return true;
      }
      const auto place = state_.best_place(pod, node);
      if (!place || place->cost.destroyed > 0 || place->cost.touched > 0) return false;
      state_.put(pod, place->node);
      return true;
    });
    if (found) return;
    for (const std::size_t pod : pods) {
      if (state_.node_of[pod]) state_.take(pod);
    }
    std::ranges::sort(pods);
    for (const std::size_t pod : pods) state_.put(pod, node);
  }

  [[nodiscard]] const std::vector<std::size_t>& admission(std::size_t pod) const {
    return state_.input.admissions[state_.input.pods[pod].admission];
  }

  PackState& state_;
};

Packing best_packing(const PackInput& input) {
  PackState state(input);
  Greedy(state).run();
  if (input.pods.size() <= kSearchPods) search_exhaustively(state, kSearchSteps);
  Packing out;
  out.node_of = state.node_of;
  for (std::size_t node = 0; node < input.nodes.size(); ++node) out.nodes.push_back(state.packing(node));
  return out;
}

// How many pods of each priority are served, the highest priority first.
std::map<std::int32_t, std::int64_t, std::greater<>> served_by_priority(const PackInput& input,
                                                                        const Packing& packing) {
  std::map<std::int32_t, std::int64_t, std::greater<>> out;
  for (std::size_t p = 0; p < input.pods.size(); ++p) out[input.pods[p].priority] += packing.node_of[p] ? 1 : 0;
  return out;
}

}  // namespace

Packing pack(const PackInput& input) {
  Packing out = best_packing(input);
  if (std::ranges::none_of(out.nodes, &NodePacking::changed)) return out;
  // What serves no more pods than the present slices is no reason to change a node: a plan over the result of a plan is
  // silent.
  PackInput as_it_is = input;
  for (PackNode& node : as_it_is.nodes) node.changeable = false;
  Packing held = best_packing(as_it_is);
  return served_by_priority(input, held) >= served_by_priority(input, out) ? held : out;
}

}  // namespace gso
