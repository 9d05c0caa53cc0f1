// Evaluation of CEL trees over JSON. Durations are integers of nanoseconds, timestamps of milliseconds.
#include "tests/sim/apiserver/cel.h"

#include <algorithm>
#include <expected>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/cel_syntax.h"

namespace gso::sim {
namespace {

using Kind = CelNode::Kind;
using nlohmann::json;

enum class Trouble {
  error,    // What CEL calls an error: no such key, types that do not match.
  unknown,  // A function that is not implemented here.
};
using Value = std::expected<json, Trouble>;

const std::unexpected<Trouble> kError(Trouble::error);
const std::unexpected<Trouble> kUnknown(Trouble::unknown);

class Evaluator {
 public:
  Evaluator(const json& self, const json* old) {
    names_.emplace_back("self", &self);
    if (old != nullptr) names_.emplace_back("oldSelf", old);
  }

  Value eval(const CelNode& n) {
    switch (n.kind) {
      case Kind::literal:
        return n.value;
      case Kind::name:
        return name(n.text);
      case Kind::member:
        return member(n);
      case Kind::index:
        return index(n);
      case Kind::call:
        return call(n);
      case Kind::method:
        return method(n);
      case Kind::list:
        return list(n);
      case Kind::unary:
        return unary(n);
      case Kind::binary:
        return binary(n);
      case Kind::ternary:
        break;
    }
    const Value condition = eval(*n.kids[0]);
    if (!condition) return condition;
    if (!condition->is_boolean()) return kError;
    return eval(condition->get<bool>() ? *n.kids[1] : *n.kids[2]);
  }

 private:
  Value name(const std::string& text) const {
    for (auto it = names_.rbegin(); it != names_.rend(); ++it)
      if (it->first == text) return *it->second;
    static const std::set<std::string> kTypes{"int", "uint", "double", "string", "bool", "list", "map", "null_type"};
    return kTypes.contains(text) ? Value("type " + text) : Value(kUnknown);
  }

  // CEL escapes reserved words and characters in field names: "__dot__", "__slash__", "__dash__", "__namespace__".
  static std::string unescaped(std::string text) {
    static const std::map<std::string, std::string> kEscapes{
        {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}, {"__underscores__", "__"}};
    for (const auto& [from, to] : kEscapes)
      for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    if (text.size() > 4 && text.starts_with("__") && text.ends_with("__")) return text.substr(2, text.size() - 4);
    return text;
  }

  Value member(const CelNode& n) {
    const Value target = eval(*n.kids[0]);
    if (!target) return target;
    if (!target->is_object()) return kError;
    auto it = target->find(unescaped(n.text));
    if (it == target->end()) return kError;
    return *it;
  }

  Value index(const CelNode& n) {
    const Value target = eval(*n.kids[0]);
    if (!target) return target;
    const Value key = eval(*n.kids[1]);
    if (!key) return key;
    if (target->is_object() && key->is_string()) {
      auto it = target->find(key->get<std::string>());
      return it == target->end() ? Value(kError) : Value(*it);
    }
    if (!target->is_array() || !key->is_number_integer()) return kError;
    const auto i = key->get<std::int64_t>();
    if (i < 0 || i >= std::ssize(*target)) return kError;
    return (*target)[static_cast<std::size_t>(i)];
  }

  Value list(const CelNode& n) {
    json items = json::array();
    for (const auto& kid : n.kids) {
      Value item = eval(*kid);
      if (!item) return item;
      items.push_back(std::move(*item));
    }
    return items;
  }

  Value unary(const CelNode& n) {
    const Value value = eval(*n.kids[0]);
    if (!value) return value;
    if (n.text == "!") return value->is_boolean() ? Value(!value->get<bool>()) : Value(kError);
    if (value->is_number_integer()) return -value->get<std::int64_t>();
    return value->is_number() ? Value(-value->get<double>()) : Value(kError);
  }

  // The result is decided by either side alone, whatever trouble the other has.
  Value logic(const CelNode& n, bool decisive) {
    const Value left = eval(*n.kids[0]);
    if (left && *left == decisive) return decisive;
    const Value right = eval(*n.kids[1]);
    if (right && *right == decisive) return decisive;
    if (!left) return left;
    if (!right) return right;
    return left->is_boolean() && right->is_boolean() ? Value(!decisive) : Value(kError);
  }

