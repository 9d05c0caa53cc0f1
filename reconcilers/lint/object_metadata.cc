// The metadata of objects and of templates of pods, as the API server validates it. Source:
// k8s.io/apimachinery/pkg/api/validation (ValidateObjectMeta, ValidateAnnotations), pkg/apis/meta/v1/validation
// (ValidateLabels), pkg/util/validation (IsQualifiedName, IsDNS1123Subdomain, IsDNS1123Label).
#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "k8sclient/value/selectors.h"
#include "reconcilers/cluster/manifest_object.h"
#include "reconcilers/lint/crd_patterns.h"
#include "reconcilers/lint/field_check.h"
#include "reconcilers/lint/object_rules.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/document_path.h"

namespace gso {
namespace {

constexpr std::size_t kMostAnnotationBytes = 256 * 1024;

class MetadataCheck : private FieldCheck {
 public:
  MetadataCheck(std::string path, std::vector<Diagnostic>& diagnostics) : FieldCheck(diagnostics) {
    path_ = std::move(path);
    for (const Diagnostic& d : diagnostics) {
      if (d.severity == Severity::error) said_.emplace(d.path, d.line, d.column);
    }
  }

  void of_object(const DocumentValue& object, const ObjectRules& rules) {
    static constexpr std::array<std::string_view, 5> kFields{"name", "generateName", "namespace", "labels",
                                                             "annotations"};
    const DocumentValue* metadata = object.find("metadata");
    if (metadata == nullptr || metadata->is_null()) {
      const PathStep step(path_, "name");
      return error("NameMissing", metadata == nullptr ? object.at : metadata->at, needs_name(rules));
    }
    if (!metadata->is_object()) {
      return error("WrongType", metadata->at, "expected a mapping, found " + found_there(*metadata));
    }
    name(*metadata, rules, generated_name(*metadata, rules));
    check_case_of_fields(*metadata, kFields, path_, diagnostics_);
    if (rules.namespaced) member(*metadata, "namespace", [this](const DocumentValue& v) { name_of_namespace(v); });
    of_template(*metadata);
  }

  // Also of objects: labels and annotations.
  void of_template(const DocumentValue& metadata) {
    if (metadata.is_null()) return;
    if (!metadata.is_object()) {
      return error("WrongType", metadata.at, "expected a mapping, found " + found_there(metadata));
    }
    object(metadata, "labels", [this](const DocumentValue& v) { labels(v); });
    object(metadata, "annotations", [this](const DocumentValue& v) { annotations(v); });
  }

 private:
  static std::string needs_name(const ObjectRules& rules) {
    return fmt::format("a {} needs a name, and the API server refuses it without one; write metadata.name", rules.kind);
  }

  void no_string(const DocumentValue& value) {
    error("WrongType", value.at, fmt::format("expected a string, found {}; put it in quotes", found_there(value)));
  }

  // True if the API server makes the name, or there is something wrong that has been reported.
  bool generated_name(const DocumentValue& metadata, const ObjectRules& rules) {
    const DocumentValue* prefix = metadata.find("generateName");
    if (prefix == nullptr || prefix->is_null() || (prefix->is_string() && prefix->text.empty())) return false;
    const PathStep step(path_, "generateName");
    if (!prefix->is_string()) {
      no_string(*prefix);
    } else if (!is_object_name(prefix->text + (prefix->text.ends_with('-') ? "x" : ""))) {
      invalid_name(*prefix, rules);
    }
    return true;
  }

  void name(const DocumentValue& metadata, const ObjectRules& rules, bool generated) {
    const DocumentValue* name = metadata.find("name");
    const PathStep step(path_, "name");
    if (name == nullptr || name->is_null() || (name->is_string() && name->text.empty())) {
      if (!generated) error("NameMissing", name == nullptr ? metadata.at : name->at, needs_name(rules));
    } else if (!name->is_string()) {
      no_string(*name);
    } else if (!is_object_name(name->text) || (rules.name_is_label && name->text.contains('.'))) {
      invalid_name(*name, rules);
    } else if (name->text.size() > rules.longest_name) {
      error("NameInvalid", name->at,
            fmt::format("the name has {} characters, and the API server accepts at most {} of a {}", name->text.size(),
                        rules.longest_name, rules.kind));
    }
  }

