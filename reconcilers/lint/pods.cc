// Pods that use GPUs, and the pods of workloads: what the API server refuses, what no component notices, and what makes
// a client run without the MPS daemon that it was meant to use. KAI's own rules are in reconcilers/kai.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/kai/pod_annotations.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/misspelt.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/slice_resource.h"
#include "reconcilers/profile/go_numbers.h"
#include "reconcilers/profile/resource_name.h"

namespace gso {
namespace {

constexpr std::string_view kDefaultPipeDirectory = "/tmp/nvidia-mps";
constexpr std::string_view kMisspeltPipeDirectory = "/tmp/nvidia-smp";
constexpr std::string_view kPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";
// The user of the MPS daemon in the device plugin of nos, unless its chart's mps.userID says otherwise.
constexpr std::string_view kNosUser = "1000";

// Below that directory, or the directory itself.
bool is_within(std::string_view path, std::string_view directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
  return path == directory || (path.starts_with(directory) && path.substr(directory.size()).starts_with('/'));
}

class GpuPodCheck {
 public:
  // `found`: what KAI's check has reported already.
  GpuPodCheck(const DocumentValue& pod, std::vector<Diagnostic>& found) : pod_(pod), found_(found) {
    for (const Diagnostic& d : found) reported_.insert(d.path);
    const DocumentValue* volumes = find_path(pod, {"spec", "volumes"});
    for (std::size_t i = 0; volumes != nullptr && i < volumes->items.size(); ++i) {
      volumes_.try_emplace(volumes->items[i].string_at("name"), &volumes->items[i]);
    }
  }

  void run() {
    const DocumentValue* metadata = pod_.find("metadata");
    strings(metadata, "labels", "metadata.labels", "LabelNoString", "a label's value");
    strings(metadata, "annotations", "metadata.annotations", "AnnotationNoString", "an annotation's value");
    const DocumentValue* spec = pod_.find("spec");
    if (spec == nullptr || !spec->is_object()) return;
    strings(spec, "nodeSelector", "spec.nodeSelector", "SelectorNoString", "a label's value");
    if (metadata != nullptr) check_misspelt_metadata(*metadata, *spec, found_);
    host_paths(*spec);
    for (const std::string_view field : {"containers", "initContainers"}) {
      const DocumentValue* containers = spec->find(field);
      for (std::size_t i = 0; containers != nullptr && i < containers->items.size(); ++i) {
        const std::string path = fmt::format("spec.{}[{}]", field, i);
        pipe_directory(containers->items[i], path);
        slices(*spec, containers->items[i], path);
        several(*spec, containers->items[i], path);
        misspelt_resources(containers->items[i], path);
        visible_devices(containers->items[i], path);
        check_extended_resources(containers->items[i], path, found_);
      }
    }
  }

 private:
  void add(Severity severity, std::string code, std::string path, Position at, std::string message) {
    found_.push_back({severity, std::move(code), std::move(path), at.line, at.column, std::move(message)});
  }
  void warning(std::string code, std::string path, Position at, std::string message) {
    add(Severity::warning, std::move(code), std::move(path), at, std::move(message));
  }

  // KAI's check has reported it already.
  [[nodiscard]] bool is_reported(const std::string& path) const { return reported_.contains(path); }

  // A mapping of strings, as the API server wants it.
  void strings(const DocumentValue* parent, std::string_view field, const std::string& path, const char* code,
               std::string_view what) {
    const DocumentValue* map = parent == nullptr ? nullptr : parent->find(field);
    for (std::size_t i = 0; map != nullptr && i < map->members.size(); ++i) {
      const DocumentMember& member = map->members[i];
      const std::string place = fmt::format("{}[{}]", path, member.key);
      if (member.value.is_string() || member.value.is_null() || is_reported(place)) continue;
      add(Severity::error, code, place, member.value.at,
          fmt::format("{} is a string, and the API server refuses {}; put it in quotes", what,
                      kind_name(member.value.kind)));
    }
  }

  [[nodiscard]] const DocumentValue* volume_of(std::string_view name) const {
    const auto found = volumes_.find(name);
    return found == volumes_.end() ? nullptr : found->second;
  }

  void host_paths(const DocumentValue& spec) {
    const DocumentValue* volumes = spec.find("volumes");
    for (std::size_t i = 0; volumes != nullptr && i < volumes->items.size(); ++i) {
      const DocumentValue* path = find_path(volumes->items[i], {"hostPath", "path"});
      const std::string place = fmt::format("spec.volumes[{}].hostPath.path", i);
      if (path == nullptr || !is_within(path->text, kMisspeltPipeDirectory) || is_reported(place)) continue;
      warning("PipeDirectoryMisspelt", place, path->at,
              "the MPS daemon's directory is /tmp/nvidia-mps, not /tmp/nvidia-smp: the kubelet mounts another folder, "
              "and the pod runs without MPS");
    }
  }

