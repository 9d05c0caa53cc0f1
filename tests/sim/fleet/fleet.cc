#include "tests/sim/fleet/fleet.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "k8sclient/api/client.h"
#include "k8sclient/watch/watcher.h"
#include "tests/sim/fleet/daemonset_controller.h"
#include "tests/sim/fleet/gpu_operator.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/mig_manager.h"
#include "tests/sim/fleet/nfd_master.h"
#include "tests/sim/fleet/nfd_worker.h"

namespace gso::sim {

namespace {

namespace asio = boost::asio;

// Counts the coroutines of run(), so that it returns when all of them have.
struct Tasks {
  explicit Tasks(k8s::Clock* clock) : ended(clock->make_signal()) {}
  std::size_t running = 0;
  std::unique_ptr<k8s::Signal> ended;
};

asio::awaitable<void> counted(Tasks* tasks, asio::awaitable<void> task) {
  co_await std::move(task);
  --tasks->running;
  tasks->ended->notify();
}

}  // namespace

struct Fleet::Parts {
  Parts(Site* site, FleetOptions fleet_options, ClusterAutoscaler::Cloud cloud)
      : options(std::move(fleet_options)),
        nfd(site),
        nfd_worker(site, &nfd),
        daemonsets(site),
        gpu_operator(site, options.gpu_operator_namespace),
        driver_upgrader(site),
        mig_manager(site,
                    [this](const std::string& name) {
                      auto it = nodes.find(name);
                      return it == nodes.end() ? nullptr : &it->second->machine();
                    }),
        dra_driver(site),
        scheduler(site),
        autoscaler(site, std::move(cloud)),
        tasks(site->clock),
        stop(site->clock->make_signal()) {}

  void watch(Site* site, const k8s::Gvr& gvr, Mirror* mirror,
             k8s::Duration absent_retry = std::chrono::milliseconds(300)) {
    k8s::WatcherOptions watcher_options;
    watcher_options.first_backoff = std::chrono::milliseconds(200);
    watcher_options.last_backoff = std::chrono::seconds(2);
    watcher_options.absent_retry = absent_retry;
    watcher_options.failed = [mirror](const k8s::Error& error) { mirror->note_error(error); };
    watchers.push_back(std::make_unique<k8s::Watcher>(site->client, gvr, std::move(watcher_options), mirror));
  }
  void spawn(asio::awaitable<void> task) {
    ++tasks.running;
    asio::co_spawn(*executor, counted(&tasks, std::move(task)), asio::detached);
  }

