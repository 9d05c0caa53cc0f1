// DaemonSetSearch: looks for device plugins in the whole cluster without a watch. Only the DaemonSets of operand
// namespaces are watched (DynamicWatches); this finds which namespaces these are, and what runs elsewhere.
//
// Guarantees
//  - Memory is that of one small page, and of SeenDaemonSets::kMost small objects.
//  - Searches at start, once an hour, and when a ClusterPolicy appears, changes or goes. While there is nothing that
//    governs a node, or a ClusterPolicy owns no DaemonSet yet, it searches more often.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class DaemonSetSearch {
 public:
  static constexpr k8s::Duration kPeriod = std::chrono::hours(1);
  // Everything that is passed as a pointer must outlive the search.
  struct Parts {
    k8s::Reader* client = nullptr;
    k8s::Clock* clock = nullptr;
    World* world = nullptr;
    const PlannerSettings* settings = nullptr;
    k8s::Duration soon = std::chrono::seconds(30);  // Between two searches while nothing was found, or after a failure.
    std::function<void()> changed;                  // A search has ended.
    std::function<void(const k8s::Error&)> failed;
  };
  explicit DaemonSetSearch(Parts parts);
  DaemonSetSearch(const DaemonSetSearch&) = delete;
  DaemonSetSearch& operator=(const DaemonSetSearch&) = delete;

  // Until stop().
  boost::asio::awaitable<void> run();
  void stop();

  // Decides over the operand namespaces from the last search and the record, and says in World what is foreign. False:
  // no search has ended yet, the ClusterPolicies are not known, or the record is still loading.
  bool decide();
  // Searches now.
  void look_again();
  // Why the last search failed; nullopt: it did not.
  [[nodiscard]] const std::optional<k8s::Error>& error() const { return error_; }
  // A search has ended once.
  [[nodiscard]] bool ended() const { return seen_.has_value(); }

 private:
  boost::asio::awaitable<k8s::Result<SeenDaemonSets>> search();
  [[nodiscard]] bool policies_known() const;
  [[nodiscard]] k8s::Duration pause() const;
  void show_foreign();

  Parts parts_;
  std::unique_ptr<k8s::Signal> wake_;
  OperandNamespaces namespaces_;
  std::optional<SeenDaemonSets> seen_;
  std::optional<k8s::Error> error_;
  bool due_ = false;
  bool searching_ = false;
  bool record_known_ = false;
  bool stopping_ = false;
};

}  // namespace gso
