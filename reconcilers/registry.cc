// The list of reconcilers, and the only code that plans them.
#include "reconcilers/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/model/timer.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/rollout/change_steps.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/label_contest.h"
#include "reconcilers/rollout/managed_keys.h"
#include "reconcilers/rollout/record_writes.h"
#include "reconcilers/rollout/repairs.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"
#include "reconcilers/standalone/standalone.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

constexpr std::string_view kNodeProfile = "node.profile";
constexpr std::string_view kNodeLabels = "node.labels";
constexpr std::string_view kPolicyStatus = "policy.status";
constexpr std::string_view kNodeMpsReady = "node.mps-ready";

// How long a node must have been out of its policy before the operator gives up the ownership of the label that stays
// there (Retain).
constexpr Duration kReleaseGrace = std::chrono::minutes(2);

Plan node_profile(const Snapshot& snapshot, FleetIndex& fleet, RolloutViews& rollouts) {
  Pass pass(snapshot, fleet.impl(), kNodeProfile, &rollouts);
  plan_node_states(pass, plan_self_loaded_nodes(pass));
  plan_abandoned(pass);
  plan_findings(pass);
  plan_preflight(pass);
  return std::move(pass.plan);
}

Plan sharing_rollout(const Snapshot& snapshot, FleetIndex& fleet, RolloutViews& rollouts) {
  Pass pass(snapshot, fleet.impl(), kSharingRollout, &rollouts);
  plan_baseline(pass);
  if (pass.index.record) {
    plan_options_text(pass);
    plan_finalizers(pass);
    plan_managed_keys(pass);
    plan_capacity_warnings(pass);
    plan_changes_in_progress(pass);
    Slots slots(pass);
    plan_starts(pass, slots);
    const DaemonRollouts daemons = plan_standalone_mps(pass, slots);
    rollouts.started = slots.taken_of_cluster();
    plan_paused_relabels(pass);
    plan_remediation(pass);
    plan_outcomes(pass);
    plan_rollout_statuses(pass, daemons);
  }
  return std::move(pass.plan);
}

Plan node_labels(const Snapshot& snapshot, FleetIndex& fleet, RolloutViews& rollouts) {
  Pass pass(snapshot, fleet.impl(), kNodeLabels, &rollouts);
  run_labelling_timers(pass);
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::label_work)) {
    if (a.is_held() || !pass.plannable(a)) continue;
    LabelChange change = settled_label_change(pass, node, a);
    report_contested(pass, name, change);
    std::string why = change.empty() ? "" : "no one else owns these labels";
    if (a.takes_label_back()) {
      why += fmt::format("{}no pod of the node now selects its profile by label {}", why.empty() ? "" : "; ",
                         a.former_label.view());
      change = take_back_label(node, a.former_label.view(), std::move(change));
    }
    if (change.empty()) continue;
    if (!pass.takes_more()) break;
    note_label_write(pass, node, change);
    PatchNode patch{.name = name};
    add_to(patch, change);
    pass.add(std::move(patch), "Labelled", why, false, name);
  }
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::releases)) {
    if (!pass.plannable(a)) continue;
    const std::string label = config_label(pass.index.installation_of(a), node);
    PatchNode patch{.name = name};
    if (a.left_policy != LeftPolicy::release) {  // The policy that governs it wants the label that it has.
      add_to(patch, hand_over_label(node, label, a.policy.view()));
      pass.add(std::move(patch), "HandedOver",
               fmt::format("the label of policy {} is the one that policy {} wants, which governs the node now",
                           a.label_by.view(), a.policy.view()),
               false, name);
      continue;
    }
    // A node between two selectors, or whose policy is created again, returns: the operator must still own the label.
    if (!pass.held_for({Timer::leaving, name, a.label_by}, kReleaseGrace)) continue;
    add_to(patch, release_label(node, label));
    pass.add(std::move(patch), "Released",
             "the node has left its policy: the label stays, but the operator no longer owns it", false, name);
  }
  plan_directory_labels(pass);
  return std::move(pass.plan);
}

Plan policy_status(const Snapshot& snapshot, FleetIndex& fleet, RolloutViews& rollouts) {
  Pass pass(snapshot, fleet.impl(), kPolicyStatus, &rollouts);
  plan_default_policy(pass);
  if (pass.index.record)
    plan_policy_statuses(pass);
  else if (!pass.index.record_problem.empty())
    plan_unreadable_statuses(pass);
  return std::move(pass.plan);
}

