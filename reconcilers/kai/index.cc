// Maintains the groups: removes what an object contributed before the event, then adds what it contributes now.
#include "reconcilers/kai/index.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/kai/planners.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

using namespace kai;

namespace {

std::vector<std::string> groups_of(const BindRequest& request) {
  std::vector<std::string> out;
  for (const Interned& group : request.groups)
    if (!group.empty() && std::ranges::find(out, group.view()) == out.end()) out.emplace_back(group.view());
  return out;
}

// Whether the key is in the set.
template <class Key>
void set_member(std::set<Key>& set, const Key& key, bool is_one) {
  if (is_one)
    set.insert(key);
  else
    set.erase(key);
}

}  // namespace

bool serves_replicas(const Node& node) {
  const std::string_view text = node.meta.labels.get(kGpuReplicas).value_or("");
  if (whole_number(text).value_or(0) > 1) return true;
  const std::string_view strategy = node.meta.labels.get(kSharingStrategy).value_or("none");
  const bool shared_resource = std::ranges::any_of(
      node.allocatable, [](const auto& entry) { return entry.second > 0 && entry.first.view().ends_with(".shared"); });
  return shared_resource || (!strategy.empty() && strategy != "none" && text.empty());
}

void KaiIndex::attach(World& world) {
  world.kai.pods.add_listener([this](const ObjectKey& key, const auto& before, const auto& after) {
    dirty_pods_.insert(key);
    for (const auto& pod : {before, after}) {
      // A change of a reservation does not count as activity of its group.
      if (pod && is_alive(*pod) && role_of(*pod, view_) == KaiRole::consumer)
        note_activity(gso::groups_of(pod->meta.labels));
    }
  });
  world.kai.bind_requests.add_listener([this](const ObjectKey& key, const auto& before, const auto& after) {
    dirty_requests_.insert(key);
    for (const auto& request : {before, after}) {
      if (!request) continue;
      note_activity(groups_of(*request));
      dirty_pods_.insert({key.ns, request->pod_name});
    }
  });
  world.nodes.add_listener([this](const ObjectKey& key, const auto&, const auto&) { dirty_nodes_.insert(key.name); });
}

void KaiIndex::note_activity(const std::vector<std::string>& groups) {
  for (const std::string& group : groups) ++activity_[group];
}

std::uint64_t KaiIndex::activity(const std::string& group) const {
  auto it = activity_.find(group);
  return it == activity_.end() ? 0 : it->second;
}

const KaiIndex::Group* KaiIndex::group(const std::string& name) const {
  auto it = groups_.find(name);
  return it == groups_.end() ? nullptr : &it->second;
}

std::vector<std::string> KaiIndex::take_changed_nodes() {
  std::vector<std::string> out(changed_nodes_.begin(), changed_nodes_.end());
  changed_nodes_.clear();
  return out;
}

std::string KaiIndex::use_of(std::string_view node) const {
  auto it = nodes_.find(std::string(node));
  if (it == nodes_.end()) return {};
  std::string out;
  const auto add = [&](std::int64_t count, std::string_view one) {
    if (count > 0) out += (out.empty() ? "" : ", ") + counted(count, one);
  };
  add(it->second.reservations, "reservation");
  add(it->second.consumers, "fraction pod");
  add(it->second.bind_requests, "unfinished BindRequest");
  return out;
}

KaiIndex::NodeUse& KaiIndex::use(const std::string& node) {
  NodeUse& out = nodes_[node];
  touched_nodes_.try_emplace(node, out.any());
  return out;
}

void KaiIndex::take_out(Shares& shares, const ObjectKey& key) {
  const auto found = shares.extract(key);
  if (!found) return;
  const Share& share = found.mapped();
  for (const std::string& name : share.groups) {
    (groups_[name].*share.members).erase(key);
    touched_groups_.insert(name);
  }
  if (!share.node.empty()) --(use(share.node).*share.counted);
  if (!share.reserves) return;
  std::set<ObjectKey>& on = reservations_on_[share.node];
  on.erase(key);
  if (on.empty()) reservations_on_.erase(share.node);
  if (share.device.empty()) return;
  devices_[{share.node, share.device}].erase(key);
  touched_devices_.insert({share.node, share.device});
}

