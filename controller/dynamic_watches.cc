// Scopes by difference, and their sinks.
#include "controller/dynamic_watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "reconcilers/model/project.h"

namespace gso {
namespace {

k8s::Gvr resource_of(WatchScope::Kind kind) {
  switch (kind) {
    case WatchScope::Kind::pods:
      return {"", "v1", "pods"};
    case WatchScope::Kind::configmaps:
      return {"", "v1", "configmaps"};
    case WatchScope::Kind::controllerrevisions:
      return {"apps", "v1", "controllerrevisions"};
  }
  return {};
}

}  // namespace

std::string to_string(const WatchScope& scope) {
  std::string selector = scope.name;
  for (const auto& [key, value] : scope.labels) {
    selector += fmt::format("{}{}={}", selector.empty() ? "" : ",", key, value);
  }
  const std::string resource = resource_of(scope.kind).resource;
  return fmt::format("{} of {}{}", resource, scope.ns, selector.empty() ? "" : " (" + selector + ")");
}

struct DynamicWatches::Watch {
  WatchScope scope;
  std::unique_ptr<k8s::WatchSink> objects;
  std::function<void()> release;  // Takes this scope's objects out of the store.
  std::unique_ptr<ReportingSink> sink;
  std::unique_ptr<k8s::Watcher> watcher;
  bool synced = false;
  std::optional<k8s::Error> refused;

  static boost::asio::awaitable<void> run(std::shared_ptr<Watch> watch) { co_await watch->watcher->run(); }
};

DynamicWatches::DynamicWatches(k8s::ApiClient* client, World* world, k8s::WatcherOptions defaults, TaskGroup* tasks,
                               boost::asio::any_io_executor executor, Reports reports)
    : client_(client),
      world_(world),
      defaults_(std::move(defaults)),
      tasks_(tasks),
      executor_(std::move(executor)),
      reports_(std::move(reports)) {}

DynamicWatches::~DynamicWatches() = default;

std::shared_ptr<DynamicWatches::Watch> DynamicWatches::start(const WatchScope& scope) {
  auto watch = std::make_shared<Watch>();
  watch->scope = scope;
  const auto fill = [&](auto* store, ScopeCounts* counts, auto project) {
    using T = std::remove_cvref_t<decltype(*project({}))>;
    auto sink = std::make_unique<ScopeSink<T>>(store, counts, project);
    watch->release = [raw = sink.get()] { raw->release_all(); };
    watch->objects = std::move(sink);
  };
  switch (scope.kind) {
    case WatchScope::Kind::pods:
      fill(&world_->operand_pods, &pod_counts_, &project_pod);
      break;
    case WatchScope::Kind::configmaps:
      fill(&world_->configmaps, &configmap_counts_, &project_configmap);
      break;
    case WatchScope::Kind::controllerrevisions:
      fill(&world_->revisions, &revision_counts_, &project_controller_revision);
      break;
  }
  Watch* raw = watch.get();  // Owns the sink that holds these functions.
  ReportingSink::Reports reports;
  reports.complete = [this, raw] {
    raw->refused.reset();
    if (!std::exchange(raw->synced, true)) update();
  };
  reports.failed = [this, raw](const k8s::Error& error) {
    if (error.reason == k8s::Reason::forbidden) raw->refused = error;
    reports_.failed(raw->scope, error);
  };
  watch->sink = std::make_unique<ReportingSink>(raw->objects.get(), std::move(reports));
  k8s::WatcherOptions options = defaults_;
  options.ns = scope.ns;
  options.seed += std::hash<std::string>{}(to_string(scope));
  for (const auto& [key, value] : scope.labels) options.label_selector.match_labels.insert_or_assign(key, value);
  if (!scope.name.empty()) options.field_selector = k8s::FieldSelector::parse("metadata.name=" + scope.name).value();
  watch->watcher = std::make_unique<k8s::Watcher>(client_, resource_of(scope.kind), options, watch->sink.get());
  tasks_->spawn(executor_, Watch::run(watch));
  return watch;
}

void DynamicWatches::want(std::vector<WatchScope> scopes) {
  if (std::exchange(first_, false)) {
    world_->operand_pods.mark_absent();
    world_->configmaps.mark_absent();
    world_->revisions.mark_absent();
  }
  for (auto it = watches_.begin(); it != watches_.end();) {
    if (std::find(scopes.begin(), scopes.end(), it->first) != scopes.end()) {
      ++it;
      continue;
    }
    it->second->watcher->stop();
    retired_.push_back(std::move(it->second));
    it = watches_.erase(it);
  }
  for (const WatchScope& scope : scopes) {
    if (!watches_.contains(scope)) watches_.emplace(scope, start(scope));
  }
  update();
}

void DynamicWatches::update() {
  std::set<std::string> unsynced;
  for (const auto& [scope, watch] : watches_) {
    if (!watch->synced) unsynced.insert(scope.ns);
  }
  const bool complete = unsynced.empty();
  const bool changed = world_->unsynced_namespaces != unsynced;
  world_->unsynced_namespaces = std::move(unsynced);
  if (complete) {
    for (const auto& watch : std::exchange(retired_, {})) watch->release();
  }
  if (changed) reports_.changed();
}

void DynamicWatches::stop() {
  for (auto& [scope, watch] : watches_) watch->watcher->stop();
}

std::vector<DynamicWatches::Refusal> DynamicWatches::refused() const {
  std::vector<Refusal> out;
  for (const auto& [scope, watch] : watches_) {
    if (watch->refused) out.push_back({scope, *watch->refused});
  }
  return out;
}

std::vector<WatchScope> DynamicWatches::loading() const {
  std::vector<WatchScope> out;
  for (const auto& [scope, watch] : watches_) {
    if (!watch->synced && !watch->refused) out.push_back(scope);
  }
  return out;
}

std::size_t DynamicWatches::open(WatchScope::Kind kind) const {
  return static_cast<std::size_t>(
      std::count_if(watches_.begin(), watches_.end(), [&](const auto& entry) { return entry.first.kind == kind; }));
}

}  // namespace gso
