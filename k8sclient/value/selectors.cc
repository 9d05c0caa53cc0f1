#include "k8sclient/value/selectors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "k8sclient/value/encoding.h"

namespace k8s {
namespace {

// What is wrong with the name in a key, or a value: [A-Za-z0-9] ends, [A-Za-z0-9._-] between.
std::optional<std::string> name_problem(std::string_view what, std::string_view name) {
  if (name.size() > 63) return fmt::format("{} has {} characters, at most 63 are allowed", what, name.size());
  const auto allowed = [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; };
  if (!name.empty() && is_alphanumeric(name.front()) && is_alphanumeric(name.back()) &&
      std::ranges::all_of(name, allowed)) {
    return std::nullopt;
  }
  return fmt::format("{} must be letters, digits, '-', '_' or '.', and begin and end with a letter or digit", what);
}

std::string term_text(const LabelRequirement& requirement) {
  if (requirement.op == LabelOperator::exists) return requirement.key;
  if (requirement.op == LabelOperator::does_not_exist) return "!" + requirement.key;
  std::vector<std::string> values = requirement.values;
  std::ranges::sort(values);
  return fmt::format("{} {} ({})", requirement.key, requirement.op == LabelOperator::in ? "in" : "notin",
                     fmt::join(values, ","));
}

// Reads the query form of a label selector; the grammar is apimachinery's labels.Parse.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<LabelSelector> run() {
    LabelSelector selector;
    skip_space();
    while (at_ < text_.size()) {
      Result<LabelRequirement> requirement = term();
      if (!requirement) return std::unexpected(requirement.error());
      add(selector, *std::move(requirement));
      skip_space();
      if (at_ == text_.size()) break;
      if (!take(',')) return wrong("expected ',' between requirements");
      skip_space();
      if (at_ == text_.size()) return wrong("expected a requirement after ','");
    }
    if (Result<void> valid = selector.validate(); !valid) return std::unexpected(valid.error());
    return selector;
  }

 private:
  Result<LabelRequirement> term() {
    LabelRequirement requirement;
    const bool negated = take('!');
    skip_space();
    requirement.key = word();
    if (requirement.key.empty()) return wrong("expected a label key");
    skip_space();
    if (negated) {
      requirement.op = LabelOperator::does_not_exist;
      return requirement;
    }
    if (at_ == text_.size() || text_[at_] == ',') return requirement;
    if (text_[at_] == '<' || text_[at_] == '>') return wrong("'<' and '>' are not supported in a label selector");
    const bool unequal = take('!');
    if (unequal && text_.substr(at_, 1) != "=") return wrong("expected '!='");
    if (take('=')) {
      if (!unequal) take('=');
      equality_ = !unequal;
      requirement.op = unequal ? LabelOperator::not_in : LabelOperator::in;
      skip_space();
      requirement.values = {word()};
      return requirement;
    }
    const std::string op = word();
    if (op != "in" && op != "notin") return wrong("expected one of =, ==, !=, in, notin");
    requirement.op = op == "in" ? LabelOperator::in : LabelOperator::not_in;
    return values(std::move(requirement));
  }

  Result<LabelRequirement> values(LabelRequirement requirement) {
    skip_space();
    if (!take('(')) return wrong("expected '(' after in or notin");
    do {
      skip_space();
      requirement.values.push_back(word());
      skip_space();
    } while (take(','));
    if (!take(')')) return wrong("expected ')'");
    return requirement;
  }

  void add(LabelSelector& selector, LabelRequirement requirement) {
    if (std::exchange(equality_, false)) {
      auto [it, fresh] = selector.match_labels.try_emplace(requirement.key, requirement.values.front());
      if (fresh || it->second == requirement.values.front()) return;
    }
    std::sort(requirement.values.begin(), requirement.values.end());
    selector.match_expressions.push_back(std::move(requirement));
  }

