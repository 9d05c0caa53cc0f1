// `support-bundle`: everything that helps to find a fault, without secrets, in one archive. Reads only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <string>
#include <vector>

#include "controller/config/options.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"

namespace gso {

struct Subcommand;

struct SupportBundleOptions {
  std::string file = "gpu-sharing-support.tar.gz";  // "-": stdout.
};

// Exit status: 0 written (what could not be read is named on stderr and in incomplete.txt), 2 the cluster or all of its
// objects cannot be read, or the file not written.
[[nodiscard]] int run_support_bundle(const SupportBundleOptions& bundle, const Options& options, std::ostream& out,
                                     std::ostream& err);

// The archive's bytes, a compressed tar. Without the right to read Nodes or DaemonSets it holds what can be read: no
// status, plan and audit then. `incomplete` gets what is missing, each with the missing rule; it can be null. Errors:
// the API server does not answer, knows nobody of that name (401), or allows no list at all.
boost::asio::awaitable<k8s::Result<std::string>> support_bundle(k8s::Reader* client, k8s::Clock* clock, Options options,
                                                                std::vector<std::string>* incomplete = nullptr);

[[nodiscard]] Subcommand make_support_bundle_command();

}  // namespace gso
