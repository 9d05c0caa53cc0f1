// The order of execution: chains, workers and the live check. What goes on beside the passes is in executor_pools.cc,
// what may be sent when in executor_pools.cc.
#include "controller/writes/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <iterator>
#include <utility>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/project.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

void earlier(std::optional<Duration>& slot, std::optional<Duration> wait) {
  if (wait) slot = slot ? std::min(*slot, *wait) : *wait;
}

// After a last look that confirmed no deletion, and after one that confirmed some of them.
constexpr Duration kLookAgain = std::chrono::seconds(10);
constexpr Duration kLookOn = std::chrono::seconds(1);

RateLimiter::Settings backoff_settings() {
  // A failing object is retried ever more slowly. It does not delay others: the common bucket is never empty.
  return {.base = std::chrono::milliseconds(250),
          .longest = std::chrono::minutes(5),
          .refill_per_second = 1e9,
          .burst = 1e9};
}

}  // namespace

bool is_reservation_deletion(const PlannedAction& planned) {
  return std::holds_alternative<DeletePod>(planned.action) && planned.reconciler == kReservationGc;
}

std::shared_ptr<const PatchNode> change_in(const PlannedAction& planned) {
  const auto* patch = std::get_if<PatchNode>(&planned.action);
  return patch != nullptr && writes_change(*patch) ? std::make_shared<const PatchNode>(*patch) : nullptr;
}

std::string subject_of(const PlannedAction& planned) {
  const Verb verb = verb_of(planned.action);
  const ObjectRef target = target_of(planned.action);
  return fmt::format("{} {} {}", verb.verb, verb.resource, k8s::to_string(ObjectKey{target.ns, target.name}));
}

