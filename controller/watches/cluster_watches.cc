// One StoreSink and one Watcher per kind.
#include "controller/watches/cluster_watches.h"

#include <algorithm>
#include <utility>

#include "controller/watches/scoped_watch.h"
#include "k8sclient/api/discovery.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso {

struct ClusterWatches::Watch {
  k8s::Gvr gvr;
  std::unique_ptr<k8s::WatchSink> objects;
  std::unique_ptr<ReportingSink> sink;
  std::unique_ptr<k8s::Watcher> watcher;
  std::function<Status()> status;
  std::function<std::string()> left_out;
  std::function<void()> use_room;
  bool listed_for_room = false;
};

template <class T>
void ClusterWatches::add(k8s::Gvr gvr, k8s::Store<T>* store, k8s::Result<T> (*project)(std::string_view),
                         k8s::StoreBudget<T>* budget) {
  auto watch = std::make_unique<Watch>();
  watch->gvr = gvr;
  auto objects = std::make_unique<k8s::StoreSink<T>>(store, project);
  watch->status = [gvr, store, sink = objects.get(), raw = watch.get()] {
    return Status{gvr,  store->synced(), raw->watcher->view(), raw->watcher->api(), store->size(), sink->last_error(),
                  false};
  };
  objects->limit(budget);
  watch->left_out = [budget, sink = objects.get()] {
    return budget == nullptr ? std::string() : left_out_text(sink->left_out(), budget->most());
  };
  watch->use_room = [budget, sink = objects.get(), raw = watch.get()] {
    const bool again = budget != nullptr && sink->left_out().count() > 0 && budget->has_room_again();
    if (again && !std::exchange(raw->listed_for_room, true)) raw->watcher->list_again();
  };
  watch->objects = std::move(objects);
  ReportingSink::Reports reports;
  Watch* raw = watch.get();  // Owns the sink that holds these functions.
  reports.complete = [this, raw, store] {
    raw->listed_for_room = false;
    reports_.complete(raw->gvr.resource, store->size());
  };
  reports.failed = [this, raw](const k8s::Error& error) { reports_.failed(raw->gvr.resource, error); };
  watch->sink = std::make_unique<ReportingSink>(watch->objects.get(), std::move(reports));
  k8s::WatcherOptions options = defaults_;
  options.seed += std::hash<std::string>{}(gvr.resource);
  // Nodes are large and change all the time; the other kinds' projections read JSON only.
  options.protobuf = gvr == resources::nodes;
  if (gvr.resource == "resourceslices") {
    options.field_selector = k8s::FieldSelector::equals("spec.driver", std::string(kGpuDraDriver));
  }
  watch->watcher = std::make_unique<k8s::Watcher>(client_, std::move(gvr), options, watch->sink.get());
  watches_.push_back(std::move(watch));
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
  add(resources::nodes, &world->nodes, &project_node);
  add(resources::cluster_policies, &world->clusterpolicies, &project_clusterpolicy);
  add(resources::gpu_clusters, &world->gpu_clusters, &project_gpu_cluster);
  add(resources::device_classes, &world->device_classes, &project_device_class);
  add(resources::resource_slices, &world->resource_slices, &project_resource_slice);
  add(resources::kai_configs, &world->kai.configs, &project_kai_config);
  add(resources::bind_requests, &world->kai.bind_requests, &project_bind_request, &request_budget_);
  add(resources::sharing_policies, &world->policies, &project_sharing_policy);
  add(resources::sharing_rollouts, &world->rollouts, &project_sharing_rollout);
}

ClusterWatches::~ClusterWatches() = default;

void ClusterWatches::start(TaskGroup* tasks, boost::asio::any_io_executor executor) {
  for (const auto& watch : watches_) tasks->spawn(executor, watch->watcher->run());
}

void ClusterWatches::stop() {
  stopping_ = true;
  wake_->notify();
  for (const auto& watch : watches_) watch->watcher->stop();
}

void ClusterWatches::list_again() {
  for (const auto& watch : watches_) watch->watcher->list_again();
}

boost::asio::awaitable<void> ClusterWatches::rediscover(k8s::Duration period) {
  while (!stopping_) {
    co_await wake_->wait_until(clock_->monotonic() + period);
    if (stopping_) co_return;
    const auto is_absent = [](const auto& watch) { return watch->watcher->api() == k8s::ApiState::absent; };
    if (!std::ranges::any_of(watches_, is_absent)) continue;
    // One document names what has appeared; only that is looked at closely.
    const k8s::CallOptions call;
    const k8s::Result<std::string> groups = co_await client_->get_path("/apis", call);
    if (!groups) continue;
    const k8s::Result<std::vector<std::string>> versions = k8s::decode_group_versions(*groups);
    if (!versions) continue;
    for (const auto& watch : watches_) {
      if (stopping_) co_return;
      const bool appeared = std::ranges::find(*versions, k8s::group_version(watch->gvr)) != versions->end();
      if (!appeared || !is_absent(watch)) continue;
      const k8s::Result<bool> served = co_await client_->served(watch->gvr);
      if (served && *served) watch->watcher->retry_now();
    }
  }
}

std::vector<ClusterWatches::Status> ClusterWatches::status() const {
  std::vector<Status> out;
  for (const auto& watch : watches_) {
    Status status = watch->status();
    // Nodes and the operator's kinds are required. ClusterPolicies only announce; KAI's kinds are for KAI's
    // reconcilers, which wait for them.
    const bool needed = status.gvr.group.empty() || status.gvr.group == "gpusharing.dev";
    status.optional_missing = !needed && forbidden(status.gvr).has_value();
    out.push_back(std::move(status));
  }
  return out;
}

const ClusterWatches::Watch* ClusterWatches::find(const k8s::Gvr& gvr) const {
  auto it = std::find_if(watches_.begin(), watches_.end(), [&](const auto& watch) {
    return watch->gvr.group == gvr.group && watch->gvr.resource == gvr.resource;
  });
  return it == watches_.end() ? nullptr : it->get();
}

bool ClusterWatches::readable(const k8s::Gvr& gvr) const {
  const Watch* watch = find(gvr);
  return watch == nullptr || watch->status().readable();
}

bool ClusterWatches::current(const k8s::Gvr& gvr) const {
  const Watch* watch = find(gvr);
  return watch == nullptr || watch->status().current();
}

bool ClusterWatches::failing(const k8s::Gvr& gvr) const {
  const Watch* watch = find(gvr);
  return watch != nullptr && watch->watcher->failing();
}

std::optional<k8s::Error> ClusterWatches::forbidden(const k8s::Gvr& gvr) const {
  if (!failing(gvr)) return std::nullopt;
  std::optional<k8s::Error> error = find(gvr)->status().error;
  if (error && error->reason != k8s::Reason::forbidden) error.reset();
  return error;
}

void ClusterWatches::use_room() {
  request_budget_.set_most(most_bytes(TenantFed::bind_requests, world_->nodes.size()));
  for (const auto& watch : watches_) watch->use_room();
}

std::string ClusterWatches::left_out(const k8s::Gvr& gvr) const {
  const Watch* watch = find(gvr);
  return watch == nullptr ? std::string() : watch->left_out();
}

bool ClusterWatches::served(const k8s::Gvr& gvr) const {
  const Watch* watch = find(gvr);
  return watch != nullptr && watch->watcher->api() == k8s::ApiState::served;
}

bool ClusterWatches::policies_served() const {
  return std::all_of(watches_.begin(), watches_.end(), [](const auto& watch) {
    return watch->gvr.group != "gpusharing.dev" || watch->watcher->api() == k8s::ApiState::served;
  });
}

}  // namespace gso
