// The process's terminal: what it sends, what it shows, and the signals that it causes.
#include "controller/commands/live/live_screen.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <climits>
#include <csignal>
#include <sstream>

#include "controller/commands/commands.h"
#include "k8sclient/value/time.h"

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

namespace {

// The bytes of a sequence come together, unless a network delays them.
constexpr k8s::Duration kEscapeWait = std::chrono::milliseconds(100);
// A character that is wider than it was counted must not move the rows below: what is too long is cut.
constexpr std::string_view kCutLongLines = "\x1b[?7l";
constexpr std::string_view kWrapLongLines = "\x1b[?7h";

}  // namespace

LiveScreen::LiveScreen(Parts parts)
    : parts_(std::move(parts)),
      view_(parts_.measure()),
      tasks_(parts_.clock),
      explaining_(parts_.clock),
      resized_(parts_.clock->make_signal()) {}

Screen LiveScreen::room() const {
  return parts_.keyboard == nullptr ? parts_.measure() : view_.room();
}

void LiveScreen::show(std::vector<LiveLine> lines) {
  lines_ = std::move(lines);
  if (!std::exchange(drawn_, true) && parts_.on_first_view) parts_.on_first_view();
  view_.show(lines_);
}

// Empty: it is on the screen. Written again it would undo what a person has marked there to copy it, for example a
// command of an explanation while the tree behind it changes every second.
std::string LiveScreen::next_page() {
  std::string page = parts_.keyboard == nullptr ? page_of(lines_, parts_.measure()) : view_.page();
  if (page == on_screen_) return {};
  on_screen_ = page;
  return page;
}

void LiveScreen::draw() {
  if (drawn_ && entered_) *parts_.out << next_page() << std::flush;
}

void LiveScreen::enter() {
  entered_ = true;
  on_screen_.clear();
  *parts_.out << kEnterAlternateScreen;
  if (parts_.keyboard != nullptr) {
    *parts_.out << kCutLongLines;
    parts_.keyboard->take();
  }
  // The first view can take seconds: it waits for an operator that might renew a Lease which looks expired.
  if (!drawn_) *parts_.out << page_of({{"Reading the cluster ..."}}, parts_.measure());
  *parts_.out << std::flush;
}

void LiveScreen::leave() {
  if (!std::exchange(entered_, false)) return;
  if (parts_.keyboard != nullptr) {
    *parts_.out << kWrapLongLines;
    parts_.keyboard->release();
  }
  *parts_.out << kLeaveAlternateScreen << std::flush;
}

asio::awaitable<int> LiveScreen::run(FleetWatch watch, std::ostream* err) {
  executor_ = co_await asio::this_coro::executor;
  watch.show = [this, make_view = std::move(watch.show)](const FleetLook& look, const Screen&) {
    FleetView view = make_view(look, room());
    show(view.lines);
    return view;
  };
  watch.page = [this] { return next_page(); };
  watch.look_again = resized_.get();
  enter();
  if (parts_.keyboard != nullptr) {
    tasks_.spawn(executor_, read_keys());
    tasks_.spawn(executor_, follow_signals());
  }
  std::ostringstream errors;  // In the alternate screen they would be gone with it.
  const int code = co_await watch_fleet(std::move(watch), parts_.out, &errors);
  leave();
  *parts_.out << text_of(lines_) << std::flush;
  *err << errors.str();
  tasks_.cancel();
  explaining_.cancel();
  co_await tasks_.join();
  co_await explaining_.join();
  const bool ended_by_key = quit_ && errors.str().empty();
  co_return ended_by_key ? 0 : code;
}

asio::awaitable<void> LiveScreen::read_keys() {
  for (;;) {
    const std::string bytes = co_await parts_.keyboard->read();
    if (bytes.empty()) break;
    ++reads_;
    press(decoder_.decode(bytes));
    if (decoder_.escape_is_open()) tasks_.spawn(executor_, end_escape(reads_));
  }
  parts_.stop->notify();
}

