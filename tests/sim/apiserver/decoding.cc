// Messages of decoding.
#include "tests/sim/apiserver/decoding.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace gso::sim {

using nlohmann::json;

std::string group_version_kind(const json& object) {
  const std::string api_version = object.value("apiVersion", "");
  const auto slash = api_version.find('/');
  const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  const std::string version = slash == std::string::npos ? api_version : api_version.substr(slash + 1);
  return fmt::format("{}/{}, Kind={}", group, version, object.value("kind", ""));
}

std::optional<std::string> type_problem(const Resource& resource, const json& object) {
  const std::string api_version = object.value("apiVersion", "");
  const std::string kind = object.value("kind", "");
  if (resource.custom) {
    if (kind.empty()) return "Object 'Kind' is missing in '" + object.dump() + "'";
    if (api_version.empty()) return "Object 'apiVersion' is missing in '" + object.dump() + "'";
    if (api_version != resource.api_version()) {
      return fmt::format("the API version in the data ({}) does not match the expected API version ({})", api_version,
                         resource.api_version());
    }
    return std::nullopt;  // Another kind is reported by validation.
  }
  const auto slash = api_version.find('/');
  const std::string version = slash == std::string::npos ? api_version : api_version.substr(slash + 1);
  if (!api_version.empty() && api_version != resource.api_version()) {
    return fmt::format(
        "{} in version \"{}\" cannot be handled as a {}: no kind \"{}\" is registered for version \"{}\" in "
        "scheme \"pkg/runtime/scheme.go:111\"",
        kind, version, resource.kind, kind, api_version);
  }
  if (!kind.empty() && kind != resource.kind) {
    return fmt::format(
        "{} in version \"{}\" cannot be handled as a {}: converting (v1.{}) to (core.{}): unknown conversion", kind,
        resource.version, resource.kind, kind, resource.kind);
  }
  return std::nullopt;
}

bool is_json_or_yaml(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  return content_type.empty() || content_type == "application/json" || content_type == "application/yaml";
}

std::string summary(std::string_view body) {
  constexpr std::size_t kMost = 30;
  if (body.empty()) return "<empty>";
  const std::string_view part = body.substr(0, kMost);
  std::string text;
  if (body.front() == '{')
    text = part;
  else
    for (const char c : part) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return body.size() > kMost ? text + " ..." : text;
}

std::string decoder_complaint(const json& parsed) {
  if (parsed.is_discarded()) return "unexpected end of JSON input";
  return fmt::format(
      "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string "
      "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
      parsed.type_name());
}

}  // namespace gso::sim
