#include "reconcilers/rollout/repairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/record.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

namespace {

// The pods serve, and have had the time that a node's status and labels need to show what they serve. A node that
// shows its profile by then needs no such time: its pods are older than an edit that no label shows.
bool serves_long_enough(Pass& pass, const std::string& name, const NodeAssessment& a) {
  if (a.matches()) return true;
  return a.pods_ready && pass.held_for({Timer::serving, name, a.target}, pass.s.settings.status_lag);
}

// Of a node whose pods need not have read the text. A node that joined under a wrong clock is read again when that time
// has come. After an edit it has come too late: by then the pods would seem newer than the edit.
bool is_no_proof_to_come(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  const bool future = has_pod_from_the_future(pass, name, a);
  return a.cause == ChangeCause::joined ? !future : a.cause == ChangeCause::edited && future;
}

// A person uncordoned the node, and the restart was given up for a while. Says so.
bool is_deferred(Pass& pass, const std::string& name, const NodeAssessment& a) {
  const SharingPolicy& policy = pass.index.policy(pass.s.world, a.policy.view());
  if (!has_had_turn(pass, name)) return false;
  const WallTime until = deferred_until(pass, name).value_or(pass.s.now);
  if (until <= pass.s.now) return false;
  pass.ages.look_again_in(until - pass.s.now);
  report_waiting_reload(
      pass, name,
      {kDeferred, fmt::format("deferred until {}; to retry it now: `gpu-sharing-operator rollout start {}`",
                              k8s::format_time(until), policy.meta.name)});
  return true;
}

// Nodes that should have loaded their profile by themselves and have not, or cannot have.
void add_self_loaded(Pass& pass, Reloads& out) {
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::self_loaded)) {
    if (a.is_held()) continue;
    const bool has_read = must_have_read(pass, name, a);
    if (a.matches() && has_read) continue;
    const bool cannot_have_read = !has_read && is_no_proof_to_come(pass, name, a) && serves_long_enough(pass, name, a);
    if (!cannot_have_read && !loading_expired(pass, name, a)) continue;
    if (has_more_devices(a) || has_read_with_fewer_devices(a)) continue;
    if (const auto why = reload_obstacle_of(a)) {
      report_waiting_reload(pass, name, *why);
      continue;
    }
    if (is_deferred(pass, name, a)) continue;
    out[pass.index.rollout_key_of(a)].insert(name);
  }
}

// Nodes that have not shown their profile for longer than a start can take. A missing device is not such a case.
void add_drifting(Pass& pass, Reloads& out) {
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::repairable)) {
    const Duration patience = pass.index.policy(pass.s.world, a.policy.view()).rollout.verify_timeout;
    if (!has_run_recorded(pass, drifting_timer(name, a), patience)) continue;
    if (has_more_devices(a)) {
      // GPUs were added to the machine: it serves its profile with all of them, and nothing must be restarted.
      PatchNode patch = patch_out(node, a);
      record_on(patch, node, a, std::string(a.target.view()));
      pass.add(std::move(patch), "Recorded", fmt::format("has {} GPUs now", a.measured_gpus), false, name);
    } else if (!is_deferred(pass, name, a)) {
      out[pass.index.rollout_key_of(a)].insert(name);
    }
  }
}

}  // namespace

Reloads find_reloads(Pass& pass) {
  Reloads out;
  add_self_loaded(pass, out);
  add_drifting(pass, out);
  return out;
}

std::optional<Reason> reload_obstacle_of(const NodeAssessment& a) {
  if (!a.labels_missing.empty()) return Reason{kLabelsMissing, std::string(a.labels_missing.view())};
  if (!a.reload_obstacle.empty()) return Reason{"ReloadBlocked", std::string(a.reload_obstacle.view())};
  return std::nullopt;
}

bool has_more_devices(const NodeAssessment& a) {
  return a.verified.surplus && a.measured_gpus > 0 && a.cause != ChangeCause::relabelled;
}

