#include "tests/k8sclient/transport/h2_peer.h"

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <utility>

namespace k8s::test {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

std::vector<nghttp2_nv> as_name_values(const H2Stream::Headers& headers) {
  std::vector<nghttp2_nv> result;
  for (const auto& [name, value] : headers) {
    result.push_back({reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
                      reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
                      NGHTTP2_NV_FLAG_NONE});
  }
  return result;
}

}  // namespace

void H2Stream::start(int status, const Headers& extra) {
  const auto owner = connection.lock();
  if (!owner || closed_) return;
  Headers all{{":status", std::to_string(status)}, {"content-type", "application/json"}};
  all.insert(all.end(), extra.begin(), extra.end());
  const auto name_values = as_name_values(all);
  nghttp2_data_provider provider{};
  provider.source.ptr = this;
  provider.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* out, std::size_t length,
                              std::uint32_t* flags, nghttp2_data_source* source, void*) -> ssize_t {
    auto& self = *static_cast<H2Stream*>(source->ptr);
    const std::size_t size = std::min(length, self.unsent_.size());
    std::memcpy(out, self.unsent_.data(), size);
    self.unsent_.erase(0, size);
    if (self.unsent_.empty() && self.ending_) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (size == 0 && !self.ending_) return NGHTTP2_ERR_DEFERRED;
    return static_cast<ssize_t>(size);
  };
  nghttp2_submit_response(owner->session_, id, name_values.data(), name_values.size(), &provider);
  owner->post_flush();
}

void H2Stream::send(const std::string& bytes) {
  const auto owner = connection.lock();
  if (!owner || closed_) return;
  unsent_ += bytes;
  nghttp2_session_resume_data(owner->session_, id);
  owner->post_flush();
}

void H2Stream::end() {
  ending_ = true;
  send({});
}

void H2Stream::respond(int status, const std::string& text, const Headers& extra) {
  start(status, extra);
  unsent_ += text;
  end();
}

void H2Stream::refuse(int status, const std::string& text) {
  const auto owner = connection.lock();
  if (!owner || closed_) return;
  respond(status, text);
  // nghttp2 would leave out data that is still queued when a reset is.
  owner->gather();
  nghttp2_submit_rst_stream(owner->session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
  owner->post_flush();
}

void H2Stream::reset(std::uint32_t code) {
  const auto owner = connection.lock();
  if (!owner || closed_) return;
  // What was sent before must arrive before.
  owner->after_flush([self = shared_from_this(), owner, code] {
    if (!owner->open_) return;
    nghttp2_submit_rst_stream(owner->session_, NGHTTP2_FLAG_NONE, self->id, code);
    owner->post_flush();
  });
}

struct H2Connection::Callbacks {
  static H2Connection& self(void* data) { return *static_cast<H2Connection*>(data); }

  // Null once the stream is over.
  static H2StreamPtr stream(void* data, std::int32_t id) {
    const auto found = self(data).streams_.find(id);
    return found == self(data).streams_.end() ? nullptr : found->second;
  }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    const auto begun = std::make_shared<H2Stream>();
    begun->id = frame->hd.stream_id;
    begun->connection = self(data).weak_from_this();
    self(data).last_stream_ = begun->id;
    self(data).streams_[begun->id] = begun;
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* data) {
    const auto of = stream(data, frame->hd.stream_id);
    if (of != nullptr) of->headers[std::string(name, name + name_size)] = std::string(value, value + value_size);
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                     void* data) {
    const auto of = stream(data, id);
    if (of != nullptr) of->body.append(bytes, bytes + size);
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    const bool whole = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    const bool headers = frame->hd.type == NGHTTP2_HEADERS;
    const auto of = stream(data, frame->hd.stream_id);  // The test's answer may end it.
    if (of == nullptr || !(headers || (whole && frame->hd.type == NGHTTP2_DATA))) return 0;
    of->method = of->headers[":method"];
    of->path = of->headers[":path"];
    H2Peer& peer = self(data).peer_;
    if (whole) peer.requests_.push_back(of);
    if (const auto& handler = whole ? peer.on_request : peer.on_headers) handler(of);
    return 0;
  }

  static int on_stream_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* data) {
    if (const auto over = stream(data, id)) over->closed_ = true;
    self(data).streams_.erase(id);
    return 0;
  }
};

H2Connection::H2Connection(tcp::socket socket, H2Peer& peer) : tls_(std::move(socket), peer.tls_), peer_(peer) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, &Callbacks::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Callbacks::on_stream_close);
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  // libcurl may send a reset after every finished stream too; nghttp2 would take a thousand of them for an attack,
  // which the API server (Go) does not.
  nghttp2_option_set_stream_reset_rate_limit(option, 1'000'000, 1'000'000);
  nghttp2_session_server_new2(&session_, callbacks, this, option);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
}

H2Connection::~H2Connection() {
  for (auto& [id, stream] : streams_) stream->closed_ = true;
  nghttp2_session_del(session_);
}

