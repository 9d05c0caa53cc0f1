// The state of a node, and the parts of it that tables and audits show alone.
#include "reconcilers/explain/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/repairs.h"
#include "reconcilers/rollout/standstill.h"
#include "reconcilers/standalone/standalone.h"
#include "reconcilers/status/status.h"

namespace gso {

bool shares_by_mps(const NodeAssessment* a) {
  return a != nullptr && a->profile != nullptr && a->profile->valid &&
         a->profile->profile().strategy() == Strategy::mps;
}

std::string state_note(std::string_view state, bool assumed, std::string_view operator_lease) {
  if (state == kDrift)
    return "Drift: the node has loaded its profile, but does not show what the profile must produce. If that lasts for "
           "verifyTimeout, the operator restarts its pods of the device plugin, GFD and MPS, unless a message about "
           "the node says why they are not restarted.";
  if (state == kPreexistingDrift && assumed && !operator_lease.empty())
    return fmt::format(
        "PreexistingDrift: the node does not show what its profile must produce, and {}. Once it is allowed to act, it "
        "records the fleet first, reports such nodes, and changes them only on request: gpu-sharing-operator rollout "
        "start POLICY --adopt",
        unrecorded_operator_text(operator_lease));
  if (state == kPreexistingDrift && assumed)
    return "PreexistingDrift: the node does not show what its profile must produce. If you install the operator now, "
           "it reports such nodes, and changes them only on request: gpu-sharing-operator rollout start --adopt";
  if (state == kPreexistingDrift)
    return "PreexistingDrift: the node did not show what its profile must produce when the operator first saw it. The "
           "operator reports such nodes, and changes them only on request: gpu-sharing-operator rollout start --adopt";
  if (state == kUnproven)
    return "Unproven: which text the pods of the node have loaded is not known. The operator changes such nodes only "
           "on request: gpu-sharing-operator rollout start --adopt";
  return {};
}

std::string shown_revision(std::string_view revision) {
  return revision == kInvalidRevision ? "(invalid)" : std::string(revision);
}

std::string shown_profile(std::string_view profile) {
  if (profile == "/") return std::string(or_none(""));
  return std::string(profile).append(profile.ends_with('/') ? or_none("") : "");
}

bool loaded_text_is_unknown(const Node& node, const NodeAssessment& assessment) {
  return serves_gpus(node) && assessment.loaded.revision == kInvalidRevision;
}

std::string shown_loaded_revision(const Node& node, const NodeAssessment& assessment) {
  return loaded_text_is_unknown(node, assessment) ? "(unknown)" : shown_revision(assessment.loaded.revision.view());
}

namespace {

// The entry of a node that waits, in the status of its SharingRollout; null: there is none.
nlohmann::json waiting_entry(const World& world, std::string_view node) {
  for (const SharingRollout* rollout : in_order(world.rollouts)) {
    if (rollout->status_json.find(node) == std::string::npos) continue;
    if (rollout->phase != "Progressing" && rollout->phase != "Paused") continue;
    for (const auto& entry : list_at(parse_status(rollout->status_json), "nodes"))
      if (text_at(entry, "name") == node && text_at(entry, "state") == "Waiting") return entry;
  }
  return {};
}

}  // namespace

std::string blocking_pods_of(const World& world, std::string_view node) {
  const nlohmann::json entry = waiting_entry(world, node);
  const std::string reason = text_at(entry, "reason");
  return is_about_pods(reason) && reason != kDeferred ? text_at(entry, "message") : std::string();
}

Reason reason_in(const nlohmann::json& entry) {
  return {text_at(entry, "reason"), text_at(entry, "message"), facts_in(entry)};
}

std::optional<Reason> refusal_of(const World& world, std::string_view node) {
  const nlohmann::json entry = waiting_entry(world, node);
  Reason out = reason_in(entry);
  if (out.code != kPdbRefuses && out.code != kForbidden) return std::nullopt;
  return out;
}

std::string gone_policy_text(const ReadingPass& pass, std::string_view policy) {
  const Index& index = pass.index();
  const auto held = index.held_policies.find(std::string(policy));
  if (held == index.held_policies.end() || !index.record) return {};
  if (!has_recorded_stop(*index.record, held->second)) return {};
  const std::string stop = stops_of(held->second);
  return fmt::format("SharingPolicy {} no longer exists, and its stop ({}) still applies", policy,
                     stop.empty() ? "a paused or aborted rollout" : stop);
}

namespace {

// The Progressing condition of a status that the operator wrote; empty: it says nothing yet, or names the end of a
// rollout: ReadingPass::stop_of() knows those of the present one, so that this one was replaced since, or is retried.
std::string progressing(const std::string& status_json) {
  const auto said = condition_in(parse_status(status_json), "Progressing");
  const std::string reason = text_at(said, "reason");
  if (reason.empty() || reason == kNothingToDo || is_stopped(named_gate(reason))) return {};
  return (reason == kRollingOut ? "" : reason + ": ") + text_at(said, "message");
}

// Behind which workloads the busy nodes of a group wait, as the operator reports it; empty: it does not.
std::string workloads_before(const SharingRollout& rollout, std::string_view product) {
  for (const nlohmann::json& group : list_at(parse_status(rollout.status_json), "waits"))
    if (text_at(group, "product") == product && text_at(group, "reason") == kWaitingForWorkloads)
      return text_at(group, "message");
  return {};
}

// Whether the status of its rollout, or without one that of its policy, can speak of no other group than the node's.
struct Alone {
  bool in_rollout = true;
  bool in_policy = true;
};

Alone alone(const Index& index, const NodeAssessment& a) {
  const RolloutKey key = index.rollout_key_of(a);
  Alone out;
  for (const auto& [other, rollout] : index.profile_rollouts) {
    if (other == key) {
      out.in_rollout = std::ranges::none_of(rollout.groups, [&](const auto& group) {
        return !group.second.pending.empty() && group.first != a.product.view();
      });
    } else if (other.policy == key.policy && rollout.tally.of(Phase::pending) + rollout.tally.moving() > 0) {
      out.in_policy = false;
    }
  }
  out.in_policy = out.in_policy && out.in_rollout;
  return out;
}

// What a node that needs a change waits for: why the operator must not change it now, else what stops its rollout, else
// what the status of its rollout says of it, else what its group waits for. Only the operator knows how long a wait
// that ends by itself has lasted, and which pods it has listed: what it wrote about the rollout comes last, and only if
// it can speak of no other group.
Reason waits_for(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  const World& world = pass.world();
  if (auto why = node_out_of_reach(a, node)) return *std::move(why);
  const SharingPolicy* policy = world.policies.find(a.policy.view());
  const Reason* stop = policy == nullptr ? nullptr : pass.stop_of(a);
  if (stop != nullptr) return {stop->code, fmt::format("{}: {}", stop->code, stop->message)};
  if (Reason wait = reason_in(waiting_entry(world, node.meta.name)); !wait.message.empty()) return wait;
  if (policy == nullptr && !sharing_objects_unread(world)) {
    const std::string gone = gone_policy_text(pass, a.policy.view());
    const std::string_view code = world.policies_served ? kPolicyGone : kCrdsGone;
    if (!gone.empty()) return {code, fmt::format("{}: {}", code, gone)};
  }
  if (Reason wait = pass.wait_of(a); !wait.code.empty()) return wait;
  const Alone only = alone(pass.index(), a);
  const SharingRollout* rollout = world.rollouts.find(rollout_name(pass.index().rollout_key_of(a), a.target.view()));
  const bool under_way = rollout != nullptr && !has_ended(rollout->phase);
  std::string out;
  if (only.in_rollout && under_way) out = progressing(rollout->status_json);
  // Which nodes are in use, only the operator knows: of a node for which nothing else is known that is the reason,
  // because one without pods starts.
  if (out.empty() && under_way) out = workloads_before(*rollout, a.product.view());
  if (out.empty() && only.in_policy && policy != nullptr) out = progressing(policy->status_json);
  return {{}, std::move(out)};
}

std::string no_plugin_text(const World& world, const Node& node) {
  const std::vector<Operand> hami = hami_plugins(world);
  if (const Operand* plugin = hami_plugin_on(hami, node))
    return fmt::format("HAMi's device plugin (DaemonSet {}) serves the GPUs of this node, and no SharingPolicy applies",
                       k8s::to_string(plugin->key));
  const bool served = serves_gpus(node);
  if (const std::optional<ObjectKey> cloud = cloud_plugin_on(world, node)) {
    return fmt::format("the cloud provider's device plugin (DaemonSet {}) {}", k8s::to_string(*cloud),
                       served ? "serves the GPUs of this node: its profile cannot be changed by the operator"
                              : "selects the node, but no GPU is allocatable");
  }
  if (served)
    return "GPUs are allocatable, and no device plugin DaemonSet selects the node: a plugin that the cloud provider "
           "manages, or a static pod, serves them, and its profile cannot be changed by the operator";
  return "no device plugin DaemonSet selects the node";
}

// Why a drifting node is not repaired, although it could be: what stops its rollout, or a full budget. Empty: nothing.
std::string why_not_repaired(ReadingPass& pass, const std::string& node, const NodeAssessment& a) {
  const RolloutView* rollout = pass.rollout_of(a);
  if (rollout == nullptr || !pass.index().nodes_in(Bucket::repairable).contains(node)) return {};
  if (std::string stop = repair_stop(*rollout); !stop.empty()) return stop;
  return is_busy(a) ? std::string() : rollout->exhausted(std::string(a.product.view())).message;
}

// Why a node has no record; empty: its own message says it, or nothing is wrong.
std::string unrecorded_text(const ReadingPass& pass, const NodeAssessment& a) {
  const std::string& problem = pass.index().record_problem;
  if (!problem.empty())
    return fmt::format("the operator's record cannot be read, so the operator changes nothing: {}", problem);
  if (a.matches() || !a.obstacle.message.empty()) return {};
  if (a.source == EffectiveKey::Source::error) {
    return "no record of the profile that the node loaded, and the node has no profile: its label, or the plugin's "
           "default, names no key of the ConfigMap";
  }
  return "no record of the profile that the node loaded, and the node does not show its profile: " +
         shown_difference(a);
}

// Of a node that runs its target, and serves.
ShownState coming_loss(const NodeAssessment& a) {
  return {std::string(kNodesWouldBreak),
          fmt::format("will lose its GPUs at the next restart of its pods: {}", a.would_break.view())};
}

// Without the operator's record, only what the annotations of the node say is known.
ShownState state_without_record(const ReadingPass& pass, const Node& node) {
  const std::shared_ptr<const NodeChange> change = change_of(node);
  if (change != nullptr && change->failed) {
    const std::string_view written = node.meta.annotations.get(kMessageAnnotation).value_or("");
    return {std::string(to_string(Phase::failed)), std::string(written.empty() ? change->failed->why : written), true};
  }
  const PlannerSettings& settings = pass.settings();
  return {std::string(kUnknown),
          fmt::format("the operator's record, ConfigMap {}/{}, could not be read{}", settings.operator_namespace,
                      settings.state_config_map, change == nullptr ? "" : "; a change of the node has begun")};
}

}  // namespace

ShownState shown_state(ReadingPass& pass, const Node& node) {
  const NodeAssessment* assessment = pass.index().find(node.meta.name);
  if (assessment == nullptr && is_partitioned_by_nos(node))
    return {std::string(kPartitionedByNos), nos_in_charge(node)};
  if (assessment == nullptr) return {"NoPlugin", no_plugin_text(pass.world(), node)};
  if (record_unread(pass.world(), pass.settings())) return state_without_record(pass, node);
  const NodeAssessment& a = *assessment;
  const std::string& ns = pass.index().installation_of(a).ns;
  if (pass.world().unsynced_namespaces.contains(ns)) {
    return {std::string(kUnknown),
            fmt::format("ConfigMaps, pods or controller revisions of namespace {}, where its device plugin is, could "
                        "not be read",
                        ns)};
  }
  const Phase phase = phase_of(a);
  ShownState shown{std::string(state_name(a)), a.obstacle.message, phase == Phase::failed || phase == Phase::blocked};
  const std::string_view why = shown_reason(a);
  if (phase == Phase::blocked || (phase == Phase::held && why != kHeld)) {
    shown.state = fmt::format("{}({})", to_string(phase), why);
    if (phase == Phase::held && why == a.holder) shown.message = describe_holder(a.holder, node);
  } else if (const auto edited = edit_not_live(pass.world(), pass.settings(), pass.index(), node, a)) {
    shown.message = edit_not_live_text(pass.world(), pass.index(), a, *edited);
  } else if (drifts(a)) {
    const std::string stopped = why_not_repaired(pass, node.meta.name, a);
    shown.message = drift_text(a) + (stopped.empty() ? "" : "; not repaired: " + stopped);
  } else if (a.phase == Phase::up_to_date && has_missing_devices(a)) {
    shown.message = missing_devices_text(a, a.verified);
  } else if (a.phase == Phase::up_to_date && a.at_install != AtInstall::shown) {
    shown = {std::string(kUnproven),
             "its pods are older than the last change of the profile: what they loaded is not known"};
  } else if (std::string why_none = a.phase == Phase::unrecorded ? unrecorded_text(pass, a) : std::string();
             !why_none.empty()) {
    shown.message = std::move(why_none);
  } else if (const Reason* stop = a.loads_by_itself() && !a.matches() ? pass.stop_of(a) : nullptr) {
    shown.message = "must show its profile by itself, because the operator does not restart it now: " + stop->message;
  } else if (a.in_change()) {
    shown.message = change_step(pass, node, a);
  }
  if (shown.message.empty() && a.phase == Phase::pending) {
    const Reason wait = waits_for(pass, node, a);
    shown.message = wait.message;
    shown.waits_for_slot = wait.code == kBudgetExhausted;
    if (shown.message.empty() && a.cause == ChangeCause::new_template)
      shown.message =
          "its pods have an older template of their DaemonSets (updateStrategy OnDelete); the operator replaces them "
          "in turn";
  }
  // It has read a text outside a change: the operator waits until it shows that.
  if (shown.message.empty() && a.loads_by_itself()) {
    shown.message = a.matches() ? "new profile is live; confirming"
                                : fmt::format("verifying what the node loaded by itself: {}", shown_difference(a));
  }
  const std::string_view written = node.meta.annotations.get(kMessageAnnotation).value_or("");
  const bool is_its_phase = phase == Phase::failed || phase == Phase::blocked;
  if (!written.empty() && is_its_phase) shown.message = written;
  if (shown.state == to_string(Phase::up_to_date) && !a.would_break.empty()) return coming_loss(a);
  if (shown.message.empty()) shown.message = a.would_break.view();
  if (shown.message.empty() && !node.ready && phase != Phase::unmanaged) shown.message = kNotReadyText;
  return shown;
}

std::optional<WallTime> edit_not_live(const World& world, const PlannerSettings& settings,
                                      const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  if (!drifts(a) || a.at_install != AtInstall::drifted || !node.ready || !serves_gpus(node)) return std::nullopt;
  const PluginInstallation& installation = index.installation_of(a);
  const ConfigMap* config_map = world.configmaps.find(installation.config_map_key());
  if (config_map == nullptr || !config_map->data_time_known) return std::nullopt;
  const WallTime edited = config_map->data_changed;
  if (edited == WallTime{}) return std::nullopt;  // A manifest that was written by hand.
  const NodePods pods = sort_pods(installation, index.pods_of(node.meta.name));
  const auto newest = std::ranges::find_if(pods.plugin, [](const Pod* pod) { return !pod->meta.deletion_timestamp; });
  if (newest == pods.plugin.end() || !is_serving(**newest)) return std::nullopt;
  if (loaded_after(**newest, edited, settings.projection)) return std::nullopt;
  return edited;
}

std::string edit_not_live_text(const World& world, const FleetIndex::Impl& index, const NodeAssessment& a,
                               WallTime edited) {
  const std::string edit = fmt::format(
      "the last edit of ConfigMap {} ({}) is not live on the node: its plugin pod is older, and serves what it read "
      "before ({})",
      index.installation_of(a).id(), k8s::format_time(edited), shown_difference(a));
  if (const std::optional<Reason> obstacle = obstacle_of(a))
    return fmt::format("{}. Do not restart the pod before this is corrected: {}", edit, obstacle->message);
  return fmt::format("{}. To make the edit live, restart the plugin's pods node by node, or where an operator runs, {}",
                     edit, to_run(world, adopt_command(a.policy.view())));
}

bool is_managed(const NodeAssessment* a) {
  return a != nullptr && a->phase != Phase::unmanaged;
}

bool is_cordon_of_failure(const Node& node) {
  if (!node.unschedulable || !is_cordoned_by_operator(node)) return false;
  const std::shared_ptr<const NodeChange> change = change_of(node);
  return change != nullptr && change->failed;
}

std::string cordon_text(const Node& node, const NodeAssessment* a) {
  if (!node.unschedulable) return {};
  if (!is_cordoned_by_operator(node)) return "cordoned, and not by the operator";
  if (is_cordon_of_failure(node)) return "cordoned by the operator, for the failed change";
  return is_managed(a) ? "" : "cordoned by the operator, for a change that did not finish";
}

std::optional<Finding> cordon_finding(const Node& node, const NodeAssessment* a, std::string_view name) {
  std::string text = cordon_text(node, a);
  if (text.empty()) return std::nullopt;
  text += ": no new pod gets its GPUs";
  if (!is_cordoned_by_operator(node))
    text += fmt::format(". Whoever cordoned it can return it to service: `kubectl uncordon {}`", name);
  return found(Severity::warning, node_ref(node.meta.name), kCordoned, std::move(text));
}

namespace {

constexpr std::int64_t kWidth = 20;
constexpr std::int64_t kMiB = 1024;  // Of a GiB.

// So many characters of the bar for `mib` of `all`: at least one for any slice.
std::int64_t width_of(std::int64_t mib, std::int64_t all) {
  if (mib <= 0 || all <= 0) return 0;
  return std::clamp<std::int64_t>((mib * kWidth + all / 2) / all, 1, kWidth);
}

std::string bar_of(const GpuSlices& gpu) {
  const std::int64_t room = gpu.free.empty() ? kWidth : kWidth - 1;  // A free slice is seen on a full GPU, too.
  const std::int64_t used = std::min(width_of(gigabytes_of(gpu.used) * kMiB, gpu.memory_mib), room);
  const std::int64_t free = std::min(width_of(gigabytes_of(gpu.free) * kMiB, gpu.memory_mib), kWidth - used);
  return fmt::format("[{:#<{}}{:-<{}}{:.<{}}]", "", used, "", free, "", kWidth - used - free);
}

}  // namespace

std::vector<GpuBar> slice_bars(const Node& node) {
  std::vector<GpuBar> out;
  if (!is_partitioned_by_nos(node)) return out;
  const NodeSlices slices = read_slices(node);
  if (!slices.problem.empty()) return out;
  for (const GpuSlices& gpu : slices.gpus) out.push_back({std::ssize(out), gpu.memory_mib, gpu, bar_of(gpu)});
  return out;
}

std::string memory_of(const GpuBar& bar) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bar.memory_mib) / kMiB);
}

