// The operator's real binary as a child process, ended by its process id.
#pragma once

#include <sys/types.h>

#include <string>

#include "tests/sim/story/operator_control.h"

namespace gso::sim {

class ChildOperator final : public OperatorControl {
 public:
  // `log_file` receives its stderr, appended over restarts.
  ChildOperator(std::string binary, std::string kubeconfig, std::string log_file);
  // Ends it, if it still runs.
  ~ChildOperator() override;
  ChildOperator(const ChildOperator&) = delete;
  ChildOperator& operator=(const ChildOperator&) = delete;

  [[nodiscard]] k8s::Result<void> start(const OperatorSettings& settings) override;
  boost::asio::awaitable<void> kill() override;
  [[nodiscard]] std::string trouble() override;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  void end(int signal);
  [[nodiscard]] std::string log_tail() const;

  std::string binary_, kubeconfig_, log_file_;
  pid_t pid_ = -1;
  std::string ended_;  // How it ended by itself.
};

}  // namespace gso::sim
