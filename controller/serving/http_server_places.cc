// Who may hold a connection of HttpServer, or bytes of its memory, and who gives way: rules of http_server.h.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "controller/serving/http_connection.h"
#include "controller/serving/http_server.h"

namespace gso {
namespace {

// Within this time a client that has just connected sends its request, unless it means not to: it does not give way
// before.
constexpr k8s::Duration kTimeToAsk = std::chrono::milliseconds(50);
// The same for a body, or for an answer that is read.
constexpr k8s::Duration kTimeToSend = std::chrono::milliseconds(250);
constexpr k8s::Duration kLongestWait = std::chrono::seconds(1);  // For bytes of the budget.

}  // namespace

namespace asio = boost::asio;

// Each turn closes one connection or waits until one can be closed: a new client is accepted after kTimeToAsk at the
// latest, unless each of the others is being answered.
asio::awaitable<void> HttpServer::make_room() {
  for (bool patient = true; !stopping_ && connections() >= options_.max_connections;) {
    if (Connection* const first = first_to_go(patient)) {
      first->gives_way = true;
      first->close();  // Its coroutine ends a moment later.
    } else {
      patient = co_await room_->wait_until(clock_->monotonic() + kTimeToAsk);
    }
  }
}

// Those without a complete request come first, then those that do not read their answer, then those that are kept for a
// next request. Among these it is the oldest one of the address that has the most: whoever opens many connections
// closes his own.
HttpServer::Connection* HttpServer::first_to_go(bool patient) const {
  const k8s::MonoTime now = clock_->monotonic();
  const auto can_go = [&](const Connection& each) {
    return !each.gives_way && (patient ? each.is_slow(now, kTimeToAsk) : each.stage != Connection::Stage::is_answered);
  };
  std::map<asio::ip::address, std::size_t> of_address;
  for (const auto& each : open_) ++of_address[each->client];
  const auto rank = [&](const Connection& each) {
    return std::tuple(each.stage, open_.size() - of_address[each.client], each.since);
  };
  Connection* first = nullptr;
  for (const auto& each : open_) {
    if (can_go(*each) && (first == nullptr || rank(*each) < rank(*first))) first = each.get();
  }
  return first;
}

asio::awaitable<bool> HttpServer::reserve(std::shared_ptr<Connection> connection, std::size_t bytes) {
  // Whatever is larger than the whole budget goes alone.
  bytes = std::min(bytes - std::min(bytes, kBytesOfEach), options_.memory_budget);
  const k8s::MonoTime until = clock_->monotonic() + kLongestWait;
  while (in_use_ + bytes > options_.memory_budget) {
    if (stopping_ || connection->gives_way || clock_->monotonic() >= until) co_return false;
    close_slowest_holder();
    (void)co_await room_->wait_until(std::min(until, clock_->monotonic() + kTimeToSend));
  }
  connection->reserved += bytes;
  in_use_ += bytes;
  co_return true;
}

void HttpServer::release(Connection* connection) {
  in_use_ -= std::exchange(connection->reserved, 0);
  room_->notify();
}

// One at a time, as its bytes are free only when its coroutine has ended.
void HttpServer::close_slowest_holder() {
  const k8s::MonoTime now = clock_->monotonic();
  Connection* slowest = nullptr;
  for (const auto& each : open_) {
    if (each->reserved == 0 || each->stage == Connection::Stage::is_answered) continue;
    if (each->gives_way) return;
    if (now - each->since >= kTimeToSend && (slowest == nullptr || each->since < slowest->since)) slowest = each.get();
  }
  if (slowest == nullptr) return;
  slowest->gives_way = true;
  slowest->close();
}

asio::awaitable<void> HttpServer::reap() {
  while (!stopping_) {
    if (open_.empty()) {
      (void)co_await wake_->wait();
      continue;
    }
    co_await wake_->wait_until(clock_->monotonic() + std::min(options_.header_timeout, options_.request_timeout) / 2);
    const k8s::MonoTime now = clock_->monotonic();
    for (const auto& connection : open_) {
      if (connection->deadline <= now) connection->close();
    }
  }
}

}  // namespace gso
