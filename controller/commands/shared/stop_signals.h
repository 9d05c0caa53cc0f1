// SIGTERM, SIGINT and the like for commands that run until they are stopped.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <utility>

#include "k8sclient/clock.h"

namespace gso {

// Notifies `stop` at the first signal. cancel() before the io_context is expected to run out of work.
class StopSignals {
 public:
  // The second signal ends the process, so that a stuck shutdown can be interrupted.
  // `at_exit` is called before the second signal ends the process, in which no destructor runs: it leaves a terminal as
  // it was.
  StopSignals(boost::asio::io_context& io, k8s::Signal* stop, std::function<void()> at_exit = {})
      : set_(io, SIGTERM, SIGINT), stop_(stop), at_exit_(std::move(at_exit)) {
    wait();
  }
  // Each later signal notifies `hurry`, and none ends the process: for a command that first undoes what it has set. A
  // terminal that closes, and the keyboard's quit, count as well.
  StopSignals(boost::asio::io_context& io, k8s::Signal* stop, k8s::Signal* hurry)
      : set_(io, SIGTERM, SIGINT, SIGQUIT), stop_(stop), hurry_(hurry) {
    struct sigaction present{};
    const bool ignored = sigaction(SIGHUP, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
    if (!ignored) set_.add(SIGHUP);  // Else nohup has asked to outlive the terminal.
    wait();
  }
  void cancel() { set_.cancel(); }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& ec, int number) {
      if (ec) return;
      const bool first = !std::exchange(seen_, true);
      if (!first && hurry_ == nullptr) end(number);
      (first ? stop_ : hurry_)->notify();
      wait();
    });
  }
  [[noreturn]] void end(int number) const {
    if (at_exit_) at_exit_();
    std::_Exit(128 + number);
  }
  boost::asio::signal_set set_;
  k8s::Signal* stop_;
  k8s::Signal* hurry_ = nullptr;  // Null: the second signal ends the process.
  std::function<void()> at_exit_;
  bool seen_ = false;
};

}  // namespace gso
