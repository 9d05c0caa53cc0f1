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
// Lease. Exit status: 0 fine, 1 when something is missing, 2 when the cluster cannot be reached.
[[nodiscard]] int run_check(const CheckOptions& check, const Options& options, std::ostream& out, std::ostream& err);

// The same on a given client.
boost::asio::awaitable<int> check_on_cluster(k8s::ApiClient* client, k8s::Clock* clock, Options options,
                                             CheckOptions check, std::ostream* out, std::ostream* err);

// Why no operator is at work, by its Lease; empty if one renews it, or if the Lease cannot be read.
boost::asio::awaitable<std::string> why_no_operator(k8s::ApiClient* client, k8s::Clock* clock, k8s::ObjectKey lease);

// Whether the text of a Lease shows a leader at `now`; if not, `why` says what is wrong.
[[nodiscard]] bool lease_is_held(const std::string& lease_json, k8s::WallTime now, std::string* why);

[[nodiscard]] Command make_check_command();

}  // namespace gso
