// SIGTERM and SIGINT for commands that run until they are stopped.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "k8sclient/clock.h"

namespace gso {

// Notifies `stop` at the first signal and ends the process at the second, so that a stuck shutdown can be interrupted.
// cancel() before the io_context is expected to run out of work.
class StopSignals {
 public:
  StopSignals(boost::asio::io_context& io, k8s::Signal* stop) : set_(io, SIGTERM, SIGINT), stop_(stop) { wait(); }
  void cancel() { set_.cancel(); }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& ec, int number) {
      if (ec) return;
      if (std::exchange(seen_, true)) std::_Exit(128 + number);
      stop_->notify();
      wait();
    });
  }
  boost::asio::signal_set set_;
  k8s::Signal* stop_;
  bool seen_ = false;
};

}  // namespace gso
