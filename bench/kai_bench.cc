// CPU of the reservation collection at scale: 10,000 reservations, 40,000 consumers, their BindRequests. Pure planning,
// no server: building the index once, a pass over a healthy cluster, and a pass with orphans on every tenth group. Of
// every eighth group the consumers have several devices: those are in no watch.
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <map>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/registry.h"

namespace {

using namespace gso;

constexpr int kNodes = 1250;
constexpr int kReservations = 10'000;
constexpr int kConsumersOfEach = 4;
constexpr int kMultiDeviceEvery = 8;

double cpu_ms() {
  return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

KaiPod pod(const char* ns, std::string name, const std::string& node, WallTime created) {
  KaiPod out;
  out.meta.name = std::move(name);
  out.meta.ns = Interned(ns);
  out.meta.uid = "uid-" + out.meta.name;
  out.meta.resource_version = "1";
  out.meta.creation_timestamp = created;
  out.node_name = Interned(node);
  out.phase = Interned("Running");
  return out;
}

void fill(World& world, WallTime created) {
  KaiWorld& kai = world.kai;
  kai.configs_served = kai.bind_requests_served = true;
  for (int n = 0; n < kNodes; ++n) {
    Node node;
    node.meta.name = fmt::format("n{}", n);
    world.nodes.init_apply(std::move(node));
  }
  for (int g = 0; g < kReservations; ++g) {
    const std::string group = fmt::format("3c1f0a5e-0000-4000-8000-{:012}", g);
    const std::string node = fmt::format("n{}", g % kNodes);
    KaiPod reservation = pod("kai-resource-reservation", fmt::format("r{}", g), node, created);
    reservation.meta.labels = StringMap{{"app", "kai-resource-reservation"}, {kai::kGroupLabel, group}};
    reservation.meta.annotations = StringMap{{kai::kDeviceAnnotation, "GPU-" + group}};
    kai.pods.init_apply(std::move(reservation));
    for (int c = 0; c < kConsumersOfEach; ++c) {
      KaiPod consumer = pod("team", fmt::format("p{}-{}", g, c), node, created);
      consumer.meta.labels = StringMap{{kai::kGroupLabel, group}};
      BindRequest request;
      request.meta = consumer.meta;
      request.pod_name = consumer.meta.name;
      request.groups = {Interned(group)};
      request.phase = Interned("Succeeded");
      request.selected_node = Interned(node);
      if (g % kMultiDeviceEvery != 0) kai.pods.init_apply(std::move(consumer));
      kai.bind_requests.init_apply(std::move(request));
    }
  }
  world.nodes.init_done();
  kai.pods.init_done();
  kai.bind_requests.init_done();
  kai.configs.init_done();
  kai.deployments.init_done();
  world.daemonsets.init_done();
  world.configmaps.init_done();
  world.operand_pods.init_done();
}

struct Passes {
  World world;
  FleetIndex index;
  PlannerSettings settings;
  Timers timers;
  std::map<std::string, NodeConsumers> consumers;
  WallTime now = k8s::parse_rfc3339("2026-06-01T12:00:00Z").value();

  Plan pass(const char* what) {
    const double begun = cpu_ms();
    const Snapshot snapshot{world, now, timers, consumers, settings};
    Plan plan = plan_all(snapshot, index, {.only = kReservationGc, .synced = everything_synced});
    fmt::print("  {:<58} {:8.1f} ms CPU, {} actions, {} findings, {} groups to list, {} pods to ask for\n", what,
               cpu_ms() - begun, plan.actions.size(), plan.findings.size(), plan.kai_wanted.groups.size(),
               plan.kai_wanted.pods.size());
    for (const TimerKey& timer : plan.timers) timers.try_emplace(timer, now - std::chrono::hours(1));
    for (const k8s::ObjectKey& key : plan.kai_wanted.pods) world.kai.lookups.pods[key] = {one_look(now), true};
    for (const std::string& group : plan.kai_wanted.groups) world.kai.lookups.groups[group] = {one_look(now), {}};
    return plan;
  }
};

}  // namespace

int main() {
  Passes run;
  run.index.attach(run.world);
  fill(run.world, run.now - std::chrono::hours(2));
  fmt::print("{} reservations, {} consumers, {} BindRequests on {} nodes\n", kReservations,
             kReservations * kConsumersOfEach, run.world.kai.bind_requests.size(), kNodes);
  run.pass("first pass (builds the index)");
  run.pass("a pass over a healthy cluster");
  run.pass("another");
  for (int g = 0; g < kReservations; g += 10) {
    for (int c = 0; c < kConsumersOfEach; ++c) {
      run.world.kai.pods.erase({"team", fmt::format("p{}-{}", g, c)});
      run.world.kai.bind_requests.erase({"team", fmt::format("p{}-{}", g, c)});
    }
  }
  run.pass("1,000 groups lose their consumers");
  run.pass("the sweep: their lists are there");
  run.pass("the sweep: orphaned for long");
  return 0;
}
