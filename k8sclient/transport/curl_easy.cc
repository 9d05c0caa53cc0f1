// See curl_easy.h. libcurl's callbacks here only store what arrived and notify a Signal: no coroutine runs inside
// them, and none of them ever pauses a transfer (a pause is no back-pressure in HTTP/2: libcurl buffers on).
#include "k8sclient/transport/curl_easy.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>

#include "k8sclient/value/encoding.h"

namespace k8s {
namespace {

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

Result<std::shared_ptr<CurlExchange>> CurlExchange::create(std::shared_ptr<const CurlTarget> target,
                                                           const HttpRequest& request, const std::string& token,
                                                           std::shared_ptr<const TlsTexts> tls, Kind kind,
                                                           std::unique_ptr<Signal> signal) {
  std::shared_ptr<CurlExchange> self(new CurlExchange(std::move(target), kind, std::move(signal)));
  self->tls_ = std::move(tls);
  self->method_ = request.method;
  self->path_ = request.path;
  self->before_resend_ = request.before_resend;
  if (!request.path.starts_with('/') || request.path.find(' ') != std::string::npos ||
      has_control_character(request.path)) {
    return k8s::fail(Reason::invalid, self->describe("the path must begin with / and be percent-encoded"));
  }
  if (has_control_character(token)) {
    return k8s::fail(
        Reason::invalid,
        self->describe("the bearer token contains a line break or another control character; a token file or "
                       "exec plugin must yield one line"));
  }
  const CurlTransportOptions& options = self->target_->options;
  self->max_body_ = kind == Kind::stream ? options.max_unread_stream_bytes : options.max_body_bytes;
  if (kind != Kind::stream && request.max_body_bytes > 0)
    self->max_body_ = std::min(self->max_body_, request.max_body_bytes);
  self->set_request(request, token);
  self->set_connection();
  // Where the request's own deadline is shorter it ends first, and the error names it.
  self->set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  if (self->target_->tls) self->set_tls();
  self->set_callbacks();
  if (self->first_refusal_ != CURLE_OK) {
    return k8s::fail(Reason::invalid, self->describe(fmt::format("libcurl refuses an option: {}",
                                                                 curl_easy_strerror(self->first_refusal_))));
  }
  return self;
}

CurlExchange::CurlExchange(std::shared_ptr<const CurlTarget> target, Kind kind, std::unique_ptr<Signal> signal)
    : target_(std::move(target)), kind_(kind), signal_(std::move(signal)), easy_(curl_easy_init()) {
  if (easy_ == nullptr) throw std::bad_alloc();
}

CurlExchange::~CurlExchange() {
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(connect_to_);
}

template <class T>
void CurlExchange::set(CURLoption option, T value) {
  const CURLcode result = curl_easy_setopt(easy_, option, value);
  if (result != CURLE_OK && first_refusal_ == CURLE_OK) first_refusal_ = result;
}

// Without a copy: the texts live as long as this exchange.
void CurlExchange::set_blob(CURLoption option, const std::string& pem) {
  curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_NOCOPY};
  set(option, &blob);
}

void CurlExchange::add_header(const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers_, line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  headers_ = longer;
}

void CurlExchange::set_request(const HttpRequest& request, const std::string& token) {
  set(CURLOPT_URL, (target_->url_base + request.path).c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  if (request.method == Method::get) {
    set(CURLOPT_HTTPGET, 1L);
  } else {
    if (!request.body.empty() || request.method == Method::post) {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_COPYPOSTFIELDS, request.body.c_str());  // A copy, so that a refused stream can be sent again.
      add_header("Content-Type: " + (request.content_type.empty() ? "application/json" : request.content_type));
    }
    set(CURLOPT_CUSTOMREQUEST, std::string(to_string(request.method)).c_str());
  }
  add_header("Accept: " + request.accept);
  add_header("Expect:");  // No 100-continue: it costs a round trip, and a second on servers that ignore it.
  if (!token.empty()) add_header("Authorization: Bearer " + token);
  // libcurl takes "Name;" for a header without a value; "Name:" would send none.
  for (const auto& [name, value] : target_->connection.headers)
    add_header(value.empty() ? name + ";" : name + ": " + value);
  if (!target_->connect_to.empty()) add_header("Host: " + target_->authority);
  set(CURLOPT_HTTPHEADER, headers_);
  if (!target_->connection.user_agent.empty()) set(CURLOPT_USERAGENT, target_->connection.user_agent.c_str());
  // An unary answer may be large and is read at once; a watch's events are small and the server never packs them.
  if (kind_ != Kind::stream) set(CURLOPT_ACCEPT_ENCODING, "gzip");
}

void CurlExchange::set_connection() {
  const Connection& connection = target_->connection;
  const CurlTransportOptions& options = target_->options;
  set(CURLOPT_NOSIGNAL, 1L);
  // A lookup that hangs in getaddrinfo must not block the one thread when its request is cancelled.
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(target_->tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  if (kind_ == Kind::stream) {
    // A watch's connection lives and dies with it: no other watch waits behind its bytes or breaks with it, and its end
    // closes the connection at once. On a shared one libcurl resets a closed stream only when it is next called.
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
  } else if (target_->tls) {
    set(CURLOPT_PIPEWAIT, 1L);  // Rather wait for the shared connection than open one per request.
  }
  // What is sent has a few KB. libcurl's 64 KB for each request would be 2 MiB while many nodes are written.
  set(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, static_cast<long>(options.tcp_keepalive_idle.count()));
  set(CURLOPT_TCP_KEEPINTVL, static_cast<long>(options.tcp_keepalive_interval.count()));
  if (!connection.proxy_url.empty()) {
    // As Go does, the proxy resolves the name.
    const bool socks = connection.proxy_url.starts_with("socks5://");
    set(CURLOPT_PROXY, (socks ? "socks5h" + connection.proxy_url.substr(6) : connection.proxy_url).c_str());
    set(CURLOPT_NOPROXY, "");  // An explicit proxy is used for every host, whatever NO_PROXY says.
  } else if (target_->bypass_proxies) {
    set(CURLOPT_PROXY, "");
  }
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!target_->connect_to.empty()) {
    connect_to_ = curl_slist_append(nullptr, target_->connect_to.c_str());
    set(CURLOPT_CONNECT_TO, connect_to_);
  }
}

void CurlExchange::set_tls() {
  const Connection& connection = target_->connection;
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!tls_->ca_pem.empty()) {
    // Only this CA: libcurl would go on trusting its folder of public roots beside it.
    set(CURLOPT_CAINFO, static_cast<const char*>(nullptr));
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    set_blob(CURLOPT_CAINFO_BLOB, tls_->ca_pem);
  }
  if (connection.insecure_skip_tls_verify) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  // An event of a watch comes in several TLS records: without read-ahead each of them is two system calls. OpenSSL may
  // then hold records that libcurl does not know of. That is safe on a connection with one stream alone, which libcurl
  // reads until nothing is left; on a shared one the other streams could wait for bytes that have arrived.
  const curl_ssl_ctx_callback read_ahead = [](CURL*, void* context, void*) {
    SSL_CTX_set_read_ahead(static_cast<SSL_CTX*>(context), 1);
    return CURLE_OK;
  };
  if (kind_ == Kind::stream) set(CURLOPT_SSL_CTX_FUNCTION, read_ahead);
  if (!tls_->client_cert_pem.empty()) {
    set_blob(CURLOPT_SSLCERT_BLOB, tls_->client_cert_pem);
    set_blob(CURLOPT_SSLKEY_BLOB, tls_->client_key_pem);
  }
}

