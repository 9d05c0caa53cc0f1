// FleetModel: a small fleet under the GPU Operator's layout for planner tests. It holds the World that planners see,
// does to it what a cluster would do after each action, and owns time. One second is one tick; nothing runs by itself.
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
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "tests/sim/fleet/plugin_config.h"

namespace gso::test {

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

struct FleetSpec {
  std::string plugin = "v0.20.0";
  std::string default_key = "any";
  std::string fallback = "empty";
  // Texts, or short names: none, broken, mps-8, mps-8-renamed, mps-8-many, ts-4, ts-4-renamed.
  std::map<std::string, std::string> profiles = {{"any", "mps-4"}};
  std::vector<NodeSpec> nodes;
  bool on_delete = false;
  bool crds = true;
  bool immutable = false;    // The plugin's ConfigMap.
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
  Timers timers;
  bool first_look = true;
  std::map<std::string, std::string> refused_writes;  // Snapshot::refused_writes; such a node's pods are not deleted.
  WallTime now;
  FleetIndex index;

  // Planning as the runtime does it: conditions are remembered for the next time. Applies nothing.
  Plan plan();
  // The same from a new index, before anything is remembered.
  [[nodiscard]] Plan plan_from_scratch() const;
  void apply(const Plan& plan);
  void apply(const PlannedAction& planned);
  // Time passes, the cluster works: pods come and become Ready, reload, labels and capacity follow.
  void advance(Duration duration);
  // plan, apply, one second. Returns the plan.
  Plan tick();
  // Ticks until neither planner nor cluster has anything to do, at most `limit` ticks. True when quiet.
  bool settle(int limit = 2000);
  std::function<void(const Plan&)> on_plan;  // Called by tick() before applying.

  // --- What people do.
  void edit(const std::string& key, std::string_view profile);
  void remove_key(const std::string& key);
  // As kubectl replace, or a GitOps tool that prunes: nothing of ours is left.
  void replace_config_map(const std::map<std::string, std::string>& profiles);
  // A generator of names (kustomize): a new ConfigMap beside the old one, named in the ClusterPolicy and rolled by the
  // GPU Operator.
  void generate_config_map(const std::string& name, const std::map<std::string, std::string>& profiles);
  void write_record(const std::string& text);  // Into the operator's state ConfigMap.
  void annotate_state(std::string_view key, const std::string& value);
  // Our CRDs are deleted, and every object of theirs; or installed again.
  void serve_crds(bool served);
  void delete_rollouts();  // kubectl delete sharingrollouts --all
  // The node comes back from a reboot with so many GPUs: plugin and GFD both count them.
  void reboot_with_gpus(const std::string& node, std::int64_t gpus);
  void drop_config_map();                 // kubectl patch clusterpolicy, config: null; rolled by the GPU Operator.
  void set_daemonsets_there(bool there);  // Deleted with all of their pods left, and made anew.
  void label(const std::string& node, const std::string& key, std::optional<std::string> value);
  void annotate(const std::string& node, std::string_view key, std::optional<std::string> value);
  void annotate_config_map(std::string_view key, std::optional<std::string> value);
  void announce_default(const std::string& key);  // kubectl patch clusterpolicy
  void forbid_clusterpolicies(bool forbidden);    // 403 on them, as the manager tells it.
  void roll_templates(const std::string& key);    // What the GPU Operator makes of it.
  // The same, to the template before the last one: its ControllerRevisions are as old as they were.
  void roll_templates_back(const std::string& key);
  void policy(const std::string& yaml);  // kubectl apply
  void remove_policy(const std::string& name);
  void rollout_switch(const std::string& name, std::string_view field, bool value);
  void undo_newest_rollout(const std::string& policy);
  void forget_finished_rollouts();
  // A pod of a ReplicaSet, in namespace `jobs`.
  void use(const std::string& node, const std::string& pod, const std::string& resource, std::int64_t count,
           const std::map<std::string, std::string>& annotations = {});
  void use_bare(const std::string& node, const std::string& pod);         // One GPU, and nobody makes it anew.
  void taint(const std::string& node, const std::vector<Taint>& taints);  // In place of those that it has.
  // A member of a batch/v1 Job, in namespace `jobs`.
  void use_by_job(const std::string& node, const std::string& pod, const std::string& job,
                  const std::map<std::string, std::string>& annotations);
  // Makes its PodDisruptionBudget refuse it (an empty answer: no more).
  void protect(const std::string& pod, const std::string& answer);
  // The operator may not evict it (an empty answer: it may again).
  void forbid(const std::string& pod, const std::string& answer);
  // A pod that the kubelet refused while nothing was registered.
  void reject(const std::string& node, const std::string& pod, const std::string& ns);
  // The next `pods` pods of a component come up with their config-manager ill: "created", or the message that it ends
  // with.
  void ail(const std::string& node, const std::string& component, const std::string& how, int pods);
  // Every container starts again in the pod that it was in, and reads what the ConfigMap says today.
  void reboot(const std::string& node);
  void kill_daemons(const std::string& node, bool kill);             // MPS daemons there end by SIGKILL.
  void break_device(const std::string& node, std::int64_t devices);  // So many of its GPUs are gone.
  void gpu_cluster(bool there);
  // The DRA driver offers the GPUs of the node, too; a DeviceClass names nvidia.com/gpu as its extended resource.
  void offer_by_dra(const std::string& name);
  void device_class(bool there);
  void release(const std::string& node);
  void set_ready(const std::string& node, bool ready);
  // By a person: the mark of who did it stays as it is.
  void cordon(const std::string& node, bool cordoned);
  void add_node(const NodeSpec& node);
  void remove_node(const std::string& node);
  void crash_pods(const std::string& node, bool crash);      // New plugin pods there crash-loop.
  void hold_pods(const std::string& node, bool held);        // New plugin pods there stay Pending.
  void stick_labels(const std::string& node, bool stuck);    // GFD keeps the labels of the profile it has.
  void stick_sidecars(const std::string& node, bool stuck);  // A label brings in nothing there, nor do new pods.
  void delete_pod_of(const std::string& node, std::string_view component);
  void restart_operator();  // A new index, no timer runs.
  void kill_operator();     // The same, and no text of a profile is known any more.

