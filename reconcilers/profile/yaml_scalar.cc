// The YAML 1.1 resolution table of the plugin's YAML library.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

using k8s::is_digit;

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

enum class Type { null, boolean, integer, floating, string, timestamp };

struct Resolved {
  Type type = Type::string;
  YamlScalar value;
};

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Words with a meaning of their own.
std::optional<Resolved> resolve_word(std::string_view text) {
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) {
    return Resolved{Type::null, {}};
  }
  if (one_of(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) {
    return Resolved{Type::boolean, true};
  }
  if (one_of(text, {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) {
    return Resolved{Type::boolean, false};
  }
  if (one_of(text, {".nan", ".NaN", ".NAN"})) {
    return Resolved{Type::floating, std::numeric_limits<double>::quiet_NaN()};
  }
  if (one_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) {
    return Resolved{Type::floating, std::numeric_limits<double>::infinity()};
  }
  if (one_of(text, {"-.inf", "-.Inf", "-.INF"})) {
    return Resolved{Type::floating, -std::numeric_limits<double>::infinity()};
  }
  return std::nullopt;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool looks_like_yaml_float(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const auto from = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i - from;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  } else {
    if (digits() == 0) return false;
    if (i < text.size() && text[i] == '.') {
      ++i;
      digits();
    }
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

// The four date forms of the library: 2001-2-3, with T, t or a blank before the time of day; a zone after T and t.
class TimestampReader {
 public:
  explicit TimestampReader(std::string_view text) : text_(text) {}

  bool matches() {
    int year = 0;
    int month = 0;
    int day = 0;
    if (!number(4, 4, 0, 9999, year) || !skip('-') || !number(1, 2, 1, 12, month) || !skip('-') ||
        !number(1, 2, 1, 31, day)) {
      return false;
    }
    using namespace std::chrono;
    if (!year_month_day(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                        std::chrono::day(static_cast<unsigned>(day)))
             .ok()) {
      return false;
    }
    if (at_ == text_.size()) return true;
    const bool zone = skip('T') || skip('t');
    if (!zone && !skip(' ')) return false;
    return time_of_day() && (!zone || time_zone()) && at_ == text_.size();
  }

 private:
  bool skip(char c) {
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }

  bool number(std::size_t least_digits, std::size_t most_digits, int least, int most, int& value) {
    std::size_t count = 0;
    value = 0;
    while (count < most_digits && at_ < text_.size() && is_digit(text_[at_])) {
      value = value * 10 + (text_[at_] - '0');
      ++at_;
      ++count;
    }
    return count >= least_digits && value >= least && value <= most;
  }

  bool time_of_day() {
    int part = 0;
    if (!number(1, 2, 0, 23, part) || !skip(':') || !number(1, 2, 0, 59, part) || !skip(':') ||
        !number(1, 2, 0, 59, part)) {
      return false;
    }
    if (at_ + 1 < text_.size() && (text_[at_] == '.' || text_[at_] == ',') && is_digit(text_[at_ + 1])) {
      ++at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    }
    return true;
  }

  bool time_zone() {
    int part = 0;
    return skip('Z') ||
           ((skip('+') || skip('-')) && number(2, 2, 0, 24, part) && skip(':') && number(2, 2, 0, 60, part));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<Resolved> integer(std::optional<std::int64_t> value) {
  return value ? std::optional(Resolved{Type::integer, *value}) : std::nullopt;
}

std::optional<Resolved> integer(std::optional<std::uint64_t> value) {
  return value ? std::optional(Resolved{Type::integer, *value}) : std::nullopt;
}

// Texts that begin with a digit or a sign.
std::optional<Resolved> resolve_number(const std::string& text) {
  std::string plain = text;
  std::erase(plain, '_');
  if (auto found = integer(parse_go_int(plain, 0))) return found;
  if (auto found = integer(parse_go_uint(plain, 0))) return found;
  if (looks_like_yaml_float(plain)) {
    if (const auto value = parse_go_float(plain)) {
      return Resolved{Type::floating, *value};
    }
  }
  if (plain.starts_with("0b")) {
    if (auto found = integer(parse_go_int(plain.substr(2), 2))) return found;
    return integer(parse_go_uint(plain.substr(2), 2));
  }
  if (plain.starts_with("-0b")) return integer(parse_go_int("-" + plain.substr(3), 2));
  return std::nullopt;
}

Resolved resolve_plain(const std::string& text, std::string_view tag) {
  Resolved as_string{Type::string, text};
  const char first = text.empty() ? 'N' : text[0];
  const bool numeric = is_digit(first) || first == '+' || first == '-';
  if (!numeric && first != '.' && std::string_view("yYnNtTfFoO~").find(first) == std::string_view::npos) {
    return as_string;
  }
  if (auto word = resolve_word(text)) return *std::move(word);
  if (first == '.') {
    const auto value = parse_go_float(text);
    return value ? Resolved{Type::floating, *value} : as_string;
  }
  if (!numeric) return as_string;
  if ((tag.empty() || tag == "timestamp") && TimestampReader(text).matches()) {
    return {Type::timestamp, text};
  }
  return resolve_number(text).value_or(as_string);
}

std::string_view tag_of(Type type) {
  switch (type) {
    case Type::null:
      return "null";
    case Type::boolean:
      return "bool";
    case Type::integer:
      return "int";
    case Type::floating:
      return "float";
    case Type::timestamp:
      return "timestamp";
    case Type::string:
      break;
  }
  return "str";
}

}  // namespace

std::optional<YamlScalar> resolve_scalar(const YamlNode& node) {
  if (node.tag.empty() && !node.implicit) return node.value;
  const std::string_view tag =
      node.tag.starts_with(kTagPrefix) ? std::string_view(node.tag).substr(kTagPrefix.size()) : std::string_view();
  if (tag == "binary") {
    auto decoded = k8s::base64_decode(node.value);
    return decoded ? std::optional<YamlScalar>(*std::move(decoded)) : std::nullopt;
  }
  if (!node.tag.empty() && !one_of(tag, {"str", "bool", "int", "float", "null", "timestamp"})) {
    return node.value;  // An unknown tag: keep the text.
  }
  if (tag == "str") return node.value;
  Resolved resolved = resolve_plain(node.value, tag);
  if (tag.empty() || tag == tag_of(resolved.type)) return std::move(resolved.value);
  if (tag == "float" && std::holds_alternative<std::int64_t>(resolved.value)) {
    return static_cast<double>(std::get<std::int64_t>(resolved.value));
  }
  return std::nullopt;
}

}  // namespace gso
