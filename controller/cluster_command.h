// A command that asks the cluster something and ends: the connection of the user's kubeconfig, one client, one
// coroutine.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <iosfwd>
#include <string>

#include "controller/options.h"
#include "k8sclient/client.h"
#include "k8sclient/clock.h"

namespace gso {

// Calls a named coroutine with the client and the clock, and returns its exit status.
using ClusterTask = std::function<boost::asio::awaitable<int>(k8s::ApiClient* client, k8s::Clock* clock)>;

// Runs it on the real clock and the server of --kubeconfig, --context or the pod. Exit status 2, with why on `err`,
// when there is no usable connection; else what the task returned.
[[nodiscard]] int run_on_cluster(const std::string& command, const Options& options, std::ostream& err,
                                 const ClusterTask& task);

}  // namespace gso
