// From a changed store to a pass, and from a pass to the next time to look.
#include "controller/runtime/fleet_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

// The operator works without permission to read these: with a GPUCluster no DaemonSet matters, and the two DRA kinds
// only add an obstacle.
const k8s::Gvr kOptional[] = {resources::gpu_clusters, resources::device_classes, resources::resource_slices};
constexpr Duration kViewPoll = std::chrono::milliseconds(100);
constexpr Duration kViewWait = std::chrono::seconds(1);
// A planner that asks to be run again at once must not occupy the process.
constexpr Duration kSoonest = std::chrono::milliseconds(5);
// Nor one whose plan is full of nodes that wait for a record: its answer asks for the pass that continues them.
constexpr Duration kSoonestWithoutRecord = std::chrono::seconds(1);

// A new leader that cannot read what was written before it tries again at least this often.
constexpr Duration kLongestReadRetry = std::chrono::seconds(10);

bool is_event(const PlannedAction& planned) {
  return std::holds_alternative<RecordEvent>(planned.action);
}

std::size_t count_actions(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.actions.begin(), plan.actions.end(), [](const auto& action) { return !is_event(action); }));
}

// Of a node being written.
bool is_same(const std::shared_ptr<const PatchNode>& before, const std::shared_ptr<const PatchNode>& now) {
  return before == now || (before != nullptr && now != nullptr && *before == *now);
}

}  // namespace

FleetLoop::FleetLoop(Parts parts)
    : parts_(std::move(parts)),
      queue_(parts_.clock, parts_.metrics),
      held_since_(parts_.options->assume_observed_for),
      timer_(parts_.clock->make_signal()) {
  follow_stores();
}

void FleetLoop::wake(Duration after) {
  if (after <= Duration::zero())
    queue_.add();
  else
    queue_.add_after(after);
}

void FleetLoop::note_scopes_changed() {
  // Whatever was assessed without the objects of a namespace, or with them, is to be assessed again.
  parts_.index->note_everything_changed();
  note_change();
}

void FleetLoop::stop() {
  stopping_ = true;
  parts_.consumers->stop();
  queue_.shut_down();
  timer_->notify();
}

bool FleetLoop::synced() const {
  const auto is_settled = [](const auto& kind) { return kind.watch->readable() || kind.is_done_without(); };
  return std::ranges::all_of(parts_.cluster->kinds(), is_settled) && !scopes_dirty_ &&
         parts_.dynamic->loading().empty();
}

boost::asio::awaitable<void> FleetLoop::run() {
  for (;;) {
    const bool due = co_await queue_.get();
    if (!due) break;
    parts_.metrics->set("controller_runtime_active_workers", {{"controller", kFleet}}, 1);
    co_await pass();
    parts_.metrics->set("controller_runtime_active_workers", {{"controller", kFleet}}, 0);
    queue_.done();
  }
}

boost::asio::awaitable<void> FleetLoop::resync() {
  if (parts_.options->resync_period <= Duration::zero()) co_return;
  while (!stopping_) {
    co_await timer_->wait_until(parts_.clock->monotonic() + parts_.options->resync_period);
    if (!stopping_) wake(Duration::zero());
  }
}

// ClusterPolicies are the only kind that planners can work without if reading it is forbidden.
void FleetLoop::note_forbidden() {
  const bool forbidden = parts_.cluster->forbidden(resources::cluster_policies).has_value();
  if (std::exchange(parts_.world->clusterpolicies_forbidden, forbidden) == forbidden) return;
  scopes_dirty_ = true;
  parts_.index->note_everything_changed();
}

void FleetLoop::note_late(const Execution& result) {
  parts_.consumers->note_evictions(result);
  note_change();  // While a fleet changes, many end so one after the other.
}

boost::asio::awaitable<void> FleetLoop::pass() {
  note_forbidden();
  update_scopes();
  parts_.kai->update(*parts_.cluster, parts_.settings->kai);
  parts_.partitioning->update(parts_.options->partitioning_mode);
  note_sync();
  note_views();
  if (!is_listed_again() || !parts_.leading() || stopping_) co_return;
  if (is_new_leader_) {
    co_await read_as_new_leader();
    co_return;
  }
  if (!view_is_current()) co_return;
  if (parts_.clock_in_doubt()) {
    wake(std::chrono::seconds(1));
    co_return;
  }
  note_nodes_being_written();

  std::optional<Plan> made = make_plan();
  if (!made) {
    report_refusals();  // The missing store wakes the loop when it has synced.
    co_return;
  }
  warn_of_unused_mode();
  ++parts_.view->passes;
  parts_.view->last_plan = *std::move(made);
  const Plan& plan = parts_.view->last_plan;  // Until the next pass.
  held_since_.observe(plan, parts_.clock->now(), parts_.clock->monotonic());
  parts_.lookups->want(plan.kai_wanted);
  Execution execution = co_await parts_.executor->execute(plan.actions);
  if (execution.crashed) {
    parts_.on_fatal({k8s::Reason::cancelled, 0, "crash point"});
    co_return;
  }
  parts_.consumers->note_evictions(execution);
  std::set<std::string> wanted = plan.consumers_wanted;
  // They are planned anew, and listed then: until that, each listing would ask for the next one.
  for (const std::string& node : execution.without_record) wanted.erase(node);
  bool listed = false;
  if (!wanted.empty() && !stopping_) listed = co_await parts_.consumers->refresh(std::move(wanted));
  report(plan, execution);
  finish_pass(plan, execution, listed);
}

