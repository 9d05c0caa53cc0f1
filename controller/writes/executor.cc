// The order of execution: chains, the live check, and what goes on beside the passes. What is sent, and when it may be
// sent again, is in executor_results.cc.
#include "controller/writes/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "reconcilers/cluster/record_store.h"
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

}  // namespace

std::shared_ptr<const PatchNode> change_in(const PlannedAction& planned) {
  const auto* patch = std::get_if<PatchNode>(&planned.action);
  return patch != nullptr && writes_change(*patch) ? std::make_shared<const PatchNode>(*patch) : nullptr;
}

std::string subject_of(const PlannedAction& planned) {
  const Verb verb = verb_of(planned.action);
  const ObjectRef target = target_of(planned.action);
  return fmt::format("{} {} {}", verb.verb, verb.resource, k8s::to_string(target.key()));
}

Executor::Executor(Parts parts, ExecutorOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      answered_(parts_.clock->make_signal()),
      chains_ended_(parts_.clock),
      reservations_(parts_.clock),
      queue_(parts_.clock, [this](k8s::WriteKind kind) { return parts_.places(kind); }) {
  queue_.on_failure([this](const std::string&) { parts_.ended_late({}); });  // The next execute() throws it.
}

void Execution::add(Execution&& other) {
  sent += other.sent;
  succeeded += other.succeeded;
  failed += other.failed;
  deferred += other.deferred;
  replan = replan || other.replan;
  crashed = crashed || other.crashed;
  earlier(requeue_after, other.requeue_after);
  for (auto& [node, answers] : other.evictions)
    for (auto& [uid, answer] : answers) evictions[node].insert_or_assign(uid, std::move(answer));
  std::ranges::move(other.findings, std::back_inserter(findings));
  std::ranges::move(other.events, std::back_inserter(events));
}

boost::asio::awaitable<Execution> Executor::execute(std::vector<PlannedAction> actions) {
  const auto run = std::make_shared<Run>(Run{std::make_shared<Pass>(), {}});
  Pass& pass = *run->pass;
  pass.executor = co_await boost::asio::this_coro::executor;
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
  for (const Chain& chain : pass.schedule.subjects)
    if (chain.disruptive()) pass.planned_from[chain.node] = parts_.world->nodes.get(ObjectKey{"", chain.node});
  co_await run_records(run);
  std::vector<Chain> subjects = std::move(pass.schedule.subjects);
  co_await run_chains(run, k8s::WriteKind::object, std::move(subjects));
  std::vector<Chain> statuses = std::move(pass.schedule.statuses);
  co_await run_chains(run, k8s::WriteKind::status, std::move(statuses));
  run->result.crashed = crashed_;
  pass.left = true;
  co_return std::move(run->result);
}

boost::asio::awaitable<bool> Executor::finish(MonoTime deadline) {
  bool ended = co_await queue_.join_until(deadline);
  if (ended) ended = co_await reservations_.join_until(deadline);
  co_return ended;
}

boost::asio::awaitable<bool> Executor::finish_sent(MonoTime deadline) {
  while (in_flight_ > 0 && parts_.clock->monotonic() < deadline) co_await answered_->wait_until(deadline);
  co_return in_flight_ == 0;
}

NodesBeingWritten Executor::nodes_being_written() {
  NodesBeingWritten out = parts_.expectations->nodes();
  for (const auto& [subject, chain] : queue_.running(k8s::WriteKind::object)) {
    if (chain.node.empty()) continue;
    std::shared_ptr<const PatchNode>& change = out[chain.node];
    for (const PlannedAction& step : chain.steps)
      if (change == nullptr) change = change_in(step);
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

// --- What goes on beside the passes, each until it is answered.

void Executor::note_unwritten(const RunPtr& run, const std::vector<PlannedAction>& steps) {
  for (const PlannedAction& step : steps) run->pass->unwritten.add(step);
}

boost::asio::awaitable<void> Executor::run_records(RunPtr run) {
  constexpr k8s::WriteKind kRecord = k8s::WriteKind::record;
  // This plan was made without their answers, also of those that it has not planned again.
  for (const auto& [subject, chain] : queue_.running(kRecord)) note_unwritten(run, chain.steps);
  for (Chain& chain : run->pass->schedule.records) {
    const std::vector<PlannedAction> steps = chain.steps;
    if (!queue(run, kRecord, std::move(chain))) note_unwritten(run, steps);
  }
  co_await wait_for(run, kRecord);
  for (const Chain& chain : take_back(run, kRecord)) note_unwritten(run, chain.steps);
  for (const auto& [subject, chain] : queue_.running(kRecord)) note_unwritten(run, chain.steps);
}

boost::asio::awaitable<void> Executor::run_chains(RunPtr run, k8s::WriteKind kind, std::vector<Chain> chains) {
  for (Chain& chain : chains) queue(run, kind, std::move(chain));
  co_await wait_for(run, kind);
  take_back(run, kind);
}

// As long as one after the other ends: only those that are slower than the others are left behind. Records are waited
// for until one time. While more is to be planned, none of the nodes that have begun is waited for.
boost::asio::awaitable<void> Executor::wait_for(RunPtr run, k8s::WriteKind kind) {
  const bool of_records = kind == k8s::WriteKind::record;
  const bool all = kind != k8s::WriteKind::object || !run->pass->full;
  const MonoTime deadline = parts_.clock->monotonic() + options_.record_patience;
  const auto waits = [&] { return run->pass->queued_of(kind) > 0 && !crashed_ && (all || queue_.some_wait(kind)); };
  bool one_ended = true;
  while (waits() && one_ended) {
    const Duration patience = of_records ? deadline - parts_.clock->monotonic() : options_.patience;
    one_ended = co_await chains_ended_.one_more(patience);
  }
}

std::vector<Chain> Executor::take_back(const RunPtr& run, k8s::WriteKind kind) {
  if (!queue_.failure().empty()) throw std::runtime_error(queue_.failure());  // A bug: do not ignore it.
  std::vector<Chain> out = queue_.take_back(kind);
  for (const Chain& chain : out) {
    --run->pass->queued_of(kind);
    defer(run, "no-place", chain.steps.size(), std::nullopt);  // ended_late() asks for that pass.
  }
  return out;
}

const char* Executor::kept_from(k8s::WriteKind kind, const std::string& subject) const {
  if (queue_.has(kind, subject) || ended_since_planned_.contains(subject)) return "under-way";
  // The status of an object whose creation is not answered yet finds none, or one that this plan has not seen.
  if (kind == k8s::WriteKind::status && queue_.has(k8s::WriteKind::record, subject)) return "under-way";
  return queue_.has_room(kind) ? "" : "no-place";
}

bool Executor::queue(const RunPtr& run, k8s::WriteKind kind, Chain chain) {
  const std::string_view cause = kept_from(kind, chain.subject);
  if (!cause.empty()) {
    defer(run, cause.data(), chain.steps.size(), std::nullopt);
    return false;
  }
  ++run->pass->queued_of(kind);
  queue_.add(run->pass->executor, kind, std::move(chain),
             [this, run, kind](Chain next) { return run_beside(run, kind, std::move(next)); });
  return true;  // It can have ended by now.
}

boost::asio::awaitable<void> Executor::run_beside(RunPtr run, k8s::WriteKind kind, Chain chain) {
  const std::string subject = chain.subject;
  const auto own = std::make_shared<Run>(Run{run->pass, {}});
  std::exception_ptr thrown;
  try {
    if (subject == kReservations)
      co_await collect_reservations(own, std::move(chain));
    else
      co_await run_chain(own, std::move(chain));
  } catch (...) {  // Its cancellation, or a bug.
    thrown = std::current_exception();
  }
  note_end(run, kind, subject, std::move(own->result));
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void Executor::note_end(const RunPtr& run, k8s::WriteKind kind, const std::string& subject, Execution found) {
  --run->pass->queued_of(kind);
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

// Sends the deletions of reservations that a last look confirms.
boost::asio::awaitable<void> Executor::collect_reservations(RunPtr run, Chain chain) {
  std::vector<PlannedAction> deletions = std::move(chain.steps);
  std::set<ObjectKey> due;
  if (parts_.still_due) due = co_await parts_.still_due(deletions);
  const std::size_t kept = std::erase_if(
      deletions, [&](const PlannedAction& step) { return !due.contains(std::get<DeletePod>(step.action).pod); });
  if (kept > 0) {
    defer(run, "last-look", kept, due.empty() ? kLookAgain : kLookOn);
    parts_.metrics->add("gpusharing_reservation_gc_total", {{"decision", "kept"}}, static_cast<double>(kept));
  }
  std::vector<boost::asio::awaitable<void>> chains;
  for (PlannedAction& deletion : deletions) {
    Chain one{chain.subject, "", {}};
    one.steps.push_back(std::move(deletion));
    chains.push_back(run_chain(run, std::move(one)));
  }
  const std::size_t places = parts_.places(k8s::WriteKind::object);
  const std::function<bool()> ends = [this] { return crashed_; };
  co_await run_side_by_side(&reservations_, std::move(chains), places, ends);
}

boost::asio::awaitable<void> Executor::run_chain(RunPtr run, Chain chain) {
  const std::size_t total = chain.steps.size();
  const auto planned_from = run->pass->planned_from.find(chain.node);
  const Node* const node = planned_from == run->pass->planned_from.end() ? nullptr : planned_from->second.get();
  const bool unrecorded = run->pass->unwritten.hold(chain, node);
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
    const bool goes_on = co_await perform(run, planned);
    if (goes_on) continue;
    if (eviction) {
      refused = true;  // Its budget holds that pod; the others of the node may have none.
      continue;
    }
    if (i + 1 < total) defer(run, "earlier-failure", total - i - 1, std::nullopt);
    run->pass->unwritten.add(*planned);
    co_return;
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
    back_off(run, read_of_node(node), node, std::nullopt);
    co_return false;
  }
  pauses_.erase(read_of_node(node));  // Also where it is gone.
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

boost::asio::awaitable<bool> Executor::perform(RunPtr run, Planned planned) {
  const std::optional<Duration> wait = not_before(*planned);
  if (wait) {
    defer(run, std::holds_alternative<PatchStatus>(planned->action) ? "status-rate" : "backoff", 1, wait);
    co_return false;
  }
  bool sent = false;
  const k8s::AtEnd judged([this, &sent] {
    if (sent) count_unanswered(-1);
  });
  const k8s::Result<std::string> answer = co_await send(run, planned, &sent);
  if (answer || answer.error().http_status != 0) {
    ++run->result.sent;
    ++writes_;
    answers_.push_back(parts_.clock->monotonic());
    (void)answered_lately();  // It keeps no more than a second of them.
    if (parts_.view) parts_.view->writes = writes_;
    if (parts_.hooks.crash_after_write && parts_.hooks.crash_after_write(writes_, *planned)) crashed_ = true;
  }
  if (crashed_) co_return false;
  if (!answer) co_return fail(run, *planned, answer.error());
  succeed(run, *planned, *answer);
  co_return true;
}

std::size_t Executor::answered_lately() {
  const MonoTime now = parts_.clock->monotonic();
  while (!answers_.empty() && now - answers_.front() >= std::chrono::seconds(1)) answers_.pop_front();
  return answers_.size();
}

void Executor::count_unanswered(std::int64_t change) {
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
