// The model's cluster half: what nodes and pods do by themselves.
#include "tests/reconcilers/fleet_model/fleet_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"

namespace gso::test {

namespace {

constexpr std::string_view kNamespace = "gpu-operator";

std::string daemonset_uid(std::string_view component) {
  return fmt::format("ds-{}", component);
}

struct Template {
  std::string_view component, daemonset, container, deploy;
};
constexpr Template kTemplates[] = {
    {"plugin", "nvidia-device-plugin-daemonset", "nvidia-device-plugin", "nvidia.com/gpu.deploy.device-plugin"},
    {"gfd", "gpu-feature-discovery", "gpu-feature-discovery", "nvidia.com/gpu.deploy.gpu-feature-discovery"},
    {"mps", "nvidia-device-plugin-mps-control-daemon", "mps-control-daemon-ctr", "nvidia.com/gpu.deploy.device-plugin"},
};

}  // namespace

std::string profile_text(std::string_view name) {
  if (name.find('\n') != std::string_view::npos) return std::string(name);
  if (name == "none") return "version: v1\n";
  if (name == "broken")
    return "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 1\n";
  const bool mps = name.starts_with("mps-");
  if (!mps && !name.starts_with("ts-")) throw std::invalid_argument(fmt::format("no profile is called {}", name));
  std::string_view rest = name.substr(mps ? 4 : 3);
  const std::string replicas(rest.substr(0, rest.find('-')));
  std::string out = fmt::format("version: v1\nsharing:\n  {}:\n", mps ? "mps" : "timeSlicing");
  if (name.ends_with("-renamed")) out += "    renameByDefault: true\n";
  if (name.ends_with("-many")) out += "    failRequestsGreaterThanOne: false\n";
  return out + fmt::format("    resources:\n    - name: nvidia.com/gpu\n      replicas: {}\n", replicas);
}

std::vector<NodeSpec> alike_nodes(int count, std::string_view product, std::string_view prefix) {
  std::vector<NodeSpec> out;
  for (int i = 1; i <= count; ++i) {
    NodeSpec node;
    node.name = count < 100 ? fmt::format("{}{:02}", prefix, i) : fmt::format("{}{:05}", prefix, i);
    node.product = product;
    out.push_back(std::move(node));
  }
  return out;
}

FleetModel::FleetModel(FleetSpec spec) : spec_(std::move(spec)) {
  now = *k8s::parse_rfc3339("2026-03-01T12:00:00Z");
  data_changed_ = now;
  settings.clock_difference = {};  // One clock dates everything, and pods follow an edit within a second.
  template_default_ = spec_.default_key;
  for (const auto& [key, text] : spec_.profiles) data_[key] = profile_text(text);
  follow_killed_daemons(world);
  world.policies_served = spec_.crds;
  follow_stores();
  put_config_map();
  if (spec_.installed == Installed::by_manifest_without_profiles) config_map_.clear();
  ClusterPolicy cluster_policy;
  cluster_policy.meta.name = "cluster-policy";
  cluster_policy.meta.uid = "cluster-policy-uid";
  cluster_policy.meta.generation = 1;
  cluster_policy.config_name = config_map_;
  cluster_policy.config_default = spec_.default_key;
  if (is_of_gpu_operator()) world.clusterpolicies.apply(cluster_policy);
  if (spec_.installed == Installed::for_dra) gpu_cluster(true);
  make_daemonsets();
  for (std::string_view component : kComponents) put_revision(component);
  world.nodes.init_done();
  world.operand_pods.init_done();
  // init_done() without init_apply() empties a store: mark first, fill afterwards.
  auto keep = [](auto& store) {
    auto all = store.all();
    store.init();
    for (const auto& [key, object] : all) store.init_apply(*object);
    store.init_done();
  };
  keep(world.configmaps);
  keep(world.clusterpolicies);
  keep(world.daemonsets);
  keep(world.revisions);
  world.policies.init_done();
  world.rollouts.init_done();
  now += std::chrono::seconds(5);
  for (const NodeSpec& node : spec_.nodes) boot(node);
  // The fleet has already been running for a while.
  for (int i = 0; i < 10; ++i) {
    now += std::chrono::seconds(1);
    run_machines();
  }
  forget_counts();
  now += std::chrono::hours(1);
  index.attach(world);
}

void FleetModel::follow_stores() {
  world.nodes.add_listener([this](const ObjectKey& key, const auto&, const auto&) { awake_.insert(key.name); });
  world.operand_pods.add_listener([this](const ObjectKey&, const auto& before, const auto& after) {
    const std::string node((after ? after : before)->node_name.view());
    awake_.insert(node);
    if (before) std::erase(pods_by_node_[node], before);
    if (after) pods_by_node_[node].push_back(after);
  });
}

FleetModel::Machine& FleetModel::wake(const std::string& node) {
  awake_.insert(node);
  return machines_.at(node);
}

void FleetModel::run_machines() {
  for (const std::string& name : std::exchange(awake_, {})) {
    const auto machine = machines_.find(name);
    if (machine == machines_.end()) continue;
    run_machine(name, machine->second);
    // A crashed container is restarted, and its status shows each restart.
    if (std::ranges::any_of(pods_by_node_[name], [](const auto& pod) { return !pod->ready; })) awake_.insert(name);
  }
}

bool FleetModel::is_of_gpu_operator() const {
  return spec_.installed == Installed::by_gpu_operator || spec_.installed == Installed::for_dra;
}

void FleetModel::make_daemonsets() {
  for (const Template& t : kTemplates) {
    DaemonSet out;
    out.meta.name = t.daemonset;
    out.meta.ns = k8s::Interned(kNamespace);
    out.meta.uid = daemonset_uid(t.component);
    out.meta.generation = templates_.find(t.component)->second.number;
    out.meta.resource_version = std::to_string(++serial_);
    if (is_of_gpu_operator()) {
      out.meta.owners.push_back(
          {k8s::Interned("ClusterPolicy"), k8s::Interned("cluster-policy"), k8s::Interned("cluster-policy-uid"), true});
    }
    if (spec_.installed == Installed::by_chart) out.meta.labels.set("app.kubernetes.io/instance", "nvidia");
    if (spec_.installed == Installed::by_nos) out.node_selector[std::string(kNosPartitioning)] = "mps";
    out.match_labels = {{"app", std::string(t.daemonset)}};
    out.node_selector.emplace(t.deploy, "true");
    if (t.component == "mps") out.node_selector[std::string(kMpsCapable)] = "true";
    out.on_delete = spec_.on_delete;
    ContainerSpec main;
    main.name = t.container;
    main.image = "nvcr.io/nvidia/k8s-device-plugin:" + spec_.plugin;
    if (spec_.mps_root) main.env["MPS_ROOT"] = "/run/nvidia/mps";
    if (!spec_.mig_strategy.empty()) main.env["MIG_STRATEGY"] = spec_.mig_strategy;
    ContainerSpec sidecar;
    sidecar.name = "config-manager";
    sidecar.env = {{"CONFIG_FILE_SRCDIR", "/available-configs"},
                   {"DEFAULT_CONFIG", template_default_},
                   {"FALLBACK_STRATEGIES", spec_.fallback},
                   {"NODE_LABEL", std::string(kConfigLabel)}};
    sidecar.volume_mounts = {{"/available-configs", config_map_}};
    out.containers = {main};
    if (!config_map_.empty()) {
      out.containers.push_back(sidecar);
      out.configmap_volumes = {{config_map_, config_map_}};
    }
    world.daemonsets.apply(out);
  }
}

void FleetModel::put_revision(std::string_view component) {
  ControllerRevision out;
  const PodTemplate& newest = templates_.find(component)->second;
  out.meta.name = fmt::format("{}-{}", component, newest.hash);
  out.meta.ns = k8s::Interned(kNamespace);
  out.meta.uid = out.meta.name;
  out.meta.labels.set(kRevisionHashLabel, fmt::format("hash{}", newest.hash));
  out.meta.owners.push_back(
      {k8s::Interned("DaemonSet"), k8s::Interned(component), k8s::Interned(daemonset_uid(component)), true});
  const ControllerRevision* before = world.revisions.find({std::string(kNamespace), out.meta.name});
  out.meta.creation_timestamp = before == nullptr ? now : before->meta.creation_timestamp;
  out.revision = newest.number;
  world.revisions.apply(out);
}

void FleetModel::put_config_map() {
  ConfigMap out;
  out.meta.name = config_map_;
  out.meta.ns = k8s::Interned(kNamespace);
  out.meta.uid = config_map_ + "-uid";
  out.meta.resource_version = std::to_string(++serial_);
  out.data_changed = data_changed_ - std::chrono::duration_cast<WallTime::duration>(spec_.api_behind);
  out.our_keys = our_keys_;
  out.immutable = spec_.immutable;
  for (const auto& [key, value] : config_annotations_) out.meta.annotations.set(key, value);
  for (const auto& [key, text] : data_) out.data[key] = std::make_shared<const std::string>(text);
  for (const auto& [name, machine] : machines_) awake_.insert(name);
  world.configmaps.apply(out);
}

void FleetModel::boot(const NodeSpec& spec) {
  Node out;
  out.meta.name = spec.name;
  out.meta.uid = "node-" + spec.name + std::to_string(++serial_);
  out.meta.resource_version = "1";
  out.meta.labels.set("nvidia.com/gpu.present", "true");
  out.meta.labels.set("nvidia.com/gpu.deploy.device-plugin", "true");
  if (spec.gfd) {
    out.meta.labels.set("nvidia.com/gpu.deploy.gpu-feature-discovery", "true");
    out.meta.labels.set(kGpuCount, std::to_string(spec.gpus));
    if (spec.mig) out.meta.labels.set(kMigStrategy, "single");
  } else {
    // Set by a person, so that an MPS pod can exist there.
    out.meta.labels.set(kMpsCapable, "true");
  }
  for (const auto& [key, value] : spec.labels) out.meta.labels.set(key, value);
  for (const auto& [key, value] : spec.annotations) out.meta.annotations.set(key, value);
  out.ready = spec.ready;
  out.unschedulable = spec.cordoned;
  world.nodes.apply(out);
  machines_[spec.name].spec = spec;
  make_pod(spec.name, "plugin");
  if (spec.gfd) make_pod(spec.name, "gfd");
}

void FleetModel::make_pod(const std::string& node, std::string_view component) {
  Pod out;
  out.meta.name = fmt::format("{}-{}-{}", component, node, ++serial_);
  out.meta.ns = k8s::Interned(kNamespace);
  out.meta.uid = fmt::format("uid-{}", serial_);
  out.meta.creation_timestamp = now;
  out.meta.labels.set(kRevisionHashLabel, fmt::format("hash{}", templates_.find(component)->second.hash));
  out.meta.owners.push_back(
      {k8s::Interned("DaemonSet"), k8s::Interned(component), k8s::Interned(daemonset_uid(component)), true});
  out.node_name = k8s::Interned(node);
  out.phase = k8s::Interned("Pending");
  world.operand_pods.apply(out);
  ++made_[node][std::string(component)];
}

void FleetModel::change_node(const std::string& name, const std::function<void(Node&)>& change) {
  Node out = node(name);
  change(out);
  if (out == node(name)) return;
  out.meta.resource_version = std::to_string(++serial_);
  world.nodes.apply(out);
}

void FleetModel::advance(Duration duration) {
  const WallTime end = now + std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  while (now < end) {
    now = std::min(end, now + std::chrono::seconds(1));
    roll_daemonsets();
    run_machines();
    if (awake_.empty()) now = end;
  }
}

void FleetModel::roll_daemonsets() {
  if (spec_.on_delete) return;
  for (std::string_view component : kComponents) {
    const PodTemplate& newest = templates_.find(component)->second;
    if (newest.made == 1) continue;
    const std::string hash = fmt::format("hash{}", newest.hash);
    const Pod* old_pod = nullptr;
    bool busy = false;
    for (const auto& [name, machine] : machines_) {
      const auto present = pods(name, component);
      const bool due = component != "gfd" || machine.spec.gfd;
      if (component != "mps" && due && present.empty()) busy = true;
      for (const Pod* pod : present) {
        const bool old = pod->meta.labels.get(kRevisionHashLabel) != hash;
        // Pods that do not work are replaced first, which takes no further node out of service.
        if (old && (old_pod == nullptr || !pod->ready)) old_pod = pod;
        if (!pod->ready && !old) busy = true;
      }
    }
    if (old_pod && (!busy || !old_pod->ready)) delete_pod(old_pod->meta.key(), old_pod->meta.uid);
  }
}

void FleetModel::delete_pod(const ObjectKey& key, const std::string& uid) {
  const Pod* pod = world.operand_pods.find(key);
  if (pod == nullptr || pod->meta.uid != uid) return;
  const std::string name(pod->node_name.view());
  const bool plugin = pod->meta.controller()->uid == daemonset_uid("plugin");
  const bool mps = pod->meta.controller()->uid == daemonset_uid("mps");
  Machine& machine = wake(name);
  if (mps && machine.kills_daemons) {
    Pod last = *pod;
    last.ready = false;
    last.meta.deletion_timestamp = now;
    ContainerStatus daemon;
    daemon.name = k8s::Interned("mps-control-daemon-ctr");
    daemon.terminated = Rare(Termination{137, {}, {}});
    last.containers = {daemon};
    world.operand_pods.apply(std::move(last));
  }
  world.operand_pods.erase(key);
  if (plugin) machine.plugin_up = false;
  if (plugin || mps) {
    change_node(name, [](Node& out) {
      for (auto& [resource, count] : out.allocatable) count = 0;
    });
  }
}

}  // namespace gso::test
