// The YAML 1.1 resolution table of the plugin's YAML library.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";
// Of the alternatives of YamlScalar, in their order.
constexpr std::array<std::string_view, std::variant_size_v<YamlScalar>> kTags{"null", "bool",  "int",
                                                                              "int",  "float", "str"};

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Words with a meaning of their own.
std::optional<YamlScalar> resolve_word(std::string_view text) {
  constexpr std::size_t kLongest = 5;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text.size() > kLongest) return std::nullopt;
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return YamlScalar();
  if (one_of(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (one_of(text, {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  if (one_of(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  if (one_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return kInfinity;
  if (one_of(text, {"-.inf", "-.Inf", "-.INF"})) return -kInfinity;
  return std::nullopt;
}

YamlScalar resolve_plain(const std::string& text) {
  if (const auto word = resolve_word(text)) return *word;
  if (!k8s::is_digit(text[0]) && !std::string_view("+-.").contains(text[0])) return text;
  std::string plain = text;
  std::erase(plain, '_');
  if (const auto number = parse_go_int(plain, 0)) return *number;
  if (const auto number = parse_go_uint(plain, 0)) return *number;
  // Not what Go reads besides: hexadecimal ones, inf and nan.
  const bool decimal = plain.find_first_not_of("0123456789+-.eE") == std::string::npos;
  const auto number = decimal ? parse_go_float(plain) : std::nullopt;
  return number ? YamlScalar(*number) : text;
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
  if (tag == "timestamp") return std::nullopt;  // No field is one.
  // Of an unknown tag the text is kept.
  if (!node.tag.empty() && !one_of(tag, {"bool", "int", "float", "null"})) return node.value;
  YamlScalar resolved = resolve_plain(node.value);
  if (tag.empty() || tag == kTags[resolved.index()]) return resolved;
  const auto* integer = std::get_if<std::int64_t>(&resolved);
  return tag == "float" && integer != nullptr ? std::optional<YamlScalar>(static_cast<double>(*integer)) : std::nullopt;
}

}  // namespace gso
