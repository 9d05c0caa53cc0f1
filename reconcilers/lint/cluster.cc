// Objects of several documents together, as the operator checks them before it touches a node; and the profiles that
// nos has written, which the rules of the official device plugin do not concern.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/lint/objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

// ConfigMaps with profiles, by "namespace/name": those that a plugin mounts or a ClusterPolicy names; where neither is
// known, all that hold a profile. Empty ones are left out.
std::map<std::string, const ConfigMap*> profile_maps(const World& world, const Discovery& discovery) {
  std::map<std::string, const ConfigMap*> out;
  bool named = false;
  for (const PluginInstallation& installation : discovery.installations) {
    for (const std::string& name : {installation.config_map, installation.announced_config_map}) {
      named = named || !name.empty();
      const ConfigMap* found = name.empty() ? nullptr : world.configmaps.find({installation.ns, name});
      if (found != nullptr && !found->data.empty()) out.emplace(installation.ns + "/" + name, found);
    }
  }
  for (const auto& [key, policy] : world.clusterpolicies.all()) {
    named = named || !policy->config_name.empty();
    for (const auto& [id, config_map] : world.configmaps.all())
      if (id.name == policy->config_name && !config_map->data.empty())
        out.emplace(k8s::to_string(id), config_map.get());
  }
  if (named) return out;
  for (const auto& [id, config_map] : world.configmaps.all()) {
    if (config_map->data.contains(std::string(kRecordKey)) || config_map->data.contains(std::string(kShardKey)))
      continue;  // The operator's own record.
    const bool holds = std::any_of(config_map->data.begin(), config_map->data.end(), [](const auto& entry) {
      return entry.second != nullptr && reads_like_profile(*entry.second);
    });
    if (holds) out.emplace(k8s::to_string(id), config_map.get());
  }
  return out;
}

// SharingPolicies that name a key which the ConfigMap of one of their nodes, or every ConfigMap, lacks.
void check_policy_keys(const World& world, const FleetIndex& fleet, std::vector<Finding>& found) {
  const FleetIndex::Impl& index = fleet.impl();
  std::map<std::string, std::set<std::string>> wrong;  // By policy.
  for (const std::string& name : fleet.node_names()) {
    const NodeAssessment& node = *index.find(name);
    if (node.wrong_key) wrong[std::string(node.policy.view())].insert(index.installation_of(node).id());
  }
  const auto all = profile_maps(world, index.discovery);
  for (const auto& [key, policy] : world.policies.all()) {
    if (!policy->config_map_key || is_managed_key(*policy->config_map_key)) continue;
    const bool somewhere = std::any_of(all.begin(), all.end(), [&](const auto& entry) {
      return entry.second->data.contains(*policy->config_map_key);
    });
    for (const auto& [id, config_map] : all) {
      if (somewhere && !wrong[policy->meta.name].contains(id)) continue;
      found.push_back({policy->mode == PolicyMode::observe ? Severity::warning : Severity::error,
                       {"gpusharing.dev/v1alpha1", "SharingPolicy", "", policy->meta.name, ""},
                       {"ConfigInvalid", missing_key(*policy, id, *config_map)}});
    }
  }
}

// The resource by which DRA offers the node's GPUs a second time, and the DeviceClass that names it: nvidia.com/gpu
// always, since pods ask for it even where the plugin has another name for it; else what the node's plugin serves.
std::pair<std::string, std::string> offered_twice(const DraOffers& dra, const Node& node) {
  if (const std::string& gpus = dra.class_of(node.meta.name); !gpus.empty()) return {std::string(kGpuResource), gpus};
  for (const auto& [resource, device_class] : dra.classes()) {
    const auto served = node.capacity.find(Interned(resource));
    const auto allocatable = node.allocatable.find(Interned(resource));
    const bool serves = (served != node.capacity.end() && served->second > 0) ||
                        (allocatable != node.allocatable.end() && allocatable->second > 0);
    if (serves) return {resource, device_class};
  }
  return {};
}

