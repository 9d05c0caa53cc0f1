// Pods that `explain` has no World for: whoever asks may read no nodes, or the pod was never created.
#include "controller/commands/commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/reading/reads.h"
#include "k8sclient/value/object.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace asio = boost::asio;

namespace {

struct SeenEvent {
  std::string when;  // When it was seen last, as the API server writes times: they sort as texts.
  std::string kind;  // Of the object.
  Reason reason;
};
k8s::Result<SeenEvent> project_event(std::string_view json) {
  const nlohmann::json event = nlohmann::json::parse(json, nullptr, false);
  SeenEvent out{text_at(event, "lastTimestamp"),
                text_at(object_at(event, "involvedObject"), "kind"),
                {text_at(event, "reason"), text_at(event, "message")}};
  if (out.when.empty()) out.when = text_at(event, "eventTime");
  return out;
}

// The Events about objects of that namespace and name, of any kind, in no order. If they cannot be listed, `incomplete`
// says so.
asio::awaitable<std::vector<SeenEvent>> list_events(k8s::Reader* client, k8s::ObjectKey object,
                                                    std::vector<std::string>* incomplete) {
  k8s::ListOptions options;
  options.ns = object.ns;
  options.field_selector = k8s::FieldSelector::equals("involvedObject.name", object.name);
  k8s::Result<ListedObjects<SeenEvent>> listed =
      co_await list_objects<SeenEvent>(client, resources::core_events, options, &project_event);
  if (listed) co_return std::move(listed->objects);
  append_unique(*incomplete, listed.error().message);
  co_return std::vector<SeenEvent>();
}

}  // namespace

// --- A pod's Events and its namespace, for somebody who may read no nodes.

asio::awaitable<k8s::Result<PodExplanation>> explain_alone(k8s::Reader* client, k8s::Clock* clock, k8s::ObjectKey pod,
                                                           std::string pod_json, PlannerSettings settings,
                                                           std::vector<std::string>* incomplete) {
  constexpr std::ptrdiff_t kMostEvents = 10;
  PodSurroundings around;
  around.now = clock->now();
  const std::vector<SeenEvent> events = co_await list_events(client, pod, incomplete);
  for (const SeenEvent& event : events)
    if (!event.reason.code.empty())
      around.events.push_back(fmt::format("{} {}: {}", event.when, event.reason.code, event.reason.message));
  std::ranges::sort(around.events);  // By time.
  if (std::ssize(around.events) > kMostEvents)
    around.events.erase(around.events.begin(), around.events.end() - kMostEvents);
  k8s::ListOptions of_namespace;
  of_namespace.ns = pod.ns;
  k8s::Result<ListedObjects<Pod>> beside =
      co_await list_objects<Pod>(client, resources::pods, of_namespace, &project_pod);
  if (!beside) append_unique(*incomplete, beside.error().message);
  if (beside) around.pods = std::move(beside->objects);
  co_return explain_pod_alone(around, settings, pod_json);
}

// --- The workload that has the name of a pod that does not exist, and whether its pods could not be created.

namespace {

struct CreatorKind {
  k8s::Gvr gvr;
  std::string_view name;
  bool writes_condition = false;  // Of pods that it cannot create, into the workload's status; others write Events.
};

const std::vector<CreatorKind>& creator_kinds() {
  static const std::vector<CreatorKind> kKinds{{resources::deployments, "Deployment", true},
                                               {resources::stateful_sets, "StatefulSet"},
                                               {resources::jobs, "Job"},
                                               {resources::daemon_sets, "DaemonSet"},
                                               {resources::replica_sets, "ReplicaSet", true}};
  return kKinds;
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
  const std::vector<SeenEvent> events = co_await list_events(client, key, incomplete);
  std::pair<std::string, std::string> newest;  // When, and what it says.
  for (const SeenEvent& event : events)
    if (event.reason.code == "FailedCreate" && event.kind == kind)
      newest = std::max(newest, std::pair(event.when, event.reason.message));
  co_return newest.second;
}

}  // namespace

asio::awaitable<UncreatedPod> find_uncreated_pod(k8s::Reader* client, k8s::ObjectKey pod,
                                                 std::vector<std::string>* incomplete) {
  UncreatedPod out;
  out.hint = fmt::format(
      "A pod that was never created (ResourceQuota, admission) is reported in the Events of its workload: `kubectl get "
      "events --namespace {} --field-selector reason=FailedCreate`",
      pod.ns);
  const std::string asked = k8s::to_string(pod);
  bool found = false;
  for (const CreatorKind& kind : creator_kinds()) {
    k8s::ObjectKey key = pod;
    PodCreator creator;
    creator.kind = kind.name;
    creator.json = co_await read_creator(client, kind.gvr, key, incomplete);
    if (creator.json.empty() && kind.name == "StatefulSet") {
      key.name = without_ordinal(pod.name);
      if (!key.name.empty()) creator.json = co_await read_creator(client, kind.gvr, key, incomplete);
    }
    if (creator.json.empty()) continue;
    if (!kind.writes_condition) creator.failure = co_await newest_failure(client, creator.kind, key, incomplete);
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
