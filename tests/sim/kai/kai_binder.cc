// KAI's binder, as kai_actor.h describes it: binds, reservations, roll-back, and the sync that deletes.
#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/kai/kai_actor.h"
#include "tests/sim/kai/kai_read.h"

namespace gso::sim {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace kai_read;

// --- The binder.
KaiActor::Task KaiActor::binder() {
  while (!stopped_) {
    co_await wait(100ms, 1500ms);
    if (!binder_up_) continue;
    for (const auto& request : requests()) {
      const std::string pod = text(*request, "spec", "podName");
      const std::string phase = text(*request, "status", "phase");
      if (phase == "Succeeded" || phase == "Failed" || terminating(*request) || binding_.contains(pod)) continue;
      binding_.insert(pod);
      ++binds_;
      spawn(bind(pod, incarnation_));
    }
    // Triggers: a consumer of KAI's own scheduler with the plain label has ended.
    if (!chance(0.2)) continue;
    for (const auto& pod : pods(kTeam)) {
      if (alive(*pod) || text(*pod, "spec", "schedulerName") != "kai-scheduler") continue;
      const Json& labels = at(*pod, "metadata", "labels");
      const std::string group = labels.is_object() ? labels.value("runai-gpu-group", "") : "";
      if (!group.empty() && chance(0.3)) sync_group(group);
    }
  }
}

KaiActor::Task KaiActor::bind(std::string pod, std::uint64_t incarnation) {
  co_await wait(10ms, 3s);
  const auto request = server_.get(kBindRequests, {kTeam, pod});
  if (up(incarnation) && request) {
    send(k8s::Method::patch, request_path(pod) + "/status", {{"status", {{"phase", "Pending"}}}},
         "application/merge-patch+json");
    const std::vector<std::string> groups = groups_of(*request);
    const std::string node = text(*request, "spec", "selectedNode");
    sync_node(node);
    bool bound = false;
    co_await run_steps(pod, groups, node, incarnation, &bound);
    if (up(incarnation) && !bound) {
      roll_back(pod, groups);
      fail_request(pod);
    }
    if (bound) ++done_;
    for (const std::string& group : groups) found_[group].erase(pod);
  }
  binding_.erase(pod);
  --binds_;
}

// Reservation, label, binding; anything may end half-way by a crash.
KaiActor::Task KaiActor::run_steps(std::string pod, std::vector<std::string> groups, std::string node,
                                   std::uint64_t incarnation, bool* bound) {
  std::string gpus;
  for (const std::string& group : groups) {
    std::string gpu;
    const bool reserved = co_await reserve(pod, group, node, incarnation, &gpu);
    if (!reserved || !up(incarnation)) co_return;
    gpus += (gpus.empty() ? "" : ",") + gpu;
    co_await wait(1ms, 4s);  // The label comes late.
    if (!up(incarnation)) co_return;
    const std::string key = groups.size() == 1 ? std::string("runai-gpu-group") : kPrefix + group;
    patch_pod(kTeam, pod, {{"metadata", {{"labels", {{key, group}}}}}});
  }
  co_await wait(1ms, 2s);
  if (!up(incarnation) || chance(0.1)) co_return;
  const auto now = server_.get(kPods, {kTeam, pod});
  if (!now || terminating(*now)) co_return;
  show_gpus(*now, gpus);
  co_await wait(1ms, 500ms);
  if (!up(incarnation)) co_return;
  const Json target{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}};
  const int status =
      send(k8s::Method::post, pod_path(kTeam, pod, "binding"),
           {{"apiVersion", "v1"}, {"kind", "Binding"}, {"metadata", {{"name", pod}}}, {"target", target}});
  if (status >= 300) co_return;
  *bound = true;
  co_await wait(1ms, 500ms);
  if (up(incarnation)) {
    send(k8s::Method::patch, request_path(pod) + "/status", {{"status", {{"phase", "Succeeded"}}}},
         "application/merge-patch+json");
  }
}

