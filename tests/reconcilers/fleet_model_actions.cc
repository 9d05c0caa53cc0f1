// The model's other half: applying plans, what people do, what is seen.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "reconcilers/fleet_index.h"
#include "reconcilers/labels.h"
#include "reconcilers/manifests.h"
#include "reconcilers/model/project.h"
#include "tests/reconcilers/fleet_model.h"

namespace gso::test {

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

template <class T>
T must(k8s::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace

Plan FleetModel::plan() {
  // Listings that the last plan asked for have arrived.
  Plan out = plan_fleet(Snapshot{world, now, observed, consumers, settings}, index);
  std::map<std::string, WallTime> next;
  for (const std::string& condition : out.conditions) {
    auto it = observed.find(condition);
    next.emplace(condition, it == observed.end() ? now : it->second);
  }
  observed = std::move(next);
  for (const std::string& name : out.consumers_wanted) consumers[name].listed_at = now;
  return out;
}

Plan FleetModel::plan_from_scratch() const {
  FleetIndex fresh;
  // Texts seen earlier are knowledge, not state: without them a planner does more than needed, never less.
  fresh.impl().book = index.impl().book;
  return plan_fleet(Snapshot{world, now, observed, consumers, settings}, fresh);
}

void FleetModel::apply(const Plan& plan) {
  for (const PlannedAction& action : plan.actions) apply(action);
}

void FleetModel::apply(const PlannedAction& planned) {
  std::visit(
      Overloaded{
          [&](const PatchNode& patch) {
            ++patches_[patch.name];
            if (patch.resource_version && *patch.resource_version != node(patch.name).meta.resource_version) {
              // Another patch of the same plan came first: one writer per Node merges them.
            }
            change_node(patch.name, [&](Node& out) {
              for (const auto& [key, value] : patch.set) out.meta.labels.set(key, value);
              for (const std::string& key : patch.remove) out.meta.labels.erase(key);
              for (const auto& [key, value] : patch.set_annotations) out.meta.annotations.set(key, value);
              for (const std::string& key : patch.remove_annotations) out.meta.annotations.erase(key);
              if (patch.unschedulable) out.unschedulable = *patch.unschedulable;
              if (patch.set.contains(std::string(kConfigLabel)) || patch.remove.contains(std::string(kConfigLabel))) {
                Machine& machine = machines_.at(patch.name);
                if (!machine.stuck) machine.plugin_text = machine.gfd_text = effective_text(out);
              }
            });
          },
          [&](const DeletePod& pod) { delete_pod(pod.pod, pod.uid); },
          [&](const EvictPod& pod) {
            for (auto& [name, listing] : consumers) {
              std::erase_if(listing.pods, [&](const Pod& listed) { return listed.meta.uid == pod.uid; });
            }
          },
          [&](const WriteConfigMap& write) {
            const ConfigMap* present = world.configmaps.find(write.config_map);
            ConfigMap out = present ? *present : ConfigMap{};
            out.meta.name = write.config_map.name;
            out.meta.ns = k8s::Interned(write.config_map.ns);
            for (const auto& [key, text] : write.set) out.data[key] = std::make_shared<const std::string>(text);
            for (const std::string& key : write.remove) out.data.erase(key);
            out.meta.resource_version = std::to_string(++serial_);
            if (write.config_map.name == "mps-config") return write_keys(write);
            world.configmaps.apply(out);
          },
          [&](const CreateObject& create) {
            auto json = nlohmann::json::parse(create.json);
            json["metadata"]["uid"] = fmt::format("uid-{}", ++serial_);
            json["metadata"]["generation"] = 1;
            json["metadata"]["creationTimestamp"] = k8s::format_time(now);
            if (create.object.kind == "SharingPolicy") world.policies.apply(must(project_sharing_policy(json.dump())));
            if (create.object.kind == "SharingRollout")
              world.rollouts.apply(must(project_sharing_rollout(json.dump())));
          },
          [&](const PatchStatus& status) {
            if (status.object.kind == "SharingPolicy") {
              // Gone with its last finalizer, a moment ago.
              if (world.policies.find(status.object.name) == nullptr) return;
              SharingPolicy out = *world.policies.find(status.object.name);
              out.status_json = status.status_json;
              out.meta.resource_version = std::to_string(++serial_);
              world.policies.apply(out);
            } else {
              SharingRollout out = *world.rollouts.find(status.object.name);
              out.status_json = status.status_json;
              out.meta.resource_version = std::to_string(++serial_);
              out.phase = nlohmann::json::parse(status.status_json).value("phase", "");
              world.rollouts.apply(out);
            }
          },
          [&](const DeleteObject& gone) { world.rollouts.erase({"", gone.object.name}); },
          [&](const PatchFinalizers& patch) { set_finalizers(patch.object.name, patch.finalizers); },
          [&](const RestartDaemonSet& restart) { restart_daemonset(restart); },
          [&](const RecordEvent&) {},
      },
      planned.action);
}

Plan FleetModel::tick() {
  Plan out = plan();
  if (on_plan) on_plan(out);
  apply(out);
  advance(std::chrono::seconds(1));
  return out;
}

bool FleetModel::settle(int limit) {
  for (int i = 0; i < limit; ++i) {
    const std::size_t before = static_cast<std::size_t>(serial_);
    const Plan out = tick();
    if (!out.actions.empty() || !out.consumers_wanted.empty() || static_cast<std::size_t>(serial_) != before) continue;
    if (!out.requeue_after) return true;
    // Nothing to do but wait: jump there.
    advance(*out.requeue_after > std::chrono::seconds(30) ? Duration(std::chrono::seconds(30)) : *out.requeue_after);
  }
  return false;
}

// --- What people do.

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
    if (value) {
      out.meta.labels.set(key, *value);
    } else {
      out.meta.labels.erase(key);
    }
    // The sidecars of plugin and GFD reload by label.
    Machine& machine = machines_.at(name);
    if (key == kConfigLabel) machine.plugin_text = machine.gfd_text = effective_text(out);
  });
}

