// Answers what KAI's planners want to know and no watch shows, beside the pass loop: no pass waits for it.
//
// Guarantees
//  - At most kAtOnce requests at a time, however much is wanted.
//  - Answers that allow a deletion and are due again come first, then questions without an answer. Answers that keep a
//  reservation are renewed last, at most kRenewals in one sweep; they cost nothing by
//    being old.
//  - A lookup that fails keeps its former answer, and is repeated a little later if it is still wanted.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "controller/kai/kai_reads.h"
#include "controller/runtime/task_group.h"

namespace gso {

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