asio::awaitable<void> LiveScreen::end_escape(std::uint64_t after_read) {
  co_await parts_.clock->sleep_for(kEscapeWait);
  if (after_read == reads_) press(decoder_.end_escape());
}

void LiveScreen::press(const std::vector<Key>& keys) {
  for (const Key key : keys) {
    const LiveView::Ask ask = view_.press(key);
    if (ask == LiveView::Ask::nothing) continue;
    if (ask == LiveView::Ask::quit) {
      quit_ = true;
      parts_.stop->notify();
      continue;
    }
    explaining_.cancel();
    ++questions_;
    if (ask == LiveView::Ask::explain) explaining_.spawn(executor_, explain(view_.asked_node(), questions_));
  }
  if (!keys.empty()) draw();
}

asio::awaitable<void> LiveScreen::explain(std::string node, std::uint64_t question) {
  const std::string text = co_await parts_.explain(std::move(node));
  if (question != questions_) co_return;  // Another question has replaced this one, or the explanation was closed.
  view_.show_explanation(text, k8s::format_time(parts_.clock->now()));
  draw();
}

asio::awaitable<void> LiveScreen::follow_signals() {
  asio::signal_set signals(executor_, SIGWINCH, SIGTSTP, SIGCONT);
  signals.add(SIGHUP);
  for (;;) {
    const int number = co_await signals.async_wait(asio::use_awaitable);
    if (number == SIGHUP) {
      parts_.stop->notify();
      continue;
    }
    if (number == SIGTSTP) suspend();
    // A shell can have changed the mode of the terminal while the process was stopped.
    if (number == SIGCONT && entered_) parts_.keyboard->take();
    view_.resize(parts_.measure());
    on_screen_.clear();  // A terminal moves what it shows when its size changes.
    draw();
    resized_->notify();  // The lines of another width.
  }
}

// As SIGTSTP does it to a process that does not handle it; the terminal is the shell's meanwhile.
void LiveScreen::suspend() {
  const bool entered = entered_;
  leave();
  struct sigaction handled{};
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &standard, &handled);
  std::raise(SIGTSTP);  // Ends when the process continues.
  sigaction(SIGTSTP, &handled, nullptr);
  if (entered) enter();
}

namespace {

asio::awaitable<std::string> explain_node_to_person(Session session, PlannerSettings settings, std::string lease_name,
                                                    std::string node) {
  const ExplainTarget target{.pod = false, .key = {"", std::move(node)}};
  std::ostringstream text;
  std::ostringstream errors;
  (void)co_await explain_on_cluster(session.client, session.clock, target, OutputForm::text, settings, &text, &errors,
                                    lease_name);
  co_return text.str() + printable(errors.str());
}

}  // namespace

asio::awaitable<int> run_live(Session session, bool wants_screen, FleetWatch watch, std::ostream* out,
                              std::ostream* err) {
  const std::unique_ptr<k8s::Signal> stop = session.clock->make_signal();
  watch.client = session.client;
  watch.clock = session.clock;
  watch.stop = stop.get();
  std::unique_ptr<LiveScreen> live;
  if (wants_screen && screen_of_stdout().is_terminal()) {
    LiveScreen::Parts parts{.clock = session.clock, .stop = stop.get(), .out = out};
    parts.explain = [session, settings = watch.settings, lease_name = watch.lease.name](std::string node) {
      return explain_node_to_person(session, settings, lease_name, std::move(node));
    };
    parts.on_first_view = [notice = session.notice] { notice->end(); };
    parts.keyboard = Keyboard::of_stdin(*session.io);
    live = std::make_unique<LiveScreen>(std::move(parts));
  }
  StopSignals signals(*session.io, stop.get(), [screen = live.get()] {
    if (screen != nullptr) screen->leave();
  });
  asio::awaitable<int> run =
      live != nullptr ? live->run(std::move(watch), err) : watch_fleet(std::move(watch), out, err);
  const int code = co_await std::move(run);
  signals.cancel();
  co_return code;
}

}  // namespace gso
