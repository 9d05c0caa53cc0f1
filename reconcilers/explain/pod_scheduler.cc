// A pod that its scheduler has not placed: explained by the scheduler's message, or by its absence.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kDefaultScheduler = "default-scheduler";

// "64Gi", "64Gi + 2Gi": the requests of its containers, as written.
std::string requests_of(const AskedPod& asked, const std::string& resource) {
  std::vector<std::string> out;
  const Json spec = object_at<Json>(asked.object, "spec");
  for (const Json& container : list_at(spec, "containers")) {
    if (!container.is_object()) continue;
    const Json resources = object_at(container, "resources");
    for (const char* kind : {"requests", "limits"}) {
      const Json amounts = object_at(resources, kind);
      const auto amount = amounts.is_object() ? amounts.find(resource) : amounts.end();
      if (amount == amounts.end()) continue;
      out.push_back(amount->is_string() ? amount->get<std::string>() : dump(*amount));
      break;  // A limit counts if the container has no request.
    }
  }
  return fmt::format("{}", fmt::join(out, " + "));
}

struct Shortage {
  std::string_view says;
  std::string_view code;
  std::string_view resource;
};
constexpr std::array<Shortage, 3> kShortages{
    {{"Insufficient cpu", "NotEnoughCPU", "cpu"},
     {"Insufficient memory", "NotEnoughMemory", "memory"},
     {"Insufficient ephemeral-storage", "NotEnoughStorage", "ephemeral-storage"}}};

}  // namespace

std::string scheduler_says(const AskedPod& asked) {
  const auto status = asked.object.find("status");
  if (status == asked.object.end() || !status->is_object()) return {};
  const auto conditions = status->find("conditions");
  if (conditions == status->end() || !conditions->is_array()) return {};
  for (const auto& condition : *conditions) {
    if (text_at(condition, "type") == "PodScheduled" && text_at(condition, "status") == "False") {
      return text_at(condition, "message");
    }
  }
  return {};
}

std::string names_of_claims(const AskedPod& asked) {
  std::vector<std::string> names;
  const Json spec = object_at<Json>(asked.object, "spec");
  for (const Json& claim : list_at(spec, "resourceClaims")) names.push_back(shown_value(text_at(claim, "name")));
  return first_names(names);
}

bool waits_for_claims_alone(const AskedPod& asked) {
  const auto& requests = asked.pod.gpu_requests;
  return asked.pod.dra_gpu_claim &&
         std::ranges::none_of(requests, [](const auto& request) { return request.second > 0; });
}

PodCause claims_not_read(const AskedPod& asked) {
  const std::string says = scheduler_says(asked);
  return {says.empty() ? Severity::warning : Severity::error,
          "ClaimsNotRead",
          fmt::format("this command does not read the pod's ResourceClaims ({}), and GPUs of the device plugin do not "
                      "satisfy a claim{}",
                      names_of_claims(asked), says.empty() ? "" : "; its scheduler reports: " + says),
          describe_pod(asked),
          {fmt::format("`kubectl get resourceclaims {}` shows which claims are allocated", asked.in_namespace())}};
}

std::optional<PodCause> unseen_by_schedulers(const Snapshot& snapshot, const AskedPod& asked) {
  constexpr Duration kPatience = std::chrono::minutes(1);
  const std::string name(asked.pod.scheduler_name.view());
  if (name.empty() || name == kDefaultScheduler || !scheduler_says(asked).empty()) return std::nullopt;
  const KaiView kai = view_kai(snapshot.world.kai, snapshot.settings.kai);
  const bool kais = name == kai.scheduler_name;
  if (kais && kai.served) return std::nullopt;
  const WallTime made = asked.pod.meta.creation_timestamp;
  const bool silent = kais || snapshot.now - made >= kPatience;
  const Cure cure = schedule_by(asked, kDefaultScheduler);
  std::vector<std::string> options{
      kais ? "whoever runs the cluster installs KAI-Scheduler, or the pod's owner uses another scheduler"
           : fmt::format("whoever runs {} starts it, or the pod's owner uses another scheduler", name)};
  options.insert(options.end(), cure.options.begin(), cure.options.end());
  return PodCause{
      silent ? Severity::error : Severity::warning, "NoScheduler",
      fmt::format("the schedulerName of the pod is {}, but {}", name,
                  kais ? "KAI-Scheduler is not installed in this cluster: no scheduler places the pod"
                       : "no scheduler of that name has reported anything about the pod: it does not seem to run"),
      cure.command, std::move(options)};
}

PodCause not_placed(const AskedPod& asked, const std::string& otherwise, const std::string& nodes,
                    const std::string& node) {
  const std::string says = scheduler_says(asked);
  for (const Shortage& shortage : kShortages) {
    if (says.find(shortage.says) == std::string::npos) continue;
    const std::string wanted = requests_of(asked, std::string(shortage.resource));
    return {Severity::error, std::string(shortage.code),
            fmt::format(
                "GPUs are free for the pod on {}, but not enough {}: the pod requests {}; its scheduler reports: {}",
                nodes, shortage.resource, wanted.empty() ? "some" : wanted, says),
            fmt::format("kubectl describe node {}", node)};
  }
  const std::string describe = describe_pod(asked);
  if (says.empty()) {
    return {Severity::warning, "NotScheduledYet",
            otherwise + "; CPU, memory, ports, volumes and other pods' affinity are for the scheduler to check",
            describe};
  }
  return {Severity::error, "SchedulerRefuses",
          fmt::format("GPUs are free for the pod on {}, but its scheduler reports: {}", nodes, says), describe};
}

}  // namespace gso
