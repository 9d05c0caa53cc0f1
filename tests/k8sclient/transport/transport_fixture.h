// What every test of the curl transport needs: an io_context, the real clock, a certificate authority, a peer, and a
// way to run coroutines to their end.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/transport/curl_transport.h"
#include "tests/k8sclient/transport/h2_peer.h"
#include "tests/k8sclient/transport/scripted_tcp.h"

namespace k8s::test {

using std::chrono::milliseconds;

inline const TestAuthority& authority() {
  static const TestAuthority instance("test CA");
  return instance;
}

inline const Identity& peer_identity() {
  static const Identity instance = authority().issue({});
  return instance;
}

inline std::string local(const std::string& scheme, std::uint16_t port) {
  return scheme + "://127.0.0.1:" + std::to_string(port);
}

// Answers every request with its own path.
inline void echo(const H2StreamPtr& stream) {
  stream->respond(200, stream->path);
}
// Answers an HTTP/1.1 request with an empty object. False: it is not whole yet.
inline bool answer_http(TcpConnection& from) {
  if (take_request_head(from).empty()) return false;
  from.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
  return true;
}

// A token that is what the test says, and how often it was asked for.
class FakeCredentials final : public CredentialSource {
 public:
  boost::asio::awaitable<Result<std::string>> token(MonoTime /*deadline*/) override {
    ++asked;
    co_return current;
  }
  void invalidate() override {
    ++invalidated;
    current = next;
  }
  std::string client_cert_pem() const override { return identity.cert_pem; }
  std::string client_key_pem() const override { return identity.key_pem; }
  Result<std::string> current = std::string("token-1");
  std::string next = "token-2";
  Identity identity;
  int asked = 0;
  int invalidated = 0;
};

class TransportTest : public testing::Test {
 protected:
  template <class T>
  using Pending = std::shared_ptr<std::optional<T>>;
  using Response = Result<HttpResponse>;
  using Opened = Result<std::unique_ptr<ByteStream>>;

  // Starts a coroutine; its result appears when it has ended.
  template <class T>
  Pending<T> start(boost::asio::awaitable<T> coroutine) {
    auto result = std::make_shared<std::optional<T>>();
    boost::asio::co_spawn(io, std::move(coroutine), [result](std::exception_ptr error, T value) {
      if (error) std::rethrow_exception(error);
      result->emplace(std::move(value));
    });
    return result;
  }

  // The limit only ends a test that hangs: nothing here depends on how long a thing takes.
  void run_until(const std::function<bool()>& condition) {
    io.restart();
    while (!condition()) {
      if (io.run_one_for(std::chrono::seconds(30)) == 0) {
        ADD_FAILURE() << "nothing happens any more, and the test still waits";
        throw std::runtime_error("stuck");
      }
    }
  }

  template <class T>
  T wait(Pending<T> pending) {
    run_until([&] { return pending->has_value(); });
    return *std::move(*pending);
  }

  template <class T>
  T run(boost::asio::awaitable<T> coroutine) {
    return wait(start(std::move(coroutine)));
  }

  // Lets everything happen that is ready to happen.
  void settle() {
    io.restart();
    while (io.poll() > 0) {
    }
  }

  Connection connection_to(std::string server) const {
    Connection connection;
    connection.server = std::move(server);
    connection.ca_pem = authority().ca_pem();
    connection.user_agent = "transport-tests";
    return connection;
  }
  void connect(Connection connection, CurlTransportOptions options = {}) {
    options.stats = stats;
    transport = make_curl_transport(io.get_executor(), std::move(connection), clock.get(), std::move(options));
  }
  void connect() { connect(connection_to(peer.url())); }
  void connect(std::shared_ptr<CredentialSource> credentials) {
    auto connection = connection_to(peer.url());
    connection.credentials = std::move(credentials);
    connect(std::move(connection));
  }

  static HttpRequest get(std::string path, milliseconds timeout = milliseconds(20'000)) {
    HttpRequest request;
    request.path = std::move(path);
    request.timeout = timeout;
    return request;
  }
  static HttpRequest write(Method method, std::string path, std::string body) {
    HttpRequest request = get(std::move(path));
    request.method = method;
    request.body = std::move(body);
    request.content_type = "application/json";
    return request;
  }

  Response send(HttpRequest request) { return run(transport->send(std::move(request))); }
  // What send() brings; the test ends without an answer.
  HttpResponse answer_to(HttpRequest request) { return answer_of(send(std::move(request))); }
  static HttpResponse answer_of(Response response) {
    if (!response) throw std::runtime_error(response.error().message);
    return *std::move(response);
  }
  std::vector<Pending<Response>> start_many(std::size_t count, const HttpRequest& request) {
    std::vector<Pending<Response>> pending;
    while (pending.size() < count) pending.push_back(start(transport->send(request)));
    return pending;
  }
  void wait_for_requests(std::size_t count) {
    run_until([&] { return peer.requests().size() == count; });
  }
  std::unique_ptr<ByteStream> open(std::string path) {
    auto opened = run(transport->open(get(std::move(path))));
    if (!opened) throw std::runtime_error(opened.error().message);
    return *std::move(opened);
  }
  Result<std::string> read(ByteStream& stream, milliseconds idle = milliseconds(20'000)) {
    return run(stream.read(idle));
  }
  // Reads until `size` bytes are there, or until the end or an error.
  Result<std::string> read_bytes(ByteStream& stream, std::size_t size) {
    std::string all;
    while (all.size() < size) {
      auto part = read(stream);
      if (!part) return std::unexpected(part.error());
      if (part->empty()) break;
      all += *part;
    }
    return all;
  }

  boost::asio::io_context io;
  std::unique_ptr<Clock> clock = make_real_clock(io.get_executor());
  std::shared_ptr<TransportStats> stats = std::make_shared<TransportStats>();
  H2Peer peer{io, {.identity = peer_identity()}};
  std::unique_ptr<Transport> transport;
};

// The reason and a part of the message, in one assertion.
inline testing::AssertionResult fails_with(const Error& error, Reason reason, const std::string& part) {
  if (error.reason == reason && error.message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "wanted " << to_string(reason) << " with '" << part << "', got "
                                     << to_string(error.reason) << ": " << error.message;
}

#define EXPECT_FAILS(result, reason, part)                              \
  do {                                                                  \
    const auto& expect_fails_result = (result);                         \
    ASSERT_FALSE(expect_fails_result.has_value());                      \
    EXPECT_TRUE(fails_with(expect_fails_result.error(), reason, part)); \
  } while (false)

}  // namespace k8s::test