  // A client looks for the daemon in the directory that the variable names: that must be what the pod mounts.
  void pipe_directory(const DocumentValue& container, const std::string& path) {
    const DocumentValue* variable = nullptr;
    const DocumentValue* env = container.find("env");
    for (std::size_t i = 0; env != nullptr && i < env->items.size(); ++i) {
      if (env->items[i].string_at("name") == kPipeVariable) variable = env->items[i].find("value");
    }
    if (variable != nullptr && variable->text.find("$(") != std::string::npos) return;
    const std::string_view looks_in = variable != nullptr ? std::string_view(variable->text) : kDefaultPipeDirectory;
    bool reaches = false;
    const DocumentValue* mps_mount = nullptr;
    const DocumentValue* mounts = container.find("volumeMounts");
    for (std::size_t i = 0; mounts != nullptr && i < mounts->items.size(); ++i) {
      const DocumentValue& mount = mounts->items[i];
      const std::string_view where = mount.string_at("mountPath");
      reaches = reaches || (!where.empty() && is_within(looks_in, where));
      const DocumentValue* volume = volume_of(mount.string_at("name"));
      const DocumentValue* host = volume == nullptr ? nullptr : find_path(*volume, {"hostPath", "path"});
      const bool of_mps = host != nullptr && (host->text.ends_with("nvidia-mps") || host->text.ends_with("nvidia-smp"));
      if (of_mps && mount.find("mountPath") != nullptr) mps_mount = mount.find("mountPath");
    }
    if (reaches || (variable == nullptr && mps_mount == nullptr)) return;
    if (variable != nullptr) {
      warning("PipeDirectoryNotMounted", path + ".env", variable->at,
              fmt::format("{} is {}, and nothing is mounted there{}: the container runs without MPS", kPipeVariable,
                          shown_value(looks_in),
                          mps_mount == nullptr ? "" : " (the pod mounts " + shown_value(mps_mount->text) + ")"));
      return;
    }
    if (is_within(mps_mount->text, kMisspeltPipeDirectory)) return;  // Reported about the volume.
    warning(
        "PipeDirectoryNotMounted", path + ".volumeMounts", mps_mount->at,
        fmt::format("the MPS daemon's directory is mounted at {}, but clients look in {}: set {} to {}",
                    shown_value(mps_mount->text), kDefaultPipeDirectory, kPipeVariable, shown_value(mps_mount->text)));
  }

  // Slices of nos: clients must share the IPC namespace and the user of its MPS daemon, and one slice is all that a
  // container can use.
  void slices(const DocumentValue& spec, const DocumentValue& container, const std::string& path) {
    const DocumentValue* limits = find_path(container, {"resources", "limits"});
    const DocumentMember* slice = nullptr;
    std::int64_t count = 0;
    for (std::size_t i = 0; limits != nullptr && i < limits->members.size(); ++i) {
      if (!slice_gigabytes(limits->members[i].key)) continue;
      slice = &limits->members[i];
      count += parse_go_int(slice->value.text, 10).value_or(1);
    }
    if (slice == nullptr || count <= 0) return;
    const std::string at = fmt::format("{}.resources.limits[{}]", path, slice->key);
    if (count > 1) {
      warning("SeveralSlices", at, slice->key_at,
              fmt::format("the container asks for {} MPS slices and can use one; ask for one larger slice", count));
    }
    const DocumentValue* host_ipc = spec.find("hostIPC");
    if (host_ipc == nullptr || !host_ipc->boolean) {
      warning("SliceWithoutHostIPC", at, slice->key_at,
              fmt::format("{} is served by the MPS daemon of nos, which clients reach only with hostIPC: true",
                          shown_value(slice->key)));
    }
    const DocumentValue* own = find_path(container, {"securityContext", "runAsUser"});
    const DocumentValue* user = own != nullptr ? own : find_path(spec, {"securityContext", "runAsUser"});
    if (user == nullptr) {
      add(Severity::info, "SliceOfAnotherUser", at, slice->key_at,
          fmt::format("clients must run as the user of the MPS daemon, {} by default: set runAsUser, unless it is the "
                      "image's user",
                      kNosUser));
    } else if (user->text != kNosUser) {
      warning("SliceOfAnotherUser", at, user->at,
              fmt::format("runAsUser is {}, and the MPS daemon of nos serves only clients of its own user, {} by "
                          "default (mps.userID of its chart)",
                          shown_value(user->text), kNosUser));
    }
  }

  void several(const DocumentValue& spec, const DocumentValue& container, const std::string& path) {
    const DocumentValue* limits = find_path(container, {"resources", "limits"});
    for (std::size_t i = 0; limits != nullptr && i < limits->members.size(); ++i) {
      const DocumentMember& limit = limits->members[i];
      const auto count = parse_go_int(limit.value.text, 10);
      if (!count || *count < 2) continue;
      if (limit.key == kGpuResource && selects_mps(spec)) {
        warning("SeveralReplicas", fmt::format("{}.resources.limits[{}]", path, limit.key), limit.value.at,
                fmt::format("the pod selects nodes whose GPUs are shared by MPS, and {} of {} are several replicas: "
                            "the device plugin refuses them, unless its profile has failRequestsGreaterThanOne: false, "
                            "and they give the container neither more time nor more memory; ask for 1",
                            *count, shown_value(limit.key)));
      }
      if (!limit.key.starts_with("nvidia.com/") || !limit.key.ends_with(".shared")) continue;
      warning("SeveralReplicas", fmt::format("{}.resources.limits[{}]", path, limit.key), limit.value.at,
              fmt::format("{} of {} are replicas of shared GPUs: they give the container neither more time nor more "
                          "memory, under MPS the device plugin refuses them, and they might be on the same GPU; ask "
                          "for 1",
                          *count, shown_value(limit.key)));
    }
  }

