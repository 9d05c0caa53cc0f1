#include "tests/reconcilers/fleet_model/invariant_checks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/rollout_spec.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"
#include "tests/change_words/change_words.h"

namespace gso::test {

namespace {

const RolloutSpec& rollout_of(const FleetModel& fleet, const NodeAssessment& a) {
  const SharingPolicy* policy = fleet.world.policies.find(a.policy.view());
  return policy ? policy->rollout : fleet.settings.rollout;
}

bool serves(const Node& node) {
  return std::ranges::any_of(node.allocatable, [](const auto& entry) { return entry.second > 0; });
}

// Out of service or in a change, for any cause.
bool is_busy(const Node& node) {
  return !node.ready || node.unschedulable || !serves(node) || change_of(node) != nullptr;
}

std::string component_of(const FleetModel& fleet, const DeletePod& deletion) {
  const Pod* pod = fleet.world.operand_pods.find(deletion.pod);
  if (pod == nullptr || pod->meta.controller() == nullptr) return {};
  for (const auto& [key, daemonset] : fleet.world.daemonsets.all()) {
    const std::string uid = daemonset->meta.uid.str();  // "ds-plugin"
    if (pod->meta.controller()->uid == uid) return uid.substr(3);
  }
  return {};
}

// Available nodes that the plan takes out of service: into a change, or by a deletion that costs what they serve.
std::set<std::string> taken_out(const FleetModel& fleet, const Plan& plan) {
  std::set<std::string> out;
  for (const PlannedAction& planned : plan.actions) {
    const auto* deletion = std::get_if<DeletePod>(&planned.action);
    const bool costs = deletion && component_of(fleet, *deletion) != "gfd" && !component_of(fleet, *deletion).empty();
    if ((starts(planned) || costs) && !is_busy(fleet.node(planned.node))) out.insert(planned.node);
  }
  return out;
}

void check_budgets(const FleetModel& fleet, const Plan& plan) {  // S1
  struct Sum {
    std::int64_t total = 0, busy = 0, started = 0;
    IntOrPercent limit;
  };
  const std::set<std::string> out = taken_out(fleet, plan);
  if (out.empty()) return;
  std::map<std::string, Sum> sums;
  for (const std::string& name : fleet.index.node_names()) {
    const NodeAssessment& a = *fleet.index.assessment(name);
    const RolloutSpec& rollout = rollout_of(fleet, a);
    const auto count = [&](const std::string& what, IntOrPercent limit) {
      Sum& sum = sums[what];
      sum.limit = limit;
      ++sum.total;
      sum.busy += is_busy(fleet.node(name)) ? 1 : 0;
      sum.started += out.contains(name) ? 1 : 0;
    };
    count("the cluster", fleet.settings.cluster_max_unavailable);
    count(fmt::format("policy {}", a.policy.view()), rollout.max_unavailable);
    count(fmt::format("group {}/{}/{}", a.policy.view(), a.key.view(), a.product.view()),
          rollout.max_unavailable_per_group);
  }
  for (const auto& [what, sum] : sums) {
    if (sum.started == 0) continue;
    EXPECT_LE(sum.busy + sum.started, sum.limit.of(sum.total)) << "S1: " << what;
  }
}

void check_deletion(const FleetModel& fleet, const PlannedAction& planned, const DeletePod& deletion) {
  const Pod* pod = fleet.world.operand_pods.find(deletion.pod);
  ASSERT_NE(pod, nullptr) << "S2: not an operand pod: " << print(planned);
  EXPECT_EQ(pod->meta.uid.str(), deletion.uid) << "S2";
  EXPECT_FALSE(component_of(fleet, deletion).empty()) << "S2: of no discovered DaemonSet: " << print(planned);
  const NodeAssessment* a = fleet.index.assessment(planned.node);
  ASSERT_NE(a, nullptr);
  EXPECT_TRUE(a->profile && a->profile->valid) << "S5: a restart into an invalid profile: " << print(planned);
  EXPECT_FALSE(a->is_held()) << "a held node is restarted: " << print(planned);
}

// Nothing brings the pod back, or its owner puts it on the same node again.
bool is_replaced_elsewhere(const Pod& pod, bool bare_pods_too) {
  const auto* owner = pod.meta.controller();
  return owner == nullptr ? bare_pods_too : owner->kind != "DaemonSet" && owner->kind != "Node";
}

void check_eviction(const FleetModel& fleet, const PlannedAction& planned, const EvictPod& eviction) {  // S2
  const NodeAssessment* a = fleet.index.assessment(planned.node);
  ASSERT_NE(a, nullptr);
  const RolloutSpec& rollout = rollout_of(fleet, *a);
  EXPECT_EQ(rollout.workloads, WorkloadMode::evict) << "S2: eviction without Evict: " << print(planned);
  EXPECT_TRUE(fleet.node(planned.node).unschedulable) << "an eviction from a node that takes new pods";
  EXPECT_NE(change_of(fleet.node(planned.node)), nullptr) << "S2: the node is in no change: " << print(planned);
  EXPECT_FALSE(a->is_held()) << "S2: a pod of a held node is evicted: " << print(planned);
  for (const char* ns : {"kube-system", "gpu-operator", "gpu-sharing-operator"})
    EXPECT_NE(eviction.pod.ns, ns) << "S2: a pod of a protected namespace: " << print(planned);
  const auto listing = fleet.consumers.find(planned.node);
  ASSERT_NE(listing, fleet.consumers.end()) << "S2: consumers of the node are not known: " << print(planned);
  const auto pod = std::ranges::find_if(listing->second.pods, [&](const Pod& listed) {
    return listed.meta.uid == eviction.uid && listed.meta.key() == eviction.pod;
  });
  ASSERT_NE(pod, listing->second.pods.end()) << "S2: no consumer of node " << planned.node << ": " << print(planned);
  EXPECT_FALSE(pod->meta.deletion_timestamp) << "S6: it is ending already: " << print(planned);
  EXPECT_TRUE(pod->phase != "Succeeded" && pod->phase != "Failed") << "S2: it has ended: " << print(planned);
  EXPECT_TRUE(is_replaced_elsewhere(*pod, rollout.evict_bare_pods)) << "S2: " << print(planned);
  EXPECT_NE(pod->meta.annotations.get("gpusharing.dev/do-not-disrupt"), "true") << "S2: " << print(planned);
}

void check_config_map(const FleetModel& fleet, const WriteConfigMap& write) {
  if (write.config_map.name != "mps-config") return;
  const ConfigMap& present = *fleet.world.configmaps.find(write.config_map);
  for (const auto& [key, text] : write.set) EXPECT_TRUE(is_text_of_key(text, key)) << "not a key of ours: " << key;
  for (const std::string& key : write.remove) {
    EXPECT_TRUE(present.our_keys.contains(key)) << "not a key of ours: " << key;
    for (const auto& [name, other] : fleet.world.nodes.all())
      EXPECT_NE(other->meta.labels.get(kConfigLabel), key) << name.name << " still resolves to it";
  }
}

// Keys that a patch sets or removes, except the operator's.
std::set<std::string> foreign_keys(const std::map<std::string, std::string>& set, const std::set<std::string>& remove) {
  std::set<std::string> out = remove;
  for (const auto& [key, value] : set) out.insert(key);
  std::erase_if(out, [](const std::string& key) { return key.starts_with("gpusharing.dev/"); });
  return out;
}

void check_labels(const FleetModel& fleet, const PlannedAction& planned, const PatchNode& patch) {  // S3
  const Node& node = fleet.node(patch.name);
  const auto theirs = nfd_owned(node);
  for (const std::string& key : foreign_keys(patch.set, patch.remove)) {
    EXPECT_FALSE(theirs.contains(key)) << "S3: NFD owns it: " << print(planned);
    EXPECT_FALSE(key.starts_with(kDeployPrefix)) << "S3: the GPU Operator owns it: " << print(planned);
    if (key != kConfigLabel) continue;
    const NodeAssessment* a = fleet.index.assessment(patch.name);
    const SharingPolicy* policy = a ? fleet.world.policies.find(a->policy.view()) : nullptr;
    EXPECT_TRUE(!node.meta.labels.contains(key) || label_writer(node, key) || (policy && policy->takeover))
        << "S3: somebody else's: " << print(planned);
  }
  const std::set<std::string> guards = read_change(node).guards;
  for (const std::string& key : foreign_keys(patch.set_annotations, patch.remove_annotations)) {
    EXPECT_TRUE(key == kScaleDownDisabled || key == kKarpenterDoNotDisrupt) << "S3: " << print(planned);
    const std::string word = key == kScaleDownDisabled ? "cluster-autoscaler" : "karpenter";
    EXPECT_TRUE(!node.meta.annotations.contains(key) || guards.contains(word))
        << "S3: somebody else's: " << print(planned);
  }
}

void check_cordon(const FleetModel& fleet, const PlannedAction& planned, const PatchNode& patch) {  // S7
  if (!patch.unschedulable) return;
  const Node& node = fleet.node(patch.name);
  EXPECT_EQ(patch.resource_version, node.meta.resource_version) << "S7: a cordon without resourceVersion";
  if (*patch.unschedulable) {
    EXPECT_FALSE(node.unschedulable) << "S7: a cordon of a cordoned node claims what is somebody else's";
    return;
  }
  EXPECT_TRUE(read_change(node).cordoned) << "S7: not our cordon: " << print(planned);
  EXPECT_NE(node.meta.annotations.get(kHoldAnnotation), "true") << "S7: a held node relies on it: " << print(planned);
}

// Nodes of the same group that served and are in a change to this revision, or failed it.
std::int64_t underway(const FleetModel& fleet, const NodeAssessment& like, std::string_view target) {
  std::int64_t out = 0;
  for (const std::string& name : fleet.index.node_names()) {
    const NodeAssessment& a = *fleet.index.assessment(name);
    const bool same = a.policy == like.policy && a.key == like.key && a.product == like.product;
    if (same && a.change && a.change->served && a.change->to == target) ++out;
  }
  return out;
}

void check_canary(const FleetModel& fleet, const Plan& plan) {
  std::map<std::string, std::int64_t> starting;
  for (const PlannedAction& planned : plan.actions) {
    if (!starts(planned) || fleet.index.assessment(planned.node)->change) continue;
    const NodeAssessment& a = *fleet.index.assessment(planned.node);
    if (!can_prove(a)) continue;  // S12: it is repaired beside the canary, for which it proves nothing.
    const RolloutSpec& rollout = rollout_of(fleet, a);
    const RolloutKey key{std::string(a.policy.view()), fleet.index.installations()[a.installation].id(),
                         std::string(a.key.view())};
    const auto& record = *fleet.index.impl().record;
    const auto verified = record.verified.find(key.config_map + "/" + key.key);
    const bool known_good = verified != record.verified.end() && verified->second == a.target.view();
    const Group& group = fleet.index.impl().profile_rollouts.at(key).groups.at(std::string(a.product.view()));
    if (rollout.canary_nodes_per_group <= 0 || known_good || a.phase != Phase::pending || group.tally.settled > 0)
      continue;
    const std::int64_t now = ++starting[std::string(a.product.view())] + underway(fleet, a, a.target.view());
    EXPECT_LE(now, rollout.canary_nodes_per_group) << "before the canary has shown its revision: " << print(planned);
  }
}

void check_start(const FleetModel& fleet, const PlannedAction& planned, const PatchNode& patch) {
  const NodeAssessment& a = *fleet.index.assessment(planned.node);
  EXPECT_EQ(target_written_by(patch), a.target.view()) << "not what the node should run";
  EXPECT_TRUE(a.profile && a.profile->valid) << "S5: " << print(planned);
  EXPECT_FALSE(a.is_held()) << "a held node is started: " << print(planned);
  const bool replicas = a.profile && a.profile->valid && a.profile->profile().strategy() != Strategy::none;
  EXPECT_TRUE(!replicas || fleet.index.impl().kai.use_of(planned.node).empty()) << "S8: " << print(planned);
  if (a.change) return;  // Its change continues; the checks below are for nodes that begin.
  EXPECT_TRUE(windows_at(rollout_of(fleet, a).windows, fleet.now).open) << "outside the window: " << print(planned);
  const SharingPolicy* policy = fleet.world.policies.find(a.policy.view());
  const auto retry = policy ? policy->meta.annotations.get(kRetryAnnotation).value_or("") : "";
  EXPECT_EQ(fleet.index.impl().record->failure(a.policy.view(), fleet.index.installations()[a.installation].id(),
                                               a.key.view(), a.target.view(), retry),
            nullptr)
      << "a revision that failed is tried again: " << print(planned);
}

}  // namespace

bool starts(const PlannedAction& planned) {
  const auto* patch = std::get_if<PatchNode>(&planned.action);
  return patch && planned.disruptive && target_written_by(*patch);
}

void check_plan(const FleetModel& fleet, const Plan& plan) {
  check_budgets(fleet, plan);
  check_canary(fleet, plan);
  for (const PlannedAction& planned : plan.actions) {
    if (const auto* deletion = std::get_if<DeletePod>(&planned.action)) check_deletion(fleet, planned, *deletion);
    if (const auto* eviction = std::get_if<EvictPod>(&planned.action)) check_eviction(fleet, planned, *eviction);
    if (const auto* write = std::get_if<WriteConfigMap>(&planned.action)) check_config_map(fleet, *write);
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch == nullptr) continue;
    check_labels(fleet, planned, *patch);
    check_cordon(fleet, planned, *patch);
    if (starts(planned)) check_start(fleet, planned, *patch);
  }
}

