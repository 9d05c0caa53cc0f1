#include "reconcilers/partitioning/packing_state.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace gso {

PackState::PackState(const PackInput& the_input)
    : input(the_input),
      node_of(the_input.pods.size()),
      pods_on(the_input.nodes.size()),
      nodes_(the_input.nodes.size()),
      versions_(the_input.nodes.size()) {
  std::map<std::vector<std::int64_t>, std::size_t> known;
  std::map<std::tuple<std::int32_t, std::size_t, std::size_t>, std::size_t> kinds;
  for (const PackPod& pod : input.pods) {
    const auto [at, is_new] = known.try_emplace(pod.slices, known.size());
    if (is_new) {
      SizeCounts& counts = signatures_.emplace_back(input.sizes.size());
      for (const std::int64_t gigabytes : pod.slices)
        ++counts[static_cast<std::size_t>(std::ranges::lower_bound(input.sizes, gigabytes) - input.sizes.begin())];
    }
    signature_of_.push_back(at->second);
    kinds_.push_back(kinds.try_emplace({pod.priority, at->second, pod.admission}, kinds.size()).first->second);
  }
  answers_.assign(signatures_.size(), std::vector<Answer>(nodes_.size()));
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    nodes_[n].demand.resize(input.sizes.size());
    set_demand(n, nodes_[n].demand);
  }
}

SizeCounts PackState::with(const SizeCounts& demand, std::size_t pod, std::int32_t by) const {
  SizeCounts out = demand;
  const SizeCounts& wanted = signatures_[signature_of_[pod]];
  for (std::size_t t = 0; t < out.size(); ++t) out[t] += by * wanted[t];
  return out;
}

void PackState::set_demand(std::size_t node, SizeCounts demand) {
  NodeState& state = nodes_[node];
  ++work_;
  if (auto packing = pack_node(input.sizes, input.nodes[node], demand)) state.packing = *std::move(packing);
  state.demand = std::move(demand);
  ++versions_[node];
}

std::optional<PackCost> PackState::find_cost(std::size_t signature, std::size_t node) {
  const NodeState& state = nodes_[node];
  SizeCounts demand = state.demand;
  for (std::size_t t = 0; t < demand.size(); ++t) demand[t] += signatures_[signature][t];
  ++work_;
  const auto after = pack_node(input.sizes, input.nodes[node], demand);
  if (!after) return std::nullopt;
  const NodePacking& before = state.packing;
  PackCost out;
  out.destroyed = after->destroyed - before.destroyed;
  out.touched = after->changed() && !before.changed() ? 1 : 0;
  out.disfavoured = out.touched > 0 && input.nodes[node].busy != input.prefer_busy ? 1 : 0;
  out.added = after->added - before.added;
  for (std::size_t g = 0; g < after->rooms.size(); ++g) {
    if (after->free[g] != before.free[g]) out.left += after->rooms[g];
  }
  return out;
}

std::optional<PackCost> PackState::cost(std::size_t pod, std::size_t node) {
  Answer& answer = answers_[signature_of_[pod]][node];
  if (answer.version != versions_[node]) {
    answer.cost = find_cost(signature_of_[pod], node);
    answer.version = versions_[node];
  }
  return answer.cost;
}

std::optional<PackState::Place> PackState::best_place(std::size_t pod, std::optional<std::size_t> except) {
  std::optional<Place> best;
  for (const std::size_t node : input.admissions[input.pods[pod].admission]) {
    if (node == except) continue;
    const auto here = cost(pod, node);
    if (here && (!best || *here < best->cost)) best = Place{node, *here};
  }
  return best;
}

bool PackState::fits_instead(std::size_t pod, std::size_t leaving, std::size_t node) {
  ++work_;
  const SizeCounts demand = with(with(nodes_[node].demand, leaving, -1), pod, 1);
  return pack_node(input.sizes, input.nodes[node], demand).has_value();
}

void PackState::put(std::size_t pod, std::size_t node) {
  node_of[pod] = node;
  pods_on[node].push_back(pod);
  set_demand(node, with(nodes_[node].demand, pod, 1));
}

void PackState::take(std::size_t pod) {
  const std::size_t node = *node_of[pod];
  node_of[pod].reset();
  std::erase(pods_on[node], pod);
  set_demand(node, with(nodes_[node].demand, pod, -1));
}

}  // namespace gso