Plan mps_ready(const Snapshot& snapshot, FleetIndex& fleet, RolloutViews& rollouts) {
  Pass pass(snapshot, fleet.impl(), kNodeMpsReady, &rollouts);
  for (const auto& [name, mark] : pass.index.mps_work) {
    const Node* node = snapshot.world.nodes.find(name);
    const NodeAssessment* a = pass.index.find(name);
    if (node == nullptr || (a != nullptr && (a->is_held() || !pass.plannable(*a)))) continue;
    plan_mps_mark(pass, *node, mark);
  }
  return std::move(pass.plan);
}

Plan kai_config(const Snapshot& snapshot, FleetIndex& fleet, RolloutViews& /*rollouts*/) {
  KaiPass pass(snapshot, fleet.impl().kai, kKaiConfig);
  plan_kai_config(pass);
  return std::move(pass.plan);
}

Plan reservation_gc(const Snapshot& snapshot, FleetIndex& fleet, RolloutViews& /*rollouts*/) {
  KaiPass pass(snapshot, fleet.impl().kai, kReservationGc);
  plan_reservation_gc(pass);
  plan_reservation_audit(pass);
  plan_kai_stuck(pass);
  return std::move(pass.plan);
}

Plan node_partitioning(const Snapshot& snapshot, FleetIndex& fleet, RolloutViews& rollouts) {
  Pass pass(snapshot, fleet.impl(), kNodePartitioning, &rollouts);
  // Where rollouts do not count these nodes (mode Observe), a plan of slices does.
  const SliceNodes slices = slice_nodes(snapshot.world, pass.index, rollouts.labelled);
  const BudgetCount fleet_count = cluster_count(pass.index, slices);
  FleetSlots slots{snapshot.settings.cluster_max_unavailable.of(fleet_count.total) - fleet_count.busy -
                   rollouts.started};
  if (slots.free <= 0 && !rollouts.labelled.nodes.empty())
    slots.why_none = exhausted_cluster(pass, rollouts.started).message;
  plan_partitioning(pass, pass.index.discovery, slots, std::move(rollouts.labelled), pass.index.partitioning);
  return std::move(pass.plan);
}

// The stores may show such a node as it was before the write: what follows from that is planned again once they show
// the result.
void leave_out_nodes_being_written(Plan& plan, const World& world) {
  if (world.nodes_being_written.empty()) return;
  std::erase_if(plan.actions, [&](const PlannedAction& planned) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    return world.nodes_being_written.contains(patch != nullptr ? patch->name : planned.node);
  });
}

bool is_stale(const Reconciler& reconciler, const World& world) {
  return std::ranges::any_of(world.stale_views, [&](const StaleView& stale) {
    return std::ranges::find(reconciler.watches, stale.resource) != reconciler.watches.end();
  });
}

bool begins_or_deletes(const PlannedAction& planned, const PlannerSettings& settings) {
  const Action& action = planned.action;
  if (const auto* patch = std::get_if<PatchNode>(&action)) return planned.disruptive || patch->unschedulable == true;
  if (const auto* write = std::get_if<WriteConfigMap>(&action))
    return !write->remove.empty() && write->config_map.ns != settings.operator_namespace;
  return std::holds_alternative<DeletePod>(action) || std::holds_alternative<EvictPod>(action) ||
         std::holds_alternative<RestartDaemonSet>(action) || std::holds_alternative<DeleteObject>(action);
}

// A node that has lost its first pods is finished: its views are lists that are a few minutes old at most, and each
// deletion has the pod's uid.
void leave_out_what_stale_views_begin(Plan& plan, const Snapshot& s, const Index& index) {
  std::erase_if(plan.actions, [&](const PlannedAction& planned) {
    if (!begins_or_deletes(planned, s.settings)) return false;
    const NodeAssessment* a = index.find(planned.node);
    if (a != nullptr && stale_view_of(s, index.installation_of(*a).ns) == nullptr) return false;
    return a == nullptr || (a->phase != Phase::restarting && a->phase != Phase::verifying);
  });
}

