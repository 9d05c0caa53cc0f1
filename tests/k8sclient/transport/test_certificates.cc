#include "tests/k8sclient/transport/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace k8s::test {
namespace {

template <class T>
T* require(T* pointer) {
  if (pointer == nullptr) throw std::runtime_error("OpenSSL could not make a test certificate");
  return pointer;
}

std::shared_ptr<EVP_PKEY> make_key() {
  return {require(EVP_EC_gen("P-256")), EVP_PKEY_free};
}

// What `write` writes as PEM.
template <class Write>
std::string pem_of(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

std::string to_pem(X509* cert) {
  return pem_of([cert](BIO* bio) { PEM_write_bio_X509(bio, cert); });
}

void add_name(X509* cert, const char* field, const std::string& text) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.c_str());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), field, MBSTRING_UTF8, bytes, -1, -1, 0);
}

void add_extension(X509* cert, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = require(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

std::shared_ptr<X509> make_cert(const std::string& common_name, EVP_PKEY* key, bool expired) {
  static long serial = 1;
  constexpr long kDay = 24 * 60 * 60;
  std::shared_ptr<X509> cert(require(X509_new()), X509_free);
  X509_set_version(cert.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), expired ? -kDay : kDay);
  X509_set_pubkey(cert.get(), key);
  add_name(cert.get(), "CN", common_name);
  return cert;
}

}  // namespace

TestAuthority::TestAuthority(const std::string& common_name)
    : key_(make_key()), cert_(make_cert(common_name, key_.get(), false)) {
  X509_set_issuer_name(cert_.get(), X509_get_subject_name(cert_.get()));
  add_extension(cert_.get(), cert_.get(), NID_basic_constraints, "critical,CA:TRUE");
  add_extension(cert_.get(), cert_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  X509_sign(cert_.get(), key_.get(), EVP_sha256());
  ca_pem_ = to_pem(cert_.get());
}

Identity TestAuthority::issue(const LeafOptions& options) const {
  const auto key = make_key();
  const auto cert = make_cert(options.common_name, key.get(), options.expired);
  X509_set_issuer_name(cert.get(), X509_get_subject_name(cert_.get()));
  for (const std::string& organization : options.organizations) add_name(cert.get(), "O", organization);
  std::string names;
  for (const auto& name : options.names) names += (names.empty() ? "" : ",") + name;
  if (!names.empty()) add_extension(cert.get(), cert_.get(), NID_subject_alt_name, names);
  X509_sign(cert.get(), key_.get(), EVP_sha256());
  return {to_pem(cert.get()), pem_of([&key](BIO* bio) {
            PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace k8s::test
