// Assessments of a cluster state that does not exist yet.
#include "reconcilers/explain/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/standstill.h"

namespace gso {

namespace {

// It has another target than the change that it is going through.
bool changes_course(const NodeAssessment& a) {
  return a.in_change() && a.change->to != a.target.view();
}

// The components of a change in progress: those whose pods are still to be replaced, or those that are replaced
// already.
std::vector<Component> components_of(const Pass& pass, const std::string& node, const NodeChange& change, bool left) {
  std::set<k8s::Uid> present;
  for (const Pod* pod : pass.index.pods_of(node)) present.insert(pod->meta.uid);
  std::vector<Component> out;
  for (const auto& [component, uids] : change.pods) {
    const bool any_left = std::ranges::any_of(uids, [&](const k8s::Uid& uid) { return present.contains(uid); });
    if (any_left == left) out.push_back(component);
  }
  return out;
}

// The node, its policy, and its profile before and after.
NodeDifference revisions_of(const World& world, const std::string& name, const NodeAssessment& a) {
  NodeDifference out;
  out.node = name;
  out.policy = a.policy.view();
  out.profile = shown_profile(a.profile_ref.view());
  const Node* node = world.nodes.find(name);
  if (node == nullptr || !loaded_text_is_unknown(*node, a)) out.from = a.loaded.revision.view();
  out.to = a.target.view();
  return out;
}

// The change waits for pods, and cordons the node, as its policy says. `will_shrink`: what is announced serves less.
void follow_policy(const Pass& pass, const NodeAssessment& a, bool will_shrink, NodeDifference& out) {
  const RolloutSpec& rollout = pass.index.policy(pass.s.world, a.policy.view()).rollout;
  out.held = a.holder;
  out.workloads = rollout.workloads;
  out.drain = drain_for(a, out.transition, rollout.workloads);
  if (will_shrink && out.drain == Drain::nothing && rollout.workloads != WorkloadMode::interrupt)
    out.drain = Drain::fits;
  out.cordon = rollout.cordon;
  out.cordons = start_cordons(out.cordon, out.transition, starts_live(out.drain, out.drain == Drain::nothing));
}

NodeDifference difference_of(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  const Node& node = *pass.s.world.nodes.find(name);
  NodeDifference out = revisions_of(pass.s.world, name, a);
  // Its new pods were started with the text of the change that failed, which the record does not have.
  const bool failed = a.change != nullptr && a.change->failed && a.change->to != a.target.view();
  if (failed && !components_of(pass, name, *a.change, false).empty()) out.from = a.change->to;
  out.cause = a.cause;
  out.transition = a.transition;
  out.workloads = pass.index.policy(pass.s.world, a.policy.view()).rollout.workloads;
  if (a.is_blocked() || a.profile == nullptr || !a.profile->valid) {
    out.blocked = a.obstacle;
    return out;
  }
  if (a.expectation)
    for (const auto& [resource, count] : a.expectation->capacity) out.serves[resource] = count;
  out.certainly_serves = served_afterwards(a);
  if (a.in_change()) {
    out.in_progress = true;
    out.blocked.message = blocking_pods_of(pass.s.world, name);
    out.cordons = a.change->cordoned;
    // What has been replaced runs the text of the change, and must be replaced once more to run another.
    out.restarts = components_of(pass, name, *a.change, !changes_course(a));
    if (changes_course(a) && !out.restarts.empty()) out.from = a.change->to;
  }
  if (a.phase != Phase::pending) return out;  // Its pods reload by themselves.
  for (const auto& [component, uids] : pods_to_replace(view_of(pass, node, a), {a.transition, a.cause}))
    if (!uids.empty()) out.restarts.push_back(component);
  follow_policy(pass, a, false, out);
  return out;
}

// The world as it is once the write has succeeded.
void assume_written(World& world, const WriteConfigMap& write) {
  world.configmaps.apply(written(world.configmaps.find(write.config_map), write));
}

}  // namespace

bool assume_baseline(World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now) {
  index.refresh(world, settings);
  bool assumed = false;
  // The baseline of a large fleet is written in several steps.
  constexpr int kMostPasses = 4;
  for (int i = 0; i < kMostPasses && !index.impl().record && index.impl().record_problem.empty(); ++i) {
    Snapshot snapshot{world, now, kNoTimers, kNobodyListed, settings};
    snapshot.new_machines = NewMachines::record;
    const Plan plan = plan_all(snapshot, index, {.only = kSharingRollout, .synced = everything_synced});
    for (const PlannedAction& planned : plan.actions) {
      const auto* write = std::get_if<WriteConfigMap>(&planned.action);
      if (write == nullptr) continue;
      assume_written(world, *write);
      assumed = true;
    }
    index.note_everything_changed();
    index.refresh(world, settings);
  }
  return assumed;
}

std::string unrecorded_operator_text(std::string_view operator_lease) {
  return fmt::format("an operator runs here (Lease {}) and has recorded nothing yet, as with max-mode Observe",
                     operator_lease);
}

std::string assumed_baseline_text(std::string_view operator_lease) {
  if (operator_lease.empty()) return "No record of the operator was found; the current state is taken as the baseline";
  return fmt::format(
      "The current state is taken as the baseline: {}. Edits made before the first record are not rolled out by "
      "themselves when it is allowed to act: `gpu-sharing-operator rollout start POLICY --adopt`",
      unrecorded_operator_text(operator_lease));
}

namespace {

// Whether the step ends the change of a node, none of whose pods was deleted, and with which patch; null: it does not.
const PatchNode* way_out_of_change(const Step& step) {
  if (step.row != StepRow::c3) return nullptr;
  for (const PlannedAction& planned : step.plan.actions) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch != nullptr && patch->remove_annotations.contains(std::string(kChangeAnnotation))) return patch;
  }
  return nullptr;
}

