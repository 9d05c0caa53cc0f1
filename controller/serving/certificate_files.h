// A server certificate whose files somebody else renews: cert-manager, a mounted Secret, an administrator.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/serving/tls_context.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

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
