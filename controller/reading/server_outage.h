// An API server that gives no answer, in one line that stays the same for as long as the outage lasts.
#pragma once

#include <optional>
#include <string>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

// No answer came, or that of something before the server that cannot reach it either.
[[nodiscard]] bool is_no_answer(const k8s::Error& error);

// A request's error without what differs from one attempt to the next: the query of its path.
[[nodiscard]] std::string without_query(std::string message);

class ServerOutage {
 public:
  // An outage that is on goes on: its time and cause are those of its first error. Only of is_no_answer().
  void failed(const k8s::Error& error, k8s::WallTime now);
  void over() { line_.clear(); }

  [[nodiscard]] bool is_on() const { return !line_.empty(); }
  // "the API server at HOST cannot be reached since TIME, and this view is older: CAUSE"; empty: no outage.
  [[nodiscard]] const std::string& line() const { return line_; }

 private:
  std::string line_;
};

}  // namespace gso
