// SIGTERM and SIGINT for commands that run until they are stopped.
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "k8sclient/clock.h"

namespace gso {

// Notifies `stop` at the first signal and ends the process at the second, so that a stuck shutdown can be interrupted.
// cancel() before the io_context is expected to run out of work.
class StopSignals {
 public:
  // `at_exit` is written to stdout before the second signal ends the process: what leaves a terminal as it was.
  StopSignals(boost::asio::io_context& io, k8s::Signal* stop, std::string_view at_exit = {})
      : set_(io, SIGTERM, SIGINT), stop_(stop), at_exit_(at_exit) {
    wait();
  }
  void cancel() { set_.cancel(); }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& ec, int number) {
      if (ec) return;
      if (std::exchange(seen_, true)) {
        [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, at_exit_.data(), at_exit_.size());
        std::_Exit(128 + number);
      }
      stop_->notify();
      wait();
    });
  }
  boost::asio::signal_set set_;
  k8s::Signal* stop_;
  std::string_view at_exit_;
  bool seen_ = false;
};

}  // namespace gso
