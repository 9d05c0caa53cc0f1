// The rollouts of a pass: what is known of one, and what can be asked of it.
//
// The files of this folder have an order, and each one includes only those before it. This header is the first: a stage
// asks a rollout for what an earlier one has decided, and the answer is worked out in the file of the stage that
// decides it. (Only the words of budgets.h and standstill.h, which the answers are made of, are included upwards.)
//
//   facts      rollout_view, recorded_timers, label_contest
//   stops      stops: what people have set, whatever became of its object
//              managed_keys, record_writes: what the cluster must hold for that
//   canary     canary (failures): what the nodes have shown of a revision
//   budgets    drain (evictions), budgets, slots: who must leave a node, and who holds a slot
//   gates      gates (daemonset_restart): why no node starts
//   starts     repairs (node_states), change_steps, starts: what happens to which node
//   outlook    standstill (waits): what keeps a rollout from going on, for people; outcomes: what the record learns
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/partitioning/partitioning.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/standstill.h"

namespace gso {

// --- The answers.

// In the order in which they are reported: the first closed gate.
enum class Gate : std::uint8_t {
  open,
  // --- Switches that people have set.
  observe,   // Mode Observe, of the policy or of the operator.
  paused,    // The policy, its ConfigMap or the rollout.
  aborted,   // The rollout.
  undone,    // The rollout, by `rollout undo`.
  approval,  // Mode Approve, and no person has approved yet.
  // --- Reasons against this revision, or against starting now.
  view_stale,             // A watch does not deliver: what people have set since is unknown.
  gpu_operator_updating,  // The DaemonSets are about to change, or differ from their ClusterPolicy.
  max_failures,           // Too many nodes failed on this revision, now or before.
  canary_drifting,        // A canary has stopped showing its profile. It is restarted anyway.
  mechanism_unusable,     // Mechanism DaemonSetRestart would also restart nodes that must not restart now.
  key_not_projected,      // The kubelets might not have the key's text yet.
  outside_window,         // No maintenance window is open.
  settling,               // The inputs have just changed.
  new_attempt,            // The SharingRollout of an earlier attempt is replaced first: the next pass opens the gate.
};

// Why a rollout starts no node.
struct GateState {
  Gate gate = Gate::open;
  std::string message;  // For people.
  [[nodiscard]] bool is_open() const { return gate == Gate::open; }
  [[nodiscard]] std::string reason() const;
  [[nodiscard]] Reason why() const;  // While it is closed.
};

// The canary of one group.
struct Canary {
  bool passed = false;                    // Verified and soaked, or the policy requires none.
  bool verified = false;                  // The required number of canaries shows the revision.
  std::vector<std::string> proven;        // Recorded canaries that show the revision, while it has not passed. By name.
  std::optional<WallTime> soaks_to = {};  // Verified, and not passed yet: when its soak ends.
};

class RolloutView;

// What a pass asks of a rollout, of one product or of all of it: worked out once, when it is first asked for, in the
// file of its stage. Reading it changes nothing else.
template <class T, class... Of>
class Answer {
 public:
  using WorkOut = T (*)(const RolloutView& rollout, const Of&... of);
  // `rollout` must outlive it.
  Answer(const RolloutView& rollout, WorkOut work_out) : rollout_(rollout), work_out_(work_out) {}

  const T& operator()(const Of&... of) const {
    const auto known = known_.find(std::tie(of...));
    if (known != known_.end()) return known->second;
    T answer = work_out_(rollout_, of...);
    return known_.emplace(std::tuple<Of...>(of...), std::move(answer)).first->second;
  }

