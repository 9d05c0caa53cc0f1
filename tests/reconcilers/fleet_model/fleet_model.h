// FleetModel: a small fleet under the GPU Operator's layout for planner tests. It holds the World that planners see,
// changes it like a cluster after each action, and owns time. One second is one tick; nothing runs by itself.
//
//   FleetModel fleet(spec);             // a running fleet
//   fleet.settle();                     // ticks until nothing is planned any more
//   fleet.edit("any", "mps-8");
//   Plan plan = fleet.plan();           // or fleet.tick(), which plans, applies and advances
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "tests/sim/fleet/plugin_config.h"

namespace gso::test {

// The value; throws what went wrong, which ends the test.
template <class T>
T must(k8s::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

struct NodeSpec {
  std::string name;
  std::int64_t gpus = 2;
  std::string product = "NVIDIA-A100-SXM4-40GB";
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  bool gfd = true;   // False: no GPU Feature Discovery there.
  bool mig = false;  // MIG single: `gpus` MIG devices of profile 1g.5gb.
  bool ready = true;
  bool cordoned = false;
};

// Who has installed the device plugin: it decides the DaemonSets' owners and selectors.
enum class Installed {
  by_gpu_operator,
  by_chart,
  by_manifest,
  by_manifest_without_profiles,  // Its pods mount no ConfigMap.
  for_dra,                       // The GPU Operator, with a GPUCluster beside the ClusterPolicy.
  by_nos,
};

struct FleetSpec {
  Installed installed = Installed::by_gpu_operator;
  std::string plugin = "v0.20.0";
  std::string default_key = "any";
  std::string fallback = "empty";
  // Texts, or short names: none, broken, mps-8, mps-8-renamed, mps-8-many, ts-4, ts-4-renamed.
  std::map<std::string, std::string> profiles = {{"any", "mps-4"}};
  std::vector<NodeSpec> nodes;
  bool on_delete = false;
  bool crds = true;
  bool immutable = false;    // The plugin's ConfigMap.
  Duration api_behind{0};    // How far the API server's clock, which dates edits, is behind the operator's.
  std::string mig_strategy;  // MIG_STRATEGY of the plugin.
  bool mps_root = true;      // MPS_ROOT of the plugin.
};

[[nodiscard]] std::string profile_text(std::string_view name_or_text);
// "n01" … with 2 GPUs each.
[[nodiscard]] std::vector<NodeSpec> alike_nodes(int count, std::string_view product = "NVIDIA-A100-SXM4-40GB",
                                                std::string_view prefix = "n");

class FleetModel {
 public:
  explicit FleetModel(FleetSpec spec);

  World world;
  PlannerSettings settings;
  std::map<std::string, NodeConsumers> consumers;  // As listed; `use` puts pods there.
  std::map<std::string, std::string> unlistable;   // Nodes whose lists fail, and the error.
  Timers timers;
  bool first_look = true;
  k8s::Duration operator_ahead{0};  // How far the operator's wall clock is ahead of the cluster's; step_wall_clock().
  std::map<std::string, std::string> refused_writes;  // Snapshot::refused_writes; such a node's pods are not deleted.
  WallTime now;
  FleetIndex index;

  // Plans like the runtime: timers are kept for the next pass. Applies nothing.
  Plan plan();
  // The same plan once more, without keeping timers.
  [[nodiscard]] Plan plan_again();
  // That, with a new index, over `seen`: the world, or one with the same objects.
  [[nodiscard]] Plan plan_from_scratch(const World& seen) const;
  void apply(const Plan& plan);
  void apply(const PlannedAction& planned);
  // Time passes and the cluster works: pods are created and become Ready, reload, and labels and capacity follow.
  void advance(Duration duration);
  // plan, apply, one second. Returns the plan.
  Plan tick();
  // Ticks until neither planner nor cluster has anything to do, at most `limit` ticks. True when quiet.
  bool settle(int limit = 2000);
  std::function<void(const Plan&)> on_plan;  // Called by tick() before applying.

  // --- What people do.
  void edit(const std::string& key, std::string_view profile);
  void remove_key(const std::string& key);
  // As kubectl replace, or a GitOps tool that prunes: nothing of the operator remains in it.
  void replace_config_map(const std::map<std::string, std::string>& profiles);
  // A generator of names (kustomize): a new ConfigMap beside the old one, named in the ClusterPolicy and rolled by the
  // GPU Operator.
  void generate_config_map(const std::string& name, const std::map<std::string, std::string>& profiles);
  void write_record(const std::string& text);  // Into the operator's state ConfigMap.
  void annotate_state(std::string_view key, const std::string& value);
  // The operator's CRDs are deleted with all their objects, or installed again.
  void serve_crds(bool served);
  void delete_rollouts();  // kubectl delete sharingrollouts --all
  // The node is rebooted and then has that number of GPUs: plugin and GFD both count them.
  void reboot_with_gpus(const std::string& node, std::int64_t gpus);
  void drop_config_map();                 // kubectl patch clusterpolicy, config: null; rolled by the GPU Operator.
  void set_daemonsets_there(bool there);  // false: deleted, with all of their pods left; true: created again.
  void label(const std::string& node, const std::string& key, std::optional<std::string> value);
  void annotate(const std::string& node, std::string_view key, std::optional<std::string> value);
  void annotate_config_map(std::string_view key, std::optional<std::string> value);
  void announce_default(const std::string& key);  // kubectl patch clusterpolicy
  void forbid_clusterpolicies(bool forbidden);    // 403 on them, as the manager reports it.
  void roll_templates(const std::string& key);    // What the GPU Operator then does.
  // Rolls back to the template before the last one: its ControllerRevisions keep their creation times.
  void roll_templates_back(const std::string& key);
  void policy(const std::string& yaml);  // kubectl apply
  void remove_policy(const std::string& name);
  void rollout_switch(const std::string& name, std::string_view field, bool value);
  void undo_newest_rollout(const std::string& policy);
  void forget_finished_rollouts();
  void lose_rollout_status();  // As after a restore from a backup: the objects exist, without their status.
  // A pod of a ReplicaSet, in namespace `jobs`.
  void use(const std::string& node, const std::string& pod, const std::string& resource, std::int64_t count,
           const std::map<std::string, std::string>& annotations = {});
  void use_bare(const std::string& node, const std::string& pod);  // Uses one GPU; no controller creates it again.
  void taint(const std::string& node, const std::vector<Taint>& taints);  // Replaces the node's taints.
  // A member of a batch/v1 Job, in namespace `jobs`.
  void use_by_job(const std::string& node, const std::string& pod, const std::string& job,
                  const std::map<std::string, std::string>& annotations);
  // Makes its PodDisruptionBudget refuse it (an empty answer: no more).
  void protect(const std::string& pod, const std::string& answer);
  // The operator is not allowed to evict it (an empty answer: it is again).
  void forbid(const std::string& pod, const std::string& answer);
  // A pod that the kubelet rejected while no device plugin was registered.
  void reject(const std::string& node, const std::string& pod, const std::string& ns);
  // The next `pods` pods of a component start with a fault in their config-manager: "created", or the message with
  // which it ends.
  void ail(const std::string& node, const std::string& component, const std::string& how, int pods);
  // Every container restarts in its pod, and reads the present ConfigMap.
  void reboot(const std::string& node);
  void kill_daemons(const std::string& node, bool kill);             // MPS daemons there end by SIGKILL.
  void break_device(const std::string& node, std::int64_t devices);  // That number of its GPUs is missing.
  void gpu_cluster(bool there);
  // The DRA driver also offers the GPUs of the node; a DeviceClass names nvidia.com/gpu as its extended resource.
  void offer_by_dra(const std::string& name);
  void device_class(bool there);
  void release(const std::string& node);
  void set_ready(const std::string& node, bool ready);
  // By a person: the mark of the client that cordoned it stays.
  void cordon(const std::string& node, bool cordoned);
  void add_node(const NodeSpec& node);
  void remove_node(const std::string& node);
  void crash_pods(const std::string& node, bool crash);      // New plugin pods there crash-loop.
  void hold_pods(const std::string& node, bool held);        // New plugin pods there stay Pending.
  void stick_labels(const std::string& node, bool stuck);    // GFD keeps the labels of the profile it has.
  void stick_sidecars(const std::string& node, bool stuck);  // Neither a label nor a new pod loads a profile there.
  void delete_pod_of(const std::string& node, std::string_view component);
  void step_wall_clock(Duration by);  // The operator's: its own clock measures on.
  void restart_operator();            // A new index, no timer runs.
  void kill_operator();               // Also forgets all texts of profiles.

  // --- Observations.
  [[nodiscard]] const Node& node(const std::string& name) const;
  [[nodiscard]] std::int64_t allocatable(const std::string& node, std::string_view resource) const;
  [[nodiscard]] std::string label_of(const std::string& node, std::string_view key) const;
  [[nodiscard]] std::string annotation_of(const std::string& node, std::string_view key) const;
  [[nodiscard]] std::vector<const Pod*> pods(const std::string& node, std::string_view component) const;
  [[nodiscard]] int restarts(const std::string& node,
                             std::string_view component) const;  // Pods created after the first.
  [[nodiscard]] std::int64_t out_of_service() const;
  [[nodiscard]] int patches(const std::string& node) const;
  void forget_counts();
  [[nodiscard]] std::string policy_status(const std::string& name) const;

 private:
  [[nodiscard]] Snapshot snapshot(const World& seen) const;
  static constexpr std::string_view kComponents[] = {"plugin", "gfd", "mps"};
  struct Machine {
    NodeSpec spec;
    std::string served;  // Text that the plugin serves; nothing while it is down.
    bool plugin_up = false;
    std::string plugin_text;  // Loaded by the running pod.
    std::string gfd_text;
    bool crashes = false;
    bool stuck = false;
    bool kills_daemons = false;
    bool holds_pods = false;
    bool stuck_labels = false;
    std::int64_t broken_devices = 0;
    std::map<std::string, std::pair<std::string, int>, std::less<>>
        pod_faults;  // By component: how, and how many pods.
    std::map<std::string, std::int64_t> resources;
  };
  void follow_stores();
  void make_daemonsets();
  [[nodiscard]] bool is_of_gpu_operator() const;
  void put_revision(std::string_view component);
  void make_pod(const std::string& node, std::string_view component);
  void boot(const NodeSpec& spec);
  void run_machine(const std::string& name, Machine& machine);
  void run_machines();  // Runs the awake machines for one second.
  Machine& wake(const std::string& node);
  void roll_daemonsets();  // RollingUpdate with maxUnavailable 1, each DaemonSet for itself.
  void change_node(const std::string& name, const std::function<void(Node&)>& change);
  [[nodiscard]] std::string effective_text(const Node& node) const;  // What a pod that starts now loads.
  // As the programs on that node read it; nullopt if they cannot.
  [[nodiscard]] std::optional<sim::PluginConfig> config_of(const std::string& text, const NodeSpec& node);
  [[nodiscard]] bool exits(std::string_view component, const std::optional<sim::PluginConfig>& config,
                           const NodeSpec& node) const;
  void serve_and_show(const std::string& name, const Machine& machine, bool mps_ready);
  void delete_pod(const ObjectKey& key, const std::string& uid);
  void put_config_map();
  void write_keys(const WriteConfigMap& write);
  void set_finalizers(const std::string& policy, const std::vector<std::string>& finalizers);
  void restart_daemonset(const RestartDaemonSet& restart);
  [[nodiscard]] static bool come_up_ill(Machine& machine, std::string_view component, Pod& pod);
  void list_consumers(const std::string& node);

  FleetSpec spec_;
  std::map<std::string, Machine> machines_;
  std::string config_map_ = "mps-config";
  std::map<std::string, std::string> data_;
  WallTime data_changed_;
  std::map<std::string, std::string> config_annotations_;
  std::string template_default_;
  // A template that returns keeps its hash and its first creation time, and gets a new number.
  struct PodTemplate {
    int hash = 1;    // Of the newest one.
    int number = 1;  // Its number in the history.
    int made = 1;    // How many different templates existed so far.
  };
  std::map<std::string, PodTemplate, std::less<>> templates_ = {{"plugin", {}}, {"gfd", {}}, {"mps", {}}};
  void new_template(std::string_view component);
  std::set<std::string> our_keys_;
  int serial_ = 0;
  // Machines that might have work: nothing here depends on time, so the others stay as they are.
  std::set<std::string> awake_;
  std::unordered_map<std::string, std::vector<k8s::Store<Pod>::Ptr>> pods_by_node_;
  std::map<std::string, std::map<std::string, int, std::less<>>> made_;
  std::map<std::string, int> patches_;
  std::map<std::string, std::string> protected_;  // By pod: the answer of its PodDisruptionBudget.
  std::map<std::string, std::string>
      forbidden_;  // By pod: the answer of the API server if the account is not allowed to evict it.
  std::map<std::string, std::optional<sim::PluginConfig>> configs_;  // By text, without MIG_STRATEGY.
};

}  // namespace gso::test
