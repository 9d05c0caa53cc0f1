// See object_rules.h.
#include "reconcilers/lint/object_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "k8sclient/value/selectors.h"
#include "reconcilers/cluster/manifest_object.h"
#include "reconcilers/lint/field_check.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/document_path.h"
#include "reconcilers/profile/go_text.h"

namespace gso {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 2> kTemplate{"spec", "template"};
constexpr std::array<std::string_view, 4> kOfCronJob{"spec", "jobTemplate", "spec", "template"};
constexpr std::array<std::string_view, 1> kOfPodTemplate{"template"};

constexpr std::array<std::string_view, 1> kReplicas{"replicas"};
constexpr std::array<std::string_view, 4> kOfJob{"backoffLimit", "completions", "parallelism",
                                                 "ttlSecondsAfterFinished"};

constexpr std::array<std::string_view, 3> kAnyRestart{"Always", "OnFailure", "Never"};
constexpr std::array<std::string_view, 1> kAlways{"Always"};
constexpr std::array<std::string_view, 2> kEnds{"OnFailure", "Never"};

constexpr std::size_t kLongestLabel = 63;
// A CronJob's Jobs have its name and eleven characters more.
constexpr std::size_t kLongestCronJob = 52;

constexpr auto kRules = std::to_array<ObjectRules>({
    {.kind = "Pod", .restart_policy = kAnyRestart},
    {.kind = "PodTemplate", .pods_at = kOfPodTemplate, .restart_policy = kAnyRestart},
    {.kind = "ReplicationController", .pods_at = kTemplate, .restart_policy = kAlways, .counts = kReplicas},
    {.kind = "Deployment",
     .pods_at = kTemplate,
     .restart_policy = kAlways,
     .counts = kReplicas,
     .needs_selector = true},
    {.kind = "ReplicaSet",
     .pods_at = kTemplate,
     .restart_policy = kAlways,
     .counts = kReplicas,
     .needs_selector = true},
    {.kind = "DaemonSet", .pods_at = kTemplate, .restart_policy = kAlways, .needs_selector = true},
    {.kind = "StatefulSet",
     .longest_name = kLongestLabel,
     .pods_at = kTemplate,
     .restart_policy = kAlways,
     .counts = kReplicas,
     .needs_selector = true,
     .name_is_label = true},
    {.kind = "Job", .pods_at = kTemplate, .restart_policy = kEnds, .counts = kOfJob},
    {.kind = "CronJob",
     .longest_name = kLongestCronJob,
     .pods_at = kOfCronJob,
     .restart_policy = kEnds,
     .counts = kOfJob},
    {.kind = "ConfigMap"},
    {.kind = "ControllerRevision"},
    {.kind = "Node", .namespaced = false},
    {.kind = "RuntimeClass", .namespaced = false},
    {.kind = "SharingPolicy", .namespaced = false},
    {.kind = "SharingRollout", .namespaced = false},
    {.kind = "ClusterPolicy", .namespaced = false},
});

// The value at the path; null: it is absent or null.
const DocumentValue* find_at(const DocumentValue& from, Words path) {
  const DocumentValue* at = &from;
  for (const std::string_view field : path) at = at == nullptr ? nullptr : at->find(field);
  return at == nullptr || at->is_null() ? nullptr : at;
}

std::string text_of(Words path) {
  std::string out;
  for (const std::string_view field : path) out += (out.empty() ? "" : ".") + std::string(field);
  return out;
}

// Numbers of a workload's spec that the API server refuses below 0.
class CountsCheck : private FieldCheck {
 public:
  CountsCheck(std::string path, std::vector<Diagnostic>& diagnostics) : FieldCheck(diagnostics) {
    path_ = std::move(path);
  }

  void run(const DocumentValue& spec, Words fields) {
    constexpr std::int64_t kMost = 2'147'483'647;
    for (const std::string_view field : fields) integer(spec, field, 0, kMost);
  }
};

class WorkloadCheck {
 public:
  WorkloadCheck(const DocumentValue& object, const ObjectRules& rules, std::vector<Diagnostic>& diagnostics)
      : object_(object), rules_(rules), diagnostics_(diagnostics) {}

