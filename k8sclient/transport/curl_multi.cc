// See curl_multi.h. The rules behind this file, each learnt from somebody's crash:
//  1. libcurl owns the file descriptors: on CURL_POLL_REMOVE they are released, never closed. The same number may come
//     back at once, so handlers hold their Socket and test `gone`; nothing is looked up by number.
//  2. An Asio wait fires once, libcurl must be notified continuously: after each action the wanted waits are armed
//     again, reading and writing apart.
//  3. Sockets are learnt from the socket callback alone (it also brings the resolver's), and that callback may run
//     inside curl_multi_cleanup.
//  4. The timer callback only notes a deadline; libcurl is never entered from one of its callbacks.
//  5. After every action ended transfers are read until there are none, the result before the handle is removed;
//     their owners are notified after libcurl has returned.
//  6. An error of curl_multi_socket_action leaves all transfers undefined: all are failed, the CURLM is replaced.
#include "k8sclient/transport/curl_multi.h"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <utility>
#include <vector>

namespace k8s {
namespace asio = boost::asio;

namespace {

// Once per process. With CURLOPT_NOSIGNAL libcurl leaves SIGPIPE to us: a write to a closed connection must be an
// error and not the end of the process. A handler that somebody installed stays.
void initialise_libcurl() {
  static const bool done = [] {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    struct sigaction current{};
    if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

struct CurlMulti::Socket {
  Socket(const asio::any_io_executor& executor, curl_socket_t number) : descriptor(executor), fd(number) {}
  asio::posix::stream_descriptor descriptor;
  curl_socket_t fd;
  int wanted = 0;     // CURL_POLL_IN | CURL_POLL_OUT
  int waiting = 0;    // The same, of the waits under way.
  bool gone = false;  // libcurl has taken the descriptor back.
};

// Shared between the multi and the coroutine that waits, so that either may go first.
struct CurlMulti::Timer {
  Clock* clock = nullptr;
  std::unique_ptr<Signal> signal;
  MonoTime deadline = MonoTime::never();
  bool stopped = false;

  // What libcurl's timer callback says; below 0: nothing is waited for.
  void set(long timeout_ms) {
    const MonoTime when =
        timeout_ms < 0 ? MonoTime::never() : clock->monotonic() + std::chrono::milliseconds(timeout_ms);
    const bool earlier = when < deadline;
    deadline = when;
    if (earlier) signal->notify();  // A later deadline needs no wake-up: the loop looks again when the old one passes.
  }
};

std::shared_ptr<CurlMulti> CurlMulti::create(asio::any_io_executor executor, Clock* clock, Sharing sharing) {
  initialise_libcurl();
  std::shared_ptr<CurlMulti> self(new CurlMulti(executor, clock, sharing));
  self->start();
  asio::co_spawn(executor, run_timer(self->timer_, self, executor), kRethrow);
  return self;
}

CurlMulti::CurlMulti(asio::any_io_executor executor, Clock* clock, Sharing sharing)
    : executor_(std::move(executor)), sharing_(sharing), timer_(std::make_shared<Timer>()) {
  timer_->clock = clock;
  timer_->signal = clock->make_signal();
}

CurlMulti::~CurlMulti() {
  stopped_ = true;
  never_throw([this] {
    const Transfers dropped = take_transfers();
    close_multi();
    timer_->stopped = true;
    timer_->signal->notify();
  });
}

void CurlMulti::start() {
  multi_ = curl_multi_init();
  if (multi_ == nullptr) throw std::bad_alloc();
  const curl_socket_callback on_socket = [](CURL*, curl_socket_t fd, int what, void* self, void* known) {
    return static_cast<CurlMulti*>(self)->update_socket(fd, what, static_cast<Socket*>(known));
  };
  const curl_multi_timer_callback on_timer = [](CURLM*, long timeout_ms, void* timer) {
    static_cast<Timer*>(timer)->set(timeout_ms);
    return 0;
  };
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, timer_.get());
  const long pipelining = sharing_ == Sharing::multiplexed ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING;
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, pipelining);
  // Of HTTP/1.1. libcurl would keep four times as many as requests are left, so few of a burst.
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 32L);
}

void CurlMulti::close_multi() {
  if (multi_ == nullptr) return;
  curl_multi_cleanup(multi_);
  multi_ = nullptr;
  // libcurl has removed them all; a descriptor it forgot must still not be closed by us.
  for (auto& [raw, socket] : sockets_) {
    if (socket->gone) continue;
    socket->gone = true;
    socket->descriptor.release();
  }
  sockets_.clear();
  timer_->deadline = MonoTime::never();
}

CurlMulti::Transfers CurlMulti::take_transfers() {
  Transfers transfers = std::exchange(transfers_, {});
  for (const auto& [easy, transfer] : transfers) curl_multi_remove_handle(multi_, easy);
  return transfers;
}

void CurlMulti::add(std::shared_ptr<CurlTransfer> transfer) {
  if (stopped_) return transfer->on_abandoned({Reason::cancelled, 0, "the transport is closed"});
  CURL* const easy = transfer->easy();
  if (const CURLMcode result = curl_multi_add_handle(multi_, easy); result != CURLM_OK) {
    return transfer->on_abandoned(
        {Reason::transport, 0, fmt::format("libcurl does not take the request: {}", curl_multi_strerror(result))});
  }
  transfers_.emplace(easy, std::move(transfer));
}

void CurlMulti::remove(const std::shared_ptr<CurlTransfer>& transfer) {
  const auto found = transfers_.find(transfer->easy());
  if (found == transfers_.end()) return;
  const std::shared_ptr<CurlTransfer> keep = std::move(found->second);
  transfers_.erase(found);
  curl_multi_remove_handle(multi_, keep->easy());
}

void CurlMulti::stop() {
  if (std::exchange(stopped_, true)) return;
  const Transfers transfers = take_transfers();
  close_multi();
  const Error error{Reason::cancelled, 0, "the transport is closed"};
  for (const auto& [easy, transfer] : transfers) transfer->on_abandoned(error);
}

void CurlMulti::rebuild(CURLMcode why) {
  if (stopped_) return;
  const Transfers transfers = take_transfers();
  close_multi();
  start();
  const Error error{
      Reason::transport, 0,
      fmt::format("libcurl lost track of its connections ({}); they are opened anew", curl_multi_strerror(why))};
  for (const auto& [easy, transfer] : transfers) transfer->on_abandoned(error);
}

void CurlMulti::act(curl_socket_t fd, int bits) {
  if (multi_ == nullptr) return;
  int running = 0;
  if (const CURLMcode result = curl_multi_socket_action(multi_, fd, bits, &running); result != CURLM_OK)
    return rebuild(result);
  report_ended();
}

void CurlMulti::report_ended() {
  std::vector<std::pair<std::shared_ptr<CurlTransfer>, CURLcode>> ended;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const easy = message->easy_handle;  // Both before the removal, which frees the message.
    const CURLcode code = message->data.result;
    curl_multi_remove_handle(multi_, easy);
    if (const auto found = transfers_.find(easy); found != transfers_.end()) {
      ended.emplace_back(std::move(found->second), code);
      transfers_.erase(found);
    }
  }
  for (const auto& [transfer, code] : ended) transfer->on_done(code);
}

