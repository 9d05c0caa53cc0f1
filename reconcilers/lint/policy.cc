// SharingPolicy, field by field, as the CRD's schema and rules have it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "k8sclient/value/selectors.h"
#include "k8sclient/value/time.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/rollout_spec.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/mps.h"
#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

using PolicyWords = std::span<const std::string_view>;

constexpr std::int64_t kMostReplicas = 10'000;
constexpr std::size_t kMostWindows = 16;
constexpr std::size_t kMostCron = 128;

// As the CRD has it. std::regex recurses for each character: `most` keeps it from a large text.
bool fits(std::string_view text, std::size_t most, const char* pattern) {
  return text.size() <= most && std::regex_match(text.begin(), text.end(), std::regex(pattern));
}

// --- Its nodeSelector, as the CRD's schema and the API server's rules for labels have it.

constexpr std::size_t kMostLabels = 32;
constexpr std::size_t kMostValues = 256;

class SelectorCheck : DocumentCheck {
 public:
  // `own_key`: the key that the policy's nodes get as their label; empty: it chooses none. `path`: of the selector.
  SelectorCheck(const std::string& own_key, const std::string& path, std::vector<Diagnostic>& diagnostics)
      : DocumentCheck(diagnostics, path), own_key_(own_key) {}

  // Returns LintedDocument::left_to_operator.
  std::size_t run(const DocumentValue& selector) {
    empty_after_drop(selector);
    if (const DocumentValue* labels = selector.present("matchLabels")) {
      const PathStep step(path_, "matchLabels");
      match_labels(*labels);
    }
    if (const DocumentValue* expressions = selector.present("matchExpressions")) {
      const PathStep step(path_, "matchExpressions");
      match_expressions(*expressions);
    }
    return left_to_operator_;
  }

 private:
  // Fields that the API server drops leave a selector without a condition.
  void empty_after_drop(const DocumentValue& selector) {
    const bool known = selector.find("matchLabels") != nullptr || selector.find("matchExpressions") != nullptr;
    if (known || selector.members.empty()) return;
    const DocumentMember& first = selector.members.front();
    const bool label = first.value.is_string() && !k8s::label_key_problem(first.key);
    error("SelectorInvalid", first.key_at,
          fmt::format(
              "the API server drops what is not below matchLabels or matchExpressions, and the empty "
              "nodeSelector that remains would select every node; write matchLabels: {{{}}}",
              label ? fmt::format("{}: {}", shown_value(first.key), shown_value(first.value.text)) : "LABEL: VALUE"));
  }

  // The API server does not see this error.
  void leave_to_operator(std::string_view code, Position at, std::string message) {
    ++left_to_operator_;
    error(code, at, std::move(message));
  }

  // As the CRD has it.
  void limit(std::size_t count, std::size_t most, Position at) {
    if (count > most) error("SelectorInvalid", at, fmt::format("at most {} are allowed, found {}", most, count));
  }

  void match_labels(const DocumentValue& labels) {
    limit(labels.members.size(), kMostLabels, labels.at);
    for (const DocumentMember& label : labels.members) {
      const PathStep step(path_, label.key);
      label_key(label.key, label.key_at);
      const std::vector<std::string> values = label_value(label.value);
      sharing(label.key, k8s::LabelOperator::in, values, label.key_at);
    }
  }

  void match_expressions(const DocumentValue& expressions) {
    limit(expressions.items.size(), kMostLabels, expressions.at);
    for (std::size_t i = 0; i < expressions.items.size(); ++i) {
      const PathStep step(path_, i);
      if (expressions.items[i].is_object()) expression(expressions.items[i]);
    }
  }

  void expression(const DocumentValue& expression) {
    for (const std::string_view field : {"key", "operator"}) {
      if (expression.present(field) != nullptr) continue;
      error("SelectorInvalid", expression.at,
            fmt::format("the API server refuses an expression without \"{}\"", field));
    }
    const DocumentValue* key = expression.present("key");
    if (key != nullptr && key->is_string()) {
      const PathStep step(path_, "key");
      label_key(key->text, key->at);
    }
    const std::optional<k8s::LabelOperator> op = k8s::parse_label_operator(expression.string_at("operator"));
    const std::vector<std::string> values = values_of(expression, op);
    if (key != nullptr && key->is_string() && op) sharing(key->text, *op, values, key->at);
  }

