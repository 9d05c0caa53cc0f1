// Operands -> installations, and the watches that follow from them.
#include "reconcilers/cluster/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/project.h"

namespace gso {

const Operand* PluginInstallation::find(Component component, const Node& node) const {
  const Operand* paused = nullptr;
  const Operand* tainted = nullptr;
  for (const Operand& operand : operands) {
    if (operand.component != component) continue;
    const Selects how = selects(operand, node, component == Component::mps);
    if (how == Selects::yes) return &operand;
    if (how == Selects::paused) paused = &operand;
    if (how == Selects::tainted) tainted = &operand;
  }
  return paused != nullptr ? paused : tainted;
}

std::string PluginInstallation::announced_config() const {
  return fmt::format("config {} default {}", or_none(announced_config_map), or_none(announced_default));
}

const Operand* PluginInstallation::by_uid(std::string_view daemonset_uid) const {
  const auto it = std::ranges::find(operands, daemonset_uid, &Operand::uid);
  return it == operands.end() ? nullptr : &*it;
}

namespace {

struct Owner {
  Provider provider = Provider::manifest;
  std::string name;
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// Its controller is a ClusterPolicy that exists and is not being deleted, by name and uid. An owner without a uid,
// which no API server accepts but a manifest that somebody wrote can have, is compared by name.
bool is_of_cluster_policy(const DaemonSet& daemonset, const World& world) {
  const auto* owner = daemonset.meta.controller();
  if (owner == nullptr || owner->kind != "ClusterPolicy") return false;
  const ClusterPolicy* policy = world.clusterpolicies.find(owner->name.view());
  if (policy == nullptr || policy->meta.deletion_timestamp) return false;
  return owner->uid.view().empty() || policy->meta.uid == owner->uid.view();
}

// A ClusterPolicy that cannot be read, or is not among the manifests, is believed: in an operand namespace only trusted
// people write. One that exists must be the same object.
bool is_of_gpu_operator(const DaemonSet& daemonset, const World& world) {
  const auto* controller = daemonset.meta.controller();
  if (controller == nullptr || controller->kind != "ClusterPolicy") return false;
  return world.clusterpolicies.find(controller->name.view()) == nullptr || is_of_cluster_policy(daemonset, world);
}

Owner owner_of(const DaemonSet& daemonset, const World& world) {
  if (is_of_gpu_operator(daemonset, world))
    return {Provider::gpu_operator, std::string(daemonset.meta.controller()->name.view())};
  if (auto release = daemonset.meta.labels.get("app.kubernetes.io/instance"))
    return {Provider::device_plugin_chart, std::string(*release)};
  return {};
}

// Newest ControllerRevision by owning DaemonSet uid.
std::map<std::string_view, const ControllerRevision*> newest_revisions(const World& world) {
  std::map<std::string_view, const ControllerRevision*> newest;
  for (const auto& [key, revision] : world.revisions.all()) {
    const auto* owner = revision->meta.controller();
    if (owner == nullptr) continue;
    const ControllerRevision*& slot = newest[owner->uid.view()];
    if (slot == nullptr || slot->revision < revision->revision) slot = revision.get();
  }
  return newest;
}

bool is_of_nos(const PluginInstallation& installation) {
  return std::ranges::all_of(installation.operands, [](const Operand& operand) {
    return operand.component != Component::plugin || is_plugin_of_nos(operand);
  });
}

// What the ClusterPolicy announces and its DaemonSets do not have yet.
void read_announcement(const World& world, PluginInstallation& installation) {
  if (installation.provider != Provider::gpu_operator) return;
  // A cluster has at most one; the two kinds exclude each other, so these DaemonSets are about to be deleted.
  if (!world.gpu_clusters.all().empty()) installation.gpu_cluster = world.gpu_clusters.all().front().first.name;
  installation.announcement_unknown = world.clusterpolicies_forbidden;
  if (installation.announcement_unknown) return;
  const ClusterPolicy* policy = world.clusterpolicies.find(installation.owner);
  if (policy == nullptr) return;
  installation.clusterpolicy_generation = policy->meta.generation;
  auto differs = [&](const Operand& operand) {
    return operand.config_map != policy->config_name || operand.default_key != policy->config_default;
  };
  installation.announced = policy->device_plugin_enabled && std::ranges::any_of(installation.operands, differs);
  if (!installation.announced) return;
  installation.announced_config_map = policy->config_name;
  installation.announced_default = policy->config_default;
}

Operand with_newest(const std::map<std::string_view, const ControllerRevision*>& revisions, Operand operand) {
  const auto it = revisions.find(operand.uid);
  if (it == revisions.end()) return operand;
  operand.newest_hash = it->second->meta.labels.get(kRevisionHashLabel).value_or("");
  operand.newest_since = it->second->meta.creation_timestamp;
  operand.newest_number = it->second->revision;
  return operand;
}

}  // namespace

Discovery discover(const World& world) {
  const auto revisions = newest_revisions(world);
  std::map<std::tuple<std::string, Owner>, std::vector<Operand>> groups;
  Discovery out;
  for (const auto& [key, daemonset] : world.daemonsets.all()) {
    if (daemonset->meta.deletion_timestamp) continue;
    if (auto operand = operand_of(*daemonset))
      groups[{key.ns, owner_of(*daemonset, world)}].push_back(with_newest(revisions, *std::move(operand)));
    if (auto daemon = standalone_daemon_of(*daemonset))
      out.standalone.push_back(with_newest(revisions, *std::move(daemon)));
  }
  std::ranges::sort(out.standalone, {}, &Operand::key);
  for (auto& [where, operands] : groups) {
    std::ranges::sort(operands, {}, &Operand::key);
    std::set<std::string> config_maps;
    for (const Operand& operand : operands)
      if (operand.component == Component::plugin) config_maps.insert(operand.config_map);
    const auto& [ns, owner] = where;
    if (config_maps.empty()) {
      out.complaints.push_back(
          fmt::format("DaemonSet {} has no device plugin in the same namespace with the same owner",
                      k8s::to_string(operands.front().key)));
    }
    for (const Operand& operand : operands) {
      const bool alone = config_maps.empty() && operand.component == Component::gfd;
      if (alone || (!config_maps.empty() && !operand.config_map.empty() && !config_maps.contains(operand.config_map)))
        out.strays.push_back(operand);
    }
    for (const std::string& config_map : config_maps) {
      PluginInstallation installation{
          .ns = ns, .provider = owner.provider, .owner = owner.name, .config_map = config_map};
      for (const Operand& operand : operands) {
        // GFD or MPS without profiles of their own still serve the same nodes; their mistakes are visible in the
        // labels.
        const bool bare = operand.component != Component::plugin && operand.config_map.empty();
        if (operand.config_map == config_map || bare) installation.operands.push_back(operand);
      }
      if (is_of_nos(installation)) {
        installation.provider = Provider::nos;
        out.of_nos.push_back(std::move(installation));
        continue;
      }
      read_announcement(world, installation);
      out.installations.push_back(std::move(installation));
    }
  }
  std::ranges::stable_sort(out.installations, {}, [](const PluginInstallation& installation) {
    return std::tuple(installation.provider != Provider::gpu_operator, installation.config_map.empty(),
                      installation.ns);
  });
  return out;
}

const Operand* find_operand(const std::vector<Operand>& operands, Component component, const Node& node) {
  const auto found = std::ranges::find_if(operands, [&](const Operand& operand) {
    return operand.component == component && selects(operand, node, true) != Selects::no;
  });
  return found == operands.end() ? nullptr : &*found;
}

const Pod* pod_of_standalone(const std::vector<Operand>& standalone, const std::vector<const Pod*>& operand_pods) {
  const Pod* out = nullptr;
  for (const Pod* pod : operand_pods) {
    const auto* owner = pod->meta.controller();
    const bool runs = owner != nullptr && pod->phase != "Succeeded" && pod->phase != "Failed" &&
                      std::ranges::find(standalone, owner->uid.view(), &Operand::uid) != standalone.end();
    if (runs && (out == nullptr || out->meta.deletion_timestamp)) out = pod;
  }
  return out;
}

bool holds_profiles(const World& world, const ObjectKey& config_map) {
  const Discovery found = discover(world);
  return std::ranges::any_of(found.installations, [&](const PluginInstallation& installation) {
    return installation.ns == config_map.ns && !config_map.name.empty() &&
           (installation.config_map == config_map.name || installation.announced_config_map == config_map.name);
  });
}

std::vector<WatchScope> record_scopes(const PlannerSettings& settings) {
  using Kind = WatchScope::Kind;
  return {{Kind::configmaps, settings.operator_namespace, {}, settings.state_config_map},
          {Kind::configmaps,
           settings.operator_namespace,
           {{std::string(kRecordLabel), std::string(kRecordShardValue)}},
           {}}};
}

std::vector<WatchScope> wanted_scopes(const World& world, const PlannerSettings& settings) {
  using Kind = WatchScope::Kind;
  const std::vector<WatchScope> of_record = record_scopes(settings);
  std::set<WatchScope> out(of_record.begin(), of_record.end());
  for (const std::string& ns : world.operand_namespaces) out.insert({Kind::daemonsets, ns, {}, {}});
  const Discovery found = discover(world);
  for (const PluginInstallation& installation : found.of_nos)
    if (!installation.config_map.empty()) out.insert({Kind::configmaps, installation.ns, {}, installation.config_map});
  for (const PluginInstallation& installation : found.installations) {
    for (const Operand& operand : installation.operands) {
      out.insert({Kind::pods, installation.ns, operand.match_labels, {}});
      out.insert({Kind::controllerrevisions, installation.ns, operand.match_labels, {}});
      if (!operand.config_map.empty()) out.insert({Kind::configmaps, installation.ns, {}, operand.config_map});
    }
    if (!installation.announced_config_map.empty())
      out.insert({Kind::configmaps, installation.ns, {}, installation.announced_config_map});
  }
  for (const Operand& daemon : found.standalone) {
    out.insert({Kind::pods, daemon.key.ns, daemon.match_labels, {}});
    out.insert({Kind::controllerrevisions, daemon.key.ns, daemon.match_labels, {}});
  }
  return {out.begin(), out.end()};
}

// A namespace that has two owners is the first one's.
ProtectedNamespaces::ProtectedNamespaces(const World& world, const PlannerSettings& settings) {
  owners_.emplace("kube-system", "the cluster");
  owners_.emplace(settings.operator_namespace, "the operator");
  for (const auto& [key, daemonset] : world.daemonsets.all())
    if (runs_operand(*daemonset)) owners_.emplace(daemonset->meta.ns.view(), "the device plugin");
  const KaiView kai = view_kai(world.kai, settings.kai);
  if (!kai.served) return;
  owners_.emplace(kai.ns, "KAI");
  owners_.emplace(kai.reservations, "KAI");
}

std::string_view ProtectedNamespaces::owner_of(std::string_view ns) const {
  const auto at = owners_.find(ns);
  return at == owners_.end() ? std::string_view() : at->second;
}

namespace {

// What a finding says of it: texts of strangers take no memory.
DaemonSet without_template(const DaemonSet& daemonset) {
  DaemonSet out;
  out.meta.ns = daemonset.meta.ns;
  out.meta.name = daemonset.meta.name;
  out.meta.uid = daemonset.meta.uid;
  out.meta.resource_version = daemonset.meta.resource_version;
  const auto named = std::ranges::find_if(daemonset.containers, is_operand_container, &ContainerSpec::name);
  if (named != daemonset.containers.end()) out.containers.emplace_back().name = named->name;
  return out;
}

}  // namespace

k8s::Result<DaemonSet> project_operand_daemonset(std::string_view json) {
  k8s::Result<DaemonSet> daemonset = project_daemonset(json);
  if (!daemonset || runs_operand(*daemonset)) return daemonset;
  return without_template(*daemonset);
}

void SeenDaemonSets::add(const DaemonSet& daemonset, const World& world) {
  if (daemonset.meta.deletion_timestamp || !runs_operand(daemonset)) return;
  namespaces.emplace(daemonset.meta.ns.view());
  if (is_of_cluster_policy(daemonset, world)) of_cluster_policies.emplace(daemonset.meta.ns.view());
  if (kept.size() < kMost)
    kept.push_back(without_template(daemonset));
  else
    ++beyond;
}

OperandNamespaces::OperandNamespaces() : stored_(std::make_unique<RecordStore>()) {}
OperandNamespaces::~OperandNamespaces() = default;

void OperandNamespaces::read_record(const World& world, const PlannerSettings& settings) {
  if (!stored_->read(world, settings) || !stored_->problem().empty()) return;
  recorded_.clear();
  choice_.clear();
  const std::optional<FleetRecord>& record = stored_->record() ? stored_->record() : stored_->begun();
  if (!record) return;
  choice_ = record->operand_namespaces;
  record->machines.for_each([&](MachineId, const MachineRecord& entry) {
    const std::string_view config_map = entry.config_map.view();
    const auto slash = config_map.find('/');
    if (slash != std::string_view::npos && slash > 0) recorded_.emplace(config_map.substr(0, slash));
  });
}

void OperandNamespaces::decide(World& world, const PlannerSettings& settings, const SeenDaemonSets& seen) {
  read_record(world, settings);
  std::set<std::string> names = settings.operand_namespaces;
  names.insert(seen.of_cluster_policies.begin(), seen.of_cluster_policies.end());
  names.insert(recorded_.begin(), recorded_.end());
  if (settings.operand_namespaces.empty()) names.insert(choice_.begin(), choice_.end());
  const bool unknown = names.empty() && stored_->problem().empty();
  if (unknown) {
    names = seen.namespaces;
    names.erase(settings.operator_namespace);
  }
  world.operand_namespaces_chosen = unknown && !names.empty();
  names.insert(settings.operator_namespace);
  world.operand_namespaces = std::move(names);
}

void keep_trusted_daemonsets(World& world, const PlannerSettings& settings) {
  SeenDaemonSets seen;
  for (const DaemonSet* daemonset : in_order(world.daemonsets)) seen.add(*daemonset, world);
  OperandNamespaces().decide(world, settings, seen);
  world.foreign_daemonsets.mark_synced();
  std::vector<ObjectKey> foreign;
  for (const auto& [key, daemonset] : world.daemonsets.all())
    if (!world.operand_namespaces.contains(key.ns)) foreign.push_back(key);
  for (const ObjectKey& key : foreign) {
    world.foreign_daemonsets.apply(*world.daemonsets.find(key));
    world.daemonsets.erase(key);
  }
}

std::string foreign_plugin_text(const DaemonSet& daemonset) {
  const auto container = std::ranges::find_if(daemonset.containers, is_operand_container, &ContainerSpec::name);
  if (container == daemonset.containers.end()) return {};
  return fmt::format(
      "its container {} has the name of a part of the device plugin, and namespace {} is not an operand namespace: the "
      "operator ignores this DaemonSet. If it is yours, add the namespace to the chart value operandNamespaces "
      "(--operand-namespaces); else delete it",
      container->name, daemonset.meta.ns.view());
}

std::vector<const DaemonSet*> all_daemonsets(const World& world) {
  std::vector<const DaemonSet*> out = in_order(world.daemonsets);
  const std::vector<const DaemonSet*> foreign = in_order(world.foreign_daemonsets);
  out.insert(out.end(), foreign.begin(), foreign.end());
  std::ranges::sort(out, {}, [](const DaemonSet* daemonset) { return daemonset->meta.key(); });
  return out;
}

}  // namespace gso
