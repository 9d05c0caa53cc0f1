// DaemonSet and ControllerRevision: JSON -> projected value.
#include <optional>

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

// `text` is nullopt if the template does not contain the value; `elsewhere` becomes true if another object does.
bool read_name_value(Fields& fields, Value value, std::string_view field, std::string& name,
                     std::optional<std::string>& text, bool& elsewhere) {
  text.emplace();
  return fields.object(value, field, [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, field, name);
    if (key == "value") return !text || fields.text(inner, field, *text);
    if (key == "valueFrom") {
      text.reset();
      return fields.object(inner, field, [&](std::string_view source, Value) {
        elsewhere = elsewhere || source == "configMapKeyRef" || source == "secretKeyRef";
        return true;
      });
    }
    return true;
  });
}

bool read_container_spec(Fields& fields, Value value, ContainerSpec& container) {
  return fields.object(value, "spec.template.spec.containers", [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, "containers.name", container.name);
    if (key == "image") return fields.text(inner, "containers.image", container.image);
    if (key == "envFrom") {
      return fields.array(inner, "containers.envFrom", [&](Value) { return container.env_elsewhere = true; });
    }
    if (key == "command" || key == "args") {
      return fields.array(inner, "containers.command", [&](Value item) {
        std::string_view text;
        if (!fields.view(item, "containers.command", text)) return false;
        container.command.emplace_back(first_bytes(text, json::kMostBytes));
        return true;
      });
    }
    if (key == "env") {
      return fields.array(inner, "containers.env", [&](Value item) {
        std::string name;
        std::optional<std::string> text;
        if (!read_name_value(fields, item, "containers.env", name, text, container.env_elsewhere)) return false;
        if (text && text->size() > json::kMostBytes) {
          text.reset();  // No setting of an operand is so long.
          container.env_elsewhere = true;
        }
        if (text) {
          container.env.insert_or_assign(std::move(name), std::move(*text));
        } else {
          container.env.erase(name);  // The last variable of a name counts.
        }
        return true;
      });
    }
    if (key == "volumeMounts") {
      return fields.array(inner, "containers.volumeMounts", [&](Value item) {
        std::string name;
        std::string path;
        const bool read = fields.object(item, "containers.volumeMounts", [&](std::string_view mount, Value text) {
          if (mount == "name") return fields.text(text, "containers.volumeMounts.name", name);
          if (mount == "mountPath") return fields.text(text, "containers.volumeMounts.mountPath", path);
          return true;
        });
        container.volume_mounts.insert_or_assign(std::move(path), std::move(name));
        return read;
      });
    }
    return true;
  });
}

bool read_volume(Fields& fields, Value value, DaemonSet& out, std::map<std::string, std::string>& host_paths) {
  std::string name;
  std::string config_map;
  std::string host_path;
  const bool read = fields.object(value, "volumes", [&](std::string_view key, Value inner) {
    if (key == "name") return fields.text(inner, "volumes.name", name);
    if (key == "configMap") {
      return fields.object(inner, "volumes.configMap", [&](std::string_view field, Value text) {
        return field == "name" ? fields.text(text, "volumes.configMap.name", config_map) : true;
      });
    }
    if (key == "hostPath") {
      return fields.object(inner, "volumes.hostPath", [&](std::string_view field, Value text) {
        return field == "path" ? fields.text(text, "volumes.hostPath.path", host_path) : true;
      });
    }
    return true;
  });
  if (!host_path.empty()) host_paths.insert_or_assign(name, std::move(host_path));
  if (!config_map.empty()) out.configmap_volumes.insert_or_assign(std::move(name), std::move(config_map));
  return read;
}

// The value of a flag: "--mps-root=/x", or "--mps-root", "/x".
void add_flags(const ContainerSpec& container, std::string_view flag, std::set<std::string>& out) {
  for (std::size_t i = 0; i < container.command.size(); ++i) {
    const std::string_view word = container.command[i];
    if (word == flag && i + 1 < container.command.size()) out.insert(container.command[i + 1]);
    if (word.starts_with(flag) && word.substr(flag.size()).starts_with('=')) {
      out.emplace(word.substr(flag.size() + 1));
    }
  }
}

std::set<std::string> mps_roots(const DaemonSet& daemonset, const std::map<std::string, std::string>& host_paths) {
  std::set<std::string> found;
  for (const auto* list : {&daemonset.containers, &daemonset.init_containers}) {
    for (const ContainerSpec& container : *list) {
      if (const auto root = container.env.find("MPS_ROOT"); root != container.env.end()) found.insert(root->second);
      add_flags(container, "--mps-root", found);
      add_flags(container, "--pipe-directory", found);
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

bool read_template_spec(Fields& fields, Value value, std::string_view path, DaemonSet& out) {
  std::map<std::string, std::string> host_paths;
  const bool read = fields.object(value, path, [&](std::string_view key, Value inner) {
    auto containers = [&](std::vector<ContainerSpec>& into) {
      return fields.array(inner, "spec.template.spec.containers",
                          [&](Value item) { return read_container_spec(fields, item, into.emplace_back()); });
    };
    if (key == "containers") return containers(out.containers);
    if (key == "initContainers") return containers(out.init_containers);
    if (key == "nodeSelector") return fields.string_map(inner, "nodeSelector", out.node_selector);
    if (key == "affinity") return json::read_node_affinity(fields, inner, "affinity", out.affinity_terms);
    if (key == "tolerations") return json::read_tolerations<false>(fields, inner, "tolerations", out.tolerations);
    if (key == "volumes") {
      return fields.array(inner, "volumes", [&](Value item) { return read_volume(fields, item, out, host_paths); });
    }
    return true;
  });
  out.mps_roots = mps_roots(out, host_paths);
  return read;
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

constexpr json::Row<DaemonSet> kDaemonSet[] = {
    json::row<&DaemonSet::match_labels>("spec.selector.matchLabels"),
    {"spec.template.metadata.annotations", read_template_annotations},
    {"spec.template.spec", read_template_spec},
    json::row_by<json::read_on_delete, &DaemonSet::on_delete>("spec.updateStrategy.type"),
};
constexpr json::Row<ControllerRevision> kControllerRevision[] = {json::row<&ControllerRevision::revision>("revision")};

}  // namespace

k8s::Result<DaemonSet> project_daemonset(std::string_view text) {
  return json::project<DaemonSet>("DaemonSet", text, {true, keeps_daemonset_annotation, true}, kDaemonSet);
}

k8s::Result<ControllerRevision> project_controller_revision(std::string_view text) {
  return json::project<ControllerRevision>("ControllerRevision", text, {}, kControllerRevision);
}

}  // namespace gso
