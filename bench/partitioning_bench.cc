// CPU of a plan of slices at scale: 5,000 GPUs on 625 nodes, half of them in use and with 40 pods that need CPUs on
// each, and 2,000 pending pods of mixed sizes, priorities, node selectors and CPUs; and 2,400 GPUs with 1,000 pods that
// ask for two slices each, of 79 sizes. Pure planning, no server. Fails if a first plan takes a second or longer.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/partitioning/partitioning.h"
#include "reconcilers/registry.h"

namespace {

using namespace gso;

struct Shape {
  int nodes = 0;
  int pods = 0;
  int sizes = 0;
  int step = 0;  // GiB between two sizes.
  int slices = 0;
};
constexpr Shape kShapes[] = {{625, 2000, 16, 5, 1}, {300, 1000, 79, 1, 2}};
constexpr int kGpusOfEach = 8;
constexpr int kOthersOfEach = 40;
constexpr double kMostMs = 1000;

constexpr std::string_view kPlugin = R"({"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"plugin",
  "namespace":"nebuly-nvidia","uid":"ds","resourceVersion":"1","generation":1},"spec":{"selector":{"matchLabels":
  {"app":"p"}},"template":{"metadata":{"labels":{"app":"p"}},"spec":{"nodeSelector":
  {"nos.nebuly.com/gpu-partitioning":"mps"},"containers":[{"name":"nvidia-device-plugin-sidecar","image":"p:0.13.0",
  "command":["config-manager"],"env":[{"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"}],"volumeMounts":
  [{"name":"available-configs","mountPath":"/available-configs"}]},{"name":"nvidia-device-plugin-ctr","image":
  "p:0.13.0"}],"volumes":[{"name":"available-configs","configMap":{"name":"nos-device-plugin-configs"}}]}}}})";
constexpr std::string_view kConfigMap = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":
  "nos-device-plugin-configs","namespace":"nebuly-nvidia","uid":"cm","resourceVersion":"1"},"data":{}})";

double cpu_ms() {
  return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

int any(std::mt19937& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

Node node(std::mt19937& random, int n) {
  Node out;
  out.meta.name = fmt::format("n{:04}", n);
  out.meta.uid = "uid-" + out.meta.name;
  out.meta.resource_version = "1";
  out.meta.labels = StringMap{{kNosPartitioning, "mps"},
                              {"nvidia.com/gpu.count", std::to_string(kGpusOfEach)},
                              {kGpuMemory, "81920"},
                              {"pool", n % 2 == 0 ? "even" : "odd"}};
  out.ready = true;
  out.room = {.memory = std::int64_t{1} << 40, .cpu = 96'000, .pods = 110};
  for (int g = 0; g < kGpusOfEach; ++g) {
    if (any(random, 0, 1) == 0) continue;
    out.meta.annotations.set(fmt::format("{}{}-{}gb-used", kNosStatusPrefix, g, any(random, 1, 7) * 5), "1");
    out.meta.annotations.set(fmt::format("{}{}-10gb-free", kNosStatusPrefix, g), "1");
  }
  return out;
}

SlicePod pod(std::mt19937& random, const Shape& shape, int p) {
  SlicePod out;
  out.meta.name = fmt::format("p{:04}", p);
  out.meta.ns = Interned("team");
  out.meta.uid = "uid-" + out.meta.name;
  out.meta.resource_version = "1";
  out.phase = Interned("Pending");
  out.unschedulable = true;
  out.priority = any(random, 0, 2) * 100;
  out.needs = {.cpu = 500 * (1 + p % 8), .memory = std::int64_t{1} << 30};
  std::vector<SliceRequest> requests;
  std::vector<std::int64_t> slices;
  for (int i = 0; i < shape.slices; ++i) {
    slices.push_back(std::int64_t{any(random, 1, shape.sizes)} * shape.step);
    requests.push_back({fmt::format("main-{}", i), slices.back(), 1});
  }
  std::ranges::sort(slices);
  out.requests = std::move(requests);
  out.slices = std::move(slices);
  if (p % 4 == 0)
    out.node_selector = std::vector<StringMap::Entry>{{Interned("pool"), Interned(p % 8 == 0 ? "even" : "odd")}};
  return out;
}

// One of those that ask for no GPU.
SlicePod other(int n, int p) {
  SlicePod out;
  out.meta.name = fmt::format("other-{:04}-{}", n, p);
  out.meta.ns = Interned("kube-system");
  out.meta.uid = "uid-" + out.meta.name;
  out.meta.resource_version = "1";
  out.phase = Interned("Running");
  out.node_name = Interned(fmt::format("n{:04}", n));
  out.priority = 1000;
  out.needs = {.cpu = 1500, .memory = std::int64_t{1} << 30};
  return out;
}

void fill(World& world, const Shape& shape) {
  std::mt19937 random(19);
  world.daemonsets.init_apply(project_daemonset(kPlugin).value());
  world.daemonsets.init_done();
  world.configmaps.init_apply(project_configmap(kConfigMap).value());
  world.configmaps.init_done();
  for (int n = 0; n < shape.nodes; ++n) {
    world.nodes.init_apply(node(random, n));
    world.partitioning.nodes_known.insert(fmt::format("n{:04}", n));
    for (int p = 0; p < kOthersOfEach; ++p) world.partitioning.pods.init_apply(other(n, p));
  }
  world.nodes.init_done();
  for (int p = 0; p < shape.pods; ++p) world.partitioning.pods.init_apply(pod(random, shape, p));
  world.partitioning.pods.init_done();
  world.partitioning.leases.init_done();
  world.partitioning.pending_known = world.partitioning.leases_known = true;
}

// How long the first plan takes.
double plan_repeatedly(const Shape& shape) {
  World world;
  FleetIndex index;
  index.attach(world);
  fill(world, shape);
  fmt::print("{} nodes, {} pods with {} of {} sizes\n", shape.nodes, shape.pods, shape.slices, shape.sizes);
  const PlannerSettings settings;
  const std::map<std::string, NodeConsumers> consumers;
  const WallTime now{std::chrono::seconds(1'780'000'000)};
  Timers timers;
  double first = 0;
  for (const char* what : {"first plan", "the batch window has closed", "the same again"}) {
    const double begun = cpu_ms();
    const Snapshot snapshot{world, now, timers, consumers, settings};
    const Plan plan = plan_all(snapshot, index, {.only = kNodePartitioning, .synced = everything_synced});
    const double took = cpu_ms() - begun;
    if (first == 0) first = took;
    std::size_t keys = 0;
    for (const PlannedAction& planned : plan.actions)
      if (const auto* patch = std::get_if<PatchConfigMap>(&planned.action)) keys += patch->set.size();
    fmt::print("  {:<40} {:8.1f} ms CPU, {} Events and writes, {} keys, {} findings\n", what, took, plan.actions.size(),
               keys, plan.findings.size());
    for (const TimerKey& timer : plan.timers) timers.try_emplace(timer, now - std::chrono::hours(1));
  }
  return first;
}

}  // namespace

int main() {
  return std::ranges::all_of(kShapes, [](const Shape& shape) { return plan_repeatedly(shape) < kMostMs; }) ? 0 : 1;
}
