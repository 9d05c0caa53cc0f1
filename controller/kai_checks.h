// What KAI's planners cannot see in watches, read on request; and the last look before a reservation is deleted.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/logging.h"
#include "k8sclient/client.h"
#include "k8sclient/clock.h"
#include "reconcilers/plan.h"
#include "reconcilers/snapshot.h"

namespace gso {

class KaiChecks {
 public:
  // Everything passed must outlive this object. `world` gets the answers (KaiWorld::lookups).
  KaiChecks(k8s::ApiClient* client, k8s::Clock* clock, World* world, const KaiSettings* settings,
            std::shared_ptr<Logger> log)
      : client_(client), clock_(clock), world_(world), settings_(settings), log_(std::move(log)) {}

  enum class Answered { nothing, some, failed };
  // Looks up what is wanted; what fails stays as it was (and is wanted again). Old answers are forgotten.
  boost::asio::awaitable<Answered> answer(KaiWants wants);

  // The deletions (DeletePod of reservations) that fresh, consistent lists still justify, judged by the same rules as
  // they were planned by. Reads pods of each group in both label forms, the binder's Lease where it has replicas, then
  // all BindRequests, then the pods that succeeded BindRequests name. Any error, any difference in uid or
  // resourceVersion: not among them. Ends within `patience`.
  boost::asio::awaitable<std::set<k8s::ObjectKey>> still_due(std::vector<PlannedAction> deletions);

 private:
  struct Fresh;
  using FreshPtr = std::shared_ptr<Fresh>;
  boost::asio::awaitable<k8s::Result<std::vector<KaiPod>>> list_pods(k8s::LabelSelector selector);
  boost::asio::awaitable<k8s::Result<bool>> is_pod_alive(k8s::ObjectKey pod);
  boost::asio::awaitable<k8s::Result<KaiLookups::Devices>> devices_in(k8s::ObjectKey config_map);
  boost::asio::awaitable<k8s::Result<KaiLookups::Waiting>> waiting_pods();
  boost::asio::awaitable<k8s::Result<KaiLookups::Lease>> binder_lease();
  boost::asio::awaitable<k8s::Result<void>> confirm_leader();
  boost::asio::awaitable<k8s::Result<void>> gather(FreshPtr fresh);
  boost::asio::awaitable<k8s::Result<void>> gather_pods(FreshPtr fresh, std::string group);
  boost::asio::awaitable<k8s::Result<void>> gather_requests(FreshPtr fresh);
  boost::asio::awaitable<k8s::Result<void>> gather_details(FreshPtr fresh);
  boost::asio::awaitable<k8s::Result<void>> confirm_node_gone(std::string node);
  void forget_old();
  [[nodiscard]] k8s::CallOptions call() const;

  k8s::ApiClient* client_;
  k8s::Clock* clock_;
  World* world_;
  const KaiSettings* settings_;
  std::shared_ptr<Logger> log_;
};

}  // namespace gso
