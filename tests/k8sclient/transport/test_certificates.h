// Certificates for the scripted peer, made with OpenSSL when a test starts: nothing secret lies in the repository.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

namespace k8s::test {

struct Identity {
  std::string cert_pem;
  std::string key_pem;
};

struct LeafOptions {
  std::string common_name = "peer";
  std::vector<std::string> names = {"IP:127.0.0.1"};  // subjectAltName entries, as OpenSSL writes them.
  bool expired = false;
  std::vector<std::string> organizations = {};
};

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& common_name);
  [[nodiscard]] const std::string& ca_pem() const { return ca_pem_; }
  [[nodiscard]] Identity issue(const LeafOptions& options) const;

 private:
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> cert_;
  std::string ca_pem_;
};

}  // namespace k8s::test
