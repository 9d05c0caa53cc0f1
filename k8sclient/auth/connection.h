// What is needed to reach one API server. Produced by kubeconfig.h or in_cluster.h; consumed by curl_transport.h.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

// Supplies the bearer token; never logs it. Implementations re-read files every minute and run exec plugins.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // Empty string: no Authorization header. Many requests may ask at the same time. Where a token must be waited for,
  // the caller's `deadline` ends its wait with `timeout`; what yields the token goes on for the callers after it.
  virtual boost::asio::awaitable<Result<std::string>> token(MonoTime deadline) = 0;
  // PEM client certificate and key that the credential supplies (exec plugins may), or empty. Read after token().
  [[nodiscard]] virtual std::string client_cert_pem() const { return {}; }
  [[nodiscard]] virtual std::string client_key_pem() const { return {}; }
  // The server said 401: the next token() must not come from a cache.
  virtual void invalidate() = 0;
};

struct Connection {
  std::string server;  // "https://host:port[/prefix]" or "http://host:port[/prefix]".
  std::string ca_pem;  // Empty: the system's roots.
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;  // SNI, and the name that the certificate must carry. Empty: the server's host.
  std::string proxy_url;        // "http://", "https://" or "socks5://". Empty: HTTPS_PROXY and friends decide.
  std::string client_cert_pem;
  std::string client_key_pem;
  // Where these texts came from; empty for those that stood in the configuration. The transport re-reads the files.
  std::string ca_file;
  std::string client_cert_file;
  std::string client_key_file;
  std::string namespace_name = "default";
  std::string user_agent;
  std::vector<std::pair<std::string, std::string>> headers;  // Sent with every request: credentials.h.
  std::string identity;  // Whose credentials they are, for people: 'user "x" of context "y" (kubeconfig …)'.
  std::shared_ptr<CredentialSource> credentials;  // May be null: no Authorization header.
};

}  // namespace k8s
