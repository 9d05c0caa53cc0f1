// The HTTP server over TLS, on a loopback socket: handshakes, certificates that are renewed under load, clients that
// are known by their certificate. curl and openssl are tried against the whole operator (tests/conformance).
#include <gmock/gmock.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>

#include "controller/serving/http_server.h"
#include "controller/serving/tls_context.h"
#include "tests/k8sclient/transport/test_certificates.h"

namespace gso::tls_server_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using k8s::test::TestAuthority;
constexpr auto kQuiet = asio::as_tuple(asio::use_awaitable);

// Moves by hand alone: a slow machine must not reach the next look at the files by itself.
class MovedClock final : public k8s::Clock {
 public:
  explicit MovedClock(k8s::Clock* real) : real_(real), began_(real->monotonic()) {}
  k8s::WallTime now() const override { return real_->now(); }
  k8s::MonoTime monotonic() const override { return began_ + ahead; }
  asio::awaitable<void> sleep_until(k8s::MonoTime deadline) override { return real_->sleep_until(deadline); }
  std::unique_ptr<k8s::Signal> make_signal() override { return real_->make_signal(); }
  k8s::Duration ahead{0};

 private:
  k8s::Clock* real_;
  k8s::MonoTime began_;
};

// What one client got.
struct Outcome {
  bool shook_hands = false;
  std::string answer;
  std::string server;  // The common name of the server's certificate.
};

struct Visit {
  Visit() = default;
  std::string request;
  std::string trusted;  // PEM of the authorities.
  std::optional<k8s::test::Identity> identity;
  int greatest_version = 0;  // Of TLS; 0: any.
};

std::string common_name(SSL* connection) {
  X509* const certificate = SSL_get1_peer_certificate(connection);
  if (certificate == nullptr) return {};
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  X509_free(certificate);
  return name;
}

Tcp::endpoint address_of(int port) {
  return {asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)};
}

asio::awaitable<void> visit(int port, Visit plan, Outcome* out) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  context.add_certificate_authority(asio::buffer(plan.trusted));
  context.set_verify_mode(asio::ssl::verify_peer);
  if (plan.identity) {
    context.use_certificate_chain(asio::buffer(plan.identity->cert_pem));
    context.use_private_key(asio::buffer(plan.identity->key_pem), asio::ssl::context::pem);
  }
  if (plan.greatest_version != 0) SSL_CTX_set_max_proto_version(context.native_handle(), plan.greatest_version);
  const auto executor = co_await asio::this_coro::executor;
  asio::ssl::stream<Tcp::socket> stream(executor, context);
  co_await stream.next_layer().async_connect(address_of(port), kQuiet);
  const auto [failed] = co_await stream.async_handshake(asio::ssl::stream_base::client, kQuiet);
  out->shook_hands = !failed;
  if (failed) co_return;
  out->server = common_name(stream.native_handle());
  co_await asio::async_write(stream, asio::buffer(plan.request), kQuiet);
  co_await asio::async_read(stream, asio::dynamic_buffer(out->answer), kQuiet);
}

asio::awaitable<HttpAnswer> introduce(HttpRequest request) {
  std::string text = request.method + " " + request.path + " " + request.body;
  if (request.client) {
    text += " by " + request.client->user;
    for (const std::string& group : request.client->groups) text += "," + group;
  }
  co_return text_answer(200, text + "\n");
}

// Without TLS.
asio::awaitable<void> tell(int port, std::string text, std::string* answer) {
  const auto executor = co_await asio::this_coro::executor;
  Tcp::socket socket(executor);
  co_await socket.async_connect(address_of(port), kQuiet);
  co_await asio::async_write(socket, asio::buffer(text), kQuiet);
  co_await asio::async_read(socket, asio::dynamic_buffer(*answer), kQuiet);
}