  void run() {
    counts();
    const std::string path = text_of(rules_.pods_at);
    const DocumentValue* pods = find_at(object_, rules_.pods_at);
    if (pods == nullptr || !pods->is_object()) {
      error(pods == nullptr ? "ContainersMissing" : "WrongType", path, pods == nullptr ? object_.at : pods->at,
            fmt::format("a {} needs a template of pods, with metadata and spec", rules_.kind));
      return;
    }
    const DocumentValue* metadata = pods->find("metadata");
    if (metadata != nullptr) check_template_metadata(*metadata, path + ".metadata", diagnostics_);
    if (rules_.needs_selector) selector(metadata);
    static constexpr std::array<std::string_view, 2> kClaims{"spec", "volumeClaimTemplates"};
    check_pod_spec(*pods, path, rules_, find_at(object_, kClaims), diagnostics_);
  }

 private:
  void error(std::string code, std::string path, Position at, std::string message) {
    diagnostics_.push_back({Severity::error, std::move(code), std::move(path), at.line, at.column, std::move(message)});
  }

  // Beside the template.
  void counts() {
    const Words at = rules_.pods_at.first(rules_.pods_at.size() - 1);
    if (const DocumentValue* spec = find_at(object_, at); spec != nullptr && !rules_.counts.empty())
      CountsCheck(text_of(at), diagnostics_).run(*spec, rules_.counts);
  }

  void selector(const DocumentValue* metadata) {
    const DocumentValue* spec = object_.find("spec");
    const DocumentValue* selector = spec->find("selector");
    const bool absent = selector == nullptr || selector->is_null();
    if (!absent && !selector->is_object()) {
      error("WrongType", "spec.selector", selector->at,
            fmt::format("expected a mapping with matchLabels, found {}", found_there(*selector)));
      return;
    }
    const DocumentValue* labels = absent ? nullptr : selector->find("matchLabels");
    const DocumentValue* expressions = absent ? nullptr : selector->find("matchExpressions");
    const bool by_expressions = expressions != nullptr && !expressions->items.empty();
    if (!by_expressions && (labels == nullptr || labels->members.empty())) {
      error("SelectorMissing", "spec.selector", absent ? spec->at : selector->at,
            fmt::format("a {} needs a selector: write the labels of its template under spec.selector.matchLabels",
                        rules_.kind));
      return;
    }
    const DocumentValue* given = metadata == nullptr ? nullptr : metadata->find("labels");
    for (std::size_t i = 0; labels != nullptr && i < labels->members.size(); ++i) {
      const DocumentMember& wanted = labels->members[i];
      const DocumentValue* has = given == nullptr ? nullptr : given->find(wanted.key);
      const std::string path = fmt::format("spec.selector.matchLabels[{}]", wanted.key);
      if (!wanted.value.is_string() && !wanted.value.is_null()) {
        error("SelectorNoString", path, wanted.value.at,
              fmt::format("a label's value is a string, and the API server refuses {}; put it in quotes",
                          kind_name(wanted.value.kind)));
      } else if (has == nullptr || (has->text != wanted.value.text && (has->is_string() || has->is_null()))) {
        error("SelectorMismatch", path, wanted.key_at,
              fmt::format("the template's label {} is {}, and the API server refuses a selector that does not fit the "
                          "template; write the same under {}.metadata.labels",
                          shown_value(wanted.key), has == nullptr ? "absent" : "\"" + shown_value(has->text) + "\"",
                          text_of(rules_.pods_at)));
      }
    }
  }

  const DocumentValue& object_;
  const ObjectRules& rules_;
  std::vector<Diagnostic>& diagnostics_;
};

}  // namespace

const ObjectRules* find_object_rules(std::string_view kind) {
  const auto found = std::ranges::find(kRules, kind, &ObjectRules::kind);
  return found == kRules.end() ? nullptr : &*found;
}

void check_described_pods(const DocumentValue& object, const ObjectRules& rules, std::vector<Diagnostic>& diagnostics) {
  if (rules.restart_policy.empty()) return;
  if (rules.pods_at.empty()) return check_pod_spec(object, "", rules, nullptr, diagnostics);
  WorkloadCheck(object, rules, diagnostics).run();
}

void check_case_of_fields(const DocumentValue& value, Words fields, const std::string& path,
                          std::vector<Diagnostic>& diagnostics) {
  for (const DocumentMember& member : value.members) {
    if (std::ranges::find(fields, member.key) != fields.end()) continue;
    const auto meant =
        std::ranges::find_if(fields, [&](std::string_view field) { return equal_fold(member.key, field); });
    if (meant == fields.end() || value.find(*meant) != nullptr) continue;
    diagnostics.push_back({Severity::warning, "WrongCase", path.empty() ? member.key : path + "." + member.key,
                           member.key_at.line, member.key_at.column,
                           fmt::format("the API server knows no such field; write \"{}\"", *meant)});
  }
}

}  // namespace gso
