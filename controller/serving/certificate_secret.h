// The operator's own certificate (own_certificate.h), kept in a Secret that all replicas share: the leader issues and
// renews it, every replica serves with it, and who trusts it reads the key `ca.crt`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/serving/own_certificate.h"
#include "controller/serving/tls_context.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/api/writer.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace gso {

class CertificateSecret {
 public:
  struct Events {
    std::function<void(const k8s::Error&)> failed = [](const k8s::Error&) {};
    std::function<void()> worked = [] {};
    std::function<void(k8s::WallTime end)> loaded = [](k8s::WallTime) {};  // Another certificate is in use.
  };
  struct Parts {
    k8s::Reader* reader = nullptr;
    k8s::Writer* writer = nullptr;
    k8s::Clock* clock = nullptr;
    k8s::ObjectKey secret;                               // Must exist: the operator is not allowed to create Secrets.
    std::string chart_value = "metrics.secure.enabled";  // Of the chart, with which it creates the Secret.
    std::vector<std::string> names;                      // DNS names of the server, at least one.
    std::string client_ca_file;  // Read again with the Secret. Empty: client certificates are not asked for.
    // Consulted just before each write: only the leader may.
    std::function<k8s::Result<void>()> may_write;
    Events events;
    CertificateTerms terms = {};
  };
  // `reader`, `writer` and `clock` must outlive the object.
  explicit CertificateSecret(Parts parts);

  // Reads the Secret again and again, and renews what is due. Ends by cancellation only.
  boost::asio::awaitable<void> run();
  // Null until there is a certificate.
  [[nodiscard]] std::shared_ptr<boost::asio::ssl::context> current() const { return context_; }
  // What clients trust: the PEM texts of `ca.crt`. Empty until there is a certificate.
  [[nodiscard]] std::string authorities() const { return held_.bundle(); }

 private:
  boost::asio::awaitable<k8s::Result<void>> look();
  boost::asio::awaitable<k8s::Result<void>> write(OwnCertificate fresh, std::string resource_version);
  k8s::Result<void> use(OwnCertificate certificate);
  [[nodiscard]] k8s::Result<std::string> client_authorities() const;

  Parts parts_;
  OwnCertificate held_;
  ServingIdentity identity_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::string version_;      // resourceVersion of what was judged last,
  k8s::MonoTime judged_at_;  // and when: what is due changes with time, too.
};

}  // namespace gso
