// X.509 by OpenSSL's calls: P-256 keys, SHA-256, the extensions that RFC 5280 asks of an authority and of a server.
#include "controller/serving/own_certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "controller/serving/tls_context.h"

namespace gso {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Text = std::unique_ptr<BIO, decltype(&BIO_free_all)>;

// The clocks of those who check may be behind.
constexpr k8s::Duration kClockSkew = std::chrono::hours(1);

struct Issued {
  std::string certificate_pem;
  std::string key_pem;
};
struct Issuer {
  X509* certificate = nullptr;  // Null: signs itself.
  EVP_PKEY* key = nullptr;
};

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

Certificate read_certificate(const std::string& pem) {
  const Text text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free_all);
  Certificate out(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), &X509_free);
  ERR_clear_error();  // An empty text leaves one, and the next call of anybody would report it.
  return out;
}

Key read_key(const std::string& pem) {
  const Text text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free_all);
  char no_passphrase[] = "";  // Otherwise OpenSSL would ask on the terminal.
  Key out(PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, no_passphrase), &EVP_PKEY_free);
  ERR_clear_error();
  return out;
}

bool set_time(ASN1_TIME* time, k8s::WallTime value) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(value.time_since_epoch()).count();
  return ASN1_TIME_set(time, static_cast<std::time_t>(seconds)) != nullptr;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()), &X509_EXTENSION_free);
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_serial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return false;
  bytes[0] &= 0x7f;  // RFC 5280: positive.
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(BN_bin2bn(bytes, sizeof(bytes), nullptr), &BN_free);
  return number != nullptr && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_name(X509_NAME* name, const std::string& common_name) {
  const auto* const text = reinterpret_cast<const unsigned char*>(common_name.data());
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, static_cast<int>(common_name.size()), -1, 0) == 1;
}

using Extensions = std::vector<std::pair<int, std::string>>;

// Signed by the issuer, or by itself. Empty: OpenSSL failed.
std::optional<Issued> issue(const std::string& common_name, const Extensions& extensions, const Issuer& issuer,
                            k8s::WallTime now, k8s::Duration life) {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Certificate made(X509_new(), &X509_free);
  X509* const certificate = made.get();
  X509* const signer = issuer.certificate != nullptr ? issuer.certificate : certificate;
  const auto from = std::chrono::floor<std::chrono::milliseconds>(now - kClockSkew);
  const auto to = std::chrono::floor<std::chrono::milliseconds>(now + life);
  bool good = key != nullptr && certificate != nullptr && X509_set_version(certificate, 2) == 1 &&
              set_serial(certificate) && set_time(X509_getm_notBefore(certificate), from) &&
              set_time(X509_getm_notAfter(certificate), to) && X509_set_pubkey(certificate, key.get()) == 1 &&
              set_name(X509_get_subject_name(certificate), common_name) &&
              X509_set_issuer_name(certificate, X509_get_subject_name(signer)) == 1;
  for (const auto& [nid, value] : extensions) good = good && add_extension(certificate, signer, nid, value);
  good = good && X509_sign(certificate, issuer.key != nullptr ? issuer.key : key.get(), EVP_sha256()) != 0;
  const Text certificate_text(BIO_new(BIO_s_mem()), &BIO_free_all);
  const Text key_text(BIO_new(BIO_s_mem()), &BIO_free_all);
  good = good && PEM_write_bio_X509(certificate_text.get(), certificate) == 1 &&
         PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1;
  if (!good) return std::nullopt;
  return Issued{text_of(certificate_text.get()), text_of(key_text.get())};
}

std::optional<Issued> issue_authority(k8s::WallTime now, const CertificateTerms& terms) {
  // Its own name each: who verifies finds the issuer by name, and two are published at once.
  const std::string name =
      "gpu-sharing-operator-ca-" +
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  return issue(name,
               {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                {NID_key_usage, "critical,keyCertSign,cRLSign"},
                {NID_subject_key_identifier, "hash"}},
               {}, now, terms.authority_life);
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "DNS:" : ",DNS:") + name;
  return out;
}

std::optional<Issued> issue_leaf(const std::vector<std::string>& names, const Issuer& issuer, k8s::WallTime now,
                                 const CertificateTerms& terms) {
  return issue("gpu-sharing-operator",
               {{NID_basic_constraints, "critical,CA:FALSE"},
                {NID_key_usage, "critical,digitalSignature"},
                {NID_ext_key_usage, "serverAuth"},
                {NID_authority_key_identifier, "keyid:always"},
                {NID_subject_alt_name, alternative_names(names)}},
               issuer, now, terms.leaf_life);
}

