// Which scopes, their sinks, and what is missing.
#include "controller/kai_watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "reconcilers/kai/config_view.h"
#include "reconcilers/kai/names.h"

namespace gso {
namespace {

const k8s::Gvr kConfigs{"kai.scheduler", "v1", "configs"};
const k8s::Gvr kBindRequests{"scheduling.run.ai", "v1alpha2", "bindrequests"};

k8s::Gvr resource_of(KaiScope::Kind kind) {
  switch (kind) {
    case KaiScope::Kind::grouped_pods:
    case KaiScope::Kind::reservations:
      return {"", "v1", "pods"};
    case KaiScope::Kind::binder:
      return {"apps", "v1", "deployments"};
    case KaiScope::Kind::runtime_classes:
      return {"node.k8s.io", "v1", "runtimeclasses"};
    case KaiScope::Kind::schema:
      return {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
  }
  return {};
}

}  // namespace

std::string to_string(const KaiScope& scope) {
  switch (scope.kind) {
    case KaiScope::Kind::grouped_pods:
      return fmt::format("pods ({})", kai::kGroupLabel);
    case KaiScope::Kind::reservations:
      return fmt::format("pods of {} ({}={})", scope.ns, kai::kAppLabel, scope.value);
    case KaiScope::Kind::binder:
      return fmt::format("deployments of {} ({})", scope.ns, scope.value);
    case KaiScope::Kind::runtime_classes:
      return "runtimeclasses";
    case KaiScope::Kind::schema:
      return fmt::format("customresourcedefinitions ({})", scope.value);
  }
  return {};
}

struct KaiWatches::Watch {
  KaiScope scope;
  std::unique_ptr<k8s::WatchSink> objects;
  std::function<void()> release;
  std::unique_ptr<ReportingSink> sink;
  std::unique_ptr<k8s::Watcher> watcher;
  bool synced = false;
  std::optional<k8s::Error> error;  // The last one,
  std::uint64_t error_at = 0;       // and what had been opened by then: a stream opened since means recovered.

