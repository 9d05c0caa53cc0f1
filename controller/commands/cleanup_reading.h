// What `cleanup` reads before it writes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <set>
#include <string>

#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/status/cleanup.h"

namespace gso {

// Nodes, DaemonSets and SharingPolicies. No operand pod is needed, and a ConfigMap only to say what it keeps.
boost::asio::awaitable<k8s::Result<void>> read_cleanup_objects(k8s::Reader* client, World* world);

// Those of these nodes whose GPUs pods use, and those where this cannot be read.
boost::asio::awaitable<NodesInUse> nodes_in_use(k8s::Reader* client, k8s::Clock* clock, PlannerSettings settings,
                                                World* world, std::set<std::string> nodes);

// Reads these ConfigMaps into `world`. One that does not exist holds no key.
boost::asio::awaitable<UnreadConfigMaps> read_config_maps(k8s::Reader* client, World* world,
                                                          std::set<k8s::ObjectKey> keys);

}  // namespace gso
