// `support-bundle`: everything that helps to find a fault, without secrets, in one archive. Reads only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <string>

#include "controller/options.h"
#include "k8sclient/client.h"
#include "k8sclient/clock.h"

namespace gso {

struct SupportBundleOptions {
  std::string file = "gpu-sharing-support.tar";  // "-": stdout.
};

// Exit status: 0 written (what could not be read is named in incomplete.txt), 2 the cluster cannot be read, or the file
// not written.
[[nodiscard]] int run_support_bundle(const SupportBundleOptions& bundle, const Options& options, std::ostream& out,
                                     std::ostream& err);

// The archive's bytes. Errors: Nodes or DaemonSets cannot be read.
boost::asio::awaitable<k8s::Result<std::string>> support_bundle(k8s::ApiClient* client, k8s::Clock* clock,
                                                                Options options);

}  // namespace gso
