// Whether an operator is at work, by its Lease: what every command says first when none is.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "controller/runtime/leader_election.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace gso {

// Whether the Lease is fresh by this machine's clock `now`. The holder's clock can differ: true and false are hints.
[[nodiscard]] bool looks_fresh(const std::optional<LeaseRecord>& lease, k8s::WallTime now);

// Whether somebody holds a Lease, judged as an elector does: by what changes between two looks, never by comparing this
// machine's clock with the renewTime that another one wrote.
class LeaseRenewals {
 public:
  // The text of the Lease, read at `now`.
  void see(const std::string& lease_json, k8s::MonoTime now);
  // Its holder has renewed or acquired it since the first look.
  [[nodiscard]] bool renewed() const { return renewed_; }
  // Until when a holder that has not renewed can be alive; the past where there is none.
  [[nodiscard]] k8s::MonoTime expires() const;
  [[nodiscard]] const std::optional<LeaseRecord>& last() const { return last_; }
  // What is wrong as long as it is not renewed.
  [[nodiscard]] std::string why() const;

 private:
  std::optional<LeaseRecord> last_;
  bool seen_ = false;
  bool renewed_ = false;
  k8s::MonoTime changed_at_;
};

// No operator renews its Lease.
struct NoOperator {
  k8s::ObjectKey lease;
  std::string why;  // "pod-1 has not renewed the Lease since 2026-01-01T00:00:40Z"
  // The Lease exists: an operator has been at work here. Otherwise nothing follows: one can run in another namespace.
  bool was_running = false;

  // What is printed first: which Lease, since when, what follows from it, and what to type.
  [[nodiscard]] std::string text() const;
  // The same for the JSON field `operator`.
  [[nodiscard]] std::string field() const { return "none: " + why; }
};

// What the Leases of manifests (JSON) show: the one of the operator had expired, by far, when the newest of them was
// renewed. nullopt: it had not, or they do not show it.
[[nodiscard]] std::optional<NoOperator> no_operator_among(const std::vector<std::string>& leases,
                                                          const k8s::ObjectKey& lease);

// Whether an operator is at work, one of three answers.
struct OperatorPresence {
  std::optional<NoOperator> none{};    // No operator renews the Lease.
  std::string running{};               // The Lease that an operator renews, "namespace/name".
  std::optional<k8s::Error> unread{};  // The Lease cannot be read: whether an operator runs is unknown.
};

// If the Lease cannot be read, `incomplete` gets a line that says so, with the missing rule. Takes no time if the Lease
// looks fresh by this machine's clock; otherwise, as clocks differ, it is watched for five seconds: leaders renew every
// two seconds unless they are configured otherwise.
boost::asio::awaitable<OperatorPresence> find_operator(k8s::Reader* client, k8s::Clock* clock, k8s::ObjectKey lease,
                                                       std::vector<std::string>* incomplete);

}  // namespace gso