class TlsServerTest : public testing::Test {
 protected:
  TlsServerTest() {
    std::filesystem::create_directories(folder_);
    write_identity(authority.issue({.common_name = "operator"}));
  }
  ~TlsServerTest() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write_identity(const k8s::test::Identity& identity) const {
    write("tls.crt", identity.cert_pem);
    write("tls.key", identity.key_pem);
  }
  void start(const std::string& client_ca = "", bool clients_only = false) {
    if (!client_ca.empty()) write("clients.crt", client_ca);
    CertificateFiles::Events events;
    events.failed = [this](const k8s::Error& error) { failures.push_back(error.message); };
    files = std::make_unique<CertificateFiles>(
        &moved,
        CertificateFiles::Paths{path("tls.crt"), path("tls.key"), client_ca.empty() ? "" : path("clients.crt"),
                                clients_only},
        std::move(events));
    ASSERT_TRUE(files->load().has_value());
    HttpServerOptions options;
    options.address = "127.0.0.1:0";
    options.tls = [this] { return files->current(); };
    // Sixty handshakes take seconds of a processor that others use as well.
    options.header_timeout = options.request_timeout = 10min;
    server = std::make_unique<HttpServer>(io.get_executor(), clock.get(), options, introduce);
    ASSERT_TRUE(server->listen().has_value());
    asio::co_spawn(io, server->run(), [](const std::exception_ptr& error) { EXPECT_EQ(error, nullptr); });
  }
  void TearDown() override {
    if (server == nullptr) return;
    server->stop();
    io.run();
  }
  void run(asio::awaitable<void> task) {
    bool done = false;
    asio::co_spawn(io, std::move(task), [&done](const std::exception_ptr& error) {
      EXPECT_EQ(error, nullptr);
      done = true;
    });
    while (!done) io.run_one();
  }
  static Visit get(const std::string& request_path, const TestAuthority& authority) {
    Visit out;
    out.request = "GET " + request_path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    out.trusted = authority.ca_pem();
    return out;
  }
  Outcome see(const Visit& plan) {
    Outcome out;
    run(visit(server->port(), plan, &out));
    return out;
  }

  asio::io_context io{1};
  std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  MovedClock moved{clock.get()};
  TestAuthority authority{"authority"};
  std::unique_ptr<CertificateFiles> files;
  std::unique_ptr<HttpServer> server;
  std::vector<std::string> failures;

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("gso-tls-server-" + std::to_string(getpid()));
};