// Both have the annotation of owned labels as a whole, from the same view: the directory's label waits for the next
// pass.
void postpone_directory_labels(Plan& plan) {
  const auto writes_owned = [](const PatchNode& patch) {
    return patch.set_annotations.contains(std::string(kOwnedAnnotation)) ||
           patch.remove_annotations.contains(std::string(kOwnedAnnotation));
  };
  std::set<std::string> others;
  for (const PlannedAction& planned : plan.actions) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch != nullptr && planned.why.code != kDirectoryLabelled && writes_owned(*patch)) others.insert(patch->name);
  }
  std::erase_if(plan.actions, [&](const PlannedAction& planned) {
    return planned.why.code == kDirectoryLabelled && others.contains(planned.node);
  });
}

k8s::Gvr sub(const k8s::Gvr& resource, std::string_view name) {
  return {resource.group, resource.version, resource.resource + "/" + std::string(name)};
}

// Rolls out the target revision of each profile, within budgets, and verifies each node.
Reconciler sharing_rollout_line() {
  return {
      kSharingRollout,
      {resources::nodes, resources::pods, resources::config_maps, resources::daemon_sets,
       resources::controller_revisions, resources::cluster_policies, resources::gpu_clusters, resources::device_classes,
       resources::resource_slices, resources::sharing_policies, resources::sharing_rollouts},
      {{resources::nodes, {"patch"}},
       {resources::pods, {"list", "delete"}},
       {sub(resources::pods, "eviction"), {"create"}},
       {resources::config_maps, {"create", "patch"}},
       {resources::daemon_sets, {"patch"}},
       {resources::sharing_policies, {"patch"}},
       {resources::sharing_rollouts, {"create", "delete"}},
       {sub(resources::sharing_rollouts, "status"), {"patch"}},
       {resources::events, {"create", "patch"}}},
      sharing_rollout,
      true};
}

// Deletes KAI's reservation pods that have no consumer; compares reservations with their consumers.
Reconciler reservation_gc_line() {
  return {kReservationGc,
          {resources::nodes, resources::pods, resources::kai_configs, resources::bind_requests, resources::deployments,
           resources::custom_resource_definitions},
          {{resources::pods, {"list", "delete"}},
           {resources::nodes, {"get"}},
           {resources::config_maps, {"get"}},
           {resources::leases, {"get"}},
           {resources::events, {"create", "patch"}}},
          reservation_gc};
}

}  // namespace

const std::vector<Reconciler>& reconcilers() {
  static const std::vector<Reconciler> list = {
      // Records what nodes run, verifies it by effect, and reports why a node is Blocked.
      {kNodeProfile,
       {resources::nodes, resources::pods, resources::config_maps, resources::daemon_sets,
        resources::controller_revisions, resources::cluster_policies, resources::gpu_clusters,
        resources::device_classes, resources::resource_slices, resources::sharing_policies},
       {{resources::nodes, {"patch"}}, {resources::events, {"create", "patch"}}},
       node_profile,
       true},
      sharing_rollout_line(),
      // Writes the sharing labels of nodes that no GPU Feature Discovery serves, and where standalone MPS daemons are.
      {kNodeLabels,
       {resources::nodes, resources::pods, resources::config_maps, resources::daemon_sets,
        resources::controller_revisions, resources::cluster_policies, resources::gpu_clusters,
        resources::sharing_policies},
       {{resources::nodes, {"patch"}}},
       node_labels},
      // Marks nodes with an MPS control daemon for KAI's pods (nvidia.mps/enabled).
      {kNodeMpsReady,
       {resources::nodes, resources::pods, resources::config_maps, resources::daemon_sets,
        resources::controller_revisions, resources::cluster_policies, resources::gpu_clusters,
        resources::sharing_policies, resources::kai_configs, resources::bind_requests},
       {{resources::nodes, {"patch"}}},
       mps_ready},
      // Creates the default policy and writes the status of every policy.
      {kPolicyStatus,
       {resources::nodes, resources::pods, resources::config_maps, resources::daemon_sets,
        resources::controller_revisions, resources::cluster_policies, resources::gpu_clusters,
        resources::sharing_policies, resources::sharing_rollouts},
       {{resources::sharing_policies, {"create"}},
        {sub(resources::sharing_policies, "status"), {"patch"}},
        {resources::config_maps, {"create", "patch"}},
        {resources::events, {"create", "patch"}}},
       policy_status,
       true},
      // Gives the GPUs of nodes that are labelled for it the MPS slices that pending pods ask for.
      {kNodePartitioning,
       {resources::nodes, resources::pods, resources::config_maps, resources::daemon_sets, resources::leases},
       {{resources::nodes, {"patch"}}, {resources::config_maps, {"patch"}}, {resources::events, {"create", "patch"}}},
       node_partitioning},
      // Reports which sharing mode of KAI is in effect, and which settings of kai-config cannot work.
      {kKaiConfig,
       {resources::kai_configs, resources::pods, resources::config_maps, resources::runtime_classes,
        resources::custom_resource_definitions},
       {{resources::config_maps, {"create", "patch"}}, {resources::events, {"create", "patch"}}},
       kai_config},
      reservation_gc_line(),
  };
  return list;
}

