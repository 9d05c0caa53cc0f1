// Pods that use GPUs, and the pods of workloads: requests of GPUs that the API server refuses, what no component
// notices, and what makes a client run without the MPS daemon that it was meant to use. KAI's own rules are in
// reconcilers/kai.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/kai/pod_annotations.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/partitioning/slice_plan.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

constexpr std::string_view kMisspeltPipeDirectory = "/tmp/nvidia-smp";
constexpr std::string_view kPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";

bool is_of_nvidia(std::string_view resource) {
  return resource.starts_with("nvidia.com/");
}

bool is_text(const DocumentValue& value) {
  return value.is_string() || value.kind == DocumentValue::Kind::number;
}

// Null counts as 0. nullopt: it is no amount.
std::optional<long double> amount_of(const DocumentValue& value) {
  if (value.is_null()) return 0;
  return is_text(value) ? parse_quantity(value.text) : std::nullopt;
}

class GpuPodCheck : DocumentCheck {
 public:
  // `found`: what KAI's check has reported already.
  GpuPodCheck(const DocumentValue& pod, std::int64_t mps_user, std::vector<Diagnostic>& found)
      : DocumentCheck(found), pod_(pod), mps_user_(mps_user) {
    for (const Diagnostic& d : found) reported_.insert(d.path);
    for (const DocumentValue& volume : items_of(find_path(pod, {"spec", "volumes"})))
      volumes_.try_emplace(volume.string_at("name"), &volume);
  }

  void run() {
    const DocumentValue* metadata = pod_.find("metadata");
    check_strings(pod_, reported_, diagnostics_);
    const DocumentValue* spec = pod_.find("spec");
    if (spec == nullptr || !spec->is_object()) return;
    if (metadata != nullptr) check_misspelt_metadata(*metadata, *spec, diagnostics_);
    const DocumentValue* annotations = find_path(pod_, {"metadata", "annotations"});
    for (const DocumentMember& each : members_of(annotations))
      shares_ = shares_ || each.key == kai::kFraction || each.key == kai::kMemory || kai::names_nv_fraction(each.key);
    completed_ = annotations != nullptr && annotations->string_at(kMpsClient) == "true" &&
                 find_path(pod_, {"metadata", "uid"}) == nullptr;
    asks_ = asks_for_gpu(*spec);
    host_paths(*spec);
    const DocumentMember* shared = nullptr;
    each_container(*spec, [&](const DocumentValue& container, const std::string& path) {
      pipe_directory(container, path);
      slices(*spec, container, path);
      for (const DocumentMember& limit : members_of(find_path(container, {"resources", "limits"})))
        if (shared == nullptr && is_of_nvidia(limit.key) && limit.key.ends_with(".shared")) shared = &limit;
      variables(container, path);
      for (const std::string_view list : {"limits", "requests"})
        for (const DocumentMember& asked : members_of(find_path(container, {"resources", list})))
          amount(*spec, container, list, asked, fmt::format("{}.resources.{}[{}]", path, list, asked.key));
    });
    if (shared != nullptr) shared_product(*spec, shared->key);
  }

 private:
  static bool asks_for_gpu(const DocumentValue& spec) {
    bool asks = spec.string_at("runtimeClassName").starts_with("nvidia");
    each_container(spec, [&](const DocumentValue& container, const std::string&) {
      for (const DocumentMember& limit : members_of(find_path(container, {"resources", "limits"})))
        asks = asks || (is_of_nvidia(limit.key) && limit.value.text != "0");
      for (const DocumentValue& variable : items_of(container.find("env")))
        asks = asks || variable.string_at("name") == "NVIDIA_VISIBLE_DEVICES";
    });
    return asks;
  }

  // MPS is also a word of data ("/srv/mps"): without a fraction of KAI, more must say that the volume is for a daemon.
  [[nodiscard]] bool is_for_daemon(const DocumentValue& volume) const {
    if (!is_pipe_volume(volume)) return false;
    if (shares_ || !asks_) return shares_;
    const std::string_view name = volume.string_at("name");
    const std::string path = clean_path(volume.find("hostPath")->string_at("path"));
    const std::string_view last = std::string_view(path).substr(path.rfind('/') + 1);
    return name == "mps" || name == "nvidia-mps" || name.starts_with("mps-pipe") ||
           (last.contains("nvidia") && (last.contains("mps") || last.contains("smp")));
  }