std::string to_string(const GpuBar& bar) {
  return fmt::format("GPU {} {} {}; used: {}; free: {}", bar.gpu, bar.bar, memory_of(bar), describe(bar.slices.used),
                     describe(bar.slices.free));
}

namespace {

void count(const DaemonNode& node, DaemonProgress& out) {
  ++out.total;
  const bool serves = node.pod != nullptr && is_serving(*node.pod);
  if (serves && !node.is_outdated()) ++out.updated;
  if (node.in_change())
    out.in_progress.push_back(node.name());
  else if (node.mark.deferred)
    out.deferred.push_back(node.name());
  else if (!serves)
    out.not_ready.push_back(node.name());
  if (node.pins_driver()) out.pinning.push_back(node.name());
}

// Of a node that needs a change of its daemon, or is in one.
Phase phase_of_change(const DaemonNode& node) {
  if (!node.holder.empty()) return Phase::held;
  if (!node.in_change()) return Phase::pending;
  if (node.has_failed()) return Phase::failed;
  return node.is_outdated() && !node.pod->meta.deletion_timestamp ? Phase::draining : Phase::restarting;
}

}  // namespace

std::map<std::string, Phase> daemon_phases(const World& world, const FleetIndex::Impl& index,
                                           const RolloutKey& rollout) {
  std::map<std::string, Phase> out;
  for (const DaemonNode& node : read_daemon_nodes(world, index)) {
    const bool changes = node.in_change() || node.is_outdated();
    if (changes && node.rollout() == rollout) out.emplace(node.name(), phase_of_change(node));
  }
  return out;
}

std::vector<DaemonProgress> daemon_progress(const World& world, const FleetIndex& index) {
  const std::vector<DaemonNode> nodes = read_daemon_nodes(world, index.impl());
  std::vector<DaemonProgress> out;
  for (const Operand& daemonset : index.impl().discovery.standalone) {
    DaemonProgress& progress = out.emplace_back();
    progress.daemonset = k8s::to_string(daemonset.key);
    progress.watches_host = daemonset.watches_host;
    progress.revision = daemonset.newest_hash;
    for (const DaemonNode& node : nodes)
      if (node.daemonset == &daemonset) count(node, progress);
  }
  std::ranges::sort(out, {}, &DaemonProgress::daemonset);
  return out;
}

}  // namespace gso
