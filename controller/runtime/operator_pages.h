// What the operator shows of itself: metrics of the fleet, and /debug.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "controller/runtime/fleet_loop.h"
#include "controller/serving/http_message.h"
#include "controller/serving/metrics.h"
#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"

namespace gso {

// Reads memory only, changes nothing but the log level, and walks over no nodes: of these it shows the sums that the
// index keeps (ShownSums), and looks one by one at those that the operator has cordoned. A standby shows no state of
// the fleet, since it assesses nothing.
//
//   OperatorPages pages({.loop = &loop, …});
//   metrics.on_render([&](Metrics& page) { pages.fill(page); });
class OperatorPages {
 public:
  // Everything that is passed as a pointer must outlive the pages.
  struct Parts {
    const FleetLoop* loop = nullptr;
    const k8s::ApiClient* client = nullptr;
    std::function<std::string()> leader;  // Who leads, as far as is known; empty: no replica.
    std::string lease_name;
    // Everybody who can connect reads the metrics: they name nodes, policies and the objects of GPU systems (operator,
    // device plugin, KAI), and no object of a tenant.
    bool hides_tenants = true;
  };
  explicit OperatorPages(Parts parts);
  ~OperatorPages();

  // Sets counters to 0 that grow only later: no query sees an increase from no series to 1.
  static void declare_zeros(Metrics& metrics);
  // The metrics that are written at a scrape, before each page: stores and watches, nodes by state, rollouts by phase.
  void fill(Metrics& metrics);
  // What the operator holds and is about to do, as JSON: below /debug.
  [[nodiscard]] HttpAnswer answer(const HttpRequest& request) const;

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
  [[nodiscard]] nlohmann::ordered_json cache() const;
  [[nodiscard]] nlohmann::ordered_json queue() const;
  [[nodiscard]] HttpAnswer node(const std::string& name) const;

  Parts parts_;
  const FleetLoop::Parts& shown_;
  std::unique_ptr<NamedByPlan> named_;              // By the plan of the last pass that a page has shown.
  std::map<std::string, MonoTime> cordoned_since_;  // By node, as seen at scrapes.
};

}  // namespace gso
