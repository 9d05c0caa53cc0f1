// What KAI's pods and BindRequests are, each taken by itself.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/kai_world.h"

namespace gso {

// What a pod is in KAI's terms, under the present kai-config.
enum class KaiRole {
  none,         // Carries no group.
  reservation,  // Right namespace, app label and group label: all three.
  unlabelled,   // A reservation that lost its group label: KAI does not see it any more.
  consumer,     // Everything else that carries a group, wherever it is.
};
[[nodiscard]] KaiRole role_of(const KaiPod& pod, const KaiView& view);
// Looks like a reservation, and is none by what kai-config says now: it stands outside of the namespace named there (an
// earlier configuration's, or a user's pod; to KAI it is a consumer), or there under another app label (the binder,
// which goes by the namespace, takes it for one still).
[[nodiscard]] bool is_leftover(const KaiPod& pod, const KaiView& view);
// There and neither Succeeded nor Failed: Unknown, Pending and terminating pods are alive.
[[nodiscard]] bool is_alive(const KaiPod& pod);
// Groups that a pod's labels name, as the value of runai-gpu-group or in a key runai-gpu-group/<group>; beside the
// plain label also as the value of such a key, should somebody have edited it. Without duplicates.
[[nodiscard]] std::vector<std::string> groups_of(const KaiPod& pod);
// Groups that the pod belongs to as what it is: a consumer to all that it names, a reservation to that of the plain
// label alone (KAI reads no other of it), an unlabelled one to none.
[[nodiscard]] std::vector<std::string> groups_in_role(const KaiPod& pod, KaiRole role);
// Failed with no attempt left: the scheduler will delete it, and nothing comes of it.
[[nodiscard]] bool is_terminally_failed(const BindRequest& request);

}  // namespace gso
