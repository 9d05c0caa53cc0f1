// Rollouts, waits and failures of a fleet, why each of them does not go on, and what to type: one value, which `rollout
// status`, --wait, --watch and their exit statuses show. It is computed from live objects by the functions that the
// operator decides with. What only the operator knows (the pods that it has listed, how long a wait has lasted) is as
// its statuses report it. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/report/rollout_facts.h"

namespace gso {

// The most nodes in a change that are listed for a rollout or a wait.
inline constexpr std::size_t kMostListedSteps = 20;

// A SharingRollout that is in progress or stopped, or the newest of those that were asked for.
struct RolloutReport {
  RolloutFacts facts;  // With the counts of now.
  // facts.nodes for people: their states as `status` names them, and the deadlines of their changes.
  std::vector<RolloutFacts::NodeRow> rows = {};
  std::vector<NodeStep> steps = {};    // Of its nodes in a change.
  RecordedStop stop = {};              // Also a retry that is requested.
  std::string estimate = {};           // The completion that the operator has estimated; empty: none is known.
  std::string failures = {};           // failures_behind().
  std::string since_completion = {};   // "now 11/12 up to date, 1 failed", after it was Completed; empty: as then.
  std::string after = {};              // came_after().
  std::string replaced_by = {};        // The revision of an edit that no operator has seen: the status is not of that.
  std::vector<Command> next = {};      // add_way_out()
  std::vector<std::string> held = {};  // hold_text() of nodes: no command for anyone but who set the hold.
  Command said_by_its_policy = {};     // Of `next`, what a wait of its policy, which is gone, says as well.
};

// Why a policy with a change has no rollout under way: the obstacle that its status names (a window, a hold, a
// driver upgrade), or what its nodes wait for (RollingOut: the soak of a canary).
struct PolicyWait {
  std::string policy;
  Reason why;
  std::vector<std::string> nodes = {};  // Those that it is about, the first few; none: all that wait.
  std::int64_t count = 0;               // Of them all.
  bool paused = false;                  // spec.rollout.paused of the policy is set.
  std::string news = {};                // What has ended the stop before, in front of the message; mostly empty.
  std::vector<NodeStep> steps = {};     // Of the policy's nodes in a change.
  std::vector<Command> next = {};       // Commands that end the wait, for whoever decides that.
  std::vector<std::string> held = {};   // As of a rollout.
  std::string runs = {};                // "3 nodes run v1-2, 8 nodes run v1-1", after an abort.
  // Nodes start by themselves.
  [[nodiscard]] bool goes_on() const;
  // As RolloutFacts::is_stopped().
  [[nodiscard]] bool is_stopped() const;
};

// Nodes that failed and that stay as they are after their rollout: no rollout under way names them.
struct LeftFailed {
  std::string policy;
  std::vector<RolloutFacts::NodeRow> nodes;
  std::vector<Command> next;  // They show what failed, and then the retry.
};

struct FleetReport {
  bool has_operator = true;   // Else statuses are the last ones that an operator wrote, and foretell nothing.
  bool nodes_unread = false;  // What the nodes run is not known: counts are those of the statuses.
  std::vector<RolloutReport> rollouts = {};
  std::vector<PolicyWait> waiting = {};
  std::vector<LeftFailed> failed = {};
  // What else there is, a line each, with the command behind it: nodes that drift, pauses that stop no node yet, and
  // stops of policies that are gone.
  struct Note {
    std::string text;
    Command next;
  };
  std::vector<Note> notes = {};
  bool some_stopped = false;  // Something waits for a person.
  bool names_gone = false;    // A note is of a policy that is gone.
  // Of `rollout status`: 1 if a rollout is stopped (RolloutFacts::is_stopped()), or the operator no longer runs.
  [[nodiscard]] int exit_status() const { return nodes_unread ? 2 : some_stopped || !has_operator ? 1 : 0; }
};
// `name`: of a SharingRollout, "policy/NAME", or empty for all. `has_operator`: false if one ran and does not any more.
[[nodiscard]] FleetReport fleet_report(ReadingPass& pass, const std::string& name, bool has_operator);

// Why the policy that is named has never had a rollout, because other policies govern the nodes that it selects; empty:
// another reason.
[[nodiscard]] std::string why_without_nodes(const ReadingPass& pass, const std::optional<std::string>& policy);

// --- Whether what a script waits for has happened.

struct WaitState {
  enum class Is {
    waiting,
    complete,  // Every node that is meant shows its target, or is held by somebody, or drifted before the operator
               // came.
    stopped,   // The revision failed, or a person ended its rollout: nothing continues by itself.
  } is = Is::waiting;
  std::string why;  // One line.
};
// Judged by what the nodes show and not by statuses alone: between an edit and its SharingRollout, nodes are Pending.
// Pauses, approvals and closed windows are waited for. `name` as above.
[[nodiscard]] WaitState wait_state(ReadingPass& pass, const std::string& name);
// "node gpu-1 (Draining): waits for team-a/train-0": the first nodes in a change among those that are waited for.
[[nodiscard]] std::vector<std::string> steps_of_waited(ReadingPass& pass, const std::string& name);

// Why failed nodes stop the rollout although its status names another stop, a pause for example: to end that alone
// starts no node. Empty: they do not, or the status says so.
[[nodiscard]] std::string failures_behind(ReadingPass& pass, const RolloutFacts& facts);
// The first rollout that nodes wait for and that only a retry, or another profile, continues; empty: none. `policy`:
// its rollouts alone.
[[nodiscard]] std::string stopped_rollout(ReadingPass& pass, const std::optional<std::string>& policy);

// --- What to type next about a rollout, in way_out.cc: how to end a stop, how to look at each node that is in trouble,
// and where it waits for a slot of a full budget how the holders return to service and which budgets can be raised.

// Sets `next` and `held`: commands, each once, as they can be pasted into a shell, and what else there is to say as a
// comment behind them ("kubectl logs …  # a100-01"). After failures also how to go back, and how to retry all failed
// nodes. None while nothing is wrong. The facts, the steps and the stop are there already.
void add_way_out(ReadingPass& pass, RolloutReport& report);
// What shows the cause of each failure, and then, with `retry`, the one command that tries all nodes again.
void add_way_out(ReadingPass& pass, LeftFailed& failed, bool retry);
// Of a policy whose change has no rollout under way: also its steps, and what its nodes run.
void add_way_out(ReadingPass& pass, PolicyWait& wait);

// --- Between an edit and its rollout, only a pause of the policy stops its nodes. In waits.cc.

// What keeps policies from a rollout: of all, or of the one that is named, but for those in `except`. A change that
// waits for its inputs to settle is in no status, because that would be two writes more for each edit: `pass` knows
// when it starts. It also knows of an invalid text before a status does, of an edit or a retry since an operator wrote
// the status, and of policies that are gone.
[[nodiscard]] std::vector<PolicyWait> waiting_policies(ReadingPass& pass, const std::optional<std::string>& policy,
                                                       const std::set<std::string>& except, bool has_operator);
// A retry of the rollout, which stopped because nodes failed, is requested, and no operator has applied it yet.
[[nodiscard]] bool is_retried(ReadingPass& pass, const RolloutFacts& facts);

// A policy, and when its nodes start.
struct AboutToStart {
  std::string policy;
  bool paused = false;  // spec.rollout.paused is set already.
  std::string start;    // "nodes start at 13:00:33Z unless …"; empty: that is not known.
};
// Of the rollouts that `is_meant` names, by policy. Not those that a person or failures have ended.
[[nodiscard]] std::vector<AboutToStart> about_to_start(ReadingPass& pass,
                                                       const std::function<bool(const RolloutKey&)>& is_meant);
// Changes that take the place of these rollouts, and whose own SharingRollouts do not exist yet: a switch of the former
// does not hold them. Not those of policies that are paused.
[[nodiscard]] std::vector<AboutToStart> about_to_replace(ReadingPass& pass, const std::vector<RolloutFacts>& rollouts);
// Those that are not paused, else all. Without the operator's record by what their statuses say.
[[nodiscard]] std::set<std::string> policies_about_to_start(ReadingPass& pass);

// --- What `rollout undo` means: which key of a ConfigMap goes back, and to which revision. In undo.cc.

// What goes back, and to what.
struct Undo {
  std::string config_map;  // "namespace/name"
  std::string key;
  // The rollout to the key's present text, else the last rollout of the key; null if none is recorded (the text was
  // invalid from the start, or its rollouts are pruned).
  const SharingRollout* rollout = nullptr;
  bool under_way = false;         // That rollout is, and is not paused.
  EarlierRevision to;             // Without a revision: nothing is known to go back to.
  std::string text;               // Of that revision; empty: not on record.
  bool is_last_verified = false;  // A rollout to it skips the canary (S11).
  // What else the key can go back to (--to-revision); the texts are on record.
  std::vector<EarlierRevision> others = {};
};

// `name`: as of RolloutChoice; `revision`: of --to-revision, or empty. Without a name: of the key whose rollout is
// under way; else of the key that does not hold what was verified last (an invalid text starts no rollout); else of the
// last rollout to what the nodes should run; with a revision alone: of the key whose history it is in. `record` may be
// null. Errors (`invalid`): several keys are meant and are named; none is; a revision that is not in the key's history
// (it may be one of another key: its text would mean something else there), or that the key already has; an undo that
// is complete already.
[[nodiscard]] k8s::Result<Undo> choose_undo(const World& world, const FleetIndex& index, const FleetRecord* record,
                                            const std::string& name, const std::string& revision);

}  // namespace gso