  Value binary(const CelNode& n) {
    if (n.text == "&&") return logic(n, false);
    if (n.text == "||") return logic(n, true);
    const Value a = eval(*n.kids[0]);
    if (!a) return a;
    const Value b = eval(*n.kids[1]);
    if (!b) return b;
    if (n.text == "==") return *a == *b;
    if (n.text == "!=") return *a != *b;
    if (n.text == "in") {
      if (b->is_array()) return std::find(b->begin(), b->end(), *a) != b->end();
      return b->is_object() && a->is_string() ? Value(b->contains(a->get<std::string>())) : Value(kError);
    }
    const bool comparable = (a->is_number() && b->is_number()) || (a->is_string() && b->is_string());
    if (n.text == "<" || n.text == "<=" || n.text == ">" || n.text == ">=") {
      if (!comparable) return kError;
      if (n.text == "<") return *a < *b;
      if (n.text == "<=") return *a <= *b;
      return n.text == ">" ? *a > *b : *a >= *b;
    }
    return arithmetic(n.text, *a, *b);
  }

  static Value arithmetic(const std::string& op, const json& a, const json& b) {
    if (op == "+" && a.is_string() && b.is_string()) return a.get<std::string>() + b.get<std::string>();
    if (op == "+" && a.is_array() && b.is_array()) {
      json joined = a;
      joined.insert(joined.end(), b.begin(), b.end());
      return joined;
    }
    if (!a.is_number() || !b.is_number()) return kError;
    if (a.is_number_integer() && b.is_number_integer()) {
      const auto x = a.get<std::int64_t>();
      const auto y = b.get<std::int64_t>();
      std::int64_t result = 0;
      if (op == "+") return __builtin_add_overflow(x, y, &result) ? Value(kError) : Value(result);
      if (op == "-") return __builtin_sub_overflow(x, y, &result) ? Value(kError) : Value(result);
      if (op == "*") return __builtin_mul_overflow(x, y, &result) ? Value(kError) : Value(result);
      if (y == 0 || y == -1) return y == 0 ? Value(kError) : Value(op == "%" ? 0 : -x);
      return op == "/" ? x / y : x % y;
    }
    const auto x = a.get<double>();
    const auto y = b.get<double>();
    if (op == "+") return x + y;
    if (op == "-") return x - y;
    if (op == "*") return x * y;
    return op == "/" ? Value(x / y) : Value(kError);
  }

  Value call(const CelNode& n) {
    if (n.text == "has" && n.kids.size() == 1 && n.kids[0]->kind == Kind::member) {
      const Value target = eval(*n.kids[0]->kids[0]);
      if (!target) return target;
      return target->is_object() && target->contains(unescaped(n.kids[0]->text));
    }
    if (n.kids.size() != 1) return kUnknown;
    const Value argument = eval(*n.kids[0]);
    if (!argument) return argument;
    if (n.text == "size") return size_of(*argument);
    if (n.text == "dyn") return argument;
    if (n.text == "type") return "type " + std::string(type_of(*argument));
    if (n.text == "string") return argument->is_string() ? *argument : json(argument->dump());
    if (n.text == "int" && argument->is_number()) return argument->get<std::int64_t>();
    if (n.text == "double" && argument->is_number()) return argument->get<double>();
    if (n.text == "int" && argument->is_string()) {
      const json number = json::parse(argument->get<std::string>(), nullptr, false);
      return number.is_number_integer() ? Value(number) : Value(kError);
    }
    if (n.text == "duration" && argument->is_string()) {
      const auto duration = k8s::parse_go_duration(argument->get<std::string>());
      return duration ? Value(duration->count()) : Value(kError);
    }
    if (n.text == "duration" && argument->is_number()) return argument;
    if (n.text == "timestamp" && argument->is_string()) {
      const auto time = k8s::parse_rfc3339(argument->get<std::string>());
      return time ? Value(time->time_since_epoch().count()) : Value(kError);
    }
    return kUnknown;
  }

  static std::string_view type_of(const json& value) {
    if (value.is_object()) return "map";
    if (value.is_array()) return "list";
    if (value.is_string()) return "string";
    if (value.is_boolean()) return "bool";
    if (value.is_null()) return "null_type";
    return value.is_number_integer() ? "int" : "double";
  }

