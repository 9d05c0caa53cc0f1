// YAML through yaml-cpp; plain scalars get their type as sigs.k8s.io/yaml gives it.
#include "tests/sim/apiserver/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>

namespace gso::sim {
namespace {

using nlohmann::json;

json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // Quoted.
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "False" || text == "no" || text == "off") return false;
  std::int64_t integer = 0;
  const char* end = text.data() + text.size();
  if (auto [stop, error] = std::from_chars(text.data(), end, integer); error == std::errc() && stop == end) return integer;
  double number = 0;
  if (auto [stop, error] = std::from_chars(text.data(), end, number); error == std::errc() && stop == end) return number;
  return text;
}

json convert(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: {
      json object = json::object();
      for (const auto& member : node) object[member.first.Scalar()] = convert(member.second);
      return object;
    }
    case YAML::NodeType::Sequence: {
      json list = json::array();
      for (const auto& item : node) list.push_back(convert(item));
      return list;
    }
    case YAML::NodeType::Scalar: return scalar(node);
    default: return nullptr;
  }
}

}  // namespace

json yaml_to_json(std::string_view text) {
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_discarded()) return parsed;
  try {
    return convert(YAML::Load(std::string(text)));
  } catch (const YAML::Exception&) {
    return json(json::value_t::discarded);
  }
}

}  // namespace gso::sim
