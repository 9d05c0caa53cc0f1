// Parsing and matching of selectors.
#include "tests/sim/apiserver/selectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/names.h"

namespace gso::sim {
namespace {

using Requirement = LabelSelector::Requirement;
using Op = Requirement::Op;

bool matches_one(const Requirement& r, std::optional<std::string_view> value) {
  const bool listed = value && std::find(r.values.begin(), r.values.end(), *value) != r.values.end();
  switch (r.op) {
    case Op::in:
      return listed;
    case Op::not_in:
      return !listed;
    case Op::exists:
      return value.has_value();
    case Op::absent:
      return !value.has_value();
    case Op::greater:
    case Op::less:
      break;
  }
  long long have = 0;
  long long bound = 0;
  if (!value || std::from_chars(value->data(), value->data() + value->size(), have).ec != std::errc()) return false;
  const std::string& text = r.values.front();
  std::from_chars(text.data(), text.data() + text.size(), bound);
  return r.op == Op::greater ? have > bound : have < bound;
}

// A hand-written scanner: tokens are ( ) , = == != ! < > and words.
class SelectorParser {
 public:
  explicit SelectorParser(std::string_view text) : rest_(text) { next(); }

  std::expected<std::vector<Requirement>, std::string> parse() {
    std::vector<Requirement> all;
    while (!token_.empty()) {
      auto one = requirement();
      if (!one) return std::unexpected(one.error());
      all.push_back(std::move(*one));
      if (token_.empty()) break;
      if (token_ != ",") return std::unexpected(fmt::format("found '{}', expected: ',' or 'end of string'", token_));
      next();
      if (token_.empty()) return std::unexpected("found '', expected: identifier after ','");
    }
    return all;
  }

 private:
  static bool special(char c) { return std::string_view("()!,=<>").find(c) != std::string_view::npos; }

  void next() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
    std::size_t size = 0;
    if (rest_.starts_with("==") || rest_.starts_with("!="))
      size = 2;
    else if (!rest_.empty() && special(rest_.front()))
      size = 1;
    else
      while (size < rest_.size() && !special(rest_[size]) && rest_[size] != ' ' && rest_[size] != '\t') ++size;
    token_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  std::expected<Requirement, std::string> requirement() {
    Requirement r;
    const bool negated = token_ == "!";
    if (negated) next();
    if (token_.empty() || special(token_.front()))
      return std::unexpected(fmt::format("found '{}', expected: !, identifier, or 'end of string'", token_));
    r.key = token_;
    if (auto problem = label_key_problem(r.key))
      return std::unexpected(fmt::format("<nil>: Invalid value: \"{}\": {}", r.key, *problem));
    next();
    if (negated) {
      r.op = Op::absent;
      return r;
    }
    if (token_.empty() || token_ == ",") return r;
    return operation(std::move(r));
  }

  std::expected<Requirement, std::string> operation(Requirement r) {
    const std::string op(token_);
    next();
    if (op == "in" || op == "notin") {
      r.op = op == "in" ? Op::in : Op::not_in;
      return value_set(std::move(r));
    }
    if (op == "=" || op == "==")
      r.op = Op::in;
    else if (op == "!=")
      r.op = Op::not_in;
    else if (op == ">")
      r.op = Op::greater;
    else if (op == "<")
      r.op = Op::less;
    else
      return std::unexpected(fmt::format("found '{}', expected: in, notin, =, ==, !=, gt, lt", op));
    std::string value;
    if (!token_.empty() && !special(token_.front())) {
      value = token_;
      next();
    }
    if (auto problem = label_value_problem(value))
      return std::unexpected(fmt::format("values[0][{}]: Invalid value: \"{}\": {}", r.key, value, *problem));
    r.values.push_back(std::move(value));
    return r;
  }

  std::expected<Requirement, std::string> value_set(Requirement r) {
    if (token_ != "(") return std::unexpected(fmt::format("found '{}' expected: '('", token_));
    next();
    while (token_ != ")") {
      if (token_.empty()) return std::unexpected("found '', expected: ',' or ')'");
      if (token_ != ",") r.values.emplace_back(token_);
      next();
    }
    next();
    if (r.values.empty()) r.values.emplace_back();
    return r;
  }

  std::string_view rest_;
  std::string_view token_;
};

}  // namespace

std::expected<LabelSelector, std::string> LabelSelector::parse(std::string_view text) {
  auto requirements = SelectorParser(text).parse();
  if (!requirements) return std::unexpected(requirements.error());
  LabelSelector selector;
  selector.requirements_ = std::move(*requirements);
  return selector;
}

LabelSelector LabelSelector::from_json(const nlohmann::json& selector) {
  LabelSelector result;
  result.nothing_ = !selector.is_object();
  if (result.nothing_) return result;
  if (auto labels = selector.find("matchLabels"); labels != selector.end() && labels->is_object())
    for (const auto& [key, value] : labels->items())
      result.requirements_.push_back({key, Op::in, {value.get<std::string>()}});
  if (auto list = selector.find("matchExpressions"); list != selector.end() && list->is_array()) {
    for (const auto& item : *list) {
      Requirement r{item.value("key", ""), Op::exists, item.value("values", std::vector<std::string>())};
      const std::string op = item.value("operator", "");
      r.op = op == "In" ? Op::in : op == "NotIn" ? Op::not_in : op == "Exists" ? Op::exists : Op::absent;
      result.requirements_.push_back(std::move(r));
    }
  }
  return result;
}

bool LabelSelector::matches(const Object& object) const {
  return !nothing_ && std::all_of(requirements_.begin(), requirements_.end(),
                                  [&](const Requirement& r) { return matches_one(r, object.label(r.key)); });
}

bool LabelSelector::matches(const nlohmann::json& labels) const {
  return !nothing_ && std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
    auto it = labels.is_object() ? labels.find(r.key) : labels.end();
    if (!labels.is_object() || it == labels.end()) return matches_one(r, std::nullopt);
    return matches_one(r, it->get_ref<const std::string&>());
  });
}

std::expected<FieldSelector, std::string> FieldSelector::parse(std::string_view text) {
  FieldSelector selector;
  while (!text.empty()) {
    const std::string_view term = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), term.size() + 1));
    if (term.empty()) continue;
    const auto equals = term.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return std::unexpected(fmt::format("invalid selector: '{}'; can't understand '{}'", term, term));
    Requirement r;
    r.equal = term[equals - 1] != '!';
    r.path = term.substr(0, r.equal ? equals : equals - 1);
    r.value = term.substr(term.substr(equals).starts_with("==") ? equals + 2 : equals + 1);
    selector.requirements_.push_back(std::move(r));
  }
  return selector;
}

bool FieldSelector::matches(const Object& object) const {
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& r) { return (object.field(r.path).value_or("") == r.value) == r.equal; });
}

std::string FieldSelector::required(std::string_view path) const {
  for (const Requirement& r : requirements_)
    if (r.path == path && r.equal) return r.value;
  return "";
}

}  // namespace gso::sim