// Without Node objects: only a device plugin on those nodes makes it a problem, and that is not known.
void check_offers_without_nodes(const World& world, const DraOffers& dra, std::vector<Finding>& found) {
  const std::vector<std::string> nodes = dra.offering(world);
  if (nodes.empty() || !world.nodes.all().empty()) return;
  for (const auto& [resource, device_class] : dra.classes()) {
    found.push_back({Severity::warning,
                     {"resource.k8s.io/v1", "DeviceClass", "", device_class, ""},
                     {kDraDoubleOffer,
                      fmt::format("it has extendedResourceName: {}, and the DRA driver {} offers GPUs on {}: where a "
                                  "device plugin serves these nodes, the scheduler gives the same GPU to a second pod "
                                  "while the plugin restarts. Remove extendedResourceName, or keep the DRA driver off "
                                  "nodes of the device plugin",
                                  shown_value(resource), kGpuDraDriver, first_names(nodes))}});
  }
}

// Checked for each node: results that similar nodes share do not contain it. If the manifests contain no DaemonSet, a
// Node's capacity shows whether a device plugin serves it.
void check_double_offers(const World& world, const FleetIndex& fleet, std::vector<Finding>& found) {
  const FleetIndex::Impl& index = fleet.impl();
  check_offers_without_nodes(world, index.dra, found);
  for (const std::string& name : index.dra.offering(world)) {
    const Node* node = world.nodes.find(name);
    const NodeAssessment* assessment = index.find(name);
    if (node == nullptr || is_partitioned_by_nos(*node)) continue;
    const bool served = assessment != nullptr ? assessment->phase != Phase::unmanaged
                                              : index.discovery.installations.empty() && serves_gpus(*node);
    const auto [resource, device_class] = offered_twice(index.dra, *node);
    if (!served || device_class.empty()) continue;
    found.push_back({find_check(kDraDoubleOffer)->severity,
                     {"v1", "Node", "", name, ""},
                     {kDraDoubleOffer, double_offer(*node, device_class, resource)}});
  }
}

using Name = std::tuple<std::string, std::string, std::string>;  // Kind, namespace, name.

// The check of the ConfigMap alone has reported it already, with a line.
bool is_said_of_the_config_map(const Finding& found) {
  return found.object.kind == "ConfigMap" && (found.why.code == "KeyNoLabelValue" || found.why.code == "NoProfiles");
}

// The field that the finding is about.
Position place_of(const ClusterObject& object, const Finding& found) {
  constexpr std::string_view kOfItsName[] = {"ConfigMapMissing", "ConfigMapInWrongNamespace", "ConfigMapNameNoVolume",
                                             "ConfigMapNameCollides", kMpsByLabelUnsupported};
  const bool of_its_name = std::ranges::find(kOfItsName, found.why.code) != std::end(kOfItsName);
  const bool of_config = object.config != nullptr && (of_its_name || found.why.code == "DefaultKeyNotFound");
  const DocumentValue* field = of_config ? object.config->find(of_its_name ? "name" : "default") : nullptr;
  return field != nullptr ? field->at : object.at;
}

// Adds findings to the documents of their objects. An object without a document gets one, after the last document of
// its source.
class Reports {
 public:
  explicit Reports(std::vector<LintedDocument>& documents) : documents_(documents), index_(documents) {}

  void add(const ClusterObject& object, const Finding& found) {
    const Position at = place_of(object, found);
    document_of(object).diagnostics.push_back({found.severity, found.why.code, "", at, found.why.message});
  }

  // Once all findings are added.
  void finish() {
    if (added_.empty()) return;
    for (auto& [object, document] : added_) documents_.push_back(std::move(document));
    std::map<std::string, std::size_t> places;  // Of the sources, in the order of the documents.
    for (const LintedDocument& each : documents_) places.try_emplace(each.source, places.size());
    std::ranges::stable_sort(documents_, {}, [&](const LintedDocument& each) { return places.at(each.source); });
  }

 private:
  LintedDocument& document_of(const ClusterObject& object) {
    if (LintedDocument* found = index_.find(object)) return *found;
    LintedDocument& document = added_[&object];
    document.source = object.source;
    document.kind = object.kind;
    document.name = object.name;
    return document;
  }

  std::vector<LintedDocument>& documents_;
  DocumentIndex index_;
  std::map<const ClusterObject*, LintedDocument> added_;  // In the order of the objects.
};

// Whether the plugin of nos mounts the ConfigMap and no other plugin does.
bool is_mounted_by_nos_alone(const Discovery& discovery, const ClusterObject& config_map) {
  const auto mounts = [&](const PluginInstallation& set) {
    return set.ns == config_map.ns && set.config_map == config_map.name;
  };
  return std::ranges::any_of(discovery.of_nos, mounts) && std::ranges::none_of(discovery.installations, mounts);
}

