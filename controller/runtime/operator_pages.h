// What the operator shows of itself: metrics of the fleet, and /debug.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "controller/config/logging.h"
#include "controller/reading/node_consumers.h"
#include "controller/runtime/expectations.h"
#include "controller/runtime/held_since.h"
#include "controller/runtime/pass_queue.h"
#include "controller/runtime/run_operator.h"
#include "controller/serving/http_message.h"
#include "controller/serving/metrics.h"
#include "controller/watches/cluster_watches.h"
#include "controller/watches/dynamic_watches.h"
#include "controller/watches/kai_watches.h"
#include "controller/watches/partitioning_watches.h"
#include "controller/writes/executor.h"
#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"

namespace gso {

// What the pages show. Everything that is passed as a pointer must outlive them.
struct PageParts {
  k8s::Clock* clock = nullptr;
  const k8s::ApiClient* client = nullptr;
  const World* world = nullptr;
  FleetIndex* index = nullptr;  // Only read.
  const PlannerSettings* settings = nullptr;
  const ClusterWatches* cluster = nullptr;
  const DynamicWatches* dynamic = nullptr;
  const KaiWatches* kai = nullptr;
  const PartitioningWatches* partitioning = nullptr;
  const PassQueue* queue = nullptr;
  const HeldSince* held_since = nullptr;
  const Expectations* expectations = nullptr;
  const NodeConsumersReader* consumers = nullptr;
  const Executor* executor = nullptr;
  std::function<bool()> synced;
  std::function<bool()> leading;
  std::function<std::string()> leader;  // Who leads, as far as is known; empty: no replica.
  std::shared_ptr<Logger> log;
  std::shared_ptr<const RuntimeView> view;  // Of the last plan: its findings.
  std::string lease_name;
  // Everybody who can connect reads the metrics: they name nodes, policies and the objects of GPU systems (operator,
  // device plugin, KAI), and no object of a tenant.
  bool hides_tenants = true;
};

// --- FleetMetrics: metrics that are written at a scrape: stores and watches, nodes by state, rollouts by phase. Reads
// memory only, and of nodes only the sums that the index keeps (ShownSums); a standby shows no state of the fleet,
// since it assesses nothing.
//
//   FleetMetrics fleet({.clock = clock, .world = &world, …});
//   metrics.on_render([&](Metrics& page) { fleet.fill(page); });

class FleetMetrics {
 public:
  explicit FleetMetrics(PageParts parts);
  ~FleetMetrics();

  // Sets counters to 0 that grow only later: no query sees an increase from no series to 1.
  static void declare_zeros(Metrics& metrics);
  // Before each page. No page walks over the nodes; those that the operator has cordoned are looked at one by one.
  void fill(Metrics& metrics);

 private:
  class AffectedObjects;
  struct NamedByPlan;
  void fill_watches(Metrics& metrics) const;
  void fill_runtime(Metrics& metrics) const;
  void fill_kai(Metrics& metrics) const;
  void fill_nodes(Metrics& metrics);
  [[nodiscard]] std::unique_ptr<NamedByPlan> name_by_plan() const;
  void fill_rollouts(Metrics& metrics) const;
  // How long a node may be cordoned by the operator before somebody should look: as long as a person holds it or no
  // plugin serves it, or until the policy's idleTimeout while it waits for its workloads.
  [[nodiscard]] Duration allowed_cordon(const std::string& node) const;
  void fill_cordons(Metrics& metrics, AffectedObjects& affected);

  PageParts parts_;
  std::unique_ptr<NamedByPlan> named_;              // By the plan of the last pass that a page has shown.
  std::map<std::string, MonoTime> cordoned_since_;  // By node, as seen at scrapes.
};

// --- /debug: what the operator holds and is about to do, as JSON. Reads memory only, and changes nothing but the log
// level.

class DebugPages {
 public:
  explicit DebugPages(PageParts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] DebugAnswer answer(const DebugRequest& request);

 private:
  [[nodiscard]] nlohmann::ordered_json cache() const;
  [[nodiscard]] nlohmann::ordered_json queue() const;
  [[nodiscard]] DebugAnswer node(const std::string& name) const;

  PageParts parts_;
};

}  // namespace gso
