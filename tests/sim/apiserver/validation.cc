// Metadata, after apimachinery's api/validation.
#include "tests/sim/apiserver/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/names.h"
#include "tests/sim/apiserver/resource.h"

namespace gso::sim {
namespace {

using nlohmann::json;

constexpr std::size_t kMostAnnotationBytes = 256 * 1024;

std::optional<std::string> name_problem(const Resource& resource, const std::string& name) {
  switch (resource.strategy.name) {
    case Strategy::Name::subdomain: return dns_subdomain_problem(name);
    case Strategy::Name::label: return dns_label_problem(name);
    case Strategy::Name::path_segment: return path_segment_problem(name);
  }
  return std::nullopt;
}

void check_annotations(const json& annotations, FieldErrors& errors) {
  std::size_t total = 0;
  for (const auto& [key, value] : annotations.items()) {
    std::string lower = key;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    if (auto problem = label_key_problem(lower)) errors.push_back(invalid_value("metadata.annotations", key, *problem));
    total += key.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  }
  if (total > kMostAnnotationBytes) errors.push_back(too_long("metadata.annotations", kMostAnnotationBytes));
}

void check_owners(const json& owners, FieldErrors& errors) {
  std::string controller;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::string at = fmt::format("metadata.ownerReferences[{}]", i);
    for (const char* member : {"apiVersion", "kind", "name", "uid"}) {
      if (owners[i].value(member, "").empty()) {
        errors.push_back(invalid_value(at + "." + member, "", std::string(member == std::string_view("apiVersion") ? "version" : member) + " must not be empty"));
      }
    }
    if (!owners[i].value("controller", false)) continue;
    if (!controller.empty()) {
      errors.push_back(invalid_value("metadata.ownerReferences", owners,
                                     fmt::format("Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                                                 controller, owners[i].value("name", ""))));
    }
    controller = owners[i].value("name", "");
  }
}

void check_finalizers(const json& finalizers, FieldErrors& errors) {
  for (const auto& finalizer : finalizers) {
    if (auto problem = label_key_problem(finalizer.get_ref<const std::string&>())) {
      errors.push_back(invalid_value("metadata.finalizers", finalizer, *problem));
    }
  }
}

void check_common(const json& metadata, FieldErrors& errors) {
  if (auto it = metadata.find("labels"); it != metadata.end()) check_labels(*it, "metadata.labels", errors);
  if (auto it = metadata.find("annotations"); it != metadata.end()) check_annotations(*it, errors);
  if (auto it = metadata.find("ownerReferences"); it != metadata.end()) check_owners(*it, errors);
  if (auto it = metadata.find("finalizers"); it != metadata.end()) check_finalizers(*it, errors);
}

void describe(const json& before, const json& after, const std::string& path, std::string& out) {
  if (before == after) return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.items()) describe(value, after.value(key, json()), path + "." + key, out);
    for (const auto& [key, value] : after.items()) {
      if (!before.contains(key)) describe(json(), value, path + "." + key, out);
    }
    return;
  }
  out += fmt::format("{}: {} -> {}\n", path, before.dump(), after.dump());
}

}  // namespace

void check_labels(const json& labels, const std::string& path, FieldErrors& errors) {
  for (const auto& [key, value] : labels.items()) {
    if (auto problem = label_key_problem(key)) errors.push_back(invalid_value(path, key, *problem));
    if (auto problem = label_value_problem(value.get_ref<const std::string&>())) {
      errors.push_back(invalid_value(path, value, *problem));
    }
  }
}

void check_enum(const json& object, const char* member, const std::vector<std::string>& supported,
                const std::string& path, FieldErrors& errors) {
  auto it = object.find(member);
  if (it == object.end() || !it->is_string()) return;
  if (std::find(supported.begin(), supported.end(), it->get<std::string>()) != supported.end()) return;
  errors.push_back(not_supported(path + "." + member, *it, supported));
}

void validate_metadata(const Resource& resource, const json& object, FieldErrors& errors) {
  const json& metadata = object["metadata"];
  const std::string name = metadata.value("name", "");
  if (name.empty()) {
    errors.push_back(required_value("metadata.name", "name or generateName is required"));
  } else if (auto problem = name_problem(resource, name)) {
    errors.push_back(invalid_value("metadata.name", name, *problem));
  }
  check_common(metadata, errors);
}

void validate_metadata_update(const Resource& resource, const json& object, const json& old, FieldErrors& errors) {
  (void)resource;
  const json& metadata = object["metadata"];
  const json& before = old["metadata"];
  check_common(metadata, errors);
  if (before.contains("deletionTimestamp")) {
    json added = json::array();
    const json had = before.value("finalizers", json::array());
    const json has = metadata.value("finalizers", json::array());
    for (const auto& f : has) {
      if (std::find(had.begin(), had.end(), f) == had.end()) added.push_back(f);
    }
    if (!added.empty()) {
      std::string listed;
      for (const auto& f : added) listed += (listed.empty() ? "" : ", ") + f.dump();
      errors.push_back(forbidden_value("metadata.finalizers",
                                       fmt::format("no new finalizers can be added if the object is being deleted, found "
                                                   "new finalizers []string{{{}}}", listed)));
    }
  }
  for (const char* member : {"name", "namespace", "uid"}) {
    if (metadata.value(member, "") != before.value(member, "")) {
      errors.push_back(invalid_value(fmt::format("metadata.{}", member), metadata.value(member, ""), "field is immutable"));
    }
  }
}

std::string difference(const json& before, const json& after) {
  std::string out;
  describe(before, after, "", out);
  return out;
}

}  // namespace gso::sim
