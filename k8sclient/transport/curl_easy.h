// One HTTP exchange as a libcurl easy handle: its options (TLS from memory, HTTP/2, keepalive, limits, headers), and
// what has arrived so far. Not for use above curl_transport.h.
#pragma once

#include <curl/curl.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "k8sclient/transport/curl_multi.h"
#include "k8sclient/transport/curl_target.h"

namespace k8s {

class CurlExchange final : public CurlTransfer {
 public:
  enum class Kind { unary, stream };

  // `tls` is what the connection uses, whatever the target's connection says. `signal` is notified when a unary
  // exchange has ended, and for a stream also when headers or bytes have arrived. Fails with `invalid` when libcurl
  // refuses an option (a path with a blank in it, a token with a line break).
  [[nodiscard]] static Result<std::shared_ptr<CurlExchange>> create(std::shared_ptr<const CurlTarget> target,
                                                                    const HttpRequest& request,
                                                                    const std::string& token,
                                                                    std::shared_ptr<const TlsTexts> tls, Kind kind,
                                                                    std::unique_ptr<Signal> signal);
  ~CurlExchange() override;
  CurlExchange(const CurlExchange&) = delete;
  CurlExchange& operator=(const CurlExchange&) = delete;

  [[nodiscard]] CURL* easy() const override { return easy_; }
  void on_done(CURLcode code) override;
  void on_abandoned(Error error) override;

  [[nodiscard]] Signal& signal() { return *signal_; }
  [[nodiscard]] bool done() const { return done_; }
  // An answer's status and headers are there. Of a 400 to plain HTTP, its first bytes too: they may be a TLS server's,
  // which is no answer (see error()).
  [[nodiscard]] bool headers_complete() const {
    return headers_complete_ && (body_begun_ || done_ || target_->tls || response_.status != 400);
  }
  [[nodiscard]] int status() const { return response_.status; }
  [[nodiscard]] const HttpResponse& response() const { return response_; }
  // Meaningful once done: why there is no complete answer.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // What was waited for is here: the end, or a stream's headers.
  [[nodiscard]] bool arrived() const { return done_ || (kind_ == Kind::stream && headers_complete()); }
  // The request's connection carried it (or may have): it is not to be trusted after an error.
  [[nodiscard]] bool connection_suspect() const { return connection_suspect_; }
  // Nothing of the request has left this machine.
  [[nodiscard]] bool never_sent() const { return times_sent_ == 0; }
  // A read that got nothing because the kept connection it was put on had come to its end (GOAWAY, reset).
  [[nodiscard]] bool worth_a_new_connection() const { return worth_a_new_connection_; }
  // Ends the exchange from our side with this error. The caller removes it from its multi.
  void fail(Reason reason, std::string what);
  // The deadline passed: as fail(), with what was being waited for.
  void fail_overdue(std::chrono::milliseconds allowed);
  // "GET /path on host:port: " and the text.
  [[nodiscard]] std::string describe(std::string_view what) const {
    return k8s::describe(*target_, method_, path_, what);
  }

  [[nodiscard]] HttpResponse take_response() { return std::move(response_); }
  [[nodiscard]] bool has_unread() const { return !response_.body.empty(); }
  [[nodiscard]] std::string take_unread() { return std::exchange(response_.body, std::exchange(spare_, {})); }
  // ByteStream::reuse().
  void reuse(std::string read);

 private:
  [[nodiscard]] bool answer_is_whole() const;
  [[nodiscard]] bool is_http2() const;
  [[nodiscard]] bool broke_without_words() const;
  [[nodiscard]] bool allow_another_sending();
  [[nodiscard]] bool wants_tls(std::string_view body) const;
  CurlExchange(std::shared_ptr<const CurlTarget> target, Kind kind, std::unique_ptr<Signal> signal);

  template <class T>
  void set(CURLoption option, T value);
  void set_blob(CURLoption option, const std::string& pem);
  void set_request(const HttpRequest& request, const std::string& token);
  void add_header(const std::string& line);
  void set_connection();
  void set_tls();
  void set_callbacks();

  // libcurl's callbacks.
  void on_connected(curl_socket_t fd) const;
  // Whether the request may be sent now.
  bool before_request();
  bool on_header(std::string_view line);
  bool on_body(std::string_view bytes);

  std::shared_ptr<const CurlTarget> target_;
  Kind kind_;
  std::unique_ptr<Signal> signal_;
  std::shared_ptr<const TlsTexts> tls_;
  Method method_ = Method::get;
  std::string path_;
  std::function<Result<void>()> before_resend_;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  CURLcode first_refusal_ = CURLE_OK;  // Of curl_easy_setopt.
  std::array<char, CURL_ERROR_SIZE> error_text_{};

  HttpResponse response_;     // Of a stream, `body` is what has not been read yet.
  std::string spare_;         // For what comes while that is read.
  std::size_t max_body_ = 0;  // What may be held of it.
  std::size_t header_bytes_ = 0;
  int times_sent_ = 0;
  bool sent_by_http2_ = false;
  bool headers_complete_ = false;
  bool body_begun_ = false;
  bool done_ = false;
  bool connection_suspect_ = false;
  bool worth_a_new_connection_ = false;
  std::optional<Error> error_;
};

}  // namespace k8s
