// The actors. Each reads the server as it is at that moment, and waits between its steps.
#include "tests/sim/kai/kai_actor.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/kai/kai_read.h"

namespace gso::sim {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace kai_read;

KaiActor::KaiActor(asio::io_context& io, SimClock& clock, ApiServer& server, std::uint64_t seed)
    : io_(io), clock_(clock), server_(server), seed_(seed), random_(seed) {}

int KaiActor::send(k8s::Method method, const std::string& path, const Json& body, const std::string& type) {
  return send_as_kai(server_, method, path, body, type);
}

void KaiActor::patch_pod(const std::string& ns, const std::string& name, const Json& patch, const std::string& sub) {
  send(k8s::Method::patch, pod_path(ns, name, sub), patch, "application/merge-patch+json");
}

void KaiActor::end_pod(const std::string& ns, const std::string& name, int grace) {
  send(k8s::Method::del, pod_path(ns, name),
       {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"gracePeriodSeconds", grace}});
}

std::vector<std::shared_ptr<const Json>> KaiActor::pods(const std::string& ns) const {
  return server_.view(kPods, ns);
}

std::vector<std::shared_ptr<const Json>> KaiActor::requests() const {
  return server_.view(kBindRequests, kTeam);
}

void KaiActor::spawn(Task task) {
  asio::co_spawn(io_, std::move(task), asio::detached);
}

KaiActor::Task KaiActor::wait(k8s::Duration least, k8s::Duration most) {
  const std::int64_t span = (most - least) / 1ms;
  const k8s::Duration chosen =
      least + std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(0, span)(random_));
  co_await clock_.sleep_until(clock_.monotonic() + chosen);
}

void KaiActor::set_binder(bool available) {
  binder_up_ = available;
  send(k8s::Method::patch, "/apis/apps/v1/namespaces/kai-scheduler/deployments/binder/status",
       kai_binder_status(available, k8s::format_time(clock_.now())), "application/merge-patch+json");
}

void KaiActor::set_up() {
  install_kai(server_, clock_, nodes_, clock_.now());
}

void KaiActor::start() {
  end_ = clock_.monotonic() + 6min;
  spawn(users());
  spawn(scheduler());
  spawn(binder());
  spawn(kubelet());
  spawn(crash_now_and_then());
}

// --- Who creates pods, and takes them away.
KaiActor::Task KaiActor::users() {
  while (clock_.monotonic() < end_ && !stopped_) {
    const int devices = chance(0.3) ? 2 : 1;
    // KAI's triggers look at its own schedulerName only.
    const std::string scheduler = chance(0.2) ? "my-kai" : "kai-scheduler";
    const std::string name = fmt::format("p-{}", next_pod_++);
    Json pod = kai_fraction_pod(name, devices, scheduler);
    pod["metadata"]["annotations"]["runai/shared-gpu-configmap"] = name;  // KAI's webhook names them.
    send(k8s::Method::post, std::string("/api/v1/namespaces/") + kTeam + "/pods", pod);
    co_await wait(1s, 20s);
    const auto all = pods(kTeam);
    if (!all.empty() && chance(0.3))
      end_pod(kTeam, text(*all[pick(all.size())], "metadata", "name"), static_cast<int>(pick(10)));
  }
  co_await wait(40s, 60s);
  quiet_ = true;
}

// --- Chooses a node and groups from a snapshot that may be some seconds old; a group is reused only when a consumer of
// it was alive in that snapshot.
KaiActor::Task KaiActor::scheduler() {
  std::map<std::string, std::string> snapshot;  // Group -> node.
  while (!stopped_) {
    const std::map<std::string, std::string> before = snapshot;
    snapshot.clear();
    for (const auto& pod : pods(kTeam)) {
      if (!alive(*pod) || text(*pod, "spec", "nodeName").empty()) continue;
      for (const std::string& group : groups_of(*pod)) snapshot[group] = text(*pod, "spec", "nodeName");
    }
    co_await wait(200ms, 2s);
    const auto& used = chance(0.5) ? before : snapshot;
    std::set<std::string> requested;
    for (const auto& request : requests()) {
      requested.insert(text(*request, "metadata", "name"));
      const bool failed = text(*request, "status", "phase") == "Failed";
      if (failed) send(k8s::Method::del, request_path(text(*request, "metadata", "name")), nullptr);
    }
    for (const auto& pod : pods(kTeam)) {
      const std::string name = text(*pod, "metadata", "name");
      const bool free = text(*pod, "spec", "nodeName").empty() && !terminating(*pod) && !requested.contains(name) &&
                        !binding_.contains(name);
      if (!free || !alive(*pod)) continue;
      const std::size_t devices = at(*pod, "metadata", "annotations").contains("gpu-fraction-num-devices") ? 2 : 1;
      std::vector<std::string> groups;
      std::string node = nodes_[pick(nodes_.size())];
      if (devices == 1 && !used.empty() && chance(0.6)) {
        auto it = used.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(pick(used.size())));
        groups = {it->first};
        node = it->second;
      }
      while (groups.size() < devices) groups.push_back(fmt::format("g-{}-{}", seed_, next_group_++));
      send(k8s::Method::post, "/apis/scheduling.run.ai/v1alpha2/namespaces/" + std::string(kTeam) + "/bindrequests",
           kai_bind_request(*pod, node, groups, chance(0.3)));
    }
  }
}