void KaiIndex::put_in(Shares& shares, const ObjectKey& key, Share share) {
  for (const std::string& name : share.groups) {
    (groups_[name].*share.members).insert(key);
    touched_groups_.insert(name);
  }
  if (!share.node.empty()) ++(use(share.node).*share.counted);
  if (share.reserves) {
    reservations_on_[share.node].insert(key);
    if (!share.device.empty()) {
      devices_[{share.node, share.device}].insert(key);
      touched_devices_.insert({share.node, share.device});
    }
  }
  shares.emplace(key, std::move(share));
}

void KaiIndex::put_in_pod(const KaiWorld& kai, const ObjectKey& key) {
  const KaiPod* pod = kai.pods.find(key);
  const KaiRole role = pod == nullptr ? KaiRole::none : role_of(*pod, view_);
  set_member(unlabelled_, key, role == KaiRole::unlabelled);
  set_member(leftovers_, key, role != KaiRole::none && is_leftover(*pod, view_));
  if (role == KaiRole::none) return;
  const bool consumes = role == KaiRole::consumer;
  // A label on a pod that KAI has not placed takes no GPU of the node.
  const bool uses = !consumes || is_placed_by_kai(kai, view_, pod->scheduler_name.view(), key);
  Share share{.groups = groups_in_role(*pod, role), .members = consumes ? &Group::consumers : &Group::reservations};
  if (is_alive(*pod) && uses) share.node = std::string(pod->node_name.view());
  share.counted = consumes ? &NodeUse::consumers : &NodeUse::reservations;
  share.reserves = role == KaiRole::reservation && !share.node.empty();
  share.device = pod->meta.annotations.get(kDeviceAnnotation).value_or("");
  put_in(pod_shares_, key, std::move(share));
}

void KaiIndex::put_in_request(const KaiWorld& kai, const ObjectKey& key) {
  const BindRequest* request = kai.bind_requests.find(key);
  if (request == nullptr) return;
  Share share{.groups = groups_of(*request), .members = &Group::bind_requests};
  // A succeeded BindRequest is not counted: its pod, or the reservations of that pod, show the use.
  const bool in_progress = request->phase != "Succeeded" && !is_terminally_failed(*request) && !share.groups.empty();
  if (in_progress) share.node = std::string(request->selected_node.view());
  share.counted = &NodeUse::bind_requests;
  put_in(request_shares_, key, std::move(share));
}

// Computes the group's part of unreserved_ again.
void KaiIndex::find_unreserved(const KaiWorld& kai, const std::string& name) {
  if (auto old = unreserved_of_.extract(name)) {
    for (const auto& [node, request] : old.mapped()) {
      auto& requests = unreserved_[node];
      if (--requests[request] == 0) requests.erase(request);
      if (requests.empty()) unreserved_.erase(node);
    }
  }
  auto it = groups_.find(name);
  if (it == groups_.end()) return;
  std::vector<Interned> reserved;  // Nodes.
  const auto collect = [&](const std::set<ObjectKey>& keys) {
    for (const ObjectKey& key : keys) {
      if (key.ns != view_.reservations) continue;
      const KaiPod* pod = kai.pods.find(key);
      if (pod != nullptr && is_alive(*pod)) reserved.push_back(pod->node_name);
    }
  };
  collect(it->second.reservations);
  collect(it->second.consumers);  // There is one under a former app label.
  for (const ObjectKey& key : it->second.bind_requests) {
    const BindRequest* request = kai.bind_requests.find(key);
    if (request == nullptr || request->phase != "Succeeded" || request->selected_node.empty()) continue;
    if (std::ranges::find(reserved, request->selected_node) != reserved.end()) continue;
    if (kai.pods.find(ObjectKey{key.ns, request->pod_name}) != nullptr) continue;
    const std::string node(request->selected_node.view());
    ++unreserved_[node][key];
    unreserved_of_[name].emplace_back(node, key);
  }
}

