// An operator in this process that dies at its writes, when a test wants it, and is started again as kubelet would: a
// second later, with a new identity, knowing nothing.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "tests/sim/story/in_process_operator.h"

namespace gso::sim {

class RestartingOperator final : public OperatorControl {
 public:
  // Both must outlive this object, and `op` what it has started. Takes op's crash point.
  RestartingOperator(boost::asio::any_io_executor executor, k8s::Clock* clock, InProcessOperator* op);
  // It is not started again any more.
  ~RestartingOperator() override;
  RestartingOperator(const RestartingOperator&) = delete;
  RestartingOperator& operator=(const RestartingOperator&) = delete;

  [[nodiscard]] k8s::Result<void> start(const OperatorSettings& settings) override;
  boost::asio::awaitable<void> kill() override;
  [[nodiscard]] std::string trouble() override;

  // Asked after each write that was answered, with its number since the last call (from 1), Leases and Events not
  // counted: true kills.
  void dies_when(std::function<bool(std::uint64_t write)> dies);
  // Since the last dies_when().
  [[nodiscard]] std::uint64_t writes() const;
  [[nodiscard]] std::uint64_t kills() const;

 private:
  struct State;
  static boost::asio::awaitable<void> restart(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace gso::sim
