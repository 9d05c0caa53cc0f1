#include "tests/sim/fleet/node_agent.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

NodeAgent::NodeAgent(Site* site, NodeSpec spec, bool acts_as_controller, FeatureSink features)
    : site_(site),
      spec_(std::move(spec)),
      acts_as_controller_(acts_as_controller),
      features_(std::move(features)),
      machine_(spec_.gpus, &site->agenda, &site->pace),
      outbox_(site->client, site->clock) {
  machine_.on_change = [this] { schedule_node_status(false); };
  machine_.on_mps_clients_broken = [this] {
    for (auto& [uid, entry] : pods_) entry.runner->break_mps_clients();
  };
  machine_.on_slices_served = [this] { break_clients_without_a_slice(); };
  machine_.on_slice_servers_ended = [this] { break_slice_clients(); };
}

NodeAgent::~NodeAgent() = default;

void NodeAgent::begin() {
  ready_changed_ = site_->clock->now();
  json labels = spec_.labels;
  labels["kubernetes.io/hostname"] = spec_.name;
  labels["kubernetes.io/os"] = "linux";
  labels["kubernetes.io/arch"] = "amd64";
  json node{{"apiVersion", "v1"},
            {"kind", "Node"},
            {"metadata", {{"name", spec_.name}, {"labels", labels}}},
            {"spec", json::object()},
            {"status", node_status()}};
  if (!spec_.annotations.empty()) node["metadata"]["annotations"] = spec_.annotations;
  outbox_.push({.verb = Write::Verb::create, .gvr = kNodes, .key = {"", spec_.name}, .body = node.dump()});
  schedule_node_status(true);
  heartbeat();
}

std::string NodeAgent::label(std::string_view key) const {
  if (node_ == nullptr) return {};
  return text(labels(*node_), key);
}

void NodeAgent::on_node(const JsonPtr& after) {
  if (lost_) return;
  node_ = after;
  if (after == nullptr || off_) return;
  for (auto& [uid, entry] : pods_) entry.runner->node_changed();
}

void NodeAgent::on_pod(const JsonPtr& before, const JsonPtr& after) {
  if (lost_ || off_) return;
  if (before != nullptr && (after == nullptr || uid_of(*before) != uid_of(*after))) lose_object(uid_of(*before));
  if (after == nullptr) return;
  auto it = pods_.find(uid_of(*after));
  if (it == pods_.end()) return adopt_pod(*after);
  if (being_deleted(*after)) {
    if (is_lost_before_it_stops(*it->second.runner)) return lose();
    const auto grace = std::chrono::seconds(metadata(*after).value("deletionGracePeriodSeconds", std::int64_t{30}));
    return it->second.runner->terminate(grace);
  }
  if (before == nullptr) return;
  if (annotations(*before) != annotations(*after) || labels(*before) != labels(*after)) it->second.runner->sync_soon();
}

bool NodeAgent::is_lost_before_it_stops(const PodRunner& pod) {
  const auto& containers = pod.spec().containers;
  const auto daemon = std::ranges::find(containers, "mps-control-daemon-ctr", &ContainerSpec::name);
  if (daemon == containers.end() || pod.terminating()) return false;
  return std::exchange(site_->faults.lost_before_mps_stops, false);
}

// Nothing is left to delete.
void NodeAgent::lose_object(const std::string& uid) {
  auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  if (it->second.ended) return forget_pod(uid);
  it->second.object_gone = true;
  it->second.runner->terminate(k8s::Duration::zero());
}

void NodeAgent::adopt_pod(const json& pod) {
  PodSpec spec = read_pod_spec(pod);
  const std::string uid = spec.uid;
  const std::string& phase = text(member(pod, "status"), "phase");
  if (being_deleted(pod)) {
    // Deleted before we ever ran it: nothing to stop.
    outbox_.push(removal(kPods, spec.key, uid, 0));
    return;
  }
  if (phase == "Succeeded" || phase == "Failed") return;
  if (!spec.owner_daemonset.empty()) seen_[spec.owner_daemonset].push_back(uid);
  Entry& entry = pods_[uid];
  PodEnvironment environment{
      .site = site_,
      .machine = &machine_,
      .node_label = [this](std::string_view key) { return label(key); },
      .status_changed = [this, uid] { site_->agenda.after({}, pods_.at(uid).life, [this, uid] { publish_pod(uid); }); },
      .ended = [this, uid] { site_->agenda.after({}, pods_.at(uid).life, [this, uid] { end_pod(uid); }); },
      .publish_features =
          [this](std::optional<std::map<std::string, std::string>> labels) { features_(std::move(labels)); },
      .report_slices = [this] { report_slices(); }};
  entry.runner = std::make_unique<PodRunner>(std::move(environment), std::move(spec));
  admit(entry);
}

