// Pods in their order, each at its cheapest place; then fewer nodes; then, for few pods, all other answers.
#include "reconcilers/partitioning/packing.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace gso {

SizeCounts counts_of(const std::vector<std::int64_t>& sizes, std::span<const std::int64_t> slices) {
  SizeCounts out(sizes.size());
  for (const std::int64_t slice : slices)
    ++out[static_cast<std::size_t>(std::ranges::lower_bound(sizes, slice) - sizes.begin())];
  return out;
}

namespace {

// What serving a pod on a node costs, the first difference decides.
struct PackCost {
  std::int64_t destroyed = 0;    // GiB of free slices given up.
  std::int64_t touched = 0;      // Nodes that change and did not before.
  std::int64_t disfavoured = 0;  // Such nodes that are busy (or idle: PackInput::prefer_busy).
  std::int64_t added = 0;        // GiB of new slices.
  std::int64_t left = 0;         // Room that remains on the GPUs that get them.
  friend auto operator<=>(const PackCost&, const PackCost&) = default;
};

// A partial answer: which pods are where, and what one more would cost.
class PackState {
 public:
  explicit PackState(const PackInput& the_input)
      : input(the_input),
        node_of(the_input.pods.size()),
        pods_on(the_input.nodes.size()),
        nodes_(the_input.nodes.size()),
        versions_(the_input.nodes.size()) {
    std::map<std::vector<std::int64_t>, std::size_t> known;
    std::map<std::tuple<std::int32_t, std::size_t, std::size_t>, std::size_t> kinds;
    for (const PackPod& pod : input.pods) {
      const auto [at, is_new] = known.try_emplace(pod.slices, known.size());
      if (is_new) signatures_.push_back(counts_of(input.sizes, pod.slices));
      signature_of_.push_back(at->second);
      kinds_.push_back(kinds.try_emplace({pod.priority, at->second, pod.admission}, kinds.size()).first->second);
    }
    answers_.assign(signatures_.size(), std::vector<Answer>(nodes_.size()));
    for (std::size_t n = 0; n < nodes_.size(); ++n) set_demand(n, SizeCounts(input.sizes.size()));
  }

  const PackInput& input;
  std::vector<std::optional<std::size_t>> node_of;  // By pod.
  std::vector<std::vector<std::size_t>> pods_on;    // By node, in the order of their arrival.

  [[nodiscard]] const NodePacking& packing(std::size_t node) const { return nodes_[node].packing; }
  // The nodes that the pod can be on, ascending.
  [[nodiscard]] const std::vector<std::size_t>& admission(std::size_t pod) const {
    return input.admissions[input.pods[pod].admission];
  }
  // Pods with equal values ask for the same and can be on the same nodes.
  [[nodiscard]] std::size_t kind(std::size_t pod) const { return kinds_[pod]; }
  // Evaluations of nodes so far: the measure of work.
  [[nodiscard]] std::size_t work() const { return work_; }

  // nullopt: the pod cannot be on the node beside the others there. Remembered until the node changes.
  [[nodiscard]] std::optional<PackCost> cost(std::size_t pod, std::size_t node) {
    Answer& answer = answers_[signature_of_[pod]][node];
    if (answer.version != versions_[node]) answer = {versions_[node], find_cost(pod, node)};
    return answer.cost;
  }

  // The cheapest node for the pod, other than `except`; nullopt: none.
  struct Place {
    std::size_t node = 0;
    PackCost cost;
  };
  [[nodiscard]] std::optional<Place> best_place(std::size_t pod, std::optional<std::size_t> except = std::nullopt) {
    std::optional<Place> best;
    for (const std::size_t node : admission(pod)) {
      if (node == except) continue;
      const auto here = cost(pod, node);
      if (here && (!best || *here < best->cost)) best = Place{node, *here};
    }
    return best;
  }

  // A node for the pod without a comparison of all: one with free slices, else the next one that gives up none for it,
  // else one on which it fits.
  [[nodiscard]] std::optional<std::size_t> any_place(std::size_t pod) {
    const std::vector<std::size_t>& nodes = admission(pod);
    for (const std::size_t node : nodes)
      if (has_spare(pod, node) && cost(pod, node)) return node;
    std::optional<std::size_t> fits;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      next_ = (next_ + (i > 0 ? 1 : 0)) % nodes.size();
      const auto here = cost(pod, nodes[next_]);
      if (here && here->destroyed == 0) return nodes[next_];
      if (here && !fits) fits = nodes[next_];
    }
    return fits;
  }

  // The pod fits on the node once `leaving` has left it.
  [[nodiscard]] bool fits_instead(std::size_t pod, std::size_t leaving, std::size_t node) {
    ++work_;
    const SizeCounts demand = with(with(nodes_[node].demand, leaving, -1), pod, 1);
    return pack_node(input.sizes, input.nodes[node], demand).has_value();
  }

