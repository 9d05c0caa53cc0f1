#include "controller/commands/live/keyboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <climits>

namespace gso {

namespace asio = boost::asio;

namespace {

// A descriptor of its own for the terminal at stdin; -1: it cannot be opened. Asio reads without blocking, which is a
// property of the open file: stdin's is usually also that of stdout, of stderr and of the shell.
int open_terminal() {
  constexpr int kFlags = O_RDONLY | O_NOCTTY | O_CLOEXEC;
  std::array<char, PATH_MAX> name{};
  const int named = ttyname_r(STDIN_FILENO, name.data(), name.size()) == 0 ? open(name.data(), kFlags) : -1;
  // In a container the terminal can have a name that exists only outside.
  return named >= 0 ? named : open("/dev/tty", kFlags);
}

}  // namespace

std::unique_ptr<Keyboard> Keyboard::of_stdin(asio::io_context& io) {
  termios before{};
  if (isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &before) != 0)
    return nullptr;
  const int descriptor = open_terminal();
  if (descriptor < 0) return nullptr;
  return std::unique_ptr<Keyboard>(new Keyboard(io, descriptor, before));
}

Keyboard::Keyboard(asio::io_context& io, int descriptor, const termios& before)
    : input_(io, descriptor), before_(before) {}

void Keyboard::take() {
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  keys.c_cc[VQUIT] = _POSIX_VDISABLE;
  taken_ = tcsetattr(input_.native_handle(), TCSADRAIN, &keys) == 0;
}

void Keyboard::release() {
  if (taken_) tcsetattr(input_.native_handle(), TCSADRAIN, &before_);
  taken_ = false;
}

asio::awaitable<std::string> Keyboard::read() {
  std::array<char, 256> bytes{};
  boost::system::error_code error;
  const std::size_t count =
      co_await input_.async_read_some(asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, error));
  if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
  co_return std::string(bytes.data(), count);
}

}  // namespace gso
