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

TcpServer::TcpServer(asio::io_context& io, TcpConnection::OnData on_data)
    : acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)), on_data_(std::move(on_data)) {
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
    connections_.push_back(std::make_shared<TcpConnection>(std::move(socket), on_data_));
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

void relay(asio::io_context& io, TcpConnection& client, std::uint16_t port) {
  tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), port});
  const auto down = client.shared_from_this();
  const auto pass_on = [](TcpConnectionPtr to) {
    return [to](TcpConnection& from) { to->write(std::exchange(from.received, {})); };
  };
  const auto up = std::make_shared<TcpConnection>(std::move(socket), pass_on(down));
  up->on_end = [down] { down->close(); };
  client.on_data = pass_on(up);
  client.on_end = [up] { up->close(); };
  up->start();
  client.on_data(client);
}

ConnectProxy::ConnectProxy(asio::io_context& io, const std::string& refusal)
    : TcpServer(io, [this, &io, refusal](TcpConnection& client) {
        const std::string head = take_request_head(client);
        if (head.empty()) return;
        heads.push_back(head);
        if (!refusal.empty()) return client.write("HTTP/1.1 " + refusal + "\r\nContent-Length: 0\r\n\r\n");
        client.write("HTTP/1.1 200 Connection established\r\n\r\n");
        // "CONNECT host:port HTTP/1.1": everything is on loopback here.
        relay(io, client, static_cast<std::uint16_t>(std::stoi(head.substr(head.find(':') + 1))));
      }) {}

}  // namespace k8s::test
