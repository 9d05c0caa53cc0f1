// KAI's GPU sharing annotations on a Pod, in the order in which KAI's admission looks at them.
#include "reconcilers/kai/pod_annotations.h"

#include <algorithm>
#include <cmath>

#include "k8sclient/value/encoding.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"

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

class PodCheck : DocumentCheck {
 public:
  PodCheck(const DocumentValue& pod, const PodRules& rules, std::vector<Diagnostic>& diagnostics)
      : DocumentCheck(diagnostics), pod_(pod), rules_(rules), spec_(pod.find("spec")) {
    const DocumentValue* metadata = pod.find("metadata");
    annotations_ = metadata != nullptr ? metadata->find("annotations") : nullptr;
  }

  void run() {
    if (spec_ == nullptr || !spec_->is_object())
      return add(error, "WrongType", "spec", pod_.at, "a Pod needs a \"spec\"");
    if (!strings_only()) return;
    client_of_a_daemon();
    const std::string_view scheduler = spec_->string_at("schedulerName");
    if (scheduler != rules_.kai_scheduler) return not_scheduled_by_kai(scheduler);
    exclusions();
    values();
    container_name();
    silently_ignored();
    host_mps();
  }

 private:
  using enum Severity;

  // Reports an annotation, which the pod has if it is wrong.
  void report_if(bool is_wrong, Severity severity, std::string_view name, std::string_view code, std::string message) {
    if (is_wrong)
      add(severity, code, fmt::format("metadata.annotations[{}]", name), annotation(name)->at, std::move(message));
  }

  [[nodiscard]] const DocumentValue* annotation(std::string_view name) const {
    return annotations_ != nullptr ? annotations_->find(name) : nullptr;
  }
  [[nodiscard]] bool has(std::string_view name) const { return annotation(name) != nullptr; }
  // Empty if it is absent.
  [[nodiscard]] std::string_view text(std::string_view name) const {
    return has(name) ? std::string_view(annotation(name)->text) : std::string_view();
  }
  // Asks KAI for a share of a GPU.
  [[nodiscard]] bool shares() const { return has(kFraction) || has(kMemory); }
  [[nodiscard]] bool wants_mps() const { return text(kMps) == "true"; }

  bool strings_only() {
    bool fine = true;
    for (const std::string_view name :
         {kFraction, kMemory, kDeviceCount, kContainerName, kMps, kMpsClient, kMpsPipeDirectory}) {
      if (!has(name) || annotation(name)->is_string()) continue;
      fine = false;
      report_if(true, error, name, "AnnotationNoString",
                fmt::format("an annotation's value must be a string, but this is {}; put it in quotes",
                            kind_name(annotation(name)->kind)));
    }
    return fine;
  }

  // What the chart's admission policy warns of, too: it adds nothing to such a pod.
  void client_of_a_daemon() {
    const std::string_view client = text(kMpsClient);
    report_if(
        has(kMpsClient) && client != "true" && client != "false", warning, kMpsClient, "AnnotationIgnored",
        fmt::format("{} is \"{}\" and has no effect; write \"true\" or \"false\"", kMpsClient, shown_value(client)));
    const std::string_view directory = text(kMpsPipeDirectory);
    report_if(has(kMpsPipeDirectory) && !is_pipe_directory(directory), warning, kMpsPipeDirectory, "AnnotationIgnored",
              fmt::format("{} is \"{}\"; it must be an absolute path of letters, digits, '.', '_' and '-', without "
                          "'..'; otherwise nothing is added to the pod, and it runs without MPS",
                          kMpsPipeDirectory, shown_value(directory)));
  }

