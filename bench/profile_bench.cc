// What lint and planning cost in CPU time, in one process: 1,000 profiles, and 5,000 nodes with one edited ConfigMap.
//
//   profile_bench lint | plan
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "controller/commands/commands.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/registry.h"

namespace {

using namespace gso;

constexpr int kProfiles = 1000;
constexpr int kNodes = 5000;

double cpu_ms() {
  return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// The least of several runs, in milliseconds of CPU.
template <class Work>
double measured(int runs, Work work) {
  double best = 0;
  for (int i = 0; i < runs; ++i) {
    const double from = cpu_ms();
    work(i);
    const double took = cpu_ms() - from;
    best = i == 0 ? took : std::min(best, took);
  }
  return best;
}

std::string profile(int replicas) {
  return fmt::format(
      "# Shared pool\nversion: v1\nflags:\n  migStrategy: none\n  plugin:\n    passDeviceSpecs: true\nsharing:\n  "
      "mps:\n"
      "    renameByDefault: false\n    resources:\n    - name: nvidia.com/gpu\n      replicas: {}\n",
      replicas);
}

int lint() {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("profile-bench-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::string map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: profiles, namespace: gpu-operator}\ndata:\n";
  for (int i = 0; i < kProfiles; ++i) {
    const std::string text = profile(2 + i % 40);
    std::ofstream(folder / fmt::format("{:04}.yaml", i)) << text;
    map += fmt::format("  key-{:04}: |\n", i);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) map += "    " + line + "\n";
  }
  std::istringstream none;
  std::ostringstream out;
  int status = 0;
  const double files =
      measured(5, [&](int) { status |= run_lint({.files = {folder.string()}}, none, out, std::cerr); });
  const double json =
      measured(5, [&](int) { status |= run_lint({.files = {folder.string()}, .json = true}, none, out, std::cerr); });
  const double keys = measured(5, [&](int) {
    std::istringstream in(map);
    status |= run_lint({.files = {"-"}, .json = true}, in, out, std::cerr);
  });
  std::filesystem::remove_all(folder);
  fmt::print(
      "lint of {} profiles: {:.0f} ms as files, {:.0f} ms as files with JSON output, {:.0f} ms as keys of one "
      "ConfigMap "
      "(CPU; the bar is 500 ms)\n",
      kProfiles, files, json, keys);
  return status;
}

std::string daemonset(std::string_view name, std::string_view container, std::string_view selector) {
  return fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{{"name":"{0}","namespace":"gpu-operator","uid":"uid-{0}","ownerReferences":[{{"apiVersion":"nvidia.com/v1","kind":"ClusterPolicy","name":"cluster-policy","uid":"cp","controller":true}}]}},"spec":{{"selector":{{"matchLabels":{{"app":"{0}"}}}},"template":{{"spec":{{"nodeSelector":{{{2}}},"containers":[{{"name":"{1}","image":"nvcr.io/nvidia/k8s-device-plugin:v0.20.0","env":[{{"name":"MPS_ROOT","value":"/run/nvidia/mps"}}]}},{{"name":"config-manager","env":[{{"name":"CONFIG_FILE_SRCDIR","value":"/c"}},{{"name":"DEFAULT_CONFIG","value":"any"}}],"volumeMounts":[{{"name":"v","mountPath":"/c"}}]}}],"volumes":[{{"name":"v","configMap":{{"name":"mps-config"}}}}]}}}}}}}})",
      name, container, selector);
}

std::string pod(std::string_view of, int node) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{0}-{1}","namespace":"gpu-operator","labels":{{"app":"{0}"}},"creationTimestamp":"2026-01-01T00:10:00Z","ownerReferences":[{{"apiVersion":"apps/v1","kind":"DaemonSet","name":"{0}","uid":"uid-{0}","controller":true}}]}},"spec":{{"nodeName":"gpu-{1:05}"}},"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True"}}]}}}})",
      of, node);
}

