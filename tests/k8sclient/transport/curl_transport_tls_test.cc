// Who is at the other end: certificates, names, proxies, and addresses that lead nowhere.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>

#include "k8sclient/transport/curl_easy.h"
#include "tests/k8sclient/transport/scripted_tcp.h"
#include "tests/k8sclient/transport/transport_fixture.h"

namespace k8s::test::curl_transport_tls_test {
namespace {

class TlsTest : public TransportTest {
 protected:
  std::unique_ptr<H2Peer> peer_with(const LeafOptions& leaf, std::string client_ca = {}) {
    auto other = std::make_unique<H2Peer>(
        io, H2PeerOptions{.identity = authority().issue(leaf), .client_ca_pem = std::move(client_ca)});
    other->on_request([](const H2StreamPtr& stream) { stream->respond(200, stream->path); });
    return other;
  }
  Result<HttpResponse> ask(Connection connection) {
    connect(std::move(connection));
    return send(get("/x"));
  }
  std::string local(const std::string& scheme, std::uint16_t port) {
    return scheme + "://127.0.0.1:" + std::to_string(port);
  }
};

TEST_F(TlsTest, AServerSignedByAnotherCaIsRefusedWithTheRemedy) {
  auto connection = connection_to(peer.url());
  connection.ca_pem = TestAuthority("another CA").ca_pem();
  EXPECT_FAILS(ask(connection), Reason::transport, "not signed by the configured CA");
  connection.ca_pem.clear();
  EXPECT_FAILS(ask(connection), Reason::transport, "not signed by a CA that this machine trusts");
  EXPECT_TRUE(peer.requests().empty());
}

TEST_F(TlsTest, AnExpiredCertificateIsRefusedWithTheRemedy) {
  const auto expired = peer_with({.expired = true});
  EXPECT_FAILS(ask(connection_to(expired->url())), Reason::transport, "certificate has expired; renew it");
}

TEST_F(TlsTest, ACertificateForAnotherNameIsRefusedUnlessTlsServerNameSaysSo) {
  const auto named = peer_with({.names = {"DNS:kubernetes.default.svc"}});
  auto connection = connection_to(named->url());
  const auto refused = ask(connection);
  EXPECT_FAILS(refused, Reason::transport, "the server's certificate is not for 127.0.0.1:");
  EXPECT_FAILS(refused, Reason::transport, "tls-server-name");
  connection.tls_server_name = "kubernetes.default.svc";
  auto response = ask(connection);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(named->connections().back()->server_name(), "kubernetes.default.svc");
  EXPECT_EQ(named->requests().back()->headers.at(":authority"), "127.0.0.1:" + std::to_string(named->port()));
  connection.tls_server_name = "other.name";
  EXPECT_FAILS(ask(connection), Reason::transport, "not for other.name");
}

TEST_F(TlsTest, SkippingVerificationReachesAnyServer) {
  const auto expired = peer_with({.names = {"DNS:elsewhere"}, .expired = true});
  auto connection = connection_to(expired->url());
  connection.insecure_skip_tls_verify = true;
  connection.ca_pem.clear();
  auto response = ask(connection);
  EXPECT_TRUE(response) << response.error().message;
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
  auto response = ask(connection);
  EXPECT_TRUE(response) << response.error().message;
}

TEST_F(TlsTest, ACredentialsOwnCertificateReplacesTheConnections) {
  const TestAuthority clients("client CA");
  const auto strict = peer_with({}, clients.ca_pem());
  const auto credentials = std::make_shared<FakeCredentials>();
  credentials->current = std::string();
  credentials->identity = clients.issue({.common_name = "from exec plugin"});
  auto connection = connection_to(strict->url());
  connection.credentials = credentials;
  auto response = ask(connection);
  ASSERT_TRUE(response) << response.error().message;
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

TEST_F(TlsTest, APlainTextServerOnHttpsIsRecognised) {
  TcpServer plain(io, [](const TcpConnectionPtr& client) {
    client->on_data = [](TcpConnection& from) { from.write("HTTP/1.1 400 Bad Request\r\n\r\n"); };
  });
  EXPECT_FAILS(ask(connection_to(local("https", plain.port()))), Reason::transport,
               "does not speak TLS; is this an http:// address?");
}

TEST_F(TlsTest, AServerThatHangsUpDuringTheHandshakeIsReported) {
  TcpServer rude(io,
                 [](const TcpConnectionPtr& client) { client->on_data = [](TcpConnection& from) { from.close(); }; });
  EXPECT_FAILS(ask(connection_to(local("https", rude.port()))), Reason::transport, "TLS handshake failed");
}

TEST_F(TlsTest, ATlsServerOnHttpIsRecognised) {
  EXPECT_FAILS(ask(connection_to(local("http", peer.port()))), Reason::transport, "is this an https:// address?");
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
    TcpServer server(io, [&c](const TcpConnectionPtr& client) {
      client->on_data = [&c](TcpConnection& from) {
        from.write(c.answer);
        from.close();
      };
    });
    const std::string address = local("http", server.port());
    connect(connection_to(address));
    const auto response = send(get("/api/v1/nodes"));
    auto opened = run(transport->open(get("/api/v1/nodes?watch=true")));
    if (c.wants_tls) {
      EXPECT_FAILS(response, Reason::invalid, "must be " + local("https", server.port()) + ", not " + address);
      EXPECT_FAILS(opened, Reason::invalid, "must be " + local("https", server.port()) + ", not " + address);
      continue;
    }
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 400);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ((*opened)->status(), 400);
    EXPECT_EQ(read(**opened).value_or("broken"), response->body);
  }
}

TEST_F(TlsTest, APortWithNobodyBehindItIsNamed) {
  boost::asio::ip::tcp::acceptor taken(io, {boost::asio::ip::address_v4::loopback(), 0});
  const std::uint16_t port = taken.local_endpoint().port();
  taken.close();
  const auto refused = ask(connection_to(local("https", port)));
  EXPECT_FAILS(refused, Reason::transport, "127.0.0.1:" + std::to_string(port));
  EXPECT_FAILS(refused, Reason::transport, "Connection refused");
}

TEST_F(TlsTest, ANameThatDoesNotResolveIsNamed) {
  EXPECT_FAILS(ask(connection_to("https://no-such-host.invalid:6443")), Reason::transport,
               "cannot resolve the server's name");
}

TEST_F(TlsTest, AnAddressThatIsNoneIsRefusedWithoutShowingPasswords) {
  for (const std::string server :
       {"", "127.0.0.1:6443", "ftp://host:1", "https://", "https://user:secret@host:1", "https://host:99999999"}) {
    const auto refused = ask(connection_to(server));
    EXPECT_FAILS(refused, Reason::invalid, "address");
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
  }
}

TEST_F(TlsTest, AProxyCarriesRequestsAndStreamsThroughConnect) {
  ConnectProxy proxy(io);
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(200, stream->path); });
  auto connection = connection_to(peer.url());
  connection.proxy_url = "http://user:secret@127.0.0.1:" + std::to_string(proxy.port());
  connect(connection);
  auto response = send(get("/x"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->headers.front().first, "content-type") << "the proxy's own headers are not the answer's";
  EXPECT_EQ(*read_bytes(*open("/watch"), 6), "/watch");
  ASSERT_EQ(proxy.heads().size(), 2U);
  EXPECT_THAT(proxy.heads()[0], testing::StartsWith("CONNECT 127.0.0.1:" + std::to_string(peer.port()) + " "));
  EXPECT_EQ(proxy.heads()[0].find("token"), std::string::npos);
}