  void not_scheduled_by_kai(std::string_view scheduler) {
    for (const std::string_view name : {kFraction, kMemory, kDeviceCount}) {
      report_if(has(name), warning, name, "AnnotationIgnored",
                fmt::format("{} has no effect: {}, and only {} reads it", name,
                            scheduler.empty() ? std::string("the pod names no scheduler")
                                              : fmt::format("schedulerName is \"{}\"", shown_value(scheduler)),
                            rules_.kai_scheduler));
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
    report_if(shares() && rules_.kai_gpu_sharing == false, error, has(kFraction) ? kFraction : kMemory,
              "KAISharingDisabled",
              "KAI's GPU sharing is off, and its admission refuses the pod; set admission.gpuSharing: true in "
              "kai-config, or request whole GPUs");
    report_if(!shares() && wants_mps(), error, kMps, "MPSWithoutFraction",
              "mps works only together with gpu-fraction or gpu-memory, and KAI refuses the pod; add one of them");
    const DocumentValue* limit = whole_gpu_limit();
    report_if(has(kFraction) && limit != nullptr, error, kFraction, "FractionWithWholeGPU",
              fmt::format("gpu-fraction and a limit of {} (line {}) exclude each other; remove one of the two",
                          kGpuResource, limit == nullptr ? 0 : limit->at.line));
    report_if(has(kMemory) && (has(kFraction) || limit != nullptr), error, kMemory, "MemoryWithOtherRequest",
              fmt::format("gpu-memory and {} exclude each other; remove one of the two",
                          has(kFraction) ? std::string(kFraction) : fmt::format("a limit of {}", kGpuResource)));
    report_if(has(kDeviceCount) && !shares(), error, kDeviceCount, "DevicesWithoutFraction",
              "gpu-fraction-num-devices needs gpu-fraction or gpu-memory; add one of them");
  }

  void values() {
    positive_integer(kMemory, "GPUMemoryInvalid", "MiB as a whole number above 0 without a unit, for example \"4096\"");
    const auto fraction = parse_go_float(text(kFraction));
    const bool is_number = fraction && !std::isnan(*fraction);
    report_if(has(kFraction) && (!fraction || *fraction <= 0 || *fraction >= 1), error, kFraction, "GPUFractionInvalid",
              fmt::format("gpu-fraction is \"{}\"; it must be a number above 0 and below 1, for example \"0.5\"",
                          shown_value(text(kFraction))));
    report_if(fraction && !is_number, error, kFraction, "GPUFractionInvalid",
              "gpu-fraction is not a number: KAI's admission accepts it, but the pod can never be scheduled; write a "
              "number above 0 and below 1");
    positive_integer(kDeviceCount, "NumDevicesInvalid", "a whole number of 1 or more");
  }

  void positive_integer(std::string_view name, std::string_view code, std::string_view wanted) {
    const bool is_positive = parse_go_uint(text(name), 10).value_or(0) > 0;
    report_if(has(name) && !is_positive, error, name, code,
              fmt::format("{} is \"{}\"; it must be {}", name, shown_value(text(name)), wanted));
    report_if(is_positive && !parse_go_int(text(name), 10), error, name, code,
              fmt::format("{} is {}: KAI's admission accepts it, but the binder cannot read it, and the pod can "
                          "never start; it must be {}",
                          name, shown_value(text(name)), wanted));
  }

  void container_name() {
    if (!has(kContainerName)) return;
    report_if(!shares(), warning, kContainerName, "AnnotationIgnored",
              "gpu-fraction-container-name has no effect without gpu-fraction or gpu-memory");
    std::vector<std::string_view> names;
    each_container(*spec_, [&](const DocumentValue& container, const std::string&) {
      names.push_back(container.string_at("name"));
    });
    const std::string all = fmt::format("{}", fmt::join(names, ", "));
    const bool found = std::ranges::find(names, text(kContainerName)) != names.end();
    report_if(shares() && !found && !all.empty(), error, kContainerName, "ContainerNotFound",
              fmt::format("container \"{}\" not found, and KAI refuses the pod. Containers: {}",
                          shown_value(text(kContainerName)), shown_value(all)));
  }

  // Settings that KAI accepts and ignores.
  void silently_ignored() {
    report_if(has(kMps) && !wants_mps(), warning, kMps, "AnnotationIgnored",
              fmt::format("mps is \"{}\" and has no effect; only \"true\" has an effect", shown_value(text(kMps))));
    if (!shares()) return;
    each_container(*spec_, [&](const DocumentValue& container, const std::string& path) {
      const DocumentValue* limits = find_path(container, {"resources", "limits"});
      for (std::size_t i = 0; limits != nullptr && i < limits->members.size(); ++i) {
        const DocumentMember& limit = limits->members[i];
        if (limit.key == kGpuResource || !limit.key.starts_with("nvidia.com/")) continue;
        add(warning, "FractionWithOtherGPUResource", fmt::format("{}.resources.limits[{}]", path, limit.key),
            limit.key_at,
            fmt::format("{} together with a GPU fraction gives the pod two GPUs; KAI does not refuse it, but use "
                        "only one of the two",
                        shown_value(limit.key)));
      }
    });
  }

  // KAI leaves MPS on hosts to the user: a pod that wants it must reach the daemon's pipe directory, on a node that has
  // a daemon. The pod of KAI's guide says by its volume alone that it wants it.
  void host_mps() {
    std::string place = fmt::format("metadata.annotations[{}]", kMps);
    const DocumentValue* pipe = nullptr;
    const DocumentValue* volumes = spec_->find("volumes");
    for (std::size_t i = 0; volumes != nullptr && i < volumes->items.size() && pipe == nullptr; ++i) {
      if (!is_pipe_volume(volumes->items[i])) continue;
      pipe = volumes->items[i].find("hostPath");
      place = fmt::format("spec.volumes[{}].hostPath", i);
    }
    // The chart's podMutation adds what is missing to a pod that asks for it.
    if (!shares() || (!wants_mps() && pipe == nullptr) || text(kMpsClient) == "true") return;
    const Position at = pipe != nullptr ? pipe->at : annotation(kMps)->at;
    if (pipe == nullptr) {
      add(info, "NoPipeDirectory", place, at,
          "KAI mounts nothing for MPS: without a hostPath volume of the daemon's pipe directory (/tmp/nvidia-mps, from "
          "driver r615 on /run/nvidia-mps) the pod runs without using MPS");
    } else if (pipe->string_at("type") == "DirectoryOrCreate") {
      add(warning, "PipeDirectoryCreated", place + ".type", pipe->find("type")->at,
          "on a node without an MPS daemon in that directory the kubelet makes an empty folder, and the pod runs with "
          "the whole GPU, without MPS and without an error: write `type: Directory`");
    }
    const DocumentValue* host_ipc = spec_->find("hostIPC");
    if (host_ipc == nullptr || !host_ipc->boolean)
      add(info, "NoHostIPC", place, at,
          "MPS clients and daemon share memory: hostIPC: true is needed unless /dev/shm is shared otherwise");
    const auto of_daemons = [](const SelectedLabel& label) {
      return label.key == kMpsEnabled || label.key == kMpsPipeDirectory;
    };
    if (std::ranges::none_of(selected_labels(*spec_), of_daemons))
      add(info, "NoDaemonSelector", place, at,
          fmt::format(
              "KAI places the pod on any node: unless all run an MPS daemon in that directory, select those that "
              "do, by {}: \"true\" or {}",
              kMpsEnabled, kMpsPipeDirectory));
  }

  const DocumentValue& pod_;
  const PodRules& rules_;
  const DocumentValue* spec_;
  const DocumentValue* annotations_ = nullptr;
};

}  // namespace

