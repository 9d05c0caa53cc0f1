// The address of an API server, checked and split up for libcurl (declared in curl_easy.h).
#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "k8sclient/transport/curl_easy.h"

namespace k8s {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, FreeUrl>;

std::string part_of(const Url& url, CURLUPart what, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), what, &text, flags) != CURLUE_OK) return {};
  std::string result(text);
  curl_free(text);
  return result;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]";
}

// Never shows the address: it may carry a password.
Result<void> check_proxy(const std::string& proxy_url) {
  const Url url(curl_url());
  const bool parsed = curl_url_set(url.get(), CURLUPART_URL, proxy_url.c_str(), CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
  const std::string scheme = parsed ? part_of(url, CURLUPART_SCHEME) : std::string();
  if (scheme != "http" && scheme != "https" && scheme != "socks5" && scheme != "socks5h") {
    return fail(Reason::invalid, "the proxy's address (proxy-url) must be http://, https:// or socks5://host:port");
  }
  return {};
}

// libcurl parses keys and certificates per connection; a missing half is better said at once.
Result<void> check_identity(const Connection& connection) {
  if (connection.client_cert_pem.empty() != connection.client_key_pem.empty()) {
    return fail(Reason::invalid,
                fmt::format("the connection to {} has a client {} without its {}; both are needed", connection.server,
                            connection.client_cert_pem.empty() ? "key" : "certificate",
                            connection.client_cert_pem.empty() ? "certificate" : "key"));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const CurlTarget>> make_curl_target(Connection connection, CurlTransportOptions options) {
  const Url url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, connection.server.c_str(), 0) != CURLUE_OK ||
      connection.server.find("://") == std::string::npos) {
    return fail(Reason::invalid,
                fmt::format("the server's address '{}' must be https://host:port or http://host:port",
                            connection.server.find('@') == std::string::npos ? connection.server : "…"));
  }
  const std::string scheme = part_of(url, CURLUPART_SCHEME);
  const std::string host = part_of(url, CURLUPART_HOST);
  if (scheme != "https" && scheme != "http") {
    return fail(Reason::invalid, fmt::format("the server's address on {} begins with {}://; it must be https:// or "
                                             "http://",
                                             host, scheme));
  }
  if (!part_of(url, CURLUPART_USER).empty() || !part_of(url, CURLUPART_PASSWORD).empty() ||
      !part_of(url, CURLUPART_QUERY).empty() || !part_of(url, CURLUPART_FRAGMENT).empty()) {
    return fail(Reason::invalid, fmt::format("the server's address on {} must have no user, password, query or "
                                             "fragment",
                                             host));
  }
  if (!connection.proxy_url.empty()) {
    if (auto checked = check_proxy(connection.proxy_url); !checked) return std::unexpected(checked.error());
  }
  if (auto checked = check_identity(connection); !checked) return std::unexpected(checked.error());

  auto target = std::make_shared<CurlTarget>();
  const std::string port = part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::string prefix = part_of(url, CURLUPART_PATH);
  while (prefix.ends_with('/')) prefix.pop_back();
  target->tls = scheme == "https";
  target->bypass_proxies = is_loopback(host);
  target->authority = host + ":" + port;
  const std::string& name = connection.tls_server_name;
  if (target->tls && !name.empty() && name != host) {
    // libcurl takes SNI and the name to verify from the URL: the URL gets that name, the connection goes to the host.
    target->connect_to = fmt::format("{}:{}:{}:{}", name, port, host, port);
    target->url_base = fmt::format("{}://{}:{}{}", scheme, name, port, prefix);
  } else {
    target->url_base = fmt::format("{}://{}:{}{}", scheme, host, port, prefix);
  }
  target->stats = options.stats != nullptr ? options.stats : std::make_shared<TransportStats>();
  target->connection = std::move(connection);
  target->options = std::move(options);
  return std::shared_ptr<const CurlTarget>(std::move(target));
}

}  // namespace k8s
