// The questions that decide whether a unit starts nodes now: gates, canary, failures, budgets. Starts and policy.status
// ask the same, so that the reason shown is the reason that holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

// Why a unit starts no node now; empty reason: it may.
struct Gate {
  std::string reason;  // CamelCase.
  std::string message;
  [[nodiscard]] bool open() const { return reason.empty(); }
};

// Reason of the one gate that the next pass opens: the SharingRollout of an earlier attempt is deleted first.
inline constexpr std::string_view kNewAttempt = "NewAttempt";

[[nodiscard]] Gate gate_of(Pass& pass, const UnitKey& key, const Unit& unit);
// The same for nodes that stopped showing the revision that they have loaded: restarting them into it needs no
// approval.
[[nodiscard]] Gate repair_gate_of(Pass& pass, const UnitKey& key, const Unit& unit);
// Of these gates, those that also give back a node that only waits: what people have switched, failures, windows.
[[nodiscard]] std::optional<Stop> stop_of(Pass& pass, const UnitKey& key, const Unit& unit);
// Another revision has taken the rollout's place since it began. Where a switch of it was set, the record decides;
// else its status remembers that.
[[nodiscard]] bool was_left(const Index& index, const SharingRollout& rollout);
[[nodiscard]] bool says_left(const SharingRollout& rollout);  // The status does.
// Its revision has come back, or it had ended when a new template came (under OnDelete), and nodes wait for it: a new
// attempt, with switches and times of its own. What a person took back stays so.
[[nodiscard]] bool begins_anew(const Index& index, const Unit& unit, const SharingRollout& rollout);
// This revision of the key was the last one that a fleet has shown: it needs no canary.
[[nodiscard]] bool is_verified(const Index& index, const UnitKey& key, const Unit& unit, std::string_view target);
[[nodiscard]] std::string unit_target(const Unit& unit);  // The revision of most of its nodes; empty when none.
// Its nodes that failed on the way to `target`; those that failed on the way elsewhere are left out. failures_of()
// counts those of them that served when their change began: only they judge the revision (S12).
[[nodiscard]] std::set<std::string> failed_on(const Index& index, const Unit& unit, std::string_view target);
[[nodiscard]] std::int64_t failures_of(const Index& index, const Unit& unit, std::string_view target);
// Why this revision is not taken further: failed nodes now, or the memory of them. Empty: it may be.
[[nodiscard]] std::string too_many_failures(Pass& pass, const UnitKey& key, const Unit& unit,
                                            const std::string& target);
[[nodiscard]] const FleetRecord::Failure* remembered_failure(const Index& index, const UnitKey& key,
                                                             const SharingPolicy& policy, std::string_view target);
// The last failure for which the policy's own inline profile, as it asks for it now, was taken back; null where it was
// not. `set`: of that operand set; empty: of any.
[[nodiscard]] const FleetRecord::Failure* taken_back(const Index& index, const SharingPolicy& policy,
                                                     std::string_view set = {});
// Nodes of a unit that wait, or are in flight, and that nobody may touch now: reason (Held, DriverUpgrade, MIGChange,
// or NodesNotReady, which is no Blocked reason) -> node -> why.
struct OutOfReach {
  std::map<std::string, std::map<std::string, std::string>> nodes;
  bool stops_all = false;  // Nothing else of the unit can move either: they are what is left, or its canary.
};
inline constexpr std::string_view kSettling = "Settling";
inline constexpr std::string_view kNotReady = "NodesNotReady";
[[nodiscard]] OutOfReach out_of_reach(const Pass& pass, const UnitKey& key, const Unit& unit);
[[nodiscard]] bool canary_passed(Pass& pass, const UnitKey& key, const Unit& unit, const std::string& product,
                                 const std::string& target);
// Seen since the canary of a product was verified: it soaks.
[[nodiscard]] TimerKey soaking_timer(const UnitKey& key, const std::string& target, const std::string& product);
// The first of the three budgets (cluster, policy, group) that has no room for one more node (S1), for people; empty
// when all have. `…_taken`: what this pass has started already.
[[nodiscard]] std::string exhausted_budget(const Pass& pass, const UnitKey& key, const Unit& unit,
                                           const std::string& product, std::int64_t cluster_taken = 0,
                                           std::int64_t policy_taken = 0, std::int64_t group_taken = 0);
// How long the DaemonSets may differ from their ClusterPolicy before that is no update of the GPU Operator any more.
inline constexpr Duration kDifferencePatience = std::chrono::minutes(2);
// Seen while they differ as they do now.
[[nodiscard]] TimerKey differing_timer(const OperandSet& set);
// They have differed for longer than that: which DaemonSets, from what, and how to go on. Empty: not so.
[[nodiscard]] std::string lasting_difference(const Pass& pass, const OperandSet& set);
// The inputs of an operand set are as they were: what its pods would load, by signature.
[[nodiscard]] TimerKey settled_timer(const Pass& pass, std::size_t set);

}  // namespace gso
