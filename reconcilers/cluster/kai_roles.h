// The roles of KAI's pods and BindRequests, each classified on its own.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/kai_world.h"

namespace gso {

// A pod's role for KAI, under the present kai-config.
enum class KaiRole {
  none,         // Has no group.
  reservation,  // Namespace, app label and group label all match.
  unlabelled,   // A reservation that lost its group label: KAI no longer sees it.
  consumer,     // Every other pod with a group, in any namespace.
};
[[nodiscard]] KaiRole role_of(const KaiPod& pod, const KaiView& view);
// Looks like a reservation, but is none under the present kai-config: it is outside the configured namespace (from an
// earlier configuration, or a user's pod; for KAI it is a consumer), or in that namespace with another app label (the
// binder, which checks the namespace only, still treats it as a reservation).
[[nodiscard]] bool is_leftover(const KaiPod& pod, const KaiView& view);
// The pod exists and is neither Succeeded nor Failed: Unknown, Pending and terminating pods are alive.
[[nodiscard]] bool is_alive(const KaiPod& pod);
// Groups that a pod's labels name, as the value of runai-gpu-group or in a key runai-gpu-group/<group>; for a pod with
// the plain label also the value of such a key, in case a person edited it. Without duplicates.
[[nodiscard]] std::vector<std::string> groups_of(const KaiPod& pod);
// Groups that the pod belongs to in its role: a consumer to all groups that it names, a reservation only to the group
// of the plain label (KAI reads no other), an unlabelled one to none.
[[nodiscard]] std::vector<std::string> groups_in_role(const KaiPod& pod, KaiRole role);
// Failed without a remaining attempt: the scheduler will delete it, and no pod is bound by it.
[[nodiscard]] bool is_terminally_failed(const BindRequest& request);

}  // namespace gso
