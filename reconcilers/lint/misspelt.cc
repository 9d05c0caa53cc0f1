// Names that look like one that a component reads, and are not: labels, annotations, fields of a ClusterPolicy.
#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reconcilers/kai/pod_annotations.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

constexpr std::array<std::string_view, 4> kFractions{kai::kFraction, kai::kMemory, kai::kDeviceCount,
                                                     kai::kContainerName};
// Prefixes under which people write KAI's annotations, which have none.
constexpr std::array<std::string_view, 4> kPrefixes{"kai.scheduler/", "run.ai/", "runai/", "nvidia.com/"};
constexpr std::size_t kMostEdits = 2;
constexpr std::string_view kPunctuation = "-_.";  // People confuse these.

void warn(std::vector<Diagnostic>& found, std::string code, std::string path, Position at, std::string message) {
  found.push_back({Severity::warning, std::move(code), std::move(path), at, std::move(message)});
}

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

// The annotation of KAI that is meant; empty: none.
std::string_view meant_fraction(std::string_view name) {
  const std::string_view plain = without_prefix(name);
  for (const std::string_view known : kFractions)
    if (within_edits(plain, known, 0, kPunctuation)) return known;
  if (plain.find("fraction") == std::string_view::npos && !plain.starts_with("gpu")) return {};
  for (const std::string_view known : kFractions)
    if (within_edits(plain, known, kMostEdits, kPunctuation)) return known;
  return {};
}

// Of containers and init containers; one without a name is left out.
std::vector<std::string> names_of_containers(const DocumentValue& spec) {
  std::vector<std::string> out;
  each_container(spec, [&](const DocumentValue& container, const std::string&) {
    const std::string_view name = container.string_at("name");
    if (!name.empty()) out.emplace_back(name);
  });
  return out;
}

class PodMetadata {
 public:
  PodMetadata(const std::vector<std::string>& containers, std::vector<Diagnostic>& found)
      : containers_(containers.begin(), containers.end()), listed_(first_names(containers)), found_(found) {}

  void annotation(const DocumentMember& member) {
    const std::string path = fmt::format("metadata.annotations[{}]", member.key);
    if (member.key.starts_with(kai::kNvFractionPrefix)) return nv_fraction(member, path);
    if (std::ranges::find(kFractions, member.key) != kFractions.end()) return;
    if (const std::string_view meant = meant_fraction(member.key); !meant.empty()) {
      warn(found_, "AnnotationMisspelt", path, member.key_at,
           fmt::format("KAI does not read {}; did you mean \"{}\"?", shown_value(member.key), meant));
    } else if (member.key == kai::kDefaultQueueLabel) {
      warn(found_, "AnnotationMisspelt", path, member.key_at,
           fmt::format("{} is a label; as an annotation it has no effect", member.key));
    }
  }

  void label(const DocumentMember& member) {
    const std::string path = fmt::format("metadata.labels[{}]", member.key);
    if (const std::string_view meant = meant_fraction(member.key); !meant.empty()) {
      warn(found_, "AnnotationMisspelt", path, member.key_at,
           fmt::format("KAI reads the annotation {}, and no label: the pod gets no share of a GPU", meant));
    } else if (member.key != kai::kDefaultQueueLabel && within_edits(member.key, kai::kDefaultQueueLabel, kMostEdits)) {
      warn(found_, "LabelMisspelt", path, member.key_at,
           fmt::format("did you mean \"{}\"? KAI's scheduler skips pods without a queue", kai::kDefaultQueueLabel));
    }
  }

 private:
  // "nvidia.com/container.<container>.<setting>"
  void nv_fraction(const DocumentMember& member, const std::string& path) {
    static constexpr std::array<std::string_view, 4> kSettings{"gpu-memory.request", "gpu-memory.limit",
                                                               "gpu-compute.mode", "gpu-compute.portion"};
    const std::string_view rest = std::string_view(member.key).substr(kai::kNvFractionPrefix.size());
    const std::size_t dot = rest.find('.');  // Names of containers have none.
    const std::string_view setting = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    of_container(rest.substr(0, dot), member, path);
    if (setting == "gpus.devices") {
      warn(found_, "NvFractionInvalid", path, member.key_at,
           "KAI's binder writes this annotation itself; leave it out");
    } else if (std::ranges::find(kSettings, setting) == kSettings.end()) {
      const std::string_view near = nearest_word(setting, kSettings);
      warn(found_, "AnnotationMisspelt", path, member.key_at,
           near.empty() ? fmt::format("no setting of NvFractions; known: {}", fmt::join(kSettings, ", "))
                        : fmt::format("no setting of NvFractions; did you mean \"{}{}.{}\"?", kai::kNvFractionPrefix,
                                      shown_value(rest.substr(0, dot)), near));
    } else if (setting == "gpu-compute.mode" && member.value.text != "time-slicing" &&
               member.value.text != "sm-sharing") {
      warn(found_, "NvFractionInvalid", path, member.value.at,
           fmt::format("the mode is \"{}\"; it must be time-slicing or sm-sharing (MPS)",
                       shown_value(member.value.text)));
    } else if (setting.starts_with("gpu-memory.") && !is_memory(member.value.text)) {
      warn(found_, "NvFractionInvalid", path, member.value.at,
           fmt::format("\"{}\" is not an amount of memory; write a quantity such as \"4Gi\"",
                       shown_value(member.value.text)));
    }
  }

