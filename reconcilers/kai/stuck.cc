// Fraction pods that wait, each with the cause that can be seen; and reservations that a taint can evict.
#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/cluster/node_match.h"
#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"

namespace gso {

using namespace kai;

namespace {

void report(KaiPass& pass, const ObjectMeta& pod, std::string_view reason, const std::string& text) {
  pass.finding(Severity::warning, pod_ref(pod), reason, text);
  pass.event(pod_ref(pod), true, reason, "CheckSharing", text);
}

// No watch shows these pods: they are listed periodically, and a list is used until it is too old.
void report_waiting_pods(KaiPass& pass) {
  const KaiWorld& kai = pass.s.world.kai;
  const KaiSettings& settings = pass.s.settings.kai;
  const KaiView& view = pass.kai.view();
  const auto& waiting = kai.lookups.waiting;
  if (!waiting || pass.s.mono - waiting->at >= settings.waiting_sweep) {
    pass.plan.kai_wanted.waiting_pods = true;
  } else {
    pass.look_again_in(settings.waiting_sweep - (pass.s.mono - waiting->at));
  }
  if (!waiting || pass.s.mono - waiting->at >= 2 * settings.waiting_sweep) return;
  const WaitingCauses causes(pass.s.world, view, waiting->pods);
  for (const WaitingPod& pod : waiting->pods) {
    const Duration age = pass.s.now - pod.pod.meta.creation_timestamp;
    if (!causes.is_of_kai(pod) || age < view.bind_timeout) continue;  // A bind can take that long.
    const WaitingCause cause = causes.cause(pod);
    report(pass, pod.pod.meta, kKaiPodStuck,
           fmt::format("waits for a share of a GPU: {} ({})", cause.text, cause.code));
  }
}

// A NoExecute taint evicts the reservation and leaves its consumer, which tolerates it.
void report_toleration(KaiPass& pass, const Node& node, const Taint& taint, const KaiPod& reservation) {
  if (tolerates(reservation.tolerations, taint)) return;
  const std::string group(reservation.meta.labels.get(kGroupLabel).value_or(""));
  for (const KaiPod* consumer : group_facts(pass.s.world.kai, pass.kai, group).consumers) {
    if (!is_alive(*consumer) || !tolerates(consumer->tolerations, taint)) continue;
    report(pass, reservation.meta, kKaiNoToleration,
           fmt::format("node {} has the taint {}:NoExecute, which consumer {} tolerates and its reservation does not: "
                       "the reservation is evicted, and the binder then deletes the consumer",
                       node.meta.name, taint.key.view(), k8s::to_string(consumer->meta.key())));
    return;
  }
}

void report_tolerations(KaiPass& pass) {
  for (const std::string& name : pass.kai.evicting()) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr) continue;
    for (const ObjectKey& key : pass.kai.reservations_on(name)) {
      const KaiPod* reservation = pass.s.world.kai.pods.find(key);
      if (reservation == nullptr) continue;
      for (const Taint& taint : node->taints) {
        if (taint.effect == "NoExecute") report_toleration(pass, *node, taint, *reservation);
      }
    }
  }
}

}  // namespace

void plan_kai_stuck(KaiPass& pass) {
  const KaiWorld& kai = pass.s.world.kai;
  if (pass.s.settings.kai.gc_mode == KaiGcMode::off || !kai_hold(pass.s.world).empty()) return;
  report_tolerations(pass);
  if (kai.configs_served || kai.configs.size() > 0) report_waiting_pods(pass);
}

// --- Consumers that no watch shows: multi-device pods carry no label to select by. If each of their groups has a
// reservation, the reservations show the use; otherwise only their BindRequests do.

UnreservedConsumers unreserved_consumers(const Snapshot& snapshot, const KaiIndex& index, const std::string& node,
                                         std::int64_t& asks, KaiWants& wanted) {
  UnreservedConsumers out;
  const KaiWorld& kai = snapshot.world.kai;
  const KaiSettings& settings = snapshot.settings.kai;
  const auto found = index.unreserved().find(node);
  if (found == index.unreserved().end()) return out;
  for (const auto& [key, groups] : found->second) {
    const BindRequest* request = kai.bind_requests.find(key);
    if (request == nullptr) continue;
    const ObjectKey pod{key.ns, request->pod_name};
    const auto looked_up = kai.lookups.pods.find(pod);
    const bool there = looked_up != kai.lookups.pods.end();
    const Duration age = there ? snapshot.mono - looked_up->second.at : Duration::zero();
    if ((!there || age >= settings.sweep) && asks > 0) {
      --asks;
      wanted.pods.insert(pod);
    }
    if (!there || age >= 2 * settings.sweep) {
      out.known = false;
    } else if (looked_up->second.alive) {
      out.pods.insert(k8s::to_string(pod));
    }
  }
  return out;
}

}  // namespace gso
