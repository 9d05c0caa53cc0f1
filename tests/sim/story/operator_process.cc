#include "tests/sim/story/operator_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <fstream>

namespace gso::sim {

OperatorProcess::OperatorProcess(std::vector<std::string> command, std::string log_file)
    : command_(std::move(command)), log_file_(std::move(log_file)) {}

OperatorProcess::~OperatorProcess() {
  if (!running()) return;
  ::kill(pid_, SIGTERM);
  for (int tenths = 0; tenths < 20 && running(); ++tenths) ::usleep(100'000);
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

boost::asio::awaitable<k8s::Result<void>> OperatorProcess::start() {
  const int log = ::open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) co_return k8s::fail(k8s::Reason::invalid, log_file_ + ": " + std::strerror(errno));
  // Prepared before fork: the child of a program with threads (libcurl resolves in one) may not allocate.
  std::vector<char*> arguments;
  for (std::string& argument : command_) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(125);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  const int error = errno;
  ::close(log);
  if (pid_ < 0) co_return k8s::fail(k8s::Reason::unavailable, std::string("fork: ") + std::strerror(error));
  co_return k8s::Result<void>{};
}

boost::asio::awaitable<void> OperatorProcess::kill() {
  if (running()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
  co_return;
}

bool OperatorProcess::running() const {
  if (pid_ <= 0) return false;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0) return true;
  pid_ = -1;
  return false;
}

std::string OperatorProcess::evidence() const {
  std::ifstream file(log_file_);
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > 25) lines.pop_front();
  }
  std::string text = running() ? "" : "(the operator is not running)\n";
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace gso::sim
