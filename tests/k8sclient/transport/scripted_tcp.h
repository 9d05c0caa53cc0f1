// Plain TCP servers for the tests: one that says what the test wants, and a proxy that understands CONNECT.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace k8s::test {

class TcpConnection : public std::enable_shared_from_this<TcpConnection> {
 public:
  explicit TcpConnection(boost::asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  std::string received;  // Everything so far that on_data has not taken away.
  // Called after each arrival; cleared when the connection ends.
  std::function<void(TcpConnection&)> on_data;
  std::function<void()> on_end;

  void start() { read_some(); }
  void write(const std::string& bytes);
  void close();  // After what was written before.

 private:
  void read_some();
  void write_pending();
  boost::asio::ip::tcp::socket socket_;
  std::array<char, 16384> input_{};
  std::string output_;
  std::string writing_;
  bool closing_ = false;
};
using TcpConnectionPtr = std::shared_ptr<TcpConnection>;

class TcpServer {
 public:
  // `on_connection` sets the connection's on_data before its first read.
  TcpServer(boost::asio::io_context& io, std::function<void(const TcpConnectionPtr&)> on_connection);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::vector<TcpConnectionPtr>& connections() const { return connections_; }

 private:
  void accept();
  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_;
  std::function<void(const TcpConnectionPtr&)> on_connection_;
  std::vector<TcpConnectionPtr> connections_;
};

// Takes one HTTP/1.1 request without a body out of `received`; empty when it is not complete yet.
[[nodiscard]] std::string take_request_head(TcpConnection& connection);

// From now on everything goes through to a loopback port, and back.
void relay(boost::asio::io_context& io, const TcpConnectionPtr& client, std::uint16_t port);

// An HTTP proxy for CONNECT to loopback ports. Every request head it saw is in `heads`.
class ConnectProxy {
 public:
  // `refusal` not empty: answered to every CONNECT, "403 Forbidden".
  explicit ConnectProxy(boost::asio::io_context& io, std::string refusal = {});
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  [[nodiscard]] const std::vector<std::string>& heads() const { return heads_; }

 private:
  void handle(const TcpConnectionPtr& client);
  boost::asio::io_context& io_;
  std::string refusal_;
  std::vector<std::string> heads_;
  TcpServer server_;
};

}  // namespace k8s::test
