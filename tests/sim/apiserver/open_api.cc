// OpenAPI v3, one document for each group and version: what kubectl needs to validate, explain and merge. Descriptions
// are only those of CRDs. /openapi/v2 is an empty document, which makes kubectl fall back to v3 or to its own types.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/sim/apiserver/discovery.h"
#include "tests/sim/apiserver/structural.h"

namespace gso::sim {
namespace {

using nlohmann::json;
using Type = Schema::Type;

// "core.Pod" -> "io.k8s.api.core.v1.Pod"
std::string component_name(const std::string& type) {
  const auto dot = type.find('.');
  const std::string package = type.substr(0, dot);
  const std::string prefix = package == "meta"            ? "io.k8s.apimachinery.pkg.apis.meta.v1"
                             : package == "apiextensions" ? "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
                                                          : "io.k8s.api." + package + ".v1";
  return prefix + type.substr(dot);
}

// Writes Schema nodes as OpenAPI; named types become components.
class Writer3 {
 public:
  json use(const Schema& schema) {
    if (schema.name.empty()) return inline_schema(schema);
    const std::string name = component_name(schema.name);
    if (!components_.contains(name)) {
      components_[name] = json::object();  // Breaks recursion.
      components_[name] = inline_schema(schema);
    }
    json use = {{"allOf", {{{"$ref", "#/components/schemas/" + name}}}}};
    if (schema.atomic) use["x-kubernetes-map-type"] = "atomic";
    return use;
  }

  json& components() { return components_; }

 private:
  json inline_schema(const Schema& s) {
    json out = json::object();
    if (!s.description.empty()) out["description"] = s.description;
    switch (s.type) {
      case Type::any:
        out["x-kubernetes-preserve-unknown-fields"] = true;
        break;
      case Type::object:
        write_object(s, out);
        break;
      case Type::map:
        out["type"] = "object";
        if (s.element != nullptr) out["additionalProperties"] = use(*s.element);
        if (s.preserve_unknown) out["x-kubernetes-preserve-unknown-fields"] = true;
        break;
      case Type::list:
        write_list(s, out);
        break;
      case Type::int32:
      case Type::int64:
        out["type"] = "integer";
        out["format"] = s.type == Type::int32 ? "int32" : "int64";
        break;
      case Type::number:
        out["type"] = "number";
        break;
      case Type::boolean:
        out["type"] = "boolean";
        break;
      case Type::int_or_string:
        out["x-kubernetes-int-or-string"] = true;
        break;
      case Type::quantity:
        out["oneOf"] = {{{"type", "string"}}, {{"type", "number"}}};
        break;
      case Type::time:
      case Type::micro_time:
        out["type"] = "string";
        out["format"] = "date-time";
        break;
      case Type::bytes:
        out["type"] = "string";
        out["format"] = "byte";
        break;
      case Type::string:
        out["type"] = "string";
        break;
    }
    if (s.constraints != nullptr && s.constraints->enumeration.is_array()) out["enum"] = s.constraints->enumeration;
    if (s.atomic && s.name.empty()) out["x-kubernetes-map-type"] = "atomic";
    return out;
  }

  void write_object(const Schema& s, json& out) {
    out["type"] = "object";
    for (const Schema::Field& f : s.fields) {
      out["properties"][f.name] = use(*f.schema);
      if (f.required) out["required"].push_back(f.name);
    }
    if (s.preserve_unknown) out["x-kubernetes-preserve-unknown-fields"] = true;
  }

  void write_list(const Schema& s, json& out) {
    out["type"] = "array";
    if (s.element != nullptr) out["items"] = use(*s.element);
    if (s.list_type == Schema::ListType::map) {
      out["x-kubernetes-list-type"] = "map";
      out["x-kubernetes-list-map-keys"] = s.list_keys;
    } else {
      out["x-kubernetes-list-type"] = s.list_type == Schema::ListType::set ? "set" : "atomic";
    }
    if (s.merge) {
      out["x-kubernetes-patch-strategy"] = s.retain_keys ? "merge,retainKeys" : "merge";
      if (!s.merge_key.empty()) out["x-kubernetes-patch-merge-key"] = s.merge_key;
    }
  }

