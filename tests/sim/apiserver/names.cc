// Hand-written matchers: std::regex would recurse on long input and is slow.
#include "tests/sim/apiserver/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace gso::sim {
namespace {

bool lower_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool alnum(char c) {
  return lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

bool is_dns_label(std::string_view text) {
  return !text.empty() && lower_alnum(text.front()) && lower_alnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return lower_alnum(c) || c == '-'; });
}

bool is_dns_subdomain(std::string_view text) {
  for (;;) {
    const auto dot = text.find('.');
    if (!is_dns_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_qualified_part(std::string_view text) {
  return !text.empty() && alnum(text.front()) && alnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

std::string at_most(std::size_t limit) {
  return fmt::format("must be no more than {} bytes", limit);
}

constexpr std::string_view kSubdomain =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kLabel =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kQualifiedName =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kLabelValue =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

}  // namespace

std::optional<std::string> dns_subdomain_problem(std::string_view name) {
  if (name.size() > 253) return "must be no more than 253 characters";
  if (!is_dns_subdomain(name)) return std::string(kSubdomain);
  return std::nullopt;
}

std::optional<std::string> dns_label_problem(std::string_view name) {
  if (name.size() > 63) return at_most(63);
  if (!is_dns_label(name)) return std::string(kLabel);
  return std::nullopt;
}

std::optional<std::string> path_segment_problem(std::string_view name) {
  if (name == ".") return "may not be '.'";
  if (name == "..") return "may not be '..'";
  if (name.find('/') != std::string_view::npos) return "may not contain '/'";
  if (name.find('%') != std::string_view::npos) return "may not contain '%'";
  return std::nullopt;
}

std::optional<std::string> label_key_problem(std::string_view key) {
  std::string_view name = key;
  if (const auto slash = key.find('/'); slash != std::string_view::npos) {
    const std::string_view prefix = key.substr(0, slash);
    name = key.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      return fmt::format(
          "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and "
          "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
          "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain "
          "prefix and '/' (e.g. 'example.com/MyName')");
    }
    if (prefix.empty()) return "prefix part must be non-empty";
    if (auto problem = dns_subdomain_problem(prefix)) return "prefix part " + *problem;
  }
  if (name.empty()) return "name part must be non-empty";
  if (name.size() > 63) return "name part " + at_most(63);
  if (!is_qualified_part(name)) return std::string(kQualifiedName);
  return std::nullopt;
}

std::optional<std::string> label_value_problem(std::string_view value) {
  if (value.size() > 63) return at_most(63);
  if (!value.empty() && !is_qualified_part(value)) return std::string(kLabelValue);
  return std::nullopt;
}

std::optional<std::string> config_map_key_problem(std::string_view key) {
  if (key.size() > 253) return at_most(253);
  const bool allowed = !key.empty() && std::all_of(key.begin(), key.end(),
                                                   [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
  if (!allowed) {
    return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
           "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
  }
  if (key == "." || key == "..") return fmt::format("must not be '{}'", key);
  if (key.starts_with("..")) return "must not start with '..'";
  return std::nullopt;
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

}  // namespace gso::sim
