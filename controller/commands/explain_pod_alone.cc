// A pod's Events and its namespace, for somebody who may read no nodes.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "controller/commands/explain.h"
#include "controller/commands/explain_events.h"
#include "controller/reading/forbidden_hint.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"

namespace gso {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMostEvents = 10;

asio::awaitable<k8s::Result<std::vector<std::string>>> events_of(k8s::Reader* client, k8s::ObjectKey pod) {
  const k8s::Result<std::vector<SeenEvent>> events = co_await list_events(client, pod);
  if (!events) co_return std::unexpected(events.error());
  std::vector<std::pair<std::string, std::string>> found;  // When, and what it says.
  for (const SeenEvent& event : *events)
    found.emplace_back(event.when, fmt::format("{} {}: {}", event.when, event.reason, event.message));
  std::ranges::sort(found);
  if (found.size() > kMostEvents) found.erase(found.begin(), found.end() - kMostEvents);
  std::vector<std::string> out;
  for (auto& [when, text] : found) out.push_back(std::move(text));
  co_return out;
}

asio::awaitable<k8s::Result<std::vector<Pod>>> pods_beside(k8s::Reader* client, std::string ns) {
  std::vector<Pod> found;
  k8s::ItemFunction sink([&found](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      found.clear();
      return {};
    }
    k8s::Result<Pod> pod = project_pod(*json);
    if (pod) found.push_back(*std::move(pod));
    return {};
  });
  k8s::ListOptions options;
  options.ns = ns;
  const k8s::Result<std::string> listed = co_await client->list(resources::pods, options, &sink);
  if (!listed) co_return unlisted(listed.error(), resources::pods, ns);
  co_return found;
}

}  // namespace

asio::awaitable<k8s::Result<PodExplanation>> explain_alone(k8s::Reader* client, k8s::Clock* clock, k8s::ObjectKey pod,
                                                           std::string pod_json, PlannerSettings settings,
                                                           std::vector<std::string>* incomplete) {
  PodSurroundings around;
  around.now = clock->now();
  k8s::Result<std::vector<std::string>> events = co_await events_of(client, pod);
  if (events)
    around.events = *std::move(events);
  else
    append_unique(*incomplete, events.error().message);
  k8s::Result<std::vector<Pod>> beside = co_await pods_beside(client, pod.ns);
  if (beside)
    around.pods = *std::move(beside);
  else
    append_unique(*incomplete, beside.error().message);
  co_return explain_pod_alone(around, settings, pod_json);
}

}  // namespace gso
