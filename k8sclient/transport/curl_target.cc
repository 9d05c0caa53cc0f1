#include "k8sclient/transport/curl_target.h"

#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include <system_error>
#include <utility>

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
  if (scheme != "http" && scheme != "https" && scheme != "socks5" && scheme != "socks5h")
    return fail(Reason::invalid, "the proxy's address (proxy-url) must be http://, https:// or socks5://host:port");
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
  const auto has = [&url](CURLUPart part) { return !part_of(url, part).empty(); };
  if (has(CURLUPART_USER) || has(CURLUPART_PASSWORD) || has(CURLUPART_QUERY) || has(CURLUPART_FRAGMENT)) {
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
  // libcurl takes SNI and the name to verify from the URL: the URL gets that name, the connection goes to the host.
  const std::string& name = target->tls && !connection.tls_server_name.empty() ? connection.tls_server_name : host;
  if (name != host) target->connect_to = fmt::format("{}:{}:{}:{}", name, port, host, port);
  target->url_base = fmt::format("{}://{}:{}{}", scheme, name, port, prefix);
  target->stats = options.stats != nullptr ? options.stats : std::make_shared<TransportStats>();
  target->connection = std::move(connection);
  target->options = std::move(options);
  return std::shared_ptr<const CurlTarget>(std::move(target));
}

// --- See curl_target.h. The texts matched here are those of libcurl 8.14 with OpenSSL 3.0; where one does not match,
// the reader still gets libcurl's own words.

namespace {

std::string libcurl_words(const CurlFailure& failure) {
  return failure.text.empty() ? curl_easy_strerror(failure.code) : std::string(failure.text);
}

std::string explain_untrusted(const CurlTarget& target, const CurlFailure& failure) {
  // The chain is good, the name is not; libcurl's result then still stands at its initial value.
  if (failure.tls_verify_result == X509_V_OK || failure.tls_verify_result == X509_V_ERR_UNSPECIFIED) {
    const std::string& name = target.connection.tls_server_name;
    return fmt::format(
        "the server's certificate is not for {} ({}); use one of its names in the address, or set "
        "tls-server-name to one",
        name.empty() ? target.authority : name, libcurl_words(failure));
  }
  const std::string why = X509_verify_cert_error_string(failure.tls_verify_result);
  switch (failure.tls_verify_result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("the server's certificate is not valid now: {}; renew it, or correct this machine's clock",
                         why);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format("the server's certificate is not signed by {}: {}; the CA must be the one that signed it",
                         target.connection.ca_pem.empty() ? "a CA that this machine trusts" : "the configured CA", why);
    default:
      return fmt::format("the server's certificate is refused: {}", why);
  }
}

std::string explain_handshake(const CurlFailure& failure) {
  const std::string words = libcurl_words(failure);
  if (words.contains("wrong version number") || words.contains("packet length too long") ||
      words.contains("unknown protocol") || words.contains("http request")) {
    return fmt::format("the server does not speak TLS; is this an http:// address? ({})", words);
  }
  if (words.contains("alert")) {
    return fmt::format(
        "the server refused the TLS handshake: {}; it might require a client certificate, or another "
        "tls-server-name",
        words);
  }
  return fmt::format("the TLS handshake failed: {}; is this the API server's TLS port?", words);
}

std::string explain_broken(const CurlFailure& failure) {
  const std::string words = libcurl_words(failure);
  // With TLS 1.3 a server judges the client's certificate after the handshake, so the refusal arrives as data.
  if (words.contains("alert") && (words.contains("certificate") || words.contains("unknown ca"))) {
    return fmt::format("the server refused our client certificate: {}; it wants one signed by a CA that it trusts",
                       words);
  }
  if (failure.proxy_status != 0 && words.contains("CONNECT")) {
    return fmt::format("the proxy refused the connection with status {}; it must allow CONNECT to this host and port",
                       failure.proxy_status);
  }
  return fmt::format("the connection broke: {}", words);
}

std::string explain(const CurlTarget& target, const CurlFailure& failure) {
  const std::string words = libcurl_words(failure);
  switch (failure.code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return fmt::format("cannot resolve the server's name: {}", words);
    case CURLE_COULDNT_RESOLVE_PROXY:  // libcurl's other texts for this code show the address with its password.
      return failure.text.starts_with("Could not resolve proxy")
                 ? fmt::format("cannot resolve the proxy's name: {}", failure.text)
                 : "the proxy's address is not usable; it must be http://, https:// or socks5://host:port";
    case CURLE_COULDNT_CONNECT:
      return fmt::format(
          "cannot connect: {}{}{}; is the API server running, and the address right?", words,
          failure.os_errno != 0 ? ": " : "",
          failure.os_errno != 0 ? std::generic_category().message(static_cast<int>(failure.os_errno)) : std::string());
    case CURLE_OPERATION_TIMEDOUT:  // Only its connect timeout: the request's own deadline is not libcurl's.
      return fmt::format("no connection in time: {}", words);
    case CURLE_PEER_FAILED_VERIFICATION:
      return explain_untrusted(target, failure);
    case CURLE_SSL_CONNECT_ERROR:
      return explain_handshake(failure);
    case CURLE_SSL_CACERT_BADFILE:
      return fmt::format("the configured CA is not usable: {}; it must be PEM certificates", words);
    case CURLE_SSL_CERTPROBLEM:
      return fmt::format("the client certificate or its key is not usable: {}; both must be PEM, and belong together",
                         words);
    case CURLE_UNSUPPORTED_PROTOCOL:  // "Received HTTP/0.9": a TLS server's alert, for one.
      return target.tls ? words
                        : fmt::format("the server does not speak plain HTTP; is this an https:// address? ({})", words);
    case CURLE_GOT_NOTHING:
      return target.tls ? "the server ended the connection without an answer"
                        : "the server ended the connection without an answer; is this an https:// address?";
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PROXY:
      return explain_broken(failure);
    case CURLE_HTTP2:  // GOAWAY that leaves our stream out, for one; libcurl has no words for it.
      return failure.text.empty() ? "the server ended the HTTP/2 connection without an answer"
                                  : fmt::format("the HTTP/2 connection broke: {}", failure.text);
    case CURLE_HTTP2_STREAM:
      return fmt::format("the server broke off the HTTP/2 stream: {}", words);
    default:
      return fmt::format("{} (libcurl error {})", words, static_cast<int>(failure.code));
  }
}

}  // namespace

std::string describe(const CurlTarget& target, Method method, std::string_view path, std::string_view text) {
  return fmt::format("{} {} on {}: {}", to_string(method), path, target.authority, text);
}

Error explain_curl_failure(const CurlTarget& target, const CurlFailure& failure) {
  const Reason reason = failure.code == CURLE_URL_MALFORMAT          ? Reason::invalid
                        : failure.code == CURLE_BAD_CONTENT_ENCODING ? Reason::decode
                                                                     : Reason::transport;
  return {reason, 0, explain(target, failure)};
}

namespace {

void refresh(const std::string& path, std::string& text) {
  if (path.empty()) return;
  Result<std::string> fresh = read_file(path);
  if (fresh && !fresh->empty()) text = *std::move(fresh);
}

}  // namespace

TlsTexts reread(const Connection& connection, TlsTexts used) {
  refresh(connection.ca_file, used.ca_pem);
  refresh(connection.client_cert_file, used.client_cert_pem);
  refresh(connection.client_key_file, used.client_key_pem);
  return used;
}

}  // namespace k8s