// Whether the group needs a look by the planners.
void KaiIndex::weigh(const KaiWorld& kai, const std::string& name) {
  find_unreserved(kai, name);
  auto it = groups_.find(name);
  if (it == groups_.end() || it->second.empty()) {
    if (it != groups_.end()) groups_.erase(it);
    activity_.erase(name);
    attention_.erase(name);
    return;
  }
  const Group& group = it->second;
  std::size_t live = 0;
  std::size_t beside = 0;
  const KaiPod* reservation = group.reservations.size() == 1 ? kai.pods.find(*group.reservations.begin()) : nullptr;
  for (const ObjectKey& key : group.consumers) {
    const KaiPod* pod = kai.pods.find(key);
    if (pod == nullptr || !is_alive(*pod)) continue;
    ++live;
    if (reservation && !pod->node_name.empty() && pod->node_name == reservation->node_name) ++beside;
  }
  const bool sound = reservation && reservation->phase == "Running" && !reservation->meta.deletion_timestamp &&
                     reservation->meta.annotations.contains(kDeviceAnnotation);
  const bool healthy = group.reservations.empty() ? live == 0 : sound && live > 0 && beside == live;
  set_member(attention_, name, !healthy);
}

const std::set<ObjectKey>& KaiIndex::reservations_on(std::string_view node) const {
  static const std::set<ObjectKey> kNone;
  auto it = reservations_on_.find(std::string(node));
  return it == reservations_on_.end() ? kNone : it->second;
}

const std::set<ObjectKey>& KaiIndex::claimants(const KaiPod& reservation) const {
  static const std::set<ObjectKey> kNone;
  auto it = claimed_twice_.find({std::string(reservation.node_name.view()),
                                 std::string(reservation.meta.annotations.get(kDeviceAnnotation).value_or(""))});
  return it == claimed_twice_.end() ? kNone : it->second;
}

void KaiIndex::compare_claims(const KaiWorld& kai, const Device& device) {
  claimed_twice_.erase(device);
  auto it = devices_.find(device);
  if (it == devices_.end()) return;
  if (it->second.empty()) {
    devices_.erase(it);
    return;
  }
  std::set<std::string_view> groups;
  for (const ObjectKey& key : it->second)
    if (const KaiPod* pod = kai.pods.find(key)) groups.insert(pod->meta.labels.get(kGroupLabel).value_or(""));
  if (groups.size() > 1) claimed_twice_.emplace(device, it->second);
}

void KaiIndex::compare_sharing(const World& world, const std::string& name) {
  const auto used = nodes_.find(name);
  const Node* node = world.nodes.find(name);
  const bool evicts = node != nullptr && !reservations_on(name).empty() &&
                      std::ranges::any_of(node->taints, [](const Taint& taint) { return taint.effect == "NoExecute"; });
  set_member(evicting_, name, evicts);
  const bool is_used = used != nodes_.end() && used->second.any();
  set_member(shared_twice_, name, is_used && node != nullptr && serves_replicas(*node));
}

void KaiIndex::refresh(const World& world, const PlannerSettings& settings) {
  const KaiWorld& kai = world.kai;
  KaiView view = view_kai(kai, settings.kai);
  // Each pod might have another role now, or another use of its node.
  if (view.reservations != view_.reservations || view.app_label != view_.app_label || view.served != view_.served ||
      view.scheduler_name != view_.scheduler_name)
    everything_ = true;
  view_ = std::move(view);
  if (everything_) {
    for (const auto& [key, pod] : kai.pods.all()) dirty_pods_.insert(key);
    for (const auto& [key, share] : pod_shares_) dirty_pods_.insert(key);
    for (const auto& [key, request] : kai.bind_requests.all()) dirty_requests_.insert(key);
    for (const auto& [key, share] : request_shares_) dirty_requests_.insert(key);
    for (const auto& [name, used] : nodes_) dirty_nodes_.insert(name);
    everything_ = false;
  }
  for (const ObjectKey& key : dirty_pods_) {
    take_out(pod_shares_, key);
    put_in_pod(kai, key);
  }
  for (const ObjectKey& key : dirty_requests_) {
    take_out(request_shares_, key);
    put_in_request(kai, key);
  }
  dirty_pods_.clear();
  dirty_requests_.clear();
  for (const std::string& name : touched_groups_) weigh(kai, name);
  touched_groups_.clear();
  for (const auto& [name, before] : touched_nodes_) {
    auto it = nodes_.find(name);
    const bool now = it != nodes_.end() && it->second.any();
    if (it != nodes_.end() && !now) nodes_.erase(it);
    if (before != now) changed_nodes_.insert(name);
    dirty_nodes_.insert(name);
  }
  touched_nodes_.clear();
  // Groups that were added and removed between two passes have left only their activity count.
  if (activity_.size() > 2 * groups_.size() + 1000)
    std::erase_if(activity_, [this](const auto& entry) { return !groups_.contains(entry.first); });
  for (const Device& device : touched_devices_) compare_claims(kai, device);
  touched_devices_.clear();
  for (const std::string& name : dirty_nodes_) compare_sharing(world, name);
  dirty_nodes_.clear();
}