// True if the stores show every write that concerns the whole fleet; else schedules another pass.
bool FleetLoop::view_is_current() {
  for (ObjectRef& object : parts_.expectations->take_overdue()) parts_.spawn(settle(std::move(object)));
  if (parts_.expectations->fleet_is_current()) return true;
  parts_.metrics->add("gpusharing_writes_deferred_total", {{"cause", "stale-view"}});
  wake(kViewPoll);
  return false;
}

boost::asio::awaitable<void> FleetLoop::settle(ObjectRef object) {
  const std::optional<k8s::Error> given_up = co_await parts_.expectations->settle(std::move(object));
  if (given_up) parts_.log->warning("Could not read an object that was written", {{"error", given_up->message}});
  wake(Duration::zero());
}

void FleetLoop::note_leads() {
  is_new_leader_ = parts_.settings->rollouts != PolicyMode::observe;  // That keeps its record in memory.
  wake(Duration::zero());
}

// The next pass plans from it.
boost::asio::awaitable<void> FleetLoop::read_as_new_leader() {
  const k8s::Result<void> read = co_await parts_.expectations->read_as_new_leader(state_key(*parts_.settings));
  is_new_leader_ = !read;
  const std::string cause = read ? std::string() : read.error().message;
  const bool is_news = std::exchange(parts_.view->waits_for, cause) != cause;
  if (is_new_leader_) {
    if (is_news)
      parts_.log->warning("Could not read what the leader before has written; planning waits", {{"error", cause}});
    report_refusals();
    queue_.add_rate_limited();
    wake(kLongestReadRetry);
    co_return;
  }
  queue_.forget();
  wake(Duration::zero());
}

// What the index has assessed of a node depends on a change that is being written, until the store shows that.
void FleetLoop::note_nodes_being_written() {
  NodesBeingWritten now = parts_.executor->nodes_being_written();
  NodesBeingWritten& before = parts_.world->nodes_being_written;
  const auto alters = [this](const std::string& node, const PatchNode* change) {
    const Node* stored = change == nullptr ? nullptr : parts_.world->nodes.find(node);
    return stored != nullptr && !shows(*stored, *change);
  };
  for (const auto& [node, change] : now) {
    const auto known = before.find(node);
    const std::shared_ptr<const PatchNode> was = known == before.end() ? nullptr : known->second;
    const bool is_news = !is_same(was, change) && (alters(node, was.get()) || alters(node, change.get()));
    if (is_news) parts_.index->note_node_changed(node);
  }
  for (const auto& [node, change] : before)
    if (!now.contains(node) && alters(node, change.get())) parts_.index->note_node_changed(node);
  before = std::move(now);
}

// nullopt while the operands, or the operator's record about them, are unknown.
std::optional<Plan> FleetLoop::make_plan() {
  const MonoTime begun = parts_.clock->monotonic();
  const WallTime wall = parts_.clock->now();
  const Timers& running = held_since_.timers(wall, begun);
  const WallTime now = held_since_.at(wall, begun);
  Timers after_observing;  // Of the first look alone: the timers of a large fleet are not copied in every pass.
  if (only_observed_ && held_since_.first_look()) {
    after_observing = running;
    after_observing.merge(released_timers(*parts_.world, now));
  }
  const Timers& timers = after_observing.empty() ? running : after_observing;
  const std::map<std::string, std::string> refused = parts_.executor->refused_writes();
  const Snapshot snapshot{.world = *parts_.world,
                          .now = now,
                          .timers = timers,
                          .consumers = parts_.consumers->listings(),
                          .settings = *parts_.settings,
                          .refused_writes = &refused,
                          .first_look = held_since_.first_look(),
                          .answered_lately = parts_.executor->answered_lately(),
                          .mono = begun,
                          .failed_patches = parts_.executor->failed_patches()};
  const bool known = !scopes_dirty_ && !parts_.world->unsynced_namespaces.contains(parts_.settings->operator_namespace);
  ReconcilerFilter filter;
  filter.partitioning = parts_.options->partitioning_mode;
  filter.synced = [this, known](const k8s::Gvr& gvr) { return known && is_complete(gvr); };
  MonoTime start = begun;
  filter.begin = [this, &start] { start = parts_.clock->monotonic(); };
  filter.planned = [this, &start](const Reconciler& reconciler, const Plan* part) {
    measure_reconciler(reconciler, part, parts_.clock->monotonic() - start);
  };
  Plan plan = plan_all(snapshot, *parts_.index, filter);
  if (!known) return std::nullopt;
  parts_.metrics->observe("gpusharing_plan_seconds", {}, in_seconds(parts_.clock->monotonic() - begun));
  return plan;
}

