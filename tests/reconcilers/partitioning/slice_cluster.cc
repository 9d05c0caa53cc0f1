#include "slice_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <variant>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/registry.h"

namespace gso::testing {

namespace {

constexpr const char* kStatus = "nos.nebuly.com/status-gpu-";

std::string document_of(const Slices& slices) {
  Json resources = Json::array();
  for (const auto& [gpu, sizes] : slices) {
    for (const auto& [size, count] : sizes) {
      resources.push_back({{"name", "nvidia.com/gpu"},
                           {"rename", fmt::format("gpu-{}gb", size)},
                           {"memoryGB", size},
                           {"replicas", count},
                           {"devices", {std::to_string(gpu)}}});
    }
  }
  const Json mps = {{"failRequestsGreaterThanOne", true}, {"resources", resources}};
  return Json({{"version", "v1"}, {"flags", {{"migStrategy", "none"}}}, {"sharing", {{"mps", mps}}}}).dump();
}

Slices joined(const Slices& a, const Slices& b) {
  Slices out = a;
  for (const auto& [gpu, sizes] : b)
    for (const auto& [size, count] : sizes) out[gpu][size] += count;
  return out;
}

void show(Json& node, const Slices& used, const Slices& free) {
  Json notes = Json::object();
  for (const auto& [key, value] : node["metadata"]["annotations"].items())
    if (!key.starts_with(kStatus)) notes[key] = value;
  Json resources = {{"cpu", "96"}};
  std::map<int, int> totals;
  for (const auto& [what, slices] : {std::pair("used", &used), std::pair("free", &free)}) {
    for (const auto& [gpu, sizes] : *slices) {
      for (const auto& [size, count] : sizes) {
        if (count == 0) continue;
        notes[fmt::format("{}{}-{}gb-{}", kStatus, gpu, size, what)] = std::to_string(count);
        totals[size] += count;
      }
    }
  }
  for (const auto& [size, count] : totals) resources[fmt::format("nvidia.com/gpu-{}gb", size)] = std::to_string(count);
  node["metadata"]["annotations"] = notes;
  node["status"]["capacity"] = node["status"]["allocatable"] = resources;
}

}  // namespace

SliceCluster::SliceCluster() {
  objects_["ConfigMap/nos-device-plugin-configs"] = Json::parse(R"({"apiVersion":"v1","kind":"ConfigMap",
    "metadata":{"name":"nos-device-plugin-configs","namespace":"nebuly-nvidia","uid":"cm"},"data":{}})");
  objects_["DaemonSet/nvidia-device-plugin"] = Json::parse(R"({"apiVersion":"apps/v1","kind":"DaemonSet",
    "metadata":{"name":"nvidia-device-plugin","namespace":"nebuly-nvidia","uid":"ds","generation":1},
    "spec":{"selector":{"matchLabels":{"app":"p"}},"template":{"metadata":{"labels":{"app":"p"}},"spec":{
      "nodeSelector":{"nos.nebuly.com/gpu-partitioning":"mps"},
      "containers":[
        {"name":"nvidia-device-plugin-sidecar","image":"ghcr.io/nebuly-ai/k8s-device-plugin:0.13.0",
         "command":["config-manager"],"env":[{"name":"NODE_LABEL","value":"nvidia.com/device-plugin.config"},
           {"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"},
           {"name":"CONFIG_FILE_DST","value":"/config/config.yaml"}],
         "volumeMounts":[{"name":"available-configs","mountPath":"/available-configs"}]},
        {"name":"nvidia-device-plugin-ctr","image":"ghcr.io/nebuly-ai/k8s-device-plugin:0.13.0",
         "env":[{"name":"CONFIG_FILE","value":"/config/config.yaml"}]}],
      "volumes":[{"name":"available-configs","configMap":{"name":"nos-device-plugin-configs"}}]}}}})");
}

Json& SliceCluster::node(const std::string& name, int gpus, int memory_mib, const Slices& used, const Slices& free) {
  Json out = Json::parse(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"annotations": {}}, "spec": {},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]}})");
  out["metadata"]["name"] = name;
  out["metadata"]["uid"] = "uid-" + name;
  out["metadata"]["labels"] = {{kPresent, "mps"},
                               {"nvidia.com/gpu.count", std::to_string(gpus)},
                               {"nvidia.com/gpu.memory", std::to_string(memory_mib)}};
  show(out, used, free);
  if (!used.empty() || !free.empty()) {
    const std::string key = name + "-1700000000";
    keys_and_texts()[key] = document_of(joined(used, free));
    out["metadata"]["labels"][kConfig] = key;
  }
  return objects_["Node/" + name] = out;
}