 private:
  const RolloutView& rollout_;
  WorkOut work_out_;
  mutable std::map<std::tuple<Of...>, T, std::less<>> known_;
};

// By whom each is worked out, in the order of the stages.
[[nodiscard]] std::vector<std::string> assumed_nodes(const RolloutView& rollout);
[[nodiscard]] std::set<std::string> changing_nodes(const RolloutView& rollout);
[[nodiscard]] Canary canary_of(const RolloutView& rollout, const std::string& product);
[[nodiscard]] std::set<std::string> failed_on_target(const RolloutView& rollout);
[[nodiscard]] std::string failures_that_stop(const RolloutView& rollout);
[[nodiscard]] Exhausted exhausted_of(const RolloutView& rollout, const std::string& product);
[[nodiscard]] GateState first_closed_gate(const RolloutView& rollout);
[[nodiscard]] bool opens_shortly(const RolloutView& rollout);
[[nodiscard]] bool lets_repairs_start(const RolloutView& rollout);
[[nodiscard]] std::optional<Reason> stop_of_waiting(const RolloutView& rollout);
[[nodiscard]] std::optional<Reason> stop_of_waiting_repairs(const RolloutView& rollout);
[[nodiscard]] OutOfReach out_of_reach_of(const RolloutView& rollout);
[[nodiscard]] Waits waits_of(const RolloutView& rollout);
[[nodiscard]] std::map<std::string, ChangeTrouble> troubles_of(const RolloutView& rollout);
[[nodiscard]] std::optional<Reason> stalled_daemonsets(const RolloutView& rollout);
[[nodiscard]] std::optional<Reason> standstill_of(const RolloutView& rollout);

// --- A ProfileRollout in this pass: one policy, one profile key, its present revision. Starts, the record, both
// statuses and Events read this view.

class RolloutView {
 public:
  // All arguments must outlive this. The times at which the view can change are added to the pass's plan.
  RolloutView(Pass& in, const RolloutKey& of, const ProfileRollout& nodes);
  RolloutView(const RolloutView&) = delete;
  RolloutView& operator=(const RolloutView&) = delete;

  Pass& pass;
  const RolloutKey& key;
  const ProfileRollout& profile_rollout;
  const SharingPolicy& policy;
  const PluginInstallation& installation;
  const std::string target;      // The target of most of its nodes; empty if none has one.
  const SharingRollout* object;  // Null: this revision has no SharingRollout.
  const bool anew;               // `object` belongs to an earlier attempt: ended_earlier(), or is_of_other_templates().
  // The fleet has shown this revision before, and nothing else is new.
  const bool verified;
  // Nodes of that product have shown it as well: their group needs no canary.
  [[nodiscard]] bool is_verified_on(const std::string& product) const;

  // Why it starts no node now.
  const Answer<GateState> gate{*this, first_closed_gate};
  // The gate is closed and opens by itself within moments: not reported, because each report costs two status writes.
  // Inputs that keep changing are reported.
  const Answer<bool> waits_briefly{*this, opens_shortly};
  // Nodes that stopped showing what they have loaded are allowed to be restarted into it.
  const Answer<bool> may_repair{*this, lets_repairs_start};
  // Why nodes that only wait are uncordoned and queued again; nullopt: they keep waiting.
  const Answer<std::optional<Reason>> stop{*this, stop_of_waiting};
  // The same for a node in a drift repair, which needs no approval.
  const Answer<std::optional<Reason>> stop_of_repairs{*this, stop_of_waiting_repairs};

  // The canary of one group of the rollout.
  const Answer<Canary, std::string> canary{*this, canary_of};
  [[nodiscard]] bool canary_passed(const std::string& product) const { return canary(product).passed; }

  // Nodes that failed during a change to `target`. present_failures() counts those whose failure counts against the
  // revision (S12); counted_failures() also has such machines that have left the rollout since.
  const Answer<std::set<std::string>> failed{*this, failed_on_target};
  [[nodiscard]] std::int64_t present_failures() const;
  // Why no further node is changed to this revision: nodes that failed, now or before. Empty: no such reason.
  const Answer<std::string> too_many_failures{*this, failures_that_stop};

  // Nodes that are Pending or in a change, and that the operator must not change now.
  const Answer<OutOfReach> out_of_reach{*this, out_of_reach_of};
  // Which budgets have no room for one more node of a group, and why.
  const Answer<Exhausted, std::string> exhausted{*this, exhausted_of};
  // What the Pending nodes wait for, while the gate is open.
  const Answer<Waits> waits{*this, waits_of};

