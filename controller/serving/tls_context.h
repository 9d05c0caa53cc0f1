// The certificate of a port: its files, watched for changes, and the TLS context made of them.
#pragma once

#include <openssl/types.h>

#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/serving/http_message.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

namespace gso {

// --- From PEM texts to what a TLS server needs: TLS 1.2 or later, no renegotiation, no session resumption (each
// connection is checked against the certificate authority of now).

// What a server shows, and by whom its clients must be certified.
struct ServingIdentity {
  std::string certificate_pem;  // The server's own first, then those that lead to its authority.
  std::string key_pem;          // Without a passphrase.
  std::string client_ca_pem;    // Empty: client certificates are not asked for.
  bool clients_only = false;    // A client without such a certificate ends in the handshake.
  friend bool operator==(const ServingIdentity&, const ServingIdentity&) = default;
};

// Errors (`invalid`) say which of the three cannot be used, and why: no PEM, a key of another certificate.
[[nodiscard]] k8s::Result<std::shared_ptr<boost::asio::ssl::context>> make_server_context(
    const ServingIdentity& identity);

// When the server's own certificate of the context ends. The epoch if OpenSSL cannot read it.
[[nodiscard]] k8s::WallTime certificate_end(boost::asio::ssl::context& context);

// Of the verified certificate of the other side; empty: it sent none, or one without a common name.
[[nodiscard]] std::optional<ClientSubject> client_subject(SSL* connection);

// --- A server certificate whose files somebody else renews: cert-manager, a mounted Secret, an administrator.

class CertificateFiles {
 public:
  // Files are read again after this time, when a connection is accepted.
  static constexpr k8s::Duration kPeriod = std::chrono::seconds(10);

  struct Paths {
    std::string certificate;
    std::string key;
    std::string client_ca;      // Empty: client certificates are not asked for.
    bool clients_only = false;  // ServingIdentity::clients_only
  };
  struct Events {
    std::function<void(const k8s::Error&)> failed = [](const k8s::Error&) {};
    std::function<void(k8s::WallTime end)> loaded = [](k8s::WallTime) {};  // Other texts are in use from now on.
  };
  // `clock` must outlive the object.
  CertificateFiles(k8s::Clock* clock, Paths paths, Events events);

  // The first look. Errors name the file: one that is missing, or cannot be used.
  [[nodiscard]] k8s::Result<void> load();
  // The last good ones: files that cannot be used now (a renewal half-way) change nothing and are reported.
  [[nodiscard]] std::shared_ptr<boost::asio::ssl::context> current();

 private:
  [[nodiscard]] k8s::Result<ServingIdentity> read() const;

  k8s::Clock* clock_;
  Paths paths_;
  Events events_;
  ServingIdentity identity_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  k8s::MonoTime read_at_;
};

}  // namespace gso
