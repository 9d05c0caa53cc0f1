// Runs a program and collects what it prints: no shell, no inherited descriptors but those named, a time limit that
// kills.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

struct ProcessSpec {
  ProcessSpec() = default;                               // No aggregate: coroutines take it by value.
  std::string program;                                   // A path, or a bare name that is looked up in PATH.
  std::vector<std::string> args;                         // Without the program's own name.
  std::vector<std::pair<std::string, std::string>> env;  // Added to our environment; the last of equal names wins.
  Duration time_limit = std::chrono::seconds(60);
  std::size_t max_stdout = 1U << 20U;
  std::size_t max_stderr = 64U << 10U;
  // Descriptors that become its standard input (-1: /dev/null), standard output and standard error (-1: captured).
  int input = -1;
  int output = -1;
  int messages = -1;
  std::string text;              // Without `input`: what its standard input has; at most a few KiB. Empty: nothing.
  bool shares_terminal = false;  // One of them is a person's terminal.
  std::shared_ptr<Signal> stop;  // May be null. notify() ends the process as if its time had come.
};

struct ProcessResult {
  int exit_code = -1;  // -1 when a signal ended it.
  int signal = 0;
  bool timed_out = false;  // Killed after the time limit, or stopped.
  bool cut = false;        // It printed more than the caps; the rest was thrown away.
  std::string out;
  std::string err;
};

// Starts the program in a process group of its own and waits for its end. The whole group is killed when the time limit
// passes, when the coroutine is cancelled, and in any case at the end. A program that shares a terminal stays in our
// group, because others are stopped when they read from it: the keyboard's interrupt ends both, and only the program
// itself is killed, not its children.
// Errors: `not_found` when there is no such program, `invalid` when it cannot be started.
[[nodiscard]] boost::asio::awaitable<Result<ProcessResult>> run_process(ProcessSpec spec, Clock* clock);

}  // namespace k8s