  std::vector<std::string> values_of(const DocumentValue& expression, std::optional<k8s::LabelOperator> op) {
    std::vector<std::string> out;
    const DocumentValue* listed = expression.present("values");
    if (listed != nullptr && !listed->is_array()) return out;
    const PathStep step(path_, "values");
    const std::span<const DocumentValue> items = items_of(listed);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const PathStep item(path_, i);
      for (std::string& value : label_value(items[i])) out.push_back(std::move(value));
    }
    if (listed != nullptr) limit(listed->items.size(), kMostValues, listed->at);
    if (!op) return out;
    const bool needs = *op == k8s::LabelOperator::in || *op == k8s::LabelOperator::not_in;
    const bool has = !items.empty();
    if (needs != has) {
      error("SelectorInvalid", listed != nullptr ? listed->at : expression.at,
            fmt::format("operator {} {}", k8s::to_string(*op),
                        needs ? "needs at least one value" : "must have no values: leave them out"));
    }
    return out;
  }

  void label_key(const std::string& key, Position at) {
    if (const auto problem = k8s::label_key_problem(key)) {
      leave_to_operator("SelectorInvalid", at,
                        fmt::format("\"{}\" is not a label: {}", shown_value(key), shown_value(*problem)));
    }
  }

  // One value, or none if it is no text.
  std::vector<std::string> label_value(const DocumentValue& value) {
    if (!value.is_string()) {
      error("WrongType", value.at,
            fmt::format("expected a string, found {}: put the value in quotes", kind_name(value.kind)));
      return {};
    }
    if (const auto problem = k8s::label_value_problem(value.text)) {
      leave_to_operator("SelectorInvalid", value.at,
                        fmt::format("\"{}\" is not a label value: {}", shown_value(value.text), shown_value(*problem)));
    }
    return {value.text};
  }

  // What the operator itself refuses, or does otherwise than the author might mean.
  void sharing(std::string_view label, k8s::LabelOperator op, const std::vector<std::string>& values, Position at) {
    const std::vector<std::string> asked = op == k8s::LabelOperator::in ? values : std::vector<std::string>();
    if (std::string problem = sharing_label_problem(label, asked, own_key_); !problem.empty())
      leave_to_operator(kSelectorOnSharingLabel, at, std::move(problem));
    for (Reason& note : selector_notes(label, op, values)) warning(note.code, at, std::move(note.message));
  }

  const std::string& own_key_;
  std::size_t left_to_operator_ = 0;
};

// --- The whole policy.

class PolicyCheck : DocumentCheck {
 public:
  explicit PolicyCheck(std::vector<Diagnostic>& diagnostics) : DocumentCheck(diagnostics) {}

  // As check_policy().
  std::size_t run(const DocumentValue& policy) {
    head(policy);
    const DocumentValue* spec = policy.find("spec");
    const PathStep step(path_, "spec");
    if (spec == nullptr || !spec->is_object()) {
      error("WrongType", spec == nullptr ? policy.at : spec->at, "a SharingPolicy needs a mapping \"spec\"");
      return 0;
    }
    fields(*spec, "spec.");
    std::size_t left_to_operator = 0;
    object(*spec, "nodeSelector", [&](const DocumentValue& v) {
      left_to_operator = SelectorCheck(own_key(*spec), path_, diagnostics_).run(v);
    });
    object(*spec, "profile", [this](const DocumentValue& v) { profile(v); });
    object(*spec, "rollout", [this](const DocumentValue& v) { rollout(v); });
    return left_to_operator;
  }

