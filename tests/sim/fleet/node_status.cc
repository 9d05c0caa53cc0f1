// What kubelet publishes about its node: capacity, allocatable, the Ready condition, and its Lease.
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/node_agent.h"

namespace gso::sim {

using nlohmann::json;

json NodeAgent::node_status() const {
  json capacity{{"cpu", "64"}, {"memory", "263856Mi"}, {"pods", "110"}};
  json allocatable = capacity;
  for (const auto& [name, resource] : machine_.resources()) {
    capacity[name] = std::to_string(resource.capacity);
    allocatable[name] = std::to_string(resource.allocatable);
  }
  const json ready{{"type", "Ready"},
                   {"status", ready_ ? "True" : "False"},
                   {"reason", ready_ ? "KubeletReady" : "KubeletNotReady"},
                   {"message", ready_ ? "kubelet is posting ready status" : "container runtime is down"},
                   {"lastTransitionTime", k8s::format_time(ready_changed_)},
                   {"lastHeartbeatTime", k8s::format_time(ready_changed_)}};
  return {{"capacity", capacity},
          {"allocatable", allocatable},
          {"conditions", json::array({ready})},
          {"addresses", json::array({{{"type", "Hostname"}, {"address", spec_.name}}})},
          {"nodeInfo",
           {{"kubeletVersion", "v1.36.3"},
            {"kubeProxyVersion", ""},
            {"containerRuntimeVersion", "containerd://2.1.0"},
            {"kernelVersion", "6.1.0"},
            {"osImage", "Debian GNU/Linux 12"},
            {"operatingSystem", "linux"},
            {"architecture", "amd64"},
            {"machineID", ""},
            {"systemUUID", ""},
            {"bootID", ""}}}};
}

// Changes wait for kubelet's next look at its node, every 10 seconds.
void NodeAgent::schedule_node_status(bool at_once) {
  if (at_once) return publish_node();
  if (std::exchange(publish_scheduled_, true)) return;
  const k8s::Duration period = std::max(site_->pace.exact(site_->pace.timing().node_status), k8s::Duration(1));
  const k8s::Duration phase{static_cast<std::int64_t>(std::hash<std::string>{}(spec_.name) % 1'000'003) *
                            (period.count() / 1'000'003)};
  const k8s::Duration into = (site_->clock->monotonic().since_boot + phase) % period;
  site_->agenda.after(period - into, life_, [this] {
    publish_scheduled_ = false;
    publish_node();
  });
}

void NodeAgent::publish_node() {
  if (lost_ || off_ || publishing_) return;
  const std::string status = node_status().dump();
  if (status == published_) return;
  published_ = status;
  publishing_ = true;
  outbox_.push({.gvr = kNodes,
                .key = {"", spec_.name},
                .body = R"({"status":)" + status + "}",
                .subresource = "status",
                .done = [this](const k8s::Result<std::string>& answer) {
                  publishing_ = false;
                  if (answer) return publish_node();
                  published_.clear();
                  // A node that somebody deleted stays deleted: kubelet registers at its start only.
                  if (answer.error().reason != k8s::Reason::not_found) schedule_node_status(false);
                }});
}

void NodeAgent::heartbeat() {
  const k8s::Duration period = site_->pace.timing().heartbeat;
  if (period == k8s::Duration::zero()) return;
  if (lost_ || off_) return;  // recover() starts it again.
  const std::string renew = R"({"spec":{"renewTime":")" + k8s::format_micro_time(site_->clock->now()) + R"("}})";
  outbox_.push({.gvr = kLeases,
                .key = {"kube-node-lease", spec_.name},
                .body = renew,
                .done = [this](const k8s::Result<std::string>& answer) {
                  if (answer || answer.error().reason != k8s::Reason::not_found) return;
                  json lease{{"apiVersion", "coordination.k8s.io/v1"},
                             {"kind", "Lease"},
                             {"metadata", {{"name", spec_.name}, {"namespace", "kube-node-lease"}}},
                             {"spec",
                              {{"holderIdentity", spec_.name},
                               {"leaseDurationSeconds", 40},
                               {"renewTime", k8s::format_micro_time(site_->clock->now())}}}};
                  outbox_.push({.verb = Write::Verb::create,
                                .gvr = kLeases,
                                .key = {"kube-node-lease", spec_.name},
                                .body = lease.dump()});
                }});
  heartbeats_ = std::make_shared<int>();
  site_->agenda.after(period, heartbeats_, [this] { heartbeat(); });
}

}  // namespace gso::sim