  // What keeps its nodes in progress from showing their profile.
  const Answer<std::map<std::string, ChangeTrouble>> troubles{*this, troubles_of};
  // DaemonSets that have stopped replacing pods of its nodes; nullopt: none.
  const Answer<std::optional<Reason>> stalled{*this, stalled_daemonsets};
  // Why it stands still: nodes remain to be changed or have failed, none of them makes progress, and none will before a
  // person, a calendar or another controller acts. Both statuses report it: Progressing is False, with this reason and
  // message. nullopt: nothing remains to be done and no failure counts against the revision, a node makes progress or
  // can start, or time alone ends the wait (a soak).
  const Answer<std::optional<Reason>> standstill{*this, standstill_of};

  // Nodes that run the target according to the record alone, while their pods may be older than its text: the record
  // was lost during this rollout, and taken anew from what the nodes show. By name.
  const Answer<std::vector<std::string>> assumed{*this, assumed_nodes};

  // Drifting nodes that keep the rollout open until they are repaired. A rollout that has ended has none: it is
  // reopened when the first repair begins, and then ends once for all of them.
  [[nodiscard]] std::int64_t repairs_left() const;

  // The node belongs to this rollout.
  [[nodiscard]] bool has(const NodeAssessment& assessment) const;
  // Its nodes in that bucket: name and assessment, by name.
  [[nodiscard]] auto nodes_in(Bucket bucket) const {
    const auto is_its = [this](const std::string& name) { return has(*pass.index.find(name)); };
    return pass.index.nodes_in(bucket) | std::views::filter(is_its) |
           std::views::transform([this](const std::string& name) {
             return std::pair<const std::string&, const NodeAssessment&>(name, *pass.index.find(name));
           });
  }
  // Its nodes in a change to `target`.
  const Answer<std::set<std::string>> changing{*this, changing_nodes};
  // Canaries whose change begins in this pass (starts.cc): the record names them before anything is done to them.
  std::set<std::string> started_canaries;
  // templates_text() of its installation: the record has it, because a new template that the operator rolls (OnDelete)
  // needs a canary like a new profile. has_other_templates(): such a template has come since that text was recorded.
  const std::string templates;
  [[nodiscard]] bool has_other_templates(std::string_view then) const;
};

// All rollouts of a pass, created by plan_all() and shared by the reconcilers.
class RolloutViews {
 public:
  RolloutViews(const Snapshot& snapshot, Index& index) : pass_(snapshot, index, "rollout", this) {}

  // Null: no node belongs to such a rollout.
  [[nodiscard]] RolloutView* find(const RolloutKey& key);
  // Nodes in a change that wait for their pods, or for a permission (drain.h).
  [[nodiscard]] const std::map<std::string, Reason>& blocked_in_progress();
  // Names the timers that several planners of one pass read, before any of them reads one. So no timer runs because
  // somebody asked for it, or stops because nobody did: a soak goes on while its rollout is paused. Timers that one
  // chain of steps owns are named there (model/plan_draft.h): those of a node's change (node/node_step.h), of stuck
  // pods, of nodes that are left, of unused keys, and KAI's. While the fleet has no record, or one that cannot be read,
  // no node and no rollout waits: most timers do not run. Those that say which text a node can have read run on beside
  // an unreadable one.
  void declare_timers();
  // What the views have added so far: timers, and when to plan again.
  [[nodiscard]] Plan take_plan() { return std::move(pass_.plan); }
  LabelledNodes labelled;    // For node.partitioning.
  SliceNodes slices;         // Those of them that share the budget of the cluster with the rollouts.
  std::int64_t started = 0;  // Slots of the cluster that rollouts have taken in this pass.