  void invalid_name(const DocumentValue& name, const ObjectRules& rules) {
    error("NameInvalid", name.at,
          fmt::format("\"{}\" is no name of {}: at most {} lower-case letters, digits{}, {}beginning and ending with a "
                      "letter or digit",
                      shown_value(name.text), rules.name_is_label ? "a " + std::string(rules.kind) : "an object",
                      rules.longest_name, rules.name_is_label ? " and '-'" : ", '-' and '.'",
                      rules.name_is_label ? "" : "each part between dots "));
  }

  void name_of_namespace(const DocumentValue& name) {
    if (!name.is_string()) return no_string(name);
    if (name.text.empty() || is_dns_label(name.text)) return;
    error("NameInvalid", name.at,
          fmt::format("\"{}\" is no name of a namespace: at most 63 lower-case letters, digits and '-', beginning and "
                      "ending with a letter or digit",
                      shown_value(name.text)));
  }

  // A key of labels or annotations is at fault.
  void key_problem(const std::string& code, const DocumentMember& member, std::string_view what) {
    error(
        code, member.key_at,
        fmt::format("\"{}\" is no name of {}: at most 63 letters, digits, '-', '_' and '.', beginning and ending with "
                    "a letter or digit; a lower-case DNS name and '/' can come before them",
                    shown_value(member.key), what));
  }

  void labels(const DocumentValue& labels) {
    for (const DocumentMember& member : labels.members) {
      const std::string path = fmt::format("{}[{}]", path_, member.key);
      if (k8s::label_key_problem(member.key)) report_at(path, [&] { key_problem("LabelInvalid", member, "a label"); });
      report_at(path, [&] { label_value(member.value); });
    }
  }

  void label_value(const DocumentValue& value) {
    if (value.is_null()) return;
    if (!value.is_string()) return no_text("LabelNoString", value, "a label's value");
    if (!k8s::label_value_problem(value.text)) return;
    error("LabelInvalid", value.at,
          fmt::format("\"{}\" is no value of a label: at most 63 letters, digits, '-', '_' and '.', beginning and "
                      "ending with a letter or digit",
                      shown_value(value.text)));
  }

  void annotations(const DocumentValue& annotations) {
    std::size_t bytes = 0;
    for (const DocumentMember& member : annotations.members) {
      bytes += member.key.size() + member.value.text.size();
      std::string key = member.key;  // The API server ignores its case.
      std::ranges::transform(key, key.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      const std::string path = fmt::format("{}[{}]", path_, member.key);
      report_at(path, [&] {
        if (k8s::label_key_problem(key)) key_problem("AnnotationInvalid", member, "an annotation");
        if (member.value.is_string() || member.value.is_null()) return;
        no_text("AnnotationNoString", member.value, "an annotation's value");
      });
    }
    if (bytes <= kMostAnnotationBytes) return;
    error("AnnotationInvalid", annotations.at,
          fmt::format("the annotations have {} bytes, and the API server accepts at most {}", bytes,
                      kMostAnnotationBytes));
  }

  // A value that must be text: the check of the Pod might have said so already.
  void no_text(std::string code, const DocumentValue& value, std::string_view what) {
    if (said_.contains({path_, value.at.line, value.at.column})) return;
    error(std::move(code), value.at,
          fmt::format("{} is a string, and the API server refuses {}; put it in quotes", what, kind_name(value.kind)));
  }

  // Keys have dots: they stand in brackets.
  template <class Report>
  void report_at(const std::string& path, Report report) {
    std::string before = std::exchange(path_, path);
    report();
    path_ = std::move(before);
  }

  std::set<std::tuple<std::string, int, int>> said_;  // Errors of other checks, by path and position.
};

}  // namespace

void check_metadata(const DocumentValue& object, const ObjectRules& rules, std::vector<Diagnostic>& diagnostics) {
  MetadataCheck("metadata", diagnostics).of_object(object, rules);
}

void check_template_metadata(const DocumentValue& metadata, std::string path, std::vector<Diagnostic>& diagnostics) {
  MetadataCheck(std::move(path), diagnostics).of_template(metadata);
}

}  // namespace gso
