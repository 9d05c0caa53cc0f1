// Looking into JSON objects without copying: nlohmann's value() copies what it returns, which for a node or a pod is
// most of the time that the emulator would take.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gso::sim {

// A member that is an object; an empty object when it is absent or null.
[[nodiscard]] inline const nlohmann::json& member(const nlohmann::json& object, std::string_view name) {
  static const nlohmann::json kNone = nlohmann::json::object();
  auto it = object.find(name);
  return it == object.end() || it->is_null() ? kNone : *it;
}

// A member that is a list; an empty list when it is absent or null.
[[nodiscard]] inline const nlohmann::json& items(const nlohmann::json& object, std::string_view name) {
  static const nlohmann::json kNone = nlohmann::json::array();
  auto it = object.find(name);
  return it == object.end() || !it->is_array() ? kNone : *it;
}

// A member that is a string; empty when it is absent or something else.
[[nodiscard]] inline const std::string& text(const nlohmann::json& object, std::string_view name) {
  static const std::string kNone;
  auto it = object.find(name);
  return it == object.end() || !it->is_string() ? kNone : it->get_ref<const std::string&>();
}

[[nodiscard]] inline const nlohmann::json& metadata(const nlohmann::json& object) {
  return member(object, "metadata");
}
[[nodiscard]] inline const nlohmann::json& labels(const nlohmann::json& object) {
  return member(metadata(object), "labels");
}
[[nodiscard]] inline const nlohmann::json& annotations(const nlohmann::json& object) {
  return member(metadata(object), "annotations");
}
[[nodiscard]] inline const std::string& name_of(const nlohmann::json& object) {
  return text(metadata(object), "name");
}
[[nodiscard]] inline const std::string& namespace_of(const nlohmann::json& object) {
  return text(metadata(object), "namespace");
}
[[nodiscard]] inline const std::string& uid_of(const nlohmann::json& object) {
  return text(metadata(object), "uid");
}
[[nodiscard]] inline bool being_deleted(const nlohmann::json& object) {
  return metadata(object).contains("deletionTimestamp");
}
// Whether all containers of a pod have ended for good.
[[nodiscard]] inline bool has_ended(const nlohmann::json& pod) {
  const std::string& phase = text(member(pod, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}
// FNV-1a of its text, in hexadecimal.
[[nodiscard]] inline std::string fingerprint(const nlohmann::json& object) {
  std::uint32_t hash = 2166136261U;
  for (const char c : object.dump()) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(8, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, hash /= 16) *digit = kDigits[hash % 16];
  return text;
}
// Where a pod is bound; empty when it is not.
[[nodiscard]] inline const std::string& node_of(const nlohmann::json& pod) {
  return text(member(pod, "spec"), "nodeName");
}

}  // namespace gso::sim
