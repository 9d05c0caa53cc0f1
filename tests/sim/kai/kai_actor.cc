// The actors. Each reads the server as it is at that moment, and waits between its steps.
#include "tests/sim/kai/kai_actor.h"
#include "tests/sim/apiserver/local_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace gso::sim {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

const k8s::Gvr kPods{"", "v1", "pods"};
const k8s::Gvr kRequests{"scheduling.run.ai", "v1alpha2", "bindrequests"};
const std::string kPrefix = "runai-gpu-group/";

const Json& at(const Json& object, const char* a, const char* b) {
  static const Json kNone;
  if (!object.contains(a) || !object[a].contains(b)) return kNone;
  return object[a][b];
}

std::string text(const Json& object, const char* a, const char* b) {
  const Json& found = at(object, a, b);
  return found.is_string() ? found.get<std::string>() : std::string();
}

bool carries(const Json& pod, const std::string& group) {
  const Json& labels = at(pod, "metadata", "labels");
  if (!labels.is_object()) return false;
  const auto plain = labels.find("runai-gpu-group");
  return (plain != labels.end() && *plain == group) || labels.contains(kPrefix + group);
}

std::vector<std::string> groups_of(const Json& object) {
  std::vector<std::string> out;
  const Json& labels = at(object, "metadata", "labels");
  if (labels.is_object()) {
    for (const auto& [key, value] : labels.items()) {
      if (key == "runai-gpu-group") out.push_back(value);
      if (key.starts_with(kPrefix)) out.push_back(key.substr(kPrefix.size()));
    }
  }
  const Json& plain = at(object, "spec", "selectedGPUGroups");
  if (plain.is_array()) {
    for (const Json& group : plain) out.push_back(group);
  }
  const Json& fractional = at(object, "spec", "selectedFractionalGpuGroups");
  if (fractional.is_array()) {
    for (const Json& group : fractional) out.push_back(group["id"]);
  }
  return out;
}

bool alive(const Json& pod) {
  const std::string phase = text(pod, "status", "phase");
  return phase != "Succeeded" && phase != "Failed";
}

bool terminating(const Json& pod) {
  return !at(pod, "metadata", "deletionTimestamp").is_null();
}

std::string pod_path(const std::string& ns, const std::string& name, const std::string& sub = "") {
  return "/api/v1/namespaces/" + ns + "/pods/" + name + (sub.empty() ? "" : "/" + sub);
}

std::string request_path(const std::string& name) {
  return "/apis/scheduling.run.ai/v1alpha2/namespaces/" + std::string(kTeam) + "/bindrequests/" + name;
}

}  // namespace

KaiActor::KaiActor(asio::io_context& io, SimClock& clock, ApiServer& server, KaiActorOptions options)
    : io_(io), clock_(clock), server_(server), options_(std::move(options)), random_(options_.seed) {}

int KaiActor::send(k8s::Method method, const std::string& path, const Json& body, const std::string& type) {
  const std::string text = body.is_null() ? std::string() : body.dump();
  return server_.handle(local_request(method, path, text, type), {.user = "kai", .user_agent = "kai"}).status;
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
  return server_.view(kRequests, kTeam);
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
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  send(k8s::Method::post, crds, Json::parse(kai_config_crd()));
  send(k8s::Method::post, crds, Json::parse(kai_bind_request_crd()));
  for (const char* ns : {"kai-scheduler", kReservations, kTeam, "gpu-sharing-operator"}) {
    send(k8s::Method::post, "/api/v1/namespaces", kai_namespace(ns));
  }
  for (const std::string& node : options_.nodes) send(k8s::Method::post, "/api/v1/nodes", kai_node(node));
  clock_.run_for(1s);
  send(k8s::Method::post, "/apis/kai.scheduler/v1/configs", kai_config());
  send(k8s::Method::post, "/apis/apps/v1/namespaces/kai-scheduler/deployments", kai_binder());
  set_binder(true);
}

