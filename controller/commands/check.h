// `check`: whether an installation works, as its own account sees it. What `helm test` runs.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <string>

#include "controller/config/options.h"
#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/time.h"

namespace gso {

struct Command;

struct CheckOptions {
  Duration timeout = std::chrono::seconds(30);  // How long to wait for a leader.
  // Also whether this account may send the operator's writes (SelfSubjectAccessReview; nothing is written). A person's
  // account usually does not have these permissions.
  bool writes = false;
};

// One line for each check: read permissions, write permissions if requested, the CRDs, and a leader that renews its
// Lease while this program looks. A holder that does not renew is watched until its Lease has expired, also where that
// takes longer than the timeout. Exit status: 0 fine, 1 when something is missing, 2 when the cluster cannot be
// reached.
[[nodiscard]] int run_check(const CheckOptions& check, const Options& options, std::ostream& out, std::ostream& err);

// The same on a given client.
boost::asio::awaitable<int> check_on_cluster(k8s::ApiClient* client, k8s::Clock* clock, Options options,
                                             CheckOptions check, std::ostream* out, std::ostream* err);

// Why no operator is at work, by its Lease; empty if one renews it, or if the Lease cannot be read. Takes no time if
// the Lease looks fresh by this machine's clock; otherwise, as clocks differ, it is watched for five seconds: leaders
// renew every two seconds unless they are configured otherwise.
boost::asio::awaitable<std::string> why_no_operator(k8s::Reader* client, k8s::Clock* clock, k8s::ObjectKey lease);

// What the text of a Lease says about its holder.
struct LeaseFacts {
  std::string holder;
  std::string renew_time = "ever";  // As it is written there.
  Duration duration{};
  std::string problem;  // Why nobody can hold it; empty where there is a holder.
  friend bool operator==(const LeaseFacts&, const LeaseFacts&) = default;
};
[[nodiscard]] LeaseFacts lease_facts(const std::string& lease_json);

// Whether the Lease is fresh by this machine's clock `now`. The holder's clock can differ: true and false are hints.
[[nodiscard]] bool looks_fresh(const LeaseFacts& lease, k8s::WallTime now);

// Whether somebody holds a Lease, judged as an elector does: by what changes between two looks, never by comparing this
// machine's clock with the renewTime that another one wrote.
class LeaseWatch {
 public:
  // The text of the Lease, read at `now`.
  void see(const std::string& lease_json, k8s::MonoTime now);
  // Its holder has renewed or acquired it since the first look.
  [[nodiscard]] bool renewed() const { return renewed_; }
  // Until when a holder that has not renewed can be alive; the past where there is none.
  [[nodiscard]] k8s::MonoTime expires() const;
  [[nodiscard]] const LeaseFacts& last() const { return last_; }
  // What is wrong as long as it is not renewed.
  [[nodiscard]] std::string why() const;

 private:
  LeaseFacts last_;
  bool seen_ = false;
  bool renewed_ = false;
  k8s::MonoTime changed_at_;
};

[[nodiscard]] Command make_check_command();

}  // namespace gso
