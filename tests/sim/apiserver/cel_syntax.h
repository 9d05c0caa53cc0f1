// The syntax tree of a CEL expression (cel.h).
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gso::sim {

struct CelNode {
  enum class Kind {
    literal,  // value
    name,     // text
    member,   // kids[0].text
    index,    // kids[0][kids[1]]
    call,     // text(kids…)
    method,   // kids[0].text(kids[1]…)
    list,     // [kids…]
    unary,    // text kids[0]
    binary,   // kids[0] text kids[1]
    ternary,  // kids[0] ? kids[1] : kids[2]
  };
  Kind kind = Kind::literal;
  std::string text;
  nlohmann::json value;
  std::vector<std::shared_ptr<const CelNode>> kids;
};
using CelTree = std::shared_ptr<const CelNode>;

// nullptr when the expression uses syntax that is not understood.
[[nodiscard]] CelTree parse_cel(std::string_view expression);

}  // namespace gso::sim
