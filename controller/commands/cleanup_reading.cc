#include "controller/commands/cleanup_reading.h"

#include <optional>
#include <string_view>
#include <utility>

#include "controller/reading/list_objects.h"
#include "controller/reading/node_consumers.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"

namespace gso {

namespace asio = boost::asio;

namespace {

// An object that cannot be read might have something of the operator's: nothing is cleaned up around it, and neither
// the record nor the Lease goes.
template <class T>
asio::awaitable<k8s::Result<void>> list_all(k8s::Reader* client, k8s::Gvr gvr,
                                            k8s::Result<T> (*project)(std::string_view), k8s::Store<T>* store) {
  const k8s::ListOptions everything;
  k8s::Result<ListedObjects<T>> listed = co_await list_objects<T>(client, gvr, everything, project);
  if (!listed) co_return std::unexpected(listed.error());
  if (!listed->unreadable.empty())
    co_return k8s::fail(k8s::Reason::decode, describe_unreadable(gvr, listed->unreadable));
  for (T& object : listed->objects) store->apply(std::move(object));
  co_return k8s::Result<void>{};
}

}  // namespace

asio::awaitable<k8s::Result<void>> read_cleanup_objects(k8s::Reader* client, World* world) {
  k8s::Result<void> listed = co_await list_all<Node>(client, resources::nodes, &project_node, &world->nodes);
  if (!listed) co_return listed;
  listed = co_await list_all<DaemonSet>(client, resources::daemon_sets, &project_daemonset, &world->daemonsets);
  if (!listed) co_return listed;
  const k8s::Result<bool> served = co_await client->served(resources::sharing_policies);
  if (!served) co_return std::unexpected(served.error());
  if (*served)
    listed = co_await list_all<SharingPolicy>(client, resources::sharing_policies, &project_sharing_policy,
                                              &world->policies);
  if (!listed) co_return listed;
  const k8s::Result<bool> records = co_await client->served(resources::sharing_rollouts);
  if (!records) co_return std::unexpected(records.error());
  if (*records)
    listed = co_await list_all<SharingRollout>(client, resources::sharing_rollouts, &project_sharing_rollout,
                                               &world->rollouts);
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
  const k8s::CallOptions call;
  for (const k8s::ObjectKey& key : keys) {
    const k8s::Result<std::string> text = co_await client->get(resources::config_maps, key, call);
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
