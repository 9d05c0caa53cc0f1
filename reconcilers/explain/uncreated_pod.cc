// See uncreated_pod.h.
#include "reconcilers/explain/uncreated_pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kExceeded = "exceeded quota: ";
constexpr std::string_view kIncomplete = "failed quota: ";

struct Workload {
  std::string kind;
  std::string name;
  std::string ns;
  std::string resource;  // For kubectl: "deployment".
  std::int64_t wanted = 0;
  std::int64_t present = 0;
  bool over = false;  // It creates no more pods.
};

std::int64_t number_or(const Json& object, std::string_view field, std::int64_t otherwise) {
  return member_at(object, field) == nullptr ? otherwise : number_at(object, field);
}

bool has_condition(const Json& status, std::string_view type) {
  const Json conditions = list_at(status, "conditions");
  return std::ranges::any_of(conditions, [&](const Json& condition) {
    return text_at(condition, "type") == type && text_at(condition, "status") == "True";
  });
}

void count_pods(const Json& spec, const Json& status, Workload& out) {
  if (out.kind == "DaemonSet") {
    out.wanted = number_at(status, "desiredNumberScheduled");
    out.present = number_at(status, "currentNumberScheduled");
  } else if (out.kind == "Job") {
    const std::int64_t parallel = number_or(spec, "parallelism", 1);
    const std::int64_t ended = number_at(status, "succeeded");
    out.wanted = std::min(parallel, number_or(spec, "completions", parallel + ended) - ended);
    out.present = number_at(status, "active");
    out.over = flag_at(spec, "suspend") || has_condition(status, "Complete") || has_condition(status, "Failed");
  } else {
    out.wanted = number_or(spec, "replicas", 1);
    out.present = number_at(status, "replicas");
  }
}

Workload workload_of(const std::string& kind, const Json& object) {
  const Json metadata = object_at(object, "metadata");
  Workload out;
  out.kind = kind;
  out.name = text_at(metadata, "name");
  out.ns = text_at(metadata, "namespace");
  for (const char c : kind) out.resource += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  count_pods(object_at(object, "spec"), object_at(object, "status"), out);
  return out;
}

// Why the newest pod was not created; empty: none was refused, or all exist by now.
std::string failure_of(const PodCreator& creator, const Json& object, const Workload& workload) {
  // An Event stays for an hour.
  if (reports_failures_in_events(creator.kind))
    return workload.over || workload.present >= workload.wanted ? std::string() : creator.failure;
  const Json status = object_at(object, "status");
  for (const Json& condition : list_at(status, "conditions")) {
    const bool failed = text_at(condition, "type") == "ReplicaFailure" && text_at(condition, "status") == "True";
    if (failed && text_at(condition, "reason") == "FailedCreate") return text_at(condition, "message");
  }
  return {};
}

// The name at the begin of the text, for a command; empty: what is there is no name of an object.
std::string name_before(std::string_view text, char end) {
  return name_for_command(text.substr(0, std::min(text.find(end), text.size())));
}

std::string describe_quota(const Workload& workload, const std::string& quota) {
  return fmt::format("kubectl describe resourcequota {} --namespace {}", quota, workload.ns);
}

// "pods "web-1" is forbidden: exceeded quota: Q, requested: …, used: …, limited: …", or "… failed quota: Q: must
// specify …".
std::optional<PodCause> quota_cause(const Workload& workload, const std::string& failure) {
  const std::string who = fmt::format("{} {} cannot create its pods", workload.kind, workload.name);
  if (const std::size_t at = failure.find(kExceeded); at != std::string::npos) {
    const std::string_view rest = std::string_view(failure).substr(at + kExceeded.size());
    const std::string quota = name_before(rest, ',');
    if (quota.empty()) return std::nullopt;
    const std::string_view amounts = rest.substr(std::min(quota.size() + 2, rest.size()));
    return PodCause{
        Severity::error,
        "QuotaRefuses",
        fmt::format("{}: they would exceed ResourceQuota {} of namespace {}{}{}", who, quota, workload.ns,
                    amounts.empty() ? "" : " (", amounts.empty() ? std::string() : std::string(amounts) + ")"),
        describe_quota(workload, quota),
        {fmt::format("whoever sets the quotas of namespace {} decides how much it gets", workload.ns),
         fmt::format("the owners of its pods decide which of them end or request less: `kubectl get pods "
                     "--namespace {}`",
                     workload.ns)}};
  }
  const std::size_t at = failure.find(kIncomplete);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(failure).substr(at + kIncomplete.size());
  const std::string quota = name_before(rest, ':');
  if (quota.empty()) return std::nullopt;
  return PodCause{Severity::error,
                  "QuotaRefuses",
                  fmt::format("{}: ResourceQuota {} of namespace {} refuses pods without these requests or limits: {}",
                              who, quota, workload.ns, rest.substr(std::min(quota.size() + 2, rest.size()))),
                  describe_quota(workload, quota),
                  {fmt::format("the pods' owner sets them in the template of {} {}", workload.kind, workload.name)}};
}

PodCause cause_of(const Workload& workload, const std::string& failure) {
  if (std::optional<PodCause> quota = quota_cause(workload, failure)) return *std::move(quota);
  return {
      Severity::error,
      "PodNotCreated",
      fmt::format("{} {} cannot create its pods; the API server's answer: {}", workload.kind, workload.name, failure),
      fmt::format("kubectl describe {} {} --namespace {}", workload.resource, workload.name, workload.ns),
      {"whoever sets the rule that refuses the pods decides whether they are admitted; their owner can change the "
       "template"}};
}

// What a pod of its template requests.
PodExplanation of_template(const Json& object, const Workload& workload) {
  const Json spec = object_at(object, "spec");
  const Json of_pods = object_at(spec, "template");
  Json pod = of_pods;
  pod["metadata"] = object_at(of_pods, "metadata");
  pod["metadata"]["name"] = workload.name;
  pod["metadata"]["namespace"] = workload.ns;
  const k8s::Result<AskedPod> asked = read_pod(dump(pod));
  return asked ? about_pod(*asked) : PodExplanation();
}

}  // namespace

bool reports_failures_in_events(std::string_view kind) {
  return kind != "Deployment" && kind != "ReplicaSet";
}

std::optional<PodExplanation> explain_uncreated_pod(const PodCreator& creator, const std::string& asked) {
  const Json object = Json::parse(creator.json, nullptr, false);
  const Workload workload = workload_of(creator.kind, object);
  const std::string failure = failure_of(creator, object, workload);
  if (failure.empty()) return std::nullopt;
  PodExplanation out = of_template(object, workload);
  out.pod = asked;
  out.state = fmt::format("not created by {} {}", workload.kind, workload.name);
  if (workload.present < workload.wanted)
    out.state += fmt::format(", which has {} of {} pods", workload.present, workload.wanted);
  out.causes.push_back(cause_of(workload, failure));
  out.causes.back().text = shown_message(out.causes.back().text);
  return out;
}

}  // namespace gso
