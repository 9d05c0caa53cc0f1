// What people, and the cluster's other controllers, do to the model.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

void FleetModel::edit(const std::string& key, std::string_view profile) {
  data_[key] = profile_text(profile);
  data_changed_ = now;
  put_config_map();
}

void FleetModel::remove_key(const std::string& key) {
  data_.erase(key);
  data_changed_ = now;
  put_config_map();
}

void FleetModel::label(const std::string& name, const std::string& key, std::optional<std::string> value) {
  change_node(name, [&](Node& out) {
    if (value)
      out.meta.labels.set(key, *value);
    else
      out.meta.labels.erase(key);
    // The sidecars of plugin and GFD reload by label.
    Machine& machine = machines_.at(name);
    if (key == kConfigLabel && !machine.stuck) machine.plugin_text = machine.gfd_text = effective_text(out);
  });
}

void FleetModel::annotate(const std::string& name, std::string_view key, std::optional<std::string> value) {
  change_node(name, [&](Node& out) {
    if (value)
      out.meta.annotations.set(key, *value);
    else
      out.meta.annotations.erase(key);
  });
}

void FleetModel::annotate_config_map(std::string_view key, std::optional<std::string> value) {
  config_annotations_.erase(std::string(key));
  if (value) config_annotations_[std::string(key)] = *value;
  put_config_map();
}

void FleetModel::announce_default(const std::string& key) {
  ClusterPolicy out = *world.clusterpolicies.find("cluster-policy");
  out.config_default = key;
  ++out.meta.generation;
  out.meta.resource_version = std::to_string(++serial_);
  world.clusterpolicies.apply(out);
}

void FleetModel::forbid_clusterpolicies(bool forbidden) {
  world.clusterpolicies_forbidden = forbidden;
  index.note_everything_changed();
}

void FleetModel::generate_config_map(const std::string& name, const std::map<std::string, std::string>& profiles) {
  config_map_ = name;
  data_.clear();
  for (const auto& [key, text] : profiles) data_[key] = profile_text(text);
  data_changed_ = now;
  put_config_map();
  ClusterPolicy out = *world.clusterpolicies.find("cluster-policy");
  out.config_name = name;
  world.clusterpolicies.apply(out);
  roll_templates(out.config_default);
}

void FleetModel::write_record(const std::string& text) {
  ConfigMap out = *world.configmaps.find({settings.operator_namespace, settings.state_config_map});
  out.data[std::string(kRecordKey)] = std::make_shared<const std::string>(text);
  out.meta.resource_version = std::to_string(++serial_);
  world.configmaps.apply(out);
}

void FleetModel::annotate_state(std::string_view key, const std::string& value) {
  ConfigMap out = *world.configmaps.find({settings.operator_namespace, settings.state_config_map});
  out.meta.annotations.set(key, value);
  out.meta.resource_version = std::to_string(++serial_);
  world.configmaps.apply(out);
}

void FleetModel::serve_crds(bool served) {
  world.policies_served = served;
  if (!served) {
    world.policies.init();
    world.policies.init_done();
    delete_rollouts();
  }
  index.note_everything_changed();
}

void FleetModel::delete_rollouts() {
  world.rollouts.init();
  world.rollouts.init_done();
}

void FleetModel::reboot_with_gpus(const std::string& name, std::int64_t gpus) {
  machines_.at(name).spec.gpus = gpus;
  change_node(name, [&](Node& out) {
    if (out.meta.labels.contains(kGpuCount)) out.meta.labels.set(kGpuCount, std::to_string(gpus));
  });
  reboot(name);
}

void FleetModel::drop_config_map() {
  config_map_.clear();
  ClusterPolicy out = *world.clusterpolicies.find("cluster-policy");
  out.config_name.clear();
  world.clusterpolicies.apply(out);
  roll_templates("");
}

void FleetModel::set_daemonsets_there(bool there) {
  if (there) return make_daemonsets();
  std::vector<ObjectKey> gone;
  for (const auto& [key, daemonset] : world.daemonsets.all()) gone.push_back(key);
  for (const ObjectKey& key : gone) world.daemonsets.erase(key);
}

