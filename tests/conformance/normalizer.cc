#include "tests/conformance/normalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <regex>

namespace gso::conformance {
namespace {

using nlohmann::json;

bool is_string(const json& object, const char* key) {
  return object.contains(key) && object[key].is_string();
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Whether this object's metadata is that of a list or of a bookmark: its version is the server's, not an object's.
bool is_list(const json& object) {
  if (object.contains("items") || object.contains("rows")) return true;
  return is_string(object, "kind") && object["kind"].get_ref<const std::string&>().ends_with("List");
}

void sort_by_text(json& list) {
  std::sort(list.begin(), list.end(), [](const json& a, const json& b) { return a.dump() < b.dump(); });
}

}  // namespace

const std::string& Normalizer::remember(std::map<std::string, std::string>& known, const char* what,
                                        const std::string& value) {
  const auto [entry, added] = known.try_emplace(value);
  if (added) entry->second = fmt::format("<{} {}>", what, known.size());
  return entry->second;
}

void Normalizer::collect(const json& value) {
  if (value.is_object()) {
    if (is_string(value, "uid") && !value["uid"].get_ref<const std::string&>().starts_with("00000000-"))
      remember(uids_, "uid", value["uid"]);
    if (is_string(value, "generateName") && is_string(value, "name")) remember(names_, "generated", value["name"]);
  }
  if (value.is_structured())
    for (const json& member : value) collect(member);
}

void Normalizer::replace_times(std::string& text) const {
  static const std::regex kTime(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)");
  if (text.find('T') == std::string::npos) return;
  std::string result;
  std::string_view rest = text;
  std::cmatch match;
  while (std::regex_search(rest.data(), rest.data() + rest.size(), match, kTime)) {
    const auto time = k8s::parse_rfc3339(match.str());
    const bool recent = time && *time > now_ - std::chrono::hours(24) && *time < now_ + std::chrono::hours(24);
    result += std::string(match.prefix().first, match.prefix().second);
    result += !recent ? match.str() : match.length(1) == 0 ? "<time>" : "<micro time>";
    rest.remove_prefix(static_cast<std::size_t>(match.position(0) + match.length(0)));
  }
  text = result + std::string(rest);
}

void Normalizer::replace_text(std::string& text) const {
  // Where a message speaks of a version: a small one is a number like any other elsewhere.
  static const std::regex kVersion(
      R"((too old resource version: \d+ \(|Too large resource version: \d+, current: |ersion in the precondition \(|)"
      R"(ersion in record \(|ersion in precondition: |ersion in object meta: )\d+)");
  for (const auto& [uid, placeholder] : uids_) replace_all(text, uid, placeholder);
  for (const auto& [name, placeholder] : names_) replace_all(text, name, placeholder);
  if (text.find("ersion") != std::string::npos) text = std::regex_replace(text, kVersion, "$1<version>");
  replace_times(text);
}

void Normalizer::replace_ages(json& table) {
  static const std::regex kAge(R"((\d+[smhd])+|<unknown>|<invalid>)");
  if (!table["rows"].is_array()) return;
  for (json& row : table["rows"]) {
    for (json& cell : row["cells"])
      if (cell.is_string() && std::regex_match(cell.get_ref<const std::string&>(), kAge)) cell = "<age>";
  }
}

void Normalizer::sort_causes(json& status) {
  json& causes = status["details"]["causes"];
  if (!causes.is_array() || causes.size() < 2) return;
  sort_by_text(causes);
  // The message lists the same causes, in brackets.
  if (!is_string(status, "message")) return;
  auto& message = status["message"].get_ref<std::string&>();
  const std::size_t bracket = message.find('[');
  if (bracket != std::string::npos) message = message.substr(0, bracket) + "<causes>]";
}

void Normalizer::replace(json& value, const std::string& key, bool in_list_meta) {
  if (value.is_object()) {
    const bool list = is_list(value);
    const bool bookmark = is_string(value, "type") && value["type"] == "BOOKMARK";
    if (value.contains("rows")) replace_ages(value);
    if (value.contains("columnDefinitions"))  // Documentation, which the simulated server leaves out.
      for (json& column : value["columnDefinitions"]) column.erase("description");
    if (is_string(value, "reason") && value.contains("details") && value["details"].is_object() &&
        value["details"].contains("causes")) {
      sort_causes(value);
    }
    for (auto& [name, member] : value.items()) {
      const bool whole_server = (name == "metadata" && (list || in_list_meta)) || (name == "object" && bookmark) ||
                                (in_list_meta && name == "resourceVersion");
      replace(member, name, whole_server);
    }
  } else if (value.is_array()) {
    for (json& element : value) replace(element, "", false);
    if (key == "managedFields") sort_by_text(value);
  } else if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (key == "resourceVersion" && !text.empty() && text != "0")
      text = in_list_meta ? "<version of the list>" : remember(versions_, "version", text);
    else if (key == "continue" && !text.empty())
      text = "<continue>";
    else
      replace_text(text);
  }
}

void Normalizer::apply(json& body) {
  collect(body);
  replace(body, "", false);
}

}  // namespace gso::conformance
