// The operator's own certificate through the years: what is renewed when, and that whoever trusts what was published a
// week ago can verify the server at any time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/serving/own_certificate.h"

namespace gso::own_certificate_test {
namespace {

using namespace std::chrono_literals;
const std::vector<std::string> kNames = {"gso-metrics.ops.svc", "gso-metrics.ops.svc.cluster.local"};
const k8s::WallTime kStart = *k8s::parse_rfc3339("2026-01-01T00:00:00Z");

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

std::vector<Certificate> certificates_of(const std::string& pem) {
  std::vector<Certificate> out;
  BIO* const text = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  while (X509* const one = PEM_read_bio_X509(text, nullptr, nullptr, nullptr)) out.emplace_back(one, &X509_free);
  BIO_free(text);
  return out;
}

// As a TLS client does at that time: chain, validity, purpose and name.
bool verifies(const std::string& trusted, const std::string& certificate, k8s::WallTime now,
              const std::string& host = kNames.front()) {
  X509_STORE* const store = X509_STORE_new();
  for (const Certificate& one : certificates_of(trusted)) X509_STORE_add_cert(store, one.get());
  const Certificate leaf = std::move(certificates_of(certificate).at(0));
  X509_STORE_CTX* const context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, leaf.get(), nullptr);
  X509_VERIFY_PARAM* const terms = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_time(terms, std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count());
  X509_VERIFY_PARAM_set_purpose(terms, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set1_host(terms, host.data(), host.size());
  X509_VERIFY_PARAM_set_flags(terms, X509_V_FLAG_X509_STRICT);
  const bool good = X509_verify_cert(context) == 1;
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return good;
}

OwnCertificate renewed(const OwnCertificate& current, k8s::WallTime now,
                       const std::vector<std::string>& names = kNames) {
  k8s::Result<OwnCertificate> out = renew(current, names, now);
  EXPECT_TRUE(out.has_value());
  return out.value_or(OwnCertificate{});
}

TEST(OwnCertificate, TheFirstOneIsVerifiedByItsAuthorityForItsNamesAlone) {
  const OwnCertificate first = renewed({}, kStart);
  for (const std::string& name : kNames) EXPECT_TRUE(verifies(first.bundle(), first.certificate_pem, kStart, name));
  EXPECT_FALSE(verifies(first.bundle(), first.certificate_pem, kStart, "other.ops.svc"));
  EXPECT_FALSE(verifies(renewed({}, kStart).bundle(), first.certificate_pem, kStart)) << "another authority";
  EXPECT_TRUE(verifies(first.bundle(), first.certificate_pem, kStart - 59min)) << "a clock that is behind";
}

TEST(OwnCertificate, NothingIsIssuedAnewBeforeItIsDue) {
  const OwnCertificate first = renewed({}, kStart);
  EXPECT_EQ(renewed(first, kStart), first);
  EXPECT_EQ(renewed(first, kStart + std::chrono::days(19)), first);
  const OwnCertificate later = renewed(first, kStart + std::chrono::days(21));
  EXPECT_NE(later.certificate_pem, first.certificate_pem);
  EXPECT_EQ(later.ca_pem, first.ca_pem);
}

TEST(OwnCertificate, WhoTrustsWhatWasPublishedAWeekAgoCanAlwaysVerify) {
  OwnCertificate held;
  std::deque<std::string> published;  // One a day.
  int authorities = 0;
  for (int day = 0; day < 2 * 365; ++day) {
    const k8s::WallTime now = kStart + std::chrono::days(day);
    const OwnCertificate fresh = renewed(held, now);
    authorities += fresh.ca_pem != held.ca_pem ? 1 : 0;
    held = fresh;
    published.push_back(held.bundle());
    if (published.size() > 7) published.pop_front();
    ASSERT_TRUE(verifies(published.front(), held.certificate_pem, now)) << "day " << day;
    ASSERT_TRUE(verifies(held.bundle(), held.certificate_pem, now + std::chrono::days(9))) << "day " << day;
    ASSERT_LE(certificates_of(held.bundle()).size(), 2U) << "day " << day;
  }
  EXPECT_GE(authorities, 3);
  EXPECT_LE(authorities, 4);
}

TEST(OwnCertificate, WhatAClockThatWasAheadHasIssuedIsIssuedAnew) {
  const k8s::WallTime ahead = kStart + std::chrono::days(3);
  const OwnCertificate first = renewed({}, ahead);
  ASSERT_FALSE(verifies(first.bundle(), first.certificate_pem, kStart)) << "not valid yet";
  const OwnCertificate corrected = renewed(first, kStart);
  EXPECT_TRUE(verifies(corrected.bundle(), corrected.certificate_pem, kStart));
  EXPECT_EQ(renewed(corrected, kStart), corrected);
  // Of an authority that has begun, and whose server certificate was renewed by that clock.
  const OwnCertificate good = renewed({}, kStart);
  const OwnCertificate by_clock_ahead = renewed(good, kStart + std::chrono::days(21));
  ASSERT_FALSE(verifies(good.bundle(), by_clock_ahead.certificate_pem, kStart));
  const OwnCertificate again = renewed(by_clock_ahead, kStart);
  EXPECT_EQ(again.bundle(), good.bundle());
  EXPECT_TRUE(verifies(good.bundle(), again.certificate_pem, kStart));
  EXPECT_EQ(renewed(good, kStart - 59min), good) << "a clock that is a little behind replaces nothing";
}

TEST(OwnCertificate, OtherNamesGiveAnotherCertificateOfTheSameAuthority) {
  const OwnCertificate first = renewed({}, kStart);
  const OwnCertificate second = renewed(first, kStart, {"webhook.ops.svc"});
  EXPECT_EQ(second.ca_pem, first.ca_pem);
  EXPECT_TRUE(verifies(first.bundle(), second.certificate_pem, kStart, "webhook.ops.svc"));
}

TEST(OwnCertificate, WhatIsDamagedOrDoesNotBelongTogetherIsIssuedAnew) {
  const OwnCertificate good = renewed({}, kStart);
  const OwnCertificate other = renewed({}, kStart);
  std::vector<OwnCertificate> damaged(6, good);
  damaged[0].certificate_pem = "x";
  damaged[1].key_pem = other.key_pem;
  damaged[2].ca_pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  damaged[3].ca_key_pem = other.ca_key_pem;
  damaged[4].certificate_pem = other.certificate_pem, damaged[4].key_pem = other.key_pem;
  damaged[5].next_ca_pem = "x", damaged[5].previous_ca_pem = "y";
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    const OwnCertificate repaired = renewed(damaged[i], kStart);
    EXPECT_TRUE(verifies(repaired.bundle(), repaired.certificate_pem, kStart)) << i;
    EXPECT_EQ(renewed(repaired, kStart), repaired) << i;
  }
  EXPECT_EQ(renewed(damaged[5], kStart), good);
}

TEST(OwnCertificate, AfterALongStopEverythingIsIssuedAnew) {
  const OwnCertificate first = renewed({}, kStart);
  const k8s::WallTime later = kStart + std::chrono::days(400);
  const OwnCertificate second = renewed(first, later);
  EXPECT_TRUE(verifies(second.bundle(), second.certificate_pem, later));
  EXPECT_NE(second.ca_pem, first.ca_pem);
  EXPECT_EQ(second.previous_ca_pem, "");
}

}  // namespace
}  // namespace gso::own_certificate_test
