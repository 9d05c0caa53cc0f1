// See admission.h.
#include "reconcilers/lint/admission.h"

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {

using Json = nlohmann::json;

namespace {

// What the API server shows of one warning, and of all together (k8s.io/apiserver/pkg/endpoints/filters/warning.go).
constexpr std::size_t kMostCharacters = 256;
constexpr std::size_t kMostWarnings = 4096 / kMostCharacters;

// Whether the member differs between two objects; absent in both is equal.
bool differs(const Json& one, const Json& other, std::string_view field) {
  const Json* of_one = member_at(one, field);
  const Json* of_other = member_at(other, field);
  if (of_one == nullptr || of_other == nullptr) return of_one != of_other;
  return *of_one != *of_other;
}

class Judge {
 public:
  Judge(const Json& object, const Json& before, const AdmissionRules& rules)
      : object_(object), before_(before), rules_(rules), kind_(text_at(object, "kind")) {}

  AdmissionVerdict run() {
    if (!is_checked()) return {};
    const Json metadata = object_at(object_, "metadata");
    const std::string name = text_at(metadata, "name", text_at(metadata, "generateName"));
    const std::string text = dump(object_);
    const std::string source = k8s::lower(kind_) + "/" + name;
    for (LintedDocument& document : lint_text(source, text, rules_.pods)) add(document);
    if (kind_ == "ConfigMap") add_removed_keys(object_, before_, source);
    out_.command = command(text_at(metadata, "name"), text_at(metadata, "namespace"));
    return std::move(out_);
  }

  AdmissionVerdict run_deletion() {
    if (kind_ == "ConfigMap")
      add_removed_keys(Json(), object_, "configmap/" + text_at(object_at(object_, "metadata"), "name"));
    return std::move(out_);
  }

 private:
  // A request that is refused leaves what was stored before, and so does a dry run.
  [[nodiscard]] std::string command(const std::string& name, const std::string& ns) const {
    if (name.empty() || rules_.dry_run || !out_.allowed()) return "gpu-sharing-operator lint FILE";
    return fmt::format("kubectl get {} {}{} -o yaml | gpu-sharing-operator lint -", k8s::lower(kind_), name,
                       ns.empty() ? "" : " -n " + ns);
  }

  // Keys of `before` that `after` does not have, if somebody uses them.
  void add_removed_keys(const Json& after, const Json& before, const std::string& source) {
    if (!rules_.key_users) return;
    const Json data = object_at(after, "data");
    const Json binary_data = object_at(after, "binaryData");
    for (const std::string_view member : {"data", "binaryData"}) {
      const Json keys = object_at(before, member);
      for (const auto& [key, text] : keys.items()) {
        const bool stays = data.contains(key) || binary_data.contains(key);
        const std::string users = stays ? std::string() : rules_.key_users(key);
        if (!users.empty()) out_.warnings.push_back(line_of_removed(source, key, users));
      }
    }
  }

  static std::string line_of_removed(const std::string& source, const std::string& key, const std::string& users) {
    LintedDocument document{.source = source, .kind = "ConfigMap", .key = key};
    document.line_before.reset();
    return lint_line(document, {Severity::warning, "KeyNotFound", "", Position{},
                                fmt::format("the key is removed and still used by {}: pods of the plugin that start "
                                            "there would crash-loop. Put it back, or let them use another key first",
                                            users)});
  }

  // The templates of pods in an object, which is none of the other kinds.
  [[nodiscard]] bool changes_pods() const {
    const Json spec = object_at(object_, "spec");
    const Json old = object_at(before_, "spec");
    return differs(spec, old, "template") || differs(spec, old, "jobTemplate");
  }

  // Nothing of an object whose checked part stays as it is.
  [[nodiscard]] bool is_checked() const {
    if (kind_ == "ConfigMap") return true;
    if (kind_ == "SharingPolicy") return before_.is_null() || differs(object_, before_, "spec");
    return kind_ == "Pod" ? before_.is_null() : changes_pods();
  }

  [[nodiscard]] bool can_refuse() const {
    return kind_ == "ConfigMap" || kind_ == "SharingPolicy" || (kind_ == "Pod" && rules_.refuse_pods);
  }

  [[nodiscard]] bool is_changed(const LintedDocument& document) const {
    if (before_.is_null() || kind_ != "ConfigMap") return true;
    if (document.key.empty()) return differs(object_, before_, "data") || differs(object_, before_, "binaryData");
    return differs(object_at(object_, "data"), object_at(before_, "data"), document.key) ||
           differs(object_at(object_, "binaryData"), object_at(before_, "binaryData"), document.key);
  }

  [[nodiscard]] std::string field_of(const LintedDocument& document, const Diagnostic& d) const {
    if (document.key.empty()) return d.path.empty() ? k8s::lower(kind_) : d.path;
    const bool binary = object_at(object_, "binaryData").contains(document.key);
    return fmt::format("{}[{}]", binary ? "binaryData" : "data", document.key);
  }

  void add(LintedDocument& document) {
    const bool changed = is_changed(document);
    for (Diagnostic& d : document.diagnostics) {
      // The request is one line of JSON: only positions within the value of a key mean something to its author.
      if (document.key.empty()) d.at = {};
      document.line_before.reset();
      if (d.severity == Severity::error && changed && can_refuse())
        out_.causes.push_back({field_of(document, d), lint_line(document, d)});
      else if (d.severity == Severity::error || (d.severity == Severity::warning && changed))
        out_.warnings.push_back(lint_line(document, d));
    }
  }

  const Json& object_;
  const Json& before_;
  const AdmissionRules& rules_;
  std::string kind_;
  AdmissionVerdict out_;
};

std::string cut(const std::string& line, const std::string& command) {
  if (first_characters(line, kMostCharacters).size() == line.size()) return line;
  std::string rest = fmt::format("... (all of it: {})", command);
  // Names can be long: the message counts more than the command.
  if (rest.size() > kMostCharacters / 2) rest = "...";
  return std::string(first_characters(line, kMostCharacters - rest.size())) + rest;
}

}  // namespace

AdmissionVerdict judge_admission(const Json& object, const Json& before, const AdmissionRules& rules) {
  return Judge(object, before, rules).run();
}

AdmissionVerdict judge_deletion(const Json& before, const AdmissionRules& rules) {
  return Judge(before, Json(), rules).run_deletion();
}

std::vector<std::string> kubectl_warnings(const AdmissionVerdict& verdict) {
  std::vector<std::string> out;
  for (const std::string& line : verdict.warnings) {
    if (out.size() + 1 == kMostWarnings && verdict.warnings.size() > kMostWarnings) {
      const std::string more = fmt::format("{} more: {}", verdict.warnings.size() - out.size(), verdict.command);
      out.emplace_back(first_characters(more, kMostCharacters));
      break;
    }
    out.push_back(cut(line, verdict.command));
  }
  return out;
}

}  // namespace gso
