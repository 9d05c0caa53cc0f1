// What goes on beside the passes: records, the chains of nodes, the last look, and statuses, each until it is answered.
#include <algorithm>
#include <exception>
#include <iterator>
#include <set>
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
  for (const PlannedAction& step : steps) run->pass->unwritten.add(step);
}

boost::asio::awaitable<void> Executor::run_records(RunPtr run) {
  // This plan was made without their answers, also of those that it has not planned again.
  for (const auto& [subject, chain] : record_pool_.running()) note_unwritten(run, chain.steps);
  for (Chain& chain : run->pass->schedule.records) {
    const std::vector<PlannedAction> steps = chain.steps;
    std::vector<Chain> none;
    const bool added = co_await add_to_pool(run, &record_pool_, &Pass::records, std::move(chain), std::move(none));
    if (!added) note_unwritten(run, steps);
  }
  const MonoTime deadline = parts_.clock->monotonic() + options_.record_patience;
  bool one_ended = true;
  while (run->pass->records > 0 && !crashed_ && one_ended)
    one_ended = co_await chains_ended_.one_more(deadline - parts_.clock->monotonic());
  for (const Chain& chain : take_back(run, record_pool_, &Pass::records)) note_unwritten(run, chain.steps);
  for (const auto& [subject, chain] : record_pool_.running()) note_unwritten(run, chain.steps);
}

boost::asio::awaitable<void> Executor::run_nodes(RunPtr run) {
  std::vector<Chain> nodes = std::move(run->pass->schedule.subjects);
  const auto rest = std::stable_partition(nodes.begin(), nodes.end(), [](const Chain& chain) {
    return !std::any_of(chain.steps.begin(), chain.steps.end(), is_reservation_deletion);
  });
  std::vector<Chain> reservations(std::make_move_iterator(rest), std::make_move_iterator(nodes.end()));
  nodes.erase(rest, nodes.end());
  // Arguments have names: g++ 12 destroys a braced temporary of a co_await expression twice.
  if (!reservations.empty()) {
    Chain last_look{std::string(kLastLook), "", {}};
    (void)co_await add_to_pool(run, &pool_, &Pass::beside, std::move(last_look), std::move(reservations));
  }
  for (Chain& chain : nodes) {
    std::vector<Chain> none;
    (void)co_await add_to_pool(run, &pool_, &Pass::beside, std::move(chain), std::move(none));
  }
  co_await wait_for_nodes(run);
  take_back(run, pool_, &Pass::beside);
}

std::vector<Chain> Executor::take_back(const RunPtr& run, ChainPool& pool, Count count) {
  if (!pool.failure().empty()) throw std::runtime_error(pool.failure());  // A bug: do not ignore it.
  std::vector<Chain> out = pool.take_back();
  for (const Chain& chain : out) {
    --((*run->pass).*count);
    defer(run, "no-place", chain.steps.size(), std::nullopt);  // ended_late() asks for that pass.
  }
  return out;
}

// As long as one after the other ends: only those that are slower than the others are left behind. While more is to be
// planned, none of those that have begun is waited for.
boost::asio::awaitable<void> Executor::wait_for_nodes(RunPtr run) {
  const Pass& pass = *run->pass;
  const auto waits = [this, &pass] { return pass.beside > 0 && !crashed_ && (pool_.some_wait() || !pass.full); };
  bool one_ended = true;
  while (waits() && one_ended) one_ended = co_await chains_ended_.one_more(options_.patience);
}

boost::asio::awaitable<void> Executor::run_statuses(RunPtr run) {
  for (Chain& chain : run->pass->schedule.statuses) {
    std::vector<Chain> none;
    (void)co_await add_to_pool(run, &status_pool_, &Pass::statuses, std::move(chain), std::move(none));
  }
  bool one_ended = true;
  while (run->pass->statuses > 0 && !crashed_ && one_ended)
    one_ended = co_await chains_ended_.one_more(options_.patience);
  take_back(run, status_pool_, &Pass::statuses);
}

const char* Executor::kept_from(const ChainPool& pool, const std::string& subject) const {
  if (pool.has(subject) || ended_since_planned_.contains(subject)) return "under-way";
  // The status of an object whose creation is not answered yet finds none, or one that this plan has not seen.
  if (&pool == &status_pool_ && record_pool_.has(subject)) return "under-way";
  return pool.has_room() ? "" : "no-place";
}