// Nodes whose change is backed out at once, because they have another target: `world` has them as they are then.
// Returns them as they were.
std::vector<Node> back_out(World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now) {
  std::vector<Node> before;
  std::vector<std::string> waiting = index.node_names();
  std::erase_if(waiting, [&](const std::string& name) {
    const NodeAssessment& a = *index.assessment(name);
    return a.phase != Phase::draining || !changes_course(a);
  });
  if (waiting.empty()) return before;
  std::vector<Node> after;
  ReadingPass pass(world, index, settings, now);
  for (const std::string& name : waiting) {
    const Node& node = *world.nodes.find(name);
    const Step* step = pass.step_of(node, *index.assessment(name));
    const PatchNode* patch = step == nullptr ? nullptr : way_out_of_change(*step);
    if (patch == nullptr) continue;
    before.push_back(node);
    after.push_back(patched(node, *patch));
  }
  for (const Node& node : after) world.nodes.replace(node);
  return before;
}

}  // namespace

std::vector<NodeDifference> differences(World& world, const PlannerSettings& settings, WallTime now) {
  FleetIndex index;
  (void)assume_baseline(world, index, settings, now);
  const std::vector<Node> backed_out = back_out(world, index, settings, now);
  if (!backed_out.empty()) {
    index.note_everything_changed();
    index.refresh(world, settings);
  }
  const Snapshot snapshot{world, now, kNoTimers, kNobodyListed, settings};
  const Pass pass(snapshot, index.impl(), kSharingRollout, nullptr);
  std::vector<NodeDifference> out;
  for (const std::string& name : index.node_names()) {
    const NodeAssessment* a = index.assessment(name);
    const bool same = a->loaded.revision == a->target && a->loaded.profile == a->profile_ref && !a->label;
    const bool settled = a->phase == Phase::up_to_date || a->phase == Phase::unmanaged || a->phase == Phase::unrecorded;
    const bool leaves = std::ranges::any_of(backed_out, [&](const Node& node) { return node.meta.name == name; });
    if (settled && leaves) out.emplace_back(revisions_of(world, name, *a)).leaves = true;
    if (settled || (same && !a->is_blocked() && a->phase != Phase::pending && !changes_course(*a))) continue;
    out.push_back(difference_of(pass, name, *a));
  }
  for (const Node& node : backed_out) world.nodes.replace(node);
  return out;
}

