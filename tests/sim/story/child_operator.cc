#include "tests/sim/story/child_operator.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <fstream>
#include <utility>
#include <vector>

extern char** environ;

namespace gso::sim {

ChildOperator::ChildOperator(k8s::Clock* clock, std::string binary, std::string kubeconfig, std::string log_file)
    : clock_(clock), binary_(std::move(binary)), kubeconfig_(std::move(kubeconfig)), log_file_(std::move(log_file)) {}

ChildOperator::~ChildOperator() {
  end();
}

k8s::Result<void> ChildOperator::start(const OperatorSettings& settings) {
  end();
  ended_.clear();
  std::vector<std::string> words{binary_,
                                 "run",
                                 "--kubeconfig",
                                 kubeconfig_,
                                 "--metrics-bind-address",
                                 "0",
                                 "--health-probe-bind-address",
                                 "0",
                                 "--log-format",
                                 "text"};
  for (const auto& [name, value] : settings) words.push_back("--" + name + "=" + value);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, binary_.c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    return k8s::fail(k8s::Reason::invalid, "cannot start the operator '" + binary_ + "': " + std::strerror(error));
  pid_ = pid;
  return {};
}

void ChildOperator::end() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

boost::asio::awaitable<void> ChildOperator::kill() {
  end();
  co_return;
}

boost::asio::awaitable<void> ChildOperator::stop(k8s::Duration limit) {
  const k8s::MonoTime deadline = clock_->monotonic() + limit;
  if (pid_ > 0) ::kill(pid_, SIGTERM);
  while (pid_ > 0 && clock_->monotonic() < deadline) {
    if (!trouble().empty()) break;
    co_await clock_->sleep_for(std::chrono::milliseconds(10));
  }
  end();
}

std::string ChildOperator::trouble() {
  int status = 0;
  if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = -1;
    ended_ = WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status))
                                 : "with exit code " + std::to_string(WEXITSTATUS(status));
  }
  if (ended_.empty()) return {};
  return "the operator has ended " + ended_ + "; the end of its log (" + log_file_ + "):\n" + log_tail();
}

std::string ChildOperator::log_tail() const {
  std::ifstream log(log_file_);
  std::deque<std::string> lines;
  for (std::string line; std::getline(log, line);) {
    lines.push_back(line);
    if (lines.size() > 20) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text;
}

}  // namespace gso::sim