 private:
  // What surrounds the spec, apart from metadata.
  void head(const DocumentValue& policy) {
    static constexpr std::array<std::string_view, 5> kHead{"apiVersion", "kind", "metadata", "spec", "status"};
    for (const DocumentMember& member : policy.members) {
      const PathStep step(path_, member.key);
      if (std::ranges::find(kHead, member.key) == kHead.end()) report_unknown_field(member, path_, kHead, diagnostics_);
    }
    const DocumentValue* version = policy.find("apiVersion");
    if (version == nullptr || version->text != kApiVersion) {
      const PathStep step(path_, "apiVersion");
      error("UnknownValue", version == nullptr ? policy.at : version->at,
            fmt::format("the API server serves SharingPolicies as {} only", kApiVersion));
    }
  }

  static PolicyWords words_at(std::string_view path) {
    return std::ranges::find(policy_fields(), path, &PolicyField::path)->words;
  }

  // The names of the fields directly below this place.
  static std::vector<std::string_view> fields_below(const std::string& place) {
    std::vector<std::string_view> out;
    for (const PolicyField& field : policy_fields())
      if (field.path.starts_with(place) && field.path.find_first_of(".[", place.size()) == std::string_view::npos)
        out.push_back(field.path.substr(place.size()));
    return out;
  }

  // Each field by itself. `place`: of the value, with the '.' that comes before its fields.
  void fields(const DocumentValue& value, const std::string& place) {
    const auto names = fields_below(place);
    for (const DocumentMember& member : names.empty() ? std::span<const DocumentMember>() : members_of(&value)) {
      const PathStep step(path_, member.key);
      const std::string path = place + member.key;
      const auto field = std::ranges::find(policy_fields(), path, &PolicyField::path);
      if (field == policy_fields().end()) {
        report_unknown_field(member, path_, names, diagnostics_);
        continue;
      }
      if (!member.value.is_null()) check(member.value, *field);
      fields(member.value, path + ".");
      const bool of_mappings = !fields_below(path + "[].").empty();
      for (std::size_t i = 0; of_mappings && i < member.value.items.size(); ++i) {
        const PathStep step_of_item(path_, i);
        const DocumentValue& item = member.value.items[i];
        expect(item.is_object(), "a mapping", item);
        fields(item, path + "[].");
      }
    }
  }

  void check(const DocumentValue& value, const PolicyField& field) {
    using enum PolicyField::Type;
    switch (field.type) {
      case elsewhere:
        return;
      case mapping:
        return expect(value.is_object(), "a mapping", value);
      case list:
        return expect(value.is_array(), "a list", value);
      case text:
        return expect(value.is_string(), "a string", value);
      case word:
        return check_word(value, field.words);
      case boolean:
        return expect(value.kind == DocumentValue::Kind::boolean, "true or false", value);
      case integer:
        return check_integer(value, field.least, field.most);
      case duration:
        return check_duration(value, field);
      case count_or_percent:
        return check_count_or_percent(value);
    }
  }

  void expect(bool right, std::string_view expected, const DocumentValue& value) {
    if (!right) error("WrongType", value.at, fmt::format("expected {}, found {}", expected, kind_name(value.kind)));
  }

  void check_word(const DocumentValue& value, PolicyWords words) {
    if (value.is_string() && std::ranges::find(words, value.text) != words.end()) return;
    error("UnknownValue", value.at,
          fmt::format("\"{}\" is not allowed; {}", shown_value(value.text), word_advice(value.text, words)));
  }

  void check_integer(const DocumentValue& value, std::int64_t least, std::int64_t most) {
    const auto number = value.kind == DocumentValue::Kind::number ? parse_go_int(value.text, 10) : std::nullopt;
    if (number && *number >= least && *number <= most) return;
    const bool quoted = value.is_string() && parse_go_int(value.text, 10);
    error("OutOfRange", value.at,
          fmt::format("expected a whole number from {} to {}{}", least, most, quoted ? ", without quotes" : ""));
  }

  void check_duration(const DocumentValue& value, const PolicyField& field) {
    using std::chrono::seconds;
    const auto parsed = value.is_string() ? k8s::parse_go_duration(value.text) : std::nullopt;
    if (!parsed || !fits(value.text, 32, R"(([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)"))
      error("InvalidDuration", value.at, "expected a duration like \"90s\" or \"1h30m\", in ns, us, ms, s, m, h");
    else if (!field.bounds.empty() && (*parsed < seconds(field.least) || *parsed > seconds(field.most)))
      error("OutOfRange", value.at, fmt::format("expected a duration {}", field.bounds));
  }