namespace {

bool runs_daemon(const Pass& pass, const Node& node, const NodeAssessment& a) {
  return !view_of(pass, node, a).pods.of(Component::mps).empty();
}

// Between what it runs and what its ClusterPolicy announces. All its pods are replaced, those of the MPS daemon
// included.
Transition announced_transition(const Pass& pass, const Node& node, const NodeAssessment& a, std::string_view to) {
  const bool has_daemon = runs_daemon(pass, node, a);
  const ProfilePtr after = pass.index.profiles.by_revision(to);
  const Profile* before = a.profile != nullptr && a.profile->valid ? &a.profile->profile() : nullptr;
  Transition out = Transition::plugin_only;
  if (after != nullptr && after->valid) out = std::max(out, transition_on(node, has_daemon, before, after->profile()));
  return has_daemon && !steps_for(out).touches_mps ? Transition::change_mps : out;
}

// Of DaemonSets that get another template: all their pods are replaced, also where the profile stays the same.
std::vector<Component> announced_restarts(const PluginInstallation& installation, const Node& node,
                                          Transition transition) {
  const bool ends_daemon = transition == Transition::change_mps || transition == Transition::leave_mps;
  std::vector<Component> out;
  for (const Operand& operand : installation.operands) {
    const bool differs = operand.config_map != installation.announced_config_map ||
                         operand.default_key != installation.announced_default;
    if (differs && (operand.component != Component::mps || ends_daemon) &&
        installation.find(operand.component, node) == &operand)
      out.push_back(operand.component);
  }
  std::ranges::sort(out);
  return out;
}

// nullopt: the node goes on as it is.
std::optional<NodeDifference> announced_difference(const Pass& pass, const std::string& name) {
  const World& world = pass.s.world;
  const NodeAssessment& a = *pass.index.find(name);
  const PluginInstallation& installation = pass.index.installation_of(a);
  const ClusterPolicy* policy = world.clusterpolicies.find(installation.owner);
  if (installation.provider != Provider::gpu_operator || policy == nullptr) return std::nullopt;
  const bool is_deleted = !policy->device_plugin_enabled;
  const bool staged = !is_deleted && std::ranges::all_of(installation.operands, &Operand::on_delete);
  if (!is_deleted && !installation.announced) return std::nullopt;
  const Node& node = *world.nodes.find(name);
  NodeDifference out = revisions_of(world, name, a);
  if (installation.config_map.empty()) out.from = pass.index.profiles.compile("")->revision;
  out.to.clear();
  out.cause = ChangeCause::new_template;
  out.announced = !staged;
  out.cordon = false;
  if (is_deleted || !a.would_break.empty()) {
    out.blocked = {kNodesWouldBreak,
                   is_deleted ? "spec.devicePlugin.enabled is false: the GPU Operator deletes the device plugin"
                              : std::string(a.would_break.view())};
    out.transition = runs_daemon(pass, node, a) ? Transition::leave_mps : Transition::plugin_only;
    for (const auto& [resource, count] : node.capacity)
      if (count > 0) out.serves[std::string(resource.view())] = 0;
    out.certainly_serves = out.serves;
  } else {
    NodeAssessment::Announced after{a.profile_ref, std::string(a.target.view()), a.expectation};
    if (a.announced != nullptr) after = *a.announced;
    out.profile = shown_profile(after.profile_ref.view());
    out.to = after.revision;
    out.transition = announced_transition(pass, node, a, after.revision);
    if (after.expectation != nullptr) {
      out.serves = after.expectation->capacity;
      out.certainly_serves = served_with(*after.expectation, a.measured_gpus);
    }
  }
  if (staged && !out.blocked.code.empty()) return out;  // The operator restarts no pod that would lose its GPUs.
  if (!is_deleted) out.restarts = announced_restarts(installation, node, out.transition);
  if (out.restarts.empty() && out.blocked.code.empty()) return std::nullopt;
  if (staged)
    follow_policy(pass, a, a.would_shrink, out);
  else
    out.drain = steps_for(out.transition).disruptive ? Drain::idle : Drain::fits;
  return out;
}

}  // namespace

std::vector<NodeDifference> announced_differences(World& world, const PlannerSettings& settings, WallTime now) {
  FleetIndex index;
  (void)assume_baseline(world, index, settings, now);
  const Snapshot snapshot{world, now, kNoTimers, kNobodyListed, settings};
  const Pass pass(snapshot, index.impl(), kSharingRollout, nullptr);
  std::vector<NodeDifference> out;
  for (const std::string& name : index.node_names())
    if (std::optional<NodeDifference> d = announced_difference(pass, name)) out.push_back(*std::move(d));
  return out;
}

