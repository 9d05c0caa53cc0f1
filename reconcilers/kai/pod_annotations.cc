// KAI's GPU sharing annotations on a Pod, in the order in which KAI's admission looks at them.
#include "reconcilers/kai/pod_annotations.h"

#include <cmath>

#include <fmt/format.h>

#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

using kai::kContainerName;
using kai::kDeviceCount;
using kai::kFraction;
using kai::kMemory;

constexpr std::string_view kMps = "mps";

// An absolute path as the chart's admission policy accepts it: (/[A-Za-z0-9_][A-Za-z0-9._-]*)+
bool is_pipe_directory(std::string_view path) {
  constexpr std::string_view kFirst = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool starts_a_part = i == 0 || path[i - 1] == '/';
    if (i == 0 ? path[i] != '/' : starts_a_part && !kFirst.contains(path[i])) return false;
    if (!kFirst.contains(path[i]) && path[i] != '/' && path[i] != '.' && path[i] != '-') return false;
  }
  return path.size() > 1 && !path.ends_with('/');
}

class PodCheck {
 public:
  PodCheck(const DocumentValue& pod, const KaiPodRules& rules, std::vector<Diagnostic>& diagnostics)
      : pod_(pod), rules_(rules), diagnostics_(diagnostics), spec_(pod.find("spec")) {
    const DocumentValue* metadata = pod.find("metadata");
    annotations_ = metadata != nullptr ? metadata->find("annotations") : nullptr;
  }

  void run() {
    if (spec_ == nullptr || !spec_->is_object()) {
      error("WrongType", "spec", pod_.at, "a Pod needs a \"spec\"");
      return;
    }
    if (!strings_only()) return;
    client_of_a_daemon();
    const std::string_view scheduler = spec_->string_at("schedulerName");
    if (scheduler != rules_.kai_scheduler) {
      not_scheduled_by_kai(scheduler);
      return;
    }
    exclusions();
    values();
    container_name();
    silently_ignored();
    host_mps();
  }

 private:
  void add(Diagnostic::Severity severity, std::string code, std::string path, Position at, std::string message) {
    diagnostics_.push_back({severity, std::move(code), std::move(path), at.line, at.column, std::move(message)});
  }
  void error(std::string code, std::string path, Position at, std::string message) {
    add(Diagnostic::Severity::error, std::move(code), std::move(path), at, std::move(message));
  }
  void warning(std::string code, std::string path, Position at, std::string message) {
    add(Diagnostic::Severity::warning, std::move(code), std::move(path), at, std::move(message));
  }

  [[nodiscard]] const DocumentValue* annotation(std::string_view name) const {
    return annotations_ != nullptr ? annotations_->find(name) : nullptr;
  }
  static std::string path_of(std::string_view name) { return fmt::format("metadata.annotations[{}]", name); }

  bool strings_only() {
    bool fine = true;
    for (const std::string_view name :
         {kFraction, kMemory, kDeviceCount, kContainerName, kMps, kMpsClient, kMpsPipeDirectory}) {
      const DocumentValue* value = annotation(name);
      if (value != nullptr && !value->is_string()) {
        error("AnnotationNoString", path_of(name), value->at,
              fmt::format("an annotation's value must be a string, but this is {}; put it in quotes",
                          kind_name(value->kind)));
        fine = false;
      }
    }
    return fine;
  }

  // What the chart's admission policy warns of, too: it adds nothing to such a pod.
  void client_of_a_daemon() {
    const DocumentValue* client = annotation(kMpsClient);
    if (client != nullptr && client->text != "true" && client->text != "false") {
      warning("AnnotationIgnored", path_of(kMpsClient), client->at,
              fmt::format("{} is \"{}\" and has no effect; write \"true\" or \"false\"", kMpsClient,
                          shown_value(client->text)));
    }
    const DocumentValue* directory = annotation(kMpsPipeDirectory);
    if (directory != nullptr && !is_pipe_directory(directory->text)) {
      warning("AnnotationIgnored", path_of(kMpsPipeDirectory), directory->at,
              fmt::format("{} is \"{}\"; it must be an absolute path of letters, digits, '.', '_' and '-', without "
                          "'..'; otherwise nothing is added to the pod, and it runs without MPS",
                          kMpsPipeDirectory, shown_value(directory->text)));
    }
  }

  void not_scheduled_by_kai(std::string_view scheduler) {
    for (const std::string_view name : {kFraction, kMemory, kDeviceCount}) {
      if (const DocumentValue* value = annotation(name)) {
        warning("AnnotationIgnored", path_of(name), value->at,
                fmt::format("{} has no effect: {}, and only {} reads it", name,
                            scheduler.empty() ? std::string("the pod names no scheduler")
                                              : fmt::format("schedulerName is \"{}\"", shown_value(scheduler)),
                            rules_.kai_scheduler));
      }
    }
  }