void H2Connection::start() {
  tls_.next_layer().set_option(tcp::no_delay(true));
  tls_.async_handshake(asio::ssl::stream_base::server, [self = shared_from_this()](auto error) {
    if (error) return self->close();
    if (const char* name = SSL_get_servername(self->tls_.native_handle(), TLSEXT_NAMETYPE_host_name))
      self->server_name_ = name;
    const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, self->peer_.max_streams_};
    nghttp2_submit_settings(self->session_, NGHTTP2_FLAG_NONE, &entry, 1);
    self->flush();
    self->read_some();
  });
}

void H2Connection::read_some() {
  if (!open_ || frozen_) return;
  tls_.async_read_some(asio::buffer(input_), [self = shared_from_this()](auto error, std::size_t size) {
    if (error) return self->close();
    if (self->frozen_ || !self->open_) return;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(self->input_.data());
    if (nghttp2_session_mem_recv(self->session_, bytes, size) < 0) self->close_fin();
    self->flush();
    self->read_some();
  });
}

void H2Connection::post_flush() {
  if (std::exchange(flush_posted_, true)) return;
  asio::post(tls_.get_executor(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->flush_posted_ = false;
    self->flush();
  });
}

void H2Connection::after_flush(std::function<void()> action) {
  after_flush_.push_back(std::move(action));
  post_flush();
}

// What nghttp2 has to say, in its order.
void H2Connection::gather() {
  const std::uint8_t* bytes = nullptr;
  for (auto size = nghttp2_session_mem_send(session_, &bytes); size > 0;
       size = nghttp2_session_mem_send(session_, &bytes)) {
    frames_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
}

void H2Connection::flush() {
  if (!open_ || frozen_ || !writing_.empty()) return;
  gather();
  if (frames_.empty()) {
    for (const auto& action : std::exchange(after_flush_, {})) action();
    return;
  }
  writing_ = std::exchange(frames_, {});
  asio::async_write(tls_, asio::buffer(writing_), [self = shared_from_this()](auto error, std::size_t) {
    self->writing_.clear();
    if (error)
      self->close();
    else
      self->flush();
  });
}

void H2Connection::goaway(std::int32_t last_stream_id) {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last_stream_id, NGHTTP2_NO_ERROR, nullptr, 0);
  post_flush();
}

void H2Connection::close_fin() {
  after_flush([self = shared_from_this()] { self->close(); });
}

void H2Connection::close_rst() {
  after_flush([self = shared_from_this()] {
    if (self->open_) self->tls_.next_layer().set_option(asio::socket_base::linger(true, 0));
    self->close();
  });
}

void H2Connection::close_notify() {
  after_flush([self = shared_from_this()] {
    // A goodbye is the last word: nothing that nghttp2 might still say may follow it.
    self->freeze();
    self->tls_.async_shutdown([self](auto) {});
  });
}

void H2Connection::freeze() {
  frozen_ = true;
}

void H2Connection::close() {
  if (!std::exchange(open_, false)) return;
  boost::system::error_code ignored;
  tls_.next_layer().close(ignored);
  after_flush_.clear();
  for (auto& [id, stream] : streams_) stream->closed_ = true;
}

namespace {

int choose_h2(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned in_size,
              void*) {
  static constexpr unsigned char kH2[] = "\x2h2";
  const int found = SSL_select_next_proto(const_cast<unsigned char**>(out), out_size, kH2, sizeof kH2 - 1, in, in_size);
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

asio::ssl::context make_tls(const H2PeerOptions& options) {
  asio::ssl::context tls(asio::ssl::context::tls_server);
  tls.use_certificate(asio::buffer(options.identity.cert_pem), asio::ssl::context::pem);
  tls.use_private_key(asio::buffer(options.identity.key_pem), asio::ssl::context::pem);
  SSL_CTX_set_alpn_select_cb(tls.native_handle(), choose_h2, nullptr);
  if (!options.client_ca_pem.empty()) {
    tls.add_certificate_authority(asio::buffer(options.client_ca_pem));
    tls.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  }
  return tls;
}

}  // namespace

H2Peer::H2Peer(asio::io_context& io, const H2PeerOptions& options)
    : acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      tls_(make_tls(options)),
      max_streams_(options.max_streams),
      port_(acceptor_.local_endpoint().port()) {
  accept();
}

H2Peer::~H2Peer() {
  for (const auto& connection : connections_) connection->close();
}

void H2Peer::accept() {
  acceptor_.async_accept([this](auto error, tcp::socket socket) {
    if (error) return;  // Also when this peer is gone.
    connections_.push_back(std::make_shared<H2Connection>(std::move(socket), *this));
    connections_.back()->start();
    accept();
  });
}

void H2Peer::forget_history() {
  requests_.clear();
  std::erase_if(connections_, [](const auto& connection) { return !connection->open(); });
}

}  // namespace k8s::test
