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

bool directive(const json& patch, const char* what) {
  return patch.is_object() && patch.value("$patch", "") == what;
}

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
    for (auto& item : value)
      if (!directive(item, "delete") && !directive(item, "replace"))
        kept.push_back(without_directives(std::move(item)));
    return kept;
  }
  return value;
}

json* find_by_key(json& list, const std::string& key, const json& item) {
  for (auto& candidate : list)
    if (candidate.is_object() && candidate.contains(key) && item.contains(key) && candidate[key] == item[key])
      return &candidate;
  return nullptr;
}

void merge_list(const Schema& schema, json& target, const json& patch) {
  if (!target.is_array()) target = json::array();
  if (schema.merge_key.empty()) {  // A set of primitives.
    for (const auto& item : patch)
      if (std::find(target.begin(), target.end(), item) == target.end()) target.push_back(item);
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

bool same_item(const Schema& schema, const json& a, const json& b) {
  if (schema.merge_key.empty()) return a == b;
  return a.is_object() && b.is_object() && a.value(schema.merge_key, json()) == b.value(schema.merge_key, json());
}

std::ptrdiff_t index_in(const Schema& schema, const json& list, const json& item) {
  if (!list.is_array()) return -1;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (same_item(schema, list[i], item)) return static_cast<std::ptrdiff_t>(i);
  return -1;
}

// Puts a merged list into strategicpatch's order: what the patch (or its $setElementOrder) names in that order; what
// only the server had before the first of those that followed it there.
void set_order(const Schema& schema, json& merged, const json& order, const json& server) {
  if (!merged.is_array()) return;
  std::vector<json> named;
  std::vector<json> server_only;
  for (auto& item : merged) (index_in(schema, order, item) >= 0 ? named : server_only).push_back(item);
  const auto by = [&](const json& list) {
    return [&schema, &list](const json& a, const json& b) {
      return index_in(schema, list, a) < index_in(schema, list, b);
    };
  };
  std::stable_sort(named.begin(), named.end(), by(order));
  std::stable_sort(server_only.begin(), server_only.end(), by(server));
  json result = json::array();
  auto left = server_only.begin();
  auto right = named.begin();
  while (left != server_only.end() || right != named.end()) {
    bool take_left = right == named.end();
    if (!take_left && left != server_only.end()) {
      const auto l = index_in(schema, server, *left);
      const auto r = index_in(schema, server, *right);
      take_left = l >= 0 && r >= 0 && l < r;
    }
    result.push_back(std::move(take_left ? *left++ : *right++));
  }
  merged = std::move(result);
}

void delete_primitives(json& target, const json& values) {
  if (!target.is_array()) return;
  json kept = json::array();
  for (auto& item : target)
    if (std::find(values.begin(), values.end(), item) == values.end()) kept.push_back(std::move(item));
  target = std::move(kept);
}

void merge_member(const Schema* schema, json& target, const std::string& name, const json& value) {
  if (value.is_null()) {
    target.erase(name);
    return;
  }
  const Schema* member = schema == nullptr ? nullptr : schema->member(name);
  if (value.is_object()) {
    if (value.contains("$patch") && !target.contains(name)) return;  // The real server drops a directive for nothing.
    if (!target.contains(name) || !target[name].is_object()) target[name] = json::object();
    strategic_merge(member, target[name], value);
  } else if (value.is_array() && member != nullptr && member->merge) {
    const json server = target.value(name, json());
    merge_list(*member, target[name], value);
    set_order(*member, target[name], value, server);
  } else {
    target[name] = without_directives(value);
  }
}

Outcome<json> parse_patch(std::string_view text) {
  json patch = json::parse(text, nullptr, false);
  if (patch.is_discarded()) return std::unexpected(bad_request("error decoding patch: unexpected end of JSON input"));
  return patch;
}

Outcome<void> apply_json_patch(const json& patch, json& object) {
  if (!patch.is_array()) {
    return std::unexpected(bad_request(
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"));
  }
  if (patch.size() > 10'000) {
    return std::unexpected(
        ApiError(413, "RequestEntityTooLarge",
                 fmt::format("The allowed maximum operations in a JSON patch is 10000, got {}", patch.size())));
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
  if (auto keys = patch.find("$retainKeys"); keys != patch.end() && keys->is_array())
    for (auto it = target.begin(); it != target.end();)
      it = std::find(keys->begin(), keys->end(), json(it.key())) == keys->end() ? target.erase(it) : std::next(it);
  const bool ordered = std::any_of(patch.items().begin(), patch.items().end(),
                                   [](const auto& item) { return item.key().starts_with(kOrderPrefix); });
  const json before = ordered ? target : json();
  for (const auto& [name, value] : patch.items()) {
    if (name.starts_with(kDeletePrefix)) {
      const std::string list = name.substr(kDeletePrefix.size());
      if (target.contains(list)) delete_primitives(target[list], value);
    }
  }
  for (const auto& [name, value] : patch.items())
    if (!name.starts_with("$")) merge_member(schema, target, name, value);
  for (const auto& [name, value] : patch.items()) {
    if (!name.starts_with(kOrderPrefix)) continue;
    const std::string list = name.substr(kOrderPrefix.size());
    const Schema* member = schema == nullptr ? nullptr : schema->member(list);
    if (member != nullptr && target.contains(list)) set_order(*member, target[list], value, before.value(list, json()));
  }
}

Outcome<void> apply_patch(std::string_view content_type, std::string_view text, const Schema* schema, bool custom,
                          json& object) {
  content_type = content_type.substr(0, content_type.find(';'));
  const bool strategic = content_type == "application/strategic-merge-patch+json";
  if (strategic && custom) {
    return std::unexpected(
        ApiError(415, "UnsupportedMediaType",
                 "the body of the request was in an unknown format - accepted media types include: "
                 "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"));
  }
  const bool known =
      strategic || content_type == "application/merge-patch+json" || content_type == "application/json-patch+json";
  if (!known)
    return std::unexpected(ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", json::object()));
  auto patch = parse_patch(text);
  if (!patch) return std::unexpected(patch.error());
  if (content_type == "application/json-patch+json") return apply_json_patch(*patch, object);
  if (!patch->is_object()) {
    return std::unexpected(bad_request(
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"));
  }
  if (strategic)
    strategic_merge(schema, object, *patch);
  else
    object.merge_patch(*patch);
  return {};
}

}  // namespace gso::sim
