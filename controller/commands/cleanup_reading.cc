#include "controller/commands/cleanup_reading.h"

#include <optional>
#include <string_view>
#include <utility>

#include "controller/reading/forbidden_hint.h"
#include "controller/reading/node_consumers.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"

namespace gso {

namespace asio = boost::asio;

namespace {

template <class T>
asio::awaitable<k8s::Result<void>> list_all(k8s::Reader* client, k8s::Gvr gvr,
                                            k8s::Result<T> (*project)(std::string_view), k8s::Store<T>* store) {
  k8s::ItemFunction sink([=](std::optional<std::string_view> json) -> k8s::Result<void> {
    k8s::Result<T> object =
        json ? project(*json) : k8s::Result<T>(k8s::fail(k8s::Reason::invalid, "the list starts over"));
    if (object) store->apply(*std::move(object));
    return {};
  });
  const k8s::ListOptions everything;
  const k8s::Result<std::string> listed = co_await client->list(gvr, everything, &sink);
  if (!listed) co_return unlisted(listed.error(), gvr);
  co_return k8s::Result<void>{};
}

}  // namespace

asio::awaitable<k8s::Result<void>> read_cleanup_objects(k8s::Reader* client, World* world) {
  const k8s::Gvr nodes{"", "v1", "nodes"};
  const k8s::Gvr daemonsets{"apps", "v1", "daemonsets"};
  const k8s::Gvr policies{std::string(kGroup), "v1alpha1", "sharingpolicies"};
  k8s::Result<void> listed = co_await list_all<Node>(client, nodes, &project_node, &world->nodes);
  if (!listed) co_return listed;
  listed = co_await list_all<DaemonSet>(client, daemonsets, &project_daemonset, &world->daemonsets);
  if (!listed) co_return listed;
  const k8s::Result<bool> served = co_await client->served(policies);
  if (!served) co_return std::unexpected(served.error());
  if (*served) listed = co_await list_all<SharingPolicy>(client, policies, &project_sharing_policy, &world->policies);
  if (!listed) co_return listed;
  const k8s::Gvr rollouts{std::string(kGroup), "v1alpha1", "sharingrollouts"};
  const k8s::Result<bool> records = co_await client->served(rollouts);
  if (!records) co_return std::unexpected(records.error());
  if (*records)
    listed = co_await list_all<SharingRollout>(client, rollouts, &project_sharing_rollout, &world->rollouts);
  co_return listed;
}

asio::awaitable<NodesInUse> nodes_in_use(k8s::Reader* client, k8s::Clock* clock, PlannerSettings settings, World* world,
                                         std::set<std::string> nodes) {
  NodesInUse out;
  const k8s::CallOptions limits;
  for (const std::string& node : nodes) {
    const k8s::Result<NodeConsumers> consumers = co_await read_consumers(client, clock, world, &settings, node, limits);
    if (!consumers) {
      out.unknown.emplace(node, consumers.error().message);
    } else if (!consumers->pods.empty()) {
      out.used.insert(node);
    }
  }
  co_return out;
}

asio::awaitable<UnreadConfigMaps> read_config_maps(k8s::Reader* client, World* world, std::set<k8s::ObjectKey> keys) {
  UnreadConfigMaps unread;
  const k8s::Gvr config_maps{"", "v1", "configmaps"};
  const k8s::CallOptions call;
  for (const k8s::ObjectKey& key : keys) {
    const k8s::Result<std::string> text = co_await client->get(config_maps, key, call);
    if (!text && text.error().reason == k8s::Reason::not_found) continue;
    k8s::Result<ConfigMap> read =
        text ? project_configmap(*text) : k8s::Result<ConfigMap>(std::unexpected(text.error()));
    if (read) {
      world->configmaps.apply(*std::move(read));
    } else {
      unread.emplace(key, read.error().message);
    }
  }
  co_return unread;
}

}  // namespace gso
