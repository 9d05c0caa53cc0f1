// One Watcher per kind.
#include "controller/watches/cluster_watches.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "controller/watches/dynamic_watches.h"
#include "k8sclient/api/discovery.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso {

template <class T>
void ClusterWatches::add(const k8s::Gvr& gvr, k8s::Store<T>* store, k8s::Result<T> (*project)(std::string_view)) {
  k8s::WatcherOptions options = defaults_;
  options.seed += std::hash<std::string>{}(gvr.resource);
  // Nodes are large and change all the time; the other kinds' projections read JSON only.
  options.protobuf = gvr == resources::nodes;
  if (gvr == resources::resource_slices)
    options.field_selector = k8s::FieldSelector::equals("spec.driver", std::string(kGpuDraDriver));
  options.complete = [this, store, resource = gvr.resource] {
    store->mark_synced();
    reports_.complete(resource, store->size());
  };
  options.failed = [this, resource = gvr.resource](const k8s::Error& error) { reports_.failed(resource, error); };
  auto watch = std::make_shared<ScopedWatch>();
  if constexpr (std::is_same_v<T, BindRequest>)
    watch->fill(store, &request_counts_, project, nullptr, &request_budget_);  // Tenants make them.
  else if constexpr (std::is_same_v<T, Node>)
    watch->fill_alone(store, project, &revision_of_node);  // Heartbeats.
  else
    watch->fill_alone(store, project);
  watch->open(client_, gvr, std::move(options));
  kinds_.push_back({gvr, std::move(watch), [store] { return store->size(); }});
}

ClusterWatches::ClusterWatches(k8s::Reader* client, k8s::Clock* clock, World* world, k8s::WatcherOptions defaults,
                               Reports reports)
    : client_(client),
      clock_(clock),
      defaults_(std::move(defaults)),
      reports_(std::move(reports)),
      wake_(clock->make_signal()),
      world_(world),
      request_budget_(&world->kai.bind_requests, &memory_of, most_bytes(TenantFed::bind_requests)) {
  each_cluster_kind(*world, [this](const k8s::Gvr& gvr, auto& store, auto project) { add(gvr, &store, project); });
}

void ClusterWatches::start(TaskGroup* tasks, boost::asio::any_io_executor executor) {
  for (const Kind& kind : kinds_) ScopedWatch::start(kind.watch, tasks, executor);
}

void ClusterWatches::stop() {
  stopping_ = true;
  wake_->notify();
  for (const Kind& kind : kinds_) kind.watch->stop();
}

void ClusterWatches::list_again() {
  for (const Kind& kind : kinds_) kind.watch->list_again();
}

boost::asio::awaitable<void> ClusterWatches::rediscover(k8s::Duration period) {
  while (!stopping_) {
    co_await wake_->wait_until(clock_->monotonic() + period);
    if (stopping_) co_return;
    const auto is_absent = [](const Kind& kind) { return kind.watch->api() == k8s::ApiState::absent; };
    if (!std::ranges::any_of(kinds_, is_absent)) continue;
    // One document names what has appeared; only that is looked at closely.
    const k8s::CallOptions call;
    const k8s::Result<std::string> groups = co_await client_->get_path("/apis", call);
    if (!groups) continue;
    const k8s::Result<std::vector<std::string>> versions = k8s::decode_group_versions(*groups);
    if (!versions) continue;
    for (const Kind& kind : kinds_) {
      if (stopping_) co_return;
      const bool appeared = std::ranges::find(*versions, k8s::group_version(kind.gvr)) != versions->end();
      if (!appeared || !is_absent(kind)) continue;
      const k8s::Result<bool> served = co_await client_->served(kind.gvr);
      if (served && *served) kind.watch->retry_now();
    }
  }
}

// Nodes and the operator's kinds are required. ClusterPolicies only announce; KAI's kinds are for KAI's reconcilers,
// which wait for them.
bool ClusterWatches::Kind::is_done_without() const {
  const bool needed = gvr.group.empty() || gvr.group == resources::sharing_policies.group;
  return !needed && watch->is_forbidden();
}

const ScopedWatch* ClusterWatches::find(const k8s::Gvr& gvr) const {
  const auto found = std::ranges::find_if(
      kinds_, [&](const Kind& kind) { return kind.gvr.group == gvr.group && kind.gvr.resource == gvr.resource; });
  return found == kinds_.end() ? nullptr : found->watch.get();
}

std::optional<k8s::Error> ClusterWatches::forbidden(const k8s::Gvr& gvr) const {
  const ScopedWatch* watch = find(gvr);
  return watch != nullptr && watch->is_forbidden() ? watch->error() : std::nullopt;
}

void ClusterWatches::use_room() {
  request_budget_.set_most(most_bytes(TenantFed::bind_requests, world_->nodes.size()));
  for (const Kind& kind : kinds_) kind.watch->use_room();
}

bool ClusterWatches::served(const k8s::Gvr& gvr) const {
  const ScopedWatch* watch = find(gvr);
  return watch != nullptr && watch->api() == k8s::ApiState::served;
}

bool ClusterWatches::policies_served() const {
  return served(resources::sharing_policies) && served(resources::sharing_rollouts);
}

}  // namespace gso