 private:
  Pass pass_;
  std::map<RolloutKey, RolloutView> views_;
  std::optional<std::map<std::string, Reason>> blocked_in_progress_;
};

// The target revision of most nodes of a rollout; empty if none has one.
[[nodiscard]] std::string target_of(const ProfileRollout& profile_rollout);

// This pass has planned such an action.
template <class Kind>
[[nodiscard]] bool plans(const Pass& pass, const auto& matches) {
  return std::ranges::any_of(pass.plan.actions, [&](const PlannedAction& planned) {
    const Kind* action = std::get_if<Kind>(&planned.action);
    return action != nullptr && matches(*action);
  });
}

// The rollout that a SharingRollout is of, or an entry of the record.
[[nodiscard]] RolloutKey rollout_key_of(const auto& entry) {
  return {entry.policy, entry.config_map, entry.key};
}

// The view of a rollout that has nodes; find_rollout() returns null if it has none.
[[nodiscard]] RolloutView& rollout_of(const Pass& pass, const RolloutKey& key);
[[nodiscard]] RolloutView* find_rollout(const Pass& pass, const RolloutKey& key);

// --- The rollout of one template to standalone MPS daemons, as a pass has left it: what its SharingRollout reports.
// The planner of standalone/ fills it, and status/ writes it.

// The nodes of one policy and DaemonSet.
struct DaemonRollout {
  std::string target;  // controller-revision-hash of the newest template.
  std::int64_t total = 0;
  std::int64_t updated = 0;    // Serve with that template, and are in no change.
  std::int64_t in_change = 0;  // Without those that failed.
  std::int64_t pending = 0;    // Have an older template, and are not in a change yet.
  std::int64_t blocked = 0;    // The same, and somebody holds them.
  std::int64_t failed = 0;
  std::int64_t wave = 0;  // 0: the canary.
  GateState gate;         // Why no node starts.
  // Nodes that failed, are held or wait: as in the status of a SharingRollout.
  struct Row {
    std::string name;
    std::string_view state;
    Reason why;
  };
  std::vector<Row> nodes;

  void note_waiting(const std::string& node, Reason why) { nodes.push_back({node, "Waiting", std::move(why)}); }
  // Of a node in a change.
  void note_failed(const std::string& node, Reason why) {
    --in_change;
    ++failed;
    nodes.push_back({node, kStateFailed, std::move(why)});
  }
};
// Why it stops after nodes have failed, and what to do.
[[nodiscard]] inline std::string why_failed(const DaemonRollout& rollout) {
  std::vector<std::string> names;
  for (const DaemonRollout::Row& row : rollout.nodes)
    if (row.state == kStateFailed) names.push_back(row.name);
  return fmt::format("{}{} failed. Correct the chart's standaloneMps values (helm upgrade), or the node",
                     counted(rollout.failed, "node"), names.empty() ? "" : fmt::format(" ({})", first_names(names)));
}
using DaemonRollouts = std::map<RolloutKey, DaemonRollout>;

// --- Attempts: if another revision replaces a rollout and the first one later returns, or if nodes wait for another
// template (OnDelete) than the one that a rollout ended with or its switches were set for, that is a new attempt with
// its own switches and times.

// Its switches in the record; null: none was on.
[[nodiscard]] const RecordedSwitches* recorded(const Index& index, const SharingRollout& rollout);
// Another revision has replaced the rollout since it began. If one of its switches was set, the record decides;
// otherwise its status does.
[[nodiscard]] bool was_left(const Index& index, const SharingRollout& rollout);
[[nodiscard]] bool says_left(const SharingRollout& rollout);  // According to its status.
// DaemonSet ("namespace/name") -> hash of its newest template, as far as known. Whatever the updateStrategy is: it can
// be switched in the middle of a rollout, and that makes no template another one.
[[nodiscard]] std::map<std::string, std::string> templates_of(const PluginInstallation& installation);
// The same as one text, for the record.
[[nodiscard]] std::string templates_text(const PluginInstallation& installation);
// The operator replaces pods for another template (OnDelete) than the one that such a text names. A template that is
// unknown, then or now, is no reason.
[[nodiscard]] bool has_other_templates(const PluginInstallation& installation, std::string_view then);
// Its nodes wait for another template than the one that an approval or abort was set for. A template that is unknown,
// then or now, is no reason. A pause stays in effect until a person ends it, whatever template comes.
[[nodiscard]] bool is_of_other_templates(const Index& index, const ProfileRollout& profile_rollout,
                                         const SharingRollout& rollout);
// Nodes wait for the rollout although another revision had replaced it, or although it had ended before a new template
// arrived (OnDelete), as the object and its status show. An undo stays in effect.
[[nodiscard]] bool ended_earlier(const Index& index, const ProfileRollout& profile_rollout,
                                 const SharingRollout& rollout);

}  // namespace gso
