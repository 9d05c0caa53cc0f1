// Discovery documents, made from the registry at each request.
#include "tests/sim/apiserver/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace gso::sim {
namespace {

using nlohmann::json;

json verbs_of(const Resource& r) {
  if (r.create_only) return {"create"};
  if (r.custom) return {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
  if (r.plural == "namespaces") return {"create", "delete", "get", "list", "patch", "update", "watch"};
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

// The group, version and kind that a pod's subresource takes.
struct SubresourceKind {
  const char* group;
  const char* version;
  const char* kind;
};
SubresourceKind kind_of(const Resource& r, const std::string& subresource) {
  if (subresource == "eviction") return {"policy", "v1", "Eviction"};
  if (subresource == "binding") return {"", "v1", "Binding"};
  return {"", "", r.kind.c_str()};
}

std::vector<std::string> subresources_of(const Resource& r) {
  std::vector<std::string> all = r.subresources;
  if (r.has_status) all.emplace_back("status");
  std::sort(all.begin(), all.end());
  return all;
}

json subresource_verbs(const std::string& subresource) {
  if (subresource == "status") return {"get", "patch", "update"};
  return subresource == "finalize" ? json{"update"} : json{"create"};
}

std::vector<ResourcePtr> of_version(const Registry& registry, const std::string& group, const std::string& version) {
  std::vector<ResourcePtr> found;
  for (const auto& r : registry.all())
    if (r->group == group && r->version == version) found.push_back(r);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a->plural < b->plural; });
  return found;
}

// Kubernetes' order of versions: v2, v1, v1beta2, v1beta1, v1alpha1.
bool preferred_before(const std::string& a, const std::string& b) {
  const auto rank = [](const std::string& v) {
    int major = 0;
    int minor = 0;
    char stage[8] = "";
    if (std::sscanf(v.c_str(), "v%d%7[a-z]%d", &major, stage, &minor) < 1) return std::tuple{0, 0, 0};
    const std::string_view name = stage;
    return std::tuple{name.empty() ? 3 : name == "beta" ? 2 : 1, major, minor};
  };
  return rank(a) > rank(b);
}

// Group to versions, in order of registration.
std::vector<std::pair<std::string, std::vector<std::string>>> groups_of(const Registry& registry) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const auto& r : registry.all()) {
    auto it = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == r->group; });
    if (it == groups.end()) it = groups.insert(groups.end(), {r->group, {}});
    if (std::find(it->second.begin(), it->second.end(), r->version) == it->second.end())
      it->second.push_back(r->version);
  }
  for (auto& [group, versions] : groups) std::stable_sort(versions.begin(), versions.end(), preferred_before);
  return groups;
}

json legacy_resources(const Registry& registry, const std::string& group, const std::string& version) {
  json list = json::array();
  for (const auto& r : of_version(registry, group, version)) {
    json entry = {{"name", r->plural},
                  {"singularName", r->singular},
                  {"namespaced", r->namespaced},
                  {"kind", r->kind},
                  {"verbs", verbs_of(*r)}};
    if (!r->short_names.empty()) entry["shortNames"] = r->short_names;
    if (!r->categories.empty()) entry["categories"] = r->categories;
    list.push_back(std::move(entry));
    for (const auto& s : subresources_of(*r)) {
      const SubresourceKind kind = kind_of(*r, s);
      json sub = {{"name", r->plural + "/" + s},
                  {"singularName", ""},
                  {"namespaced", r->namespaced},
                  {"kind", kind.kind},
                  {"verbs", subresource_verbs(s)}};
      if (kind.group[0] != '\0') {
        sub["group"] = kind.group;
        sub["version"] = kind.version;
      }
      list.push_back(std::move(sub));
    }
  }
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", group.empty() ? version : group + "/" + version},
          {"resources", std::move(list)}};
}

json legacy_group(const std::string& group, const std::vector<std::string>& versions) {
  json list = json::array();
  for (const auto& v : versions) list.push_back({{"groupVersion", group + "/" + v}, {"version", v}});
  return {{"name", group}, {"versions", list}, {"preferredVersion", list.front()}};
}