// The certificate and its key can be read, belong together, are valid already (they are not if a clock that was ahead
// issued them), and last for at least `left` from `now`.
bool is_usable(const std::string& certificate_pem, const std::string& key_pem, k8s::WallTime now, k8s::Duration left) {
  const Certificate certificate = read_certificate(certificate_pem);
  const Key key = read_key(key_pem);
  return certificate != nullptr && key != nullptr && X509_check_private_key(certificate.get(), key.get()) == 1 &&
         wall_time(X509_get0_notBefore(certificate.get())) <= now &&
         wall_time(X509_get0_notAfter(certificate.get())) - now > left;
}

bool is_for(const std::string& certificate_pem, const std::vector<std::string>& names) {
  const Certificate certificate = read_certificate(certificate_pem);
  return certificate != nullptr && std::all_of(names.begin(), names.end(), [&certificate](const std::string& name) {
           return X509_check_host(certificate.get(), name.data(), name.size(), 0, nullptr) == 1;
         });
}

bool is_signed_by(const std::string& certificate_pem, const std::string& authority_pem) {
  const Certificate certificate = read_certificate(certificate_pem);
  const Certificate authority = read_certificate(authority_pem);
  if (certificate == nullptr || authority == nullptr) return false;
  const bool verified = X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  return verified;
}

k8s::Duration age(const std::string& certificate_pem, k8s::WallTime now) {
  const Certificate certificate = read_certificate(certificate_pem);
  if (certificate == nullptr) return k8s::Duration::zero();
  return now - (wall_time(X509_get0_notBefore(certificate.get())) + kClockSkew);
}

bool has_ended(const std::string& certificate_pem, k8s::WallTime now) {
  const Certificate certificate = read_certificate(certificate_pem);
  return certificate == nullptr || wall_time(X509_get0_notAfter(certificate.get())) <= now;
}

// The authority that signs, the one that will, the one that did. False: OpenSSL failed.
bool renew_authorities(OwnCertificate& held, k8s::WallTime now, const CertificateTerms& terms) {
  if (has_ended(held.previous_ca_pem, now)) held.previous_ca_pem.clear();
  const bool next_usable = is_usable(held.next_ca_pem, held.next_ca_key_pem, now, k8s::Duration::zero());
  if (!next_usable) held.next_ca_pem = held.next_ca_key_pem = "";
  const bool usable = is_usable(held.ca_pem, held.ca_key_pem, now, k8s::Duration::zero());
  if (next_usable && (!usable || age(held.next_ca_pem, now) >= terms.overlap)) {
    held.previous_ca_pem = has_ended(held.ca_pem, now) ? "" : std::exchange(held.ca_pem, "");
    held.ca_pem = std::exchange(held.next_ca_pem, "");
    held.ca_key_pem = std::exchange(held.next_ca_key_pem, "");
    return true;
  }
  if (usable && (next_usable || is_usable(held.ca_pem, held.ca_key_pem, now, terms.authority_renewal))) return true;
  std::optional<Issued> fresh = issue_authority(now, terms);
  if (!fresh) return false;
  (usable ? held.next_ca_pem : held.ca_pem) = std::move(fresh->certificate_pem);
  (usable ? held.next_ca_key_pem : held.ca_key_pem) = std::move(fresh->key_pem);
  return true;
}

bool renew_leaf(OwnCertificate& held, const std::vector<std::string>& names, k8s::WallTime now,
                const CertificateTerms& terms) {
  const bool published =
      is_signed_by(held.certificate_pem, held.ca_pem) || is_signed_by(held.certificate_pem, held.previous_ca_pem);
  if (published && is_usable(held.certificate_pem, held.key_pem, now, terms.leaf_renewal) &&
      is_for(held.certificate_pem, names)) {
    return true;
  }
  const Certificate authority = read_certificate(held.ca_pem);
  const Key key = read_key(held.ca_key_pem);
  std::optional<Issued> fresh = issue_leaf(names, {authority.get(), key.get()}, now, terms);
  if (!fresh) return false;
  held.certificate_pem = std::move(fresh->certificate_pem);
  held.key_pem = std::move(fresh->key_pem);
  return true;
}

}  // namespace

k8s::Result<OwnCertificate> renew(OwnCertificate current, const std::vector<std::string>& names, k8s::WallTime now,
                                  const CertificateTerms& terms) {
  if (!renew_authorities(current, now, terms) || !renew_leaf(current, names, now, terms)) {
    ERR_clear_error();
    return k8s::fail(k8s::Reason::unavailable, "OpenSSL could not issue a certificate");
  }
  return current;
}

}  // namespace gso