bool store_synced(const World& world, const k8s::Gvr& resource) {
  if (resource == resources::nodes) return world.nodes.synced();
  if (resource == resources::pods) return world.operand_pods.synced();
  if (resource == resources::config_maps) return world.configmaps.synced();
  if (resource == resources::daemon_sets) return world.daemonsets.synced();
  if (resource == resources::controller_revisions) return world.revisions.synced();
  if (resource == resources::cluster_policies) return world.clusterpolicies.synced() || world.clusterpolicies_forbidden;
  if (resource == resources::sharing_policies) return world.policies.synced();
  if (resource == resources::sharing_rollouts) return world.rollouts.synced();
  return true;
}

namespace {

// Before anything takes a slot.
void read_slices(const Snapshot& snapshot, Index& index, PartitioningMode mode, RolloutViews& rollouts) {
  if (mode == PartitioningMode::off) return;
  rollouts.labelled =
      read_labelled_nodes(snapshot, index.discovery, index.nodes_in(Bucket::partitioned), index.partitioning);
  if (mode == PartitioningMode::enforce) rollouts.slices = slice_nodes(snapshot.world, index, rollouts.labelled);
}

Plan plan_one(const Reconciler& reconciler, const Snapshot& snapshot, FleetIndex& index, RolloutViews& rollouts,
              PartitioningMode partitioning) {
  if (reconciler.name != kNodePartitioning) return reconciler.plan(snapshot, index, rollouts);
  const PartitioningMode mode = effective_mode(partitioning, snapshot.settings);
  if (mode == PartitioningMode::off) return switched_off(snapshot.world, index.impl().nodes_in(Bucket::partitioned));
  Plan plan = reconciler.plan(snapshot, index, rollouts);
  return mode == PartitioningMode::observe ? observed(std::move(plan)) : plan;
}

}  // namespace

Plan plan_all(const Snapshot& snapshot, FleetIndex& index, const ReconcilerFilter& filter) {
  Plan plan;
  const World& world = snapshot.world;
  // The discovered operands decide which stores are read, and the record decides what nodes have loaded.
  const bool known = !world.unsynced_namespaces.contains(snapshot.settings.operator_namespace);
  if (known) index.refresh(world, snapshot.settings);
  RolloutViews rollouts(snapshot, index.impl());
  if (known) rollouts.declare_timers();
  if (known) read_slices(snapshot, index.impl(), effective_mode(filter.partitioning, snapshot.settings), rollouts);
  for (const Reconciler& reconciler : reconcilers()) {
    if (!filter.only.empty() && reconciler.name != filter.only) continue;
    const bool synced = known && std::ranges::all_of(reconciler.watches, [&](const k8s::Gvr& resource) {
                          return filter.synced ? filter.synced(resource) : store_synced(world, resource);
                        });
    const bool stale = is_stale(reconciler, world);
    if (filter.begin) filter.begin();
    std::optional<Plan> part;
    if (synced && (!stale || reconciler.continues_changes))
      part = plan_one(reconciler, snapshot, index, rollouts, filter.partitioning);
    if (part && stale) leave_out_what_stale_views_begin(*part, snapshot, index.impl());
    if (filter.planned) filter.planned(reconciler, part ? &*part : nullptr);
    if (!part && reconciler.name == kSharingRollout) plan.timers_complete = false;
    if (part) plan.append(std::move(*part));
  }
  plan.append(rollouts.take_plan());
  report_stale_views(snapshot, plan);
  leave_out_nodes_being_written(plan, world);
  postpone_directory_labels(plan);
  plan.drop_repeated_findings();
  put_in_order(plan.timers);
  return plan;
}

}  // namespace gso