std::vector<std::string> drift_left_alone(const World& world, const PlannerSettings& settings) {
  FleetIndex index;
  index.refresh(world, settings);
  std::vector<std::string> out;
  for (const std::string& name : index.node_names()) {
    const NodeAssessment& a = *index.assessment(name);
    if (drifts(a) && !baseline_excuse(a).empty()) out.push_back(name);
  }
  return out;
}

k8s::Result<void> apply_given(World& world, const PlannerSettings& settings, const GivenText& given, WallTime now) {
  FleetIndex index;
  index.refresh(world, settings);
  const auto& installations = index.installations();
  const bool mounted = std::ranges::any_of(installations, [&](const PluginInstallation& installation) {
    return installation.config_map_key() == given.config_map;
  });
  const ConfigMap* present = world.configmaps.find(given.config_map);
  if (!mounted) {
    std::set<std::string> ids;  // Several installations can mount one.
    for (const PluginInstallation& installation : installations) ids.insert(installation.id());
    const std::vector<std::string> known(ids.begin(), ids.end());
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("no device plugin mounts ConfigMap {}; they mount {}",
                                 k8s::to_string(given.config_map), known.empty() ? "none" : first_names(known)));
  }
  if (present == nullptr) {
    return k8s::fail(
        k8s::Reason::invalid,
        fmt::format("ConfigMap {} does not exist, and a device plugin mounts it. Create it again first: "
                    "`gpu-sharing-operator audit` has the command, and `gpu-sharing-operator rollout undo` "
                    "prints the recorded text of a key",
                    k8s::to_string(given.config_map)));
  }
  if (present->immutable)
    return k8s::fail(k8s::Reason::invalid, fmt::format("ConfigMap {} is immutable", k8s::to_string(given.config_map)));
  (void)assume_baseline(world, index, settings, now);
  ConfigMap next = *world.configmaps.find(given.config_map);
  if (given.whole) {
    std::erase_if(next.data, [&](const auto& entry) {
      return !given.keys.contains(entry.first) && !next.our_keys.contains(entry.first);
    });
  }
  for (const auto& [key, text] : given.keys) next.data[key] = std::make_shared<const std::string>(text);
  next.data_changed = now;
  next.data_time_known = true;
  world.configmaps.apply(std::move(next));
  return {};
}

void find_obstacles(NodeDifference& difference, const World& world, const PlannerSettings& settings,
                    const NodeConsumers& consumers) {
  if (difference.drain == Drain::nothing) return;
  const std::map<std::string, NodeConsumers> listed{{difference.node, consumers}};
  const Snapshot snapshot{.world = world,
                          .now = {},
                          .timers = kNoTimers,
                          .consumers = listed,
                          .settings = settings,
                          .mono = consumers.listed_at};
  const NodeUse use = use_of(snapshot, difference.node);
  const bool is_drained = drained(difference.drain, use, difference.certainly_serves);
  difference.cordons =
      start_cordons(difference.cordon, difference.transition, starts_live(difference.drain, is_drained));
  const bool breaks_all = difference.announced && difference.drain == Drain::idle;
  if (is_drained && !breaks_all) return;
  difference.beyond = requests_beyond(use, difference.certainly_serves, difference.serves);
  std::vector<const Pod*> pods = use.waiting;
  if (difference.announced) pods.insert(pods.end(), use.daemonset_owned.begin(), use.daemonset_owned.end());
  for (const Pod* pod : pods) difference.blocked_by_pods.push_back(k8s::to_string(pod->meta.key()));
  std::ranges::sort(difference.blocked_by_pods);
}