  void misspelt_resources(const DocumentValue& container, const std::string& path) {
    const DocumentValue* limits = find_path(container, {"resources", "limits"});
    for (const std::string_view list : {"limits", "requests"}) {
      const DocumentValue* amounts = find_path(container, {"resources", list});
      for (std::size_t i = 0; amounts != nullptr && i < amounts->members.size(); ++i) {
        const DocumentMember& amount = amounts->members[i];
        const std::string_view meant = meant_resource(amount.key);
        const bool reported = list == "requests" && limits != nullptr && limits->find(amount.key) != nullptr;
        if (meant.empty() || reported) continue;
        warning("ResourceMisspelt", fmt::format("{}.resources.{}[{}]", path, list, amount.key), amount.key_at,
                fmt::format("no device plugin offers {}, so the pod stays Pending; did you mean \"{}\"?",
                            shown_value(amount.key), meant));
      }
    }
  }

  // The kubelet adds the plugin's variables before the pod's own, and the last one of a name counts.
  void visible_devices(const DocumentValue& container, const std::string& path) {
    constexpr std::string_view kVariable = "NVIDIA_VISIBLE_DEVICES";
    const DocumentMember* requested = nullptr;
    const DocumentValue* limits = find_path(container, {"resources", "limits"});
    for (std::size_t i = 0; limits != nullptr && i < limits->members.size(); ++i) {
      const DocumentMember& limit = limits->members[i];
      if (limit.key.starts_with("nvidia.com/") && limit.value.text != "0") requested = &limit;
    }
    const DocumentValue* env = find_path(container, {"env"});
    for (std::size_t i = 0; requested != nullptr && env != nullptr && i < env->items.size(); ++i) {
      const DocumentValue* value = env->items[i].find("value");
      if (env->items[i].string_at("name") != kVariable || value == nullptr || value->text != "all") continue;
      warning("VisibleDevicesSet", fmt::format("{}.env[{}].value", path, i), value->at,
              fmt::format("{} is \"all\", which replaces what the device plugin sets for {}: the container can use "
                          "every GPU of its node, those of other pods too; remove the variable",
                          kVariable, shown_value(requested->key)));
    }
  }

  const DocumentValue& pod_;
  std::vector<Diagnostic>& found_;
  // Looked up for each mount and each value: a pod can have tens of thousands of these.
  std::set<std::string> reported_;                            // Paths.
  std::map<std::string_view, const DocumentValue*> volumes_;  // By name, the first of each.
};

// Any object with containers in its spec that stands under a field named like a template: Deployment, Job, CronJob,
// PyTorchJob, RayCluster, … have it at different places.
void find_templates(const DocumentValue& value, const std::string& path, bool named, std::vector<PodTemplate>& out) {
  const DocumentValue* containers = named ? find_path(value, {"spec", "containers"}) : nullptr;
  if (containers != nullptr && containers->is_array()) {
    out.push_back({&value, path + "."});
    return;
  }
  for (const DocumentMember& member : value.members) {
    const bool is_template = member.key.ends_with("emplate");
    find_templates(member.value, path.empty() ? member.key : path + "." + member.key, is_template, out);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    find_templates(value.items[i], fmt::format("{}[{}]", path, i), named, out);
  }
}

}  // namespace

std::vector<PodTemplate> pod_templates(const DocumentValue& object) {
  std::vector<PodTemplate> out;
  if (const DocumentValue* spec = object.find("spec")) find_templates(*spec, "spec", false, out);
  if (object.string_at("kind") == "PodTemplate") {
    if (const DocumentValue* pod = object.find("template")) find_templates(*pod, "template", true, out);
  }
  return out;
}

void check_pod_at(const DocumentValue& pod, const std::string& path, const KaiPodRules& rules,
                  std::vector<Diagnostic>& diagnostics) {
  std::vector<Diagnostic> found;
  check_pod(pod, rules, found);
  GpuPodCheck(pod, found).run();
  for (Diagnostic& d : found) {
    if (!d.path.empty()) d.path = path + d.path;
    diagnostics.push_back(std::move(d));
  }
}

bool needs_other_objects(const DocumentValue& pod) {
  const DocumentValue* annotations = find_path(pod, {"metadata", "annotations"});
  for (std::size_t i = 0; annotations != nullptr && i < annotations->members.size(); ++i) {
    if (is_kai_annotation(annotations->members[i].key)) return true;
  }
  return reserves_memory(pod) || asks_for_several(pod);
}

void check_node(const DocumentValue& node, std::vector<Diagnostic>& diagnostics) {
  if (const DocumentValue* metadata = node.find("metadata")) check_misspelt_labels_of_node(*metadata, diagnostics);
}

}  // namespace gso