  void host_paths(const DocumentValue& spec) {
    const std::span<const DocumentValue> volumes = items_of(spec.find("volumes"));
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      const DocumentValue* path = find_path(volumes[i], {"hostPath", "path"});
      const std::string place = fmt::format("spec.volumes[{}].hostPath.path", i);
      if (path == nullptr || !is_at_or_below(clean_path(path->text), kMisspeltPipeDirectory) ||
          reported_.contains(place))
        continue;
      add(Severity::warning, "PipeDirectoryMisspelt", place, path->at,
          "the MPS daemon's directory is /tmp/nvidia-mps, not /tmp/nvidia-smp: the kubelet mounts another folder, "
          "and the pod runs without MPS");
    }
  }

  // A client looks for the daemon in the directory that the variable names, else in its driver's default: that must be
  // what the pod mounts.
  void pipe_directory(const DocumentValue& container, const std::string& path) {
    const DocumentValue* variable = nullptr;
    bool unknown = container.find("envFrom") != nullptr;
    for (const DocumentValue& each : items_of(container.find("env"))) {
      if (each.string_at("name") != kPipeVariable) continue;
      variable = each.find("value");
      unknown = variable == nullptr || variable->text.contains("$(");
    }
    const DocumentValue* pipe = nullptr;
    for (const DocumentValue& mount : items_of(container.find("volumeMounts"))) {
      const auto volume = volumes_.find(mount.string_at("name"));
      if (volume != volumes_.end() && is_for_daemon(*volume->second)) pipe = mount.find("mountPath");
    }
    if (unknown || (variable == nullptr && pipe == nullptr)) return;
    if (variable != nullptr) {
      if (is_mounted(container, clean_path(variable->text))) return;
      add(Severity::warning, "PipeDirectoryNotMounted", path + ".env", variable->at,
          fmt::format("{} is {}, and nothing is mounted there{}: the container runs without MPS", kPipeVariable,
                      variable->text.empty() ? "empty" : shown_value(variable->text),
                      pipe == nullptr ? "" : " (the pod mounts " + shown_value(pipe->text) + ")"));
      return;
    }
    if (is_at_or_below(clean_path(pipe->text), kMisspeltPipeDirectory)) return;  // Reported about the volume.
    const bool before = is_mounted(container, kTmpPipeDirectory);
    const bool since = is_mounted(container, kRunPipeDirectory);
    if (before && since) return;
    add(before || since ? Severity::info : Severity::warning, "PipeDirectoryNotMounted", path + ".volumeMounts",
        pipe->at,
        fmt::format("the MPS daemon's directory is mounted at {}, but clients {}look in {}: set {} to {}",
                    shown_value(pipe->text),
                    before  ? "with a driver from r615 on "
                    : since ? "with a driver before r615 "
                            : "",
                    before  ? std::string(kRunPipeDirectory)
                    : since ? std::string(kTmpPipeDirectory)
                            : fmt::format("{} (from driver r615 on {})", kTmpPipeDirectory, kRunPipeDirectory),
                    kPipeVariable, shown_value(pipe->text)));
  }

  static bool is_mounted(const DocumentValue& container, std::string_view path) {
    return std::ranges::any_of(items_of(container.find("volumeMounts")), [&](const DocumentValue& mount) {
      const std::string_view where = mount.string_at("mountPath");
      return !where.empty() && is_at_or_below(path, clean_path(where));
    });
  }

  // What the container asks for of one resource. `list`: limits or requests; `place`: of the amount.
  void amount(const DocumentValue& spec, const DocumentValue& container, std::string_view list,
              const DocumentMember& asked, const std::string& place) {
    const bool requested = list == "requests";
    const DocumentValue* limit = find_path(container, {"resources", "limits", asked.key});
    if (!requested) several(spec, asked, place);
    if (!requested || limit == nullptr) misspelt_resource(asked, place);
    if (!is_of_nvidia(asked.key)) return;
    // NVIDIA's resources are whole numbers, and requests equal the limits. Source: kubernetes/kubernetes,
    // pkg/apis/core/validation (validateResourceQuantityValue, ValidateResourceRequirements).
    whole_number(asked, place);
    if (requested) equal(asked, limit, place);
  }

  void whole_number(const DocumentMember& asked, const std::string& place) {
    const auto amount = amount_of(asked.value);
    if (amount && *amount >= 0 && std::floor(*amount) == *amount) return;
    add(Severity::error, "ResourceNotWhole", place, asked.value.at,
        fmt::format("{} of {}: the API server accepts only whole numbers of 0 or more, because devices cannot be "
                    "divided by a request",
                    is_text(asked.value) ? shown_value(asked.value.text) : std::string(kind_name(asked.value.kind)),
                    shown_value(asked.key)));
  }

  void equal(const DocumentMember& request, const DocumentValue* limit, const std::string& place) {
    if (limit == nullptr) {
      return add(Severity::error, "RequestUnlikeLimit", place, request.value.at,
                 fmt::format("{} is requested and has no limit, which the API server refuses: write the number under "
                             "limits; the request then follows",
                             shown_value(request.key)));
    }
    const auto wanted = amount_of(request.value);
    const auto most = amount_of(*limit);
    if (!wanted || !most || *wanted == *most) return;
    add(Severity::error, "RequestUnlikeLimit", place, request.value.at,
        fmt::format("{} of {} are requested and the limit is {}: the API server wants both to be equal; write the "
                    "limit alone",
                    shown_value(request.value.text), shown_value(request.key), shown_value(limit->text)));
  }

  // Slices of nos: clients must share the IPC namespace and the user of its MPS daemon, and one slice is all that a
  // container can use.
  void slices(const DocumentValue& spec, const DocumentValue& container, const std::string& path) {
    const DocumentValue* own = find_path(container, {"securityContext", "runAsUser"});
    const DocumentValue* user = own != nullptr ? own : find_path(spec, {"securityContext", "runAsUser"});
    const DocumentValue* host_ipc = spec.find("hostIPC");
    SlicePod pod;
    pod.own_ipc = (host_ipc == nullptr || !host_ipc->boolean) && !completed_;
    std::vector<SliceRequest> requests;
    const DocumentMember* slice = nullptr;
    for (const DocumentMember& limit : members_of(find_path(container, {"resources", "limits"}))) {
      const auto gigabytes = slice_gigabytes(limit.key);
      const std::int64_t count = parse_go_int(limit.value.text, 10).value_or(1);
      if (!gigabytes || count <= 0) continue;
      slice = &limit;
      requests.push_back({std::string(container.string_at("name")), *gigabytes, count,
                          user == nullptr ? kUserOfImage : parse_go_int(user->text, 10).value_or(kUserOfImage)});
    }
    if (slice == nullptr) return;
    pod.requests = std::move(requests);
    const std::string at = fmt::format("{}.resources.limits[{}]", path, slice->key);
    for (const Reason& fault : slice_faults(pod, container.string_at("name"), mps_user_)) {
      const bool of_user = fault.code == kSliceOfAnotherUser;
      add(Severity::warning, fault.code, at, of_user ? user->at : slice->key_at, fault.message);
    }
    if (user == nullptr && !completed_) {
      add(Severity::info, kSliceOfAnotherUser, at, slice->key_at,
          fmt::format(
              "clients must run as the user of the MPS daemon, {}: set runAsUser, unless it is the image's user",
              mps_user_));
    }
  }

  // GFD appends the suffix where shared GPUs keep their name, and plugins append .shared to the name elsewhere.
  void shared_product(const DocumentValue& spec, std::string_view resource) {
    for (const SelectedLabel& label : selected_labels(spec)) {
      const auto is_shared = [](const std::string& product) { return unshared_product(product) != product; };
      const bool wrong = label.key == kGpuProduct && label.op == "In" && !label.values.empty() &&
                         std::ranges::all_of(label.values, is_shared);
      if (!wrong || !reported_.insert(label.path).second) continue;
      const std::string& product = label.values.front();
      add(Severity::warning, "SharedProductSelected", label.path, label.at,
          fmt::format(
              "no node has {0} and the label {1}={2}: with renameByDefault, which gives {0} its name, the label has "
              "no suffix -SHARED. Select {3}, or request {4} where shared GPUs keep their name",
              shown_value(resource), kGpuProduct, shown_value(product), shown_value(unshared_product(product)),
              shown_value(resource.substr(0, resource.rfind('.')))));
    }
  }

  void several(const DocumentValue& spec, const DocumentMember& limit, const std::string& place) {
    const auto count = parse_go_int(limit.value.text, 10);
    const bool of_mps = limit.key == kGpuResource && selects_mps(spec);
    const bool of_shared = is_of_nvidia(limit.key) && limit.key.ends_with(".shared");
    if (!count || *count < 2 || (!of_mps && !of_shared)) return;
    add(Severity::warning, "SeveralReplicas", place, limit.value.at,
        of_mps ? fmt::format("the pod selects nodes whose GPUs are shared by MPS, and {} of {} are several replicas: "
                             "the device plugin refuses them, unless its profile has failRequestsGreaterThanOne: "
                             "false, and they give the container neither more time nor more memory; ask for 1",
                             *count, shown_value(limit.key))
               : fmt::format("{} of {} are replicas of shared GPUs: they give the container neither more time nor more "
                             "memory, under MPS the device plugin refuses them, and they might be on the same GPU; ask "
                             "for 1",
                             *count, shown_value(limit.key)));
  }

  void misspelt_resource(const DocumentMember& asked, const std::string& place) {
    const std::string_view meant = meant_resource(asked.key);
    if (meant.empty()) return;
    add(Severity::warning, "ResourceMisspelt", place, asked.key_at,
        fmt::format("no device plugin offers {}, so the pod stays Pending; did you mean \"{}\"?",
                    shown_value(asked.key), meant));
  }

  // The kubelet adds the plugin's variables before the pod's own, and the last one of a name counts.
  void variables(const DocumentValue& container, const std::string& path) {
    const DocumentMember* requested = nullptr;
    for (const DocumentMember& limit : members_of(find_path(container, {"resources", "limits"})))
      if (is_of_nvidia(limit.key) && limit.value.text != "0") requested = &limit;
    const std::span<const DocumentValue> env = items_of(container.find("env"));
    for (std::size_t i = 0; i < env.size(); ++i) {
      const DocumentValue* value = env[i].find("value");
      if (value == nullptr || !value->is_string()) continue;
      const std::string_view name = env[i].string_at("name");
      const std::string place = fmt::format("{}.env[{}].value", path, i);
      if (name == "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") thread_percentage(*value, place);
      if (name != "NVIDIA_VISIBLE_DEVICES" || value->text != "all" || requested == nullptr) continue;
      add(Severity::warning, "VisibleDevicesSet", place, value->at,
          fmt::format("{} is \"all\", which replaces what the device plugin sets for {}: the container can use "
                      "every GPU of its node, those of other pods too; remove the variable",
                      name, shown_value(requested->key)));
    }
  }

  void thread_percentage(const DocumentValue& value, const std::string& path) {
    const std::string& text = value.text;
    if (text.empty() || text.contains("$(")) return;  // The kubelet inserts another variable.
    double percent = -1;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, percent);
    if (read.ec == std::errc() && read.ptr == end && percent >= 0 && percent <= 100) return;
    add(Severity::warning, "ThreadPercentageInvalid", path, value.at,
        fmt::format("\"{}\" is not a percentage from 0 to 100, which CUDA expects in "
                    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                    shown_value(text)));
  }

  const DocumentValue& pod_;
  std::int64_t mps_user_;
  bool shares_ = false;     // It asks KAI for a share of a GPU.
  bool asks_ = false;       // It asks for a GPU in another way.
  bool completed_ = false;  // The chart's podMutation adds what a client lacks once the pod is created.
  // Looked up for each mount and each value: a pod can have tens of thousands of these.
  std::set<std::string> reported_;                            // Paths.
  std::map<std::string_view, const DocumentValue*> volumes_;  // By name, the first of each.
};

}  // namespace

