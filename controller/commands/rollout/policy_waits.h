// What there is beside rollouts: what keeps policies with a change from one (what their statuses say, and what came
// after those), changes that have no SharingRollout yet, and what stays failed, paused or stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/rollout/verbs.h"
#include "controller/commands/rollout/view.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/tally.h"
#include "reconcilers/model/policy.h"

namespace gso {

// Why a policy with a change has no rollout under way: the obstacle that its status names (a window, a hold, a
// driver upgrade), or what its nodes wait for (RollingOut: the soak of a canary).
struct PolicyWait {
  std::string policy, reason, message;
  std::vector<std::string> nodes;  // Those that it is about, the first few; none: all that wait.
  std::int64_t count = 0;          // Of them all.
  bool paused = false;             // spec.rollout.paused of the policy is set.
  std::string news = {};           // What has ended the stop before, in front of the message; mostly empty.
  // Nodes start by themselves.
  [[nodiscard]] bool goes_on() const;
  // As RolloutFacts::is_stopped().
  [[nodiscard]] bool is_stopped() const;
};
// Of all policies, or of the one that is named, but for those in `except`. A change that waits for its inputs to settle
// is in no status, because that would be two writes more for each edit: `pass` knows when it starts. It also knows of
// an invalid text before a status does, of an edit or a retry since an operator wrote the status, and of policies that
// are gone.
[[nodiscard]] std::vector<PolicyWait> waiting_policies(ReadingPass& pass, const std::optional<std::string>& policy,
                                                       const std::set<std::string>& except, bool has_operator);

// What `rollout status` prints about a wait besides it.
struct WaitOutlook {
  std::vector<NodeStep> steps;         // Of the policy's nodes in a change.
  std::vector<std::string> next;       // Commands that end the wait, for whoever decides that.
  std::vector<std::string> held = {};  // hold_text() of its nodes: no command for anyone but who set the hold.
  std::string runs = {};               // loaded_revisions_text() of an aborted rollout's policy.
};
// Without an operator the message is the last that one wrote.
void print_waiting(const PolicyWait& wait, const WaitOutlook& outlook, bool has_operator, std::ostream& out);
[[nodiscard]] nlohmann::ordered_json waiting_json(const PolicyWait& wait);

// A retry of the rollout, which stopped because nodes failed, is requested, and no operator has applied it yet.
[[nodiscard]] bool is_retried(ReadingPass& pass, const RolloutFacts& facts);

// --- Between an edit and its rollout, only a pause of the policy stops its nodes.

// A policy, and when its nodes start.
struct AboutToStart {
  std::string policy;
  bool paused = false;  // spec.rollout.paused is set already.
  std::string start;    // "nodes start at 13:00:33Z unless …"; empty: that is not known.
};
// Of the rollouts that `is_meant` names, by policy. Not those that a person or failures have ended.
[[nodiscard]] std::vector<AboutToStart> about_to_start(const RolloutCall& call,
                                                       const std::function<bool(const RolloutKey&)>& is_meant);

// Changes that take the place of these rollouts, and whose own SharingRollouts do not exist yet: a switch of the former
// does not hold them. Not those of policies that are paused.
[[nodiscard]] std::vector<AboutToStart> about_to_replace(const RolloutCall& call,
                                                         const std::vector<RolloutFacts>& rollouts);

// Those that are not paused, else all.
[[nodiscard]] std::set<std::string> policies_about_to_start(const RolloutCall& call);

// --- What `rollout status` says beside rollouts and waits, in status_rest.cc.

// The plugin's namespace, or the operator's record, could not be read: what its nodes run is not known.
[[nodiscard]] bool has_unread_nodes(const RolloutCall& call);

// Nodes that failed and that stay as they are after their rollout: no rollout under way names them.
struct LeftFailed {
  std::string policy;
  std::vector<RolloutFacts::NodeRow> nodes;
  std::vector<std::string> next;  // Commands that show what failed, and then the retry.
};

// The node belongs to one of the rollouts: to the nodes of its policy, ConfigMap and key.
[[nodiscard]] bool is_of_any(const Index& index, const NodeAssessment& a, const std::vector<RolloutFacts>& rollouts);

// Of all policies, or of that one; none of the nodes whose rollout is among `under_way`. `waiting`: a stop among these
// names the retry already.
[[nodiscard]] std::vector<LeftFailed> left_failed(ReadingPass& pass, const std::optional<std::string>& policy,
                                                  const std::vector<RolloutFacts>& under_way,
                                                  const std::vector<PolicyWait>& waiting);
// Without the nodes that the table of a rollout among `shown` has.
void leave_out_shown(std::vector<LeftFailed>& failed, const std::vector<RolloutFacts>& shown);
void print_left_failed(const LeftFailed& failed, std::ostream& out);
[[nodiscard]] nlohmann::ordered_json left_failed_json(const LeftFailed& failed);

// Says of failed nodes of the rollout that maxFailures does not count them, and why.
void note_uncounted(const Index& index, std::vector<RolloutFacts::NodeRow>& nodes);

// Of ConfigMaps, and of policies without a rollout or a wait that is shown: what they say of it includes the pause.
void print_idle_pauses(const RolloutCall& call, const FleetIndex& index, const std::vector<RolloutFacts>& shown,
                       const std::vector<PolicyWait>& waiting);
// Of a policy that has never had a rollout, because other policies govern the nodes that it selects; empty: another
// reason.
[[nodiscard]] std::string why_without_nodes(const ReadingPass& pass, const std::optional<std::string>& name);
// Policies without an object whose stop still applies while no node waits for its end: the next edit will.
[[nodiscard]] std::vector<std::string> idle_gone_policies(const RolloutCall& call, const ReadingPass& pass,
                                                          const std::vector<PolicyWait>& waiting);
void print_idle_gone(const RolloutCall& call, const ReadingPass& pass, const std::vector<std::string>& gone);
void print_drifting(const RolloutCall& call, const ReadingPass& pass, const std::vector<RolloutFacts>& shown);

}  // namespace gso
