// A scripted HTTP/2 server over TLS with ALPN, on the test's own io_context: it answers, stalls, refuses or breaks
// exactly when the test says so. libnghttp2 frames, what is said in one turn in one write.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/k8sclient/transport/test_certificates.h"

struct nghttp2_session;  // From libnghttp2.

namespace k8s::test {

class H2Connection;
using H2ConnectionPtr = std::shared_ptr<H2Connection>;

// One request and its answer. Kept by the test for as long as it wants; after the connection is gone all calls do
// nothing.
class H2Stream : public std::enable_shared_from_this<H2Stream> {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  // Pseudo headers too.
  std::string body;
  std::int32_t id = 0;
  std::weak_ptr<H2Connection> connection;

  // A whole answer, or its parts.
  void respond(int status, const std::string& text = {}, const Headers& extra = {});
  void start(int status, const Headers& extra = {});
  void send(const std::string& bytes);
  void end();
  void reset(std::uint32_t code);  // RST_STREAM
  // A whole answer and a reset behind it, in one TLS record: as a server written in Go ends a request whose body it
  // does not want to the end.
  void refuse(int status, const std::string& text);
  // The stream is over: ended by both sides, or reset by one.
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  friend class H2Connection;
  std::string unsent_;
  bool ending_ = false;
  bool closed_ = false;
};
using H2StreamPtr = std::shared_ptr<H2Stream>;

class H2Peer;
class H2Connection : public std::enable_shared_from_this<H2Connection> {
 public:
  H2Connection(boost::asio::ip::tcp::socket socket, H2Peer& peer);
  ~H2Connection();
  H2Connection(const H2Connection&) = delete;
  H2Connection& operator=(const H2Connection&) = delete;
  void start();

  // GOAWAY naming the last stream that is still served; all above it are refused.
  void goaway(std::int32_t last_stream_id);
  // These happen once everything said before is written.
  void close_fin();     // TCP FIN, without a word from TLS.
  void close_rst();     // TCP reset.
  void close_notify();  // TLS says goodbye, TCP stays open.
  void freeze();        // Neither reads nor writes from now on.

  [[nodiscard]] const std::string& server_name() const { return server_name_; }  // SNI
  [[nodiscard]] std::int32_t last_stream() const { return last_stream_; }
  [[nodiscard]] bool open() const { return open_; }  // The client has not closed it, nor have we.

 private:
  friend class H2Stream;
  friend class H2Peer;
  struct Callbacks;

  void post_flush();
  void after_flush(std::function<void()> action);
  void read_some();
  void gather();
  void flush();
  void close();

  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> tls_;
  H2Peer& peer_;  // Closes its connections before it goes.
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, H2StreamPtr> streams_;
  std::vector<std::function<void()>> after_flush_;
  std::array<char, 16384> input_{};
  std::string frames_;
  std::string writing_;
  std::string server_name_;
  std::int32_t last_stream_ = 0;
  bool open_ = true;
  bool frozen_ = false;
  bool flush_posted_ = false;
};

struct H2PeerOptions {
  Identity identity;
  std::string client_ca_pem = {};  // Not empty: clients must show a certificate signed by it.
  std::uint32_t max_streams = 100;
};

class H2Peer {
 public:
  using OnRequest = std::function<void(const H2StreamPtr&)>;
  H2Peer(boost::asio::io_context& io, const H2PeerOptions& options);
  ~H2Peer();
  H2Peer(const H2Peer&) = delete;
  H2Peer& operator=(const H2Peer&) = delete;

  OnRequest on_request;  // Without it, requests wait for what the test makes of requests().
  OnRequest on_headers;  // Requests whose body is still to come, before on_request() gets them.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  // In the order of their acceptance, closed ones too.
  [[nodiscard]] const std::vector<H2ConnectionPtr>& connections() const { return connections_; }
  // All requests so far, in the order of their arrival.
  [[nodiscard]] const std::vector<H2StreamPtr>& requests() const { return requests_; }
  // Forgets requests and closed connections, for tests that make thousands.
  void forget_history();
  void stop_listening() { acceptor_.close(); }

 private:
  friend class H2Connection;
  void accept();
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ssl::context tls_;
  std::uint32_t max_streams_;
  std::uint16_t port_ = 0;
  std::vector<H2StreamPtr> requests_;
  std::vector<H2ConnectionPtr> connections_;
};

}  // namespace k8s::test
