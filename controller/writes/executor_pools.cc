// What goes on beside the passes: records, the chains of nodes, the last look, and statuses, each until it is answered.
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/writes/executor.h"

namespace gso {
namespace {

// The subject of the last look, which is one at a time as well.
constexpr std::string_view kLastLook = "reservations";

}  // namespace

void Executor::note_unwritten(const RunPtr& run, const std::vector<PlannedAction>& steps) {
  for (const PlannedAction& step : steps) run->unwritten.add(step);
}

boost::asio::awaitable<void> Executor::run_records(RunPtr run) {
  // This plan was made without their answers, also of those that it has not planned again.
  for (const auto& [subject, chain] : record_pool_.running()) note_unwritten(run, chain.steps);
  for (Chain& chain : run->schedule.records) {
    if (is_unknown_to_plan(record_pool_, chain.subject)) {
      defer(run, "under-way", chain.steps.size(), std::nullopt);
      note_unwritten(run, chain.steps);
      continue;
    }
    ++run->records;
    const auto begin = [this, run](Chain next) { return run_record(run, std::move(next)); };
    co_await record_pool_.add(std::move(chain), begin);
  }
  const MonoTime deadline = parts_.clock->monotonic() + options_.record_patience;
  bool one_ended = true;
  while (run->records > 0 && !crashed_ && one_ended)
    one_ended = co_await chains_ended_.one_more(deadline - parts_.clock->monotonic());
  for (const Chain& chain : take_back(run, record_pool_, run->records)) note_unwritten(run, chain.steps);
  for (const auto& [subject, chain] : record_pool_.running()) note_unwritten(run, chain.steps);
}

boost::asio::awaitable<void> Executor::run_nodes(RunPtr run) {
  std::vector<Chain> nodes = std::move(run->schedule.subjects);
  const auto rest = std::stable_partition(nodes.begin(), nodes.end(), [](const Chain& chain) {
    return !std::any_of(chain.steps.begin(), chain.steps.end(), is_reservation_deletion);
  });
  std::vector<Chain> reservations(std::make_move_iterator(rest), std::make_move_iterator(nodes.end()));
  nodes.erase(rest, nodes.end());
  // Arguments have names: g++ 12 destroys a braced temporary of a co_await expression twice.
  if (!reservations.empty()) {
    Chain last_look{std::string(kLastLook), "", {}};
    co_await add_to_pool(run, std::move(last_look), std::move(reservations));
  }
  for (Chain& chain : nodes) {
    std::vector<Chain> none;
    co_await add_to_pool(run, std::move(chain), std::move(none));
  }
  co_await wait_for_nodes(run);
  take_back(run, pool_, run->beside);
}

std::vector<Chain> Executor::take_back(const RunPtr& run, ChainPool& pool, std::size_t& count) {
  if (!pool.failure().empty()) throw std::runtime_error(pool.failure());  // A bug: do not ignore it.
  std::vector<Chain> out = pool.take_back();
  for (const Chain& chain : out) {
    --count;
    defer(run, "no-place", chain.steps.size(), std::nullopt);  // ended_late() asks for that pass.
  }
  return out;
}

// As long as one after the other ends: only those that are slower than the others are left behind. While more is to be
// planned, none of those that have begun is waited for.
boost::asio::awaitable<void> Executor::wait_for_nodes(RunPtr run) {
  const auto waits = [this, &run] { return run->beside > 0 && !crashed_ && (pool_.some_wait() || !run->full); };
  bool one_ended = true;
  while (waits() && one_ended) one_ended = co_await chains_ended_.one_more(options_.patience);
}

bool Executor::is_unknown_to_plan(const ChainPool& pool, const std::string& subject) const {
  return pool.has(subject) || ended_since_planned_.contains(subject);
}

boost::asio::awaitable<void> Executor::run_statuses(RunPtr run) {
  for (Chain& chain : run->schedule.statuses) {
    // The status of an object whose creation is not answered yet finds none, or one that this plan has not seen.
    if (is_unknown_to_plan(status_pool_, chain.subject) || record_pool_.has(chain.subject)) {
      defer(run, "under-way", chain.steps.size(), std::nullopt);
      continue;
    }
    ++run->statuses;
    const auto begin = [this, run](Chain next) { return run_status(run, std::move(next)); };
    co_await status_pool_.add(std::move(chain), begin);
  }
  bool one_ended = true;
  while (run->statuses > 0 && !crashed_ && one_ended) one_ended = co_await chains_ended_.one_more(options_.patience);
  take_back(run, status_pool_, run->statuses);
}

struct Executor::Ends {
  Executor* executor;
  Run* run;
  std::size_t* count;
  std::string subject;
  ~Ends() {
    --*count;
    executor->chains_ended_.note();
    if (!run->left) return;
    executor->ended_since_planned_.insert(subject);
    executor->parts_.ended_late(run->result);
    executor->late_.add(std::exchange(run->result, {}));
  }
};

boost::asio::awaitable<void> Executor::run_record(RunPtr run, Chain chain) {
  const Ends ends{this, run.get(), &run->records, chain.subject};
  co_await run_chain(run, std::move(chain));
}

boost::asio::awaitable<void> Executor::run_status(RunPtr run, Chain chain) {
  const Ends ends{this, run.get(), &run->statuses, chain.subject};
  co_await run_chain(run, std::move(chain));
}

boost::asio::awaitable<void> Executor::add_to_pool(RunPtr run, Chain chain, std::vector<Chain> reservations) {
  if (is_unknown_to_plan(pool_, chain.subject)) {
    defer(run, "under-way", std::max(chain.steps.size(), reservations.size()), std::nullopt);
    co_return;
  }
  ++run->beside;
  const auto begin = [this, run, reservations = std::move(reservations)](Chain next) {
    return run_beside(run, std::move(next), reservations);
  };
  co_await pool_.add(std::move(chain), begin);
}

boost::asio::awaitable<void> Executor::run_beside(RunPtr run, Chain chain, std::vector<Chain> reservations) {
  const Ends ends{this, run.get(), &run->beside, chain.subject};
  if (chain.subject == kLastLook) {
    co_await collect_reservations(run, std::move(reservations));
  } else {
    co_await run_chain(run, std::move(chain));
  }
}

}  // namespace gso
