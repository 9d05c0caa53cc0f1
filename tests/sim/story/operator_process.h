// OperatorProcess: the real binary as a child process, with its log in a file. Ends with its parent.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/sim/story/story.h"

namespace gso::sim {

class OperatorProcess final : public OperatorControl {
 public:
  // `command`: path and arguments. `log_file`: where stdout and stderr go, appended.
  OperatorProcess(std::vector<std::string> command, std::string log_file);
  // Ends the child by SIGTERM, and by SIGKILL when that does not help within two seconds.
  ~OperatorProcess() override;
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  boost::asio::awaitable<k8s::Result<void>> start() override;
  boost::asio::awaitable<void> kill() override;
  [[nodiscard]] bool running() const override;
  [[nodiscard]] std::string evidence() const override;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  std::vector<std::string> command_;
  std::string log_file_;
  mutable pid_t pid_ = -1;
};

}  // namespace gso::sim