void CurlExchange::set_callbacks() {
  const curl_write_callback header = [](char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<CurlExchange*>(self)->on_header({data, size * count}) ? size * count : 0;
  };
  const curl_write_callback body = [](char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<CurlExchange*>(self)->on_body({data, size * count}) ? size * count : size * count + 1;
  };
  const curl_sockopt_callback socket = [](void* self, curl_socket_t fd, curlsocktype) {
    static_cast<CurlExchange*>(self)->on_connected(fd);
    return CURL_SOCKOPT_OK;
  };
  const curl_prereq_callback request = [](void* self, char*, char*, int, int) {
    return static_cast<CurlExchange*>(self)->before_request() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
  };
  set(CURLOPT_ERRORBUFFER, error_text_.data());
  set(CURLOPT_HEADERFUNCTION, header);
  set(CURLOPT_WRITEFUNCTION, body);
  set(CURLOPT_SOCKOPTFUNCTION, socket);
  set(CURLOPT_PREREQFUNCTION, request);
  for (const CURLoption data : {CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_SOCKOPTDATA, CURLOPT_PREREQDATA})
    set(data, static_cast<void*>(this));
}

void CurlExchange::on_connected(curl_socket_t fd) const {
  const auto timeout = static_cast<unsigned>(target_->options.tcp_user_timeout.count());
  // Best effort: without it a dead peer is still found by keepalive and by our own deadlines.
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
  // libcurl does not; an exec credential plugin must not inherit connections to the API server.
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  ++target_->stats->connections_opened;
}