int CurlMulti::update_socket(curl_socket_t fd, int what, Socket* known) {
  const auto found = sockets_.find(known);
  if (what == CURL_POLL_REMOVE) {
    if (found == sockets_.end()) return 0;
    const std::shared_ptr<Socket> socket = std::move(found->second);
    sockets_.erase(found);
    socket->gone = true;
    socket->descriptor.release();
    curl_multi_assign(multi_, fd, nullptr);
    return 0;
  }
  std::shared_ptr<Socket> socket = found == sockets_.end() ? nullptr : found->second;
  if (socket == nullptr) {
    socket = std::make_shared<Socket>(executor_, fd);
    boost::system::error_code error;
    socket->descriptor.assign(fd, error);
    if (error) return -1;  // Nobody would ever wait for it: the action fails, and everything is rebuilt.
    sockets_.emplace(socket.get(), socket);
    curl_multi_assign(multi_, fd, socket.get());
  }
  socket->wanted = what & (CURL_POLL_IN | CURL_POLL_OUT);
  arm(socket);
  return 0;
}

void CurlMulti::arm(const std::shared_ptr<Socket>& socket) {
  for (const int bit : {CURL_POLL_IN, CURL_POLL_OUT}) {
    const bool due = (socket->wanted & bit) != 0 && (socket->waiting & bit) == 0;
    if (due && !socket->gone && !stopped_) wait(socket, bit);
  }
}

void CurlMulti::wait(const std::shared_ptr<Socket>& socket, int bit) {
  using Descriptor = asio::posix::stream_descriptor;
  socket->waiting |= bit;
  const auto on_ready = [weak = weak_from_this(), socket, bit](boost::system::error_code error) {
    socket->waiting &= ~bit;
    const std::shared_ptr<CurlMulti> self = weak.lock();
    if (self == nullptr || socket->gone || (socket->wanted & bit) == 0) return;
    const int ready = bit == CURL_POLL_IN ? CURL_CSELECT_IN : CURL_CSELECT_OUT;
    self->act(socket->fd, error ? CURL_CSELECT_ERR : ready);
    self->arm(socket);
  };
  socket->descriptor.async_wait(bit == CURL_POLL_IN ? Descriptor::wait_read : Descriptor::wait_write, on_ready);
}

asio::awaitable<void> CurlMulti::run_timer(std::shared_ptr<Timer> timer, std::weak_ptr<CurlMulti> multi,
                                           asio::any_io_executor executor) {
  while (!timer->stopped) {
    const bool notified = co_await timer->signal->wait_until(timer->deadline);
    static_cast<void>(notified);  // Either way: look at the deadline.
    if (timer->stopped || timer->clock->monotonic() < timer->deadline) continue;
    timer->deadline = MonoTime::never();
    // libcurl may ask for "at once" again and again: let the others have their turn.
    co_await asio::post(executor, asio::use_awaitable);
    if (const auto self = multi.lock()) self->act(CURL_SOCKET_TIMEOUT, 0);
  }
}

}  // namespace k8s
