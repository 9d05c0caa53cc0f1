// Who uses a node's GPUs: the only place that lists the pods of one node to answer that.
//
//   k8s::Result<NodeConsumers> used = co_await read_consumers(client, clock, &world, &settings, node, limits);
//
// Guarantee: an answer is complete, or NodeConsumers::unknown names what cannot be read or kept. A pod that cannot be
// decoded could use the GPUs: no caller concludes from such an answer that the GPUs are free. The same is true of a
// ResourceClaim; claims are read where nothing else decides whether a pod uses a GPU. It concerns that node alone:
// whoever can create pods there keeps no other node waiting.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/config/logging.h"
#include "controller/runtime/outage_log.h"
#include "controller/runtime/task_group.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct Execution;  // controller/writes/executor.h

// Of one node, by uid of a pod: whether one of its ResourceClaims is allocated to a GPU, or all are to other devices.
// That stays so while the pod exists.
using KnownClaims = std::shared_ptr<std::map<std::string, bool>>;

// The pods of one node that use its GPUs, and those that the kubelet rejected there, as of now. `limits`: of each
// request. The claims of pods in `known` are not read again; it can be null. `unread`: why the claims of pods that are
// among them in doubt could not be read; null: that makes the answer `unknown`. Errors: the list's, with the missing
// rule where it is forbidden.
boost::asio::awaitable<k8s::Result<NodeConsumers>> read_consumers(k8s::Reader* client, k8s::Clock* clock,
                                                                  const World* world, const PlannerSettings* settings,
                                                                  std::string node, k8s::CallOptions limits,
                                                                  KnownClaims known = {},
                                                                  std::string* unread = nullptr);

// For one list of all pods: those that only `claims` make GPU consumers, and that are for other devices, leave
// `consumers`. The first claim that cannot be read makes its node's unknown, as above, and is returned; no further one
// is read then.
boost::asio::awaitable<std::string> leave_out_other_claims(k8s::Reader* client, const World* world, ClaimsOfPods claims,
                                                           std::map<std::string, NodeConsumers>* consumers);

// The listings that the operator plans with: read when a plan wants them, together with the nodes of the consumers'
// jobs, and kept with the answers to evictions.
class NodeConsumersReader {
 public:
  struct Parts {
    k8s::Reader* client = nullptr;
    k8s::Clock* clock = nullptr;
    const World* world = nullptr;
    const FleetIndex* index = nullptr;  // Says which policy governs a node: jobs are followed under `workloads: Evict`.
    const PlannerSettings* settings = nullptr;
    std::shared_ptr<Logger> log;
    boost::asio::any_io_executor executor;
    // Plan again after this: a listing is too recent to be repeated, or one has come late.
    std::function<void(k8s::Duration after)> wake;
  };
  explicit NodeConsumersReader(Parts parts);

  // True: there are new answers to plan with. Lists the pods of these nodes, a few nodes at a time, and forgets old
  // listings of others. A node that was listed a moment ago is not listed again, one whose lists fail after 1 s to 30
  // s. A list that takes a quarter of a second longer than all others is left behind: it goes on, its node is not
  // listed beside it, and `wake` follows when it has ended.
  boost::asio::awaitable<bool> refresh(std::set<std::string> nodes);
  // Lists that have been left behind go on.
  [[nodiscard]] bool is_busy() const { return !being_listed_.empty(); }
  // Begins no further request.
  void stop() { stopping_ = true; }
  // Ends the requests under way.
  void cancel() { readers_.cancel(); }
  // All have ended. Before anything that they use goes away.
  boost::asio::awaitable<void> join() { return readers_.join(); }

  // By node: as last listed.
  [[nodiscard]] const std::map<std::string, NodeConsumers>& listings() const { return listings_; }
  // Remembers how evictions were answered while the pods exist. An evicted pod is ending, which only the next listing
  // shows: until then it counts as terminating, so that it is not evicted again.
  void note_evictions(const Execution& execution);

 private:
  struct JobNodes {
    k8s::MonoTime listed_at{};
    std::set<std::string> nodes;
  };
  // Nodes whose pods are still to be listed, shared by a few workers.
  struct Run {
    std::vector<std::string> nodes;
    std::size_t workers = 0;
    bool any_ended = false;
    bool left = false;  // refresh() has returned.
  };
  void note_listed(const std::string& node, NodeConsumers found);
  void note_failed(const std::string& node, const k8s::Error& error);
  boost::asio::awaitable<void> work(std::shared_ptr<Run> run);
  boost::asio::awaitable<void> list_node(std::shared_ptr<Run> run, std::string node);
  boost::asio::awaitable<k8s::Result<NodeConsumers>> read_with_jobs(std::string node);
  boost::asio::awaitable<k8s::Result<std::set<std::string>>> nodes_of_job(Job job);
  [[nodiscard]] std::vector<Job> jobs_to_follow(const std::string& node, const std::vector<Pod>& pods) const;
  [[nodiscard]] k8s::CallOptions patience() const;

  Parts parts_;
  std::map<std::string, NodeConsumers> listings_;
  std::map<std::string, KnownClaims> known_claims_;  // By node, of those in `listings_`.
  std::map<std::string, JobNodes> jobs_;             // By Job::id.
  std::set<std::string> being_listed_;
  struct Failures {
    int count = 0;
    k8s::MonoTime next_look{};  // Not listed again before this.
  };
  std::map<std::string, Failures, std::less<>> failures_;  // By node: its last list failed.
  OutageLog outages_;
  EndCounter lists_ended_;
  bool stopping_ = false;
  TaskGroup readers_;
};

}  // namespace gso
