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

std::string take_text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

std::string to_pem(X509* cert) {
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, cert);
  return take_text(bio);
}

std::string to_pem(EVP_PKEY* key) {
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  return take_text(bio);
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
  const auto* const name = reinterpret_cast<const unsigned char*>(common_name.c_str());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_UTF8, name, -1, -1, 0);
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
  for (const std::string& organization : options.organizations) {
    const auto* const text = reinterpret_cast<const unsigned char*>(organization.c_str());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "O", MBSTRING_UTF8, text, -1, -1, 0);
  }
  std::string names;
  for (const auto& name : options.names) names += (names.empty() ? "" : ",") + name;
  if (!names.empty()) add_extension(cert.get(), cert_.get(), NID_subject_alt_name, names);
  X509_sign(cert.get(), key_.get(), EVP_sha256());
  return {to_pem(cert.get()), to_pem(key.get())};
}

}  // namespace k8s::test
