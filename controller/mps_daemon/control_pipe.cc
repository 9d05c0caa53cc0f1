#include "controller/mps_daemon/control_pipe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "k8sclient/auth/child_process.h"

namespace gso {
namespace {

namespace asio = boost::asio;
constexpr k8s::Duration kProbeLimit = std::chrono::seconds(5);

// The read end of a pipe that has the text and then ends. A command is far shorter than a pipe holds.
class TextPipe {
 public:
  explicit TextPipe(const std::string& text) {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    read_end_ = ends[0];
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(ends[1]);
    if (!written) close(std::exchange(read_end_, -1));
  }
  TextPipe(const TextPipe&) = delete;
  TextPipe& operator=(const TextPipe&) = delete;
  ~TextPipe() {
    if (read_end_ >= 0) close(read_end_);
  }
  [[nodiscard]] int read_end() const { return read_end_; }

 private:
  int read_end_ = -1;
};

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

asio::awaitable<k8s::Result<std::string>> ask_mps_daemon(k8s::Clock* clock, std::string pipe_directory,
                                                         std::string command, k8s::Duration limit,
                                                         std::shared_ptr<k8s::Signal> stop) {
  const TextPipe input(command + "\n");
  if (input.read_end() < 0) {
    co_return k8s::fail(k8s::Reason::unavailable, fmt::format("no pipe for a command: {}", std::strerror(errno)));
  }
  k8s::ProcessSpec spec;
  spec.program = kMpsControl;
  spec.env = {{"CUDA_MPS_PIPE_DIRECTORY", pipe_directory}};
  spec.time_limit = limit;
  spec.input = input.read_end();
  spec.stop = std::move(stop);
  const k8s::Result<k8s::ProcessResult> done = co_await k8s::run_process(spec, clock);
  if (!done) co_return std::unexpected(done.error());
  const std::string said = without_line_end(done->err.empty() ? done->out : done->err);
  if (done->exit_code == 0) co_return without_line_end(done->out);
  co_return k8s::fail(k8s::Reason::unavailable,
                      fmt::format("no MPS control daemon answers `{}` in {}{}", command, pipe_directory,
                                  done->timed_out ? ": no answer in time"
                                  : said.empty()  ? ""
                                                  : ": " + said));
}

asio::awaitable<k8s::Result<std::string>> probe_mps_daemon(k8s::Clock* clock, std::string pipe_directory) {
  const std::string command = "get_default_active_thread_percentage";
  k8s::Result<std::string> answer = co_await ask_mps_daemon(clock, pipe_directory, command, kProbeLimit);
  co_return answer;
}

}  // namespace gso