json aggregated_version(const Registry& registry, const std::string& group, const std::string& version) {
  json resources = json::array();
  for (const auto& r : of_version(registry, group, version)) {
    // Built-in kinds leave their group and version out here, as the real server does.
    const std::string own_group = r->custom ? group : "";
    const std::string own_version = r->custom ? version : "";
    json entry = {{"resource", r->plural},
                  {"responseKind", {{"group", own_group}, {"version", own_version}, {"kind", r->kind}}},
                  {"scope", r->namespaced ? "Namespaced" : "Cluster"},
                  {"singularResource", r->singular},
                  {"verbs", verbs_of(*r)}};
    if (!r->short_names.empty()) entry["shortNames"] = r->short_names;
    if (!r->categories.empty()) entry["categories"] = r->categories;
    for (const auto& s : subresources_of(*r)) {
      const SubresourceKind kind = kind_of(*r, s);
      const bool own = kind.version[0] == '\0';
      entry["subresources"].push_back({{"subresource", s},
                                       {"responseKind",
                                        {{"group", own ? own_group : kind.group},
                                         {"version", own ? own_version : kind.version},
                                         {"kind", kind.kind}}},
                                       {"verbs", subresource_verbs(s)}});
    }
    resources.push_back(std::move(entry));
  }
  return {{"version", version}, {"freshness", "Current"}, {"resources", std::move(resources)}};
}

k8s::HttpResponse aggregated(const Registry& registry, bool core, std::string_view version_name) {
  json items = json::array();
  for (const auto& [group, versions] : groups_of(registry)) {
    if (group.empty() != core) continue;
    json list = json::array();
    for (const auto& v : versions) list.push_back(aggregated_version(registry, group, v));
    items.push_back(
        {{"metadata", group.empty() ? json::object() : json{{"name", group}}}, {"versions", std::move(list)}});
  }
  const json document = {{"kind", "APIGroupDiscoveryList"},
                         {"apiVersion", fmt::format("apidiscovery.k8s.io/{}", version_name)},
                         {"metadata", json::object()},
                         {"items", std::move(items)}};
  k8s::HttpResponse response = json_response(200, document.dump() + "\n");
  response.headers[0].second =
      fmt::format("application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList", version_name);
  return response;
}

// "v2", "v2beta1", or empty when the client did not ask for the aggregated form.
std::string_view aggregated_version_wanted(std::string_view accept) {
  if (accept.find("as=APIGroupDiscoveryList") == std::string_view::npos) return "";
  return accept.find("v=v2beta1") != std::string_view::npos && accept.find("v=v2;") == std::string_view::npos
             ? "v2beta1"
             : "v2";
}

}  // namespace

std::optional<k8s::HttpResponse> discover(const Registry& registry, const RequestInfo& info, std::string_view accept) {
  const auto& s = info.segments;
  if (s.empty() || (s[0] != "api" && s[0] != "apis")) return std::nullopt;
  const auto wanted = aggregated_version_wanted(accept);
  if (s.size() == 1 && !wanted.empty()) return aggregated(registry, s[0] == "api", wanted);
  if (s[0] == "api" && s.size() == 1) {
    return json_response(
        200,
        json({{"kind", "APIVersions"}, {"versions", {"v1"}}, {"serverAddressByClientCIDRs", json::array()}}).dump() +
            "\n");
  }
  if (s[0] == "api" && s.size() == 2 && registry.has_group_version("", s[1]))
    return json_response(200, legacy_resources(registry, "", s[1]).dump() + "\n");
  if (s[0] == "apis" && s.size() == 1) {
    json groups = json::array();
    for (const auto& [group, versions] : groups_of(registry))
      if (!group.empty()) groups.push_back(legacy_group(group, versions));
    return json_response(
        200, json({{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}}).dump() + "\n");
  }
  if (s[0] == "apis" && s.size() == 2) {
    for (const auto& [group, versions] : groups_of(registry)) {
      if (group != s[1]) continue;
      json document = legacy_group(group, versions);
      document["kind"] = "APIGroup";
      document["apiVersion"] = "v1";
      return json_response(200, document.dump() + "\n");
    }
  }
  if (s[0] == "apis" && s.size() == 3 && registry.has_group_version(s[1], s[2]))
    return json_response(200, legacy_resources(registry, s[1], s[2]).dump() + "\n");
  return std::nullopt;
}

}  // namespace gso::sim
