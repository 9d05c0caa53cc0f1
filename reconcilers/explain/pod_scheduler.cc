// A pod that its scheduler has not placed: explained by the scheduler's message, or by its absence.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <chrono>
#include <string_view>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/model/json_access.h"

namespace gso {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kDefaultScheduler = "default-scheduler";

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

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

// `patch`: for a pod's spec. A pod without an owner is patched itself.
std::string patch_spec(const AskedPod& asked, const std::string& patch) {
  return fmt::format("kubectl patch {} {} --type merge -p '{{\"spec\":{{\"template\":{{\"spec\":{}}}}}}}'",
                     asked.owner(), asked.in_namespace(), patch);
}

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

std::string schedule_by(const AskedPod& asked, std::string_view scheduler) {
  if (!asked.owner().empty()) return patch_spec(asked, fmt::format("{{\"schedulerName\":\"{}\"}}", scheduler));
  return fmt::format(
      "kubectl get pod {} {} -o yaml | sed 's#schedulerName: .*#schedulerName: {}#' | kubectl replace --force -f -",
      asked.pod.meta.name, asked.in_namespace(), scheduler);
}

std::string tolerate(const AskedPod& asked, const Taint& taint) {
  // A patch replaces the list as a whole: its present entries are kept, except those that the API server adds to every
  // pod.
  Json list = Json::array();
  const bool owned = !asked.owner().empty();
  const Json spec = object_at<Json>(asked.object, "spec");
  for (const Json& present : list_at(spec, "tolerations")) {
    const bool added = owned && text_at(present, "key").starts_with("node.kubernetes.io/");
    if (!added) list.push_back(present);
  }
  Json toleration{{"key", taint.key.view()}, {"operator", "Exists"}, {"effect", taint.effect.view()}};
  if (!taint.value.empty()) {
    toleration["operator"] = "Equal";
    toleration["value"] = taint.value.view();
  }
  list.push_back(std::move(toleration));
  const std::string patch = dump({{"tolerations", list}});
  if (owned) return patch_spec(asked, patch);
  return fmt::format("kubectl patch pod {} {} --type merge -p '{{\"spec\":{}}}'", asked.pod.meta.name,
                     asked.in_namespace(), patch);
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
  return PodCause{
      silent ? Severity::error : Severity::warning, "NoScheduler",
      fmt::format("the schedulerName of the pod is {}, but {}", name,
                  kais ? "KAI-Scheduler is not installed in this cluster: no scheduler places the pod"
                       : "no scheduler of that name has reported anything about the pod: it does not seem to run"),
      schedule_by(asked, kDefaultScheduler)};
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
  return {Severity::warning, "NotScheduledYet", otherwise + (says.empty() ? "" : "; the scheduler reports: " + says),
          fmt::format("kubectl describe pod {} {}", asked.pod.meta.name, asked.in_namespace())};
}

}  // namespace gso
