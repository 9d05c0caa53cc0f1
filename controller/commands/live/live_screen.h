// A live view on a terminal: its pages, its keyboard, and what happens to a terminal meanwhile (another size, Ctrl-Z).
#pragma once

#include <termios.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "controller/commands/live/view.h"
#include "controller/commands/shared/print.h"
#include "controller/commands/shared/session.h"
#include "controller/commands/status_watch.h"
#include "controller/runtime/task_group.h"
#include "k8sclient/clock.h"

namespace gso {

// The terminal at stdin while a live view reads its keys: they come one by one and are not shown. take() and release()
// can follow each other, for a process that is suspended. One thread only.
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

// The view on the alternate screen of a terminal.
class LiveScreen {
 public:
  struct Parts {
    k8s::Clock* clock = nullptr;
    k8s::Signal* stop = nullptr;  // Notified when a person ends the view.
    std::ostream* out = nullptr;
    std::function<Screen()> measure = screen_of_stdout;
    // What `explain` prints about a node now, for people.
    std::function<boost::asio::awaitable<std::string>(std::string node)> explain{};
    std::function<void()> on_first_view{};  // Can be null.
    // Null: pages without keys, as far as they fit.
    std::unique_ptr<Keyboard> keyboard{};
  };
  explicit LiveScreen(Parts parts);
  // Leaves the alternate screen and gives the terminal its mode back: on each way out.
  ~LiveScreen() { leave(); }
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  // watch_fleet() on this screen. What it writes to `err` follows the alternate screen, and so does the last view. Exit
  // status: 0 if the view was ended by its key.
  [[nodiscard]] boost::asio::awaitable<int> run(FleetWatch watch, std::ostream* err);

  void leave();

 private:
  [[nodiscard]] Screen room() const;
  void show(std::vector<LiveLine> lines);
  void enter();
  [[nodiscard]] std::string next_page();
  void draw();
  void press(const std::vector<Key>& keys);
  void suspend();
  boost::asio::awaitable<void> read_keys();
  boost::asio::awaitable<void> end_escape(std::uint64_t after_read);
  boost::asio::awaitable<void> follow_signals();
  boost::asio::awaitable<void> explain(std::string node, std::uint64_t question);

  Parts parts_;
  boost::asio::any_io_executor executor_;
  std::vector<LiveLine> lines_;
  LiveView view_;
  KeyDecoder decoder_;
  TaskGroup tasks_;
  TaskGroup explaining_;
  std::unique_ptr<k8s::Signal> resized_;
  std::uint64_t reads_ = 0;
  std::uint64_t questions_ = 0;
  std::string on_screen_;  // The last page; empty: unknown.
  bool entered_ = false;
  bool drawn_ = false;  // Before the first view nothing is there to be drawn.
  bool quit_ = false;
};

// The watch, on a client of the session, until a signal or a key of its screen ends it. `wants_screen`: on the terminal
// of the process, if stdout is one, and with keys if stdin is one too.
[[nodiscard]] boost::asio::awaitable<int> run_live(Session session, bool wants_screen, FleetWatch watch,
                                                   std::ostream* out, std::ostream* err);

}  // namespace gso