  std::string word() {
    static constexpr std::string_view kSpecial = "=!(),<> \t";
    const std::size_t end = std::min(text_.find_first_of(kSpecial, at_), text_.size());
    std::string out(text_.substr(at_, end - at_));
    at_ = end;
    return out;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Reason::invalid, fmt::format("label selector \"{}\", position {}: {}", text_, at_ + 1, what));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool equality_ = false;  // The last term was `a=b`.
};

}  // namespace

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  while (true) {
    const std::string_view label = text.substr(0, text.find('.'));
    const auto good = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-'; };
    if (label.empty() || label.front() == '-' || label.back() == '-' || !std::ranges::all_of(label, good)) return false;
    if (label.size() == text.size()) return true;
    text.remove_prefix(label.size() + 1);
  }
}

std::string_view to_string(LabelOperator op) {
  constexpr std::array<std::string_view, 4> kNames{"In", "NotIn", "Exists", "DoesNotExist"};
  return kNames.at(static_cast<std::size_t>(op));
}

std::optional<LabelOperator> parse_label_operator(std::string_view text) {
  using enum LabelOperator;
  for (const LabelOperator op : {in, not_in, exists, does_not_exist})
    if (to_string(op) == text) return op;
  return std::nullopt;
}

bool LabelRequirement::matches(const StringMap& labels) const {
  const auto value = labels.get(key);
  const bool listed = value && std::ranges::find(values, *value) != values.end();
  // In the order of LabelOperator.
  return std::array{listed, !listed, value.has_value(), !value.has_value()}.at(static_cast<std::size_t>(op));
}

bool LabelSelector::matches(const StringMap& labels) const {
  return std::ranges::all_of(match_labels,
                             [&](const auto& entry) { return labels.get(entry.first) == entry.second; }) &&
         std::ranges::all_of(match_expressions, [&](const auto& requirement) { return requirement.matches(labels); });
}

std::string LabelSelector::to_string() const {
  // Sorted by key and then by text, whatever order the expressions came in.
  std::set<std::pair<std::string, std::string>> terms;
  for (const auto& [key, value] : match_labels) terms.emplace(key, fmt::format("{}={}", key, value));
  for (const LabelRequirement& requirement : match_expressions) terms.emplace(requirement.key, term_text(requirement));
  std::string out;
  for (const auto& [key, text] : terms) out += (out.empty() ? "" : ",") + text;
  return out;
}

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  return Parser(text).run();
}

namespace {

Result<void> check_requirement(const LabelRequirement& requirement) {
  if (auto problem = label_key_problem(requirement.key)) return fail(Reason::invalid, *std::move(problem));
  const bool wants_values = requirement.op == LabelOperator::in || requirement.op == LabelOperator::not_in;
  if (wants_values == requirement.values.empty()) {
    return fail(Reason::invalid, fmt::format("label selector: {} {} {}", requirement.key, to_string(requirement.op),
                                             wants_values ? "needs at least one value" : "takes no values"));
  }
  for (const std::string& value : requirement.values)
    if (auto problem = label_value_problem(value))
      return fail(Reason::invalid, fmt::format("label selector, key {}: {}", requirement.key, *problem));
  return {};
}

}  // namespace

Result<void> LabelSelector::validate() const {
  for (const auto& [key, value] : match_labels) {
    Result<void> checked = check_requirement({key, LabelOperator::in, {value}});
    if (!checked) return checked;
  }
  for (const LabelRequirement& requirement : match_expressions) {
    Result<void> checked = check_requirement(requirement);
    if (!checked) return checked;
  }
  return {};
}

std::optional<std::string> label_key_problem(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash != std::string_view::npos && !is_dns_subdomain(key.substr(0, slash))) {
    return fmt::format("label key \"{}\": the part before '/' must be a lower case DNS name of at most 253 characters",
                       key);
  }
  const std::string_view name = slash == std::string_view::npos ? key : key.substr(slash + 1);
  return name_problem(fmt::format("label key \"{}\": the name", key), name);
}

std::optional<std::string> label_value_problem(std::string_view value) {
  if (value.empty()) return std::nullopt;
  return name_problem(fmt::format("label value \"{}\"", value), value);
}

FieldSelector FieldSelector::equals(std::string path, std::string value) {
  return {{{std::move(path), std::move(value)}}};
}

std::string FieldSelector::to_string() const {
  std::string out;
  for (const auto& [path, value] : terms) {
    out += fmt::format("{}{}=", out.empty() ? "" : ",", path);
    for (const char c : value) {
      if (c == '\\' || c == ',' || c == '=') out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace k8s
