#include "k8sclient/auth/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>

namespace k8s {
namespace {

namespace asio = boost::asio;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

// One pipe of the child, with what came out of it.
struct Output {
  void add(std::string_view bytes) {
    const std::size_t room = limit - std::min(limit, text.size());
    cut = cut || bytes.size() > room;
    text.append(bytes.substr(0, room));
  }
  asio::posix::stream_descriptor pipe;
  std::size_t limit;
  std::string text = {};
  bool cut = false;
};

// A running child. Shared with the coroutines that wait on its descriptors; finish() ends these.
struct Child {
  // Kills what is left of its process group, reaps the child, closes the descriptors. Returns wait()'s status.
  int finish() {
    if (std::exchange(finished, true)) return status;
    kill(own_group ? -pid : pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    // As process 1 of a container we also inherit its orphans.
    while (own_group && waitpid(-pid, nullptr, WNOHANG) > 0) {
    }
    boost::system::error_code ignored;
    exit.close(ignored);
    out.pipe.close(ignored);
    err.pipe.close(ignored);
    return status;
  }

  pid_t pid;
  asio::posix::stream_descriptor exit;  // A pidfd: readable once the child has ended.
  Output out;
  Output err;  // Stays empty where standard error is a descriptor of the caller.
  bool own_group;
  std::shared_ptr<Signal> changed;
  bool ended = false;
  bool finished = false;
  int status = 0;
};

asio::awaitable<void> drain(std::shared_ptr<Child> child, Output Child::* which) {
  Output& output = (*child).*which;
  std::array<char, 4096> chunk{};
  while (true) {
    auto [ec, got] = co_await output.pipe.async_read_some(asio::buffer(chunk), kAsTuple);
    if (ec) co_return;
    output.add({chunk.data(), got});
  }
}

asio::awaitable<void> await_exit(std::shared_ptr<Child> child) {
  auto [ec] = co_await child->exit.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
  if (ec) co_return;
  child->ended = true;
  child->changed->notify();
}

// What the child left in the pipe. A grandchild may hold the other end open, so this never waits.
void drain_rest(Output& output) {
  std::array<char, 4096> chunk{};
  if (!output.pipe.is_open()) return;
  boost::system::error_code ec;
  output.pipe.non_blocking(true, ec);
  while (!ec) {
    const std::size_t got = output.pipe.read_some(asio::buffer(chunk), ec);
    if (!ec) output.add({chunk.data(), got});
  }
}

struct Pipe {
  std::array<int, 2> fd{-1, -1};
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int f : fd)
      if (f >= 0) close(f);
  }
  bool open() { return pipe2(fd.data(), O_CLOEXEC) == 0; }
  // The text, and then the end. A pipe holds more than that.
  bool fill(const std::string& text) {
    const bool written = write(fd[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(std::exchange(fd[1], -1));
    return written;
  }
  int take_read_end() { return std::exchange(fd[0], -1); }
};

// argv- or envp-shaped pointers into `texts`.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> merged_environment(const ProcessSpec& spec) {
  std::map<std::string, std::string, std::less<>> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) merged[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : spec.env) merged[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : merged) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

// posix_spawn's settings, freed with the scope.
struct SpawnSettings {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnSettings(const ProcessSpec& spec, int in_fd, int out_fd, int err_fd) {
    posix_spawn_file_actions_init(&actions);
    if (in_fd >= 0)
      posix_spawn_file_actions_adddup2(&actions, in_fd, 0);
    else
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_init(&attributes);
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);  // We ignore SIGPIPE; the plugin should not inherit that.
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int group = spec.shares_terminal ? 0 : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes, static_cast<short>(group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

Result<std::shared_ptr<Child>> start(const ProcessSpec& spec, const asio::any_io_executor& executor, Clock* clock) {
  const auto problem = [&](int error) {
    return fail(error == ENOENT ? Reason::not_found : Reason::invalid,
                fmt::format("cannot run {}: {}", spec.program, std::strerror(error)));
  };
  Pipe in;
  Pipe out;
  Pipe err;
  if (!out.open() || !err.open()) return problem(errno);
  if (!spec.text.empty() && (!in.open() || !in.fill(spec.text))) return problem(errno);
  std::vector<std::string> arguments{spec.program};
  arguments.insert(arguments.end(), spec.args.begin(), spec.args.end());
  std::vector<std::string> environment = merged_environment(spec);
  const SpawnSettings settings(spec, spec.input >= 0 ? spec.input : in.fd[0],
                               spec.output >= 0 ? spec.output : out.fd[1],
                               spec.messages >= 0 ? spec.messages : err.fd[1]);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, spec.program.c_str(), &settings.actions, &settings.attributes,
                                 pointers(arguments).data(), pointers(environment).data());
  if (error != 0) return problem(error);
  // Not <sys/pidfd.h>: glibc 2.36 forgot its extern "C".
  const int pid_descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pid_descriptor < 0) {
    const int why = errno;
    kill(spec.shares_terminal ? pid : -pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return problem(why);
  }
  using Descriptor = asio::posix::stream_descriptor;
  return std::make_shared<Child>(pid, Descriptor(executor, pid_descriptor),
                                 Output{Descriptor(executor, out.take_read_end()), spec.max_stdout},
                                 Output{Descriptor(executor, err.take_read_end()), spec.max_stderr},
                                 !spec.shares_terminal, spec.stop != nullptr ? spec.stop : clock->make_signal());
}

}  // namespace

asio::awaitable<Result<ProcessResult>> run_process(ProcessSpec spec, Clock* clock) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  Result<std::shared_ptr<Child>> started = start(spec, executor, clock);
  if (!started) co_return std::unexpected(started.error());
  const std::shared_ptr<Child> child = *started;
  const AtEnd finishes([child] { child->finish(); });
  asio::co_spawn(executor, drain(child, &Child::out), kRethrow);
  asio::co_spawn(executor, drain(child, &Child::err), kRethrow);
  asio::co_spawn(executor, await_exit(child), kRethrow);

  const MonoTime deadline = clock->monotonic() + spec.time_limit;
  co_await child->changed->wait_until(deadline);
  ProcessResult result;
  result.timed_out = !child->ended;
  drain_rest(child->out);
  drain_rest(child->err);
  const int status = child->finish();
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.cut = child->out.cut || child->err.cut;
  result.out = std::move(child->out.text);
  result.err = std::move(child->err.text);
  co_return result;
}

}  // namespace k8s
