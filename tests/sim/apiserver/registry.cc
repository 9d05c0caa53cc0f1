// The registry, and what depends on a kind's type.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/resource.h"
#include "tests/sim/apiserver/structural.h"

namespace gso::sim {

using nlohmann::json;

namespace {

// Where a selectable field is in the stored form: events of both APIs are stored as core/v1.
std::string stored(const std::string& path) {
  if (path == "source") return "source.component";
  if (path == "reportingController") return "reportingComponent";
  if (path.starts_with("regarding.")) return "involvedObject" + path.substr(path.find('.'));
  return path;
}

}  // namespace

Registry::Registry() : resources_(builtin_resources()) {}

ResourcePtr Registry::find(std::string_view group, std::string_view version, std::string_view plural) const {
  for (const auto& r : resources_)
    if (r->plural == plural && r->group == group && r->version == version) return r;
  return nullptr;
}

ResourcePtr Registry::find_kind(std::string_view group, std::string_view kind) const {
  for (const auto& r : resources_)
    if (r->kind == kind && r->group == group) return r;
  return nullptr;
}

bool Registry::has_group_version(std::string_view group, std::string_view version) const {
  return std::any_of(resources_.begin(), resources_.end(),
                     [&](const ResourcePtr& r) { return r->group == group && r->version == version; });
}

bool Registry::has_group(std::string_view group) const {
  return std::any_of(resources_.begin(), resources_.end(), [&](const ResourcePtr& r) { return r->group == group; });
}

void Registry::add(ResourcePtr resource) {
  resources_.push_back(std::move(resource));
}

void Registry::remove_crd(std::string_view crd_name) {
  std::erase_if(resources_, [&](const ResourcePtr& r) { return r->custom && r->crd_name == crd_name; });
}

std::optional<std::string> normalize_object(const Resource& resource, json& object) {
  if (resource.custom) return normalize_custom(resource, object);
  if (resource.schema == nullptr) return std::nullopt;
  return normalize(*resource.schema, object);
}

std::vector<std::pair<std::string, std::string>> selectable_fields(const Resource& resource, const json& object) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const std::string& path : resource.selectable) {
    const json* at = &object;
    const std::string stored_path = stored(path);
    std::string_view rest = stored_path;
    while (at != nullptr && !rest.empty()) {
      const std::string member(rest.substr(0, rest.find('.')));
      rest.remove_prefix(std::min(rest.size(), member.size() + 1));
      auto it = at->is_object() ? at->find(member) : at->end();
      at = at->is_object() && it != at->end() ? &*it : nullptr;
    }
    std::string value;
    if (at == nullptr) {
      // Booleans are selected by their printed value, false included.
      if (path == "spec.unschedulable" || path == "spec.hostNetwork") value = "false";
    } else {
      value = at->is_string() ? at->get<std::string>() : at->dump();
    }
    fields.emplace_back(path, std::move(value));
  }
  return fields;
}

}  // namespace gso::sim
