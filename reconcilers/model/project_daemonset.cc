// DaemonSet and ControllerRevision: JSON -> projected value.
#include <map>
#include <utility>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

// By these marks other tools restart the DaemonSet's pods: Reloader, Wave, and Helm charts. They stand on the DaemonSet
// or on its template, and are kept as if all stood on the DaemonSet.
bool marks_a_restarter(std::string_view key) {
  return key.starts_with("reloader.stakater.com/") || key.starts_with("configmap.reloader.stakater.com/") ||
         key.starts_with("wave.pusher.com/") || key.starts_with("checksum/") || key == "rollme";
}

bool keeps_daemonset_annotation(std::string_view key) {
  return key.starts_with("gpusharing.dev/") || key.starts_with("nvidia.com/") || marks_a_restarter(key);
}

// A DaemonSet with what decides about its MPS directories once all is read.
struct ReadDaemonSet {
  DaemonSet daemonset;
  std::map<std::string, std::string> host_paths;  // Volume name -> path.
};

bool read_command(Fields& fields, Value value, std::string_view path, std::vector<std::string>& out) {
  return fields.array(value, path, [&](Value item) {
    std::string_view text;
    if (!fields.view(item, path, text)) return false;
    out.emplace_back(first_bytes(text, json::kMostBytes));
    return true;
  });
}

bool read_env(Fields& fields, Value value, std::string_view /*path*/, ContainerSpec& out) {
  return json::read_each<json::Variable>(fields, value, "env[].", json::kVariable, [&](json::Variable& variable) {
    const bool is_long = variable.text.size() > json::kMostBytes;  // No setting of an operand is so long.
    out.env_elsewhere = out.env_elsewhere || variable.from_object || is_long;
    if (variable.from_elsewhere || is_long)
      out.env.erase(variable.name);  // The last variable of a name counts.
    else
      out.env.insert_or_assign(std::move(variable.name), std::move(variable.text));
  });
}

bool read_volume_mounts(Fields& fields, Value value, std::string_view /*path*/,
                        std::map<std::string, std::string>& out) {
  return json::read_each<json::Mount>(fields, value, "volumeMounts[].", json::kMount, [&](json::Mount& mount) {
    out.insert_or_assign(std::move(mount.path), std::move(mount.volume));
  });
}

constexpr json::Row<ContainerSpec> kContainer[] = {
    json::row<&ContainerSpec::name>("containers[].name"),
    json::row<&ContainerSpec::image>("containers[].image"),
    json::row_by<json::read_has_items, &ContainerSpec::env_elsewhere>("containers[].envFrom"),
    json::row_by<read_command, &ContainerSpec::command>("containers[].command"),
    json::row_by<read_command, &ContainerSpec::command>("containers[].args"),
    {"containers[].env", read_env},
    json::row_by<read_volume_mounts, &ContainerSpec::volume_mounts>("containers[].volumeMounts"),
};

bool read_template_containers(Fields& fields, Value value, std::string_view path, std::vector<ContainerSpec>& out) {
  return fields.array(value, path, [&](Value item) {
    return json::read_rows(fields, item, "containers[].", kContainer, out.emplace_back());
  });
}

bool read_volumes(Fields& fields, Value value, std::string_view path, ReadDaemonSet& out) {
  return fields.array(value, path, [&](Value item) {
    json::Volume volume;
    const bool read = json::read_volume(fields, item, volume);
    if (!volume.host_path.empty()) out.host_paths.insert_or_assign(volume.name, std::move(volume.host_path));
    if (!volume.config_map.empty())
      out.daemonset.configmap_volumes.insert_or_assign(std::move(volume.name), std::move(volume.config_map));
    return read;
  });
}

std::set<std::string> mps_roots(const DaemonSet& daemonset, const std::map<std::string, std::string>& host_paths) {
  std::set<std::string> found;
  for (const auto* list : {&daemonset.containers, &daemonset.init_containers}) {
    for (const ContainerSpec& container : *list) {
      if (const auto root = container.env.find("MPS_ROOT"); root != container.env.end()) found.insert(root->second);
      for (std::string& root : container.flag_values("--mps-root")) found.insert(std::move(root));
      for (std::string& directory : container.flag_values("--pipe-directory")) found.insert(std::move(directory));
      const auto mount = container.volume_mounts.find("/mps");
      if (mount == container.volume_mounts.end()) continue;
      if (const auto path = host_paths.find(mount->second); path != host_paths.end()) found.insert(path->second);
    }
  }
  std::set<std::string> out;
  for (const std::string& spelled : found) {
    std::string root = clean_path(spelled);
    // "/" contains every path, and $(OTHER) refers to another variable.
    if (root.size() > 1 && root.starts_with('/')) out.insert(std::move(root));
  }
  return out;
}

bool read_template_annotations(Fields& fields, Value value, std::string_view path, DaemonSet& out) {
  return fields.object(value, path, [&](std::string_view name, Value text) {
    if (name == kRestartedForAnnotation) return fields.text(text, path, out.restarted_for);
    // The value changes with each upgrade, and nobody reads it: it must not wake planners.
    if (marks_a_restarter(name) && out.meta.annotations.size() < 2 * json::kMostEntries)
      out.meta.annotations.set(name, "");
    return true;
  });
}

constexpr auto kOf = &ReadDaemonSet::daemonset;
constexpr json::Row<ReadDaemonSet> kDaemonSet[] = {
    json::row<kOf, &DaemonSet::match_labels>("spec.selector.matchLabels"),
    json::row_by<read_template_annotations, kOf>("spec.template.metadata.annotations"),
    json::row_by<read_template_containers, kOf, &DaemonSet::containers>("spec.template.spec.containers"),
    json::row_by<read_template_containers, kOf, &DaemonSet::init_containers>("spec.template.spec.initContainers"),
    json::row<kOf, &DaemonSet::node_selector>("spec.template.spec.nodeSelector"),
    json::row_by<json::read_node_affinity, kOf, &DaemonSet::affinity_terms>("spec.template.spec.affinity"),
    json::row_by<json::read_tolerations<false>, kOf, &DaemonSet::tolerations>("spec.template.spec.tolerations"),
    {"spec.template.spec.volumes", read_volumes},
    json::row_by<json::read_on_delete, kOf, &DaemonSet::on_delete>("spec.updateStrategy.type"),
};
constexpr json::Row<ControllerRevision> kControllerRevision[] = {json::row<&ControllerRevision::revision>("revision")};

}  // namespace

k8s::Result<DaemonSet> project_daemonset(std::string_view text) {
  ReadDaemonSet out;
  const json::MetaFilter filter{true, keeps_daemonset_annotation, true};
  auto read = json::read_object("DaemonSet", text, filter, kDaemonSet, out.daemonset.meta, out);
  if (!read) return std::unexpected(read.error());
  out.daemonset.mps_roots = mps_roots(out.daemonset, out.host_paths);
  return std::move(out.daemonset);
}

k8s::Result<ControllerRevision> project_controller_revision(std::string_view text) {
  return json::project<ControllerRevision>("ControllerRevision", text, {}, kControllerRevision);
}

}  // namespace gso