bool has_read_with_fewer_devices(const NodeAssessment& a) {
  const bool proves = a.cause != ChangeCause::joined && a.cause != ChangeCause::relabelled;
  return proves && a.verified.shortfall && a.pods_ready && a.fresh_pods;
}

std::string repair_stop(const RolloutView& rollout) {
  const GateState& gate = rollout.gate();
  const bool open = gate.is_open() || gate.gate == Gate::canary_drifting || rollout.may_repair();
  return open || rollout.waits_briefly() ? std::string() : gate.message;
}

void report_waiting_reload(Pass& pass, const std::string& node, const Reason& why) {
  pass.finding(Severity::warning, node_ref(node), why.code,
               fmt::format("must be restarted to show its profile; {}", why.message));
}

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TimerKey timer_of(const RecordedRemediation& attempt) {
  return stored_time(print_machine(attempt.machine), attempt.component + " remediation", attempt.at);
}

class Remediator {
 public:
  explicit Remediator(Pass& pass) : pass_(pass) {}

  // `report`: findings and deletions; else only what is to be recorded.
  std::vector<RecordedRemediation> run(bool report) {
    report_ = report;
    for (const std::string& name : pass_.index.nodes_in(Bucket::pod_faults)) look_at(name);
    return std::move(due_);
  }

