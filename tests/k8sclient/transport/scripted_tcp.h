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
  using OnData = std::function<void(TcpConnection&)>;
  TcpConnection(boost::asio::ip::tcp::socket socket, OnData handler)
      : on_data(std::move(handler)), socket_(std::move(socket)) {}
  std::string received;  // Everything so far that nobody has taken away.
  // Called after each arrival; cleared when the connection ends.
  OnData on_data;
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
  // Silent without `on_data`, which each connection gets.
  explicit TcpServer(boost::asio::io_context& io, TcpConnection::OnData on_data = nullptr);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  [[nodiscard]] const std::vector<TcpConnectionPtr>& connections() const { return connections_; }

 private:
  void accept();
  boost::asio::ip::tcp::acceptor acceptor_;
  TcpConnection::OnData on_data_;
  std::vector<TcpConnectionPtr> connections_;
};

// Takes one HTTP/1.1 request without a body out of `received`; empty when it is not complete yet.
[[nodiscard]] std::string take_request_head(TcpConnection& connection);

// What has been received goes to a loopback port, as does all that follows, and back.
void relay(boost::asio::io_context& io, TcpConnection& client, std::uint16_t port);

// An HTTP proxy for CONNECT to loopback ports.
class ConnectProxy : public TcpServer {
 public:
  // `refusal` not empty: answered to every CONNECT, "403 Forbidden".
  explicit ConnectProxy(boost::asio::io_context& io, const std::string& refusal = {});
  std::vector<std::string> heads;  // Of every request.
};

}  // namespace k8s::test
