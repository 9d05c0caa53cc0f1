// One connection of HttpServer: what it is doing, since when, and whether it can give way to another one.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <utility>

#include "controller/serving/http_server.h"
#include "k8sclient/clock.h"

namespace gso {

struct HttpServer::Connection {
  // In the order in which connections give way. One whose request is being answered never does.
  enum class Stage { asks, reads, idle, is_answered };
  Connection(boost::asio::ip::tcp::socket s, k8s::MonoTime now) : socket(std::move(s)), since(now) {
    boost::system::error_code ec;
    const boost::asio::ip::tcp::endpoint other = socket.remote_endpoint(ec);
    if (!ec) client = other.address();
  }
  void enter(Stage next, k8s::MonoTime now, k8s::Duration allowed) {
    stage = next;
    since = now;
    deadline = now + allowed;
  }
  void close() {
    boost::system::error_code ec;
    socket.shutdown(boost::asio::ip::tcp::socket::shutdown_both, ec);
    socket.close(ec);
  }
  // Whether it can be closed for another client: nothing that it has sent is unread, and it had time to send more.
  [[nodiscard]] bool is_slow(k8s::MonoTime now, k8s::Duration allowed) const {
    if (stage == Stage::idle) return true;
    if (stage == Stage::is_answered || now - since < allowed) return false;
    boost::system::error_code ec;
    return stage == Stage::reads || socket.available(ec) == 0 || ec;
  }
  boost::asio::ip::tcp::socket socket;
  boost::asio::ip::address client;
  Stage stage = Stage::asks;
  k8s::MonoTime since;  // Of the stage.
  k8s::MonoTime deadline;
  k8s::MonoTime close_after;  // With the first answer from then on.
  std::size_t reserved = 0;   // Bytes of the memory budget.
  bool gives_way = false;     // Closed for another client.
};

}  // namespace gso
