// Standalone MPS daemons: replaces their pods after their DaemonSet has a new template (updateStrategy OnDelete), by
// the same gates and budgets as profiles, and reports what keeps a daemon from running.
//
// A node whose daemon is to be replaced:
//   row when                                     then
//   S1  the mark cannot be read                  nothing; a finding says how to release the node
//   S2  a person, a driver upgrade, a MIG        nothing; every deadline starts again afterwards
//       change or a remediation holds it
//   S3  the DaemonSet is gone, or is no longer   leaves: uncordoned, without the mark
//       for the node, and no pod is left
//   S4  its pod has the new template             leaves once the pod is Ready; Failed after verifyTimeout: the node
//                                                keeps its cordon and its slot until a newer template, or until a
//                                                retry (gpusharing.dev/retry of the policy) deletes the pod again
//   S5  no pod, or one that terminates           waits for the DaemonSet's controller; Failed after verifyTimeout
//   S6  its pod is old, still serves, and a      leaves
//       gate has closed
//   S7  its pod is old, and a person has         leaves, and does not begin again before idleTimeout has passed
//       uncordoned the node, or clients did not
//       end within idleTimeout
//   S8  its pod is old, and GPU clients remain   waits for them, or evicts them (workloads: Evict); not under
//                                                workloads: Interrupt
//   S9  its pod is old                           deletes it
// A node without the mark begins if its pod is old and serves the DaemonSet's former template, nobody holds it, it is
// in no other change, and gate, settling, canary, failures and budgets allow it; idle nodes first. Canaries soak from
// the moment at which the operator sees them serve, and from the start after each gap; the record keeps that moment
// (rollout/recorded_timers.h). The pods that only
// watch a daemon of the host are replaced without a drain, one at a time: no client connects to them.
#pragma once

#include "reconcilers/fleet/pass.h"
#include "reconcilers/rollout/rollout_object.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

// `slots`: those that changes of profiles have taken in this pass are no longer free. The rollouts of templates, for
// the status of their SharingRollouts.
[[nodiscard]] DaemonRollouts plan_standalone_mps(Pass& pass, Slots& slots);

}  // namespace gso