void check_same(const Plan& plan, const Plan& again) {
  // In the same order, too: an order that changes with each run makes logs, Events and budgets differ.
  auto lines = [](const Plan& p) {
    std::vector<std::string> out;
    for (const PlannedAction& action : p.actions) out.push_back(print(action));
    for (const Finding& finding : p.findings)
      out.push_back(fmt::format("{} {}: {}", finding.object.name, finding.why.code, finding.why.message));
    return out;
  };
  EXPECT_EQ(lines(plan), lines(again));
  EXPECT_EQ(plan.timers, again.timers);
  EXPECT_EQ(plan.consumers_wanted, again.consumers_wanted);
}

void check_incomplete_views(const FleetModel& fleet) {
  const auto check = [&](std::string_view store, void (*forget)(World&)) {
    World partial = fleet.world;
    forget(partial);
    FleetIndex index;
    const Plan plan = plan_all(Snapshot{partial, fleet.now, fleet.timers, fleet.consumers, fleet.settings}, index);
    for (const PlannedAction& planned : plan.actions) {
      // KAI's planner reads its warnings from its own stores and the node's labels, which have synced.
      const bool kai_warns = planned.reconciler == "pod.reservation-gc" && !planned.disruptive &&
                             std::holds_alternative<RecordEvent>(planned.action);
      if (!kai_warns) ADD_FAILURE() << "S4: without " << store << ": " << print(planned);
    }
  };
  check("nodes", [](World& world) { world.nodes = {}; });
  check("DaemonSets", [](World& world) { world.daemonsets = {}; });
  check("ConfigMaps", [](World& world) { world.configmaps = {}; });
  check("operand pods", [](World& world) { world.operand_pods = {}; });
  check("ControllerRevisions", [](World& world) { world.revisions = {}; });
  check("ClusterPolicies", [](World& world) { world.clusterpolicies = {}; });
  check("SharingPolicies", [](World& world) { world.policies = {}; });
  check("SharingRollouts", [](World& world) { world.rollouts = {}; });
}

