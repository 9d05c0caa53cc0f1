// The operator's real binary as a child process, ended by its process id.
#pragma once

#include <sys/types.h>

#include <string>

#include "k8sclient/clock.h"
#include "tests/sim/story/operator_control.h"

namespace gso::sim {

class ChildOperator final : public OperatorControl {
 public:
  // `log_file` receives its stderr, appended over restarts.
  ChildOperator(k8s::Clock* clock, std::string binary, std::string kubeconfig, std::string log_file);
  // Kills it, if it still runs.
  ~ChildOperator() override;
  ChildOperator(const ChildOperator&) = delete;
  ChildOperator& operator=(const ChildOperator&) = delete;

  [[nodiscard]] k8s::Result<void> start(const OperatorSettings& settings) override;
  boost::asio::awaitable<void> kill() override;
  // A clean shutdown, with time to release its lease; killed when that takes longer than `limit`.
  boost::asio::awaitable<void> stop(k8s::Duration limit);
  [[nodiscard]] std::string trouble() override;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  void end();
  [[nodiscard]] std::string log_tail() const;

  k8s::Clock* clock_;
  std::string binary_, kubeconfig_, log_file_;
  pid_t pid_ = -1;
  std::string ended_;  // How it ended by itself.
};

}  // namespace gso::sim
