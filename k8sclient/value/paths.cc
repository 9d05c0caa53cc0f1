#include "k8sclient/value/paths.h"

#include <fmt/format.h>

#include <utility>

namespace k8s {
namespace {

bool unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
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

}  // namespace k8s