// A node as large as kubectl shows them: some 60 labels, images left out.
std::string node(int i) {
  std::string labels;
  for (int k = 0; k < 48; ++k) labels += fmt::format(R"("feature.node.kubernetes.io/cpu-cpuid.FEATURE{}":"true",)", k);
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"gpu-{0:05}","labels":{{{1}"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"8","nvidia.com/gpu.product":"NVIDIA-A100-SXM4-40GB-SHARED","nvidia.com/gpu.replicas":"4","nvidia.com/gpu.sharing-strategy":"time-slicing","nvidia.com/gpu.compute.major":"8","nvidia.com/gpu.compute.minor":"0","nvidia.com/mps.capable":"false","kubernetes.io/hostname":"gpu-{0:05}"}}}},"status":{{"conditions":[{{"type":"Ready","status":"True"}}],"capacity":{{"nvidia.com/gpu":"32"}},"allocatable":{{"nvidia.com/gpu":"32"}}}}}})",
      i, labels);
}

std::string config_map(int replicas, std::string_view changed) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"mps-config","namespace":"gpu-operator","creationTimestamp":"{1}"}},"data":{{"any":"version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: {0}\n"}}}})",
      replicas, changed);
}

std::string cluster() {
  std::string items = config_map(4, "2026-01-01T00:00:00Z");
  items += "," + daemonset("plugin", "nvidia-device-plugin", R"("nvidia.com/gpu.present":"true")");
  items += "," + daemonset("gfd", "gpu-feature-discovery", R"("nvidia.com/gpu.present":"true")");
  items += "," + daemonset("mps", "mps-control-daemon-ctr", R"("nvidia.com/mps.capable":"true")");
  for (int i = 0; i < kNodes; ++i) items += "," + node(i) + "," + pod("plugin", i) + "," + pod("gfd", i);
  return R"({"apiVersion":"v1","kind":"List","items":[)" + items + "]}";
}

// What a server makes of the plan's ConfigMaps: the record of the baseline.
void keep_record(const Plan& plan, World& world) {
  for (const PlannedAction& planned : plan.actions) {
    if (const auto* write = std::get_if<WriteConfigMap>(&planned.action)) {
      const ConfigMap* known = world.configmaps.find(write->config_map);
      ConfigMap map = known != nullptr ? *known : ConfigMap{};
      map.meta.name = write->config_map.name;
      map.meta.ns = k8s::Interned(write->config_map.ns);
      for (const auto& [key, text] : write->set) map.data[key] = std::make_shared<const std::string>(text);
      world.configmaps.apply(map);
    }
  }
}

int plan() {
  const std::string text = cluster();
  const WallTime now = *k8s::parse_rfc3339("2026-01-02T00:00:00Z");
  const double load_from = cpu_ms();
  auto loaded = load_manifests({{"cluster.json", text}}, now);
  const double loading = cpu_ms() - load_from;
  if (!loaded) {
    std::cerr << loaded.error().message << '\n';
    return 1;
  }
  World& world = loaded->world;
  const PlannerSettings settings;
  Timers timers;
  const Snapshot snapshot{world, now, timers, loaded->consumers, settings};
  Plan last;
  const double scratch = measured(5, [&](int) {
    FleetIndex index;
    last = plan_all(snapshot, index);
  });
  FleetIndex index;
  index.attach(world);
  for (int i = 0; i < 3; ++i) {
    last = plan_all(snapshot, index);
    keep_record(last, world);
  }
  const auto edited_files = [](int replicas) {
    return std::vector<ManifestFile>{{"edit.json", config_map(replicas, "2026-01-02T00:00:00Z")}};
  };
  std::vector<ConfigMap> edits;
  for (int i = 0; i < 5; ++i) {
    edits.push_back(
        *load_manifests(edited_files(6 + i), now)->world.configmaps.find(ObjectKey{"gpu-operator", "mps-config"}));
    edits.back().meta.resource_version = std::to_string(100 + i);
  }
  double edited = 0;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    world.configmaps.apply(edits[i]);
    const double from = cpu_ms();
    last = plan_all(snapshot, index);
    const double took = cpu_ms() - from;
    edited = i == 0 ? took : std::min(edited, took);
  }
  const double quiet = measured(5, [&](int) { last = plan_all(snapshot, index); });
  fmt::print(
      "plan over {} nodes: {:.0f} ms after one edited ConfigMap ({:.0f} ms from nothing, {:.1f} ms when nothing "
      "changed; "
      "CPU; the bar is 100 ms); loading {:.0f} MB of manifests before: {:.0f} ms; the last plan: {} actions, {} "
      "timers\n",
      kNodes, edited, scratch, quiet, static_cast<double>(text.size()) / 1e6, loading, last.actions.size(),
      last.timers.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "lint") return lint();
  if (what == "plan") return plan();
  std::cerr << "usage: profile_bench lint | plan\n";
  return 2;
}
