// One request below /debug, and its answer.
#pragma once

#include <string>
#include <string_view>

namespace gso {

struct DebugRequest {
  std::string_view path;  // Without the query.
  bool put = false;       // Else GET or HEAD.
};
struct DebugAnswer {
  int status = 200;
  std::string json;
};

}  // namespace gso
