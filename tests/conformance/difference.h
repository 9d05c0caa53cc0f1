// Two JSON values side by side: what differs, as lines that a person can read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gso::conformance {

struct Difference {
  std::string path;  // JSON pointer.
  std::string a;     // As JSON, shortened; "(absent)".
  std::string b;
};

[[nodiscard]] std::vector<Difference> differences(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace gso::conformance