Json& SliceCluster::pod(const std::string& name, const std::vector<int>& slices, const PodOptions& options) {
  Json spec = options.spec;
  spec["priority"] = options.priority;
  spec["hostIPC"] = true;
  int index = 0;
  for (const int size : slices) {
    spec["containers"].push_back({{"name", fmt::format("c{}", index++)},
                                  {"image", "app:1"},
                                  {"resources", {{"limits", {{fmt::format("nvidia.com/gpu-{}gb", size), "1"}}}}}});
  }
  const Json waits = {{"phase", "Pending"},
                      {"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}}}};
  Json& out = objects_["Pod/" + name] = {{"apiVersion", "v1"},
                                         {"kind", "Pod"},
                                         {"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", "uid-" + name}}},
                                         {"spec", spec},
                                         {"status", waits}};
  if (!options.node.empty()) bind(name, options.node);
  return out;
}

void SliceCluster::bind(const std::string& pod, const std::string& node) {
  Json& object = objects_.at("Pod/" + pod);
  object["spec"]["nodeName"] = node;
  object["status"] = {{"phase", "Running"}, {"conditions", {{{"type", "PodScheduled"}, {"status", "True"}}}}};
}

Json& SliceCluster::object(const std::string& kind, const std::string& name) {
  return objects_[kind + "/" + name];
}

void SliceCluster::remove(const std::string& kind, const std::string& name) {
  objects_.erase(kind + "/" + name);
}

Plan SliceCluster::plan() {
  std::vector<ManifestFile> files;
  for (const auto& [key, object] : objects_) files.push_back({key, object.dump()});
  const k8s::Result<LoadedManifests> loaded = load_manifests(files, now_);
  if (!loaded) {
    ADD_FAILURE() << loaded.error().message;
    return {};
  }
  FleetIndex index;
  const Snapshot snapshot{loaded->world, now_, timers_, loaded->consumers, settings, nullptr, first_};
  first_ = false;
  Plan out =
      plan_all(snapshot, index, {.only = "node.partitioning", .synced = everything_synced, .partitioning = mode});
  Timers next;
  for (const TimerKey& timer : out.timers) {
    const auto known = timers_.find(timer);
    const auto start = out.timer_starts.find(timer);
    next[timer] = known != timers_.end() ? known->second : start != out.timer_starts.end() ? start->second : now_;
  }
  timers_ = next;
  return out;
}

void SliceCluster::step_wall_clock(std::chrono::seconds by) {
  now_ += by;
  for (auto& [timer, since] : timers_) since += by;
}

void SliceCluster::check_fits(const std::string& name, const Slices& slices) {
  const Json& labels = object("Node", name)["metadata"]["labels"];
  const int memory = std::stoi(labels["nvidia.com/gpu.memory"].get<std::string>());
  for (const auto& [gpu, sizes] : slices) {
    EXPECT_LT(gpu, std::stoi(labels["nvidia.com/gpu.count"].get<std::string>())) << name;
    int sum = 0;
    for (const auto& [size, count] : sizes) sum += size * count;
    EXPECT_LE(sum * 1024, memory) << "overcommit on GPU " << gpu << " of node " << name;
  }
  for (const auto& [gpu, sizes] : used(name)) {
    for (const auto& [size, count] : sizes) {
      const int there = slices.contains(gpu) && slices.at(gpu).contains(size) ? slices.at(gpu).at(size) : 0;
      EXPECT_GE(there, count) << "used slices of " << size << " GB shrink on GPU " << gpu << " of node " << name;
    }
  }
}

void SliceCluster::apply(const Plan& plan, bool reports) {
  for (const PlannedAction& planned : plan.actions) {
    if (const auto* keys = std::get_if<PatchConfigMap>(&planned.action)) {
      for (const auto& [key, text] : keys->set) keys_and_texts()[key] = text;
      for (const std::string& key : keys->remove) {
        for (const auto& [id, object] : objects_) {
          if (!id.starts_with("Node/")) continue;
          EXPECT_NE(label(id.substr(5)), key) << "a key that a label names is removed";
        }
        keys_and_texts().erase(key);
      }
    } else if (const auto* patch = std::get_if<PatchNode>(&planned.action)) {
      Json& meta = object("Node", patch->name)["metadata"];
      for (const auto& [key, value] : patch->set) meta["labels"][key] = value;
      for (const std::string& key : patch->remove) meta["labels"].erase(key);
      for (const auto& [key, value] : patch->set_annotations) meta["annotations"][key] = value;
      for (const std::string& key : patch->remove_annotations) meta["annotations"].erase(key);
      meta["resourceVersion"] = std::to_string(++serial_);
      touched_.insert(patch->name);
      const std::string key = label(patch->name);
      if (key.empty()) continue;
      EXPECT_LE(key.size(), 63U);
      EXPECT_TRUE(keys_and_texts().contains(key)) << "the label names a key that is not there: " << key;
      check_fits(patch->name, slices_of_document(keys_and_texts()[key]));
      if (reports) report(patch->name);
    }
  }
}

