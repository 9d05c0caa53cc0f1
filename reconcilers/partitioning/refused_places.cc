#include "reconcilers/partitioning/refused_places.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace gso {

namespace {

// The wait on the next node: the scheduler has been seen to leave this pod where it is.
constexpr Duration kNextWait = std::chrono::minutes(3);
constexpr Duration kRefusedFor = std::chrono::hours(1);

// The scope of a timer: what it says of a pod with that uid.
constexpr std::string_view kWaits = "for pod ";
constexpr std::string_view kRefused = "not for pod ";

TimerKey timer_of(std::string_view what, const PartitionedNode& node, const SlicePod& pod) {
  return {Timer::slices_idle, node.name, std::string(what) + pod.meta.uid.str()};
}

// The scheduler could bind the pod to the node now, as far as partitioning sees, but for the slices.
bool can_bind(const PartitionedNode& node, const NodeStanding& standing, const SlicePod& pod) {
  return standing.serves && !standing.moves && node.selected && node.confirmed() && node.has_room_for(pod);
}

// That the scheduler could give to any pod.
SliceCounts free_slices(const PartitionedNode& node) {
  SliceCounts out = node.slices.free();
  for (const auto& [gigabytes, count] : node.taken()) add_slices(out, gigabytes, -count);
  return out;
}

SliceCounts wanted_by(const SlicePod& pod) {
  SliceCounts out;
  add_slices(out, pod, 1);
  return out;
}

// What the timers say of pods and nodes that are still there.
class Refusals {
 public:
  Refusals(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const std::vector<NodeStanding>& standings,
           const std::vector<const SlicePod*>& pods)
      : draft_(draft), nodes_(nodes), standings_(standings), pods_(pods), places_(pods.size()) {
    for (std::size_t p = 0; p < pods.size(); ++p) pod_of_.emplace(pods[p]->meta.uid.str(), p);
  }

  RefusedPlaces run() {
    // A refusal shortens the wait on other nodes, so all of them come first.
    each(kRefused, [&](std::size_t node, std::size_t pod) {
      const TimerKey timer = timer_of(kRefused, nodes_[node], *pods_[pod]);
      const Duration age = draft_.s.now - draft_.since(timer);
      if (age >= kRefusedFor) return;
      draft_.run(timer);
      draft_.look_again_in(kRefusedFor - age);
      places_[pod].push_back(node);
    });
    const RefusedPlaces before = places_;
    each(kWaits, [&](std::size_t node, std::size_t pod) {
      if (!can_bind(nodes_[node], standings_[node], *pods_[pod])) return;
      if (!has_all(free_slices(nodes_[node]), wanted_by(*pods_[pod]))) return;
      const Duration wait = before[pod].empty() ? draft_.s.settings.partitioning.confirm_timeout : kNextWait;
      if (!draft_.held_for(timer_of(kWaits, nodes_[node], *pods_[pod]), wait)) return;
      draft_.renew(timer_of(kRefused, nodes_[node], *pods_[pod]), kRefusedFor);
      places_[pod].push_back(node);
    });
    for (std::vector<std::size_t>& nodes : places_) {
      std::ranges::sort(nodes);
      nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    }
    return std::move(places_);
  }

 private:
  // Calls `use` with node and pod of each timer that says `what`.
  template <class Use>
  void each(std::string_view what, const Use& use) const {
    for (auto at = draft_.s.timers.lower_bound({Timer::slices_idle, "", ""});
         at != draft_.s.timers.end() && at->first.timer == Timer::slices_idle; ++at) {
      const std::string_view scope = at->first.scope;
      if (!scope.starts_with(what)) continue;
      const auto pod = pod_of_.find(scope.substr(what.size()));
      const auto node = std::ranges::lower_bound(nodes_, at->first.subject, {}, &PartitionedNode::name);
      if (pod == pod_of_.end() || node == nodes_.end() || node->name != at->first.subject) continue;
      use(static_cast<std::size_t>(node - nodes_.begin()), pod->second);
    }
  }

  PlanDraft& draft_;
  const std::vector<PartitionedNode>& nodes_;
  const std::vector<NodeStanding>& standings_;
  const std::vector<const SlicePod*>& pods_;
  std::map<std::string, std::size_t, std::less<>> pod_of_;
  RefusedPlaces places_;
};

}  // namespace

RefusedPlaces refused_places(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                             const std::vector<NodeStanding>& standings, const std::vector<const SlicePod*>& pods) {
  return Refusals(draft, nodes, standings, pods).run();
}

void await_scheduler(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                     const std::vector<NodeStanding>& standings, const std::vector<const SlicePod*>& pods,
                     const std::vector<bool>& changing, const SlicePlan& plan) {
  std::map<std::size_t, SliceCounts> left;  // By node: free slices that no pod before has.
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (!plan.node_of[p]) continue;
    const std::size_t n = *plan.node_of[p];
    if (changing[n] || !can_bind(nodes[n], standings[n], *pods[p])) continue;
    const auto [free, is_new] = left.try_emplace(n);
    if (is_new) free->second = free_slices(nodes[n]);
    const SliceCounts wanted = wanted_by(*pods[p]);
    if (!has_all(free->second, wanted)) continue;
    for (const auto& [gigabytes, count] : wanted) add_slices(free->second, gigabytes, -count);
    const TimerKey timer = timer_of(kWaits, nodes[n], *pods[p]);
    draft.run(timer);
    if (!draft.s.timers.contains(timer)) draft.look_again_in(kNextWait);
  }
}

}  // namespace gso
