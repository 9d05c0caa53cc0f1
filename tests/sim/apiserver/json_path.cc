// JSONPath, step by step over the set of current values.
#include "tests/sim/apiserver/json_path.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gso::sim {
namespace {

using nlohmann::json;
using Values = std::vector<const json*>;

Values member(const Values& values, const std::string& name) {
  Values found;
  for (const json* v : values)
    if (v->is_object() && v->contains(name)) found.push_back(&(*v)[name]);
  return found;
}

std::string unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"')) text = text.substr(1, text.size() - 2);
  return std::string(text);
}

// "@.type=="Ready""
Values filter(const Values& values, std::string_view condition) {
  const auto op = condition.find("==");
  if (op == std::string_view::npos) return {};
  std::string_view left = condition.substr(0, op);
  while (left.ends_with(' ')) left.remove_suffix(1);
  std::string_view right = condition.substr(op + 2);
  while (right.starts_with(' ')) right.remove_prefix(1);
  if (left.starts_with("@")) left.remove_prefix(1);
  Values found;
  for (const json* v : values) {
    if (!v->is_array()) continue;
    for (const auto& item : *v) {
      const json value = json_path_value(item, left);
      const std::string printed = value.is_string() ? value.get<std::string>() : value.dump();
      if (printed == unquoted(right)) found.push_back(&item);
    }
  }
  return found;
}

Values bracket(const Values& values, std::string_view inside) {
  if (inside.starts_with("?(")) return filter(values, inside.substr(2, inside.size() - 3));
  if (inside.starts_with("'") || inside.starts_with("\"")) return member(values, unquoted(inside));
  Values found;
  std::size_t index = 0;
  std::from_chars(inside.data(), inside.data() + inside.size(), index);
  for (const json* v : values) {
    if (inside == "*" && v->is_structured())
      for (const auto& item : *v) found.push_back(&item);
    else if (v->is_array() && index < v->size())
      found.push_back(&(*v)[index]);
  }
  return found;
}

}  // namespace

json json_path_value(const json& object, std::string_view path) {
  Values values{&object};
  while (!path.empty() && !values.empty()) {
    if (path.front() == '[') {
      const auto end = path.starts_with("[?(") ? path.find(")]") + 1 : path.find(']');
      if (end == std::string_view::npos || end == 0) return nullptr;
      values = bracket(values, path.substr(1, end - 1));
      path.remove_prefix(std::min(path.size(), end + 1));
      continue;
    }
    if (path.front() == '.') path.remove_prefix(1);
    std::string name;
    while (!path.empty() && path.front() != '.' && path.front() != '[') {
      if (path.front() == '\\' && path.size() > 1) path.remove_prefix(1);  // "a\.b" is one name.
      name += path.front();
      path.remove_prefix(1);
    }
    if (!name.empty()) values = member(values, name);
  }
  if (values.empty()) return nullptr;
  if (values.size() == 1) return *values.front();
  std::string joined;
  for (const json* v : values)
    joined += (joined.empty() ? "" : " ") + (v->is_string() ? v->get<std::string>() : v->dump());
  return joined;
}

}  // namespace gso::sim