Executor::Executor(Parts parts, ExecutorOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      backoff_(backoff_settings()),
      answered_(parts_.clock->make_signal()),
      chains_ended_(parts_.clock),
      reservations_(parts_.clock),
      record_pool_(make_pool(k8s::WriteKind::record)),
      pool_(make_pool(k8s::WriteKind::object)),
      status_pool_(make_pool(k8s::WriteKind::status)) {
  // The next execute() throws it.
  for (ChainPool* pool : {&record_pool_, &pool_, &status_pool_})
    pool->on_failure([this](const std::string&) { parts_.ended_late({}); });
}

ChainPool Executor::make_pool(k8s::WriteKind kind) {
  return ChainPool(parts_.clock, [this, kind] { return parts_.places(kind); });
}

void Execution::add(Execution&& other) {
  sent += other.sent;
  succeeded += other.succeeded;
  failed += other.failed;
  deferred += other.deferred;
  replan = replan || other.replan;
  crashed = crashed || other.crashed;
  earlier(requeue_after, other.requeue_after);
  for (auto& [node, answers] : other.evictions) {
    for (auto& [uid, answer] : answers) evictions[node].insert_or_assign(uid, std::move(answer));
  }
  findings.insert(findings.end(), std::make_move_iterator(other.findings.begin()),
                  std::make_move_iterator(other.findings.end()));
  events.insert(events.end(), std::make_move_iterator(other.events.begin()),
                std::make_move_iterator(other.events.end()));
}

boost::asio::awaitable<Execution> Executor::execute(std::vector<PlannedAction> actions) {
  const auto run = std::make_shared<Run>(Run{std::make_shared<Pass>(), {}});
  Pass& pass = *run->pass;
  pass.full = actions.size() >= PlanDraft::kMostActions;
  run->result = std::exchange(late_, {});
  ended_since_planned_.clear();  // The plan was made a moment ago, from all of them.
  if (options_.state_in_memory) keep_state_in_memory(actions);
  pass.schedule = arrange(actions);
  const std::vector<Finding>& clashes = pass.schedule.findings;
  run->result.findings.insert(run->result.findings.end(), clashes.begin(), clashes.end());
  forget_what_is_over(actions);
  report_remembered(run);
  if (options_.dry_run) {
    note_dry_run(actions);
    co_return std::move(run->result);
  }
  note_bases(pass, actions);
  for (const Chain& chain : pass.schedule.subjects) {
    if (chain.disruptive()) pass.planned_from[chain.node] = parts_.world->nodes.get(ObjectKey{"", chain.node});
  }
  co_await run_records(run);
  co_await run_nodes(run);
  co_await run_statuses(run);
  run->result.crashed = crashed_;
  pass.left = true;
  co_return std::move(run->result);
}

boost::asio::awaitable<bool> Executor::finish(MonoTime deadline) {
  bool ended = co_await record_pool_.join_until(deadline);
  if (ended) ended = co_await pool_.join_until(deadline);
  if (ended) ended = co_await status_pool_.join_until(deadline);
  if (ended) ended = co_await reservations_.join_until(deadline);
  co_return ended;
}

boost::asio::awaitable<bool> Executor::finish_sent(MonoTime deadline) {
  while (in_flight_ > 0 && parts_.clock->monotonic() < deadline) co_await answered_->wait_until(deadline);
  co_return in_flight_ == 0;
}

NodesBeingWritten Executor::nodes_being_written() {
  NodesBeingWritten out = parts_.expectations->nodes();
  for (const auto& [subject, chain] : pool_.running()) {
    if (chain.node.empty()) continue;
    std::shared_ptr<const PatchNode>& change = out[chain.node];
    for (const PlannedAction& step : chain.steps) {
      if (change == nullptr) change = change_in(step);
    }
  }
  return out;
}

bool Executor::is_state(const ObjectKey& config_map) const {
  return config_map == options_.state_config_map || is_shard(options_.state_config_map, config_map);
}

// Takes writes of the state ConfigMap out of the plan, and into the view: planners then read it as if it were there.
// Its versions are lower than any that a server gives, so that a real one always wins.
void Executor::keep_state_in_memory(std::vector<PlannedAction>& actions) {
  std::erase_if(actions, [&](const PlannedAction& planned) {
    const auto* write = std::get_if<WriteConfigMap>(&planned.action);
    if (write == nullptr || !is_state(write->config_map)) return false;
    ConfigMap next = written(parts_.world->configmaps.find(write->config_map), *write);
    next.meta.resource_version = fmt::format("0{}", ++remembered_);
    parts_.world->configmaps.apply(std::move(next));
    return true;
  });
}

// Sends the deletions of reservations that a last look confirms.
boost::asio::awaitable<void> Executor::collect_reservations(RunPtr run, std::vector<Chain> reservations) {
  std::vector<PlannedAction> deletions;
  for (const Chain& chain : reservations) deletions.insert(deletions.end(), chain.steps.begin(), chain.steps.end());
  std::set<ObjectKey> due;
  if (parts_.still_due) due = co_await parts_.still_due(deletions);
  const std::size_t kept = std::erase_if(reservations, [&](const Chain& chain) {
    return !std::all_of(chain.steps.begin(), chain.steps.end(), [&](const PlannedAction& step) {
      return is_reservation_deletion(step) && due.contains(std::get<DeletePod>(step.action).pod);
    });
  });
  if (kept > 0) {
    defer(run, "last-look", kept, due.empty() ? kLookAgain : kLookOn);
    parts_.metrics->add("gpusharing_reservation_gc_total", {{"decision", "kept"}}, static_cast<double>(kept));
  }
  co_await run_chains(run, std::move(reservations));
}

boost::asio::awaitable<void> Executor::run_chains(RunPtr run, std::vector<Chain> chains) {
  auto all = std::make_shared<Work>();
  all->run = run;
  all->chains = std::move(chains);
  const auto executor = co_await boost::asio::this_coro::executor;
  const std::size_t workers = std::min(parts_.places(k8s::WriteKind::object), all->chains.size());
  for (std::size_t i = 0; i < workers; ++i) reservations_.spawn(executor, work(all));
  co_await reservations_.join();
}

boost::asio::awaitable<void> Executor::work(std::shared_ptr<Work> work) {
  while (work->next < work->chains.size() && !crashed_) {
    Chain chain = std::move(work->chains[work->next++]);
    co_await run_chain(work->run, std::move(chain));
  }
}

boost::asio::awaitable<void> Executor::run_chain(RunPtr run, Chain chain) {
  const std::size_t total = chain.steps.size();
  const bool unrecorded = run->pass->unwritten.hold(chain, *parts_.world);
  if (chain.disruptive() && !chain.is_preconditioned() && !unrecorded && !chain.node.empty()) {
    const bool holds = co_await view_of_node_holds(run, chain.node);
    if (!holds) {
      defer(run, "stale-view", total, std::nullopt);
      co_return;
    }
  }
  bool refused = false;
  for (std::size_t i = 0; i < total; ++i) {
    const auto planned = std::make_shared<const PlannedAction>(std::move(chain.steps[i]));
    const Action& action = planned->action;
    const bool eviction = std::holds_alternative<EvictPod>(action);
    if (planned->disruptive && unrecorded) {
      defer(run, "record", total - i, std::nullopt);
      run->result.without_record.insert(chain.node);
      co_return;
    }
    if (refused && !eviction) {
      defer(run, "earlier-failure", total - i, std::nullopt);
      co_return;
    }
    const Outcome outcome = co_await perform(run, planned);
    if (outcome == Outcome::stopped && eviction) {
      refused = true;  // Its budget holds that pod; the others of the node may have none.
      continue;
    }
    if (outcome == Outcome::stopped) {
      if (i + 1 < total) defer(run, "earlier-failure", total - i - 1, std::nullopt);
      run->pass->unwritten.add(*planned);
      co_return;
    }
  }
}

// Reads the Node live before it is disrupted: `hold`, a cordon or a label may have arrived a moment ago. For most
// changes the server looks: their first step is a patch with the version that was planned from.
boost::asio::awaitable<bool> Executor::view_of_node_holds(RunPtr run, std::string node) {
  const std::shared_ptr<const Node> planned_from = run->pass->planned_from[node];
  const ObjectRef target{"v1", "Node", "", node, ""};
  const k8s::Result<void> read = co_await parts_.expectations->refresh_one(target);
  if (!read) {
    parts_.log->warning("Could not read the node before disrupting it",
                        {{"node", node}, {"error", read.error().message}});
    const MonoTime now = parts_.clock->monotonic();
    const Duration wait = backoff_.when(read_of_node(node), now);
    retries_[read_of_node(node)] = {now + wait, node};
    earlier(run->result.requeue_after, wait);
    co_return false;
  }
  forget(read_of_node(node));  // Also where it is gone.
  const std::shared_ptr<const Node> live = parts_.world->nodes.get(ObjectKey{"", node});
  bool same = live != nullptr && planned_from != nullptr;
  if (same && live != planned_from) {
    Node copy = *live;
    copy.meta.resource_version = planned_from->meta.resource_version;
    same = copy == *planned_from;
  }
  const bool held = live != nullptr && is_held(*live);
  if (!same) {
    parts_.log->info("The node changed since it was planned for", {{"node", node}, {"held", held}});
    run->result.replan = true;
  }
  co_return same;
}

boost::asio::awaitable<Executor::Outcome> Executor::perform(RunPtr run, Planned planned) {
  const std::optional<Duration> wait = not_before(*planned);
  if (wait) {
    defer(run, std::holds_alternative<PatchStatus>(planned->action) ? "status-rate" : "backoff", 1, wait);
    co_return Outcome::stopped;
  }
  SentWrite open(this);
  const k8s::Result<std::string> answer = co_await send(run, planned, &open);
  if (answer || answer.error().http_status != 0) {
    ++run->result.sent;
    ++writes_;
    answers_.note(parts_.clock->monotonic());
    if (parts_.view) parts_.view->writes = writes_;
    if (parts_.hooks.crash_after_write && parts_.hooks.crash_after_write(writes_, *planned)) crashed_ = true;
  }
  if (crashed_) co_return Outcome::stopped;
  co_return answer ? succeed(run, *planned, *answer) : fail(run, *planned, answer.error());
}

void Executor::count_in_flight(std::int64_t change) {
  in_flight_ += change;
  if (in_flight_ == 0) answered_->notify();
  parts_.metrics->set("gpusharing_writes_in_flight", {}, static_cast<double>(in_flight_));
}

void Executor::defer(const RunPtr& run, const char* cause, std::size_t count, std::optional<Duration> wait) {
  run->result.deferred += count;
  earlier(run->result.requeue_after, wait);
  parts_.metrics->add("gpusharing_writes_deferred_total", {{"cause", cause}}, static_cast<double>(count));
}

void Executor::note_dry_run(const std::vector<PlannedAction>& actions) {
  std::set<std::string> lines;
  for (const PlannedAction& planned : actions) {
    if (std::holds_alternative<RecordEvent>(planned.action)) continue;
    std::string line = print(planned);
    if (!dry_run_logged_.contains(line)) parts_.log->info("Would act (dry run)", {{"action", line}});
    lines.insert(std::move(line));
  }
  dry_run_logged_ = std::move(lines);
}

}  // namespace gso
