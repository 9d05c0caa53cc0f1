// The workload that has the name of a pod that does not exist, and whether its pods could not be created.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/commands/explain.h"
#include "controller/commands/explain_events.h"
#include "controller/reading/forbidden_hint.h"
#include "reconcilers/explain/uncreated_pod.h"
#include "reconcilers/model/resources.h"

namespace gso {
namespace {

namespace asio = boost::asio;

struct CreatorKind {
  k8s::Gvr gvr;
  std::string name;
};

std::array<CreatorKind, 5> creator_kinds() {
  return {{{resources::deployments, "Deployment"},
           {resources::stateful_sets, "StatefulSet"},
           {resources::jobs, "Job"},
           {resources::daemon_sets, "DaemonSet"},
           {resources::replica_sets, "ReplicaSet"}}};
}

// "web" of "web-0", as a StatefulSet names its pods; empty: the name has no number at its end.
std::string without_ordinal(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos || dash == 0 || dash + 1 == name.size()) return {};
  const bool number = std::ranges::all_of(name.substr(dash + 1), [](char c) { return c >= '0' && c <= '9'; });
  return number ? name.substr(0, dash) : std::string();
}

// The object; empty: it does not exist, or cannot be read, which is added to `incomplete`.
asio::awaitable<std::string> read_creator(k8s::Reader* client, k8s::Gvr gvr, k8s::ObjectKey key,
                                          std::vector<std::string>* incomplete) {
  const k8s::CallOptions call;
  k8s::Result<std::string> found = co_await client->get(gvr, key, call);
  if (!found && found.error().reason != k8s::Reason::not_found)
    append_unique(*incomplete, explain_error(found.error(), "get", gvr, key.ns));
  co_return found ? *std::move(found) : std::string();
}

// The message of the workload's newest Event with the reason FailedCreate; empty: it has none.
asio::awaitable<std::string> newest_failure(k8s::Reader* client, std::string kind, k8s::ObjectKey key,
                                            std::vector<std::string>* incomplete) {
  const k8s::Result<std::vector<SeenEvent>> events = co_await list_events(client, key);
  if (!events) append_unique(*incomplete, events.error().message);
  std::pair<std::string, std::string> newest;  // When, and what it says.
  for (const SeenEvent& event : events.value_or(std::vector<SeenEvent>())) {
    if (event.reason == "FailedCreate" && event.kind == kind)
      newest = std::max(newest, std::pair(event.when, event.message));
  }
  co_return newest.second;
}

std::string nothing_created(const k8s::ObjectKey& pod) {
  return fmt::format(
      "A pod that was never created (ResourceQuota, admission) is reported in the Events of its workload: `kubectl get "
      "events --namespace {} --field-selector reason=FailedCreate`",
      pod.ns);
}

}  // namespace

asio::awaitable<UncreatedPod> find_uncreated_pod(k8s::Reader* client, k8s::ObjectKey pod,
                                                 std::vector<std::string>* incomplete) {
  UncreatedPod out;
  out.hint = nothing_created(pod);
  const std::string asked = k8s::to_string(pod);
  const std::array<CreatorKind, 5> kinds = creator_kinds();
  bool found = false;
  for (const CreatorKind& kind : kinds) {
    k8s::ObjectKey key = pod;
    PodCreator creator;
    creator.kind = kind.name;
    creator.json = co_await read_creator(client, kind.gvr, key, incomplete);
    if (creator.json.empty() && kind.name == "StatefulSet") {
      key.name = without_ordinal(pod.name);
      if (!key.name.empty()) creator.json = co_await read_creator(client, kind.gvr, key, incomplete);
    }
    if (creator.json.empty()) continue;
    if (reports_failures_in_events(kind.name))
      creator.failure = co_await newest_failure(client, kind.name, key, incomplete);
    out.explanation = explain_uncreated_pod(creator, asked);
    if (out.explanation) co_return out;
    if (!found)
      out.hint = fmt::format(
          "{} {} exists and reports no pod that it cannot create: name one of its pods (`kubectl get pods --namespace "
          "{}`)",
          kind.name, key.name, pod.ns);
    found = true;
  }
  co_return out;
}

}  // namespace gso