  // --- What is seen.
  [[nodiscard]] const Node& node(const std::string& name) const;
  [[nodiscard]] std::int64_t allocatable(const std::string& node, std::string_view resource) const;
  [[nodiscard]] std::string label_of(const std::string& node, std::string_view key) const;
  [[nodiscard]] std::string annotation_of(const std::string& node, std::string_view key) const;
  [[nodiscard]] std::vector<const Pod*> pods(const std::string& node, std::string_view component) const;
  [[nodiscard]] int restarts(const std::string& node, std::string_view component) const;  // Pods made after the first.
  [[nodiscard]] std::int64_t out_of_service() const;
  [[nodiscard]] int patches(const std::string& node) const;
  void forget_counts();
  [[nodiscard]] std::string policy_status(const std::string& name) const;

 private:
  static constexpr std::string_view kComponents[] = {"plugin", "gfd", "mps"};
  struct Machine {
    NodeSpec spec;
    std::string served;  // Text that the plugin serves; nothing while it is down.
    bool plugin_up = false;
    std::string plugin_text;  // Loaded by the pod that runs now.
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
  void put_revision(std::string_view component);
  void make_pod(const std::string& node, std::string_view component);
  void boot(const NodeSpec& spec);
  void run_machine(const std::string& name, Machine& machine);
  void run_machines();  // Those that are awake, for one second.
  Machine& wake(const std::string& node);
  void roll_daemonsets();  // RollingUpdate with maxUnavailable 1, each DaemonSet for itself.
  void change_node(const std::string& name, const std::function<void(Node&)>& change);
  [[nodiscard]] std::string effective_text(const Node& node) const;  // What a pod that starts now loads.
  // As the programs on that node read it; nothing where they cannot.
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
  // A template that comes back keeps its hash and its first creation time, and gets a new number.
  struct PodTemplate {
    int hash = 1;    // Of the newest one.
    int number = 1;  // Its place in the history.
    int made = 1;    // So many different ones there have been.
  };
  std::map<std::string, PodTemplate, std::less<>> templates_ = {{"plugin", {}}, {"gfd", {}}, {"mps", {}}};
  void new_template(std::string_view component);
  std::set<std::string> our_keys_;
  int serial_ = 0;
  // Machines that may have something to do: nothing here depends on time, so that others stay as they are.
  std::set<std::string> awake_;
  std::unordered_map<std::string, std::vector<k8s::Store<Pod>::Ptr>> pods_by_node_;
  std::map<std::string, std::map<std::string, int, std::less<>>> made_;
  std::map<std::string, int> patches_;
  std::map<std::string, std::string> protected_;  // By pod: what its budget says.
  std::map<std::string, std::string> forbidden_;  // By pod: what the API server says, where the account may not evict.
  std::map<std::string, std::optional<sim::PluginConfig>> configs_;  // By text, without MIG_STRATEGY.
};

}  // namespace gso::test
