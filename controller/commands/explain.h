// `explain`: why a node is in its state, or why a pod that wants GPUs is Pending, rejected or slow. Reads only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "controller/commands/shared/print.h"
#include "controller/config/options.h"
#include "controller/reading/cluster_reader.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/pod.h"

namespace gso {

struct Subcommand;

struct ExplainOptions {
  std::vector<std::string> what;   // NODE | NAMESPACE/POD | node NAME | pod NAME | pod NAMESPACE/NAME
  std::string pod_namespace;       // --namespace beside `pod NAME`, as kubectl means it; empty: not so.
  std::vector<std::string> files;  // Manifests instead of the live cluster; "-" is stdin.
  OutputForm form = OutputForm::text;
  std::string lease_name = Options().lease_name;  // Of the operator.
};

struct ExplainTarget {
  bool pod = false;
  k8s::ObjectKey key;
};
// Errors (`invalid`) say what is accepted. `ns`: of a pod without one.
[[nodiscard]] k8s::Result<ExplainTarget> explain_target(const std::vector<std::string>& what, const std::string& ns);

// `pod NAME`: --namespace is the pod's then, as with kubectl, not the operator's.
[[nodiscard]] bool names_a_pod_alone(const std::vector<std::string>& what);

// Exit status: 0 nothing is wrong, 1 the node is Failed or Blocked or has an error, no operator runs that ends its
// change, or the pod cannot run; 2 there is no such object, or the cluster cannot be read.
[[nodiscard]] int run_explain(const ExplainOptions& explain, const Options& options, std::istream& in,
                              std::ostream& out, std::ostream& err);

// A pod, for somebody who may read neither nodes nor device plugins: its Events and its namespace are read instead.
// `pod_json`: the pod. What cannot be read is added to `incomplete`. In explain_pods.cc.
boost::asio::awaitable<k8s::Result<PodExplanation>> explain_alone(k8s::Reader* client, k8s::Clock* clock,
                                                                  k8s::ObjectKey pod, std::string pod_json,
                                                                  PlannerSettings settings,
                                                                  std::vector<std::string>* incomplete);

// What a workload says that has the name of a pod that does not exist.
struct UncreatedPod {
  std::optional<PodExplanation> explanation;  // Its pods could not be created; nullopt: none says so.
  std::string hint;                           // Without one: where to look.
};
// `pod`: it does not exist. What cannot be read is added to `incomplete`. In explain_pods.cc.
boost::asio::awaitable<UncreatedPod> find_uncreated_pod(k8s::Reader* client, k8s::ObjectKey pod,
                                                        std::vector<std::string>* incomplete);

// run_explain() on a given client. `lease_name`: of the operator.
boost::asio::awaitable<int> explain_on_cluster(k8s::Reader* client, k8s::Clock* clock, ExplainTarget target,
                                               OutputForm form, PlannerSettings settings, std::ostream* out,
                                               std::ostream* err, std::string lease_name = Options().lease_name);

// What `explain NODE` prints about a node. `columns`: of the terminal; 0: it is none.
void print_explanation(const NodeExplanation& explanation, std::ostream& out, std::size_t columns = 0);

[[nodiscard]] Subcommand make_explain_command();

}  // namespace gso
