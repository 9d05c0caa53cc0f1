#include "k8sclient/value/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace k8s {
namespace {

bool unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string group_version_path(const Gvr& gvr) {
  return gvr.group.empty() ? "/api/" + gvr.version : fmt::format("/apis/{}/{}", gvr.group, gvr.version);
}

std::string collection_path(const Gvr& gvr, std::string_view ns) {
  std::string path = group_version_path(gvr);
  if (!ns.empty()) path += "/namespaces/" + percent_encode(ns);
  return path + "/" + gvr.resource;
}

std::string object_path(const Gvr& gvr, const ObjectKey& key, std::string_view subresource) {
  std::string path = collection_path(gvr, key.ns) + "/" + percent_encode(key.name);
  if (!subresource.empty()) path.append("/").append(subresource);
  return path;
}

Query& Query::add(std::string_view key, std::string_view value) {
  if (value.empty()) return *this;
  text_ += text_.empty() ? '?' : '&';
  text_ += percent_encode(key);
  text_ += '=';
  text_ += percent_encode(value);
  return *this;
}

Query& Query::add(std::string_view key, std::int64_t value) {
  return add(key, std::to_string(value));
}

Query& Query::add_flag(std::string_view key, bool value) {
  return add(key, value ? std::string_view("true") : std::string_view());
}

std::optional<std::map<std::string, std::string, std::less<>>> parse_query(std::string_view query) {
  std::map<std::string, std::string, std::less<>> out;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto key = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(equals == std::string_view::npos ? "" : pair.substr(equals + 1), true);
    if (!key || !value) return std::nullopt;
    out.emplace(*std::move(key), *std::move(value));
  }
  return out;
}

}  // namespace k8s