  FleetOptions options;
  std::map<std::string, std::unique_ptr<NodeAgent>, std::less<>> nodes;
  std::set<std::string> off;  // Machines that are gone for good.
  NfdMaster nfd;
  NfdWorker nfd_worker;
  DaemonSetController daemonsets;
  GpuOperator gpu_operator;
  DriverUpgrader driver_upgrader;
  MigManager mig_manager;
  DraDriver dra_driver;
  Scheduler scheduler;
  ClusterAutoscaler autoscaler;
  const std::vector<Actor*> actors{&nfd,         &daemonsets, &gpu_operator, &driver_upgrader,
                                   &mig_manager, &dra_driver, &scheduler,    &autoscaler};
  std::vector<std::unique_ptr<k8s::Watcher>> watchers;
  Tasks tasks;
  std::unique_ptr<k8s::Signal> stop;
  std::optional<asio::any_io_executor> executor;  // From run() to stop().
};

Fleet::Fleet(k8s::ApiClient* client, k8s::Clock* clock, FleetOptions options)
    : site_(std::make_unique<Site>(client, clock, options.timing)) {
  ClusterAutoscaler::Cloud cloud{.boot = [this](NodeSpec spec) { add_node(std::move(spec)); },
                                 .shut_down = [this](const std::string& name) { remove_node(name); }};
  parts_ = std::make_unique<Parts>(site_.get(), std::move(options), std::move(cloud));
  for (const NodeSpec& spec : parts_->options.nodes) make_agent(spec);
  connect();
}

Fleet::~Fleet() = default;

void Fleet::make_agent(const NodeSpec& spec) {
  auto publish = [this, name = spec.name](std::optional<std::map<std::string, std::string>> labels) {
    if (site_->faults.feature_files) return parts_->nfd_worker.file_changed(name, std::move(labels));
    if (labels) parts_->nfd.hand_over(name, *labels);
  };
  parts_->nodes[spec.name] =
      std::make_unique<NodeAgent>(site_.get(), spec, parts_->options.act_as_controllers, std::move(publish));
}

void Fleet::play(NodeAgent* agent) {
  parts_->spawn(agent->run());
  agent->begin();
  if (agent->spec().nfd) parts_->nfd.add_node(agent->spec().name);
}

void Fleet::add_node(NodeSpec spec) {
  make_agent(spec);
  if (parts_->executor) play(node(spec.name));
}

void Fleet::remove_node(const std::string& name) {
  node(name)->power_off();
  parts_->nfd.remove_node(name);
  parts_->off.insert(name);
}

std::vector<NodeSpec> Fleet::machines() const {
  std::vector<NodeSpec> out;
  for (const auto& [name, agent] : parts_->nodes)
    if (!parts_->off.contains(name)) out.push_back(agent->spec());
  return out;
}

// Who hears of what.
void Fleet::connect() {
  Parts* parts = parts_.get();
  Site& site = *site_;
  const bool controllers = parts->options.act_as_controllers;
  const bool schedules = parts->options.act_as_scheduler;
  const bool gpu_operator = !parts->options.gpu_operator_namespace.empty();
  site.nodes.add_listener([=](const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after) {
    if (auto it = parts->nodes.find(key.name); it != parts->nodes.end()) it->second->on_node(after);
    if (controllers) parts->daemonsets.on_node(before, after);
    parts->autoscaler.on_node(before, after);
    if (gpu_operator) parts->gpu_operator.on_node(before, after);
    if (gpu_operator) parts->mig_manager.on_node(after);
    if (schedules) parts->scheduler.wake();
  });
  site.pods.add_listener([=](const k8s::ObjectKey&, const JsonPtr& before, const JsonPtr& after) {
    auto it = parts->nodes.find(node_of(after != nullptr ? *after : *before));
    if (it != parts->nodes.end()) it->second->on_pod(before, after);
    if (controllers) parts->daemonsets.on_pod(before, after);
    if (schedules) parts->scheduler.wake();
  });
  site.daemonsets.add_listener([=](const k8s::ObjectKey& key, const JsonPtr&, const JsonPtr&) {
    if (controllers) parts->daemonsets.on_daemonset(key);
    if (gpu_operator) parts->gpu_operator.on_daemonset();
  });
  site.clusterpolicies.add_listener([=](const k8s::ObjectKey&, const JsonPtr&, const JsonPtr&) {
    if (gpu_operator) parts->gpu_operator.on_clusterpolicy();
  });
  site.nodefeatures.add_listener([=](const k8s::ObjectKey&, const JsonPtr& before, const JsonPtr& after) {
    parts->nfd.on_node_feature(before, after);
  });
}

asio::awaitable<void> Fleet::run() {
  Parts& parts = *parts_;
  parts.executor = co_await asio::this_coro::executor;
  Site* site = site_.get();
  parts.watch(site, kNodes, &site->nodes);
  parts.watch(site, kPods, &site->pods);
  parts.watch(site, kConfigMaps, &site->configmaps);
  parts.watch(site, kDaemonSets, &site->daemonsets);
  parts.watch(site, kControllerRevisions, &site->revisions);
  parts.watch(site, kClusterPolicies, &site->clusterpolicies);
  parts.watch(site, kNodeFeatures, &site->nodefeatures, parts.options.timing.nfd_api);
  parts.spawn(site->agenda.run());
  for (auto& watcher : parts.watchers) parts.spawn(watcher->run());
  for (Actor* actor : parts.actors) parts.spawn(actor->run());
  for (auto& [name, node] : parts.nodes) play(node.get());

  const bool stopped = co_await parts.stop->wait_until(k8s::MonoTime::never());
  (void)stopped;
  site->agenda.stop();
  for (auto& watcher : parts.watchers) watcher->stop();
  parts.executor.reset();
  for (Actor* actor : parts.actors) actor->stop();
  for (auto& [name, node] : parts.nodes) node->stop();
  while (parts.tasks.running > 0) {
    const bool one_ended = co_await parts.tasks.ended->wait_until(k8s::MonoTime::never());
    (void)one_ended;
  }
}

void Fleet::stop() {
  parts_->stop->notify();
}

bool Fleet::crash(std::string_view node_name, std::string_view daemonset, std::string_view container) {
  NodeAgent* agent = node(node_name);
  PodRunner* pod = agent == nullptr ? nullptr : agent->pod_of(daemonset);
  return pod != nullptr && pod->crash(container);
}

NodeAgent* Fleet::node(std::string_view name) {
  auto it = parts_->nodes.find(name);
  return it == parts_->nodes.end() ? nullptr : it->second.get();
}

DriverUpgrader& Fleet::driver_upgrader() {
  return parts_->driver_upgrader;
}

DraDriver& Fleet::dra_driver() {
  return parts_->dra_driver;
}

Scheduler& Fleet::scheduler() {
  return parts_->scheduler;
}

ClusterAutoscaler& Fleet::autoscaler() {
  return parts_->autoscaler;
}

std::map<std::string, std::size_t> Fleet::pods_run(const std::string& daemonset) const {
  std::map<std::string, std::size_t> counts;
  for (auto& [name, agent] : parts_->nodes)
    if (const std::size_t count = agent->uids_seen(daemonset).size(); count > 0) counts[name] = count;
  return counts;
}

}  // namespace gso::sim
