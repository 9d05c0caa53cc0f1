// Where the connection comes from, when the user does not say it all.
#pragma once

#include <string>

#include "k8sclient/auth/connection.h"
#include "k8sclient/auth/in_cluster.h"
#include "k8sclient/auth/interaction.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

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