  json components_ = json::object();
};

std::string resource_component(const Resource& r) {
  if (!r.custom && r.schema != nullptr) return component_name(r.schema->name);
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= r.group.size();) {
    const auto dot = std::min(r.group.find('.', at), r.group.size());
    parts.insert(parts.begin(), r.group.substr(at, dot - at));
    at = dot + 1;
  }
  std::string name;
  for (const auto& part : parts) name += part + ".";
  return name + r.version + "." + r.kind;
}

json parameters() {
  json list = json::array();
  for (const char* name : {"dryRun", "fieldManager", "fieldValidation"})
    list.push_back({{"name", name}, {"in", "query"}, {"schema", {{"type", "string"}, {"uniqueItems", true}}}});
  return list;
}

json operation(const Resource& r, const char* action, const std::string& component) {
  json op = {
      {"tags", {r.group}},
      {"operationId", fmt::format("{}{}{}", action, r.version, r.kind)},
      {"x-kubernetes-action", action},
      {"x-kubernetes-group-version-kind", {{"group", r.group}, {"version", r.version}, {"kind", r.kind}}},
      {"responses",
       {{"200",
         {{"description", "OK"},
          {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/" + component}}}}}}}}}}}};
  if (std::string_view(action) != "get" && std::string_view(action) != "list") op["parameters"] = parameters();
  return op;
}

json document_of(const Registry& registry, const std::string& group, const std::string& version) {
  Writer3 writer;
  json paths = json::object();
  const std::string root = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  for (const auto& r : registry.all()) {
    if (r->group != group || r->version != version || r->schema == nullptr) continue;
    const std::string component = resource_component(*r);
    json definition = writer.use(*r->schema);
    if (r->schema->name.empty()) writer.components()[component] = std::move(definition);
    writer.components()[component]["x-kubernetes-group-version-kind"] = {
        {{"group", group}, {"kind", r->kind}, {"version", version}}};
    const std::string collection = root + (r->namespaced ? "/namespaces/{namespace}/" : "/") + r->plural;
    paths[collection] = {{"get", operation(*r, "list", component)}, {"post", operation(*r, "post", component)}};
    paths[collection + "/{name}"] = {{"get", operation(*r, "get", component)},
                                     {"put", operation(*r, "put", component)},
                                     {"patch", operation(*r, "patch", component)},
                                     {"delete", operation(*r, "delete", component)}};
  }
  return {{"openapi", "3.0.0"},
          {"info", {{"title", "Kubernetes"}, {"version", "1.36"}}},
          {"paths", std::move(paths)},
          {"components", {{"schemas", std::move(writer.components())}}}};
}

json index_of(const Registry& registry) {
  json paths = json::object();
  for (const auto& r : registry.all()) {
    const std::string path = r->group.empty() ? "api/" + r->version : "apis/" + r->group + "/" + r->version;
    paths[path] = {{"serverRelativeURL", "/openapi/v3/" + path}};
  }
  return {{"paths", std::move(paths)}};
}

}  // namespace

std::optional<k8s::HttpResponse> open_api(const Registry& registry, const RequestInfo& info, std::string_view accept) {
  const auto& s = info.segments;
  if (s.size() < 2 || s[0] != "openapi") return std::nullopt;
  if (s[1] == "v2") {
    if (accept.find("protobuf") == std::string_view::npos)
      return json_response(200, R"({"swagger":"2.0","info":{"title":"Kubernetes","version":"v1.36.3"},"paths":{}})");
    k8s::HttpResponse response = json_response(200,
                                               "\x0a\x03"
                                               "2.0");  // gnostic's Document{swagger: "2.0"}
    response.headers[0].second = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    return response;
  }
  if (s[1] != "v3") return std::nullopt;
  if (s.size() == 2) {
    k8s::HttpResponse response = json_response(200, index_of(registry).dump());
    response.headers[0].second = "text/plain; charset=utf-8";
    return response;
  }
  if (s[2] == "api" && s.size() == 4 && registry.has_group_version("", s[3]))
    return json_response(200, document_of(registry, "", s[3]).dump());
  if (s[2] == "apis" && s.size() == 5 && registry.has_group_version(s[3], s[4]))
    return json_response(200, document_of(registry, s[3], s[4]).dump());
  return std::nullopt;
}

}  // namespace gso::sim
