// From PEM texts to what a TLS server needs: TLS 1.2 or later, no renegotiation, no session resumption (each connection
// is checked against the certificate authority of now).
#pragma once

#include <openssl/types.h>

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "controller/serving/http_message.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

namespace gso {

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

}  // namespace gso
