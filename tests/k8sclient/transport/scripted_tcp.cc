#include "tests/k8sclient/transport/scripted_tcp.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace k8s::test {
namespace asio = boost::asio;
using asio::ip::tcp;

void TcpConnection::read_some() {
  socket_.async_read_some(asio::buffer(input_), [self = shared_from_this()](auto error, std::size_t size) {
    if (error) {
      self->on_data = nullptr;
      if (const auto end = std::exchange(self->on_end, nullptr)) end();
      return;
    }
    self->received.append(self->input_.data(), size);
    if (const auto handler = self->on_data) handler(*self);
    self->read_some();
  });
}

void TcpConnection::write(const std::string& bytes) {
  output_ += bytes;
  write_pending();
}

void TcpConnection::write_pending() {
  if (!writing_.empty()) return;
  if (output_.empty()) {
    boost::system::error_code ignored;
    if (closing_) socket_.close(ignored);
    return;
  }
  writing_ = std::exchange(output_, {});
  asio::async_write(socket_, asio::buffer(writing_), [self = shared_from_this()](auto error, std::size_t) {
    self->writing_.clear();
    if (!error) self->write_pending();
  });
}

void TcpConnection::close() {
  closing_ = true;
  write_pending();
}

TcpServer::TcpServer(asio::io_context& io, std::function<void(const TcpConnectionPtr&)> on_connection)
    : acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      port_(acceptor_.local_endpoint().port()),
      on_connection_(std::move(on_connection)) {
  accept();
}

TcpServer::~TcpServer() {
  for (const auto& connection : connections_) {
    connection->on_data = nullptr;
    connection->on_end = nullptr;
    connection->close();
  }
}

void TcpServer::accept() {
  acceptor_.async_accept([this](auto error, tcp::socket socket) {
    if (error) return;  // Also when this server is gone.
    connections_.push_back(std::make_shared<TcpConnection>(std::move(socket)));
    on_connection_(connections_.back());
    connections_.back()->start();
    accept();
  });
}

std::string take_request_head(TcpConnection& connection) {
  const auto end = connection.received.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  std::string head = connection.received.substr(0, end + 4);
  connection.received.erase(0, end + 4);
  return head;
}

void relay(asio::io_context& io, const TcpConnectionPtr& client, std::uint16_t port) {
  tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), port});
  const auto upstream = std::make_shared<TcpConnection>(std::move(socket));
  upstream->on_data = [client](TcpConnection& up) { client->write(std::exchange(up.received, {})); };
  upstream->on_end = [client] { client->close(); };
  client->on_data = [upstream](TcpConnection& down) { upstream->write(std::exchange(down.received, {})); };
  client->on_end = [upstream] { upstream->close(); };
  upstream->start();
}

ConnectProxy::ConnectProxy(asio::io_context& io, std::string refusal)
    : io_(io), refusal_(std::move(refusal)), server_(io, [this](const TcpConnectionPtr& client) { handle(client); }) {}

void ConnectProxy::handle(const TcpConnectionPtr& client) {
  client->on_data = [this](TcpConnection& from) {
    const std::string head = take_request_head(from);
    if (head.empty()) return;
    heads_.push_back(head);
    if (!refusal_.empty()) {
      from.write("HTTP/1.1 " + refusal_ + "\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    const auto colon = head.find(':');  // "CONNECT host:port HTTP/1.1": everything is on loopback here.
    const auto port = static_cast<std::uint16_t>(std::stoi(head.substr(colon + 1)));
    from.write("HTTP/1.1 200 Connection established\r\n\r\n");
    relay(io_, from.shared_from_this(), port);
  };
}

}  // namespace k8s::test
