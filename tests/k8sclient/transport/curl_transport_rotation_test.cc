// Certificates that are replaced in their files while the transport lives.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "k8sclient/transport/curl_target.h"
#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_rotation_test {
namespace {

// The real clock, moved forward by hand.
class MovedClock final : public Clock {
 public:
  explicit MovedClock(Clock* real) : real_(real) {}
  WallTime now() const override { return real_->now(); }
  MonoTime monotonic() const override { return real_->monotonic() + ahead; }
  boost::asio::awaitable<void> sleep_until(MonoTime deadline) override { return real_->sleep_until(deadline); }
  std::unique_ptr<Signal> make_signal() override { return real_->make_signal(); }
  Duration ahead{0};

 private:
  Clock* real_;
};

class RotationTest : public TransportTest {
 protected:
  RotationTest() {
    std::filesystem::create_directories(folder_);
    peer.on_request = echo;
  }
  ~RotationTest() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  // By the clock that is moved by hand, with the CA in a file.
  void connect_moved() {
    auto connection = connection_to(peer.url());
    connection.ca_file = file("ca.crt", connection.ca_pem);
    transport = make_curl_transport(io.get_executor(), std::move(connection), &moved, {.stats = stats});
  }
  MovedClock moved{clock.get()};

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("k8sclient-rotation-" + std::to_string(getpid()));
};

TEST_F(RotationTest, ACaReplacedInItsFileIsUsedByTheRequestThatTheOldOneFailed) {
  auto connection = connection_to(peer.url());
  connection.ca_pem = TestAuthority("old CA").ca_pem();
  connection.ca_file = file("ca.crt", connection.ca_pem);
  connect(connection);
  EXPECT_FAILS(send(get("/x")), Reason::transport, "not signed by the configured CA");
  file("ca.crt", authority().ca_pem());
  answer_to(write(Method::patch, "/y", "{}"));
  EXPECT_EQ(peer.requests().size(), 1U);
}

TEST_F(RotationTest, ACaReplacedInItsFileJudgesNewConnectionsWithinAMinute) {
  connect_moved();
  HttpRequest lease = get("/lease");
  lease.channel = Channel::lease;
  ASSERT_TRUE(send(get("/x")));
  ASSERT_TRUE(send(lease));
  file("ca.crt", TestAuthority("another CA").ca_pem());
  moved.ahead = kTlsFilePeriod - std::chrono::seconds(30);
  ASSERT_TRUE(send(get("/x"))) << "not looked at again yet";
  EXPECT_EQ(stats->connections_opened, 2U);
  moved.ahead = kTlsFilePeriod + std::chrono::seconds(1);
  EXPECT_FAILS(send(get("/x")), Reason::transport, "not signed by the configured CA");
  EXPECT_FAILS(send(lease), Reason::transport, "not signed by the configured CA");
}

TEST_F(RotationTest, AFileThatIsGoneOrEmptyLeavesTheLastCertificateInUse) {
  connect_moved();
  ASSERT_TRUE(send(get("/x")));
  file("ca.crt", "");
  moved.ahead += kTlsFilePeriod;
  EXPECT_TRUE(send(get("/x")));
  std::filesystem::remove(folder_ / "ca.crt");
  moved.ahead += kTlsFilePeriod;
  EXPECT_TRUE(send(get("/x")));
  EXPECT_EQ(stats->connections_opened, 1U);
}

TEST_F(RotationTest, A401LooksAtTheClientCertificateAgainAndShowsTheNewOneOnANewConnection) {
  const TestAuthority clients("client CA");
  H2Peer strict(io, {.identity = peer_identity(), .client_ca_pem = clients.ca_pem()});
  // As an API server does with a certificate that has expired since: the connection stands, the request is refused.
  strict.on_request = [&](const H2StreamPtr& stream) {
    const bool first = stream->connection.lock() == strict.connections().front();
    stream->respond(first ? 401 : 200);
  };
  auto connection = connection_to(strict.url());
  const Identity old = clients.issue({.common_name = "operator"});
  connection.client_cert_pem = old.cert_pem;
  connection.client_key_pem = old.key_pem;
  connection.client_cert_file = file("tls.crt", old.cert_pem);
  connection.client_key_file = file("tls.key", old.key_pem);
  connect(connection);
  EXPECT_EQ(answer_to(get("/x")).status, 401) << "the files hold nothing new";
  const Identity fresh = clients.issue({.common_name = "operator"});
  file("tls.crt", fresh.cert_pem);
  file("tls.key", fresh.key_pem);
  EXPECT_EQ(answer_to(get("/x")).status, 200);
  EXPECT_EQ(strict.connections().size(), 2U);
}

}  // namespace
}  // namespace k8s::test::curl_transport_rotation_test