void FleetModel::roll_templates(const std::string& key) {
  announce_default(key);
  template_default_ = key;
  for (std::string_view component : {"plugin", "gfd", "mps"}) new_template(component);
  make_daemonsets();
  for (std::string_view component : {"plugin", "gfd", "mps"}) put_revision(component);
}

void FleetModel::new_template(std::string_view component) {
  PodTemplate& newest = templates_.find(component)->second;
  newest.hash = ++newest.made;
  ++newest.number;
}

void FleetModel::roll_templates_back(const std::string& key) {
  announce_default(key);
  template_default_ = key;
  for (auto& [component, newest] : templates_) {
    --newest.hash;
    ++newest.number;
  }
  make_daemonsets();
  for (std::string_view component : {"plugin", "gfd", "mps"}) put_revision(component);
}

void FleetModel::policy(const std::string& yaml) {
  auto json = nlohmann::json::parse(must(yaml_to_json(yaml)));
  const std::string name = json["metadata"]["name"];
  const SharingPolicy* present = world.policies.find(name);
  json["metadata"]["uid"] = present ? present->meta.uid.str() : fmt::format("uid-{}", ++serial_);
  json["metadata"]["generation"] = present ? present->meta.generation + 1 : 1;
  json["metadata"]["creationTimestamp"] = k8s::format_time(present ? present->meta.creation_timestamp : now);
  json["metadata"]["resourceVersion"] = std::to_string(++serial_);
  SharingPolicy out = must(project_sharing_policy(json.dump()));
  if (present) {
    out.status_json = present->status_json;
    out.finalizers = present->finalizers;
    out.meta.deletion_timestamp = present->meta.deletion_timestamp;
  }
  world.policies.apply(out);
}

void FleetModel::remove_policy(const std::string& name) {
  const SharingPolicy* present = world.policies.find(name);
  if (present == nullptr) return;
  if (present->finalizers.empty()) return void(world.policies.erase({"", name}));
  SharingPolicy out = *present;
  out.meta.deletion_timestamp = now;
  out.meta.resource_version = std::to_string(++serial_);
  world.policies.apply(out);
}

void FleetModel::set_finalizers(const std::string& name, const std::vector<std::string>& finalizers) {
  SharingPolicy out = *world.policies.find(name);
  if (finalizers.empty() && out.meta.deletion_timestamp) return void(world.policies.erase({"", name}));
  out.finalizers = finalizers;
  out.meta.resource_version = std::to_string(++serial_);
  world.policies.apply(out);
}

void FleetModel::write_keys(const WriteConfigMap& write) {
  for (const auto& [key, text] : write.set) {
    data_[key] = text;
    our_keys_.insert(key);
  }
  for (const std::string& key : write.remove) {
    data_.erase(key);
    our_keys_.erase(key);
  }
  put_config_map();
}

void FleetModel::replace_config_map(const std::map<std::string, std::string>& profiles) {
  data_.clear();
  our_keys_.clear();
  for (const auto& [key, text] : profiles) data_[key] = profile_text(text);
  data_changed_ = now;
  put_config_map();
}

void FleetModel::restart_daemonset(const RestartDaemonSet& restart) {
  DaemonSet out = *world.daemonsets.find(restart.daemonset);
  const std::string component(out.meta.uid.str().substr(3));
  out.restarted_for = restart.restarted_for;
  ++out.meta.generation;
  out.meta.resource_version = std::to_string(++serial_);
  world.daemonsets.apply(out);
  new_template(component);
  put_revision(component);
}

void FleetModel::undo_newest_rollout(const std::string& policy) {
  const SharingRollout* newest = nullptr;
  for (const auto& [key, rollout] : world.rollouts.all()) {
    const bool newer = newest == nullptr || rollout->meta.creation_timestamp > newest->meta.creation_timestamp;
    if (rollout->policy == policy && newer) newest = rollout.get();
  }
  if (newest == nullptr) return;
  SharingRollout out = *newest;
  out.meta.annotations.set(kUndoAnnotation, "true");
  out.meta.resource_version = std::to_string(++serial_);
  world.rollouts.apply(out);
}

