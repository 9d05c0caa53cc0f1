// A cluster of labelled nodes as manifests, and what nos's device plugin, its gpu-agent and the kubelet make of a plan.
// Documents are read here by rules of their own, not by the product's.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/partitioning.h"

namespace gso::testing {

using Json = nlohmann::json;
using Sizes = std::map<int, int>;     // GB -> how many.
using Slices = std::map<int, Sizes>;  // By GPU index.

inline constexpr const char* kConfig = "nvidia.com/device-plugin.config";
inline constexpr const char* kPresent = "nos.nebuly.com/gpu-partitioning";
inline constexpr const char* kFormer = "nos.nebuly.ai/gpu-partitioning";
inline constexpr const char* kMark = "gpusharing.dev/partitioning";

struct PodOptions {
  int priority = 0;
  std::string node = {};  // Bound there and running; empty: pending.
  Json spec = Json::object();
};

class SliceCluster {
 public:
  SliceCluster();

  // `used` and `free`: what the agent reports; the node's label then names a key of nos with these slices.
  Json& node(const std::string& name, int gpus, int memory_mib, const Slices& used = {}, const Slices& free = {});
  // One container for each slice.
  Json& pod(const std::string& name, const std::vector<int>& slices, const PodOptions& options = {});
  Json& object(const std::string& kind, const std::string& name);
  void remove(const std::string& kind, const std::string& name);
  Json& labels(const std::string& node) { return object("Node", node)["metadata"]["labels"]; }
  Json& annotations(const std::string& node) { return object("Node", node)["metadata"]["annotations"]; }
  Json& keys_and_texts() { return object("ConfigMap", "nos-device-plugin-configs")["data"]; }
  // The scheduler binds the pod, and it runs.
  void bind(const std::string& pod, const std::string& node);

  // One pass at the present time; timers run on from pass to pass as the runtime keeps them.
  Plan plan();
  // Applies the writes. Where `reports` is true, nodes show the slices of their new key at once.
  void apply(const Plan& plan, bool reports = true);
  void report(const std::string& node);
  void wait(std::chrono::seconds passed) { now_ += passed; }
  // The operator's wall clock is set; its own measures on.
  void step_wall_clock(std::chrono::seconds by);
  // So many passes, each after that time, whose plans are carried out. Returns the last plan.
  Plan pass(int passes, std::chrono::seconds apart, bool reports = true);
  // Passes two minutes apart, which nodes do not report, until that node's label moves. Returns its key before.
  std::string move(const std::string& node);
  // Passes five minutes apart until two in succession write nothing; returns how many wrote. Fails the test when the
  // invariants of a step do not hold, or when it never becomes silent.
  int settle();

  [[nodiscard]] Slices used(const std::string& node) const { return reported(node, "used"); }
  [[nodiscard]] Slices free(const std::string& node) const { return reported(node, "free"); }
  [[nodiscard]] std::string label(const std::string& node) const;
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] const std::set<std::string>& touched() const { return touched_; }
  [[nodiscard]] WallTime now() const { return now_; }

  PlannerSettings settings;
  PartitioningMode mode = PartitioningMode::enforce;

 private:
  [[nodiscard]] Slices reported(const std::string& node, const std::string& status) const;
  void check_fits(const std::string& node, const Slices& slices);

  std::map<std::string, Json> objects_;  // "Kind/name"
  std::set<std::string> touched_;
  Timers timers_;
  WallTime now_{std::chrono::seconds(1'780'000'000)};
  int serial_ = 100;
  bool first_ = true;
};

// The slices of a document in the form of nos's device plugin.
[[nodiscard]] Slices slices_of_document(const std::string& text);
// How many of that size there are on all GPUs.
[[nodiscard]] int total(const Slices& slices, int size);
[[nodiscard]] std::vector<PatchNode> patches_in(const Plan& plan);
// "PatchConfigMap", "PatchNode n1", without Events.
[[nodiscard]] std::vector<std::string> writes_of(const Plan& plan);
// The notes of the Events about that pod or node.
[[nodiscard]] std::vector<std::string> events_about(const Plan& plan, const std::string& name);
// The messages of the findings about that object.
[[nodiscard]] std::vector<std::string> findings_about(const Plan& plan, const std::string& name);

}  // namespace gso::testing
