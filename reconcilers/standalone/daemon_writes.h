// What is written to a node while its standalone MPS daemon is replaced: the mark (gpusharing.dev/mps-daemon-change),
// the cordon, and the deletion of the old pod. When each of them is due: standalone.h.
#pragma once

#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/standalone/daemon_nodes.h"

namespace gso {

// The node is marked and, unless it is cordoned already or the policy says otherwise, cordoned. It has a DaemonSet.
void begin_change(Pass& pass, const DaemonNode& node);
// The mark is taken off, and the operator's cordon.
void leave_change(Pass& pass, const DaemonNode& node, std::string_view why);

// Of a node in a change:
// The operator's cordon is taken off, and the mark says until when the node does not begin again.
void defer_change(Pass& pass, const DaemonNode& node, std::string_view why);
// The mark says that the daemon of the newest template has failed.
void mark_failed(Pass& pass, const DaemonNode& node);
// `rollout start`: the pod, if the node has one, is created anew, and its time to get Ready begins again.
void try_again(Pass& pass, const DaemonNode& node);

// The DaemonSet's controller creates a pod of the newest template instead. The node has a pod.
void delete_old_pod(Pass& pass, const DaemonNode& node);

}  // namespace gso
