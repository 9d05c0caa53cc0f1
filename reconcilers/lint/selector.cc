// The nodeSelector of a SharingPolicy, as the CRD's schema and the API server's rules for labels have it.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "k8sclient/value/selectors.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

constexpr std::size_t kMostLabels = 32;
constexpr std::size_t kMostValues = 256;

class SelectorCheck : DocumentCheck {
 public:
  SelectorCheck(const std::string& own_key, const std::string& path, std::vector<Diagnostic>& diagnostics)
      : DocumentCheck(diagnostics, path), own_key_(own_key) {}

  // As check_selector().
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
    if (std::string problem = sharing_label_problem(label, asked, own_key_); !problem.empty()) {
      leave_to_operator(kSelectorOnSharingLabel, at, std::move(problem));
    }
    for (Reason& note : selector_notes(label, op, values)) {
      warning(note.code, at, std::move(note.message));
    }
  }

  const std::string& own_key_;
  std::size_t left_to_operator_ = 0;
};

}  // namespace

std::size_t check_selector(const DocumentValue& selector, const std::string& own_key, const std::string& path,
                           std::vector<Diagnostic>& diagnostics) {
  return SelectorCheck(own_key, path, diagnostics).run(selector);
}

}  // namespace gso
