// URLs of the Kubernetes API.
#include "tests/sim/apiserver/request.h"

#include <algorithm>

namespace gso::sim {
namespace {

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(separator));
    parts.push_back(part);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return parts;
}

std::string verb_of(k8s::Method method, bool named, bool watch) {
  switch (method) {
    case k8s::Method::get:
      return named && !watch ? "get" : watch ? "watch" : "list";
    case k8s::Method::post:
      return "create";
    case k8s::Method::put:
      return "update";
    case k8s::Method::patch:
      return "patch";
    case k8s::Method::del:
      return named ? "delete" : "deletecollection";
  }
  return "";
}

// The segments after /api/v1 or /apis/GROUP/VERSION.
void parse_resource(RequestInfo& info, std::size_t first) {
  std::vector<std::string> rest(info.segments.begin() + static_cast<std::ptrdiff_t>(first), info.segments.end());
  const bool in_namespace = rest.size() >= 3 && rest[0] == "namespaces" && rest[2] != "status" && rest[2] != "finalize";
  if (in_namespace) {
    info.key.ns = rest[1];
    rest.erase(rest.begin(), rest.begin() + 2);
  }
  info.plural = rest[0];
  if (rest.size() > 1) info.key.name = rest[1];
  if (rest.size() > 2) info.subresource = rest[2];
  for (std::size_t i = 3; i < rest.size(); ++i) info.subresource += "/" + rest[i];
}

}  // namespace

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string RequestInfo::option(const std::string& name) const {
  auto it = query.find(name);
  return it == query.end() ? "" : it->second;
}

bool RequestInfo::flag(const std::string& name) const {
  const std::string value = option(name);
  return value == "true" || value == "1";
}

RequestInfo parse_request(const k8s::HttpRequest& request) {
  RequestInfo info;
  const std::string_view target = request.path;
  const auto mark = target.find('?');
  info.path = target.substr(0, mark);
  for (const auto segment : split(info.path, '/'))
    if (!segment.empty()) info.segments.push_back(percent_decode(segment));
  if (mark != std::string_view::npos) {
    for (const auto pair : split(target.substr(mark + 1), '&')) {
      const auto equals = pair.find('=');
      const std::string name = percent_decode(pair.substr(0, equals));
      info.query.try_emplace(name, equals == std::string_view::npos ? "" : percent_decode(pair.substr(equals + 1)));
    }
  }
  const auto& s = info.segments;
  const bool core = s.size() >= 3 && s[0] == "api";
  const bool grouped = s.size() >= 4 && s[0] == "apis";
  if (!core && !grouped) return info;
  info.kind = RequestInfo::Path::resource;
  info.group = core ? "" : s[1];
  info.version = core ? s[1] : s[2];
  parse_resource(info, core ? 2 : 3);
  const bool watch = request.method == k8s::Method::get && info.flag("watch");
  info.verb = verb_of(request.method, !info.key.name.empty(), watch);
  return info;
}

}  // namespace gso::sim