  void check_count_or_percent(const DocumentValue& value) {
    const bool number = value.kind == DocumentValue::Kind::number;
    const auto parsed = number || value.is_string() ? IntOrPercent::parse(value.text) : std::nullopt;
    if (parsed && parsed->value >= 1 && !parsed->percent && !number) {
      error("OutOfRange", value.at,
            fmt::format("a count must have no quotes: write {}, or a percentage such as \"10%\"",
                        shown_value(value.text)));
    } else if (!parsed || parsed->value < 1 || parsed->percent == number) {
      error("OutOfRange", value.at, "expected a count of at least 1, or a percentage from \"1%\" to \"100%\"");
    }
  }

  // Visits the field of `parent` where it has one that is not null.
  template <class Visit>
  void member(const DocumentValue& parent, std::string_view name, Visit visit) {
    if (const DocumentValue* value = parent.present(name)) {
      const PathStep step(path_, name);
      visit(*value);
    }
  }
  // The same where it is a mapping.
  template <class Visit>
  void object(const DocumentValue& parent, std::string_view name, Visit visit) {
    member(parent, name, [&](const DocumentValue& value) {
      if (value.is_object()) visit(value);
    });
  }

  // The key that the policy's nodes get as their label; empty: it chooses none.
  static std::string own_key(const DocumentValue& spec) {
    if (spec.find("profile") == nullptr) return {};
    const DocumentValue* key = find_path(spec, {"profile", "configMapKey"});
    return key != nullptr ? key->text : "gso-";  // The key of an inline profile is derived from its content.
  }

  void profile(const DocumentValue& value) {
    const bool key = value.find("configMapKey") != nullptr;
    const bool text = value.find("inline") != nullptr;
    if (key == text) {
      error("ProfileNotUnique", value.at,
            "set exactly one of configMapKey and inline; to follow the plugin's own choice, leave \"profile\" out");
    }
    member(value, "configMapKey", [this](const DocumentValue& v) {
      if (!v.is_string()) {
        error("KeyNoLabelValue", v.at,
              fmt::format("expected a string, the name of a key of the ConfigMap; found {}", kind_name(v.kind)));
      } else if (v.text.empty() || k8s::label_value_problem(v.text)) {
        error("KeyNoLabelValue", v.at,
              "expected a key that a node label can name: at most 63 letters, digits, '-', '_' and '.'");
      }
    });
    object(value, "inline", [this](const DocumentValue& v) { inline_profile(v); });
  }

  void inline_profile(const DocumentValue& value) {
    if (value.present("strategy") == nullptr) {
      error("StrategyMissing", value.at,
            fmt::format("inline needs \"strategy\": {}", fmt::join(words_at("spec.profile.inline.strategy"), ", ")));
    }
    member(value, "resource", [this](const DocumentValue& v) {
      if (v.is_string() && fits(v.text, 63, R"(nvidia\.com/[a-z0-9]([a-z0-9.-]*[a-z0-9])?)")) return;
      error("NameInvalid", v.at, "expected a resource of nvidia.com, such as nvidia.com/gpu or nvidia.com/mig-1g.5gb");
    });
    const std::string_view strategy = value.string_at("strategy");
    const DocumentValue* renames = value.find("renameByDefault");
    const DocumentValue* resource = value.find("resource");
    if (strategy == "none" && renames != nullptr && renames->boolean)
      error("NothingShared", renames->at, "strategy none does not share: leave renameByDefault out");
    if (const DocumentValue* replicas = value.find("replicas"); strategy == "none" && replicas != nullptr)
      error("NothingShared", replicas->at, "strategy none does not share: leave replicas out");
    if (strategy == "mps" && resource != nullptr && resource->text != kGpuResource)
      error("MPSSharesGPUsOnly", resource->at, "MPS shares nvidia.com/gpu only");
    if (strategy == "mps" || strategy == "time-slicing") {
      if (value.find("replicas") == nullptr) {
        error("ReplicasMissing", value.at,
              fmt::format("strategy {} needs \"replicas\", an integer of 2 or more", strategy));
      }
      member(value, "replicas",
             [&](const DocumentValue& v) { check_integer(v, 2, strategy == "mps" ? kMpsMaxClients : kMostReplicas); });
    }
  }

