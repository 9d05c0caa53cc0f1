// A small cluster with KAI, for the tests of its planners: objects by hand, one pass, or passes with time in between.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso::test {

class KaiCluster {
 public:
  // kai-config, a settled binder, nodes n1 and n2; no reservation.
  KaiCluster();

  World world;
  PlannerSettings settings;
  WallTime now = k8s::parse_rfc3339("2026-06-01T12:00:00Z").value();
  bool lookups_answered = true;  // Every look-up that a pass wants is answered, truthfully, before the next.

  // An hour old, Running, annotated with a GPU of its own.
  KaiPod& reservation(const std::string& name, const std::string& group, const std::string& node = "n1",
                      const std::string& gpu = "GPU-a");
  // Half an hour old, Running on n1, with the single-device label.
  KaiPod& consumer(const std::string& name, const std::string& group, const std::string& node = "n1");
  // The same with runai-gpu-group/<group> only.
  KaiPod& multi_consumer(const std::string& name, const std::vector<std::string>& groups,
                         const std::string& node = "n1");
  // Without any label of KAI's.
  KaiPod& plain_pod(const std::string& name);
  BindRequest& request(const std::string& pod, const std::string& group, const std::string& phase);
  // The ConfigMap that says which GPU a consumer sees.
  void devices(KaiPod& pod, const std::string& value);
  KaiConfig& config() { return config_.value(); }
  Deployment& binder() { return binder_.value(); }
  // The binder has so many, all of them up.
  void replicas(std::int64_t count) { binder().replicas = binder().updated = binder().available = count; }
  void without_kai();
  std::optional<KaiConfig> config_;
  std::optional<Deployment> binder_;
  std::map<ObjectKey, KaiPod> pods;
  std::map<ObjectKey, BindRequest> requests;
  std::map<ObjectKey, LookupResults::Devices> device_maps;
  std::vector<WaitingPod> waiting;
  LookupResults::Lease binder_lease;
  std::map<std::string, Node> nodes;

  // Puts everything into the stores.
  void apply();
  // One pass at `now`, with the timers that have run so far.
  Plan pass(const std::string& reconciler = "pod.reservation-gc");
  // Passes every `step` until `span` is over; returns the last plan. Nothing is executed.
  Plan run(Duration span, Duration step = std::chrono::seconds(30));
  // As `plan --assume-observed-for 1h`.
  Plan credited();

 private:
  void answer(const KaiWants& wants);
  Timers timers_;
  std::map<std::string, NodeConsumers> consumers_;
  FleetIndex index_;
  bool attached_ = false;
};

// With one reservation "r" of group "g".
class ReservationGc : public ::testing::Test {
 protected:
  ReservationGc() { cluster.reservation("r", "g"); }
  KaiCluster cluster;
};

using Names = std::set<std::string>;
using Change = std::function<void(KaiCluster&)>;

// The reservation that rules are about.
[[nodiscard]] KaiPod& r(KaiCluster& cluster);

// Rules of the reservation GC, each in a cluster with the reservation "r" of group "g", what `begin` adds, and one
// change; every condition is credited for long.
struct Rules {
  Change begin = [](KaiCluster&) {};

  void expect(const char* rule, const Names& gone, const char* reason, const Change& change) const;
  void goes(const char* rule, const Change& change) const { expect(rule, {"r"}, "", change); }
  void stays(const char* rule, const Change& change) const { expect(rule, {}, "", change); }
  // With that finding about "r".
  void stays(const char* rule, const char* reason, const Change& change) const { expect(rule, {}, reason, change); }
};

// Names of the pods that the plan deletes.
[[nodiscard]] Names deleted(const Plan& plan);
// Reasons of the Events that the plan sends.
[[nodiscard]] Names told_by_event(const Plan& plan);
// Reasons of the findings about one object.
[[nodiscard]] Names reasons(const Plan& plan, std::string_view object);
[[nodiscard]] std::string message(const Plan& plan, std::string_view object, std::string_view reason);

}  // namespace gso::test