boost::asio::awaitable<bool> Executor::add_to_pool(RunPtr run, ChainPool* pool, Count count, Chain chain,
                                                   std::vector<Chain> reservations) {
  const std::string_view cause = kept_from(*pool, chain.subject);
  if (!cause.empty()) {
    defer(run, cause.data(), std::max(chain.steps.size(), reservations.size()), std::nullopt);
    co_return false;
  }
  ++((*run->pass).*count);
  const auto begin = [this, run, count, reservations = std::move(reservations)](Chain next) {
    return run_beside(run, count, std::move(next), reservations);
  };
  co_await pool->add(std::move(chain), begin);
  co_return true;  // It can have ended by now.
}

boost::asio::awaitable<void> Executor::run_beside(RunPtr run, Count count, Chain chain,
                                                  std::vector<Chain> reservations) {
  const std::string subject = chain.subject;
  const auto own = std::make_shared<Run>(Run{run->pass, {}});
  std::exception_ptr thrown;
  try {
    if (subject == kLastLook) {
      co_await collect_reservations(own, std::move(reservations));
    } else {
      co_await run_chain(own, std::move(chain));
    }
  } catch (...) {  // Its cancellation, or a bug.
    thrown = std::current_exception();
  }
  note_end(run, count, subject, std::move(own->result));
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void Executor::note_end(const RunPtr& run, Count count, const std::string& subject, Execution found) {
  --((*run->pass).*count);
  chains_ended_.note();
  if (!run->pass->left) {
    run->result.without_record.merge(found.without_record);
    run->result.add(std::move(found));
    return;
  }
  ended_since_planned_.insert(subject);
  parts_.ended_late(found);
  late_.add(std::move(found));
}

// --- What may be sent when: the backoff of what failed, refusals that are remembered, and how often a status is
// written.

std::string Executor::read_of_node(const std::string& node) {
  return "get nodes " + node;
}

std::optional<Duration> Executor::not_before(const PlannedAction& planned) {
  const std::string subject = subject_of(planned);
  const MonoTime now = parts_.clock->monotonic();
  if (auto it = terminal_.find(subject); it != terminal_.end()) {
    if (it->second.action.action == planned.action && now < it->second.retry_at) return it->second.retry_at - now;
    if (it->second.action.action != planned.action) terminal_.erase(it);
  }
  if (auto it = retries_.find(subject); it != retries_.end()) {
    if (now < it->second.at) return it->second.at - now;
  }
  return status_wait(planned);
}

std::optional<Duration> Executor::status_wait(const PlannedAction& planned) const {
  const auto* patch = std::get_if<PatchStatus>(&planned.action);
  if (patch == nullptr) return std::nullopt;
  auto it = statuses_.find(subject_of(planned));
  if (it == statuses_.end() || it->second.phase != phase_of_status(patch->status_json)) return std::nullopt;
  const Duration passed = parts_.clock->monotonic() - it->second.at;
  return passed < options_.status_interval ? std::optional(options_.status_interval - passed) : std::nullopt;
}

// Pod names do not repeat: entries that are neither pending nor wanted would be kept forever. For a node that is being
// written nothing is planned, and its failures go on counting.
void Executor::forget_what_is_over(const std::vector<PlannedAction>& actions) {
  if (remembered() == 0) return;
  const MonoTime now = parts_.clock->monotonic();
  std::erase_if(statuses_, [&](const auto& entry) { return now - entry.second.at >= options_.status_interval; });
  std::set<std::string> planned;
  for (const PlannedAction& action : actions) {
    planned.insert(subject_of(action));
    if (!action.node.empty()) planned.insert(read_of_node(action.node));
  }
  std::erase_if(terminal_, [&](const auto& entry) { return !planned.contains(entry.first); });
  const NodesBeingWritten written = nodes_being_written();
  std::erase_if(retries_, [&](const auto& entry) {
    const Retry& retry = entry.second;
    const bool over = now >= retry.at && !planned.contains(entry.first) && !written.contains(retry.node);
    if (over) backoff_.forget(entry.first);
    return over;
  });
}

void Executor::forget(const std::string& subject) {
  backoff_.forget(subject);
  retries_.erase(subject);
  terminal_.erase(subject);
}

// Repeats the findings and Events of refusals that still apply, so that they remain while no write is sent.
void Executor::report_remembered(const RunPtr& run) {
  for (const auto& [subject, refused] : terminal_) {
    if (parts_.clock->monotonic() < refused.retry_at) report(run, refused.action, refused.error);
  }
}

}  // namespace gso
