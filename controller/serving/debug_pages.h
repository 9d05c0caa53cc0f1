// /debug: what the operator holds and is about to do, as JSON. Reads memory only, and changes nothing but the log
// level.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "controller/config/logging.h"
#include "controller/reading/node_consumers.h"
#include "controller/runtime/held_since.h"
#include "controller/runtime/pass_queue.h"
#include "controller/runtime/run_operator.h"
#include "controller/serving/http_message.h"
#include "controller/watches/cluster_watches.h"
#include "controller/watches/dynamic_watches.h"
#include "controller/writes/executor.h"
#include "k8sclient/clock.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class DebugPages {
 public:
  // Everything that is passed as a pointer must outlive this object.
  struct Parts {
    k8s::Clock* clock = nullptr;
    const World* world = nullptr;
    FleetIndex* index = nullptr;  // Only read.
    const PlannerSettings* settings = nullptr;
    const ClusterWatches* cluster = nullptr;
    const DynamicWatches* dynamic = nullptr;
    const PassQueue* queue = nullptr;
    const HeldSince* held_since = nullptr;
    const NodeConsumersReader* consumers = nullptr;
    const Executor* executor = nullptr;
    std::function<bool()> synced;
    std::function<bool()> leading;
    std::function<std::string()> leader;  // Who leads, as far as is known; empty: no replica.
    std::shared_ptr<Logger> log;
    std::shared_ptr<const RuntimeView> view;
  };
  explicit DebugPages(Parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] DebugAnswer answer(const DebugRequest& request);

 private:
  [[nodiscard]] nlohmann::ordered_json cache() const;
  [[nodiscard]] nlohmann::ordered_json queue() const;
  [[nodiscard]] DebugAnswer node(const std::string& name) const;

  Parts parts_;
};

}  // namespace gso
