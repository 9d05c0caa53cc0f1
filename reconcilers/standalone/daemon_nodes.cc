#include "reconcilers/standalone/standalone.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {
namespace {

const Operand* daemonset_of(const Index& index, const Pod* pod, const MpsDaemonChangeOnNode& mark) {
  const std::vector<Operand>& all = index.discovery.standalone;
  const auto* owner = pod == nullptr ? nullptr : pod->meta.controller();
  const auto found = std::ranges::find_if(all, [&](const Operand& daemon) {
    if (owner != nullptr) return owner->uid.view() == daemon.uid;
    const auto names_it = [&](const auto& change) { return change && change->daemonset == k8s::to_string(daemon.key); };
    return names_it(mark.change) || names_it(mark.deferred);
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

bool DaemonNode::is_outdated() const {
  if (pod == nullptr || daemonset == nullptr || daemonset->newest_hash.empty()) return false;
  return pod->meta.labels.get(kRevisionHashLabel).value_or("") != daemonset->newest_hash;
}

bool DaemonNode::has_failed() const {
  return mark.change && mark.change->failed && daemonset != nullptr && mark.change->to == daemonset->newest_hash;
}

bool DaemonNode::pins_driver() const {
  if (pod == nullptr || pod->meta.deletion_timestamp || daemonset == nullptr) return false;
  return !upgrade.empty() && !daemonset->watches_host && !daemonset->follows_driver_upgrades;
}

bool DaemonNode::is_asked_again() const {
  const std::optional<MpsDaemonChange>& last = mark.change ? mark.change : mark.deferred;
  return last && asks_again(last->retry, retry_of(*policy));
}

RolloutKey DaemonNode::rollout() const {
  return {policy->meta.name, daemonset == nullptr ? "" : daemonset_subject(k8s::to_string(daemonset->key)), ""};
}

std::string why_not_ready(const DaemonNode& node) {
  if (node.pod == nullptr) return "it has no pod yet";
  for (const ContainerStatus* container : node.pod->all_containers()) {
    if (container->ready) continue;
    // Where the daemon was is no reason.
    const std::string_view said = container->last_message();
    if (!said.empty() && reported_pipe_directory(said).empty()) return std::string(said);
    if (const std::string_view why = container->waiting_reason.view(); cannot_start(why))
      return fmt::format("pod {} is not Ready: {}", k8s::to_string(node.pod->meta.key()), why);
  }
  return fmt::format("pod {} is not Ready", k8s::to_string(node.pod->meta.key()));
}

std::vector<DaemonNode> read_daemon_nodes(const World& world, const Index& index) {
  std::vector<DaemonNode> out;
  for (const std::string& name : index.nodes_in(Bucket::standalone_mps)) {
    DaemonNode one;
    one.node = world.nodes.find(name);
    if (one.node == nullptr) continue;
    one.assessment = index.find(name);
    one.pod = pod_of_standalone(index.discovery.standalone, index.pods_of(name));
    const std::optional<Node> written = with_change_being_written(world, *one.node);
    one.mark = mps_daemon_change_on(written ? *written : *one.node);
    one.daemonset = daemonset_of(index, one.pod, one.mark);
    one.policy = &index.policy_of(world, *one.node);
    one.product = one.assessment != nullptr
                      ? std::string(one.assessment->product.view())
                      : std::string(unshared_product(one.node->meta.labels.get(kGpuProduct).value_or("")));
    one.busy = index.nodes_in(Bucket::busy).contains(name);
    const PluginInstallation none;
    const auto& installation = one.assessment == nullptr ? none : index.installation_of(*one.assessment);
    one.holder = holder_of(*one.node, installation);
    if (one.holder == kStandaloneMpsChange) one.holder = {};
    const std::string_view other = foreign_holder(*one.node, installation);
    if (other == kDriverUpgrade || other == kMigChange) one.upgrade = other;
    out.push_back(std::move(one));
  }
  return out;
}

// --- Daemons that stay or end at the wrong time.

void report_pinned_driver(Pass& pass, const DaemonNode& node) {
  const auto& labels = node.daemonset->node_selector;
  std::string leave;
  if (!labels.empty())
    leave = fmt::format("take the node out until the upgrade is done (kubectl label node {} {}-); for later ones ",
                        node.name(), labels.begin()->first);
  pass.finding(
      Severity::warning, node_ref(node.name()), kDriverPinned,
      fmt::format("{}, and pod {} of the standalone MPS daemon keeps the driver's kernel module in use: DaemonSet {} "
                  "does not follow driver upgrades. Once the node's GPU clients have ended, {}upgrade the chart with "
                  "standaloneMps.followDriverUpgrades=Auto",
                  describe_holder(node.upgrade, *node.node), k8s::to_string(node.pod->meta.key()),
                  k8s::to_string(node.daemonset->key), leave));
}

namespace {

// A list of clients that is older says nothing about them.
constexpr Duration kClientsKnown = std::chrono::seconds(30);

// Why no DaemonSet of `runs` is for the node, and how it is again, as sentences. Empty: one is. `former`: the node's;
// null: unknown.
std::string why_lost(const std::vector<Operand>& runs, const Operand* former, const Node& node) {
  if (runs.empty()) return "Its DaemonSet is gone";
  if (node.meta.labels.get(kMpsCapable) == "true")
    return fmt::format("Label {}=true gives the node to the device plugin's daemon", kMpsCapable);
  if (find_operand(runs, Component::mps, node) != nullptr) return {};
  const Operand& left = former == nullptr ? runs.front() : *former;
  for (const auto& [key, value] : left.node_selector) {
    if (node.meta.labels.get(key) == value) continue;
    if (key == kDeployClients)
      return fmt::format(
          "The GPU Operator does not set {}={}: standaloneMps.followDriverUpgrades=Never selects the "
          "node without it",
          key, value);
    return fmt::format("DaemonSet {} selects nodes with {}={}; to get it back: kubectl label node {} {}={}",
                       k8s::to_string(left.key), key, value, node.meta.name, key, value);
  }
  return fmt::format("The node affinity of DaemonSet {} leaves the node out", k8s::to_string(left.key));
}

}  // namespace

void report_lost_daemons(Pass& pass) {
  const std::vector<Operand>& all = pass.index.discovery.standalone;
  std::vector<Operand> runs = all;
  std::erase_if(runs, &Operand::watches_host);
  if (runs.empty() && !all.empty()) return;
  for (const std::string& name : pass.index.nodes_in(Bucket::mps_directory)) {
    const Node* node = pass.s.world.nodes.find(name);
    // A daemon that the host runs has the label as well, and ends with no DaemonSet.
    if (node == nullptr || !host_pipe_directory(*node).empty()) continue;
    const Pod* pod = pod_of_standalone(all, pass.index.pods_of(name));
    if (pod == nullptr && take_back_label(*node, kMpsPipeDirectory).empty()) continue;
    const Operand* former = daemonset_of(pass.index, pod, mps_daemon_change_on(*node));
    if (former != nullptr && former->watches_host) continue;
    const std::string why = why_lost(runs, former, *node);
    if (why.empty()) continue;
    pass.plan.consumers_wanted.insert(name);
    pass.look_again_in(kClientsKnown / 3);
    const NodeUse use = use_of(pass.s, name, kClientsKnown);
    if (!use.fresh || use.is_idle()) continue;
    const std::string message = fmt::format(
        "the node's standalone MPS daemon {} without a drain, and GPU clients run there, which break with "
        "it: {}. {}. Delete these pods, so that they start where a daemon runs",
        pod == nullptr ? "has ended" : "ends", use.names(), why);
    pass.event(node_ref(name), true, "StandaloneMPSLost", "Restart", message);
    pass.finding(Severity::warning, node_ref(name), "StandaloneMPSLost", message);
  }
}

// --- The clients that leave a node.

namespace {

NodeDrain drain_of_daemon(const DaemonNode& node) {
  NodeDrain out{.node = node.name(), .policy = node.policy, .until = Drain::idle};
  if (node.in_change()) out.since = node.mark.change->begun;
  return out;
}

}  // namespace

void evict_clients(Pass& pass, const DaemonNode& node, const std::vector<DaemonNode>& nodes, const NodeUse& use) {
  // A node of the same policy and DaemonSet; null: that node is none.
  const auto peer = [&](const std::string& name) {
    const auto found = std::ranges::find(nodes, name, &DaemonNode::name);
    return found == nodes.end() || found->rollout() != node.rollout() ? nullptr : &*found;
  };
  const auto waits = [&](const std::string& name) {
    const DaemonNode* one = peer(name);
    return one != nullptr && !one->in_change() && one->is_outdated() && one->node->ready && one->holder.empty();
  };
  const auto counts = [&](const std::string& name) {
    return waits(name) || (peer(name) != nullptr && peer(name)->in_change());
  };
  const DrainOf drain_of_peer = [&](const std::string& name) {
    return peer(name) == nullptr ? std::nullopt : std::optional(drain_of_daemon(*peer(name)));
  };
  evict_consumers(
      pass,
      {drain_of_daemon(node), gang_peers_of(pass.s, node.name(), {counts, waits}), drain_of_peer,
       fmt::format("standalone MPS daemon is replaced (DaemonSet {})", k8s::to_string(node.daemonset->key))},
      use);
}

std::string why_clients_stay(const Pass& pass, const DaemonNode& node, const NodeUse& use) {
  std::string out;
  for (const auto& why : {refused_evictions(pass, node.name(), use), why_pods_stay(pass, drain_of_daemon(node), use)})
    if (why) out += "; " + why->message;
  return out;
}

DaemonRollouts count_daemons(const std::vector<DaemonNode>& nodes) {
  DaemonRollouts rollouts;
  for (const DaemonNode& node : nodes) {
    if (node.daemonset == nullptr || node.daemonset->newest_hash.empty()) continue;
    DaemonRollout& out = rollouts[node.rollout()];
    out.target = node.daemonset->newest_hash;
    ++out.total;
    const bool serves = node.pod != nullptr && is_serving(*node.pod);
    const bool waits = node.in_change() || node.is_outdated();
    if (waits && !node.holder.empty()) {
      out.nodes.push_back(
          {node.name(), to_string(Phase::held), {node.holder, describe_holder(node.holder, *node.node)}});
    }
    if (node.in_change()) {
      ++out.in_change;
    } else if (waits) {
      ++(node.holder.empty() ? out.pending : out.blocked);
      if (node.mark.deferred) {
        out.note_waiting(
            node.name(),
            {kDeferred, fmt::format("its GPU clients did not end, or a person uncordoned it: the next try is at {}",
                                    k8s::format_time(*node.mark.deferred->deferred_until))});
      }
    } else if (serves) {
      ++out.updated;
    } else if (node.daemonset->watches_host) {  // Its pods are replaced without a mark.
      ++out.in_change;
    }
  }
  return rollouts;
}

GateState daemon_gate(Pass& pass, const DaemonNode& node) {
  const std::string& target = node.daemonset->newest_hash;
  const SharingRollout* object = pass.s.world.rollouts.find(rollout_name(node.rollout(), target));
  const bool anew = object != nullptr && was_left(pass.index, *object);
  Switches switches = anew ? Switches() : switches_of(pass, node.rollout(), target, object);
  const DaemonSet* daemonset = pass.s.world.daemonsets.find(node.daemonset->key);
  switches.approved =
      switches.approved || (daemonset != nullptr && daemonset->meta.annotations.get(kApprovedAnnotation) == target);
  switches.undone = false;  // A template is taken back in the DaemonSet.
  const auto approval = [&] {
    // By its SharingRollout or, in a cluster without these, by the DaemonSet.
    const std::string command =
        pass.s.world.policies_served
            ? "gpu-sharing-operator rollout approve " + rollout_name(node.rollout(), target)
            : fmt::format("kubectl annotate daemonset --namespace {} {} {}={}", node.daemonset->key.ns,
                          node.daemonset->key.name, kApprovedAnnotation, target);
    return "the policy's mode is Approve, and nobody has approved this change: " + command;
  };
  const auto settling = [&]() -> std::string {
    const std::string id = k8s::to_string(node.daemonset->key);
    const WallTime since = node.daemonset->newest_since;
    const WallTime settled = pass.ages.stored(stored_time(id, "template", since), since) +
                             std::chrono::ceil<WallTime::duration>(pass.s.settings.settle);
    if (pass.s.now >= settled) return {};
    pass.look_again_in(settled - pass.s.now);
    return fmt::format("DaemonSet {} got its template less than {} ago", id,
                       k8s::format_go_duration(pass.s.settings.settle));
  };
  return first_closed_gate({pass, *node.policy, switches, anew, approval, settling});
}

}  // namespace gso