  static Value size_of(const json& value) {
    if (value.is_structured()) return value.size();
    if (!value.is_string()) return kError;
    const auto& text = value.get_ref<const std::string&>();
    const auto first_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
    return std::count_if(text.begin(), text.end(), first_byte);
  }

  Value method(const CelNode& n) {
    const Value target = eval(*n.kids[0]);
    if (!target) return target;
    const bool macro =
        n.text == "all" || n.text == "exists" || n.text == "exists_one" || n.text == "filter" || n.text == "map";
    if (macro) return comprehension(n, *target);
    if (n.text == "size" && n.kids.size() == 1) return size_of(*target);
    if (!target->is_string()) return kUnknown;
    const std::string text = target->get<std::string>();
    if (n.kids.size() == 1) {
      std::string changed = text;
      for (char& c : changed) {
        if (n.text == "lowerAscii" && c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
        if (n.text == "upperAscii" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
      }
      return n.text == "lowerAscii" || n.text == "upperAscii" ? Value(changed) : Value(kUnknown);
    }
    const Value argument = eval(*n.kids[1]);
    if (!argument) return argument;
    if (!argument->is_string()) return kError;
    const std::string other = argument->get<std::string>();
    if (n.text == "startsWith") return text.starts_with(other);
    if (n.text == "endsWith") return text.ends_with(other);
    if (n.text == "contains") return text.find(other) != std::string::npos;
    if (n.text == "matches") return std::regex_search(text, std::regex(other, std::regex::ECMAScript));
    if (n.text == "split" && !other.empty()) return split(text, other);
    return kUnknown;
  }

  static json split(const std::string& text, const std::string& separator) {
    json parts = json::array();
    std::size_t at = 0;
    for (auto found = text.find(separator); found != std::string::npos; found = text.find(separator, at)) {
      parts.push_back(text.substr(at, found - at));
      at = found + separator.size();
    }
    parts.push_back(text.substr(at));
    return parts;
  }

  // range.all(x, condition) and its relatives; a map's range is its keys.
  Value comprehension(const CelNode& n, const json& range) {
    if (n.kids.size() != 3 || n.kids[1]->kind != Kind::name) return kUnknown;
    if (!range.is_structured()) return kError;
    json found = json::array();
    std::size_t holding = 0;
    Value trouble = true;
    const auto visit = [&](const json& item) {
      names_.emplace_back(n.kids[1]->text, &item);
      Value result = eval(*n.kids[2]);
      names_.pop_back();
      if (n.text == "map" && result) {
        found.push_back(std::move(*result));
        return;
      }
      if (!result || !result->is_boolean()) {
        trouble = result ? Value(kError) : result;
      } else if (result->get<bool>()) {
        ++holding;
        if (n.text == "filter") found.push_back(item);
      } else if (n.text == "all") {
        found.push_back(item);  // A counterexample.
      }
    };
    if (range.is_object())
      for (const auto& [key, value] : range.items()) visit(json(key));
    else
      for (const auto& item : range) visit(item);
    if (n.text == "all" && !found.empty()) return false;
    if (n.text == "exists" && holding > 0) return true;
    if (!trouble) return trouble;
    if (n.text == "all") return true;
    if (n.text == "exists") return false;
    if (n.text == "exists_one") return holding == 1;
    return found;
  }

  std::vector<std::pair<std::string, const json*>> names_;
};

// Parsed rules are kept: the same few are evaluated at every write.
const CelTree& parsed(std::string_view rule) {
  static std::map<std::string, CelTree, std::less<>> trees;
  auto it = trees.find(rule);
  if (it == trees.end()) it = trees.emplace(rule, parse_cel(rule)).first;
  return it->second;
}

}  // namespace

CelResult evaluate_cel(std::string_view rule, const json& self, const json* old) {
  if (old == nullptr && rule.find("oldSelf") != std::string_view::npos) return CelResult::not_evaluated;
  const CelTree& tree = parsed(rule);
  if (tree == nullptr) return CelResult::not_evaluated;
  const Value result = Evaluator(self, old).eval(*tree);
  if (!result) return result.error() == Trouble::unknown ? CelResult::not_evaluated : CelResult::violated;
  return *result == true ? CelResult::holds : CelResult::violated;
}

}  // namespace gso::sim
