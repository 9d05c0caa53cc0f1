// The parts of `rollout`: what all verbs share, and those that have files of their own.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/commands/rollout/rollout.h"
#include "controller/commands/rollout/view.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/operator_lease.h"
#include "k8sclient/api/client.h"
#include "k8sclient/value/error.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// As a person types it: "rollout pause"; "diff", which is a command of its own.
[[nodiscard]] std::string command_of(RolloutOptions::Verb verb);

// One run of a verb.
struct RolloutCall {
  k8s::ApiClient* client = nullptr;
  k8s::Clock* clock = nullptr;
  RolloutOptions options;
  PlannerSettings settings;
  std::string input;  // The text of --file.
  World world;
  std::vector<std::string> incomplete;  // What could not be read.
  SharingKinds sharing_kinds;
  std::optional<NoOperator> no_operator;  // nullopt: one is at work, or `incomplete` says that this is unknown.
  std::string operator_lease;             // That an operator renews; empty: none does, or that is unknown.
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  // Writes "gpu-sharing-operator rollout pause: …" (or "diff:", which is a command of its own) and gives 2.
  int refuse(std::string_view why) const;
};

// Of the JSON documents (docs/json.md): it changes when a field changes its meaning or goes, not when one comes.
inline constexpr int kRolloutJsonVersion = 1;

// `rollout status`: exit status 1 if a rollout is stopped (RolloutFacts::is_stopped()), or the operator no longer runs.
int show_status(RolloutCall& call);
// Why every verb but `diff` is refused where rollouts have no objects, and what can be done there.
[[nodiscard]] std::string without_crds_text();

int show_history(RolloutCall& call);

// A merge patch of a SharingRollout or SharingPolicy (resources::sharing_rollouts, …). False, and said, when it failed.
boost::asio::awaitable<bool> patch_sharing_object(RolloutCall* call, k8s::Gvr resource, std::string name,
                                                  std::string body);

// pause, resume, approve, abort: of the rollouts that are meant, or of a policy. `resume` without a name lifts, where
// no rollout is paused, the switch that ConfigMaps carry.
boost::asio::awaitable<int> set_switch(RolloutCall* call);
// Writes nothing, and says so with exit status 0, where nothing would be tried again.
boost::asio::awaitable<int> rollout_start(RolloutCall* call);
boost::asio::awaitable<int> rollout_undo(RolloutCall* call);
boost::asio::awaitable<int> rollout_diff(RolloutCall* call);
// `--dry-run`: what the nodes of the policy (empty: of all) would do in call->world, once `given` is in it; of `start`
// also which of them start first, and what the others wait for. Writes nothing to the cluster; call->world is changed.
boost::asio::awaitable<int> preview(RolloutCall* call, std::optional<GivenText> given, std::string policy);

// The program that syncs a ConfigMap (its JSON) from another source, for people: "Argo CD (field manager
// argocd-controller)"; empty: nobody known.
[[nodiscard]] std::string gitops_owner_of(const std::string& config_map_json);

// --- What `rollout undo` means: which key of a ConfigMap goes back, and to which revision. In undo_target.cc.

// What goes back, and to what.
struct Undo {
  std::string config_map;  // "namespace/name"
  std::string key;
  // The rollout to the key's present text, else the last rollout of the key; null if none is recorded (the text was
  // invalid from the start, or its rollouts are pruned).
  const SharingRollout* rollout = nullptr;
  bool under_way = false;         // That rollout is, and is not paused.
  std::string revision;           // Empty: nothing is known to go back to.
  std::string text;               // Empty: not on record.
  std::string why;                // Of the choice of the revision, for people.
  bool is_last_verified = false;  // A rollout to it skips the canary (S11).
  // What else the key can go back to (--to-revision), with the reason why it is known; its text is on record.
  std::vector<std::pair<std::string, std::string>> others = {};
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
