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
// The Events about objects of that namespace and name, of any kind, in no order. Errors: they cannot be listed.
asio::awaitable<k8s::Result<std::vector<SeenEvent>>> list_events(k8s::Reader* client, k8s::ObjectKey object) {
  std::vector<SeenEvent> found;
  k8s::ItemFunction sink([&found](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      found.clear();
      return {};
    }
    const nlohmann::json event = nlohmann::json::parse(*json, nullptr, false);
    SeenEvent seen{text_at(event, "lastTimestamp"),
                   text_at(object_at(event, "involvedObject"), "kind"),
                   {text_at(event, "reason"), text_at(event, "message")}};
    if (seen.when.empty()) seen.when = text_at(event, "eventTime");
    if (!seen.reason.code.empty()) found.push_back(std::move(seen));
    return {};
  });
  k8s::ListOptions options;
  options.ns = object.ns;
  options.field_selector = k8s::FieldSelector::equals("involvedObject.name", object.name);
  const k8s::Result<std::string> listed = co_await client->list(resources::core_events, options, &sink);
  if (!listed) co_return unlisted(listed.error(), resources::core_events, object.ns);
  co_return found;
}

// --- A pod's Events and its namespace, for somebody who may read no nodes.

constexpr std::size_t kMostEvents = 10;

asio::awaitable<k8s::Result<std::vector<std::string>>> events_of(k8s::Reader* client, k8s::ObjectKey pod) {
  const k8s::Result<std::vector<SeenEvent>> events = co_await list_events(client, pod);
  if (!events) co_return std::unexpected(events.error());
  std::vector<std::string> out;
  for (const SeenEvent& event : *events)
    out.push_back(fmt::format("{} {}: {}", event.when, event.reason.code, event.reason.message));
  std::ranges::sort(out);  // By time.
  if (out.size() > kMostEvents) out.erase(out.begin(), out.end() - kMostEvents);
  co_return out;
}

}  // namespace

asio::awaitable<k8s::Result<PodExplanation>> explain_alone(k8s::Reader* client, k8s::Clock* clock, k8s::ObjectKey pod,
                                                           std::string pod_json, PlannerSettings settings,
                                                           std::vector<std::string>* incomplete) {
  PodSurroundings around;
  around.now = clock->now();
  k8s::Result<std::vector<std::string>> events = co_await events_of(client, pod);
  if (!events) append_unique(*incomplete, events.error().message);
  if (events) around.events = *std::move(events);
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
  const k8s::Result<std::vector<SeenEvent>> events = co_await list_events(client, key);
  if (!events) append_unique(*incomplete, events.error().message);
  std::pair<std::string, std::string> newest;  // When, and what it says.
  for (const SeenEvent& event : events.value_or(std::vector<SeenEvent>())) {
    if (event.reason.code == "FailedCreate" && event.kind == kind)
      newest = std::max(newest, std::pair(event.when, event.reason.message));
  }
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
