// Status of the SharingRollouts of standalone MPS daemons.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/phase.h"
#include "reconcilers/rollout/attempts.h"
#include "reconcilers/status/rollout_account.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

// No node has the template, and somebody holds each that could get it: nothing is complete.
RolloutPhase held_everywhere(const DaemonRollout& daemons) {
  std::vector<std::string> names;
  std::string reason(kHeld);
  for (const DaemonRollout::Row& row : daemons.nodes) {
    if (row.state != to_string(Phase::held)) continue;
    if (names.empty()) reason = row.reason;
    names.push_back(row.name);
  }
  return {"Paused", std::move(reason), "no node runs the template, and none can be changed now: " + first_names(names)};
}

RolloutPhase daemon_phase_of(const DaemonRollout& daemons) {
  const GateState& gate = daemons.gate;
  if (gate.gate == Gate::aborted) return {std::string(row_of(gate.gate).phase), gate.reason(), gate.message};
  const std::int64_t left = daemons.pending + daemons.in_change;
  if (left == 0 && daemons.failed == 0) {
    if (daemons.updated == 0 && daemons.blocked > 0) return held_everywhere(daemons);
    return {"Completed", "Completed",
            daemons.blocked == 0 ? "every node runs the template" : "every node that can be changed runs the template"};
  }
  if (const std::string phase(row_of(gate.gate).phase); !phase.empty() && daemons.pending > 0)
    return {phase, gate.reason(), gate.message};
  if (left == 0) {
    return {"Failed", std::string(kVerificationFailed), why_failed(daemons)};
  }
  if (!gate.is_open()) return {"Progressing", gate.reason(), gate.message};
  return {"Progressing", std::string(kRollingOut), {}};
}

// The object is deleted when nothing else keeps nodes from starting, or when they wait for an approval.
bool is_replaced_now(const DaemonRollout& daemons) {
  return daemons.gate.gate == Gate::new_attempt || daemons.gate.gate == Gate::approval;
}

}  // namespace

bool account_of_daemons(Pass& pass, const DaemonRollout& daemons, const SharingRollout& rollout, Account& out) {
  out.anew = daemons.pending > 0 && was_left(pass.index, rollout);
  const bool history = !out.anew && was_left(pass.index, rollout);
  if (history || rollout.meta.deletion_timestamp) return false;
  if (out.anew && daemons.gate.gate == Gate::settling) return false;
  if (out.anew && is_replaced_now(daemons)) {
    replace_attempt(pass, rollout,
                    fmt::format("{} returns to template {}, which another one had replaced", rollout.config_map,
                                rollout.to_revision));
    return false;
  }
  out.phase = daemon_phase_of(daemons);
  // A pod that is missing or not Ready later does not reopen a rollout that is complete, and no account is written.
  const bool ended = has_ended(rollout.phase) && daemons.pending == 0;
  if (rollout.phase == "Completed" && ended) return false;
  out.stopped = !row_of(daemons.gate.gate).phase.empty();
  out.changing = daemons.in_change;
  out.settled = daemons.updated;
  out.status["counts"] = {{"total", daemons.total},
                          {"updated", daemons.updated},
                          {"inProgress", daemons.in_change},
                          {"pending", daemons.pending},
                          {"blocked", daemons.blocked},
                          {"failed", daemons.failed},
                          {"drifting", 0}};
  if (!has_ended(out.phase.name))
    out.status["wave"] = out.anew ? daemons.wave : std::max(number_at(out.status, "wave"), daemons.wave);
  out.status.erase("nodes");
  for (const DaemonRollout::Row& row : daemons.nodes) {
    nlohmann::json& nodes = out.status["nodes"];
    if (nodes.size() < kMostRolloutNodes) nodes.push_back(rollout_node(row.name, row.state, row.reason, row.message));
  }
  return true;
}

}  // namespace gso