void FleetModel::forget_finished_rollouts() {
  std::vector<ObjectKey> gone;
  for (const auto& [key, rollout] : world.rollouts.all())
    if (rollout->phase != "Progressing") gone.push_back(key);
  for (const ObjectKey& key : gone) world.rollouts.erase(key);
}

void FleetModel::lose_rollout_status() {
  std::vector<SharingRollout> lost;
  for (const auto& [key, rollout] : world.rollouts.all()) lost.push_back(*rollout);
  for (SharingRollout& rollout : lost) {
    rollout.phase = {};
    rollout.status_json.clear();
    rollout.meta.resource_version = std::to_string(++serial_);
    world.rollouts.apply(rollout);
  }
}

void FleetModel::rollout_switch(const std::string& name, std::string_view field, bool value) {
  SharingRollout out = *world.rollouts.find(name);
  if (field == "paused") out.paused = value;
  if (field == "approved") out.approved = value;
  if (field == "aborted") out.aborted = value;
  ++out.meta.generation;
  out.meta.resource_version = std::to_string(++serial_);
  world.rollouts.apply(out);
}

void FleetModel::use(const std::string& name, const std::string& pod, const std::string& resource, std::int64_t count,
                     const std::map<std::string, std::string>& annotations) {
  Pod out;
  out.meta.name = pod;
  out.meta.ns = k8s::Interned("jobs");
  out.meta.uid = "consumer-" + pod;
  out.node_name = k8s::Interned(name);
  out.phase = k8s::Interned("Running");
  out.gpu_requests[k8s::Interned(resource)] = count;
  for (const auto& [key, value] : annotations) out.meta.annotations.set(key, value);
  out.meta.creation_timestamp = now;
  out.meta.owners.push_back({k8s::Interned("ReplicaSet"), k8s::Interned("rs-" + pod), k8s::Interned("rs"), true});
  consumers[name].pods.push_back(std::move(out));
}

void FleetModel::use_bare(const std::string& name, const std::string& pod) {
  use(name, pod, std::string(kGpuResource), 1);
  consumers[name].pods.back().meta.owners.clear();
}

void FleetModel::taint(const std::string& name, const std::vector<Taint>& taints) {
  change_node(name, [&](Node& out) { out.taints = taints; });
}

void FleetModel::use_by_job(const std::string& name, const std::string& pod, const std::string& job,
                            const std::map<std::string, std::string>& annotations) {
  use(name, pod, std::string(kGpuResource), 1, annotations);
  Pod& made = consumers[name].pods.back();
  made.meta.labels.set("batch.kubernetes.io/job-name", job);
  made.meta.owners.assign(1, {k8s::Interned("Job"), k8s::Interned(job), k8s::Interned("job-" + job), true});
}

void FleetModel::protect(const std::string& pod, const std::string& answer) {
  protected_.erase(pod);
  if (!answer.empty()) protected_[pod] = answer;
}

void FleetModel::forbid(const std::string& pod, const std::string& answer) {
  forbidden_.erase(pod);
  if (!answer.empty()) forbidden_[pod] = answer;
}

void FleetModel::reject(const std::string& name, const std::string& pod, const std::string& ns) {
  Pod out;
  out.meta.name = pod;
  out.meta.ns = k8s::Interned(ns);
  out.meta.uid = "rejected-" + pod;
  out.meta.owners.push_back({k8s::Interned("ReplicaSet"), k8s::Interned("web"), k8s::Interned("web-uid"), true});
  out.node_name = k8s::Interned(name);
  out.phase = k8s::Interned("Failed");
  out.reason = k8s::Interned("UnexpectedAdmissionError");
  out.gpu_requests[k8s::Interned(kGpuResource)] = 1;
  consumers[name].rejected.push_back(std::move(out));
}

void FleetModel::ail(const std::string& name, const std::string& component, const std::string& how, int pods) {
  wake(name).pod_faults[component] = {how, pods};
}

