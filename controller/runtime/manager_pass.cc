// One planning pass, from the stores to the next time to look.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "controller/runtime/manager.h"
#include "controller/serving/process_metrics.h"
#include "reconcilers/model/project.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

const k8s::Gvr kClusterPolicies{"nvidia.com", "v1", "clusterpolicies"};
// The operator works without permission to read these: with a GPUCluster no DaemonSet matters, and the two DRA kinds
// only add an obstacle.
const k8s::Gvr kOptional[] = {{"nvidia.com", "v1alpha1", "gpuclusters"},
                              {"resource.k8s.io", "v1", "deviceclasses"},
                              {"resource.k8s.io", "v1", "resourceslices"}};
constexpr Duration kViewPoll = std::chrono::milliseconds(100);
// A planner that asks to be run again at once must not occupy the process.
constexpr Duration kSoonest = std::chrono::milliseconds(5);

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

bool is_event(const PlannedAction& planned) {
  return std::holds_alternative<RecordEvent>(planned.action);
}

std::size_t count_actions(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.actions.begin(), plan.actions.end(), [](const auto& action) { return !is_event(action); }));
}

}  // namespace

boost::asio::awaitable<void> Manager::work() {
  for (;;) {
    const std::optional<std::string> key = co_await queue_.get();
    if (!key) break;
    metrics_->set("controller_runtime_active_workers", {{"controller", kFleet}}, 1);
    co_await pass();
    metrics_->set("controller_runtime_active_workers", {{"controller", kFleet}}, 0);
    queue_.done(*key);
  }
}

boost::asio::awaitable<void> Manager::resync() {
  if (options_.resync_period <= Duration::zero()) co_return;
  while (!stopping_) {
    co_await timer_->wait_until(clock_->monotonic() + options_.resync_period);
    if (!stopping_) wake(Duration::zero());
  }
}

void Manager::update_scopes() {
  if (!scopes_dirty_ || !world_.daemonsets.synced()) return;
  if (!world_.clusterpolicies.synced() && !world_.clusterpolicies_forbidden) return;
  scopes_dirty_ = false;
  dynamic_.want(wanted_scopes(world_, settings_));
}

// ClusterPolicies are the only kind that planners can work without if reading it is forbidden.
void Manager::note_forbidden() {
  const bool forbidden = cluster_.forbidden(kClusterPolicies).has_value();
  if (std::exchange(world_.clusterpolicies_forbidden, forbidden) == forbidden) return;
  scopes_dirty_ = true;
  index_.note_everything_changed();
}

void Manager::note_sync() {
  const bool served = cluster_.policies_served();
  if (std::exchange(world_.policies_served, served) != served) {
    log_->info(served ? "The SharingPolicy/SharingRollout CRDs are installed"
                      : "The SharingPolicy/SharingRollout CRDs are not installed in this cluster; keeping the record "
                        "in the state ConfigMap");
    index_.note_everything_changed();
  }
  const bool now = synced();
  view_->synced = now;
  if (now && !std::exchange(was_synced_, true)) {
    malloc_trim(0);
    log_->info("All stores synced", {{"nodes", world_.nodes.size()},
                                     {"pods", world_.operand_pods.size()},
                                     {"residentMiB", resident_bytes() >> 20U}});
  }
}

boost::asio::awaitable<void> Manager::pass() {
  note_forbidden();
  update_scopes();
  kai_watches_.update(cluster_, settings_.kai);
  note_sync();
  if (!leading() || stopping_) co_return;
  const bool current = co_await view_is_current();
  if (!current || !leading() || stopping_) co_return;

  const std::optional<Plan> made = make_plan();
  if (!made) co_return;  // The missing store wakes the loop when it has synced.
  const Plan& plan = *made;
  ++view_->passes;
  view_->last_plan = plan;
  held_since_.observe(plan, clock_->now(), clock_->monotonic());
  lookup_queue_.want(plan.kai_wanted);
  Execution execution = co_await plan_executor_->execute(plan);
  if (execution.crashed) {
    become_fatal({k8s::Reason::cancelled, 0, "crash point"});
    co_return;
  }
  note_evictions(execution);
  bool listed = false;
  if (!plan.consumers_wanted.empty() && !stopping_) listed = co_await list_consumers(plan.consumers_wanted);
  report(plan, execution);
  finish_pass(plan, execution, listed);
}

