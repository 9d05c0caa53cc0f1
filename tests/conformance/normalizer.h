// Makes the answers of two servers comparable: what each server invents for itself becomes a placeholder, numbered in
// the order of appearance within one sequence, so that equal stays equal and different stays different.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "k8sclient/value/time.h"

namespace gso::conformance {

// One for each sequence and server. Replaced: uids, resourceVersions of objects (those of lists and bookmarks are all
// one: other writers move them), the sequence's namespace, names made from generateName, continue tokens, times near
// `now`, ages in tables. Sorted: managedFields, which servers order by second, so that a slow machine shows other
// orders. Times that the sequence itself wrote (long ago) stay.
class Normalizer {
 public:
  // `ns` is the sequence's own namespace.
  Normalizer(k8s::WallTime now, const std::string& ns) : now_(now) { names_[ns] = "<ns>"; }
  // An object, a Status, a Table, or a list of watch events.
  void apply(nlohmann::json& body);

 private:
  void collect(const nlohmann::json& value);
  void replace(nlohmann::json& value, const std::string& key, bool in_list_meta);
  void replace_text(std::string& text) const;
  void replace_times(std::string& text) const;
  static void replace_ages(nlohmann::json& table);
  // The real server finds several mistakes in an order of chance.
  static void sort_causes(nlohmann::json& status);
  // The placeholder of a value, made when it is new: "<uid 2>".
  const std::string& remember(std::map<std::string, std::string>& known, const char* what, const std::string& value);

  k8s::WallTime now_;
  std::map<std::string, std::string> uids_;
  std::map<std::string, std::string> versions_;
  std::map<std::string, std::string> names_;
};

}  // namespace gso::conformance