void FleetModel::break_device(const std::string& name, std::int64_t devices) {
  wake(name).broken_devices = devices;
}

void FleetModel::gpu_cluster(bool there) {
  GpuCluster out;
  out.meta.name = "gpu-cluster";
  out.meta.resource_version = std::to_string(++serial_);
  if (there)
    world.gpu_clusters.apply(out);
  else
    world.gpu_clusters.erase({"", "gpu-cluster"});
}

void FleetModel::offer_by_dra(const std::string& name) {
  ResourceSlice out;
  out.meta.name = name + "-gpu.nvidia.com-x7k2p";
  out.meta.resource_version = std::to_string(++serial_);
  out.driver = Interned(kGpuDraDriver);
  out.node = Interned(name);
  out.offers = true;
  world.resource_slices.apply(out);
}

void FleetModel::device_class(bool there) {
  DeviceClass out;
  out.meta.name = "gpu.nvidia.com";
  out.meta.resource_version = std::to_string(++serial_);
  out.extended_resource = Interned(there ? kGpuResource : std::string_view());
  world.device_classes.apply(out);
}

void FleetModel::release(const std::string& name) {
  consumers[name].pods.clear();
}

void FleetModel::set_ready(const std::string& name, bool ready) {
  change_node(name, [&](Node& out) { out.ready = ready; });
}

void FleetModel::cordon(const std::string& name, bool cordoned) {
  change_node(name, [&](Node& out) { out.unschedulable = cordoned; });
}

void FleetModel::add_node(const NodeSpec& node) {
  boot(node);
}

void FleetModel::remove_node(const std::string& name) {
  for (std::string_view component : {"plugin", "gfd", "mps"})
    for (const Pod* pod : pods(name, component)) world.operand_pods.erase(pod->meta.key());
  machines_.erase(name);
  world.nodes.erase({"", name});
}

void FleetModel::crash_pods(const std::string& name, bool crash) {
  wake(name).crashes = crash;
}

void FleetModel::hold_pods(const std::string& name, bool held) {
  wake(name).holds_pods = held;
}

void FleetModel::stick_labels(const std::string& name, bool stuck) {
  Machine& machine = wake(name);
  machine.stuck_labels = stuck;
  if (!stuck) machine.gfd_text = effective_text(node(name));
}

void FleetModel::stick_sidecars(const std::string& name, bool stuck) {
  Machine& machine = wake(name);
  machine.stuck = stuck;
  if (!stuck) machine.plugin_text = machine.gfd_text = effective_text(node(name));
}

void FleetModel::reboot(const std::string& node) {
  static const std::map<std::string_view, std::string_view> kMain{
      {"plugin", "nvidia-device-plugin"}, {"gfd", "gpu-feature-discovery"}, {"mps", "mps-control-daemon-ctr"}};
  for (const auto& [component, container] : kMain) {
    for (const Pod* pod : pods(node, component)) {
      Pod up = *pod;
      ContainerStatus status;
      status.name = k8s::Interned(container);
      status.ready = status.running = true;
      status.started_at = now;
      status.restarts = 1;
      up.containers = {status};
      up.meta.resource_version = std::to_string(++serial_);
      world.operand_pods.apply(std::move(up));
    }
  }
  Machine& machine = machines_.at(node);
  machine.plugin_text = machine.gfd_text = effective_text(this->node(node));
  run_machine(node, machine);
}

void FleetModel::kill_daemons(const std::string& node, bool kill) {
  machines_.at(node).kills_daemons = kill;
}

void FleetModel::delete_pod_of(const std::string& name, std::string_view component) {
  for (const Pod* pod : pods(name, component)) delete_pod(pod->meta.key(), std::string(pod->meta.uid));
}

void FleetModel::restart_operator() {
  timers.clear();
  first_look = true;
  for (auto& [name, listing] : consumers) listing.listed_at = {};
  index.note_everything_changed();
}

void FleetModel::kill_operator() {
  restart_operator();
  index.impl().profiles = ProfileCache();
}

}  // namespace gso::test