asio::awaitable<bool> KaiActor::reserve(std::string pod, std::string group, std::string node, std::uint64_t incarnation,
                                        std::string* gpu) {
  std::string name;
  for (const auto& reservation : pods(kReservations))
    if (carries(*reservation, group) && !terminating(*reservation) && alive(*reservation))
      name = text(*reservation, "metadata", "name");
  // A cache that lags, most of all after a restart, does not show it: the group gets another one.
  const bool young = clock_.monotonic() - up_since_ < 20s;
  if (!name.empty() && chance(young ? 0.3 : 0.02)) {
    name.clear();
    ++duplicates_;
  }
  if (name.empty()) {
    name = fmt::format("gpu-reservation-{}-{}", node, next_group_++);
    send(k8s::Method::post, std::string("/api/v1/namespaces/") + kReservations + "/pods",
         kai_reservation(name, group, node));
  }
  found_[group].insert(pod);
  const k8s::MonoTime until = clock_.monotonic() + 10s;
  while (clock_.monotonic() < until && up(incarnation)) {
    const auto reservation = server_.get(kPods, {kReservations, name});
    if (!reservation || terminating(*reservation)) co_return false;
    *gpu = gpu_of(*reservation);
    if (!gpu->empty()) co_return true;
    co_await wait(100ms, 600ms);
  }
  co_return false;
}

// What the consumer's container will see.
void KaiActor::show_gpus(const Json& pod, const std::string& gpus) {
  const std::string name = text(pod, "metadata", "name") + "-0";
  const Json owner{{"apiVersion", "v1"},
                   {"kind", "Pod"},
                   {"name", text(pod, "metadata", "name")},
                   {"uid", text(pod, "metadata", "uid")}};
  send(k8s::Method::del, config_map_path(name), nullptr);
  send(k8s::Method::post, config_map_path(),
       {{"apiVersion", "v1"},
        {"kind", "ConfigMap"},
        {"metadata", {{"name", name}, {"ownerReferences", Json::array({owner})}}},
        {"data", {{"NVIDIA_VISIBLE_DEVICES", gpus}}}});
}

void KaiActor::roll_back(const std::string& pod, const std::vector<std::string>& groups) {
  Json labels = Json::object();
  for (const std::string& group : groups) labels[kPrefix + group] = nullptr;
  labels["runai-gpu-group"] = nullptr;
  send(k8s::Method::del, config_map_path(pod + "-0"), nullptr);
  patch_pod(kTeam, pod, {{"metadata", {{"labels", labels}}}});
  // The clean-up that follows may fail, too: an origin of stale reservations.
  if (chance(0.5)) return;
  for (const std::string& group : groups) {
    found_[group].erase(pod);
    sync_group(group);
  }
}

void KaiActor::fail_request(const std::string& pod) {
  send(k8s::Method::patch, request_path(pod) + "/status", {{"status", {{"phase", "Failed"}, {"failedAttempts", 1}}}},
       "application/merge-patch+json");
}

bool KaiActor::in_progress(const std::string& group) const {
  for (const auto& request : requests()) {
    const std::string phase = text(*request, "status", "phase");
    if (phase == "Failed" || phase == "Succeeded") continue;
    const auto groups = groups_of(*request);
    if (std::ranges::find(groups, group) != groups.end()) return true;
  }
  return false;
}

void KaiActor::sync_group(const std::string& group) {
  std::vector<std::shared_ptr<const Json>> consumers;
  for (const auto& pod : pods(kTeam))
    if (alive(*pod) && carries(*pod, group)) consumers.push_back(pod);
  std::vector<std::string> reservations;
  for (const auto& pod : pods(kReservations))
    if (carries(*pod, group)) reservations.push_back(text(*pod, "metadata", "name"));
  auto found = found_.find(group);
  const bool finding = found != found_.end() && !found->second.empty();
  if (consumers.empty() && !in_progress(group) && !finding) {
    if (!reservations.empty()) end_pod(kReservations, reservations.front(), 0);  // Of duplicates one at a time.
  }
  if (!reservations.empty()) return;
  for (const auto& pod : consumers) {
    if (text(*pod, "status", "phase") != "Running" || terminating(*pod)) continue;
    const std::string name = text(*pod, "metadata", "name");
    killed_.push_back(fmt::format("{}/{} (group {})", kTeam, name, group));
    end_pod(kTeam, name, 0);
  }
}

void KaiActor::sync_node(const std::string& node) {
  std::set<std::string> groups;
  for (const char* ns : {kReservations, kTeam}) {
    for (const auto& pod : pods(ns)) {
      if (text(*pod, "spec", "nodeName") != node) continue;
      const auto of = groups_of(*pod);
      groups.insert(of.begin(), of.end());
    }
  }
  // A bind on the node does not always come: without this, nothing would ever be left over.
  for (const std::string& group : groups)
    if (chance(0.2)) sync_group(group);
}

void KaiActor::sync_all() {
  for (const std::string& node : nodes_) sync_node(node);
}

}  // namespace gso::sim