// `--mode` is only for the policy `default` that the operator creates: somebody who means to limit the operator learns
// from its log that another setting does that. Said once.
void FleetLoop::warn_of_unused_mode() {
  const World& world = *parts_.world;
  const bool unread = world.policies_served && !world.policies.synced();
  if (unread || std::exchange(mode_was_compared_, true)) return;
  const SharingPolicy* policy = world.policies.find(kDefaultPolicy);
  const PolicyMode asked = parts_.settings->mode;
  if (policy == nullptr || parts_.settings->mode_of(*policy) >= asked) return;
  parts_.log->warning("Setting has no effect",
                      {{"setting", "mode"},
                       {"value", word_of(kPolicyModeWords, asked)},
                       {"detail", fmt::format("SharingPolicy {} exists with mode {}. To limit the operator, use "
                                              "--max-mode (chart value modes.rollouts); to change the policy, edit its "
                                              "spec.mode",
                                              kDefaultPolicy, word_of(kPolicyModeWords, policy->mode))}});
}

bool FleetLoop::is_complete(const k8s::Gvr& gvr) const {
  if (gvr == resources::daemon_sets) return parts_.dynamic->synced(WatchScope::Kind::daemonsets);
  const ScopedWatch* watch = parts_.cluster->find(gvr);
  return watch == nullptr || watch->readable() ||
         (parts_.world->clusterpolicies_forbidden && gvr == resources::cluster_policies) ||
         (std::ranges::find(kOptional, gvr) != std::end(kOptional) && parts_.cluster->forbidden(gvr).has_value());
}

void FleetLoop::measure_reconciler(const Reconciler& reconciler, const Plan* part, Duration took) {
  const Metrics::Labels name{{"controller", std::string(reconciler.name)}};
  const char* result = part == nullptr ? "requeue" : part->requeue_after ? "requeue_after" : "success";
  parts_.metrics->add("controller_runtime_reconcile_total", {name[0], {"result", result}});
  if (part != nullptr) parts_.metrics->observe("controller_runtime_reconcile_time_seconds", name, in_seconds(took));
}

// Watches that the server forbids, as findings and Events: the person who can grant them looks there.
void FleetLoop::add_refusals(Execution& execution) const {
  const std::string& own = parts_.settings->operator_namespace;
  const auto report = [&](Severity severity, const std::string& ns, std::string_view reason, const std::string& note) {
    const ObjectRef where{"v1", "Namespace", "", ns, ""};
    execution.findings.push_back({severity, where, {reason, note}});
    execution.events.push_back({.regarding = where, .warning = true, .why = {reason, note}, .verb = "Watch"});
  };
  const auto add = [&](Severity severity, const std::string& ns, const std::string& note) {
    report(severity, ns, kForbidden, note);
  };
  if (const std::set<std::string>& beyond = parts_.dynamic->beyond(); !beyond.empty()) {
    report(Severity::error, own, kTooManyWatches,
           fmt::format("the DaemonSets of the operand namespaces need more than {} watches: nothing is planned for "
                       "nodes whose device plugin is in {}. Delete device plugins that are not used, or take their "
                       "namespaces out of the chart value operandNamespaces",
                       DynamicWatches::kMost, first_names({beyond.begin(), beyond.end()})));
  }
  for (const DynamicWatches::Refusal& refusal : parts_.dynamic->refused()) {
    add(Severity::error, refusal.scope.ns,
        fmt::format("{}; {}", refusal.error.message,
                    refusal.scope.ns == own ? "the operator's record is there: nothing is planned until list and watch "
                                              "are granted (the chart's Role in that namespace has them)"
                                            : "grant list and watch there (chart value operandNamespaces)"));
  }
  if (const auto error = parts_.cluster->forbidden(resources::cluster_policies)) {
    add(Severity::error, own,
        fmt::format("{}; a change that a ClusterPolicy announces is detected only after its DaemonSets have it. Grant "
                    "get, list and watch on clusterpolicies.nvidia.com",
                    error->message));
  }
  for (const KaiWatches::Refusal& refusal : parts_.kai->refused()) {
    const bool binder = refusal.scope.kind == KaiScope::Kind::binder;
    add(Severity::warning, binder ? refusal.scope.ns : own,
        fmt::format("{}; no KAI reservation is deleted until list and watch are granted{}", refusal.error.message,
                    binder ? " (chart value kai.namespace)" : ""));
  }
  // One finding for all nodes: the right to watch pods is the same for each of them.
  if (const auto refused = parts_.partitioning->refused(); !refused.empty()) {
    add(Severity::warning, own,
        fmt::format("{}; no GPU is partitioned until list and watch are granted (chart value modes.partitioning)",
                    refused.front().error.message));
  }
}

