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

struct Subcommand;

struct CheckOptions {
  Duration timeout = std::chrono::seconds(30);  // How long to wait for a leader.
  // Also whether this account may send the operator's writes (SelfSubjectAccessReview; nothing is written). A person's
  // account usually does not have these permissions.
  bool writes = false;
  bool without_crds = false;  // The CRDs are left out on purpose: that neither is installed is no fault.
};

// One line for each check: read permissions, write permissions if requested, the CRDs, and a leader that renews its
// Lease while this program looks. A holder that does not renew is watched until its Lease has expired, also where that
// takes longer than the timeout; what is waited for, and until when at most, is on `err` before the wait. Exit status:
// 0 fine, 1 when something is missing, 2 when the cluster cannot be reached.
[[nodiscard]] int run_check(const CheckOptions& check, const Options& options, std::ostream& out, std::ostream& err);

// The same on a given client.
boost::asio::awaitable<int> check_on_cluster(k8s::ApiClient* client, k8s::Clock* clock, Options options,
                                             CheckOptions check, std::ostream* out, std::ostream* err);

[[nodiscard]] Subcommand make_check_command();

}  // namespace gso
