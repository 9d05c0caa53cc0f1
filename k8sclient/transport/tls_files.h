// The certificates and the key that a connection's TLS uses, re-read from their files while it lives.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "k8sclient/auth/connection.h"
#include "k8sclient/clock.h"

namespace k8s {

// How long certificates read from files are used without another look: as long as tokens are.
inline constexpr Duration kTlsFilePeriod = std::chrono::minutes(1);

// PEM texts. Never changed once made: exchanges point into them.
struct TlsTexts {
  std::string ca_pem;
  std::string client_cert_pem;
  std::string client_key_pem;
  friend bool operator==(const TlsTexts&, const TlsTexts&) = default;
};

class TlsFiles {
 public:
  // Begins with the connection's texts; those that name a file are re-read from it.
  TlsFiles(const Connection& connection, MonoTime now);
  // The texts to use now. The files are looked at when kTlsFilePeriod has passed since the last time.
  [[nodiscard]] std::shared_ptr<const TlsTexts> current(MonoTime now);
  // Looks at the files now: a connection was refused. A file that cannot be read leaves its last text in use.
  void reread(MonoTime now);

 private:
  std::string ca_file_;
  std::string client_cert_file_;
  std::string client_key_file_;
  std::shared_ptr<const TlsTexts> texts_;
  MonoTime read_at_;
};

}  // namespace k8s