// libcurl sends a request again by itself when its kept-alive connection breaks before the answer's first byte. The
// server may have acted on it by then, so such a write must not travel twice. libcurl does the same when the server
// refuses the stream (REFUSED_STREAM, also for GOAWAY), which proves that the server did nothing.
bool CurlExchange::before_request() {
  if (times_sent_ > 0 && method_ != Method::get && !allow_another_sending()) return false;
  ++times_sent_;
  sent_by_http2_ = is_http2();
  return true;
}

// The connection that carries the request now.
bool CurlExchange::is_http2() const {
  curl_tlssessioninfo* info = nullptr;
  if (curl_easy_getinfo(easy_, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || info == nullptr) return false;
  if (info->backend != CURLSSLBACKEND_OPENSSL || info->internals == nullptr) return false;
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(static_cast<const SSL*>(info->internals), &name, &size);
  return std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
}

// libcurl does not show why it lost a request. For a connection that breaks it has words or the system's error;
// for an HTTP/2 stream that the server refuses it has neither. (In HTTP/1.1 the end of a connection has none either.)
// A server that resets a stream half-way and ends its connection in the same moment could look the same: therefore a
// POST is never sent again. The other writes of this client change nothing when they are repeated.
bool CurlExchange::broke_without_words() const {
  long os_errno = 0;
  curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &os_errno);
  return sent_by_http2_ && header_bytes_ == 0 && error_text_.front() == '\0' && os_errno == 0;
}

bool CurlExchange::allow_another_sending() {
  if (method_ == Method::post || !broke_without_words()) {
    fail(Reason::transport,
         "the connection ended before an answer came; whether the server did it is unknown, so it is not sent again "
         "unasked");
    return false;
  }
  if (!before_resend_) return true;
  const Result<void> allowed = before_resend_();
  if (!allowed) fail(allowed.error().reason, allowed.error().message);
  return allowed.has_value();
}