namespace {

// Waits that end by themselves within moments after an edit. Soaks and deadlines are no such waits.
bool ends_shortly(Timer timer) {
  return timer == Timer::settled || timer == Timer::key_text || timer == Timer::projecting;
}

// A change that has failed is over: the next one takes its place.
bool is_in_change(const Node& node) {
  if (!node.meta.annotations.get(kChangeAnnotation)) return false;
  const std::shared_ptr<const NodeChange> change = change_of(node);
  return change == nullptr || !change->failed;
}

// What the plan does to the world. `started`: gets the nodes whose change begins. True if the next plan finds another
// world: a SharingRollout of an earlier attempt goes, and the operator records something, before a node starts.
bool carry_out(const Plan& plan, World& world, std::set<std::string>& started) {
  bool differs = false;
  for (const PlannedAction& planned : plan.actions) {
    if (const auto* removal = std::get_if<DeleteObject>(&planned.action)) {
      world.rollouts.erase({"", removal->object.name});
      differs = true;
    }
    if (const auto* write = std::get_if<WriteConfigMap>(&planned.action)) {
      assume_written(world, *write);
      differs = true;
    }
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    const Node* node = patch == nullptr || !writes_change(*patch) ? nullptr : world.nodes.find(patch->name);
    if (node == nullptr || is_in_change(*node)) continue;  // It has begun before.
    Node begun = patched(*node, *patch);
    if (!is_in_change(begun)) continue;
    world.nodes.replace(std::move(begun));
    started.insert(patch->name);
  }
  return differs;
}

// The timers that the plan names run, and short waits are over. False: none of them is new.
bool credit(const Plan& plan, WallTime now, Timers& timers) {
  bool fresh = false;
  const auto add = [&](const TimerKey& timer, WallTime since) {
    if (ends_shortly(timer.timer)) since = now - std::chrono::hours(1);
    fresh = timers.emplace(timer, since).second || fresh;
  };
  for (const auto& [timer, since] : plan.timer_starts) add(timer, since);
  for (const TimerKey& timer : plan.timers)
    if (ends_shortly(timer.timer)) add(timer, now);
  return fresh;
}

// Of a rollout that starts no node yet, although nothing that lasts stops it.
std::string short_wait_of(ReadingPass& pass, const NodeAssessment& a, const std::string& settling) {
  if (!settling.empty()) return "settling: " + settling;
  const RolloutView* rollout = pass.rollout(pass.index().rollout_key_of(a));
  const Gate gate = rollout == nullptr ? Gate::open : rollout->gate().gate;
  if (gate == Gate::settling || gate == Gate::key_not_projected)
    return "settling: the profile has just changed, and nodes start once it stays the same and the kubelets have it";
  return "not yet decided";
}

// `settling`: when the nodes of its policy start at the earliest, where that is known.
std::string why_it_waits(ReadingPass& pass, const Node& node, const NodeAssessment& a,
                         const std::map<std::string, NodeConsumers>& consumers, const std::string& settling) {
  if (const auto why = node_out_of_reach(a, node)) return why->message;
  if (const Reason* stop = pass.stop_of(a)) return stop->code + ": " + stop->message;
  if (const Reason wait = pass.wait_of(a); !wait.code.empty()) return wait.message;
  const auto listed = consumers.find(node.meta.name);
  return listed != consumers.end() && !listed->second.pods.empty() ? "pods use its GPUs: idle nodes start first"
                                                                   : short_wait_of(pass, a, settling);
}

}  // namespace

FirstStarts first_starts(World& world, const PlannerSettings& settings, WallTime now,
                         const std::map<std::string, NodeConsumers>& consumers, std::string_view policy) {
  // Before the short waits count as over.
  FleetIndex index;
  index.refresh(world, settings);
  const std::string settling = ReadingPass(world, index, settings, now).settling()[std::string(policy)];
  // One plan after the other, each with the short waits over that the one before has named, until one starts nodes or
  // nothing new shows.
  constexpr int kMostRounds = 8;
  std::set<std::string> started;
  Timers timers;
  for (int round = 0; round < kMostRounds && started.empty(); ++round) {
    FleetIndex present;
    const Snapshot snapshot{world, now, timers, consumers, settings, nullptr, round == 0};
    const Plan plan = plan_all(snapshot, present, {.synced = everything_synced});
    const bool differs = carry_out(plan, world, started);
    if (!credit(plan, now, timers) && !differs) break;
  }
  index.note_everything_changed();
  index.refresh(world, settings);
  // The short waits are over for this look as well.
  const Snapshot snapshot{world, now, timers, consumers, settings};
  ReadingPass pass(snapshot, index);
  FirstStarts out;
  for (const std::string& name : index.node_names()) {
    const NodeAssessment& a = *index.assessment(name);
    if (a.policy != policy) continue;
    if (started.contains(name)) out.nodes.insert(name);
    if (a.phase == Phase::pending)
      out.waits.emplace(name, why_it_waits(pass, *world.nodes.find(name), a, consumers, settling));
  }
  return out;
}

}  // namespace gso