void SliceCluster::report(const std::string& name) {
  const Slices all = slices_of_document(keys_and_texts()[label(name)]);
  const Slices busy = used(name);
  Slices free = all;
  for (const auto& [gpu, sizes] : busy)
    for (const auto& [size, count] : sizes) free[gpu][size] -= count;
  show(object("Node", name), busy, free);
}

Plan SliceCluster::pass(int passes, std::chrono::seconds apart, bool reports) {
  Plan out;
  for (int i = 0; i < passes; ++i) {
    wait(apart);
    out = plan();
    apply(out, reports);
  }
  return out;
}

std::string SliceCluster::move(const std::string& node) {
  std::string before = label(node);
  for (int i = 0; i < 6 && label(node) == before; ++i) pass(1, std::chrono::minutes(2), false);
  EXPECT_NE(label(node), before);
  return before;
}

int SliceCluster::settle() {
  constexpr int kMost = 24;
  int wrote = 0;
  int silent = 0;  // In succession: timers that a pass has just named may come due in the next one.
  for (int pass = 0; pass < kMost && silent < 2; ++pass) {
    const Plan step = plan();
    const bool writes = !writes_of(step).empty();
    silent = writes ? 0 : silent + 1;
    wrote += writes ? 1 : 0;
    apply(step);
    wait(std::chrono::minutes(5));
  }
  EXPECT_EQ(silent, 2) << "not silent after " << kMost << " passes";
  return wrote;
}

std::string SliceCluster::label(const std::string& node) const {
  const Json& labels = objects_.at("Node/" + node)["metadata"]["labels"];
  return labels.contains(kConfig) ? labels[kConfig].get<std::string>() : std::string();
}

std::vector<std::string> SliceCluster::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, text] : objects_.at("ConfigMap/nos-device-plugin-configs")["data"].items()) out.push_back(key);
  return out;
}

Slices SliceCluster::reported(const std::string& node, const std::string& status) const {
  Slices out;
  for (const auto& [key, value] : objects_.at("Node/" + node)["metadata"]["annotations"].items()) {
    int gpu = 0;
    int size = 0;
    char what[8] = {};
    if (std::sscanf(key.c_str(), "nos.nebuly.com/status-gpu-%d-%dgb-%4s", &gpu, &size, what) != 3) continue;
    if (status == what) out[gpu][size] = std::stoi(value.get<std::string>());
  }
  return out;
}

Slices slices_of_document(const std::string& text) {
  Slices out;
  for (const YAML::Node& entry : YAML::Load(text)["sharing"]["mps"]["resources"]) {
    const int size = entry["memoryGB"].as<int>();
    EXPECT_EQ(entry["rename"].as<std::string>(), fmt::format("gpu-{}gb", size));
    EXPECT_EQ(entry["devices"].size(), 1U);
    out[entry["devices"][0].as<int>()][size] += entry["replicas"].as<int>();
  }
  return out;
}

int total(const Slices& slices, int size) {
  int out = 0;
  for (const auto& [gpu, sizes] : slices) out += sizes.contains(size) ? sizes.at(size) : 0;
  return out;
}

std::vector<PatchNode> patches_in(const Plan& plan) {
  std::vector<PatchNode> out;
  for (const PlannedAction& planned : plan.actions)
    if (const auto* patch = std::get_if<PatchNode>(&planned.action)) out.push_back(*patch);
  return out;
}

std::vector<std::string> writes_of(const Plan& plan) {
  std::vector<std::string> out;
  for (const PatchNode& patch : patches_in(plan)) out.push_back("PatchNode " + patch.name);
  for (const PlannedAction& planned : plan.actions)
    if (std::holds_alternative<PatchConfigMap>(planned.action)) out.emplace_back("PatchConfigMap");
  return out;
}

std::vector<std::string> events_about(const Plan& plan, const std::string& name) {
  std::vector<std::string> out;
  for (const PlannedAction& planned : plan.actions) {
    const auto* event = std::get_if<RecordEvent>(&planned.action);
    if (event != nullptr && event->regarding.name == name) out.push_back(event->why.message);
  }
  return out;
}

std::vector<std::string> findings_about(const Plan& plan, const std::string& name) {
  std::vector<std::string> out;
  for (const Finding& finding : plan.findings)
    if (finding.object.name == name) out.push_back(finding.why.message);
  return out;
}

}  // namespace gso::testing