bool CurlExchange::on_header(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > target_->options.max_header_bytes) {
    fail(Reason::decode, fmt::format("the answer's headers are larger than {} bytes; is this a Kubernetes API server?",
                                     target_->options.max_header_bytes));
    return false;
  }
  if (headers_complete_) return true;  // Trailers: nothing of Kubernetes uses them.
  if (line.starts_with("HTTP/")) {     // Also after an interim answer (1xx), whose headers are forgotten.
    response_.headers.clear();
    response_.status = 0;
    const auto space = line.find(' ');
    if (space != std::string_view::npos)
      std::from_chars(line.data() + space + 1, line.data() + line.size(), response_.status);
    return true;
  }
  if (trimmed(line).empty()) {
    headers_complete_ = response_.status >= 200;
    if (headers_complete_ && kind_ == Kind::stream) signal_->notify();
    return true;
  }
  if (const auto colon = line.find(':'); colon != std::string_view::npos)
    response_.headers.emplace_back(lower(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  return true;
}

// What TLS servers say to plain HTTP: those written in Go, and nginx.
bool CurlExchange::wants_tls(std::string_view body) const {
  return !target_->tls && response_.status == 400 &&
         (body.contains("HTTP request to an HTTPS server") || body.contains("HTTP request was sent to HTTPS port"));
}

bool CurlExchange::on_body(std::string_view bytes) {
  if (!std::exchange(body_begun_, true) && wants_tls(bytes)) {
    headers_complete_ = false;
    fail(Reason::invalid, fmt::format("the server speaks TLS, and was asked in plain HTTP; its address must be "
                                      "https://{}, not http://{}",
                                      target_->authority, target_->authority));
    return false;
  }
  const bool stream = kind_ == Kind::stream;
  const std::size_t size = response_.body.size() + bytes.size();
  if (size > max_body_) {
    fail(stream ? Reason::decode : Reason::too_large,
         stream ? fmt::format("too much unread data: its reader is {} bytes behind", max_body_)
                : fmt::format("the answer is larger than {} bytes", max_body_));
    return false;
  }
  // Grown by doubling, a large answer would be in memory twice for a moment. What is reserved and not written costs
  // none.
  constexpr std::size_t kLarge = 1024U * 1024;
  if (size > response_.body.capacity() && size > kLarge) response_.body.reserve(max_body_);
  response_.body += bytes;
  if (stream) signal_->notify();
  return true;
}

void CurlExchange::reuse(std::string read) {
  constexpr std::size_t kMostKept = 64U * 1024;
  if (read.capacity() > kMostKept) return;
  read.clear();
  spare_ = std::move(read);
}

// A server that does not want the rest of a request's body answers, and then resets the stream: such an answer is not
// to be discarded (RFC 9113, 8.1).
bool CurlExchange::answer_is_whole() const {
  if (kind_ == Kind::stream || !headers_complete_ || error_) return false;
  return response_.header("content-length") == std::to_string(response_.body.size());
}

void CurlExchange::on_done(CURLcode code) {
  if (done_) return;
  done_ = true;
  if (code == CURLE_HTTP2_STREAM && answer_is_whole()) code = CURLE_OK;
  if (code != CURLE_OK) {
    // An error of one HTTP/2 stream proves nothing about the others, nor does an answer that we do not want; a
    // connection that was never opened is not suspect.
    const bool unwanted = error_ && error_->reason == Reason::too_large;
    connection_suspect_ = times_sent_ > 0 && code != CURLE_HTTP2_STREAM && !unwanted;
  }
  if (code != CURLE_OK && !error_) {
    long new_connections = 0;
    curl_easy_getinfo(easy_, CURLINFO_NUM_CONNECTS, &new_connections);
    worth_a_new_connection_ =
        method_ == Method::get && connection_suspect_ && header_bytes_ == 0 && new_connections == 0;
    CurlFailure failure{.code = code, .text = error_text_.data()};
    curl_easy_getinfo(easy_, CURLINFO_SSL_VERIFYRESULT, &failure.tls_verify_result);
    curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &failure.os_errno);
    curl_easy_getinfo(easy_, CURLINFO_HTTP_CONNECTCODE, &failure.proxy_status);
    error_ = explain_curl_failure(*target_, failure);
    error_->message = describe(error_->message);
  }
  signal_->notify();
}

void CurlExchange::on_abandoned(Error error) {
  if (done_) return;
  done_ = true;
  error.message = describe(error.message);
  if (!error_) error_ = std::move(error);
  signal_->notify();
}

void CurlExchange::fail(Reason reason, std::string what) {
  if (!error_) error_ = Error{reason, 0, describe(what)};
}

void CurlExchange::fail_overdue(std::chrono::milliseconds allowed) {
  // While it connects, libcurl does not show whether TCP or TLS is in progress.
  std::string_view waited_for = target_->tls ? "no connection (TCP and TLS)" : "no connection";
  if (headers_complete_)
    waited_for = "the answer began but did not end";
  else if (times_sent_ > 0)
    waited_for = "no answer";
  connection_suspect_ = true;
  done_ = true;
  fail(Reason::timeout, fmt::format("{} within {}", waited_for, allowed));
}

}  // namespace k8s
