// The model's other half: applying plans, what people do, observations.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "k8sclient/value/overloaded.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/registry.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

namespace {

using k8s::Overloaded;

}  // namespace

// As the operator's clocks show the time.
Snapshot FleetModel::snapshot(const World& seen) const {
  Snapshot out{seen,      now + std::chrono::duration_cast<WallTime::duration>(operator_ahead),
               timers,    consumers,
               settings,  &refused_writes,
               first_look};
  out.mono = one_look(now);
  return out;
}

void FleetModel::step_wall_clock(Duration by) {
  operator_ahead += by;
  for (auto& [timer, since] : timers) since += std::chrono::duration_cast<WallTime::duration>(by);
}

Plan FleetModel::plan() {
  // Listings that the last plan asked for have arrived.
  const Snapshot seen = snapshot(world);
  Plan out = plan_all(seen, index);
  Timers next;
  for (const TimerKey& timer : out.timers) {
    auto it = timers.find(timer);
    const auto stored = out.timer_starts.find(timer);
    const WallTime start = stored == out.timer_starts.end() ? seen.now : stored->second;
    next.emplace(timer, it == timers.end() ? start : it->second);
  }
  first_look = false;
  timers = std::move(next);
  for (const std::string& name : out.consumers_wanted) list_consumers(name);
  return out;
}

// Like the runtime: with the nodes of each pod's job, and the evictions that budgets have refused.
void FleetModel::list_consumers(const std::string& name) {
  NodeConsumers& listing = consumers[name];
  const auto fails = unlistable.find(name);
  if (std::exchange(listing.failed, fails != unlistable.end())) listing.unknown.clear();
  if (listing.failed) listing.unknown = fails->second;
  if (listing.failed) return;
  listing.listed_at = one_look(now);
  listing.jobs.clear();
  for (const Pod& pod : listing.pods) {
    const auto job = job_of(pod);
    if (!job) continue;
    for (const auto& [other, theirs] : consumers) {
      for (const Pod& member : theirs.pods) {
        const auto same = job_of(member);
        if (same && same->id() == job->id()) listing.jobs[job->id()].insert(other);
      }
    }
  }
}

Plan FleetModel::plan_again() {
  return plan_all(snapshot(world), index);
}

Plan FleetModel::plan_from_scratch(const World& seen) const {
  FleetIndex fresh;
  // Texts seen earlier are knowledge, not state: without them a planner does more than needed, never less.
  fresh.impl().profiles = index.impl().profiles;
  return plan_all(snapshot(seen), fresh);
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
          [&](const DeletePod& pod) {
            if (refused_writes.contains(planned.node)) return;
            delete_pod(pod.pod, pod.uid);
            for (auto& [name, listing] : consumers)
              std::erase_if(listing.rejected, [&](const Pod& listed) { return listed.meta.uid == pod.uid; });
          },
          [&](const EvictPod& pod) {
            for (auto& [name, listing] : consumers) {
              auto refusal = protected_.find(pod.pod.name);
              const bool here = std::ranges::any_of(listing.pods, [&](const Pod& p) { return p.meta.uid == pod.uid; });
              if (here && refusal != protected_.end()) listing.refused[pod.uid] = refusal->second;
              const auto forbidden = forbidden_.find(pod.pod.name);
              if (here) listing.forbidden.erase(pod.uid);
              if (here && forbidden != forbidden_.end()) listing.forbidden[pod.uid] = forbidden->second;
              if (refusal != protected_.end() || forbidden != forbidden_.end()) continue;
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
          [&](const PatchConfigMap& patch) {
            ConfigMap out = *world.configmaps.find(patch.config_map);
            for (const auto& [key, text] : patch.set) out.data[key] = std::make_shared<const std::string>(text);
            for (const std::string& key : patch.remove) out.data.erase(key);
            out.meta.resource_version = std::to_string(++serial_);
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
              // It was deleted a moment ago, with its last finalizer.
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
    // Only a wait remains: jump to its end.
    advance(*out.requeue_after > std::chrono::seconds(30) ? Duration(std::chrono::seconds(30)) : *out.requeue_after);
  }
  return false;
}

// --- Observations.

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
  const auto here = pods_by_node_.find(name);
  if (here == pods_by_node_.end()) return out;
  const std::string owner = fmt::format("ds-{}", component);
  for (const auto& pod : here->second)
    if (pod->meta.controller()->uid == owner) out.push_back(pod.get());
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