  // It must fit.
  void put(std::size_t pod, std::size_t node) {
    node_of[pod] = node;
    pods_on[node].push_back(pod);
    set_demand(node, with(nodes_[node].demand, pod, 1));
  }
  // If it is on one.
  void take(std::size_t pod) {
    if (!node_of[pod]) return;
    const std::size_t node = *std::exchange(node_of[pod], std::nullopt);
    std::erase(pods_on[node], pod);
    set_demand(node, with(nodes_[node].demand, pod, -1));
  }
  void move(std::size_t pod, std::size_t node) {
    take(pod);
    put(pod, node);
  }

 private:
  struct Answer {
    std::uint64_t version = 0;  // Of the node when it was found; 0: none yet.
    std::optional<PackCost> cost;
  };
  struct NodeState {
    SizeCounts demand;
    NodePacking packing;
  };

  // The node has free slices for the pod that neither bound pods nor the others there need.
  [[nodiscard]] bool has_spare(std::size_t pod, std::size_t node) const {
    const SizeCounts& wanted = signatures_[signature_of_[pod]];
    const PackNode& there = input.nodes[node];
    for (std::size_t t = 0; t < wanted.size(); ++t) {
      if (wanted[t] == 0) continue;
      std::int32_t spare = -there.taken[t] - nodes_[node].demand[t];
      for (const PackGpu& gpu : there.gpus) spare += gpu.free[t];
      if (spare < wanted[t]) return false;
    }
    return true;
  }

  [[nodiscard]] SizeCounts with(const SizeCounts& demand, std::size_t pod, std::int32_t by) const {
    SizeCounts out = demand;
    const SizeCounts& wanted = signatures_[signature_of_[pod]];
    for (std::size_t t = 0; t < out.size(); ++t) out[t] += by * wanted[t];
    return out;
  }

  [[nodiscard]] std::optional<PackCost> find_cost(std::size_t pod, std::size_t node) {
    ++work_;
    const auto after = pack_node(input.sizes, input.nodes[node], with(nodes_[node].demand, pod, 1));
    if (!after) return std::nullopt;
    const NodePacking& before = nodes_[node].packing;
    PackCost out;
    out.destroyed = after->destroyed - before.destroyed;
    out.touched = after->changed() && !before.changed() ? 1 : 0;
    out.disfavoured = out.touched > 0 && input.nodes[node].busy != input.prefer_busy ? 1 : 0;
    out.added = after->added - before.added;
    for (std::size_t g = 0; g < after->rooms.size(); ++g)
      if (after->free[g] != before.free[g]) out.left += after->rooms[g];
    return out;
  }

  void set_demand(std::size_t node, SizeCounts demand) {
    NodeState& state = nodes_[node];
    ++work_;
    if (auto packing = pack_node(input.sizes, input.nodes[node], demand)) state.packing = *std::move(packing);
    state.demand = std::move(demand);
    ++versions_[node];
  }

  std::vector<NodeState> nodes_;
  std::vector<std::uint64_t> versions_;       // By node: counts its changes, from 1.
  std::vector<std::vector<Answer>> answers_;  // By signature and node, so that a pod's nodes lie side by side.
  std::vector<SizeCounts> signatures_;        // What a pod asks for.
  std::vector<std::size_t> signature_of_;
  std::vector<std::size_t> kinds_;
  std::size_t work_ = 0;
  std::size_t next_ = 0;  // Of any_place(): where it found the last one, in the list of nodes.
};

// Bounds of the work, in evaluations of nodes. Within them the answer does not depend on the machine. Beyond the first
// one a pod gets the first place that is found, and beyond the last one pods wait.
constexpr std::size_t kMostCompared = 60'000;
constexpr std::size_t kMostComparedOfNode = 64;
constexpr std::size_t kMostAsCompared = 3;  // Times as many.
constexpr std::size_t kSearchSteps = 12'000;
constexpr std::size_t kSearchPods = 24;

class Greedy {
 public:
  explicit Greedy(PackState& state) : state_(state) {}

  void run() {
    std::set<std::size_t> hopeless;  // Kinds of pods: as others are served, less is left for them.
    const std::size_t pods = state_.input.pods.size();
    for (planned = 0; planned < pods && state_.work() < kMostAsCompared * most_compared(); ++planned) {
      if (may_work()) compared = planned + 1;
      if (hopeless.contains(state_.kind(planned))) continue;
      if (!serve(planned)) hopeless.insert(state_.kind(planned));
    }
    empty_nodes();
  }

  std::size_t compared = 0;  // Packing::compared, planned.
  std::size_t planned = 0;

 private:
  // Nodes that one search for a place has asked.
  struct Visited {
    std::vector<bool> nodes;
    std::size_t count = 0;
  };

  bool serve(std::size_t pod) {
    if (!may_work()) {
      const auto node = state_.any_place(pod);
      if (node) state_.put(pod, *node);
      return node.has_value();
    }
    const auto place = state_.best_place(pod);
    if (place && place->cost.added == 0) {
      state_.put(pod, place->node);
      return true;
    }
    Visited visited{std::vector<bool>(state_.input.nodes.size())};
    if (displace(pod, visited)) return true;
    if (place) {
      state_.put(pod, place->node);
      return true;
    }
    return eject(pod);
  }

