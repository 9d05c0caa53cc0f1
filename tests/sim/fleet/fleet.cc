#include "tests/sim/fleet/fleet.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <nlohmann/json.hpp>
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
  Parts(Site* site, FleetOptions fleet_options)
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
        nos_partitioner(site),
        workload(site, options.workload),
        tasks(site->clock),
        stop(site->clock->make_signal()) {}

  void watch(Site* site, const k8s::Gvr& gvr, Mirror* mirror) {
    k8s::WatcherOptions watcher_options;
    watcher_options.first_backoff = std::chrono::milliseconds(200);
    watcher_options.last_backoff = std::chrono::seconds(2);
    watcher_options.absent_retry = std::chrono::milliseconds(300);
    watchers.push_back(std::make_unique<k8s::Watcher>(site->client, gvr, std::move(watcher_options), mirror));
  }
  void spawn(const asio::any_io_executor& executor, asio::awaitable<void> task) {
    ++tasks.running;
    asio::co_spawn(executor, counted(&tasks, std::move(task)), asio::detached);
  }

  FleetOptions options;
  std::map<std::string, std::unique_ptr<NodeAgent>, std::less<>> nodes;
  NfdMaster nfd;
  NfdWorker nfd_worker;
  DaemonSetController daemonsets;
  GpuOperator gpu_operator;
  DriverUpgrader driver_upgrader;
  MigManager mig_manager;
  DraDriver dra_driver;
  Scheduler scheduler;
  NosPartitioner nos_partitioner;
  Workload workload;
  std::vector<std::unique_ptr<k8s::Watcher>> watchers;
  Tasks tasks;
  std::unique_ptr<k8s::Signal> stop;
};

Fleet::Fleet(k8s::ApiClient* client, k8s::Clock* clock, FleetOptions options)
    : site_(std::make_unique<Site>(client, clock, options.timing)) {
  if (options.workload.nodes.empty()) {
    for (const NodeSpec& node : options.nodes) options.workload.nodes.push_back(node.name);
  }
  parts_ = std::make_unique<Parts>(site_.get(), std::move(options));
  for (const NodeSpec& spec : parts_->options.nodes) {
    auto publish = [this, name = spec.name](const PodSpec& pod,
                                            std::optional<std::map<std::string, std::string>> labels) {
      if (site_->faults.feature_files) return parts_->nfd_worker.file_changed(name, std::move(labels));
      if (labels) parts_->nfd.publish(name, pod, *labels);
    };
    parts_->nodes[spec.name] =
        std::make_unique<NodeAgent>(site_.get(), spec, parts_->options.act_as_controllers, std::move(publish));
  }
  connect();
}

Fleet::~Fleet() = default;

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
  const auto executor = co_await asio::this_coro::executor;
  Parts& parts = *parts_;
  Site* site = site_.get();
  parts.watch(site, kNodes, &site->nodes);
  parts.watch(site, kPods, &site->pods);
  parts.watch(site, kConfigMaps, &site->configmaps);
  parts.watch(site, kDaemonSets, &site->daemonsets);
  parts.watch(site, kControllerRevisions, &site->revisions);
  parts.watch(site, kClusterPolicies, &site->clusterpolicies);
  parts.watch(site, kNodeFeatures, &site->nodefeatures);
  parts.spawn(executor, site->agenda.run());
  for (auto& watcher : parts.watchers) parts.spawn(executor, watcher->run());
  parts.spawn(executor, parts.nfd.run());
  parts.spawn(executor, parts.daemonsets.run());
  parts.spawn(executor, parts.gpu_operator.run());
  parts.spawn(executor, parts.driver_upgrader.run());
  parts.spawn(executor, parts.mig_manager.run());
  parts.spawn(executor, parts.dra_driver.run());
  parts.spawn(executor, parts.scheduler.run());
  parts.spawn(executor, parts.nos_partitioner.run());
  parts.spawn(executor, parts.workload.run());
  for (auto& [name, node] : parts.nodes) {
    parts.spawn(executor, node->run());
    node->begin();
    if (node->spec().nfd) parts.nfd.add_node(name);
  }
  parts.workload.begin();

  const bool stopped = co_await parts.stop->wait_until(k8s::MonoTime::never());
  (void)stopped;
  site->agenda.stop();
  for (auto& watcher : parts.watchers) watcher->stop();
  parts.nfd.stop();
  parts.daemonsets.stop();
  parts.gpu_operator.stop();
  parts.driver_upgrader.stop();
  parts.mig_manager.stop();
  parts.dra_driver.stop();
  parts.scheduler.stop();
  parts.nos_partitioner.stop();
  parts.workload.stop();
  for (auto& [name, node] : parts.nodes) node->stop();
  while (parts.tasks.running > 0) {
    const bool one_ended = co_await parts.tasks.ended->wait_until(k8s::MonoTime::never());
    (void)one_ended;
  }
}

void Fleet::stop() {
  parts_->stop->notify();
}

bool Fleet::crash(std::string_view node_name, std::string_view daemonset, std::string_view container, int code) {
  NodeAgent* agent = node(node_name);
  PodRunner* pod = agent == nullptr ? nullptr : agent->pod_of(daemonset);
  return pod != nullptr && pod->crash(container, code, "");
}

NodeAgent* Fleet::node(std::string_view name) {
  auto it = parts_->nodes.find(name);
  return it == parts_->nodes.end() ? nullptr : it->second.get();
}

Workload& Fleet::workload() {
  return parts_->workload;
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

NosPartitioner& Fleet::nos_partitioner() {
  return parts_->nos_partitioner;
}

std::map<std::string, std::size_t> Fleet::pods_run(const std::string& daemonset) const {
  std::map<std::string, std::size_t> counts;
  for (auto& [name, agent] : parts_->nodes) {
    if (const std::size_t count = agent->uids_seen(daemonset).size(); count > 0) counts[name] = count;
  }
  return counts;
}

std::string Fleet::last_error() const {
  for (const Mirror* mirror : {&site_->nodes, &site_->pods, &site_->configmaps, &site_->daemonsets, &site_->revisions,
                               &site_->clusterpolicies, &site_->nodefeatures}) {
    if (!mirror->last_error().empty()) return mirror->last_error();
  }
  return {};
}

}  // namespace gso::sim