// --- The facts about a GPU group that the judgement uses: its objects in the stores, and the results of lookups.

std::string kai_hold(const World& world) {
  const KaiWorld& kai = world.kai;
  if (!kai.incomplete.empty()) return kai.incomplete;
  if (!world.nodes.synced() || !kai.pods.synced() || !kai.bind_requests.synced() || !kai.configs.synced())
    return "not every store has synced yet";
  if (kai.configs_served == kai.bind_requests_served) return {};
  return fmt::format("KAI serves {} but not {}: an upgrade or a removal is in progress",
                     kai.configs_served ? "configs.kai.scheduler" : "bindrequests.scheduling.run.ai",
                     kai.configs_served ? "bindrequests.scheduling.run.ai" : "configs.kai.scheduler");
}

GroupFacts group_facts(const KaiWorld& kai, const KaiIndex& index, const std::string& name) {
  GroupFacts out;
  out.group = name;
  const KaiIndex::Group* group = index.group(name);
  if (group == nullptr) return out;
  const auto collect = [](const auto& store, const std::set<ObjectKey>& keys, auto& into) {
    for (const ObjectKey& key : keys)
      if (const auto* object = store.find(key)) into.push_back(object);
  };
  collect(kai.pods, group->reservations, out.reservations);
  collect(kai.pods, group->consumers, out.consumers);
  collect(kai.bind_requests, group->bind_requests, out.requests);
  if (auto found = kai.lookups.groups.find(name); found != kai.lookups.groups.end()) {
    for (const KaiPod& pod : found->second.pods) {
      // The object in the store is at least as new.
      const KaiPod* known = kai.pods.find(pod.meta.key());
      if (known == nullptr || known->meta.uid != pod.meta.uid) out.consumers.push_back(&pod);
    }
  }
  out.pod_alive = [&kai](const ObjectKey& key) -> std::optional<bool> {
    if (const KaiPod* pod = kai.pods.find(key); pod && is_alive(*pod)) return true;
    auto it = kai.lookups.pods.find(key);
    return it == kai.lookups.pods.end() ? std::nullopt : std::optional(it->second.alive);
  };
  out.devices = [&kai](const ObjectKey& key, const k8s::Uid& consumer) -> std::optional<std::string> {
    auto it = kai.lookups.config_maps.find(key);
    return it == kai.lookups.config_maps.end() ? std::nullopt : it->second.of(consumer);
  };
  return out;
}

DeviceClaims device_claims(const KaiIndex& index) {
  return [&index](const KaiPod& reservation) -> std::string {
    for (const ObjectKey& key : index.claimants(reservation))
      if (key != reservation.meta.key()) return k8s::to_string(key);
    return {};
  };
}

DeviceClaims device_claims(const KaiWorld& kai, const KaiView& view) {
  return [&kai, &view](const KaiPod& reservation) -> std::string {
    const auto device = reservation.meta.annotations.get(kDeviceAnnotation);
    if (!device) return {};
    for (const auto& [key, pod] : kai.pods.all()) {
      const bool same = pod->node_name == reservation.node_name && pod->meta.uid != reservation.meta.uid &&
                        pod->meta.annotations.get(kDeviceAnnotation) == device;
      const bool other = pod->meta.labels.get(kGroupLabel) != reservation.meta.labels.get(kGroupLabel);
      if (same && other && is_alive(*pod) && role_of(*pod, view) == KaiRole::reservation) return k8s::to_string(key);
    }
    return {};
  };
}

}  // namespace gso