 private:
  // A node that is up to date shows its profile also for the moment in which the container of a stuck pod runs.
  [[nodiscard]] bool is_unsettled(const std::string& name, const NodeAssessment& a) const {
    if (a.phase == Phase::up_to_date && a.matches()) return true;
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
        if (const auto fault = pod_fault_of(*pod, pass_.s.settings.projection))
          remediate(*node, component, *pod, *fault);
      }
    }
  }

  [[nodiscard]] bool may_be_remediated(const Node& node, const NodeAssessment& a) {
    if (!a.taint.empty()) return false;  // The new pod would not start.
    if (!node.ready || !a.holder.empty() || !pass_.plannable(a)) return false;
    if (!a.profile || !a.profile->valid || a.is_blocked()) return false;  // S5
    const ConfigMap* config_map = pass_.s.world.configmaps.find(pass_.index.installation_of(a).config_map_key());
    if (config_map == nullptr) return false;
    return !kai_hindrance(pass_, node.meta.name, a);  // S8
  }

  // A pod that still serves is left to a rollout, which has a slot and waits for workloads (S1).
  static bool costs_nothing(const Node& node, const NodeAssessment& a, Component component, const Pod& pod) {
    if (component == Component::gfd) return true;
    if (a.change && !a.change->failed) {
      // The change deletes its old pods in order. The pods that replaced them were created after the workloads had
      // ended, so deleting them disturbs no workload.
      auto listed = a.change->pods.find(component);
      return listed != a.change->pods.end() && !listed->second.contains(pod.meta.uid);
    }
    const bool daemon_runs = std::ranges::any_of(
        pod.containers, [](const auto& c) { return c.running && !is_config_manager(c.name.view()); });
    return !serves_gpus(node) && (component != Component::mps || !daemon_runs);
  }
  // Why the pod is not replaced now; empty: it is. Mode Observe only reports. A person who pauses the policy, the
  // ConfigMap or the rollout wants no pod deleted, and a new pod would read a text that might be the reason for the
  // pause. Otherwise a new pod must not do more harm: a new plugin pod unregisters the GPUs temporarily, and if they
  // are already unregistered, the new pod would offer GPUs that the DRA driver has allocated since. GFD only writes
  // labels.
  [[nodiscard]] std::string stays(const std::string& node, Component component) const {
    const NodeAssessment& a = *pass_.index.find(node);
    const auto observes = [&](const Interned& policy) {
      return pass_.s.settings.mode_of(pass_.index.policy(pass_.s.world, policy.view())) == PolicyMode::observe;
    };
    // Without its labels the node might belong to a policy that is not the one that governs it now.
    if (observes(a.policy) || std::ranges::any_of(a.awaited_by, observes))
      return "the pod is not replaced in mode Observe";
    RolloutView* rollout = find_rollout(pass_, pass_.index.rollout_key_of(a));
    const std::string pause = rollout == nullptr ? std::string() : pause_of_rollout(*rollout).why;
    if (!pause.empty()) return fmt::format("the pod is not replaced while rollouts are paused: {}", pause);
    const std::string& device_class = pass_.index.dra.class_of(node);
    if (component == Component::gfd || device_class.empty()) return {};
    return fmt::format("the pod is not replaced while {} is reported for the node", kDraDoubleOffer);
  }

  void remediate(const Node& node, Component component, const Pod& pod, const PodFault& fault) {
    const std::string& name = node.meta.name;
    if (fault.is_over(pass_.s.now)) return;
    if (fault.runs_since) pass_.look_again_in(PodFault::kProvesRecovery - (pass_.s.now - *fault.runs_since));
    const bool lasts = pass_.held_for(
        {Timer::pod_fault, name, fmt::format("{}/{}/{}", to_string(component), fault.name, pod.meta.uid.str())},
        fault.patience);
    const std::string message = fmt::format("{} pod {}: {}", to_string(component), pod.meta.name, fault.what);
    const std::string why_it_stays = stays(name, component);
    if (report_) {
      pass_.finding(Severity::warning, node_ref(name), fault.name,
                    why_it_stays.empty() ? message : fmt::format("{}; {}", message, why_it_stays));
    }
    // While it runs, this might be the run that succeeds.
    if (!lasts || !why_it_stays.empty() || fault.runs_since) return;
    const MachineId machine = machine_id(node.meta.uid.str());
    const RecordedRemediation* known = pass_.index.record->remediation(machine, to_string(component));
    if (known != nullptr && age_of(pass_, *known) >= FleetRecord::kRemediationsKept) known = nullptr;
    const bool is_recorded = known != nullptr && known->pod == pod.meta.uid.str();
    if (!is_recorded) {
      if (const Duration left = left_to_wait(known); left > Duration::zero()) return pass_.look_again_in(left);
      due_.push_back({machine, std::string(to_string(component)), pod.meta.uid.str(),
                      1 + (known == nullptr ? 0 : known->attempts), pass_.s.now});
      return;
    }
    // The change of the node can replace the pod as well.
    const auto deletes_it = [&](const DeletePod& deletion) { return deletion.uid == pod.meta.uid; };
    if (!report_ || plans<DeletePod>(pass_, deletes_it)) return;
    pass_.add(DeletePod{pod.meta.key(), pod.meta.uid, std::nullopt, std::nullopt}, fault.name,
              message + "; the operator replaces the pod", true, name);
  }

  // Time until the next attempt: 5 minutes after the first one, then twice as long each time, up to an hour.
  [[nodiscard]] Duration left_to_wait(const RecordedRemediation* before) const {
    if (before == nullptr) return Duration::zero();
    constexpr Duration kLongest = std::chrono::hours(1);
    const Duration wait =
        std::min<Duration>(minutes(5) * (1LL << std::clamp<std::int64_t>(before->attempts - 1, 0, 4)), kLongest);
    return wait - age_of(pass_, *before);
  }

  Pass& pass_;
  bool report_ = false;
  std::vector<RecordedRemediation> due_;
};

}  // namespace

std::vector<RecordedRemediation> due_remediations(Pass& pass) {
  return Remediator(pass).run(false);
}

Duration age_of(const Pass& pass, const RecordedRemediation& attempt) {
  return pass.s.now - pass.ages.since(timer_of(attempt), attempt.at);
}

void run_remediation_timers(Pass& pass) {
  for (const RecordedRemediation& attempt : pass.index.record->remediations)
    pass.ages.run(timer_of(attempt), attempt.at);
}

void plan_remediation(Pass& pass) {
  if (pass.index.record) (void)Remediator(pass).run(true);
}

}  // namespace gso
