// See curl_error.h. The texts matched here are those of libcurl 8.14 with OpenSSL 3.0; where one does not match, the
// reader still gets libcurl's own words.
#include "k8sclient/transport/curl_error.h"

#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include <system_error>

#include "k8sclient/transport/curl_easy.h"

namespace k8s {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

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
  if (contains(words, "wrong version number") || contains(words, "packet length too long") ||
      contains(words, "unknown protocol") || contains(words, "http request")) {
    return fmt::format("the server does not speak TLS; is this an http:// address? ({})", words);
  }
  if (contains(words, "alert")) {
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
  if (contains(words, "alert") && (contains(words, "certificate") || contains(words, "unknown ca"))) {
    return fmt::format("the server refused our client certificate: {}; it wants one signed by a CA that it trusts",
                       words);
  }
  if (failure.proxy_status != 0 && contains(words, "CONNECT")) {
    return fmt::format("the proxy refused the connection with status {}; it must allow CONNECT to this host and port",
                       failure.proxy_status);
  }
  return fmt::format("the connection broke: {}", words);
}

std::string explain(const CurlTarget& target, const CurlFailure& failure) {
  switch (failure.code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return fmt::format("cannot resolve the server's name: {}", libcurl_words(failure));
    case CURLE_COULDNT_RESOLVE_PROXY:  // libcurl's other texts for this code show the address with its password.
      return failure.text.starts_with("Could not resolve proxy")
                 ? fmt::format("cannot resolve the proxy's name: {}", failure.text)
                 : "the proxy's address is not usable; it must be http://, https:// or socks5://host:port";
    case CURLE_COULDNT_CONNECT:
      return fmt::format(
          "cannot connect: {}{}{}; is the API server running, and the address right?", libcurl_words(failure),
          failure.os_errno != 0 ? ": " : "",
          failure.os_errno != 0 ? std::generic_category().message(static_cast<int>(failure.os_errno)) : std::string());
    case CURLE_OPERATION_TIMEDOUT:  // Only its connect timeout: the request's own deadline is not libcurl's.
      return fmt::format("no connection in time: {}", libcurl_words(failure));
    case CURLE_PEER_FAILED_VERIFICATION:
      return explain_untrusted(target, failure);
    case CURLE_SSL_CONNECT_ERROR:
      return explain_handshake(failure);
    case CURLE_SSL_CACERT_BADFILE:
      return fmt::format("the configured CA is not usable: {}; it must be PEM certificates", libcurl_words(failure));
    case CURLE_SSL_CERTPROBLEM:
      return fmt::format("the client certificate or its key is not usable: {}; both must be PEM, and belong together",
                         libcurl_words(failure));
    case CURLE_UNSUPPORTED_PROTOCOL:  // "Received HTTP/0.9": a TLS server's alert, for one.
      return target.tls ? libcurl_words(failure)
                        : fmt::format("the server does not speak plain HTTP; is this an https:// address? ({})",
                                      libcurl_words(failure));
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
      return fmt::format("the server broke off the HTTP/2 stream: {}", libcurl_words(failure));
    default:
      return fmt::format("{} (libcurl error {})", libcurl_words(failure), static_cast<int>(failure.code));
  }
}

Reason reason_of(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
      return Reason::invalid;
    case CURLE_BAD_CONTENT_ENCODING:
      return Reason::decode;
    default:
      return Reason::transport;
  }
}

}  // namespace

Error explain_curl_failure(const CurlTarget& target, const CurlFailure& failure) {
  return {reason_of(failure.code), 0, explain(target, failure)};
}

}  // namespace k8s
