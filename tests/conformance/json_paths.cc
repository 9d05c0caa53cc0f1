#include "tests/conformance/json_paths.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

namespace gso::conformance {
namespace {

using nlohmann::json;

std::string unescape(std::string_view segment) {
  std::string text;
  for (std::size_t i = 0; i < segment.size(); ++i)
    if (segment[i] == '~' && i + 1 < segment.size() && (segment[i + 1] == '0' || segment[i + 1] == '1'))
      text += segment[++i] == '0' ? '~' : '/';
    else
      text += segment[i];
  return text;
}

// The first segment of a path, and the rest of it.
std::pair<std::string, std::string_view> split(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {unescape(path), {}};
  return {unescape(path.substr(0, slash)), path.substr(slash)};
}

// Whether the field of `element` that "a.b" names prints as `wanted`.
bool has_field(const json& element, std::string_view field, std::string_view wanted) {
  const json* value = &element;
  while (!field.empty()) {
    const std::size_t dot = field.find('.');
    if (!value->is_object()) return false;
    const auto found = value->find(std::string(field.substr(0, dot)));
    if (found == value->end()) return false;
    value = &*found;
    field = dot == std::string_view::npos ? std::string_view{} : field.substr(dot + 1);
  }
  return wanted == "*" ||
         (value->is_string() ? value->get_ref<const std::string&>() == wanted : value->dump() == wanted);
}

// Where a segment leads from here: several places when it has a "*".
std::vector<json*> members(json& value, const std::string& segment) {
  std::vector<json*> found;
  if (value.is_object()) {
    if (segment == "*")
      for (json& member : value) found.push_back(&member);
    else if (const auto member = value.find(segment); member != value.end())
      found.push_back(&*member);
  } else if (value.is_array()) {
    const std::size_t equals = segment.find('=');
    std::size_t index = 0;
    const auto number = std::from_chars(segment.data(), segment.data() + segment.size(), index);
    if (segment == "*") {
      for (json& element : value) found.push_back(&element);
    } else if (equals != std::string::npos) {
      const std::string_view text = segment;
      for (json& element : value)
        if (has_field(element, text.substr(0, equals), text.substr(equals + 1))) found.push_back(&element);
    } else if (number.ec == std::errc{} && index < value.size()) {
      found.push_back(&value[index]);
    }
  }
  return found;
}

void erase_member(json& value, const std::string& segment) {
  if (value.is_object()) {
    if (segment == "*")
      value.clear();
    else
      value.erase(segment);
  } else if (value.is_array()) {
    const std::vector<json*> doomed = members(value, segment);
    json kept = json::array();
    for (json& element : value)
      if (std::find(doomed.begin(), doomed.end(), &element) == doomed.end()) kept.push_back(std::move(element));
    value = std::move(kept);
  }
}

}  // namespace

const json* find(const json& value, std::string_view path) {
  json* at = const_cast<json*>(&value);  // members() serves both; nothing is changed here.
  while (!path.empty() && path != "/") {
    const auto [segment, rest] = split(path);
    const std::vector<json*> next = members(*at, segment);
    if (next.empty()) return nullptr;
    at = next.front();
    path = rest;
  }
  return at;
}

void erase(json& value, std::string_view path) {
  const auto [segment, rest] = split(path);
  if (rest.empty()) {
    erase_member(value, segment);
    return;
  }
  for (json* member : members(value, segment)) erase(*member, rest);
}

}  // namespace gso::conformance