// The device manager's part of admission. A resource that no plugin ever registered is not its business.
void NodeAgent::admit(Entry& admitted) {
  PodRunner& runner = *admitted.runner;
  bool uses_mps = false;
  for (const auto& [resource, wanted] : runner.spec().gpus) {
    auto known = machine_.resources().find(resource);
    if (known == machine_.resources().end()) continue;
    std::int64_t free = known->second.allocatable;
    for (const auto& [uid, entry] : pods_) {
      if (entry.runner.get() == &runner || !entry.runner->holds_devices()) continue;
      auto held = entry.runner->spec().gpus.find(resource);
      if (held != entry.runner->spec().gpus.end()) free -= held->second;
    }
    if (wanted > free) {
      return runner.reject("UnexpectedAdmissionError",
                           "Allocate failed due to requested number of devices unavailable for " + resource +
                               ". Requested: " + std::to_string(wanted) + ", Available: " +
                               std::to_string(std::max<std::int64_t>(free, 0)) + ", which is unexpected");
    }
    if (known->second.at_most_one && wanted > 1) {
      return runner.reject("UnexpectedAdmissionError",
                           "Allocate failed due to rpc error: code = Unknown desc = invalid allocation request for \"" +
                               resource +
                               "\": invalid request: maximum request size for shared resources is 1; found " +
                               std::to_string(wanted) + ", which is unexpected");
    }
    uses_mps = uses_mps || known->second.mps;
  }
  runner.set_uses_mps(uses_mps);
  allocate_slices(admitted);
  runner.begin();
}

void NodeAgent::publish_pod(const std::string& uid) {
  auto it = pods_.find(uid);
  if (it == pods_.end() || it->second.writing || it->second.object_gone || lost_ || off_) return;
  const std::string status = it->second.runner->status().dump();
  if (status == it->second.published) {
    if (it->second.ended) remove_pod(uid);
    return;
  }
  it->second.published = status;
  it->second.writing = true;
  // The uid in the patch makes it fail on a namesake that came later.
  outbox_.push({.gvr = kPods,
                .key = it->second.runner->spec().key,
                .body = R"({"metadata":{"uid":")" + uid + R"("},"status":)" + status + "}",
                .subresource = "status",
                .done = [this, uid, life = std::weak_ptr(it->second.life)](const k8s::Result<std::string>&) {
                  if (life.expired()) return;
                  pods_.at(uid).writing = false;
                  publish_pod(uid);
                }});
}

// Kubelet removes a pod only when it has published how its containers ended. Where the node is lost, recover() comes
// back to it.
void NodeAgent::end_pod(const std::string& uid) {
  Entry& entry = pods_.at(uid);
  if (entry.object_gone) return forget_pod(uid);
  entry.ended = true;
  publish_pod(uid);
}

void NodeAgent::remove_pod(const std::string& uid) {
  Entry& entry = pods_.at(uid);
  if (std::exchange(entry.removing, true)) return;
  Write write = removal(kPods, entry.runner->spec().key, uid, 0);
  write.done = [this, uid, life = std::weak_ptr(entry.life)](const k8s::Result<std::string>&) {
    if (!life.expired()) forget_pod(uid);
  };
  outbox_.push(std::move(write));
}

void NodeAgent::forget_pod(const std::string& uid) {
  pods_.erase(uid);
}

PodRunner* NodeAgent::pod_of(std::string_view name) {
  PodRunner* found = nullptr;
  for (auto& [uid, entry] : pods_) {
    const PodSpec& spec = entry.runner->spec();
    if (spec.owner_daemonset != name && spec.key.name != name) continue;
    if (found == nullptr || found->terminating()) found = entry.runner.get();
  }
  return found;
}

void NodeAgent::lose() {
  lost_ = true;
  if (!acts_as_controller_) return;
  site_->agenda.after(site_->pace.exact(site_->pace.timing().node_lost), life_, [this] {
    if (!lost_) return;
    json status = node_status();
    status["conditions"][0]["status"] = "Unknown";
    status["conditions"][0]["reason"] = "NodeStatusUnknown";
    status["conditions"][0]["message"] = "Kubelet stopped posting node status.";
    outbox_.push(
        {.gvr = kNodes, .key = {"", spec_.name}, .body = json{{"status", status}}.dump(), .subresource = "status"});
  });
}

void NodeAgent::set_runtime(bool up) {
  if (ready_ == up) return;
  ready_ = up;
  ready_changed_ = site_->clock->now();
  publish_node();
}

void NodeAgent::recover() {
  lost_ = off_ = false;
  on_node(site_->nodes.find({"", spec_.name}));
  // What happened meanwhile: pods that are gone, deleted or new.
  std::vector<std::string> known;
  for (auto& [uid, entry] : pods_) known.push_back(uid);
  std::vector<std::string> there;
  for (const auto& [key, pod] : site_->pods.all()) {
    if (node_of(*pod) != spec_.name) continue;
    there.push_back(uid_of(*pod));
    on_pod(pod, pod);
  }
  for (const std::string& uid : known) {
    if (std::ranges::find(there, uid) == there.end()) lose_object(uid);
    if (const auto still = pods_.find(uid); still != pods_.end()) still->second.published.clear();
    publish_pod(uid);
  }
  published_.clear();  // Somebody can have set its Ready to Unknown meanwhile.
  schedule_node_status(true);
  heartbeat();
}

void NodeAgent::power_off() {
  for (auto& [uid, entry] : pods_) entry.runner->power_off();
  machine_.reboot();
  off_ = true;
  lose();
}

void NodeAgent::reboot(k8s::Duration downtime) {
  if (off_) return;
  power_off();
  site_->after(downtime, life_, [this] {
    recover();
    for (auto& [uid, entry] : pods_) entry.runner->restart();
  });
}

}  // namespace gso::sim