TEST_F(TlsTest, AnExplicitProxyIsUsedWhateverTheEnvironmentExempts) {
  ConnectProxy proxy(io);
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(200); });
  auto connection = connection_to(peer.url());
  connection.proxy_url = local("http", proxy.port());
  setenv("no_proxy", "*", 1);
  auto response = ask(connection);
  unsetenv("no_proxy");
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(proxy.heads().size(), 1U);
}

TEST_F(TlsTest, AProxyIsUsedTogetherWithTlsServerName) {
  ConnectProxy proxy(io);
  const auto named = peer_with({.names = {"DNS:kubernetes.default.svc"}});
  auto connection = connection_to(named->url());
  connection.tls_server_name = "kubernetes.default.svc";
  connection.proxy_url = local("http", proxy.port());
  auto response = ask(connection);
  ASSERT_TRUE(response) << response.error().message;
  ASSERT_EQ(proxy.heads().size(), 1U);
  EXPECT_THAT(proxy.heads()[0], testing::StartsWith("CONNECT 127.0.0.1:" + std::to_string(named->port()) + " "));
}

TEST_F(TlsTest, AProxyThatRefusesIsNamedWithoutItsPassword) {
  ConnectProxy proxy(io, "403 Forbidden");
  auto connection = connection_to(peer.url());
  connection.proxy_url = "http://user:secret@127.0.0.1:" + std::to_string(proxy.port());
  const auto refused = ask(connection);
  EXPECT_FAILS(refused, Reason::transport, "the proxy refused the connection with status 403");
  EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
  connection.proxy_url = "gopher://user:secret@127.0.0.1:1";
  const auto unusable = ask(connection);
  EXPECT_FAILS(unusable, Reason::invalid, "proxy-url");
  EXPECT_EQ(unusable.error().message.find("secret"), std::string::npos);
}

TEST_F(TlsTest, PlainHttpServesManyRequestsAtOnceAndReusesConnections) {
  TcpServer server(io, [](const TcpConnectionPtr& client) {
    client->on_data = [](TcpConnection& from) {
      const std::string head = take_request_head(from);
      if (head.empty()) return;
      from.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    };
  });
  connect(connection_to(local("http", server.port())));
  for (int round = 0; round < 5; ++round) {
    std::vector<Pending<Response>> pending;
    for (int i = 0; i < 8; ++i) pending.push_back(start(transport->send(get("/x"))));
    for (auto& one : pending) EXPECT_EQ(wait(one)->body, "{}");
  }
  EXPECT_LE(server.connections().size(), 8U);
}

TEST_F(TlsTest, AKeptHttpConnectionThatTheServerClosedIsReplacedForReads) {
  int answered = 0;
  TcpServer server(io, [&](const TcpConnectionPtr& client) {
    client->on_data = [&](TcpConnection& from) {
      if (take_request_head(from).empty()) return;
      from.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
      ++answered;
      from.close();  // Without having announced it.
    };
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
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(200); });
  ASSERT_TRUE(send(get("/x")));
  const int fd = socket_connected_to(peer.port());
  ASSERT_GE(fd, 0);
  EXPECT_EQ(socket_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 31);
  EXPECT_EQ(socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 11);
  EXPECT_EQ(socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 29'000);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(TlsTest, ALoopbackServerIsReachedWithoutTheEnvironmentsProxy) {
  peer.on_request([](const H2StreamPtr& stream) { stream->respond(200); });
  setenv("https_proxy", "http://127.0.0.1:1", 1);
  auto response = ask(connection_to(peer.url()));
  unsetenv("https_proxy");
  EXPECT_TRUE(response) << response.error().message;
}

}  // namespace
}  // namespace k8s::test::curl_transport_tls_test