// Whether an official plugin loads the key on nodes without a label: then the key is not only for nos.
bool is_a_default(const Discovery& discovery, const std::string& key) {
  return std::ranges::any_of(discovery.installations, [&](const PluginInstallation& set) {
    return std::ranges::any_of(set.operands, [&](const Operand& operand) { return operand.default_key == key; });
  });
}

}  // namespace

std::vector<Finding> check_cluster(const World& world, const PlannerSettings& settings) {
  FleetIndex fleet;
  fleet.refresh(world, settings);
  const FleetIndex::Impl& index = fleet.impl();
  std::vector<Finding> found = check_operand_setup(world, index.discovery);
  for (const std::string& name : fleet.node_names()) {
    const NodeAssessment* assessment = index.find(name);
    if (assessment == nullptr || assessment->setup == nullptr) continue;
    for (const Diagnostic& d : *assessment->setup) {
      const std::string where = d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message);
      found.push_back({d.severity, {"v1", "Node", "", name, ""}, {d.code, where}});
    }
  }
  check_double_offers(world, fleet, found);
  check_policy_keys(world, fleet, found);
  return found;
}

void lint_cluster(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents) {
  const auto has = [&](std::string_view kind) {
    return std::ranges::find(objects, kind, &ClusterObject::kind) != objects.end();
  };
  const bool offers = has("DeviceClass") && has("ResourceSlice");
  const bool whole = has("DaemonSet") || has("ClusterPolicy");
  if (!whole && !offers && !has("SharingPolicy")) return;
  // lint_kai looks at the others.
  const auto wanted = [](std::string_view kind) { return kind != "Pod" && kind != "Config" && kind != "RuntimeClass"; };
  std::map<Name, const ClusterObject*> by_name;
  for (const ClusterObject& object : objects)
    if (wanted(object.kind)) by_name.emplace(Name{object.kind, object.ns, object.name}, &object);
  for (LintedDocument& document : documents) {
    const std::string& kind = document.kind;
    const bool of_offers = offers && (kind == "Node" || kind == "DeviceClass" || kind == "ResourceSlice");
    const bool of_whole = whole && (kind == "Node" || kind == "DaemonSet" || kind == "ClusterPolicy");
    if (of_offers || of_whole)
      std::erase_if(document.diagnostics, [](const Diagnostic& d) { return d.code == kNotChecked; });
  }
  const LoadedManifests loaded = load_objects(objects, wanted);
  Reports reports(documents);
  for (const Finding& found : check_cluster(loaded.world, {})) {
    const auto object = by_name.find(Name{found.object.kind, found.object.ns, found.object.name});
    if (object == by_name.end() || is_said_of_the_config_map(found)) continue;
    reports.add(*object->second, found);
  }
  reports.finish();
}

void lint_nos(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents) {
  const auto wanted = [](std::string_view kind) { return kind == "Node" || kind == "DaemonSet"; };
  if (std::ranges::none_of(objects, wanted, &ClusterObject::kind)) return;
  std::map<std::pair<std::string_view, std::string_view>, const ClusterObject*> config_maps;  // By source and name.
  for (const ClusterObject& object : objects)
    if (object.kind == "ConfigMap") config_maps.try_emplace({object.source, object.name}, &object);
  const LoadedManifests loaded = load_objects(objects, wanted);
  const Discovery discovery = discover(loaded.world);
  const std::set<std::string> keys = keys_of_nos(loaded.world);
  for (LintedDocument& document : documents) {
    if (document.kind != "Profile" || document.key.empty()) continue;
    const auto config_map = config_maps.find({document.source, document.name});
    const bool mounted = config_map != config_maps.end() && is_mounted_by_nos_alone(discovery, *config_map->second);
    const bool named = keys.contains(document.key) && !is_a_default(discovery, document.key);
    if (!mounted && !named) continue;
    document.diagnostics = {{Diagnostic::Severity::info,
                             std::string(kPartitionedByNos),
                             "",
                             {1, 1},
                             mounted ? "only the device plugin of nos mounts this ConfigMap: not checked"
                                     : "only nodes whose GPUs nos partitions name this key: not checked"}};
  }
}

}  // namespace gso
