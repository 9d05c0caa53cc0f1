// OpenSSL by way of Asio's context, and by its own calls where Asio has none.
#include "controller/serving/tls_context.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/buffer.hpp>
#include <ctime>
#include <utility>

#include "k8sclient/auth/connection.h"

namespace gso {

CertificateFiles::CertificateFiles(k8s::Clock* clock, Paths paths, Events events)
    : clock_(clock), paths_(std::move(paths)), events_(std::move(events)) {}

k8s::Result<ServingIdentity> CertificateFiles::read() const {
  ServingIdentity out;
  out.clients_only = paths_.clients_only;
  const std::pair<const std::string*, std::string*> files[] = {{&paths_.certificate, &out.certificate_pem},
                                                               {&paths_.key, &out.key_pem},
                                                               {&paths_.client_ca, &out.client_ca_pem}};
  for (const auto& [path, text] : files) {
    if (path->empty()) continue;
    k8s::Result<std::string> content = k8s::read_file(*path);
    if (!content) return std::unexpected(content.error());
    if (content->empty()) return k8s::fail(k8s::Reason::invalid, fmt::format("file {} is empty", *path));
    *text = *std::move(content);
  }
  return out;
}

k8s::Result<void> CertificateFiles::load() {
  read_at_ = clock_->monotonic();
  k8s::Result<ServingIdentity> fresh = read();
  if (!fresh) return std::unexpected(fresh.error());
  if (context_ != nullptr && *fresh == identity_) return {};
  auto context = make_server_context(*fresh);
  if (!context) {
    return k8s::fail(context.error().reason,
                     fmt::format("{} and {}: {}", paths_.certificate, paths_.key, context.error().message));
  }
  identity_ = *std::move(fresh);
  context_ = *std::move(context);
  events_.loaded(certificate_end(*context_));
  return {};
}

std::shared_ptr<boost::asio::ssl::context> CertificateFiles::current() {
  if (clock_->monotonic() - read_at_ < kPeriod) return context_;
  const k8s::Result<void> loaded = load();
  if (!loaded) events_.failed(loaded.error());
  return context_;
}

namespace {

namespace asio = boost::asio;
using Context = asio::ssl::context;

k8s::Result<std::shared_ptr<Context>> unusable(const char* what, const boost::system::error_code& error) {
  return k8s::fail(k8s::Reason::invalid, fmt::format("the {} cannot be used: {}", what, error.message()));
}

void harden(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");  // Of TLS 1.2; those of 1.3 are all good.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
}

// The values of one attribute of a name, in their order.
std::vector<std::string> attribute(const X509_NAME* name, int nid) {
  std::vector<std::string> out;
  for (int at = X509_NAME_get_index_by_NID(name, nid, -1); at >= 0; at = X509_NAME_get_index_by_NID(name, nid, at)) {
    unsigned char* text = nullptr;
    const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (size < 0) continue;
    out.emplace_back(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
    OPENSSL_free(text);
  }
  return out;
}

}  // namespace

k8s::Result<std::shared_ptr<Context>> make_server_context(const ServingIdentity& identity) {
  auto context = std::make_shared<Context>(Context::tls_server);
  harden(context->native_handle());
  boost::system::error_code ec;
  // Otherwise OpenSSL would ask on the terminal for the passphrase of an encrypted key.
  context->set_password_callback([](std::size_t, Context::password_purpose) { return std::string(); }, ec);
  context->use_certificate_chain(asio::buffer(identity.certificate_pem), ec);
  if (ec) return unusable("certificate", ec);
  context->use_private_key(asio::buffer(identity.key_pem), Context::pem, ec);
  if (ec) return unusable("private key (or it is not that of the certificate)", ec);
  if (identity.client_ca_pem.empty()) return context;
  context->add_certificate_authority(asio::buffer(identity.client_ca_pem), ec);
  if (ec) return unusable("certificate authority of clients", ec);
  // Otherwise a client without a certificate can still send a token.
  const auto required = identity.clients_only ? asio::ssl::verify_fail_if_no_peer_cert : 0;
  context->set_verify_mode(asio::ssl::verify_peer | required, ec);
  return context;
}

k8s::WallTime certificate_end(Context& context) {
  const X509* const certificate = SSL_CTX_get0_certificate(context.native_handle());
  std::tm parts{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) != 1) return {};
  return k8s::WallTime(std::chrono::seconds(timegm(&parts)));
}

std::optional<ClientSubject> client_subject(SSL* connection) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(connection), &X509_free);
  if (certificate == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return std::nullopt;
  const X509_NAME* const name = X509_get_subject_name(certificate.get());
  const std::vector<std::string> users = attribute(name, NID_commonName);
  if (users.empty() || users.back().empty()) return std::nullopt;
  ClientSubject out;
  out.user = users.back();
  out.groups = attribute(name, NID_organizationName);
  return out;
}

}  // namespace gso