void check_strings(const DocumentValue& object, const std::set<std::string>& reported,
                   std::vector<Diagnostic>& diagnostics) {
  const auto check = [&](const DocumentValue* map, std::string_view path, const char* code, std::string_view what) {
    for (const DocumentMember& member : members_of(map)) {
      const bool unquoted =
          member.value.kind == DocumentValue::Kind::boolean || member.value.kind == DocumentValue::Kind::number;
      std::string place = unquoted ? fmt::format("{}[{}]", path, member.key) : std::string();
      if (!unquoted || reported.contains(place)) continue;
      diagnostics.push_back({Severity::error, code, std::move(place), member.value.at,
                             fmt::format("{} is a string, and the API server refuses {}; put it in quotes", what,
                                         kind_name(member.value.kind))});
    }
  };
  constexpr std::string_view kOfLabel = "a label's value";
  check(find_path(object, {"metadata", "labels"}), "metadata.labels", "LabelNoString", kOfLabel);
  check(find_path(object, {"metadata", "annotations"}), "metadata.annotations", "AnnotationNoString",
        "an annotation's value");
  check(find_path(object, {"spec", "nodeSelector"}), "spec.nodeSelector", "SelectorNoString", kOfLabel);
  check(find_path(object, {"spec", "selector", "matchLabels"}), "spec.selector.matchLabels", "SelectorNoString",
        kOfLabel);
}

void check_pod_at(const DocumentValue& pod, const std::string& path, const PodRules& rules,
                  std::vector<Diagnostic>& diagnostics) {
  std::vector<Diagnostic> found;
  check_pod(pod, rules, found);
  GpuPodCheck(pod, rules.mps_user, found).run();
  for (Diagnostic& d : found) {
    if (!d.path.empty()) d.path = path + d.path;
    diagnostics.push_back(std::move(d));
  }
}

}  // namespace gso