void FleetModel::annotate(const std::string& name, std::string_view key, std::optional<std::string> value) {
  change_node(name, [&](Node& out) {
    if (value) {
      out.meta.annotations.set(key, *value);
    } else {
      out.meta.annotations.erase(key);
    }
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

void FleetModel::roll_templates(const std::string& key) {
  announce_default(key);
  template_default_ = key;
  for (std::string_view component : {"plugin", "gfd", "mps"}) ++templates_[std::string(component)];
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
  ++templates_[component];
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
  for (const auto& [key, rollout] : world.rollouts.all()) {
    if (rollout->phase != "Progressing") gone.push_back(key);
  }
  for (const ObjectKey& key : gone) world.rollouts.erase(key);
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

void FleetModel::use(const std::string& name, const std::string& pod, const std::string& resource, std::int64_t count) {
  Pod out;
  out.meta.name = pod;
  out.meta.ns = k8s::Interned("jobs");
  out.meta.uid = "consumer-" + pod;
  out.node_name = k8s::Interned(name);
  out.phase = k8s::Interned("Running");
  out.gpu_requests[k8s::Interned(resource)] = count;
  consumers[name].pods.push_back(std::move(out));
}

void FleetModel::release(const std::string& name) {
  consumers[name].pods.clear();
}

void FleetModel::set_ready(const std::string& name, bool ready) {
  change_node(name, [&](Node& out) { out.ready = ready; });
}

void FleetModel::add_node(const NodeSpec& node) {
  boot(node);
}

void FleetModel::remove_node(const std::string& name) {
  for (std::string_view component : {"plugin", "gfd", "mps"}) {
    for (const Pod* pod : pods(name, component)) world.operand_pods.erase(pod->meta.key());
  }
  machines_.erase(name);
  world.nodes.erase({"", name});
}

void FleetModel::crash_pods(const std::string& name, bool crash) {
  machines_.at(name).crashes = crash;
}

void FleetModel::stick_sidecars(const std::string& name, bool stuck) {
  Machine& machine = machines_.at(name);
  machine.stuck = stuck;
  if (!stuck) machine.plugin_text = machine.gfd_text = effective_text(node(name));
}

void FleetModel::delete_pod_of(const std::string& name, std::string_view component) {
  for (const Pod* pod : pods(name, component)) delete_pod(pod->meta.key(), std::string(pod->meta.uid));
}

void FleetModel::restart_operator() {
  observed.clear();
  for (auto& [name, listing] : consumers) listing.listed_at = WallTime{};
  index.note_everything_changed();
}

// --- What is seen.

const Node& FleetModel::node(const std::string& name) const {
  const Node* found = world.nodes.find(name);
  if (found == nullptr) throw std::invalid_argument("no node " + name);
  return *found;
}

std::int64_t FleetModel::allocatable(const std::string& name, std::string_view resource) const {
  auto it = node(name).allocatable.find(k8s::Interned(resource));
  return it == node(name).allocatable.end() ? 0 : it->second;
}

std::string FleetModel::label_of(const std::string& name, std::string_view key) const {
  return std::string(node(name).meta.labels.get(key).value_or(""));
}

std::string FleetModel::annotation_of(const std::string& name, std::string_view key) const {
  return std::string(node(name).meta.annotations.get(key).value_or(""));
}

std::vector<const Pod*> FleetModel::pods(const std::string& name, std::string_view component) const {
  std::vector<const Pod*> out;
  for (const auto& [key, pod] : world.operand_pods.all()) {
    if (pod->node_name == name && pod->meta.controller()->uid == fmt::format("ds-{}", component))
      out.push_back(pod.get());
  }
  return out;
}

int FleetModel::restarts(const std::string& name, std::string_view component) const {
  auto it = made_.find(name);
  if (it == made_.end()) return 0;
  auto count = it->second.find(component);
  return count == it->second.end() ? 0 : count->second;
}

std::int64_t FleetModel::out_of_service() const {
  return std::ranges::count_if(world.nodes.all(), [](const auto& entry) {
    const Node& n = *entry.second;
    const bool serves = std::ranges::any_of(n.allocatable, [](const auto& resource) { return resource.second > 0; });
    return !n.ready || n.unschedulable || !serves;
  });
}

int FleetModel::patches(const std::string& name) const {
  auto it = patches_.find(name);
  return it == patches_.end() ? 0 : it->second;
}

void FleetModel::forget_counts() {
  made_.clear();
  patches_.clear();
}

std::string FleetModel::policy_status(const std::string& name) const {
  const SharingPolicy* found = world.policies.find(name);
  return found ? found->status_json : "";
}

}  // namespace gso::test