// True if the stores show every write of the operator; else schedules another pass.
boost::asio::awaitable<bool> Manager::view_is_current() {
  if (expectations_.current()) co_return true;
  if (expectations_.next_refresh() <= clock_->monotonic()) {
    const std::optional<k8s::Error> given_up = co_await expectations_.refresh();
    if (given_up) log_->warning("Could not read an object that was written", {{"error", given_up->message}});
    if (expectations_.current()) co_return true;
  }
  metrics_->add("gpusharing_writes_deferred_total", {{"cause", "stale-view"}});
  wake(std::min(kViewPoll, std::max(expectations_.next_refresh() - clock_->monotonic(), kSoonest)));
  co_return false;
}

// nullopt while the operands, or the operator's record about them, are unknown.
std::optional<Plan> Manager::make_plan() {
  const MonoTime begun = clock_->monotonic();
  const Timers timers = held_since_.timers(clock_->now(), begun);
  const std::map<std::string, std::string> refused = plan_executor_->refused_writes();
  const Snapshot snapshot{world_, clock_->now(), timers, consumers_, settings_, &refused, held_since_.first_look()};
  const bool known = !scopes_dirty_ && !world_.unsynced_namespaces.contains(settings_.operator_namespace);
  ReconcilerFilter filter;
  filter.synced = [this, known](const k8s::Gvr& gvr) { return known && is_complete(gvr); };
  MonoTime start = begun;
  filter.begin = [this, &start] { start = clock_->monotonic(); };
  filter.planned = [this, &start](const Reconciler& reconciler, const Plan* part) {
    measure_reconciler(reconciler, part, clock_->monotonic() - start);
  };
  Plan plan = plan_all(snapshot, index_, filter);
  if (!known) return std::nullopt;
  metrics_->observe("gpusharing_plan_seconds", {}, seconds(clock_->monotonic() - begun));
  return plan;
}

bool Manager::is_complete(const k8s::Gvr& gvr) const {
  return cluster_.synced(gvr) || (world_.clusterpolicies_forbidden && gvr == kClusterPolicies) ||
         (std::ranges::find(kOptional, gvr) != std::end(kOptional) && cluster_.forbidden(gvr).has_value());
}

void Manager::measure_reconciler(const Reconciler& reconciler, const Plan* part, Duration took) {
  const Metrics::Labels name{{"controller", std::string(reconciler.name)}};
  const char* result = part == nullptr ? "requeue" : part->requeue_after ? "requeue_after" : "success";
  metrics_->add("controller_runtime_reconcile_total", {name[0], {"result", result}});
  if (part != nullptr) metrics_->observe("controller_runtime_reconcile_time_seconds", name, seconds(took));
}

// Watches that the server forbids, as findings and Events: the person who can grant them looks there.
void Manager::add_refusals(Execution& execution) const {
  for (const DynamicWatches::Refusal& refusal : dynamic_.refused()) {
    const std::string note =
        fmt::format("{}; grant list and watch there (chart value operandNamespaces)", refusal.error.message);
    const ObjectRef where{"v1", "Namespace", "", refusal.scope.ns, ""};
    execution.findings.push_back({Severity::error, where, "Forbidden", note});
    execution.events.push_back(
        {.regarding = where, .warning = true, .reason = "Forbidden", .action = "Watch", .note = note});
  }
  if (const auto error = cluster_.forbidden(kClusterPolicies)) {
    const std::string note = fmt::format(
        "{}; a change that a ClusterPolicy announces is detected only after its DaemonSets have it. Grant get, list "
        "and watch on clusterpolicies.nvidia.com",
        error->message);
    const ObjectRef where{"v1", "Namespace", "", settings_.operator_namespace, ""};
    execution.findings.push_back({Severity::error, where, "Forbidden", note});
    execution.events.push_back(
        {.regarding = where, .warning = true, .reason = "Forbidden", .action = "Watch", .note = note});
  }
  for (const KaiWatches::Refusal& refusal : kai_watches_.refused()) {
    const bool binder = refusal.scope.kind == KaiScope::Kind::binder;
    const std::string note = fmt::format("{}; no KAI reservation is deleted until list and watch are granted{}",
                                         refusal.error.message, binder ? " (chart value kai.namespace)" : "");
    const ObjectRef where{"v1", "Namespace", "", binder ? refusal.scope.ns : settings_.operator_namespace, ""};
    execution.findings.push_back({Severity::warning, where, "Forbidden", note});
    execution.events.push_back(
        {.regarding = where, .warning = true, .reason = "Forbidden", .action = "Watch", .note = note});
  }
}

