// What the kubelet counts (reservation pods, one GPU each) against what KAI counts (groups with live consumers), per
// node; and KAI on nodes whose plugin serves replicas, where one nvidia.com/gpu is not a whole device.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"

namespace gso {

using namespace kai;

namespace {

// What does not agree on one node. Names of pods, with the group's where it helps.
struct Mismatch {
  std::set<std::string> idle;        // Reservations that hold a GPU which KAI counts as free.
  std::set<std::string> unreserved;  // Consumers whose GPU no reservation holds at the kubelet.
  std::set<std::string> extra;       // Further reservations of one group: GPUs that KAI does not count.
};

std::string listed(const std::set<std::string>& names) {
  return first_names({names.begin(), names.end()});
}

std::string describe(const Mismatch& found) {
  std::string out;
  const auto add = [&](const std::set<std::string>& names, std::string_view what) {
    if (!names.empty()) out += fmt::format("{}{} {}", out.empty() ? "" : "; ", what, listed(names));
  };
  add(found.idle,
      "GPUs are held without a consumer, so KAI counts them as free (pods then fail with UnexpectedAdmissionError):");
  add(found.extra, "more than one reservation for one group:");
  add(found.unreserved, "consumers without a reservation, whose GPU the kubelet can assign to another pod:");
  return out;
}

void compare(const GroupFacts& facts, const KaiView& view, std::map<std::string, Mismatch>& nodes) {
  std::map<std::string, std::set<std::string>> reserved;
  for (const KaiPod* pod : facts.reservations) {
    if (!is_alive(*pod) || pod->meta.deletion_timestamp || pod->node_name.empty()) continue;
    const auto device = pod->meta.annotations.get(kDeviceAnnotation);
    reserved[std::string(pod->node_name.view())].insert(
        fmt::format("{} ({})", k8s::to_string(pod->meta.key()), device.value_or("GPU unknown")));
  }
  // To the binder every pod of that namespace is a reservation, under a former app label too.
  const auto is_former = [&](const KaiPod& pod) { return pod.meta.ns.view() == view.reservations; };
  std::set<std::string> former;
  for (const KaiPod* pod : facts.consumers)
    if (is_former(*pod) && is_alive(*pod)) former.emplace(pod->node_name.view());
  std::set<std::string> used;
  for (const KaiPod* pod : facts.consumers) {
    if (!is_alive(*pod) || pod->node_name.empty() || is_former(*pod)) continue;
    const std::string node(pod->node_name.view());
    used.insert(node);
    if (!reserved.contains(node) && !former.contains(node))
      nodes[node].unreserved.insert(k8s::to_string(pod->meta.key()));
  }
  const bool in_progress = std::ranges::any_of(facts.requests, [](const BindRequest* request) {
    return request->phase != "Succeeded" && !is_terminally_failed(*request);
  });
  for (const auto& [node, names] : reserved) {
    if (used.contains(node)) {
      if (names.size() > 1) nodes[node].extra.insert(names.begin(), names.end());
    } else if (!in_progress) {
      nodes[node].idle.insert(names.begin(), names.end());
    }
  }
}

void report_on_shared_node(KaiPass& pass, const std::string& name, const std::string& use) {
  const std::string note = fmt::format(
      "KAI shares GPUs here ({}) while the device plugin serves replicas of them: one nvidia.com/gpu is not a whole "
      "device, so a reservation does not hold a GPU exclusively. Keep KAI's fractions off this node, or select a "
      "profile without sharing",
      use);
  pass.finding(Severity::error, node_ref(name), kKaiOnSharedNode, note);
  pass.event(node_ref(name), true, kKaiOnSharedNode, "CheckSharing", note);
}

void report_sharing_twice(KaiPass& pass) {
  for (const std::string& name : pass.kai.shared_twice()) report_on_shared_node(pass, name, pass.kai.use_of(name));
}

// How many pods the reservation audit looks up in one sweep; the others follow in later ones.
constexpr std::int64_t kAsksPerSweep = 64;

std::int64_t asks_left(const KaiPass& pass) {
  const KaiWorld& kai = pass.s.world.kai;
  std::int64_t left = kAsksPerSweep;
  for (const auto& [node, requests] : pass.kai.unreserved()) {
    for (const auto& [key, groups] : requests) {
      const BindRequest* request = kai.bind_requests.find(key);
      const auto found = kai.lookups.pods.find(ObjectKey{key.ns, request ? request->pod_name : std::string()});
      if (found != kai.lookups.pods.end() && pass.s.mono - found->second.at < pass.s.settings.kai.sweep) --left;
    }
  }
  return left;
}

void find_unreserved(KaiPass& pass, std::map<std::string, Mismatch>& nodes) {
  if (pass.kai.unreserved().empty()) return;
  std::int64_t asks = asks_left(pass);
  for (const auto& [node, requests] : pass.kai.unreserved()) {
    const UnreservedConsumers found = unreserved_consumers(pass.s, pass.kai, node, asks, pass.plan.kai_wanted);
    if (found.pods.empty()) continue;
    nodes[node].unreserved.insert(found.pods.begin(), found.pods.end());
    const Node* object = pass.s.world.nodes.find(node);
    if (object != nullptr && serves_replicas(*object) && !pass.kai.shared_twice().contains(node))
      report_on_shared_node(pass, node, counted(found.pods.size(), "fraction pod") + " without a reservation");
  }
  pass.look_again_in(pass.s.settings.kai.sweep);
}

// Two groups that use one GPU, each as if exclusively: KAI then allocates it twice.
void report_claims(KaiPass& pass) {
  for (const auto& [device, claimants] : pass.kai.claimed_twice()) {
    std::set<std::string> names;
    for (const ObjectKey& key : claimants) {
      const KaiPod* pod = pass.s.world.kai.pods.find(key);
      if (pod == nullptr) continue;
      names.insert(fmt::format("{} (group {})", k8s::to_string(key), pod->meta.labels.get(kGroupLabel).value_or("")));
    }
    const std::string note = fmt::format(
        "reservations of several groups claim GPU {}: {}. KAI counts it once for each group, so their pods get more "
        "than the GPU has. Shut down the pods of all groups but one",
        device.second, listed(names));
    pass.finding(Severity::error, node_ref(device.first), kKaiClaimedTwice, note);
    pass.event(node_ref(device.first), true, kKaiClaimedTwice, "CompareReservations", note);
  }
}

}  // namespace

void plan_reservation_audit(KaiPass& pass) {
  const KaiIndex& index = pass.kai;
  const bool nothing = pass.s.world.kai.pods.size() == 0 && index.unreserved().empty() && index.shared_twice().empty();
  if (nothing || !kai_hold(pass.s.world).empty()) return;
  report_sharing_twice(pass);
  report_claims(pass);
  const KaiWorld& kai = pass.s.world.kai;
  std::map<std::string, Mismatch> nodes;
  for (const std::string& group : index.attention()) {
    // A group that only multi-device consumers use is known once they have been listed.
    const bool listed = kai.lookups.groups.contains(group);
    const KaiIndex::Group* members = index.group(group);
    if (members == nullptr || (!members->reservations.empty() && members->consumers.empty() && !listed)) continue;
    compare(group_facts(kai, index, group), index.view(), nodes);
  }
  find_unreserved(pass, nodes);
  for (const auto& [node, found] : nodes) {
    const std::string text = describe(found);
    // Longer than any bind can take.
    if (text.empty() || !pass.held_for({Timer::kai_mismatch, node, ""}, index.view().bind_timeout)) continue;
    pass.finding(Severity::warning, node_ref(node), kKaiMismatch, text);
    pass.event(node_ref(node), true, kKaiMismatch, "CompareReservations", text);
  }
}

}  // namespace gso
