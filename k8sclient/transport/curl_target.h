// One API server as libcurl reaches it: its address, its certificates, and why it could not be reached. Not for use
// above curl_transport.h.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "k8sclient/auth/connection.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/curl_transport.h"
#include "k8sclient/value/error.h"

namespace k8s {

// One API server, checked and split up once. Shared by all its exchanges.
struct CurlTarget {
  Connection connection;
  CurlTransportOptions options;
  std::shared_ptr<TransportStats> stats;  // Never null.
  bool tls = true;
  bool bypass_proxies = false;  // A loopback server is never reached through a proxy of the environment.
  std::string authority;        // "host:port", as messages and the Host header show it.
  std::string url_base;         // Scheme, authority (of tls_server_name where given) and prefix.
  std::string connect_to;       // libcurl's "name:port:host:port" when the URL's host is not the server's.
};

// Fails with `invalid` when the server's address cannot be used.
[[nodiscard]] Result<std::shared_ptr<const CurlTarget>> make_curl_target(Connection connection,
                                                                         CurlTransportOptions options);

// "GET /path on host:port: " and the text.
[[nodiscard]] std::string describe(const CurlTarget& target, Method method, std::string_view path,
                                   std::string_view text);

// --- Why libcurl ended an exchange without an answer, in words that help: what failed, and what would be right.

struct CurlFailure {
  CURLcode code = CURLE_OK;
  std::string_view text;       // libcurl's error buffer, may be empty.
  long tls_verify_result = 0;  // CURLINFO_SSL_VERIFYRESULT
  long os_errno = 0;           // CURLINFO_OS_ERRNO
  long proxy_status = 0;       // CURLINFO_HTTP_CONNECTCODE
};

// The message has neither method nor path nor host: describe() puts them before it.
[[nodiscard]] Error explain_curl_failure(const CurlTarget& target, const CurlFailure& failure);

// --- The certificates and the key that a connection's TLS uses, re-read from their files while it lives.

// How long certificates read from files are used without another look: as long as tokens are.
inline constexpr Duration kTlsFilePeriod = std::chrono::minutes(1);

// PEM texts. Never changed once made: exchanges point into them.
struct TlsTexts {
  std::string ca_pem;
  std::string client_cert_pem;
  std::string client_key_pem;
  friend bool operator==(const TlsTexts&, const TlsTexts&) = default;
};

// `used`, with what the files of the connection hold now. A file that cannot be read leaves its text.
[[nodiscard]] TlsTexts reread(const Connection& connection, TlsTexts used);

}  // namespace k8s
