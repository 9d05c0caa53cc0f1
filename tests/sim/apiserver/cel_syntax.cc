// A recursive-descent parser, one function for each level of precedence.
#include "tests/sim/apiserver/cel_syntax.h"

#include <array>
#include <charconv>
#include <optional>

namespace gso::sim {
namespace {

using Kind = CelNode::Kind;
using nlohmann::json;

constexpr int kDeepest = 200;  // Of nesting; real rules have single digits.

struct Token {
  enum class Type { end, name, number, text, symbol, bad } type = Type::end;
  std::string text;
};

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}

class CelParser {
 public:
  explicit CelParser(std::string_view text) : rest_(text) { next(); }

  CelTree parse() {
    CelTree tree = ternary();
    return tree != nullptr && token_.type == Token::Type::end ? tree : nullptr;
  }

 private:
  void next() {
    while (!rest_.empty() &&
           (rest_.front() == ' ' || rest_.front() == '\n' || rest_.front() == '\t' || rest_.front() == '\r')) {
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) {
      token_ = {};
    } else if (rest_.front() == '"' || rest_.front() == '\'') {
      take_text(false);
    } else if (rest_.size() > 1 && rest_[0] == 'r' && (rest_[1] == '"' || rest_[1] == '\'')) {
      rest_.remove_prefix(1);
      take_text(true);
    } else if (digit(rest_.front())) {
      take_while(Token::Type::number, [](char c) { return digit(c) || c == '.' || c == 'e' || c == 'u'; });
    } else if (name_char(rest_.front())) {
      take_while(Token::Type::name, name_char);
    } else {
      take_symbol();
    }
  }

  template <class Predicate>
  void take_while(Token::Type type, Predicate belongs) {
    std::size_t size = 0;
    while (size < rest_.size() && belongs(rest_[size])) ++size;
    token_ = {type, std::string(rest_.substr(0, size))};
    rest_.remove_prefix(size);
  }

  void take_symbol() {
    constexpr std::array<std::string_view, 6> kDouble{"==", "!=", "<=", ">=", "&&", "||"};
    std::size_t size = 1;
    for (const auto symbol : kDouble)
      if (rest_.starts_with(symbol)) size = 2;
    token_ = {Token::Type::symbol, std::string(rest_.substr(0, size))};
    rest_.remove_prefix(size);
  }

  void take_text(bool raw) {
    const char quote = rest_.front();
    std::string text;
    std::size_t i = 1;
    for (; i < rest_.size() && rest_[i] != quote; ++i) {
      if (rest_[i] != '\\' || raw || i + 1 >= rest_.size()) {
        text += rest_[i];
        continue;
      }
      const char escaped = rest_[++i];
      text += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
    }
    const bool closed = i < rest_.size();
    rest_.remove_prefix(closed ? i + 1 : rest_.size());
    token_ = {closed ? Token::Type::text : Token::Type::bad, std::move(text)};
  }

  [[nodiscard]] bool at(std::string_view symbol) const {
    return token_.type == Token::Type::symbol && token_.text == symbol;
  }
  bool accept(std::string_view symbol) {
    if (!at(symbol)) return false;
    next();
    return true;
  }

  static CelTree make(Kind kind, std::string text, std::vector<CelTree> kids, json value = nullptr) {
    for (const auto& kid : kids)
      if (kid == nullptr) return nullptr;
    return std::make_shared<CelNode>(CelNode{kind, std::move(text), std::move(value), std::move(kids)});
  }

  CelTree ternary() {
    if (++depth_ > kDeepest) return nullptr;
    CelTree condition = binary(0);
    if (condition != nullptr && accept("?")) {
      CelTree yes = ternary();
      if (!accept(":")) return nullptr;
      CelTree no = ternary();
      condition = make(Kind::ternary, "?", {condition, yes, no});
    }
    --depth_;
    return condition;
  }

  // The operators of each level, weakest first.
  CelTree binary(std::size_t level) {
    static const std::array<std::vector<std::string_view>, 5> kLevels{
        {{"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">=", "in"}, {"+", "-"}, {"*", "/", "%"}}};
    if (level == kLevels.size()) return unary();
    CelTree left = binary(level + 1);
    while (left != nullptr) {
      std::optional<std::string> found;
      for (const auto op : kLevels[level]) {
        const bool word = op == "in" && token_.type == Token::Type::name && token_.text == "in";
        if (word || at(op)) found = op;
      }
      if (!found) break;
      next();
      left = make(Kind::binary, *found, {left, binary(level + 1)});
    }
    return left;
  }

  CelTree unary() {
    for (const char* op : {"!", "-"}) {
      if (at(op)) {
        if (++depth_ > kDeepest) return nullptr;
        next();
        CelTree tree = make(Kind::unary, op, {unary()});
        --depth_;
        return tree;
      }
    }
    return postfix();
  }

  CelTree postfix() {
    CelTree tree = primary();
    while (tree != nullptr) {
      if (accept(".")) {
        if (token_.type != Token::Type::name) return nullptr;
        std::string name = token_.text;
        next();
        if (accept("(")) {
          std::vector<CelTree> kids{tree};
          if (!arguments(kids, ")")) return nullptr;
          tree = make(Kind::method, std::move(name), std::move(kids));
        } else {
          tree = make(Kind::member, std::move(name), {tree});
        }
      } else if (accept("[")) {
        CelTree index = ternary();
        if (!accept("]")) return nullptr;
        tree = make(Kind::index, "", {tree, index});
      } else {
        break;
      }
    }
    return tree;
  }

  bool arguments(std::vector<CelTree>& kids, std::string_view close) {
    while (!accept(close)) {
      CelTree argument = ternary();
      if (argument == nullptr) return false;
      kids.push_back(std::move(argument));
      if (!at(close) && !accept(",")) return false;
    }
    return true;
  }

  CelTree primary() {
    const Token token = token_;
    next();
    switch (token.type) {
      case Token::Type::text:
        return make(Kind::literal, "", {}, token.text);
      case Token::Type::number:
        return number(token.text);
      case Token::Type::name:
        return named(token.text);
      case Token::Type::symbol:
        break;
      default:
        return nullptr;
    }
    if (token.text == "(") {
      CelTree inner = ternary();
      return accept(")") ? inner : nullptr;
    }
    if (token.text == "[") {
      std::vector<CelTree> kids;
      if (!arguments(kids, "]")) return nullptr;
      return make(Kind::list, "", std::move(kids));
    }
    return nullptr;
  }

  static CelTree number(std::string text) {
    if (text.ends_with('u')) text.pop_back();
    const json value = json::parse(text, nullptr, false);
    return value.is_number() ? make(Kind::literal, "", {}, value) : nullptr;
  }

  CelTree named(const std::string& name) {
    if (name == "true" || name == "false") return make(Kind::literal, "", {}, name == "true");
    if (name == "null") return make(Kind::literal, "", {}, nullptr);
    if (!accept("(")) return make(Kind::name, name, {});
    std::vector<CelTree> kids;
    if (!arguments(kids, ")")) return nullptr;
    return make(Kind::call, name, std::move(kids));
  }

  std::string_view rest_;
  Token token_;
  int depth_ = 0;
};

}  // namespace

CelTree parse_cel(std::string_view expression) {
  return CelParser(expression).parse();
}

}  // namespace gso::sim