TEST_F(TlsServerTest, ARequestIsAnsweredOverTlsAndOldTlsAndPlainHttpAreRefused) {
  start();
  Visit plan = get("/metrics?x=1", authority);
  const Outcome out = see(plan);
  EXPECT_EQ(out.server, "operator");
  EXPECT_THAT(out.answer, testing::AllOf(HasSubstr("HTTP/1.1 200 OK"), HasSubstr("\r\n\r\nGET /metrics \n")));
  plan.greatest_version = TLS1_1_VERSION;
  EXPECT_FALSE(see(plan).shook_hands);
  plan.greatest_version = TLS1_2_VERSION;
  EXPECT_TRUE(see(plan).shook_hands);
  std::string answer;
  run(tell(server->port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", &answer));
  EXPECT_THAT(answer, testing::Not(HasSubstr("200")));
}

TEST_F(TlsServerTest, ACertificateIsRenewedUnderLoadWithoutALostRequest) {
  const TestAuthority next{"next-authority"};
  start();
  std::vector<Outcome> outcomes(60);
  std::size_t begun = 0;
  std::size_t ended = 0;
  Visit plan = get("/metrics", authority);
  plan.trusted += next.ca_pem();
  // Twenty more clients; returns while some of them are still being served.
  const auto twenty_more_come = [&] {
    for (int i = 0; i < 20; ++i) {
      asio::co_spawn(io, visit(server->port(), plan, &outcomes[begun++]), [&ended](const std::exception_ptr& error) {
        EXPECT_EQ(error, nullptr);
        ++ended;
      });
    }
    while (ended < begun - 10) io.run_one();
  };
  twenty_more_come();
  // At this look the renewal is half-way: the key is still the old one.
  const k8s::test::Identity renewed = next.issue({.common_name = "second"});
  write("tls.crt", renewed.cert_pem);
  moved.ahead += CertificateFiles::kPeriod;
  twenty_more_come();
  // Others of them shake hands only after the renewal.
  std::vector<std::string> half_way;
  for (const Outcome& out : std::span(outcomes).subspan(20, 20))
    if (out.shook_hands) half_way.push_back(out.server);
  write("tls.key", renewed.key_pem);
  moved.ahead += CertificateFiles::kPeriod;
  twenty_more_come();
  while (ended < begun) io.run_one();
  for (const Outcome& out : outcomes) EXPECT_THAT(out.answer, HasSubstr("200 OK"));
  EXPECT_EQ(outcomes.front().server, "operator");
  EXPECT_THAT(half_way, testing::AllOf(testing::SizeIs(testing::Ge(10)), testing::Each("operator")))
      << "half a renewal changes nothing";
  EXPECT_EQ(outcomes.back().server, "second");
  EXPECT_THAT(failures, testing::AllOf(testing::SizeIs(1), testing::Each(HasSubstr("private key"))));
}

TEST_F(TlsServerTest, FilesThatCannotBeUsedAreNamedAndTheLastGoodOnesServe) {
  start();
  for (const char* broken : {"", "no PEM at all\n"}) {
    write("tls.crt", broken);
    moved.ahead += CertificateFiles::kPeriod;
    EXPECT_EQ(see(get("/metrics", authority)).server, "operator");
    ASSERT_FALSE(failures.empty());
    EXPECT_THAT(failures.back(), HasSubstr(path("tls.crt")));
    failures.clear();
  }
  std::filesystem::remove(path("tls.crt"));
  CertificateFiles none(&moved, {path("tls.crt"), path("tls.key"), ""}, {});
  const k8s::Result<void> missing = none.load();
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr(path("tls.crt")));
}

TEST_F(TlsServerTest, AClientIsKnownByACertificateOfItsAuthority) {
  const TestAuthority clients{"clients"};
  start(clients.ca_pem());
  Visit plan = get("/metrics", authority);
  EXPECT_THAT(see(plan).answer, HasSubstr("\r\n\r\nGET /metrics \n")) << "without one, it can still send a token";
  plan.identity = clients.issue({.common_name = "prometheus", .names = {}, .organizations = {"monitoring", "ops"}});
  EXPECT_THAT(see(plan).answer, HasSubstr("by prometheus,monitoring,ops\n"));
  plan.identity = TestAuthority{"strangers"}.issue({.common_name = "prometheus", .names = {}});
  EXPECT_EQ(see(plan).answer, "") << "of another authority";
  plan.identity = clients.issue({.common_name = "prometheus", .names = {}, .expired = true});
  EXPECT_EQ(see(plan).answer, "") << "expired";
}

TEST_F(TlsServerTest, OnlyClientsOfItsAuthorityAreAnsweredWhereACertificateIsRequired) {
  const TestAuthority clients{"clients"};
  start(clients.ca_pem(), true);
  Visit plan = get("/validate", authority);
  EXPECT_EQ(see(plan).answer, "");
  plan.identity = authority.issue({.common_name = "kube-apiserver"});  // Of another authority.
  EXPECT_EQ(see(plan).answer, "");
  plan.identity = clients.issue({.common_name = "kube-apiserver"});
  EXPECT_THAT(see(plan).answer, HasSubstr("GET /validate  by kube-apiserver"));
}

TEST(ServerContext, WhatCannotBeUsedIsNamed) {
  const TestAuthority authority("authority");
  const k8s::test::Identity one = authority.issue({});
  const k8s::test::Identity other = authority.issue({});
  EXPECT_TRUE(make_server_context({one.cert_pem, one.key_pem, ""}).has_value());
  EXPECT_THAT(make_server_context({"x", one.key_pem, ""}).error().message, HasSubstr("the certificate cannot"));
  EXPECT_THAT(make_server_context({one.cert_pem, "x", ""}).error().message, HasSubstr("private key"));
  EXPECT_THAT(make_server_context({one.cert_pem, other.key_pem, ""}).error().message, HasSubstr("private key"));
  EXPECT_THAT(make_server_context({one.cert_pem, one.key_pem, "x"}).error().message, HasSubstr("authority of clients"));
}

}  // namespace
}  // namespace gso::tls_server_test
