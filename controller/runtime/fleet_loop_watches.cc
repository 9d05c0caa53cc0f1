// What the loop listens to, which watches it asks for, and what they have learned before a pass.
#include <malloc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "controller/runtime/fleet_loop.h"
#include "controller/serving/process_metrics.h"
#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/resources.h"

namespace gso {
namespace {

// How often is looked whether a view has become current, or outdated.
constexpr Duration kLookAtViews = std::chrono::seconds(10);

// The ConfigMaps of nos's device plugin, which only partitioning reads.
void leave_out_nos(std::vector<WatchScope>& scopes, const World& world) {
  for (const PluginInstallation& nos : discover(world).of_nos)
    std::erase(scopes, WatchScope{WatchScope::Kind::configmaps, nos.ns, {}, nos.config_map});
}

}  // namespace

void FleetLoop::follow_stores() {
  World& world = *parts_.world;
  follow_killed_daemons(world);
  follow_config_map_times(world, [clock = parts_.clock] { return clock->now(); });
  parts_.index->attach(world);  // Before anything is in the stores, and before the listeners that start a pass.
  const auto listen = [this](bool scopes, auto&... stores) {
    const auto changed = [this, scopes](const auto&, const auto&, const auto&) {
      scopes_dirty_ = scopes_dirty_ || scopes;
      note_change();
    };
    (stores.add_listener(changed), ...);
  };
  listen(true, world.daemonsets, world.clusterpolicies);
  listen(false, world.nodes, world.operand_pods, world.revisions, world.gpu_clusters, world.device_classes,
         world.resource_slices, world.policies, world.rollouts, world.kai.configs, world.kai.bind_requests,
         world.kai.pods, world.kai.deployments, world.kai.runtime_classes, world.kai.schemas, world.partitioning.pods);
  world.configmaps.add_listener([this](const ObjectKey& key, const auto&, const auto&) {
    const ObjectKey state = state_key(*parts_.settings);
    scopes_dirty_ = scopes_dirty_ || key == state || is_shard(state, key);
    note_change();
  });
  // A renewal, which comes every two seconds, is no news: each pass reads the Lease as it is then.
  world.partitioning.leases.add_listener([this](const auto&, const auto& before, const auto& after) {
    if (before == nullptr || after == nullptr || before->holder != after->holder) note_change();
  });
}

// The record first: it says where DaemonSets are believed. Without it and without a search nothing more is watched.
void FleetLoop::update_scopes() {
  if (!scopes_dirty_) return;
  World& world = *parts_.world;
  if (world.operand_namespaces.empty()) parts_.dynamic->want(record_scopes(*parts_.settings));
  if (!parts_.search->decide()) return;
  scopes_dirty_ = false;
  std::vector<WatchScope> scopes = wanted_scopes(world, *parts_.settings);
  if (parts_.options->partitioning_mode == PartitioningMode::off) leave_out_nos(scopes, world);
  parts_.dynamic->want(scopes);
}

void FleetLoop::note_sync() {
  const bool served = parts_.cluster->policies_served();
  if (std::exchange(parts_.world->policies_served, served) != served) {
    parts_.log->info(
        served ? "The SharingPolicy/SharingRollout CRDs are installed"
               : "The SharingPolicy/SharingRollout CRDs are not installed in this cluster; keeping the record "
                 "in the state ConfigMap");
    parts_.index->note_everything_changed();
  }
  const bool now = synced();
  parts_.view->synced = now;
  if (now && !std::exchange(was_synced_, true)) {
    malloc_trim(0);
    parts_.log->info("All stores synced", {{"nodes", parts_.world->nodes.size()},
                                           {"pods", parts_.world->operand_pods.size()},
                                           {"residentMiB", resident_bytes() >> 20U}});
  }
}

// Those that are forbidden and that the operator works without are no views.
void FleetLoop::note_views() {
  parts_.dynamic->update();
  const MonoTime now = parts_.clock->monotonic();
  std::vector<StaleView> stale;
  std::map<std::string, WallTime> since;
  const auto note = [&](std::string name, k8s::Gvr resource, const std::string& ns, const k8s::View& view) {
    if (view.state == k8s::ViewState::current) return;
    const Duration age = now - view.confirmed_at.value_or(now);
    const auto known = stale_since_.find(name);
    const WallTime begun =
        known != stale_since_.end() ? known->second : parts_.clock->now() - std::chrono::floor<WallTime::duration>(age);
    since.emplace(name, begun);
    stale.push_back({std::move(name), std::move(resource), ns, begun, age > k8s::WatcherOptions().max_age});
  };
  for (const ClusterWatches::Kind& kind : parts_.cluster->kinds())
    if (kind.watch->synced() && !kind.is_done_without()) note(kind.gvr.resource, kind.gvr, "", kind.watch->view());
  parts_.dynamic->for_each_synced([&](const WatchScope& scope, const ScopedWatch& watch) {
    note(to_string(scope), resource_of(scope.kind), scope.ns, watch.view());
  });
  stale_since_ = std::move(since);
  parts_.world->stale_views = std::move(stale);
  if (!parts_.world->stale_views.empty()) wake(kLookAtViews);
}

void FleetLoop::note_back_in_time() {
  if (relisting_ == Relisting::no) relisting_ = Relisting::asked;
  note_change();
}

// True unless the server went back in time, and some view is of before. One that is forbidden is none.
bool FleetLoop::is_listed_again() {
  if (relisting_ == Relisting::no) return true;
  if (relisting_ == Relisting::asked) {
    parts_.log->error("The API server went back in time: everything is listed again before anything is planned", {});
    parts_.cluster->list_again();
    parts_.dynamic->list_again();
    parts_.kai->list_again();
    parts_.partitioning->list_again();
    relisting_ = Relisting::begun;
  }
  const auto is_unread = [](const ScopedWatch& watch) { return watch.view().state == k8s::ViewState::unread; };
  bool unread = std::ranges::any_of(parts_.cluster->kinds(), [&](const ClusterWatches::Kind& kind) {
    return is_unread(*kind.watch) && !kind.watch->is_forbidden();
  });
  parts_.dynamic->for_each_synced(
      [&](const WatchScope&, const ScopedWatch& watch) { unread = unread || (is_unread(watch) && !watch.refusal()); });
  if (unread) return false;
  relisting_ = Relisting::no;
  parts_.index->note_everything_changed();
  return true;
}

}  // namespace gso
