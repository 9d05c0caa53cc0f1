// Label selectors and field selectors in their query-string form.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/apiserver/storage.h"

namespace gso::sim {

// "a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1". Empty selects everything.
class LabelSelector {
 public:
  struct Requirement {
    enum class Op { in, not_in, exists, absent, greater, less };
    std::string key;
    Op op = Op::exists;
    std::vector<std::string> values;
  };
  // The error is what the real server says after "unable to parse requirement: ".
  [[nodiscard]] static std::expected<LabelSelector, std::string> parse(std::string_view text);
  // From metav1.LabelSelector (matchLabels, matchExpressions); a null selects nothing, {} everything.
  [[nodiscard]] static LabelSelector from_json(const nlohmann::json& selector);
  [[nodiscard]] bool matches(const Object& object) const;
  [[nodiscard]] bool matches(const nlohmann::json& labels) const;
  [[nodiscard]] bool empty() const { return requirements_.empty() && !nothing_; }

 private:
  std::vector<Requirement> requirements_;
  bool nothing_ = false;
};

// "metadata.name=a,spec.nodeName!=b".
class FieldSelector {
 public:
  struct Requirement {
    std::string path;
    bool equal = true;
    std::string value;
  };
  [[nodiscard]] static std::expected<FieldSelector, std::string> parse(std::string_view text);
  [[nodiscard]] bool matches(const Object& object) const;
  [[nodiscard]] const std::vector<Requirement>& requirements() const { return requirements_; }
  // The value that `path` must equal, or empty.
  [[nodiscard]] std::string required(std::string_view path) const;

 private:
  std::vector<Requirement> requirements_;
};

}  // namespace gso::sim