  [[nodiscard]] const DocumentValue* whole_gpu_limit() const {
    const DocumentValue* found = nullptr;
    each_container(*spec_, [&](const DocumentValue& container, const std::string&) {
      if (found == nullptr) found = find_path(container, {"resources", "limits", kGpuResource});
    });
    return found;
  }

  void exclusions() {
    const DocumentValue* fraction = annotation(kFraction);
    const DocumentValue* memory = annotation(kMemory);
    const DocumentValue* any = fraction != nullptr ? fraction : memory;
    const DocumentValue* mps = annotation(kMps);
    if (any != nullptr && rules_.kai_gpu_sharing == false) {
      error("KAISharingDisabled", path_of(fraction != nullptr ? kFraction : kMemory), any->at,
            "KAI's GPU sharing is off, and its admission refuses the pod; set admission.gpuSharing: true in "
            "kai-config, or "
            "request whole GPUs");
    }
    if (any == nullptr && mps != nullptr && mps->text == "true") {
      error("MPSWithoutFraction", path_of(kMps), mps->at,
            "mps works only together with gpu-fraction or gpu-memory, and KAI refuses the pod; add one of them");
    }
    const DocumentValue* limit = whole_gpu_limit();
    if (fraction != nullptr && limit != nullptr) {
      error("FractionWithWholeGPU", path_of(kFraction), fraction->at,
            fmt::format("gpu-fraction and a limit of {} (line {}) exclude each other; remove one of the two",
                        kGpuResource, limit->at.line));
    }
    if (memory != nullptr && (fraction != nullptr || limit != nullptr)) {
      error("MemoryWithOtherRequest", path_of(kMemory), memory->at,
            fmt::format("gpu-memory and {} exclude each other; remove one of the two",
                        fraction != nullptr ? std::string(kFraction) : fmt::format("a limit of {}", kGpuResource)));
    }
    if (const DocumentValue* devices = annotation(kDeviceCount); devices != nullptr && any == nullptr) {
      error("DevicesWithoutFraction", path_of(kDeviceCount), devices->at,
            "gpu-fraction-num-devices needs gpu-fraction or gpu-memory; add one of them");
    }
  }

  void values() {
    if (const DocumentValue* memory = annotation(kMemory)) {
      positive_integer(*memory, kMemory, "GPUMemoryInvalid",
                       "MiB as a whole number above 0 without a unit, for example \"4096\"");
    }
    if (const DocumentValue* fraction = annotation(kFraction)) {
      const auto value = parse_go_float(fraction->text);
      if (!value || *value <= 0 || *value >= 1) {
        error("GPUFractionInvalid", path_of(kFraction), fraction->at,
              fmt::format("gpu-fraction is \"{}\"; it must be a number above 0 and below 1, for example \"0.5\"",
                          shown_value(fraction->text)));
      } else if (std::isnan(*value)) {
        error("GPUFractionInvalid", path_of(kFraction), fraction->at,
              "gpu-fraction is not a number: KAI's admission accepts it, but the pod can never be scheduled; write a "
              "number above 0 and below 1");
      }
    }
    if (const DocumentValue* devices = annotation(kDeviceCount)) {
      positive_integer(*devices, kDeviceCount, "NumDevicesInvalid", "a whole number of 1 or more");
    }
  }

  void positive_integer(const DocumentValue& value, std::string_view name, std::string code, std::string_view wanted) {
    const auto number = parse_go_uint(value.text, 10);
    if (!number || *number == 0) {
      error(std::move(code), path_of(name), value.at,
            fmt::format("{} is \"{}\"; it must be {}", name, shown_value(value.text), wanted));
    } else if (!parse_go_int(value.text, 10)) {
      error(std::move(code), path_of(name), value.at,
            fmt::format("{} is {}: KAI's admission accepts it, but the binder cannot read it, and the pod can "
                        "never start; it must be {}",
                        name, shown_value(value.text), wanted));
    }
  }

  void container_name() {
    const DocumentValue* wanted = annotation(kContainerName);
    if (wanted == nullptr) return;
    if (annotation(kFraction) == nullptr && annotation(kMemory) == nullptr) {
      warning("AnnotationIgnored", path_of(kContainerName), wanted->at,
              "gpu-fraction-container-name has no effect without gpu-fraction or gpu-memory");
      return;
    }
    bool found = false;
    std::string names;
    each_container(*spec_, [&](const DocumentValue& container, const std::string&) {
      const std::string_view name = container.string_at("name");
      found = found || name == wanted->text;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    });
    if (!found && !names.empty()) {
      error("ContainerNotFound", path_of(kContainerName), wanted->at,
            fmt::format("container \"{}\" not found, and KAI refuses the pod. Containers: {}",
                        shown_value(wanted->text), shown_value(names)));
    }
  }