void KaiActor::start() {
  end_ = clock_.monotonic() + options_.busy;
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
    send(k8s::Method::post, std::string("/api/v1/namespaces/") + kTeam + "/pods",
         kai_fraction_pod(fmt::format("p-{}", next_pod_++), devices, scheduler));
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
  struct Seen {
    std::map<std::string, std::string> groups;  // Group -> node.
  };
  Seen snapshot;
  while (!stopped_) {
    const Seen before = snapshot;
    snapshot.groups.clear();
    for (const auto& pod : pods(kTeam)) {
      if (!alive(*pod) || text(*pod, "spec", "nodeName").empty()) continue;
      for (const std::string& group : groups_of(*pod)) snapshot.groups[group] = text(*pod, "spec", "nodeName");
    }
    co_await wait(200ms, 2s);
    const Seen& used = chance(0.5) ? before : snapshot;
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
      std::string node = options_.nodes[pick(options_.nodes.size())];
      if (devices == 1 && !used.groups.empty() && chance(0.6)) {
        auto it = used.groups.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(pick(used.groups.size())));
        groups = {it->first};
        node = it->second;
      }
      while (groups.size() < devices) groups.push_back(fmt::format("g-{}-{}", options_.seed, next_group_++));
      send(k8s::Method::post, "/apis/scheduling.run.ai/v1alpha2/namespaces/" + std::string(kTeam) + "/bindrequests",
           kai_bind_request(*pod, node, groups, chance(0.3)));
    }
  }
}

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
  const auto request = server_.get(kRequests, {kTeam, pod});
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
  for (const std::string& group : groups) {
    const bool reserved = co_await reserve(pod, group, node, incarnation);
    if (!reserved || !up(incarnation)) co_return;
    co_await wait(1ms, 4s);  // The label comes late.
    if (!up(incarnation)) co_return;
    const std::string key = groups.size() == 1 ? std::string("runai-gpu-group") : kPrefix + group;
    patch_pod(kTeam, pod, {{"metadata", {{"labels", {{key, group}}}}}});
  }
  co_await wait(1ms, 2s);
  if (!up(incarnation) || chance(0.1)) co_return;
  const auto now = server_.get(kPods, {kTeam, pod});
  if (!now || terminating(*now)) co_return;
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

asio::awaitable<bool> KaiActor::reserve(std::string pod, std::string group, std::string node,
                                        std::uint64_t incarnation) {
  std::string name;
  for (const auto& reservation : pods(kReservations)) {
    if (carries(*reservation, group) && !terminating(*reservation) && alive(*reservation))
      name = text(*reservation, "metadata", "name");
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
    if (at(*reservation, "metadata", "annotations").is_object()) co_return true;
    co_await wait(100ms, 600ms);
  }
  co_return false;
}

void KaiActor::roll_back(const std::string& pod, const std::vector<std::string>& groups) {
  Json labels = Json::object();
  for (const std::string& group : groups) labels[kPrefix + group] = nullptr;
  labels["runai-gpu-group"] = nullptr;
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

bool KaiActor::in_flight(const std::string& group) const {
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
  for (const auto& pod : pods(kTeam)) {
    if (alive(*pod) && carries(*pod, group)) consumers.push_back(pod);
  }
  std::vector<std::string> reservations;
  for (const auto& pod : pods(kReservations)) {
    if (carries(*pod, group)) reservations.push_back(text(*pod, "metadata", "name"));
  }
  auto found = found_.find(group);
  const bool finding = found != found_.end() && !found->second.empty();
  if (consumers.empty() && !in_flight(group) && !finding) {
    for (const std::string& name : reservations) end_pod(kReservations, name, 0);
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
  for (const std::string& group : groups) {
    if (chance(0.2)) sync_group(group);
  }
}

void KaiActor::sync_all() {
  for (const std::string& node : options_.nodes) sync_node(node);
}

KaiActor::Task KaiActor::crash_now_and_then() {
  while (clock_.monotonic() < end_ && !stopped_) {
    co_await wait(20s, 120s);
    if (!chance(options_.crashes) || clock_.monotonic() >= end_) continue;
    ++incarnation_;
    set_binder(false);
    co_await wait(2s, 40s);
    set_binder(true);
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
std::string KaiActor::needed(const Json& reservation) const {
  const std::string group = at(reservation, "metadata", "labels").value("runai-gpu-group", "");
  for (const auto& pod : pods(kTeam)) {
    if (alive(*pod) && carries(*pod, group))
      return fmt::format("{} is {}", text(*pod, "metadata", "name"), text(*pod, "status", "phase"));
  }
  if (in_flight(group)) return "a BindRequest in flight names its group";
  auto found = found_.find(group);
  if (found != found_.end() && !found->second.empty()) return *found->second.begin() + " is being bound to it";
  return {};
}

std::map<std::string, std::string> KaiActor::orphans() const {
  std::map<std::string, std::string> out;
  for (const auto& pod : pods(kReservations)) {
    if (!terminating(*pod) && needed(*pod).empty())
      out[text(*pod, "metadata", "name")] = text(*pod, "spec", "nodeName");
  }
  return out;
}

}  // namespace gso::sim
