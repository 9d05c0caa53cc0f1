#include "reconcilers/rollout/reloads.h"

#include <fmt/format.h>

#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/applying_deferral.h"
#include "reconcilers/rollout/deferrals.h"
#include "reconcilers/rollout/node_states.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {
namespace {

// GPUs were added to the machine: it serves its profile with all of them, and nothing must be restarted.
void record_more_devices(Pass& pass, const std::string& name, const NodeAssessment& a) {
  const Node& node = *pass.s.world.nodes.find(name);
  PatchNode patch = patch_out(node, a);
  record_on(patch, node, a, std::string(a.target.view()));
  pass.add(std::move(patch), "Recorded", fmt::format("has {} GPUs now", a.measured_gpus), false, name);
}

// The pods serve, and have had the time that a node's status and labels need to show what they serve. A node that
// shows its profile by then needs no such time: its pods are older than an edit that no label shows.
bool serves_long_enough(Pass& pass, const std::string& name, const NodeAssessment& a) {
  if (a.matches()) return true;
  return a.pods_ready &&
         pass.held_for({Timer::serving, name, std::string(a.target.view())}, pass.s.settings.status_lag);
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
  report_waiting_reload(pass, name, std::string(kDeferred),
                        fmt::format("deferred until {}; to retry it now: `gpu-sharing-operator rollout start {}`",
                                    k8s::format_time(until), policy.meta.name));
  return true;
}

// Nodes that should have loaded their profile by themselves and have not, or cannot have.
void add_self_loaded(Pass& pass, Reloads& out) {
  for (const std::string& name : pass.index.nodes_in(Bucket::self_loaded)) {
    const NodeAssessment* a = pass.index.find(name);
    if (a == nullptr || a->is_held()) continue;
    const bool has_read = must_have_read(pass, name, *a);
    if (a->matches() && has_read) continue;
    const bool cannot_have_read =
        !has_read && is_no_proof_to_come(pass, name, *a) && serves_long_enough(pass, name, *a);
    if (!cannot_have_read && !loading_expired(pass, name, *a)) continue;
    if (has_more_devices(*a) || has_read_with_fewer_devices(*a)) continue;
    if (!a->labels_missing.empty()) {
      report_waiting_reload(pass, name, std::string(kLabelsMissing), std::string(a->labels_missing.view()));
      continue;
    }
    if (!a->reload_obstacle.empty()) {
      report_waiting_reload(pass, name, std::string(kReloadBlocked), std::string(a->reload_obstacle.view()));
      continue;
    }
    if (is_deferred(pass, name, *a)) continue;
    out[pass.index.rollout_key_of(*a)].insert(name);
  }
}

// Nodes that have not shown their profile for longer than a start can take. A missing device is not such a case.
void add_drifting(Pass& pass, Reloads& out) {
  for (const std::string& name : pass.index.nodes_in(Bucket::repairable)) {
    const NodeAssessment* a = pass.index.find(name);
    if (a == nullptr) continue;
    const Duration patience = pass.index.policy(pass.s.world, a->policy.view()).rollout.verify_timeout;
    const TimerKey drifts = drifting_timer(name, *a);
    if (!pass.ages.has_run_for(drifts, patience, recorded_since(pass, drifts))) continue;
    if (has_more_devices(*a)) {
      record_more_devices(pass, name, *a);
    } else if (!is_deferred(pass, name, *a)) {
      out[pass.index.rollout_key_of(*a)].insert(name);
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

void report_waiting_reload(Pass& pass, const std::string& node, const std::string& reason, const std::string& why) {
  pass.finding(Severity::warning, node_ref(node), reason,
               fmt::format("must be restarted to show its profile; {}", why));
}

}  // namespace gso