  // Settings that KAI accepts and ignores.
  void silently_ignored() {
    const DocumentValue* mps = annotation(kMps);
    if (mps != nullptr && mps->text != "true") {
      warning("AnnotationIgnored", path_of(kMps), mps->at,
              fmt::format("mps is \"{}\" and has no effect; only \"true\" has an effect", shown_value(mps->text)));
    }
    const bool shares = annotation(kFraction) != nullptr || annotation(kMemory) != nullptr;
    each_container(*spec_, [&](const DocumentValue& container, const std::string& path) {
      const DocumentValue* limits = find_path(container, {"resources", "limits"});
      for (std::size_t i = 0; shares && limits != nullptr && i < limits->members.size(); ++i) {
        const DocumentMember& limit = limits->members[i];
        if (limit.key != kGpuResource && limit.key.starts_with("nvidia.com/")) {
          warning("FractionWithOtherGPUResource", fmt::format("{}.resources.limits[{}]", path, limit.key), limit.key_at,
                  fmt::format("{} together with a GPU fraction gives the pod two GPUs; KAI does not refuse it, but use "
                              "only one of the two",
                              shown_value(limit.key)));
        }
      }
    });
  }

  // KAI leaves MPS on hosts to the user: a pod that wants it must reach the daemon's pipe directory.
  void host_mps() {
    const DocumentValue* mps = annotation(kMps);
    if (mps == nullptr || mps->text != "true" || (annotation(kFraction) == nullptr && annotation(kMemory) == nullptr)) {
      return;
    }
    // The chart's podMutation adds the directory and hostIPC to a pod that asks for it.
    const DocumentValue* client = annotation(kMpsClient);
    if (client != nullptr && client->text == "true") return;
    bool volume = false;
    const DocumentValue* volumes = spec_->find("volumes");
    for (std::size_t i = 0; volumes != nullptr && i < volumes->items.size(); ++i) {
      const DocumentValue* host = volumes->items[i].find("hostPath");
      if (host != nullptr && host->string_at("path") == "/tmp/nvidia-smp") {
        warning("PipeDirectoryMisspelt", fmt::format("spec.volumes[{}].hostPath.path", i), host->find("path")->at,
                "the MPS daemon's directory is /tmp/nvidia-mps, not /tmp/nvidia-smp");
      }
      volume = volume || (host != nullptr && host->string_at("path").find("mps") != std::string_view::npos);
    }
    if (!volume) {
      add(Diagnostic::Severity::info, "NoPipeDirectory", path_of(kMps), mps->at,
          "KAI mounts nothing for MPS: without a hostPath volume of the daemon's pipe directory (/tmp/nvidia-mps) the "
          "pod runs without using MPS");
    }
    const DocumentValue* host_ipc = spec_->find("hostIPC");
    if (host_ipc == nullptr || !host_ipc->boolean) {
      add(Diagnostic::Severity::info, "NoHostIPC", path_of(kMps), mps->at,
          "MPS clients and daemon share memory: hostIPC: true is needed unless /dev/shm is shared otherwise");
    }
  }

  const DocumentValue& pod_;
  const KaiPodRules& rules_;
  std::vector<Diagnostic>& diagnostics_;
  const DocumentValue* spec_;
  const DocumentValue* annotations_ = nullptr;
};

}  // namespace

KaiPodRules rules_of(const KaiView& view) {
  KaiPodRules rules;
  if (view.configured) rules.kai_gpu_sharing = view.sharing.enabled;
  return rules;
}

void check_pod(const DocumentValue& pod, const KaiPodRules& rules, std::vector<Diagnostic>& diagnostics) {
  PodCheck(pod, rules, diagnostics).run();
}

std::vector<Diagnostic> check_pod(std::string_view json, const KaiPodRules& rules) {
  std::vector<Diagnostic> diagnostics;
  const std::optional<std::string> respelt = json_for_yaml(json);
  YamlStream stream(respelt ? std::string_view(*respelt) : json, {.bytes = std::size_t{16} << 20});
  const auto document = stream.next();
  if (!document) return diagnostics;
  std::vector<Diagnostic> unused;
  check_pod(to_document_value(*document->root, DecodeTarget::none, unused), rules, diagnostics);
  sort_and_limit(diagnostics);
  return diagnostics;
}

}  // namespace gso
