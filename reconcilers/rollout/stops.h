// Stops that outlive their objects: switches of rollouts in the record, policies that are gone.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/cluster/recorded_policies.h"
#include "reconcilers/fleet/pass.h"

namespace gso {

// The switches that hold for one revision of a unit: those of its SharingRollout, and what the record has of it.
struct Switches {
  bool paused = false;
  bool approved = false;
  bool aborted = false;
  bool undone = false;
};
// `rollout`: its object, null where there is none. An abort and an undo hold by the object or by the record; a pause by
// the record where the object is gone; an approval where our CRDs are gone as well.
[[nodiscard]] Switches switches_of(const Pass& pass, const RolloutKey& key, const std::string& target,
                                   const SharingRollout* rollout);
// The switches in the record for a rollout whose object is gone: it is made again with them.
[[nodiscard]] std::optional<RecordedSwitches> switches_to_restore(const Pass& pass, const RolloutKey& key,
                                                                  const std::string& target);
// What the record must say of switches now: an entry ends when another valid revision of its key is the target, when a
// new attempt begins, or by `rollout start`.
[[nodiscard]] std::vector<RecordedSwitches> update_switches(const Pass& pass, const PolicyUpdate& policies);

// Whether a switch of this rollout holds still: then its object is no history.
[[nodiscard]] bool holds_a_switch(const Pass& pass, const SharingRollout& rollout);
// The nodes are seen to be meant for another revision. A set whose DaemonSets are away for a moment shows no nodes at
// all, and a text that nobody can load is no other revision: neither ends an attempt, nor lifts its switches.
[[nodiscard]] bool is_left(const Pass& pass, const RolloutKey& key, const SharingRollout& rollout);

// Events for what has just gone, and findings for as long as its stops hold.
void report_gone_policy(Pass& pass, const std::string& name);
void report_gone_crds(Pass& pass);
void find_held_policies(Pass& pass);

}  // namespace gso