std::vector<SelectedLabel> selected_labels(const DocumentValue& spec) {
  std::vector<SelectedLabel> out;
  const DocumentValue* selector = spec.find("nodeSelector");
  for (std::size_t i = 0; selector != nullptr && i < selector->members.size(); ++i) {
    const DocumentMember& member = selector->members[i];
    out.push_back(
        {member.key, fmt::format("spec.nodeSelector[{}]", member.key), member.key_at, "In", {member.value.text}});
  }
  constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const DocumentValue* terms = find_path(spec, {"affinity", "nodeAffinity", kRequired, "nodeSelectorTerms"});
  for (std::size_t i = 0; terms != nullptr && i < terms->items.size(); ++i) {
    const DocumentValue* expressions = terms->items[i].find("matchExpressions");
    for (std::size_t j = 0; expressions != nullptr && j < expressions->items.size(); ++j) {
      const DocumentValue* key = expressions->items[j].find("key");
      if (key == nullptr) continue;
      SelectedLabel& label = out.emplace_back(SelectedLabel{
          key->text,
          fmt::format("spec.affinity.nodeAffinity.{}.nodeSelectorTerms[{}].matchExpressions[{}].key", kRequired, i, j),
          key->at,
          std::string(expressions->items[j].string_at("operator")),
          {}});
      const DocumentValue* values = expressions->items[j].find("values");
      for (std::size_t k = 0; values != nullptr && k < values->items.size(); ++k)
        label.values.push_back(values->items[k].text);
    }
  }
  return out;
}

bool is_pipe_volume(const DocumentValue& volume) {
  const DocumentValue* host = volume.find("hostPath");
  if (host == nullptr) return false;
  std::string names = fmt::format(" {} {} ", volume.string_at("name"), host->string_at("path"));
  std::ranges::replace_if(names, [](char c) { return !k8s::is_digit(c) && (c < 'a' || c > 'z'); }, ' ');
  const bool of_mps = names.contains(" mps ") || names.contains(" smp ");
  return of_mps && !names.contains(" log ") && !names.contains(" logs ") && !names.contains(" shm ");
}

PodRules rules_of(const World& world, const PlannerSettings& settings) {
  const KaiView view = view_kai(world.kai, settings.kai);
  PodRules rules{.mps_user = settings.partitioning.mps_user};
  if (view.configured) rules.kai_gpu_sharing = view.sharing.enabled;
  return rules;
}

void check_pod(const DocumentValue& pod, const PodRules& rules, std::vector<Diagnostic>& diagnostics) {
  PodCheck(pod, rules, diagnostics).run();
}

}  // namespace gso