void Manager::report(const Plan& plan, Execution& execution) {
  add_refusals(execution);
  std::vector<RecordEvent> events = std::move(execution.events);
  for (const PlannedAction& planned : plan.actions) {
    if (const auto* event = std::get_if<RecordEvent>(&planned.action)) events.push_back(*event);
  }
  if (!options_.dry_run) recorder_->record_pass(events);

  std::set<std::string> reported;
  std::map<std::pair<std::string, std::string>, double> counts;
  std::vector<Finding> findings = plan.findings;
  findings.insert(findings.end(), execution.findings.begin(), execution.findings.end());
  for (const Finding& finding : findings) {
    const std::string object = k8s::to_string(ObjectKey{finding.object.ns, finding.object.name});
    ++counts[{std::string(to_string(finding.severity)), finding.reason}];
    const std::string line = fmt::format("{} {} {} {}", finding.object.kind, object, finding.reason, finding.message);
    if (reported.insert(line).second && !reported_findings_.contains(line)) {
      const LogLevel level = finding.severity == Severity::info ? LogLevel::info : LogLevel::warning;
      log_->log(
          level, "Finding",
          {{"kind", finding.object.kind}, {"object", object}, {"reason", finding.reason}, {"detail", finding.message}});
    }
  }
  reported_findings_ = std::move(reported);
  metrics_->clear("gpusharing_findings");
  for (const auto& [key, number] : counts) {
    metrics_->set("gpusharing_findings", {{"severity", key.first}, {"reason", key.second}}, number);
  }
}

void Manager::finish_pass(const Plan& plan, const Execution& execution, bool consumers_listed) {
  const bool waiting = !expectations_.current();
  const bool acted = count_actions(plan) > 0;
  const bool quiet = !acted && !waiting && !consumers_listed && !lookup_queue_.busy();
  view_->idle = quiet;
  note_convergence(plan, quiet);
  log_->debug("Pass ended", {{"actions", count_actions(plan)},
                             {"findings", plan.findings.size()},
                             {"succeeded", execution.succeeded},
                             {"failed", execution.failed},
                             {"deferred", execution.deferred}});
  if (execution.failed > 0) {
    metrics_->add("controller_runtime_reconcile_errors_total", {{"controller", kFleet}}, 1);
  }
  if (execution.replan || (execution.failed > 0 && !execution.requeue_after)) {
    queue_.add_rate_limited(kFleet);
  } else if (execution.failed == 0) {
    queue_.forget(kFleet);
  }
  if (consumers_listed) wake(Duration::zero());
  if (waiting) wake(kViewPoll);
  if (execution.requeue_after) wake(std::max(*execution.requeue_after, kSoonest));
  if (plan.requeue_after) wake(std::max(*plan.requeue_after, kSoonest));
}

void Manager::note_convergence(const Plan& plan, bool quiet) {
  if (!quiet) {
    if (!unsettled_since_) unsettled_since_ = clock_->monotonic();
    return;
  }
  const bool done = std::ranges::none_of(plan.timers, [](const TimerKey& key) { return shows_progress(key.timer); });
  if (!unsettled_since_ || !done) return;
  metrics_->observe("gpusharing_convergence_seconds", {}, seconds(clock_->monotonic() - *unsettled_since_));
  unsettled_since_.reset();
}

}  // namespace gso
