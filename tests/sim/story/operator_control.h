// The operator as the story handles it: installed, killed without warning, started again. In process on a simulated
// clock (in_process_operator.h), or as the real binary (child_operator.h).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/value/error.h"

namespace gso::sim {

// Settings by the names of the operator's flags, without dashes: {"settle-period", "10s"}.
using OperatorSettings = std::vector<std::pair<std::string, std::string>>;

class OperatorControl {
 public:
  virtual ~OperatorControl() = default;
  [[nodiscard]] virtual k8s::Result<void> start(const OperatorSettings& settings) = 0;
  // As kill -9 would: nothing is finished, no lease is released. Returns when it is gone.
  virtual boost::asio::awaitable<void> kill() = 0;
  // Why it does not run although it was started, or empty.
  [[nodiscard]] virtual std::string trouble() = 0;
};

}  // namespace gso::sim