  void rollout(const DocumentValue& value) {
    member(value, "maintenanceWindows", [this](const DocumentValue& v) { windows(v); });
    const DocumentValue* cordon = value.find("cordon");
    const bool never = cordon != nullptr && cordon->kind == DocumentValue::Kind::boolean && !cordon->boolean;
    if (value.string_at("workloads") == "Evict" && never) {
      error("EvictNeedsCordon", cordon->at,
            "workloads: Evict needs cordon: true; otherwise evicted pods could be scheduled to the node again");
    }
    if (value.string_at("mechanism") == "DaemonSetRestart") daemonset_restart(value);
  }

  void windows(const DocumentValue& value) {
    if (value.items.size() > kMostWindows)
      error("OutOfRange", value.at,
            fmt::format("expected at most {} windows, found {}", kMostWindows, value.items.size()));
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const PathStep step(path_, i);
      const DocumentValue& item = value.items[i];
      if (!item.is_object()) continue;
      MaintenanceWindow window;
      window.cron = item.string_at("cron");
      if (const auto length = k8s::parse_go_duration(item.string_at("duration"))) window.duration = *length;
      if (item.find("timeZone") != nullptr) window.time_zone = item.string_at("timeZone");
      const DocumentValue* cron = item.find("cron");
      if (std::string problem = window_problem(window); !problem.empty()) {
        error("InvalidWindow", item.at, std::move(problem));
      } else if (window.cron.size() > kMostCron) {
        error("InvalidWindow", cron->at, fmt::format("cron has more than {} characters", kMostCron));
      } else if (!opens(window)) {
        warning("WindowNeverOpens", cron->at,
                "no such day exists: the window never opens, and the policy starts no node");
      }
      const bool wrong = !diagnostics_.empty() && diagnostics_.back().code == "InvalidWindow";
      if (!wrong) member(item, "duration", [this](const DocumentValue& v) { check_duration(v, {}); });
    }
  }

  // In the five years from some day on: "0 0 31 2 *" does not.
  static bool opens(const MaintenanceWindow& window) {
    const WindowState state =
        windows_at({window}, k8s::WallTime{std::chrono::sys_days{std::chrono::year{2024} / 1 / 1}});
    return state.open || state.until.has_value();
  }

  void daemonset_restart(const DocumentValue& value) {
    const DocumentValue* mechanism = value.find("mechanism");
    const auto refuse = [&](bool wrong, std::string_view code, const DocumentValue* at, std::string message) {
      if (wrong) error(code, (at != nullptr ? at : mechanism)->at, std::move(message));
    };
    refuse(value.string_at("workloads") != "Interrupt", "DaemonSetRestartInterrupts", mechanism,
           "mechanism DaemonSetRestart cannot gate single nodes; set workloads: Interrupt");
    refuse(value.string_at("onFailure") == "Rollback", "DaemonSetRestartPauses", value.find("onFailure"),
           "mechanism DaemonSetRestart cannot roll single nodes back; use onFailure: Pause");
    const DocumentValue* nodes = find_path(value, {"canary", "nodesPerGroup"});
    refuse(nodes == nullptr || nodes->text != "0", "DaemonSetRestartHasNoCanary", nodes,
           "mechanism DaemonSetRestart has no canary; set nodesPerGroup: 0");
    const DocumentValue* windows = value.find("maintenanceWindows");
    refuse(!items_of(windows).empty(), "DaemonSetRestartHasNoWindows", windows,
           "mechanism DaemonSetRestart does not support maintenanceWindows; remove them");
  }
};

}  // namespace

std::size_t check_policy(const DocumentValue& policy, std::vector<Diagnostic>& diagnostics) {
  return PolicyCheck(diagnostics).run(policy);
}

}  // namespace gso