void check_undisruptive(const Plan& plan, std::string_view when) {
  for (const PlannedAction& planned : plan.actions) {
    EXPECT_FALSE(planned.disruptive) << "S9: " << when << ": " << print(planned);
    EXPECT_FALSE(std::holds_alternative<DeletePod>(planned.action)) << "S9: " << when << ": " << print(planned);
  }
}

namespace {

// Whether the text contains the word.
bool names(const std::string& text, const std::string& word) {
  const auto is_end = [&](std::size_t at) {
    return at >= text.size() || (std::isalnum(static_cast<unsigned char>(text[at])) == 0 && text[at] != '-');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (is_end(at + word.size()) && (at == 0 || is_end(at - 1))) return true;
  return false;
}

// The policy's status names the node under a reason, or has a message that says what it waits for.
std::string reason_in_status(const FleetModel& fleet, const NodeAssessment& a, const std::string& node) {
  const auto status = nlohmann::json::parse(fleet.policy_status(std::string(a.policy.view())), nullptr, false);
  if (!status.is_object()) return {};
  for (const auto& entry : status.value("blocked", nlohmann::json::array())) {
    for (const auto& name : entry.value("nodes", nlohmann::json::array()))
      if (name == node) return entry.value("reason", "");
  }
  for (const auto& condition : status.value("conditions", nlohmann::json::array())) {
    if (condition.value("type", "") != "Progressing") continue;
    if (condition.value("status", "") == "False")
      return condition.value("reason", "") == "Settled" ? "" : condition.value("reason", "");
    // While nodes are in progress, the message names one that it waits for.
    const std::string said = condition.value("message", "");
    for (const std::string& other : fleet.index.node_names())
      if (a.phase == Phase::pending && other != node && names(said, other)) return "behind " + other;
  }
  return {};
}

}  // namespace

std::string named_reason(const FleetModel& fleet, const Plan& rest, const std::string& node) {
  const NodeAssessment& a = *fleet.index.assessment(node);
  if (a.is_blocked()) return a.obstacle.code;
  if (a.phase == Phase::failed) return std::string(kVerificationFailed);
  for (const Finding& finding : rest.findings)
    if (finding.object.kind == "Node" && finding.object.name == node) return finding.why.code;
  if (!a.ready) return "NotReady";
  return reason_in_status(fleet, a, node);
}

bool all_converged_or_named(const FleetModel& fleet, const Plan& rest) {
  return std::ranges::all_of(fleet.index.node_names(), [&](const std::string& name) {
    return fleet.index.assessment(name)->phase == Phase::up_to_date || !named_reason(fleet, rest, name).empty();
  });
}

void check_converged_or_named(const FleetModel& fleet, const Plan& rest) {
  for (const std::string& name : fleet.index.node_names()) {
    const NodeAssessment& a = *fleet.index.assessment(name);
    const std::string reason = named_reason(fleet, rest, name);
    EXPECT_TRUE(a.phase == Phase::up_to_date || !reason.empty())
        << "L1: " << name << " is " << to_string(phase_of(a))
        << " and nobody says why: " << fleet.policy_status(std::string(a.policy.view()));
    EXPECT_TRUE(a.phase != Phase::up_to_date || a.matches() || !reason.empty())
        << "L1: " << name << ": " << a.verified.mismatch;
  }
}

void check_silent(FleetModel& fleet) {
  for (const Duration wait : {Duration(0), Duration(std::chrono::minutes(1)), Duration(std::chrono::hours(3))}) {
    fleet.advance(wait);
    const Plan plan = fleet.plan();
    for (const PlannedAction& action : plan.actions) ADD_FAILURE() << "S6: " << print(action);
  }
}

void RestartLedger::note(const FleetModel& fleet, const PlannedAction& planned) {
  if (const auto* patch = std::get_if<PatchNode>(&planned.action); patch != nullptr) {
    // It was changed to another revision, or found to show one: the node might finally show a later content than the
    // one that it was restarted for.
    const auto loaded = patch->set_annotations.find(std::string(kRevisionAnnotation));
    const auto to = target_written_by(*patch);
    const bool anew = planned.why.code == "ReplaceAgain" || planned.why.code == "ReloadFailed";
    std::erase_if(last_, [&](const auto& entry) {
      const bool other =
          (loaded != patch->set_annotations.end() && loaded->second != entry.second) || (to && *to != entry.second);
      return entry.first.first == patch->name && (anew || other);
    });
  }
  const auto* deletion = std::get_if<DeletePod>(&planned.action);
  if (deletion == nullptr || planned.why.code != "Restart") return;
  const std::string target = read_change(fleet.node(planned.node)).to;
  EXPECT_NE(target, "") << "a restart that the node does not know of: " << print(planned);
  EXPECT_NE(fleet.label_of(planned.node, kStateLabel), kStateFailed)
      << "a failed node is restarted: " << print(planned);
  const std::string component = component_of(fleet, *deletion);
  const auto [entry, first] = last_.try_emplace({planned.node, component}, target);
  EXPECT_TRUE(first || entry->second != target)
      << component << " is restarted twice for " << target << ": " << print(planned);
  entry->second = target;
}

}  // namespace gso::test
