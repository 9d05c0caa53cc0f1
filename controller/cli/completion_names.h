// Names of the cluster's objects for a shell that completes a word.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"

namespace gso {

struct NameQuestion {
  enum class Kind { node, name_space, pod, policy, rollout } kind = Kind::node;
  std::string ns;      // Of pods; empty: that of the kubeconfig's context.
  std::string before;  // Prefix of each name: "policy/", "team-a/".
  std::string after;   // Suffix of each name: "/".
};

// How the cluster is reached, as the words so far say.
struct NameConnection {
  std::string kubeconfig;
  std::string context;
};
using NameSource = std::function<std::vector<std::string>(const std::vector<NameQuestion>& questions,
                                                          const NameConnection& connection)>;

// Asks the cluster, for two seconds in all, at most 500 names for each question. Errors are not shown while typing:
// names that cannot be read are not offered.
[[nodiscard]] std::vector<std::string> names_of_cluster(const std::vector<NameQuestion>& questions,
                                                        const NameConnection& connection);

// The same on a given client. `ns`: of a pod's question without one.
boost::asio::awaitable<std::vector<std::string>> list_names(k8s::Reader* client, k8s::Clock* clock,
                                                            std::vector<NameQuestion> questions, std::string ns);

}  // namespace gso
