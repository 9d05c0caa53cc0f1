// Objects, passes and the answers to look-ups.
#include "tests/reconcilers/kai/kai_cluster.h"

#include <gtest/gtest.h>

#include "reconcilers/kai/index.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/registry.h"

namespace gso::test {
namespace {

constexpr std::string_view kTeam = "team";

KaiPod pod_of(const std::string& ns, const std::string& name, WallTime created) {
  KaiPod pod;
  pod.meta.name = name;
  pod.meta.ns = Interned(ns);
  pod.meta.uid = "uid-" + name;
  pod.meta.resource_version = "7";
  pod.meta.creation_timestamp = created;
  pod.phase = Interned("Running");
  pod.container_index = Interned("0");
  return pod;
}

}  // namespace

KaiCluster::KaiCluster() {
  for (const char* name : {"n1", "n2"}) {
    Node node;
    node.meta.name = name;
    node.ready = true;
    nodes[name] = node;
  }
  KaiConfig config;
  config.meta.name = std::string(kai::kConfigName);
  config.meta.uid = "uid-config";
  config.ns = "kai-scheduler";
  config.gpu_sharing = true;
  config.allocation_timeout = 40;
  config.volume_binding_timeout = 120;
  config_ = config;
  Deployment binder;
  binder.meta.name = "binder";
  binder.meta.ns = Interned("kai-scheduler");
  binder.meta.uid = "uid-binder";
  binder.meta.generation = binder.observed_generation = 3;
  binder.updated = binder.available = 1;
  binder.available_condition = true;
  binder.available_since = now - std::chrono::hours(24);
  binder_ = binder;
  world.kai.configs_served = world.kai.bind_requests_served = true;
}

void KaiCluster::without_kai() {
  config_.reset();
  binder_.reset();
  world.kai.configs_served = world.kai.bind_requests_served = false;
}

KaiPod& KaiCluster::reservation(const std::string& name, const std::string& group, const std::string& node,
                                const std::string& gpu) {
  KaiPod pod = pod_of("kai-resource-reservation", name, now - std::chrono::hours(1));
  pod.meta.labels = StringMap{{"app", "kai-resource-reservation"}};
  if (!group.empty()) pod.meta.labels.set(kai::kGroupLabel, group);
  if (!gpu.empty()) pod.meta.annotations.set(kai::kDeviceAnnotation, gpu);
  pod.node_name = Interned(node);
  return pods[pod.meta.key()] = pod;
}

KaiPod& KaiCluster::plain_pod(const std::string& name) {
  KaiPod pod = pod_of(std::string(kTeam), name, now - std::chrono::minutes(30));
  pod.scheduler_name = Interned("kai-scheduler");
  return pods[pod.meta.key()] = pod;
}

KaiPod& KaiCluster::consumer(const std::string& name, const std::string& group, const std::string& node) {
  KaiPod& pod = plain_pod(name);
  pod.meta.labels.set(kai::kGroupLabel, group);
  pod.node_name = Interned(node);
  return pod;
}

KaiPod& KaiCluster::multi_consumer(const std::string& name, const std::vector<std::string>& groups,
                                   const std::string& node) {
  KaiPod& pod = plain_pod(name);
  for (const std::string& group : groups) pod.meta.labels.set(std::string(kai::kGroupPrefix) + group, group);
  pod.node_name = Interned(node);
  return pod;
}

BindRequest& KaiCluster::request(const std::string& pod, const std::string& group, const std::string& phase) {
  BindRequest request;
  request.meta.name = pod;
  request.meta.ns = Interned(kTeam);
  request.meta.uid = "uid-request-" + pod;
  request.pod_name = pod;
  request.selected_node = Interned("n1");
  request.groups = {Interned(group)};
  request.phase = Interned(phase);
  return requests[request.meta.key()] = request;
}

void KaiCluster::devices(KaiPod& pod, const std::string& value) {
  pod.meta.annotations.set(kai::kSharedConfigMap, pod.meta.name + "-gpus");
  device_maps[{std::string(pod.meta.ns.view()), pod.meta.name + "-gpus-0"}] = {
      {}, true, value, {Interned(pod.meta.uid.str())}};
}

void KaiCluster::apply() {
  KaiWorld& kai = world.kai;
  if (!attached_) {
    index_.attach(world);
    attached_ = true;
  }
  const auto fill = [](auto& store, const auto& objects) {
    store.init();
    for (const auto& [key, object] : objects) store.init_apply(object);
    store.init_done();
  };
  fill(world.nodes, nodes);
  fill(kai.bind_requests, requests);
  kai.configs.init();
  if (config_) kai.configs.init_apply(*config_);
  kai.configs.init_done();
  kai.deployments.init();
  if (binder_) kai.deployments.init_apply(*binder_);
  kai.deployments.init_done();
  kai.pods.init();
  const KaiView view = view_kai(kai, settings.kai);
  for (const auto& [key, pod] : pods) {
    const bool watched = pod.meta.labels.contains(kai::kGroupLabel) || role_of(pod, view) == KaiRole::unlabelled;
    if (watched) kai.pods.init_apply(pod);
  }
  kai.pods.init_done();
}

void KaiCluster::answer(const KaiWants& wants) {
  LookupResults& lookups = world.kai.lookups;
  for (const std::string& group : wants.groups) {
    LookupResults::Group listed{one_look(now), {}};
    for (const auto& [key, pod] : pods)
      if (pod.meta.labels.contains(std::string(kai::kGroupPrefix) + group)) listed.pods.push_back(pod);
    lookups.groups[group] = listed;
  }
  if (wants.waiting_pods) lookups.waiting = LookupResults::Waiting{one_look(now), waiting};
  if (wants.binder_lease) {
    lookups.binder_lease = binder_lease;
    lookups.binder_lease->at = one_look(now);
  }
  for (const ObjectKey& key : wants.pods)
    lookups.pods[key] = {one_look(now), pods.contains(key) && is_alive(pods.at(key))};
  for (const ObjectKey& key : wants.config_maps) {
    LookupResults::Devices& answer = lookups.config_maps[key] = {};
    if (device_maps.contains(key)) answer = device_maps.at(key);
    answer.at = one_look(now);
  }
}

Plan KaiCluster::pass(const std::string& reconciler) {
  apply();
  Plan plan;
  // The runtime plans again at once when look-ups were answered.
  for (int round = 0; round < 3; ++round) {
    const Snapshot snapshot{world, now, timers_, consumers_, settings};
    plan = plan_all(snapshot, index_, {.only = reconciler, .synced = everything_synced});
    if (!lookups_answered || plan.kai_wanted.empty()) break;
    answer(plan.kai_wanted);
  }
  Timers next;
  for (const TimerKey& timer : plan.timers) {
    auto it = timers_.find(timer);
    next[timer] = it == timers_.end() ? now : it->second;
  }
  timers_ = std::move(next);
  return plan;
}

Plan KaiCluster::run(Duration span, Duration step) {
  const WallTime end = now + std::chrono::duration_cast<std::chrono::milliseconds>(span);
  Plan plan = pass();
  while (now < end) {
    now += std::chrono::duration_cast<std::chrono::milliseconds>(step);
    plan = pass();
  }
  return plan;
}

Plan KaiCluster::credited() {
  Plan plan;
  for (int round = 0; round < 5; ++round) {
    plan = pass();
    for (auto& [timer, since] : timers_) since = now - std::chrono::hours(1);
  }
  return plan;
}

KaiPod& r(KaiCluster& cluster) {
  return cluster.pods.at({"kai-resource-reservation", "r"});
}

void Rules::expect(const char* rule, const Names& gone, const char* reason, const Change& change) const {
  SCOPED_TRACE(rule);
  KaiCluster cluster;
  cluster.reservation("r", "g");
  begin(cluster);
  change(cluster);
  const Plan plan = cluster.credited();
  EXPECT_EQ(deleted(plan), gone);
  if (*reason != '\0') {
    EXPECT_TRUE(reasons(plan, "r").contains(reason)) << ::testing::PrintToString(reasons(plan, "r"));
  }
}

Names deleted(const Plan& plan) {
  Names out;
  for (const PlannedAction& planned : plan.actions)
    if (const auto* action = std::get_if<DeletePod>(&planned.action)) out.insert(action->pod.name);
  return out;
}

Names told_by_event(const Plan& plan) {
  Names out;
  for (const PlannedAction& planned : plan.actions)
    if (const auto* event = std::get_if<RecordEvent>(&planned.action)) out.insert(event->why.code);
  return out;
}

Names reasons(const Plan& plan, std::string_view object) {
  Names out;
  for (const Finding& finding : plan.findings)
    if (finding.object.name == object) out.insert(finding.why.code);
  return out;
}

std::string message(const Plan& plan, std::string_view object, std::string_view reason) {
  for (const Finding& finding : plan.findings)
    if (finding.object.name == object && finding.why.code == reason) return finding.why.message;
  return {};
}

}  // namespace gso::test
