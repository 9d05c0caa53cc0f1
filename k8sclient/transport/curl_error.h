// Why libcurl ended an exchange without an answer, in words that help: what failed, and what would be right.
#pragma once

#include <curl/curl.h>

#include <string>
#include <string_view>

#include "k8sclient/value/error.h"

namespace k8s {

struct CurlTarget;

struct CurlFailure {
  CURLcode code = CURLE_OK;
  std::string_view text;       // libcurl's error buffer, may be empty.
  long tls_verify_result = 0;  // CURLINFO_SSL_VERIFYRESULT
  long os_errno = 0;           // CURLINFO_OS_ERRNO
  long proxy_status = 0;       // CURLINFO_HTTP_CONNECTCODE
};

// The message has neither method nor path nor host: the exchange puts them before it.
[[nodiscard]] Error explain_curl_failure(const CurlTarget& target, const CurlFailure& failure);

}  // namespace k8s
