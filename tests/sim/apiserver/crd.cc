// From a CustomResourceDefinition to what it serves.
#include "tests/sim/apiserver/crd.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/builtin_kinds.h"
#include "tests/sim/apiserver/names.h"
#include "tests/sim/apiserver/structural.h"

namespace gso::sim {
namespace {

using nlohmann::json;

std::vector<Column> columns_of(const json& version) {
  std::vector<Column> columns{{"Name", "string", "", 0, ""}};
  const json list = version.value("additionalPrinterColumns", json::array());
  if (list.empty()) columns.push_back({"Age", "date", "", 0, ".metadata.creationTimestamp"});
  for (const auto& c : list) {
    columns.push_back({c.value("name", ""), c.value("type", "string"), c.value("description", ""),
                       c.value("priority", 0), c.value("jsonPath", "")});
    if (columns.back().description.empty()) {
      columns.back().description =
          "Custom resource definition column (in JSONPath format): " + columns.back().json_path;
    }
  }
  return columns;
}

std::string storage_version_of(const json& spec) {
  for (const auto& version : spec["versions"])
    if (version.value("storage", false)) return version.value("name", "");
  return "";
}

void validate_definition(const json& crd, FieldErrors& errors) {
  const json& spec = crd["spec"];
  const json names = spec.value("names", json::object());
  const std::string group = spec.value("group", "");
  const std::string expected = names.value("plural", "") + "." + group;
  const std::string name = crd["metadata"].value("name", "");
  if (name != expected)
    errors.push_back(invalid_value("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
  if (group.empty())
    errors.push_back(required_value("spec.group"));
  else if (auto problem = dns_subdomain_problem(group))
    errors.push_back(invalid_value("spec.group", group, *problem));
  for (const char* member : {"plural", "kind"})
    if (names.value(member, "").empty()) errors.push_back(required_value(fmt::format("spec.names.{}", member)));
  const std::string scope = spec.value("scope", "");
  if (scope.empty())
    errors.push_back(required_value("spec.scope"));
  else if (scope != "Cluster" && scope != "Namespaced")
    errors.push_back(not_supported("spec.scope", scope, {"Cluster", "Namespaced"}));
  const json versions = spec.value("versions", json::array());
  int stored = 0;
  for (std::size_t i = 0; versions.is_array() && i < versions.size(); ++i) {
    stored += versions[i].value("storage", false) ? 1 : 0;
    const json schema = versions[i].value("schema", json::object());
    if (!schema.is_object() || !schema.value("openAPIV3Schema", json()).is_object())
      errors.push_back(required_value(fmt::format("spec.versions[{}].schema.openAPIV3Schema", i)));
  }
  if (stored != 1)
    errors.push_back(
        invalid_value("spec.versions", versions, "must have exactly one version marked as storage version"));
}

}  // namespace

std::vector<ResourcePtr> resources_of_crd(const json& crd) {
  std::vector<ResourcePtr> resources;
  const json& spec = crd["spec"];
  const json& names = spec["names"];
  for (const auto& version : spec["versions"]) {
    if (!version.value("served", false)) continue;
    auto r = std::make_shared<Resource>();
    r->custom = true;
    r->crd_name = crd["metadata"].value("name", "");
    r->group = spec.value("group", "");
    r->version = version.value("name", "");
    r->plural = names.value("plural", "");
    r->kind = names.value("kind", "");
    r->singular = names.value("singular", lower(r->kind));
    r->list_kind = names.value("listKind", r->kind + "List");
    r->namespaced = spec.value("scope", "") == "Namespaced";
    r->short_names = names.value("shortNames", std::vector<std::string>());
    r->categories = names.value("categories", std::vector<std::string>());
    const json subresources = version.value("subresources", json::object());
    r->has_status = subresources.is_object() && subresources.contains("status");
    r->bucket = r->plural + "." + r->group;
    r->storage_version = r->group + "/" + storage_version_of(spec);
    r->columns = columns_of(version);
    auto arena = std::make_shared<SchemaArena>();
    r->schema = read_structural_schema(version.value("schema", json::object()).value("openAPIV3Schema", json::object()),
                                       *arena);
    r->schema_owner = std::move(arena);
    r->pruning = !spec.value("preserveUnknownFields", false);
    const json selectable = version.value("selectableFields", json::array());
    for (const auto& field : selectable) r->selectable.push_back(field.value("jsonPath", ".").substr(1));
    r->to_storage = [stored = r->storage_version](json& object) { object["apiVersion"] = stored; };
    resources.push_back(std::move(r));
  }
  return resources;
}

json established_status(const json& crd, k8s::WallTime now) {
  const json& spec = crd["spec"];
  json names = spec["names"];
  const std::string time = k8s::format_time(now);
  json stored = crd.value("status", json::object()).value("storedVersions", json::array());
  const std::string version = storage_version_of(spec);
  if (!stored.is_array()) stored = json::array();
  if (std::find(stored.begin(), stored.end(), version) == stored.end()) stored.push_back(version);
  return {{"acceptedNames", std::move(names)},
          {"conditions",
           {{{"type", "NamesAccepted"},
             {"status", "True"},
             {"reason", "NoConflicts"},
             {"message", "no conflicts found"},
             {"lastTransitionTime", time}},
            {{"type", "Established"},
             {"status", "True"},
             {"reason", "InitialNamesAccepted"},
             {"message", "the initial names have been accepted"},
             {"lastTransitionTime", time}}}},
          {"storedVersions", std::move(stored)}};
}

Strategy custom_resource_definition_strategy() {
  Strategy s;
  s.has_generation = true;
  s.set_defaults = [](json& crd) {
    json& spec = crd["spec"];
    json& names = spec["names"];
    if (names.value("singular", "").empty()) names["singular"] = lower(names.value("kind", ""));
    if (names.value("listKind", "").empty()) names["listKind"] = names.value("kind", "") + "List";
    if (!spec.contains("conversion")) spec["conversion"] = {{"strategy", "None"}};
  };
  s.prepare_create = [](json& crd) {
    crd["status"] = {{"conditions", nullptr},
                     {"acceptedNames", {{"plural", ""}, {"kind", ""}}},
                     {"storedVersions", {storage_version_of(crd["spec"])}}};
  };
  s.validate = validate_definition;
  s.validate_update = [](const json& crd, const json& old, FieldErrors& errors) {
    for (const char* member : {"scope", "group"}) {
      if (crd["spec"].value(member, "") != old["spec"].value(member, "")) {
        errors.push_back(
            invalid_value(fmt::format("spec.{}", member), crd["spec"].value(member, ""), "field is immutable"));
      }
    }
  };
  return s;
}

}  // namespace gso::sim
