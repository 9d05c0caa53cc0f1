// Where the connection comes from: the pod's service account, or a kubeconfig.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "k8sclient/auth/connection.h"
#include "k8sclient/auth/file_read.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

// --- The connection of a program that runs in a pod: the ServiceAccount's files and two environment variables.

// A variable's value, or nullopt when it is not set. process_environment() is the real one.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] Environment process_environment();

// True when KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are set.
[[nodiscard]] bool runs_in_cluster(const Environment& environment);

// The token is re-read every minute and on 401; CA and namespace are read now. `root` stands before
// /var/run/secrets/kubernetes.io/serviceaccount (tests). Errors: `invalid`, naming the variable or file.
[[nodiscard]] Result<Connection> in_cluster_connection(const Environment& environment, Clock* clock,
                                                       const std::string& root = {});

// --- Where the connection comes from, when the user does not say it all.

struct ConnectionRequest {
  std::string kubeconfig;  // --kubeconfig; empty when not given.
  std::string context;     // --context; empty: the current one. Names a kubeconfig's context, so in-cluster is out.
  Interaction interaction = {};  // For credential plugins. None: nobody is there to answer.
};

// The first that applies, as controller-runtime and kubectl do: --kubeconfig; the files of KUBECONFIG (colon
// separated, merged); the pod's ServiceAccount; $HOME/.kube/config. Errors: `invalid`, saying what was tried.
[[nodiscard]] Result<Connection> load_connection(const ConnectionRequest& request, const Environment& environment,
                                                 Clock* clock);

}  // namespace k8s