KaiActor::Task KaiActor::crash_now_and_then() {
  while (clock_.monotonic() < end_ && !stopped_) {
    co_await wait(20s, 120s);
    if (!chance(0.5) || clock_.monotonic() >= end_) continue;
    ++incarnation_;
    set_binder(false);
    co_await wait(2s, 40s);
    set_binder(true);
    up_since_ = clock_.monotonic();
    sync_all();
  }
}

// --- The kubelets: pods that have a node start, say their GPU, end, and go when they are deleted.
KaiActor::Task KaiActor::kubelet() {
  while (!stopped_) {
    co_await wait(50ms, 1s);
    for (const char* ns : {kReservations, kTeam}) {
      for (const auto& pod : pods(ns)) {
        const std::string name = text(*pod, "metadata", "name");
        const std::string phase = text(*pod, "status", "phase");
        const bool mine = !text(*pod, "spec", "nodeName").empty();
        const bool reservation = ns == std::string(kReservations);
        if (terminating(*pod) && chance(mine ? 0.2 : 1.0)) {
          end_pod(ns, name, 0);
        } else if (!mine || terminating(*pod)) {
          continue;
        } else if (phase.empty() || phase == "Pending") {
          if (chance(0.5)) patch_pod(ns, name, {{"status", {{"phase", "Running"}}}}, "status");
          ends_[name] = clock_.monotonic() + std::chrono::seconds(5 + pick(120));
        } else if (reservation && !at(*pod, "metadata", "annotations").is_object()) {
          if (chance(0.3))
            patch_pod(ns, name, {{"metadata", {{"annotations", {{"run.ai/reserve_for_gpu_index", "GPU-" + name}}}}}});
        } else if (!reservation && phase == "Running" && clock_.monotonic() > ends_[name] && !quiet_) {
          patch_pod(ns, name, {{"status", {{"phase", chance(0.8) ? "Succeeded" : "Failed"}}}}, "status");
        } else if (!reservation && phase == "Running" && chance(0.002)) {
          patch_pod(ns, name, {{"status", {{"phase", "Unknown"}}}}, "status");  // Its node is not heard of for a while.
        }
      }
    }
  }
}

// --- The truth.
std::string KaiActor::gpu_of(const Json& reservation) {
  const Json& annotations = at(reservation, "metadata", "annotations");
  return annotations.is_object() ? annotations.value("run.ai/reserve_for_gpu_index", "") : "";
}

bool KaiActor::has_another(const Json& reservation) const {
  const std::string group = at(reservation, "metadata", "labels").value("runai-gpu-group", "");
  return std::ranges::any_of(pods(kReservations), [&](const auto& other) {
    return text(*other, "metadata", "uid") != text(reservation, "metadata", "uid") && carries(*other, group) &&
           !terminating(*other) && text(*other, "status", "phase") == "Running";
  });
}

std::string KaiActor::needed(const Json& reservation) const {
  const std::string group = at(reservation, "metadata", "labels").value("runai-gpu-group", "");
  const bool another = has_another(reservation);
  for (const auto& pod : pods(kTeam)) {
    if (!alive(*pod) || !carries(*pod, group)) continue;
    const std::string name = text(*pod, "metadata", "name");
    const auto devices = server_.get(kConfigMaps, {kTeam, name + "-0"});
    // It lives by another reservation of the group, which holds the GPU that it sees.
    if (another && !text(*pod, "spec", "nodeName").empty() && !sees(devices ? &*devices : nullptr, gpu_of(reservation)))
      continue;
    return fmt::format("{} is {}", name, text(*pod, "status", "phase"));
  }
  if (in_progress(group)) return "a BindRequest in progress names its group";
  auto found = found_.find(group);
  if (found != found_.end() && !found->second.empty()) return *found->second.begin() + " is being bound to it";
  return {};
}

std::map<std::string, std::string> KaiActor::orphans() const {
  std::map<std::string, std::string> out;
  for (const auto& pod : pods(kReservations))
    if (!terminating(*pod) && needed(*pod).empty())
      out[text(*pod, "metadata", "name")] = text(*pod, "spec", "nodeName");
  return out;
}

}  // namespace gso::sim
