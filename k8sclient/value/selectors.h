// Label and field selectors, and their query-string form. Asio-free: planners select nodes with them, the client sends
// them.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace k8s {

// metav1.LabelSelectorOperator.
enum class LabelOperator { in, not_in, exists, does_not_exist };
// "In", "NotIn", "Exists", "DoesNotExist", as the JSON form spells them.
[[nodiscard]] std::string_view to_string(LabelOperator op);
[[nodiscard]] std::optional<LabelOperator> parse_label_operator(std::string_view text);

// metav1.LabelSelectorRequirement. Values are used by `in` and `not_in` only, and must not be empty there.
struct LabelRequirement {
  std::string key;
  LabelOperator op = LabelOperator::exists;
  std::vector<std::string> values;

  // `not_in` also matches an object that lacks the key, as in Kubernetes.
  [[nodiscard]] bool matches(const StringMap& labels) const;
  friend auto operator<=>(const LabelRequirement&, const LabelRequirement&) = default;
};

// metav1.LabelSelector: all of match_labels and all of match_expressions. Empty selects everything. (An absent
// selector, which in many APIs selects nothing, is the caller's std::optional.)
struct LabelSelector {
  std::map<std::string, std::string> match_labels;
  std::vector<LabelRequirement> match_expressions;

  [[nodiscard]] bool empty() const { return match_labels.empty() && match_expressions.empty(); }
  [[nodiscard]] bool matches(const StringMap& labels) const;
  // The `labelSelector` query form before percent-encoding: "a=b,c in (x,y),!d,e". Sorted, so that equal selectors
  // give equal texts.
  [[nodiscard]] std::string to_string() const;
  // Parses the query form: `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a notin (x)`, `a`, `!a`, joined by commas. `a=b` goes
  // to match_labels unless the key is already there with another value. Errors: `invalid`, with the position and what
  // would be right. The `>` and `<` forms, which only node affinity uses, are refused.
  [[nodiscard]] static Result<LabelSelector> parse(std::string_view text);
  // `invalid` when a key, value or operator/values pair is not what the API server accepts.
  [[nodiscard]] Result<void> validate() const;
  friend auto operator<=>(const LabelSelector&, const LabelSelector&) = default;
};

// What is wrong with a label key ("prefix/name") or value, or nullopt when it is fine. Rules: a name has 1 to 63
// characters [A-Za-z0-9._-] beginning and ending alphanumeric; a prefix is a DNS subdomain of at most 253 characters;
// a value follows the name's rules or is empty. Source: apimachinery's IsQualifiedName and IsValidLabelValue.
[[nodiscard]] std::optional<std::string> label_key_problem(std::string_view key);
[[nodiscard]] std::optional<std::string> label_value_problem(std::string_view value);

// Labels of lower case letters, digits and '-' that begin and end with neither a '-' nor anything else, joined by '.':
// at most 253 characters (RFC 1123).
[[nodiscard]] bool is_dns_subdomain(std::string_view text);

// All of these fields have these values.
struct FieldSelector {
  std::vector<std::pair<std::string, std::string>> terms;  // Path and value: "spec.nodeName", "n1".

  // One term, the usual case.
  [[nodiscard]] static FieldSelector equals(std::string path, std::string value);
  // The `fieldSelector` query form before percent-encoding; `\`, `,` and `=` in values are escaped by a backslash.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace k8s
