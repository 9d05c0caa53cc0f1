// The certificate that the operator issues to itself where nobody gives it one: a certificate authority of its own, and
// a server certificate of that. Pure but for the random numbers of keys: the time comes with each call.
//
// Renewal never surprises who trusts the authority: a new one is published a week before it signs anything, and the old
// one stays published until it ends.
#pragma once

#include <string>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

namespace gso {

// PEM texts. Everything empty: nothing has been issued yet.
struct OwnCertificate {
  std::string ca_pem;           // The authority that signs now.
  std::string ca_key_pem;       // Its key.
  std::string next_ca_pem;      // Published, and signs later; empty: none.
  std::string next_ca_key_pem;  // Its key.
  std::string previous_ca_pem;  // Signed before; empty: none, or it has ended.
  std::string certificate_pem;  // Of the server.
  std::string key_pem;          // Its key.

  // What clients trust: all authorities that are published.
  [[nodiscard]] std::string bundle() const { return ca_pem + next_ca_pem + previous_ca_pem; }
  friend bool operator==(const OwnCertificate&, const OwnCertificate&) = default;
};

// How long each lasts. An authority: longer than a leaf and the overlap together.
struct CertificateTerms {
  k8s::Duration authority_life = std::chrono::hours(24 * 365);
  k8s::Duration authority_renewal = std::chrono::hours(24 * 90);  // The next one is published so long before the end.
  k8s::Duration overlap = std::chrono::hours(24 * 7);             // The next one is published so long before it signs.
  k8s::Duration leaf_life = std::chrono::hours(24 * 30);
  k8s::Duration leaf_renewal = std::chrono::hours(24 * 10);  // Renewed so long before the end.
};

// `current` with everything that is due at `now`; equal to it if nothing is. What cannot be read, has ended, has not
// begun (issued by a clock that was ahead), or does not belong together is issued anew. `names`: DNS names of the
// server, at least one. Errors: `unavailable`, from OpenSSL.
[[nodiscard]] k8s::Result<OwnCertificate> renew(OwnCertificate current, const std::vector<std::string>& names,
                                                k8s::WallTime now, const CertificateTerms& terms = {});

}  // namespace gso
