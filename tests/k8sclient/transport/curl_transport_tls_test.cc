// Who is at the other end: certificates, names, proxies, and addresses that lead nowhere.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>

#include "k8sclient/transport/curl_easy.h"
#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_tls_test {
namespace {

class TlsTest : public TransportTest {
 protected:
  std::unique_ptr<H2Peer> peer_with(const LeafOptions& leaf, std::string client_ca = {}) {
    auto other = std::make_unique<H2Peer>(
        io, H2PeerOptions{.identity = authority().issue(leaf), .client_ca_pem = std::move(client_ca)});
    other->on_request = echo;
    return other;
  }
  Result<HttpResponse> ask(Connection connection) {
    connect(std::move(connection));
    return send(get("/x"));
  }
  HttpResponse reach(Connection connection) { return answer_of(ask(std::move(connection))); }
};

TEST_F(TlsTest, AServerSignedByAnotherCaIsRefusedWithTheRemedy) {
  auto connection = connection_to(peer.url());
  connection.ca_pem = TestAuthority("another CA").ca_pem();
  EXPECT_FAILS(ask(connection), Reason::transport, "not signed by the configured CA");
  connection.ca_pem.clear();
  EXPECT_FAILS(ask(connection), Reason::transport, "not signed by a CA that this machine trusts");
  EXPECT_TRUE(peer.requests().empty());
}

TEST_F(TlsTest, ACertificateForAnotherNameIsRefusedUnlessTlsServerNameSaysSo) {
  const auto named = peer_with({.names = {"DNS:kubernetes.default.svc"}});
  auto connection = connection_to(named->url());
  const auto refused = ask(connection);
  EXPECT_FAILS(refused, Reason::transport, "the server's certificate is not for 127.0.0.1:");
  EXPECT_FAILS(refused, Reason::transport, "tls-server-name");
  connection.tls_server_name = "kubernetes.default.svc";
  reach(connection);
  EXPECT_EQ(named->connections().back()->server_name(), "kubernetes.default.svc");
  EXPECT_EQ(named->requests().back()->headers.at(":authority"), "127.0.0.1:" + std::to_string(named->port()));
  connection.tls_server_name = "other.name";
  EXPECT_FAILS(ask(connection), Reason::transport, "not for other.name");
}

TEST_F(TlsTest, AnExpiredCertificateIsRefusedWithTheRemedyUnlessVerificationIsSkippedWhichReachesAnyServer) {
  const auto expired = peer_with({.names = {"DNS:elsewhere"}, .expired = true});
  auto connection = connection_to(expired->url());
  EXPECT_FAILS(ask(connection), Reason::transport, "certificate has expired; renew it");
  connection.insecure_skip_tls_verify = true;
  connection.ca_pem.clear();
  reach(connection);
}

TEST_F(TlsTest, AClientCertificateIsShownWhenTheServerWantsOne) {
  const TestAuthority clients("client CA");
  const auto strict = peer_with({}, clients.ca_pem());
  auto connection = connection_to(strict->url());
  EXPECT_FAILS(ask(connection), Reason::transport, "certificate");
  const Identity stranger = TestAuthority("another CA").issue({.common_name = "stranger"});
  connection.client_cert_pem = stranger.cert_pem;
  connection.client_key_pem = stranger.key_pem;
  EXPECT_FAILS(ask(connection), Reason::transport, "certificate");
  const Identity known = clients.issue({.common_name = "operator"});
  connection.client_cert_pem = known.cert_pem;
  connection.client_key_pem = known.key_pem;
  reach(connection);
}

TEST_F(TlsTest, ACredentialsOwnCertificateReplacesTheConnections) {
  const TestAuthority clients("client CA");
  const auto strict = peer_with({}, clients.ca_pem());
  const auto credentials = std::make_shared<FakeCredentials>();
  credentials->current = std::string();
  credentials->identity = clients.issue({.common_name = "from exec plugin"});
  auto connection = connection_to(strict->url());
  connection.credentials = credentials;
  reach(connection);
  EXPECT_FALSE(strict->requests()[0]->headers.contains("authorization"));
}

TEST_F(TlsTest, UnusableCertificatesAreNamed) {
  auto connection = connection_to(peer.url());
  connection.client_cert_pem = "not PEM";
  EXPECT_FAILS(ask(connection), Reason::invalid, "client certificate without its key");
  connection.client_key_pem = "not PEM either";
  EXPECT_FAILS(ask(connection), Reason::transport, "client certificate or its key is not usable");
  connection = connection_to(peer.url());
  connection.ca_pem = "not PEM";
  EXPECT_FAILS(ask(connection), Reason::transport, "configured CA is not usable");
  const Identity one = authority().issue({.common_name = "one"});
  connection = connection_to(peer.url());
  connection.client_cert_pem = one.cert_pem;
  connection.client_key_pem = authority().issue({.common_name = "two"}).key_pem;
  EXPECT_FAILS(ask(connection), Reason::transport, "client certificate or its key is not usable");
}

TEST_F(TlsTest, AnAddressThatLeadsElsewhereOrNowhereIsNamedWithWhatIsThere) {
  TcpServer plain(io, [](TcpConnection& from) { from.write("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  TcpServer rude(io, [](TcpConnection& from) { from.close(); });
  std::uint16_t nobody = 0;
  {
    const TcpServer gone(io);
    nobody = gone.port();
  }
  const std::pair<std::string, std::string> addresses[] = {
      {local("https", plain.port()), "does not speak TLS; is this an http:// address?"},
      {local("https", rude.port()), "TLS handshake failed"},
      {local("http", peer.port()), "is this an https:// address?"},
      {local("https", nobody), "127.0.0.1:" + std::to_string(nobody)},
      {local("https", nobody), "Connection refused"},
      {"https://no-such-host.invalid:6443", "cannot resolve the server's name"},
  };
  for (const auto& [address, message] : addresses)
    EXPECT_FAILS(ask(connection_to(address)), Reason::transport, message);
}

TEST_F(TlsTest, ATlsServerThatAnswersPlainHttpIsRecognisedByReadsAndStreamsAndItsAddressNamed) {
  struct Case {
    const char* name;
    std::string answer;
    bool wants_tls;
  };
  const Case cases[] = {
      {"Go", "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", true},
      {"nginx",
       "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html><center>The plain HTTP request was sent to HTTPS "
       "port</center></html>",
       true},
      {"another 400", "HTTP/1.0 400 Bad Request\r\n\r\nno such thing\n", false},
      {"a 400 without words", "HTTP/1.0 400 Bad Request\r\n\r\n", false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TcpServer server(io, [&c](TcpConnection& from) {
      from.write(c.answer);
      from.close();
    });
    const std::string address = local("http", server.port());
    connect(connection_to(address));
    const auto response = send(get("/api/v1/nodes"));
    auto opened = run(transport->open(get("/api/v1/nodes?watch=true")));
    if (c.wants_tls) {
      const std::string remedy = "must be " + local("https", server.port()) + ", not " + address;
      EXPECT_FAILS(response, Reason::invalid, remedy);
      EXPECT_FAILS(opened, Reason::invalid, remedy);
      continue;
    }
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 400);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ((*opened)->status(), 400);
    EXPECT_EQ(read(**opened).value_or("broken"), response->body);
  }
}

TEST_F(TlsTest, AnAddressThatIsNoneIsRefusedWithoutShowingPasswords) {
  for (const std::string server :
       {"", "127.0.0.1:6443", "ftp://host:1", "https://", "https://user:secret@host:1", "https://host:99999999"}) {
    const auto refused = ask(connection_to(server));
    EXPECT_FAILS(refused, Reason::invalid, "address");
    EXPECT_FALSE(refused.error().message.contains("secret"));
  }
}

TEST_F(TlsTest, AProxyCarriesRequestsAndStreamsThroughConnect) {
  ConnectProxy proxy(io);
  peer.on_request = echo;
  auto connection = connection_to(peer.url());
  connection.proxy_url = "http://user:secret@127.0.0.1:" + std::to_string(proxy.port());
  const HttpResponse response = reach(connection);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.front().first, "content-type") << "the proxy's own headers are not the answer's";
  EXPECT_EQ(*read_bytes(*open("/watch"), 6), "/watch");
  ASSERT_EQ(proxy.heads.size(), 2U);
  EXPECT_THAT(proxy.heads[0], testing::StartsWith("CONNECT 127.0.0.1:" + std::to_string(peer.port()) + " "));
  EXPECT_EQ(proxy.heads[0].find("token"), std::string::npos);
}

TEST_F(TlsTest, TheEnvironmentNeitherExemptsFromAnExplicitProxyNorPutsOneBeforeALoopbackServer) {
  ConnectProxy proxy(io);
  peer.on_request = echo;
  auto connection = connection_to(peer.url());
  connection.proxy_url = local("http", proxy.port());
  setenv("no_proxy", "*", 1);
  const auto through = ask(connection);
  unsetenv("no_proxy");
  EXPECT_TRUE(through);
  EXPECT_EQ(proxy.heads.size(), 1U);
  setenv("https_proxy", "http://127.0.0.1:1", 1);
  const auto direct = ask(connection_to(peer.url()));
  unsetenv("https_proxy");
  EXPECT_TRUE(direct);
}

TEST_F(TlsTest, AProxyIsUsedTogetherWithTlsServerName) {
  ConnectProxy proxy(io);
  const auto named = peer_with({.names = {"DNS:kubernetes.default.svc"}});
  auto connection = connection_to(named->url());
  connection.tls_server_name = "kubernetes.default.svc";
  connection.proxy_url = local("http", proxy.port());
  reach(connection);
  ASSERT_EQ(proxy.heads.size(), 1U);
  EXPECT_THAT(proxy.heads[0], testing::StartsWith("CONNECT 127.0.0.1:" + std::to_string(named->port()) + " "));
}

TEST_F(TlsTest, AProxyThatRefusesIsNamedWithoutItsPassword) {
  ConnectProxy proxy(io, "403 Forbidden");
  auto connection = connection_to(peer.url());
  connection.proxy_url = "http://user:secret@127.0.0.1:" + std::to_string(proxy.port());
  const auto refused = ask(connection);
  EXPECT_FAILS(refused, Reason::transport, "the proxy refused the connection with status 403");
  EXPECT_FALSE(refused.error().message.contains("secret"));
  connection.proxy_url = "gopher://user:secret@127.0.0.1:1";
  const auto unusable = ask(connection);
  EXPECT_FAILS(unusable, Reason::invalid, "proxy-url");
  EXPECT_FALSE(unusable.error().message.contains("secret"));
}

TEST_F(TlsTest, PlainHttpServesManyRequestsAtOnceAndReusesConnections) {
  TcpServer server(io, answer_http);
  connect(connection_to(local("http", server.port())));
  for (int round = 0; round < 5; ++round)
    for (auto& one : start_many(8, get("/x"))) EXPECT_EQ(wait(one)->body, "{}");
  EXPECT_LE(server.connections().size(), 8U);
}

TEST_F(TlsTest, AKeptHttpConnectionThatTheServerClosedIsReplacedForReads) {
  int answered = 0;
  TcpServer server(io, [&](TcpConnection& from) {
    if (!answer_http(from)) return;
    ++answered;
    from.close();  // Without having announced it.
  });
  connect(connection_to(local("http", server.port())));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(send(get("/x")));
  EXPECT_EQ(answered, 3);
}

// Our end of the connection to `port`, found among this process's descriptors.
int socket_connected_to(std::uint16_t port) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in remote{};
    socklen_t size = sizeof remote;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &size) == 0 && ntohs(remote.sin_port) == port) return fd;
  }
  return -1;
}

int socket_option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  getsockopt(fd, level, name, &value, &size);
  return value;
}

TEST_F(TlsTest, SocketsNoticeDeadPeersAndAreNotInheritedByPlugins) {
  connect(connection_to(peer.url()), {.tcp_keepalive_idle = std::chrono::seconds(31),
                                      .tcp_keepalive_interval = std::chrono::seconds(11),
                                      .tcp_user_timeout = milliseconds(29'000)});
  peer.on_request = echo;
  ASSERT_TRUE(send(get("/x")));
  const int fd = socket_connected_to(peer.port());
  ASSERT_GE(fd, 0);
  EXPECT_EQ(socket_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 31);
  EXPECT_EQ(socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 11);
  EXPECT_EQ(socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 29'000);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
}  // namespace k8s::test::curl_transport_tls_test