// Without a plan. A record that the server refuses waits for a person.
void FleetLoop::report_refusals() {
  Execution nothing;
  if (parts_.world->refused_namespaces.contains(parts_.settings->operator_namespace)) report(Plan(), nothing);
}

void FleetLoop::report(const Plan& plan, Execution& execution) {
  add_refusals(execution);
  std::vector<RecordEvent> events = std::move(execution.events);
  for (const PlannedAction& planned : plan.actions)
    if (const auto* event = std::get_if<RecordEvent>(&planned.action)) events.push_back(*event);
  if (!parts_.options->dry_run) parts_.recorder->record_pass(events);

  report_findings(plan, execution);
}

void FleetLoop::report_findings(const Plan& plan, const Execution& execution) {
  const MonoTime now = parts_.clock->monotonic();
  std::map<std::pair<std::string_view, std::string_view>, double> counts;  // By severity and reason.
  const auto report_one = [&](const Finding& finding) {
    const std::string object = k8s::to_string(finding.object.key());
    ++counts[{to_string(finding.severity), finding.why.code}];
    std::string line = fmt::format("{} {} {} {}", finding.object.kind, object, finding.why.code, finding.why.message);
    if (!reported_findings_.is_new(std::move(line), now)) return;
    const LogLevel level = finding.severity == Severity::info ? LogLevel::info : LogLevel::warning;
    parts_.log->log(level, "Finding",
                    {{"kind", finding.object.kind},
                     {"object", object},
                     {"reason", finding.why.code},
                     {"detail", finding.why.message}});
  };
  std::ranges::for_each(plan.findings, report_one);
  std::ranges::for_each(execution.findings, report_one);
  reported_findings_.end_pass(now);
  parts_.metrics->clear("gpusharing_findings");
  for (const auto& [key, number] : counts) {
    parts_.metrics->set("gpusharing_findings",
                        {{"severity", std::string(key.first)}, {"reason", std::string(key.second)}}, number);
  }
}

void FleetLoop::finish_pass(const Plan& plan, const Execution& execution, bool consumers_listed) {
  const bool waiting = !parts_.expectations->current();
  const bool acted = count_actions(plan) > 0;
  const bool busy = parts_.executor->is_busy() || parts_.lookups->busy() || parts_.consumers->is_busy();
  const bool quiet = !acted && !waiting && !consumers_listed && !busy;
  parts_.view->idle = quiet;
  note_convergence(plan, quiet);
  parts_.log->debug("Pass ended", {{"actions", count_actions(plan)},
                                   {"findings", plan.findings.size()},
                                   {"succeeded", execution.succeeded},
                                   {"failed", execution.failed},
                                   {"deferred", execution.deferred}});
  if (execution.failed > 0)
    parts_.metrics->add("controller_runtime_reconcile_errors_total", {{"controller", kFleet}}, 1);
  if (execution.replan || (execution.failed > 0 && !execution.requeue_after))
    queue_.add_rate_limited();
  else if (execution.failed == 0)
    queue_.forget();
  if (consumers_listed) wake(Duration::zero());
  // Their watch events ask for the next pass as well.
  if (waiting) wake(std::clamp(parts_.expectations->next_refresh() - parts_.clock->monotonic(), kSoonest, kViewWait));
  if (execution.requeue_after) wake(std::max(*execution.requeue_after, kSoonest));
  const Duration soonest = execution.without_record.empty() ? kSoonest : kSoonestWithoutRecord;
  if (plan.requeue_after) wake(std::max(*plan.requeue_after, soonest));
}

void FleetLoop::note_convergence(const Plan& plan, bool quiet) {
  if (!quiet) {
    if (!unsettled_since_) unsettled_since_ = parts_.clock->monotonic();
    return;
  }
  const bool done = std::ranges::none_of(plan.timers, [](const TimerKey& key) { return shows_progress(key.timer); });
  if (!unsettled_since_ || !done) return;
  parts_.metrics->observe("gpusharing_convergence_seconds", {},
                          in_seconds(parts_.clock->monotonic() - *unsettled_since_));
  unsettled_since_.reset();
}

}  // namespace gso