  [[nodiscard]] std::uint64_t opened() const { return watcher->stats().watches + watcher->stats().lists; }
  [[nodiscard]] bool failing() const { return error && opened() == error_at; }
  static boost::asio::awaitable<void> run(std::shared_ptr<Watch> watch) { co_await watch->watcher->run(); }
};

KaiWatches::KaiWatches(k8s::ApiClient* client, World* world, k8s::WatcherOptions defaults, TaskGroup* tasks,
                       boost::asio::any_io_executor executor, Reports reports)
    : client_(client),
      world_(world),
      defaults_(std::move(defaults)),
      tasks_(tasks),
      executor_(std::move(executor)),
      reports_(std::move(reports)) {
  world_->kai.pods.mark_absent();
  world_->kai.deployments.mark_absent();
  world_->kai.schemas.mark_absent();
  world_->kai.use_known = false;
  world_->kai.incomplete = "KAI has not been looked for yet";
}

KaiWatches::~KaiWatches() = default;

std::shared_ptr<KaiWatches::Watch> KaiWatches::start(const KaiScope& scope) {
  auto watch = std::make_shared<Watch>();
  watch->scope = scope;
  KaiWorld& kai = world_->kai;
  const auto fill = [&](auto* store, ScopeCounts* counts, auto project) {
    using T = std::remove_cvref_t<decltype(*project({}))>;
    auto sink = std::make_unique<ScopeSink<T>>(store, counts, project);
    watch->release = [raw = sink.get()] { raw->release_all(); };
    watch->objects = std::move(sink);
  };
  k8s::WatcherOptions options = defaults_;
  options.seed += std::hash<std::string>{}(to_string(scope));
  options.ns = scope.ns;
  switch (scope.kind) {
    case KaiScope::Kind::grouped_pods:
      options.label_selector.match_expressions.push_back(
          {std::string(kai::kGroupLabel), k8s::LabelOperator::exists, {}});
      fill(&kai.pods, &pod_counts_, &project_kai_pod);
      break;
    case KaiScope::Kind::reservations:
      options.label_selector.match_labels[std::string(kai::kAppLabel)] = scope.value;
      fill(&kai.pods, &pod_counts_, &project_kai_pod);
      break;
    case KaiScope::Kind::binder:
      options.field_selector = k8s::FieldSelector::equals("metadata.name", scope.value);
      fill(&kai.deployments, &deployment_counts_, &project_deployment);
      break;
    case KaiScope::Kind::runtime_classes:
      fill(&kai.runtime_classes, &class_counts_, &project_runtime_class);
      break;
    case KaiScope::Kind::schema:
      options.field_selector = k8s::FieldSelector::equals("metadata.name", scope.value);
      fill(&kai.schemas, &schema_counts_, &project_kai_schema);
      break;
  }
  Watch* raw = watch.get();  // Owns the sink that holds these functions.
  ReportingSink::Reports reports;
  reports.complete = [this, raw] {
    raw->synced = true;
    raw->error.reset();
    if (raw->scope.kind == KaiScope::Kind::runtime_classes && !world_->kai.runtime_classes.synced()) {
      // Filled object by object: this only says that the first view is there.
      const auto seen = world_->kai.runtime_classes.all();
      world_->kai.runtime_classes.init();
      for (const auto& [key, found] : seen) world_->kai.runtime_classes.init_apply(*found);
      world_->kai.runtime_classes.init_done();
    }
    reports_.complete();
  };
  reports.failed = [this, raw](const k8s::Error& error) {
    raw->error = error;
    raw->error_at = raw->opened();
    reports_.failed(raw->scope, error);
  };
  watch->sink = std::make_unique<ReportingSink>(watch->objects.get(), std::move(reports));
  watch->watcher = std::make_unique<k8s::Watcher>(client_, resource_of(scope.kind), options, watch->sink.get());
  tasks_->spawn(executor_, Watch::run(watch));
  return watch;
}

std::vector<KaiScope> KaiWatches::wanted(const KaiSettings& settings) const {
  using Kind = KaiScope::Kind;
  const KaiWorld& kai = world_->kai;
  const KaiView view = view_kai(kai, settings);
  const bool leftovers = settings.look_for_leftovers && settings.gc_mode != KaiGcMode::off;
  if (!view.served && !leftovers) return {};
  std::vector<KaiScope> out{{Kind::reservations, view.reservations, view.app_label}};
  if (view.served || kai.pods.size() > 0) out.push_back({Kind::grouped_pods, "", ""});
  if (view.served) {
    out.push_back({Kind::runtime_classes, "", ""});
    out.push_back({Kind::schema, "", std::string(kai::kConfigCrd)});
    out.push_back({Kind::schema, "", std::string(kai::kBindRequestCrd)});
  }
  if (view.configured) out.push_back({Kind::binder, view.ns, std::string(kai::kBinder)});
  return out;
}

void KaiWatches::open_and_close(const std::vector<KaiScope>& scopes) {
  for (auto it = watches_.begin(); it != watches_.end();) {
    if (std::ranges::find(scopes, it->first) != scopes.end()) {
      ++it;
      continue;
    }
    it->second->watcher->stop();
    retired_.push_back(std::move(it->second));
    it = watches_.erase(it);
  }
  for (const KaiScope& scope : scopes) {
    if (!watches_.contains(scope)) watches_.emplace(scope, start(scope));
  }
  const bool synced = std::ranges::all_of(watches_, [](const auto& entry) { return entry.second->synced; });
  if (!synced) return;
  for (const auto& watch : std::exchange(retired_, {})) watch->release();
}

// What the collection needs and does not have; empty when the view is complete.
std::string KaiWatches::find_gap(const ClusterWatches& cluster) const {
  for (const k8s::Gvr& gvr : {kConfigs, kBindRequests}) {
    if (!cluster.synced(gvr)) return gvr.resource + " have not synced";
    if (cluster.failing(gvr)) return "the watch of " + gvr.resource + " has failed and is being opened again";
  }
  for (const auto& [scope, watch] : watches_) {
    if (scope.kind == KaiScope::Kind::runtime_classes) continue;  // Nothing is deleted on their account.
    if (watch->error && watch->error->reason == k8s::Reason::forbidden && !watch->synced) {
      return fmt::format("{} may not be watched: {}", to_string(scope), watch->error->message);
    }
    if (!watch->synced) return to_string(scope) + " have not synced";
    if (watch->failing()) return fmt::format("the watch of {} has failed and is being opened again", to_string(scope));
  }
  return retired_.empty() ? std::string() : "what KAI watches has just changed";
}

void KaiWatches::update(const ClusterWatches& cluster, const KaiSettings& settings) {
  KaiWorld& kai = world_->kai;
  kai.configs_served = cluster.served(kConfigs);
  kai.bind_requests_served = cluster.served(kBindRequests);
  open_and_close(wanted(settings));
  const auto schemas = std::ranges::count_if(
      watches_, [](const auto& entry) { return entry.first.kind == KaiScope::Kind::schema && entry.second->synced; });
  kai.schemas_known = schemas == 2;
  kai.use_known =
      cluster.synced(kConfigs) && cluster.synced(kBindRequests) && std::ranges::all_of(watches_, [](const auto& entry) {
        const bool pods =
            entry.first.kind == KaiScope::Kind::grouped_pods || entry.first.kind == KaiScope::Kind::reservations;
        return !pods || entry.second->synced;
      });
  kai.incomplete = find_gap(cluster);
}

void KaiWatches::stop() {
  for (auto& [scope, watch] : watches_) watch->watcher->stop();
}

std::vector<KaiWatches::Refusal> KaiWatches::refused() const {
  std::vector<Refusal> out;
  for (const auto& [scope, watch] : watches_) {
    if (watch->error && watch->error->reason == k8s::Reason::forbidden) out.push_back({scope, *watch->error});
  }
  return out;
}

}  // namespace gso
