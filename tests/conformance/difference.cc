#include "tests/conformance/difference.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace gso::conformance {
namespace {

using nlohmann::json;

std::string print(const json* value) {
  if (value == nullptr) return "(absent)";
  constexpr std::size_t kLongest = 400;
  std::string text = value->dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return text;
}

std::string escape(std::string segment) {
  for (std::size_t at = 0; (at = segment.find_first_of("~/", at)) != std::string::npos; at += 2)
    segment.replace(at, 1, segment[at] == '~' ? "~0" : "~1");
  return segment;
}

const json* member(const json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

void compare(const std::string& path, const json* a, const json* b, std::vector<Difference>& found) {
  if (a != nullptr && b != nullptr) {
    if (*a == *b) return;
    if (a->is_object() && b->is_object()) {
      std::set<std::string> keys;
      for (const auto& item : a->items()) keys.insert(item.key());
      for (const auto& item : b->items()) keys.insert(item.key());
      for (const std::string& key : keys) compare(path + "/" + escape(key), member(*a, key), member(*b, key), found);
      return;
    }
    if (a->is_array() && b->is_array()) {
      for (std::size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
        compare(path + "/" + std::to_string(i), i < a->size() ? &(*a)[i] : nullptr, i < b->size() ? &(*b)[i] : nullptr,
                found);
      }
      return;
    }
  }
  found.push_back({path.empty() ? "/" : path, print(a), print(b)});
}

}  // namespace

std::vector<Difference> differences(const json& a, const json& b) {
  std::vector<Difference> found;
  compare("", &a, &b, found);
  return found;
}

}  // namespace gso::conformance