  void of_container(std::string_view name, const DocumentMember& member, const std::string& path) {
    if (containers_.empty() || containers_.contains(name)) return;
    warn(found_, "NvFractionInvalid", path, member.key_at,
         fmt::format("the pod has no container \"{}\", so that no container gets this setting; its containers: {}",
                     shown_value(name), shown_value(listed_)));
  }

  // "4Gi", "4096Mi", "1.5G"; no part of a byte.
  static bool is_memory(std::string_view text) {
    const auto amount = parse_quantity(text);
    return amount && *amount > 0 && text.find_last_of("mun") == std::string_view::npos;
  }

  std::set<std::string, std::less<>> containers_;
  std::string listed_;  // The first of them.
  std::vector<Diagnostic>& found_;
};

}  // namespace

void check_misspelt_metadata(const DocumentValue& metadata, const DocumentValue& spec, std::vector<Diagnostic>& found) {
  PodMetadata check(names_of_containers(spec), found);
  for (const DocumentMember& annotation : members_of(metadata.find("annotations"))) check.annotation(annotation);
  for (const DocumentMember& label : members_of(metadata.find("labels"))) check.label(label);
  for (const SelectedLabel& label : selected_labels(spec)) {
    for (const std::string_view known : {kMpsEnabled, kMpsPipeDirectory}) {
      if (label.key == known || !within_edits(label.key, known, kMostEdits, kPunctuation)) continue;
      warn(found, "LabelMisspelt", label.path, label.at,
           fmt::format("no node has {}; did you mean \"{}\"?", shown_value(label.key), known));
    }
  }
}

void check_misspelt_labels_of_node(const DocumentValue& metadata, std::vector<Diagnostic>& found) {
  static constexpr std::string_view kLabels[] = {kHoldAnnotation, kConfigLabel, kNosPartitioning, kMpsEnabled};
  static constexpr std::string_view kAnnotations[] = {kHoldAnnotation, kMpsHostAnnotation};
  const auto check = [&](std::string_view field, const char* code, std::span<const std::string_view> names) {
    for (const DocumentMember& member : members_of(metadata.find(field))) {
      for (const std::string_view known : names) {
        if (member.key == known || !within_edits(member.key, known, kMostEdits, kPunctuation)) continue;
        warn(found, code, fmt::format("metadata.{}[{}]", field, member.key), member.key_at,
             fmt::format("nothing reads {}; did you mean \"{}\"?", member.key, known));
      }
    }
  };
  check("labels", "LabelMisspelt", kLabels);
  check("annotations", "AnnotationMisspelt", kAnnotations);
}

void report_unknown_field(const DocumentMember& member, const std::string& path,
                          std::span<const std::string_view> fields, std::vector<Diagnostic>& found) {
  const auto near = nearest_word(member.key, fields);
  warn(found, "UnknownField", path, member.key_at,
       near.empty() ? fmt::format("unknown field; the API server drops it. Known fields: {}", fmt::join(fields, ", "))
                    : fmt::format("unknown field; the API server drops it. Did you mean \"{}\"?", near));
}

void check_cluster_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics) {
  static constexpr std::array<std::string_view, 3> kPath{"spec", "devicePlugin", "config"};
  static constexpr std::array<std::string_view, 2> kMembers{"name", "default"};
  const DocumentValue* at = &policy;
  std::string path;
  for (std::size_t i = 0; i < kPath.size(); ++i) {
    // Members that were probably meant to be this field; what the others are is for the GPU Operator to say.
    for (const DocumentMember& member : i == 0 ? std::span<const DocumentMember>() : members_of(at))
      if (member.key != kPath[i] && within_edits(member.key, kPath[i], kMostEdits))
        report_unknown_field(member, path + "." + member.key, std::span(kPath).subspan(i, 1), diagnostics);
    at = at->present(kPath[i]);
    if (at == nullptr) return;
    path += (i == 0 ? "" : ".") + std::string(kPath[i]);
    if (at->is_object()) continue;
    diagnostics.push_back(
        {Severity::error, "WrongType", path, at->at, fmt::format("expected a mapping, found {}", kind_name(at->kind))});
    return;
  }
  for (const DocumentMember& member : at->members)
    if (std::ranges::find(kMembers, member.key) == kMembers.end())
      report_unknown_field(member, path + "." + member.key, kMembers, diagnostics);
}

}  // namespace gso
