// The terminal at stdin while a live view reads its keys: they come one by one and are not shown.
#pragma once

#include <termios.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <string>

namespace gso {

// take() and release() can follow each other, for a process that is suspended. One thread only.
class Keyboard {
 public:
  // Null if stdin is no terminal, or if the process runs in the background of its shell: the keys are not for it then.
  [[nodiscard]] static std::unique_ptr<Keyboard> of_stdin(boost::asio::io_context& io);
  ~Keyboard() { release(); }
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  // Keys come without Enter and without echo. Ctrl-C and Ctrl-Z stay signals; Ctrl-\ has no effect, because it would
  // end the process with the terminal as it is.
  void take();
  // The terminal is as it was at the first take().
  void release();

  // The next bytes; empty: the terminal is gone. Throws operation_aborted if cancelled.
  [[nodiscard]] boost::asio::awaitable<std::string> read();

 private:
  Keyboard(boost::asio::io_context& io, int descriptor, const termios& before);

  boost::asio::posix::stream_descriptor input_;
  termios before_;
  bool taken_ = false;
};

}  // namespace gso
