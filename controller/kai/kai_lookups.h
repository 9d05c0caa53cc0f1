// Reads on request for what KAI's planners cannot see in watches, and the final check before a reservation is deleted.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/config/logging.h"
#include "controller/runtime/task_group.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class KaiReader {
 public:
  // Everything passed must outlive this object. `world` gets the refusals (LookupResults::refusals).
  KaiReader(k8s::Reader* client, k8s::Clock* clock, World* world, const KaiSettings* settings,
            std::shared_ptr<Logger> log)
      : client_(client), clock_(clock), world_(world), settings_(settings), log_(std::move(log)), readers_(clock) {}

  // --- Single reads, all of them consistent but waiting_pods().
  // For one read that begins now.
  [[nodiscard]] k8s::CallOptions patience() const;
  // Pods labelled runai-gpu-group/<group>, in all namespaces.
  boost::asio::awaitable<k8s::Result<std::vector<KaiPod>>> multi_device_pods(std::string group,
                                                                             k8s::CallOptions limits);
  boost::asio::awaitable<k8s::Result<bool>> is_pod_alive(k8s::ObjectKey pod, k8s::CallOptions limits);
  boost::asio::awaitable<k8s::Result<LookupResults::Devices>> devices_in(k8s::ObjectKey config_map,
                                                                         k8s::CallOptions limits);
  boost::asio::awaitable<k8s::Result<LookupResults::Waiting>> waiting_pods(k8s::CallOptions limits);
  boost::asio::awaitable<k8s::Result<LookupResults::Lease>> binder_lease(k8s::CallOptions limits);

  // The deletions (DeletePod of reservations) that fresh, consistent lists still justify, judged by the same rules as
  // they were planned by. Reads pods of each group in both label forms, the binder's Lease where it has replicas, then
  // all BindRequests, then the pods that succeeded BindRequests name; where a duplicate is to go, the pods of its group
  // and the BindRequests once more at the very end.
  // An error keeps what it concerns: one group, or all. So does any difference in uid or resourceVersion. Ends within
  // patience(); after a look that failed or was late the next one takes half as many deletions, those that were refused
  // longest ago first, and more again once it succeeds.
  boost::asio::awaitable<std::set<k8s::ObjectKey>> still_due(std::vector<PlannedAction> deletions);
  // Ends the reads of a last look in progress; it then confirms nothing.
  void cancel() { readers_.cancel(); }

 private:
  struct Look;
  struct Job;
  using LookPtr = std::shared_ptr<Look>;
  boost::asio::awaitable<k8s::Result<std::vector<KaiPod>>> list_pods(k8s::LabelSelector selector,
                                                                     k8s::CallOptions limits);
  boost::asio::awaitable<k8s::Result<void>> confirm_leader(LookPtr look);
  boost::asio::awaitable<k8s::Result<void>> gather(LookPtr look);
  boost::asio::awaitable<void> gather_again(LookPtr look);
  boost::asio::awaitable<k8s::Result<void>> gather_pods(LookPtr look, std::set<std::string> groups);
  boost::asio::awaitable<k8s::Result<void>> gather_requests(LookPtr look);
  boost::asio::awaitable<void> gather_details(LookPtr look);
  boost::asio::awaitable<void> run_jobs(LookPtr look, std::vector<Job> jobs);
  boost::asio::awaitable<void> try_job(LookPtr look, Job job);
  boost::asio::awaitable<k8s::Result<void>> perform(LookPtr look, Job job);
  [[nodiscard]] LookPtr begin(std::vector<PlannedAction> deletions);
  std::set<k8s::ObjectKey> conclude(const Look& look);
  void refuse(const DeletePod& action, const std::string& why);

  k8s::Reader* client_;
  k8s::Clock* clock_;
  World* world_;
  const KaiSettings* settings_;
  std::shared_ptr<Logger> log_;
  TaskGroup readers_;
  std::size_t batch_ = kLargestBatch;
  static constexpr std::size_t kLargestBatch = 16;
};

// --- Answers what KAI's planners want to know and no watch shows, beside the pass loop: no pass waits for it.
// Guarantees
//  - At most kAtOnce requests at a time, however much is wanted.
//  - Answers that allow a deletion and are due again come first, then questions without an answer. Answers that keep a
//    reservation are renewed last, at most kRenewals in one sweep; they cost nothing by being old.
//  - A lookup that fails keeps its former answer, and is repeated a little later if it is still wanted.

class LookupQueue {
 public:
  static constexpr std::size_t kAtOnce = 6;
  static constexpr int kRenewals = 120;

  struct Parts {
    KaiReader* reads = nullptr;
    k8s::Clock* clock = nullptr;
    World* world = nullptr;  // Gets the answers (KaiWorld::lookups).
    const KaiSettings* settings = nullptr;
    std::shared_ptr<Logger> log;
    TaskGroup* tasks = nullptr;  // Runs the requests; joined by its owner.
    boost::asio::any_io_executor executor;
    std::function<void(k8s::Duration after)> wake;  // There are answers to plan with, or something to ask again.
  };
  explicit LookupQueue(Parts parts) : parts_(std::move(parts)) {}

  // What the last pass wants, instead of what was wanted before. Does not wait. Forgets old answers.
  void want(KaiWants wants);
  // Nothing is begun any more.
  void stop();
  // Something is being looked up for the first time.
  [[nodiscard]] bool busy() const;

 private:
  struct Question {
    enum class Kind { lease, waiting, group, pod, config_map } kind = Kind::lease;
    k8s::ObjectKey key;
    friend auto operator<=>(const Question&, const Question&) = default;
  };
  enum class Rank { small, deciding, first, keeping };
  struct Asked {
    Rank rank = Rank::small;
    k8s::MonoTime answered{};
    Question question;
    friend auto operator<=>(const Asked&, const Asked&) = default;
  };

  boost::asio::awaitable<void> work();
  boost::asio::awaitable<k8s::Result<bool>> ask(Question question);
  boost::asio::awaitable<k8s::Result<bool>> ask_group(std::string group);
  boost::asio::awaitable<k8s::Result<bool>> ask_pod(k8s::ObjectKey pod);
  boost::asio::awaitable<k8s::Result<bool>> ask_small(Question question);
  [[nodiscard]] std::optional<Asked> take();
  [[nodiscard]] Asked rank(Question question) const;
  void forget_old(const KaiWants& wants);
  void report(bool last);
  [[nodiscard]] bool recent(k8s::MonoTime at) const;

  Parts parts_;
  std::deque<Asked> queue_;
  std::map<Question, Rank> under_way_;
  std::map<Question, k8s::MonoTime> retry_at_;
  std::map<std::string, std::size_t> group_bytes_;  // memory_of() the pods of LookupResults::groups.
  std::size_t workers_ = 0;
  int renewals_ = 0;
  k8s::MonoTime window_;  // In which `renewals_` were made.
  k8s::MonoTime reported_at_;
  bool news_ = false;
  bool stopped_ = false;
};

}  // namespace gso
