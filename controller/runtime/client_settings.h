// How the operator talks to the API server: pages, places for writes, the metrics of client-go, and the log of outages.
#pragma once

#include "controller/runtime/outage_log.h"
#include "controller/runtime/run_operator.h"
#include "k8sclient/api/client.h"
#include "k8sclient/server_clock.h"
#include "k8sclient/watch/watcher.h"

namespace gso {

// Every request is counted in `runtime.metrics` under the names that client-go uses, its status goes to `outages`, and
// its date to `clock`. Both must outlive the client.
[[nodiscard]] k8s::ClientOptions client_options(const Runtime& runtime, const Options& options, OutageLog* outages,
                                                k8s::ServerClock* clock);

[[nodiscard]] k8s::WatcherOptions watcher_options(const Runtime& runtime, const Options& options);

}  // namespace gso