  [[nodiscard]] std::size_t most_compared() const {
    return kMostCompared + state_.input.nodes.size() * kMostComparedOfNode;
  }
  [[nodiscard]] bool may_work() const { return state_.work() < most_compared(); }

  // Takes the place of an equal pod that finds a free slice elsewhere, directly or in the same way: an augmenting path.
  // Each pod of the path keeps its place until the next one has gone, or two pods would be given the same slice.
  bool displace(std::size_t pod, Visited& visited) {
    constexpr std::size_t kMostDepth = 32;
    if (visited.count > kMostDepth) return false;
    for (const std::size_t node : state_.admission(pod)) {
      if (!may_work() || visited.nodes[node]) continue;
      visited.nodes[node] = true;
      ++visited.count;
      std::set<std::size_t> asked;
      const std::vector<std::size_t> there = state_.pods_on[node];
      for (const std::size_t other : there) {
        const bool equal = state_.input.pods[other].slices == state_.input.pods[pod].slices;
        if (!equal || state_.kind(other) == state_.kind(pod) || !asked.insert(state_.kind(other)).second) continue;
        const auto place = state_.best_place(other, node);
        if (place && place->cost.added == 0)
          state_.move(other, place->node);
        else if (!displace(other, visited))
          continue;
        state_.move(pod, node);
        return true;
      }
    }
    return false;
  }

  // Moves one pod to another node to make room, where that costs least.
  bool eject(std::size_t pod) {
    struct Ejection {
      PackCost cost;
      std::size_t node = 0, leaving = 0, to = 0;
    };
    std::optional<Ejection> best;
    for (const std::size_t node : state_.admission(pod)) {
      std::set<std::size_t> asked;
      for (const std::size_t other : state_.pods_on[node]) {
        if (!may_work()) break;
        if (!asked.insert(state_.kind(other)).second) continue;
        const auto to = state_.best_place(other, node);
        if (!to || (best && best->cost <= to->cost) || !state_.fits_instead(pod, other, node)) continue;
        best = Ejection{to->cost, node, other, to->node};
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
    for (std::size_t node = 0; node < state_.input.nodes.size(); ++node)
      if (state_.packing(node).changed()) touched.emplace_back(state_.pods_on[node].size(), node);
    std::ranges::sort(touched);
    for (const auto& [count, node] : touched)
      if (may_work()) empty(node);
  }

  void empty(std::size_t node) {
    std::vector<std::size_t> pods = state_.pods_on[node];
    std::ranges::sort(pods, std::greater<>());  // Larger requests come later in the order of pods.
    for (const std::size_t pod : pods) state_.take(pod);
    const bool found = std::ranges::all_of(pods, [&](std::size_t pod) {
      const auto here = state_.cost(pod, node);
      if (here && here->added == 0 && std::ranges::binary_search(state_.admission(pod), node)) {
        state_.put(pod, node);
        return true;
      }
      const auto place = state_.best_place(pod, node);
      if (!place || place->cost.destroyed > 0 || place->cost.touched > 0) return false;
      state_.put(pod, place->node);
      return true;
    });
    if (found) return;
    for (const std::size_t pod : pods) state_.take(pod);
    std::ranges::sort(pods);
    for (const std::size_t pod : pods) state_.put(pod, node);
  }

  PackState& state_;
};

// Branch and bound over the pods in their order: each on every node that can have it, or not served.

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
    for (std::size_t pod = 0; pod < best_.size(); ++pod) state_.take(pod);
    Score none(classes_ + 1);
    descend(0, none);
    for (std::size_t pod = 0; pod < best_.size(); ++pod) state_.take(pod);
    for (std::size_t pod = 0; pod < best_.size(); ++pod)
      if (best_[pod]) state_.put(pod, *best_[pod]);
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
    PackCost sum;
    for (std::size_t node = 0; node < state_.input.nodes.size(); ++node) {
      const NodePacking& packing = state_.packing(node);
      if (!packing.changed()) continue;
      sum.destroyed += packing.destroyed;
      sum.added += packing.added;
      ++sum.touched;
      sum.disfavoured += state_.input.nodes[node].busy != state_.input.prefer_busy ? 1 : 0;
    }
    out.insert(out.end(), {sum.destroyed, sum.touched, sum.disfavoured, sum.added});
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
    const std::vector<std::int64_t>& slices = state_.input.pods[pod].slices;
    return std::accumulate(slices.begin(), slices.end(), std::int64_t{0});
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
    for (const std::size_t node : state_.admission(pod)) {
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

Packing best_packing(const PackInput& input) {
  PackState state(input);
  Greedy greedy(state);
  greedy.run();
  if (input.pods.size() <= kSearchPods) Search(state, kSearchSteps).run();
  Packing out{.node_of = state.node_of, .compared = greedy.compared, .planned = greedy.planned, .work = state.work()};
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
