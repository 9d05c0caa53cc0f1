// Patches. Strategic merge follows apimachinery's util/strategicpatch: merge keys, $patch, $deleteFromPrimitiveList,
// $setElementOrder and $retainKeys.
#include "tests/sim/apiserver/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gso::sim {
namespace {

using nlohmann::json;

constexpr std::string_view kDeletePrefix = "$deleteFromPrimitiveList/";
constexpr std::string_view kOrderPrefix = "$setElementOrder/";

bool directive(const json& patch, const char* what) { return patch.is_object() && patch.value("$patch", "") == what; }

json without_directives(json value) {
  if (value.is_object()) {
    for (auto it = value.begin(); it != value.end();) {
      if (it.key().starts_with("$") || it->is_null()) {
        it = value.erase(it);
      } else {
        *it = without_directives(std::move(*it));
        ++it;
      }
    }
  } else if (value.is_array()) {
    json kept = json::array();
    for (auto& item : value) {
      if (!directive(item, "delete") && !directive(item, "replace")) kept.push_back(without_directives(std::move(item)));
    }
    return kept;
  }
  return value;
}

json* find_by_key(json& list, const std::string& key, const json& item) {
  for (auto& candidate : list) {
    if (candidate.is_object() && candidate.contains(key) && item.contains(key) && candidate[key] == item[key]) return &candidate;
  }
  return nullptr;
}

void merge_list(const Schema& schema, json& target, const json& patch) {
  if (!target.is_array()) target = json::array();
  if (schema.merge_key.empty()) {  // A set of primitives.
    for (const auto& item : patch) {
      if (std::find(target.begin(), target.end(), item) == target.end()) target.push_back(item);
    }
    return;
  }
  if (std::any_of(patch.begin(), patch.end(), [](const json& item) { return directive(item, "replace"); })) {
    target = without_directives(patch);
    return;
  }
  for (const auto& item : patch) {
    json* existing = find_by_key(target, schema.merge_key, item);
    if (directive(item, "delete")) {
      if (existing != nullptr) target.erase(target.begin() + (existing - &target[0]));
    } else if (existing != nullptr) {
      strategic_merge(schema.element, *existing, item);
    } else {
      target.push_back(without_directives(item));
    }
  }
}

// Items named in `order` come in that order; the others keep their place before the first that followed them.
void set_order(const Schema& schema, json& target, const json& order) {
  if (!target.is_array()) return;
  const auto position = [&](const json& item) -> std::ptrdiff_t {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool same = schema.merge_key.empty() ? order[i] == item
                                                 : item.is_object() && item.value(schema.merge_key, json()) ==
                                                                           order[i].value(schema.merge_key, json());
      if (same) return static_cast<std::ptrdiff_t>(i);
    }
    return -1;
  };
  std::vector<json> listed;
  std::vector<std::pair<std::size_t, json>> others;  // With how many listed items stood before them.
  for (auto& item : target) {
    if (position(item) >= 0) listed.push_back(item);
    else others.emplace_back(listed.size(), item);
  }
  std::stable_sort(listed.begin(), listed.end(), [&](const json& a, const json& b) { return position(a) < position(b); });
  json result = json::array();
  auto other = others.begin();
  for (std::size_t i = 0; i <= listed.size(); ++i) {
    for (; other != others.end() && other->first == i; ++other) result.push_back(std::move(other->second));
    if (i < listed.size()) result.push_back(std::move(listed[i]));
  }
  target = std::move(result);
}

void delete_primitives(json& target, const json& values) {
  if (!target.is_array()) return;
  json kept = json::array();
  for (auto& item : target) {
    if (std::find(values.begin(), values.end(), item) == values.end()) kept.push_back(std::move(item));
  }
  target = std::move(kept);
}

void merge_member(const Schema* schema, json& target, const std::string& name, const json& value) {
  if (value.is_null()) {
    target.erase(name);
    return;
  }
  const Schema* member = schema == nullptr ? nullptr : schema->member(name);
  if (value.is_object()) {
    if (!target.contains(name) || !target[name].is_object()) target[name] = json::object();
    strategic_merge(member, target[name], value);
  } else if (value.is_array() && member != nullptr && member->merge) {
    merge_list(*member, target[name], value);
  } else {
    target[name] = without_directives(value);
  }
}

Outcome<json> parse_patch(std::string_view text) {
  json patch = json::parse(text, nullptr, false);
  if (patch.is_discarded()) {
    return std::unexpected(bad_request("error decoding patch: unexpected end of JSON input"));
  }
  return patch;
}

Outcome<void> apply_json_patch(const json& patch, json& object) {
  if (!patch.is_array()) {
    return std::unexpected(bad_request("error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"));
  }
  if (patch.size() > 10'000) {
    return std::unexpected(ApiError(413, "RequestEntityTooLarge", fmt::format(
        "The allowed maximum operations in a JSON patch is 10000, got {}", patch.size())));
  }
  try {  // nlohmann reports what does not fit by exceptions only.
    object = object.patch(patch);
  } catch (const json::exception&) {
    return std::unexpected(
        ApiError(422, "Invalid", "the server rejected our request due to an error in our request", json::object()));
  }
  return {};
}

}  // namespace

void strategic_merge(const Schema* schema, json& target, const json& patch) {
  if (directive(patch, "replace")) {
    target = without_directives(patch);
    return;
  }
  if (directive(patch, "delete")) {
    target = json::object();
    return;
  }
  if (auto keys = patch.find("$retainKeys"); keys != patch.end() && keys->is_array()) {
    for (auto it = target.begin(); it != target.end();) {
      it = std::find(keys->begin(), keys->end(), json(it.key())) == keys->end() ? target.erase(it) : std::next(it);
    }
  }
  for (const auto& [name, value] : patch.items()) {
    if (name.starts_with(kDeletePrefix)) {
      const std::string list = name.substr(kDeletePrefix.size());
      if (target.contains(list)) delete_primitives(target[list], value);
    }
  }
  for (const auto& [name, value] : patch.items()) {
    if (!name.starts_with("$")) merge_member(schema, target, name, value);
  }
  for (const auto& [name, value] : patch.items()) {
    if (!name.starts_with(kOrderPrefix)) continue;
    const std::string list = name.substr(kOrderPrefix.size());
    const Schema* member = schema == nullptr ? nullptr : schema->member(list);
    if (member != nullptr && target.contains(list)) set_order(*member, target[list], value);
  }
}

Outcome<void> apply_patch(std::string_view content_type, std::string_view text, const Schema* schema, bool custom,
                          json& object) {
  content_type = content_type.substr(0, content_type.find(';'));
  const bool strategic = content_type == "application/strategic-merge-patch+json";
  const bool known = strategic || content_type == "application/merge-patch+json" ||
                     content_type == "application/json-patch+json";
  if (!known || (strategic && custom)) {
    return std::unexpected(ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", json::object()));
  }
  auto patch = parse_patch(text);
  if (!patch) return std::unexpected(patch.error());
  if (content_type == "application/json-patch+json") return apply_json_patch(*patch, object);
  if (!patch->is_object()) {
    return std::unexpected(bad_request("error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"));
  }
  if (strategic) {
    strategic_merge(schema, object, *patch);
  } else {
    object.merge_patch(*patch);
  }
  return {};
}

}  // namespace gso::sim
