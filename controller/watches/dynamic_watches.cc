// Scopes by difference, and their sinks.
#include "controller/watches/dynamic_watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace gso {

boost::asio::awaitable<void> ScopedWatch::run(std::shared_ptr<ScopedWatch> self) {
  co_await self->watcher_->run();
}

k8s::Gvr resource_of(WatchScope::Kind kind) {
  // In the order of WatchScope::Kind.
  const std::array kinds{&resources::pods, &resources::config_maps, &resources::controller_revisions,
                         &resources::daemon_sets};
  return *kinds.at(static_cast<std::size_t>(kind));
}

std::string to_string(const WatchScope& scope) {
  std::string selector = scope.name;
  for (const auto& [key, value] : scope.labels)
    selector += fmt::format("{}{}={}", selector.empty() ? "" : ",", key, value);
  const std::string resource = resource_of(scope.kind).resource;
  return fmt::format("{} of {}{}", resource, scope.ns, selector.empty() ? "" : " (" + selector + ")");
}

void DynamicWatches::note_complete(const WatchScope& /*scope*/) {
  update();
}

void DynamicWatches::note_failed(const WatchScope& scope, const k8s::Error& error) {
  if (error.reason == k8s::Reason::forbidden) update();
  WatchFamily::note_failed(scope, error);
}

k8s::Gvr DynamicWatches::prepare(const WatchScope& scope, ScopedWatch& watch, k8s::WatcherOptions& options) {
  select(scope, options);
  const k8s::Gvr resource = resource_of(scope.kind);
  each_operand_kind(*world_, [&](const k8s::Gvr& gvr, auto& store, auto project) {
    if (gvr == resource) watch.fill(&store, &counts_[scope.kind], project);
  });
  return resource;
}

void DynamicWatches::want(const std::vector<WatchScope>& scopes) {
  if (std::exchange(first_, false)) {
    world_->operand_pods.mark_synced();
    world_->configmaps.mark_synced();
    world_->revisions.mark_synced();
  }
  std::vector<WatchScope> wanted = scopes;
  // The record is among the ConfigMaps, and DaemonSets say what else to watch.
  std::ranges::stable_sort(wanted, std::greater(), [](const WatchScope& scope) {
    return scope.kind == WatchScope::Kind::daemonsets || scope.kind == WatchScope::Kind::configmaps;
  });
  beyond_.clear();
  for (std::size_t i = kMost; i < wanted.size(); ++i) beyond_.insert(wanted[i].ns);
  if (wanted.size() > kMost) wanted.resize(kMost);
  keep_open(wanted);
  update();
}

void DynamicWatches::update() {
  std::set<std::string> unsynced = beyond_;
  std::set<std::string> loading;
  for (const auto& [scope, watch] : watches()) {
    if (watch->readable()) continue;
    unsynced.insert(scope.ns);
    if (!watch->refusal()) loading.insert(scope.ns);
  }
  std::set<std::string> refused;
  std::ranges::set_difference(unsynced, loading, std::inserter(refused, refused.end()));
  const bool changed = world_->unsynced_namespaces != unsynced || world_->refused_namespaces != refused;
  world_->unsynced_namespaces = std::move(unsynced);
  world_->refused_namespaces = std::move(refused);
  if (!world_->daemonsets.synced() && open(WatchScope::Kind::daemonsets) > 0 && synced(WatchScope::Kind::daemonsets)) {
    world_->daemonsets.mark_synced();
    reports_.complete();
  }
  release_retired();
  if (changed) reports_.complete();
}

void DynamicWatches::for_each_synced(const std::function<void(const WatchScope&, const ScopedWatch&)>& f) const {
  for (const auto& [scope, watch] : watches())
    if (watch->synced()) f(scope, *watch);
}

std::vector<WatchScope> DynamicWatches::loading() const {
  std::vector<WatchScope> out;
  for (const auto& [scope, watch] : watches())
    if (!watch->synced() && !watch->refusal()) out.push_back(scope);
  return out;
}

bool DynamicWatches::synced(WatchScope::Kind kind) const {
  return std::ranges::all_of(watches(),
                             [&](const auto& entry) { return entry.first.kind != kind || entry.second->synced(); });
}

std::size_t DynamicWatches::open(WatchScope::Kind kind) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(watches(), [&](const auto& entry) { return entry.first.kind == kind; }));
}

}  // namespace gso
