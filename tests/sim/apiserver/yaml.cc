// YAML through yaml-cpp; plain scalars get their type as sigs.k8s.io/yaml gives it.
#include "tests/sim/apiserver/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <set>

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
  if (auto [stop, error] = std::from_chars(text.data(), end, integer); error == std::errc() && stop == end)
    return integer;
  double number = 0;
  if (auto [stop, error] = std::from_chars(text.data(), end, number); error == std::errc() && stop == end)
    return number;
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
    case YAML::NodeType::Scalar:
      return scalar(node);
    default:
      return nullptr;
  }
}

// Follows a JSON text and remembers the names at each level.
class NameWatcher : public nlohmann::json_sax<json> {
 public:
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }
  bool key(string_t& name) override {
    Level& level = levels_.back();
    level.current = (level.path.empty() ? "" : level.path + ".") + name;
    if (!level.names.insert(name).second) repeated.push_back(level.current);
    return true;
  }

  std::vector<std::string> repeated;

 private:
  struct Level {
    std::string path;     // Of the object or array itself.
    std::string current;  // Of the member that is being read.
    std::set<std::string> names;
    bool array = false;
    std::size_t index = 0;
  };
  // The path of the next value.
  [[nodiscard]] std::string here() const {
    if (levels_.empty()) return "";
    const Level& level = levels_.back();
    return level.array ? level.path + "[" + std::to_string(level.index) + "]" : level.current;
  }
  bool value() {
    if (!levels_.empty()) ++levels_.back().index;
    return true;
  }
  bool open(bool array) {
    Level level;
    level.path = here();
    level.array = array;
    levels_.push_back(std::move(level));
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }

  std::vector<Level> levels_;
};

}  // namespace

std::vector<std::string> duplicate_fields(std::string_view text) {
  NameWatcher watcher;
  (void)json::sax_parse(text, &watcher);
  return watcher.repeated;
}

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
