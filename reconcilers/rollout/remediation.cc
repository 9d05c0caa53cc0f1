// Pods that cannot get well by themselves, known by the messages and states of their config-manager containers: one
// deletion each, and longer and longer in between when it does not help.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/pod_faults.h"
#include "reconcilers/rollout/kai_gate.h"

namespace gso {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

bool serves(const Node& node) {
  return std::ranges::any_of(node.allocatable, [](const auto& entry) { return entry.second > 0; });
}

class Remediator {
 public:
  explicit Remediator(Pass& pass) : pass_(pass) { keep_healed(); }

  void run() {
    for (const std::string& name : pass_.index.nodes_in(Bucket::pod_faults)) look_at(name);
  }

 private:
  // How often a component of a node was healed, and how long ago.
  struct Remediations {
    std::int64_t times = 0;
    Duration ago{0};
  };
  static constexpr Duration kForgotten = std::chrono::hours(2);

  void keep_healed() {
    for (auto it = pass_.s.timers.lower_bound({Timer::remediated, "", ""}); it != pass_.s.timers.end(); ++it) {
      const TimerKey& key = it->first;
      if (key.timer != Timer::remediated) break;
      const std::size_t last = key.scope.rfind('/');
      const Duration ago = pass_.s.now - it->second;
      if (pass_.s.world.nodes.find(key.subject) == nullptr || ago >= kForgotten) continue;
      const std::int64_t times = std::atoll(key.scope.c_str() + last + 1);
      Remediations& healed = remediations_[{key.subject, key.scope.substr(0, last)}];
      if (times > healed.times) healed = {times, ago};
    }
    for (const auto& [what, healed] : remediations_) (void)pass_.age(remediated(what, healed.times));
  }
  using FaultyComponent = std::pair<std::string, std::string>;  // Node and component.
  [[nodiscard]] static TimerKey remediated(const FaultyComponent& what, std::int64_t times) {
    return {Timer::remediated, what.first, fmt::format("{}/{}", what.second, times)};
  }

  [[nodiscard]] bool is_unsettled(const std::string& name, const NodeAssessment& a) const {
    return a.in_change() || a.loads_by_itself() || a.phase == Phase::failed || a.phase == Phase::following_daemonset ||
           pass_.index.nodes_in(Bucket::drifting).contains(name);
  }

  void look_at(const std::string& name) {
    const Node* node = pass_.s.world.nodes.find(name);
    const NodeAssessment* a = pass_.index.find(name);
    if (node == nullptr || a == nullptr || !is_unsettled(name, *a) || !may_be_remediated(*node, *a)) return;
    const NodePods pods = sort_pods(pass_.index.installation_of(*a), pass_.index.pods_of(name));
    for (Component component : {Component::plugin, Component::gfd, Component::mps}) {
      for (const Pod* pod : pods.of(component)) {
        if (pod->meta.deletion_timestamp || !costs_nothing(*node, *a, component, *pod)) continue;
        if (const auto fault = pod_fault_of(*pod, pass_.s.settings.projection)) heal(name, component, *pod, *fault);
      }
    }
  }

  [[nodiscard]] bool may_be_remediated(const Node& node, const NodeAssessment& a) {
    const PluginInstallation& set = pass_.index.installation_of(a);
    if (!a.taint.empty()) return false;  // The new pod would not come.
    if (!node.ready || a.is_held() || !pass_.plannable(a) || !foreign_holder(node, set).empty()) return false;
    if (!a.profile || !a.profile->valid || a.is_blocked()) return false;  // S5
    if (pass_.s.settings.mode_of(pass_.index.policy(pass_.s.world, a.policy.view())) == PolicyMode::observe)
      return false;
    const ConfigMap* config_map = pass_.s.world.configmaps.find(set.config_map_key());
    if (config_map == nullptr || config_map->meta.annotations.get(kPausedAnnotation) == "true") return false;
    return !kai_hindrance(pass_, node.meta.name, a);  // S8
  }

  // What still serves is left to a rollout, which has a slot and waits for workloads (S1).
  static bool costs_nothing(const Node& node, const NodeAssessment& a, Component component, const Pod& pod) {
    if (component == Component::gfd) return true;
    if (a.change && !a.change->failed) {
      // Its old pods go by the plan; those that came for them came when the workloads had gone.
      auto listed = a.change->pods.find(component);
      return listed != a.change->pods.end() && !listed->second.contains(std::string(pod.meta.uid));
    }
    const bool daemon_runs = std::ranges::any_of(
        pod.containers, [](const auto& c) { return c.running && !is_config_manager(c.name.view()); });
    return !serves(node) && (component != Component::mps || !daemon_runs);
  }
  // Why a new pod would do more harm; empty: it would not. A new plugin pod takes the GPUs away for a moment, and where
  // they are away already it offers those that the DRA driver has handed out meanwhile. GFD only writes labels.
  [[nodiscard]] std::string stays(const std::string& node, Component component) const {
    const std::string& device_class = pass_.index.dra.class_of(node);
    if (component == Component::gfd || device_class.empty()) return {};
    return fmt::format("the pod is not replaced while {} is reported for the node", kDraDoubleOffer);
  }

  void heal(const std::string& node, Component component, const Pod& pod, const PodFault& fault) {
    const FaultyComponent what{node, to_string(component)};
    const bool lasts = pass_.held_for(
        {Timer::pod_fault, node, fmt::format("{}/{}/{}", what.second, fault.name, pod.meta.uid.str())}, fault.patience);
    const auto known = remediations_.find(what);
    const std::int64_t times = known == remediations_.end() ? 0 : known->second.times;
    const std::string message = fmt::format("{} pod {}: {}", to_string(component), pod.meta.name, fault.what);
    if (const std::string why = stays(node, component); !why.empty()) {
      return pass_.finding(Severity::warning, node_ref(node), fault.name, fmt::format("{}; {}", message, why));
    }
    pass_.finding(Severity::warning, node_ref(node), fault.name, message);
    if (!lasts) return;
    if (times > 0) {
      const Duration wait = std::min<Duration>(minutes(5) * (1LL << std::min<std::int64_t>(times - 1, 4)), kLongest);
      if (known->second.ago < wait) return pass_.look_again_in(wait - known->second.ago);
    }
    pass_.plan.timers.push_back(remediated(what, times + 1));
    pass_.add(DeletePod{pod.meta.key(), pod.meta.uid, std::nullopt, std::nullopt}, fault.name,
              message + "; only a new pod gets over it", true, node);
  }

  static constexpr Duration kLongest = std::chrono::hours(1);
  Pass& pass_;
  std::map<FaultyComponent, Remediations> remediations_;
};

}  // namespace

void plan_remediation(Pass& pass) {
  Remediator(pass).run();
}

}  // namespace gso
