// Metadata, after apimachinery's api/validation.
#include "tests/sim/apiserver/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/sim/apiserver/names.h"
#include "tests/sim/apiserver/resource.h"

namespace gso::sim {
namespace {

using nlohmann::json;

constexpr std::size_t kMostAnnotationBytes = 256 * 1024;

std::optional<std::string> name_problem(const Resource& resource, const std::string& name) {
  switch (resource.strategy.name) {
    case Strategy::Name::subdomain:
      return dns_subdomain_problem(name);
    case Strategy::Name::label:
      return dns_label_problem(name);
    case Strategy::Name::path_segment:
      return path_segment_problem(name);
  }
  return std::nullopt;
}

void check_annotations(const json& annotations, FieldErrors& errors) {
  std::size_t total = 0;
  for (const auto& [key, value] : annotations.items()) {
    std::string lower = key;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    if (auto problem = label_key_problem(lower)) errors.push_back(invalid_value("metadata.annotations", key, *problem));
    total += key.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  }
  if (total > kMostAnnotationBytes) errors.push_back(too_long("metadata.annotations", kMostAnnotationBytes));
}

// As Go prints the list: members in the order of the struct.
std::string printed_owners(const json& owners) {
  std::string text;
  for (const auto& owner : owners) {
    std::string members;
    for (const char* member : {"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"})
      if (owner.contains(member))
        members += fmt::format("{}\"{}\":{}", members.empty() ? "" : ",", member, owner[member].dump());
    text += fmt::format("{}{{{}}}", text.empty() ? "" : ",", members);
  }
  return "[" + text + "]";
}

void check_owners(const json& owners, FieldErrors& errors) {
  std::string controller;
  for (const auto& owner : owners) {
    for (const char* member : {"apiVersion", "kind", "name", "uid"}) {
      if (!owner.value(member, "").empty()) continue;
      const bool version = member == std::string_view("apiVersion");
      errors.push_back(invalid_value(fmt::format("metadata.ownerReferences.{}", member), "",
                                     version ? "version must not be empty" : "must not be empty"));
    }
    if (!owner.value("controller", false)) continue;
    const std::string name = owner.value("kind", "") + "/" + owner.value("name", "");
    if (controller.empty()) {
      controller = name;
      continue;
    }
    errors.push_back(
        {FieldError::Type::invalid, "metadata.ownerReferences", printed_owners(owners),
         fmt::format("Only one reference can have Controller set to true. Found \"true\" in references for {} "
                     "and {}",
                     controller, name)});
  }
}

// Kinds of the core group also want finalizers to be standard ones or qualified.
void check_finalizers(const Resource& resource, const json& finalizers, FieldErrors& errors) {
  static const std::set<std::string> kStandard{"kubernetes", "orphan", "foregroundDeletion"};
  for (std::size_t i = 0; i < finalizers.size(); ++i) {
    const auto& name = finalizers[i].get_ref<const std::string&>();
    if (auto problem = label_key_problem(name)) errors.push_back(invalid_value("metadata.finalizers", name, *problem));
    if (!resource.custom && resource.group != "apiextensions.k8s.io" && name.find('/') == std::string::npos &&
        !kStandard.contains(name)) {
      errors.push_back(invalid_value(fmt::format("metadata.finalizers[{}]", i), name,
                                     "name is neither a standard finalizer name nor is it fully qualified"));
    }
  }
}

void check_common(const Resource& resource, const json& metadata, FieldErrors& errors) {
  if (auto it = metadata.find("labels"); it != metadata.end()) check_labels(*it, "metadata.labels", errors);
  if (auto it = metadata.find("annotations"); it != metadata.end()) check_annotations(*it, errors);
  if (auto it = metadata.find("ownerReferences"); it != metadata.end()) check_owners(*it, errors);
  if (auto it = metadata.find("finalizers"); it != metadata.end()) check_finalizers(resource, *it, errors);
}

void describe(const json& before, const json& after, const std::string& path, std::string& out) {
  if (before == after) return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.items()) describe(value, after.value(key, json()), path + "." + key, out);
    for (const auto& [key, value] : after.items())
      if (!before.contains(key)) describe(json(), value, path + "." + key, out);
    return;
  }
  out += fmt::format("{}: {} -> {}\n", path, before.dump(), after.dump());
}

}  // namespace

void check_labels(const json& labels, const std::string& path, FieldErrors& errors) {
  for (const auto& [key, value] : labels.items()) {
    if (auto problem = label_key_problem(key)) errors.push_back(invalid_value(path, key, *problem));
    if (auto problem = label_value_problem(value.get_ref<const std::string&>()))
      errors.push_back(invalid_value(path, value, *problem));
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
  if (name.empty())
    errors.push_back(required_value("metadata.name", "name or generateName is required"));
  else if (auto problem = name_problem(resource, name))
    errors.push_back(invalid_value("metadata.name", name, *problem));
  check_common(resource, metadata, errors);
}

namespace {

// What must not change.
void check_immutable(const json& metadata, const json& before, FieldErrors& errors) {
  if (before.contains("deletionTimestamp")) {
    std::string added;
    const json had = before.value("finalizers", json::array());
    const json has = metadata.value("finalizers", json::array());
    for (const auto& f : has)
      if (std::find(had.begin(), had.end(), f) == had.end()) added += (added.empty() ? "" : ", ") + f.dump();
    if (!added.empty()) {
      errors.push_back(forbidden_value(
          "metadata.finalizers", fmt::format("no new finalizers can be added if the object is being deleted, found "
                                             "new finalizers []string{{{}}}",
                                             added)));
    }
  }
  for (const char* member : {"name", "namespace", "uid", "deletionTimestamp"}) {
    if (metadata.value(member, "") == before.value(member, "")) continue;
    errors.push_back(
        invalid_value(fmt::format("metadata.{}", member), metadata.value(member, ""), "field is immutable"));
  }
}

}  // namespace

void validate_metadata_update(const Resource& resource, const json& object, const json& old, FieldErrors& errors) {
  // The real server checks an update's metadata before the kind's rules and again in them: each error is there twice,
  // and what a create checks too is there as often as the kind's rules repeat it.
  for (int i = 0; i < 2; ++i) check_immutable(object["metadata"], old["metadata"], errors);
  for (int i = 0; i < resource.strategy.metadata_checks; ++i) check_common(resource, object["metadata"], errors);
}

std::string difference(const json& before, const json& after) {
  std::string out;
  describe(before, after, "", out);
  return out;
}

}  // namespace gso::sim
