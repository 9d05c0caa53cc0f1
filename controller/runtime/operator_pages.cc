// From what the index, the stores and the last plan hold to the families of a page.
#include "controller/runtime/operator_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "controller/config/options.h"
#include "controller/serving/process_metrics.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

constexpr Duration kLongCordon = std::chrono::hours(2);

using Counts = ShownSums::Counts;  // By the value of a label.

// Sets one gauge family from counts by label value, dropping series that are gone.
void set_counts(Metrics& metrics, const char* name, const char* label, const Counts& counts) {
  metrics.clear(name);
  for (const auto& [value, count] : counts) metrics.set(name, {{label, value}}, count);
}

// A ConfigMap may have any number of keys: what is beyond the first by name shares one series for each state.
void set_profile_counts(Metrics& metrics, const std::map<std::string, Counts, std::less<>>& profiles) {
  constexpr std::size_t kMostProfiles = 100;
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;  // By profile and state.
  std::size_t shown = 0;
  for (const auto& [profile, states] : profiles) {
    const std::string name = ++shown > kMostProfiles ? "other" : profile.empty() ? "none" : profile;
    for (const auto& [state, count] : states) counts[{name, state}] += count;
  }
  metrics.clear("gpusharing_nodes_by_profile");
  for (const auto& [what, count] : counts)
    metrics.set("gpusharing_nodes_by_profile", {{"profile", what.first}, {"state", what.second}}, count);
}

// In place of the name of a tenant's object.
const std::string kHiddenName = "(hidden without metrics.secure)";

void fill_lane(Metrics& metrics, const char* name, const k8s::RequestLane& lane) {
  metrics.set("gpusharing_requests_limit", {{"lane", name}}, lane.limit());
  metrics.set("gpusharing_requests_waiting", {{"lane", name}}, lane.waiting());
}

}  // namespace

// The names for alerts: a few for each reason, so that the number of series does not grow with the fleet.
class OperatorPages::AffectedObjects {
 public:
  void add(std::string_view reason, std::string_view kind, std::string name) {
    std::set<std::string>& names = names_[{std::string(reason), std::string(kind)}];
    names.insert(std::move(name));
    if (names.size() > kMost) names.erase(std::prev(names.end()));
  }
  // Of nodes.
  void add_first(std::string_view reason, const std::set<std::string>& nodes) {
    for (const std::string& node : nodes | std::views::take(kMost)) add(reason, "Node", node);
  }
  void set(Metrics& metrics) const {
    metrics.clear("gpusharing_affected_objects");
    for (const auto& [what, names] : names_) {
      for (const std::string& name : names) {
        metrics.set("gpusharing_affected_objects", {{"reason", what.first}, {"kind", what.second}, {"object", name}},
                    1);
      }
    }
  }

 private:
  static constexpr std::size_t kMost = 5;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> names_;  // By reason and kind.
};

// Whom the plan of one pass names: it is the same until the next pass.
struct OperatorPages::NamedByPlan {
  std::uint64_t pass = 0;
  AffectedObjects affected;
};

OperatorPages::OperatorPages(Parts parts) : parts_(std::move(parts)), shown_(parts_.loop->parts()) {}
OperatorPages::~OperatorPages() = default;

void OperatorPages::declare_zeros(Metrics& metrics) {
  for (const Reconciler& reconciler : reconcilers()) {
    const Metrics::Labels name{{"controller", std::string(reconciler.name)}};
    metrics.add("controller_runtime_reconcile_panics_total", name, 0);
    metrics.add("controller_runtime_terminal_reconcile_errors_total", name, 0);
  }
  metrics.add("gpusharing_throttled_total", {}, 0);
  for (const char* decision : {"deleted", "kept", "failed"})
    metrics.add("gpusharing_reservation_gc_total", {{"decision", decision}}, 0);
  metrics.add("gpusharing_node_changes_total", {{"reason", std::string(kLoadedUngated)}}, 0);
}

void OperatorPages::fill(Metrics& metrics) {
  fill_watches(metrics);
  if (!shown_.leading()) metrics.clear("gpusharing_findings");
  fill_kai(metrics);
  fill_runtime(metrics);
  fill_nodes(metrics);
  fill_rollouts(metrics);
  fill_process_metrics(metrics);
}

void OperatorPages::fill_watches(Metrics& metrics) const {
  const World& world = *shown_.world;
  const auto store = [&](const std::string& resource, std::size_t objects, bool known) {
    Duration stale{0};
    for (const StaleView& view : world.stale_views)
      if (view.resource.resource == resource) stale = std::max<Duration>(stale, shown_.clock->now() - view.since);
    metrics.set("gpusharing_store_objects", {{"resource", resource}}, objects);
    metrics.set("gpusharing_watch_current", {{"resource", resource}}, known && stale <= Duration::zero() ? 1 : 0);
    metrics.set("gpusharing_watch_stale_seconds", {{"resource", resource}}, in_seconds(stale));
  };
  metrics.clear("gpusharing_watches");
  for (const ClusterWatches::Kind& kind : shown_.cluster->kinds()) {
    const std::string& resource = kind.gvr.resource;
    store(resource, kind.objects(), kind.watch->current());
    metrics.set("gpusharing_watches", {{"resource", resource}}, kind.watch->api() == k8s::ApiState::absent ? 0 : 1);
  }
  const auto open = [&](const char* resource, WatchScope::Kind kind) {
    metrics.set("gpusharing_watches", {{"resource", resource}}, shown_.dynamic->open(kind));
  };
  open("pods", WatchScope::Kind::pods);
  open("configmaps", WatchScope::Kind::configmaps);
  open("controllerrevisions", WatchScope::Kind::controllerrevisions);
  open("daemonsets", WatchScope::Kind::daemonsets);
  metrics.set("gpusharing_watches", {{"resource", "kai"}}, shown_.kai->open());
  metrics.set("gpusharing_watches", {{"resource", "partitioning"}}, shown_.partitioning->open());
  const bool complete = world.unsynced_namespaces.empty();
  store("pods", world.operand_pods.size(), complete && world.operand_pods.synced());
  store("configmaps", world.configmaps.size(), complete && world.configmaps.synced());
  store("daemonsets", world.daemonsets.size(), complete && world.daemonsets.synced());
  store("controllerrevisions", world.revisions.size(), complete && world.revisions.synced());
  for (const StoreSize& kept : store_sizes(world))
    metrics.set("gpusharing_store_bytes", {{"resource", kept.resource}}, kept.bytes);
}

void OperatorPages::fill_runtime(Metrics& metrics) const {
  const Metrics::Labels queue{{"name", kFleet}, {"controller", kFleet}};
  // The same with one worker.
  metrics.set("workqueue_unfinished_work_seconds", queue, in_seconds(parts_.loop->queue().running()));
  metrics.set("workqueue_longest_running_processor_seconds", queue, in_seconds(parts_.loop->queue().running()));
  metrics.set("controller_runtime_max_concurrent_reconciles", {{"controller", kFleet}}, 1);
  metrics.set("leader_election_master_status", {{"name", parts_.lease_name}}, shown_.leading() ? 1 : 0);
  metrics.set("gpusharing_watch_lag_seconds", {}, in_seconds(shown_.expectations->lag()));
  metrics.set("gpusharing_interned_bytes", {}, k8s::Interned::pool_bytes());
  fill_lane(metrics, "reads", parts_.client->reads());
  fill_lane(metrics, "records", parts_.client->writes(k8s::WriteKind::record));
  fill_lane(metrics, "writes", parts_.client->writes(k8s::WriteKind::object));
  fill_lane(metrics, "statuses", parts_.client->writes(k8s::WriteKind::status));
  fill_lane(metrics, "events", parts_.client->writes(k8s::WriteKind::event));
}

void OperatorPages::fill_kai(Metrics& metrics) const {
  Counts reservations;
  std::set<std::string_view> mismatched;
  if (shown_.leading()) {  // A standby plans nothing: its data from the time when it led is outdated.
    const KaiIndex& kai = shown_.index->impl().kai;
    std::int64_t sound = 0;
    for (const auto& [name, group] : kai.groups()) sound += std::ssize(group.reservations);
    const bool some = sound > 0;
    for (const Finding& finding : shown_.view->last_plan.findings) {
      if (finding.why.code == kKaiMismatch) mismatched.insert(finding.object.name);
      if (finding.object.kind != "Pod" || finding.object.ns != kai.view().reservations) continue;
      ++reservations[finding.why.code];
      --sound;
    }
    if (some) reservations["Sound"] = std::max<std::int64_t>(sound, 0);
  }
  set_counts(metrics, "gpusharing_kai_reservations", "state", reservations);
  metrics.set("gpusharing_kai_mismatched_nodes", {}, mismatched.size());
}

void OperatorPages::fill_nodes(Metrics& metrics) {
  // A standby assesses nothing: series from the time when it led would be outdated and never removed.
  const bool leading = shown_.leading();
  const FleetIndex::Impl& fleet = shown_.index->impl();
  const ShownSums nobody;
  const ShownSums& sums = leading ? fleet.shown : nobody;
  const std::set<std::string> none;
  const std::set<std::string>& without_gpus = leading ? fleet.nodes_in(Bucket::without_gpus) : none;

  Counts states = sums.states;
  // A panel shows 0 rather than nothing.
  for (std::size_t i = 0; leading && i < kPhases; ++i)
    states.try_emplace(std::string(to_string(static_cast<Phase>(i))));
  Counts reasons;
  for (const auto& [reason, names] : sums.reasons) reasons[reason] = std::ssize(names);
  set_counts(metrics, "gpusharing_nodes", "state", states);
  set_counts(metrics, "gpusharing_nodes_blocked", "reason", reasons);
  set_profile_counts(metrics, sums.profiles);
  metrics.set("gpusharing_nodes_drifting", {}, sums.drifting.size());
  metrics.set("gpusharing_nodes_allocatable_zero", {}, without_gpus.size());

  if (!leading)
    named_ = std::make_unique<NamedByPlan>();
  else if (!named_ || named_->pass != shown_.view->passes)
    named_ = name_by_plan();
  AffectedObjects affected = named_->affected;
  affected.add_first("Drift", sums.drifting);
  affected.add_first("Failed", sums.failed);
  for (const auto& [reason, names] : sums.reasons) affected.add_first(reason, names);
  affected.add_first("AllocatableZero", without_gpus);
  fill_cordons(metrics, affected);
  if (leading) {
    const MonoTime now = shown_.clock->monotonic();
    for (const auto& [node, written] : shown_.view->loaded_ungated)
      if (now - written <= kUngatedNamed) affected.add(kLoadedUngated, "Node", node);
  }
  affected.set(metrics);
}

std::unique_ptr<OperatorPages::NamedByPlan> OperatorPages::name_by_plan() const {
  auto named = std::make_unique<NamedByPlan>();
  named->pass = shown_.view->passes;
  const ProtectedNamespaces systems(*shown_.world, *shown_.settings);
  for (const Finding& finding : shown_.view->last_plan.findings) {
    if (finding.severity == Severity::info) continue;
    const ObjectRef& object = finding.object;
    const bool hidden = parts_.hides_tenants && !object.ns.empty() && systems.owner_of(object.ns).empty();
    named->affected.add(finding.why.code, object.kind, hidden ? kHiddenName : k8s::to_string(object.key()));
  }
  // One whose deletion is refused is planned again in every pass.
  for (const PlannedAction& planned : shown_.view->last_plan.actions) {
    const auto* deletion = std::get_if<DeletePod>(&planned.action);
    if (deletion == nullptr || planned.reconciler != kReservationGc) continue;
    named->affected.add("ReservationDue", "Pod", k8s::to_string(deletion->pod));
  }
  return named;
}

Duration OperatorPages::allowed_cordon(const std::string& node) const {
  const FleetIndex::Impl& fleet = shown_.index->impl();
  const NodeAssessment* assessment = fleet.find(node);
  if (assessment == nullptr) return Duration::max() / 2;
  switch (phase_of(*assessment)) {
    case Phase::held:
      return Duration::max() / 2;
    case Phase::draining:
      return fleet.policy(*shown_.world, assessment->policy.view()).rollout.idle_timeout;
    default:
      return Duration::zero();
  }
}

void OperatorPages::fill_cordons(Metrics& metrics, AffectedObjects& affected) {
  const MonoTime now = shown_.clock->monotonic();
  const std::set<std::string> none;
  const std::set<std::string>& cordoned = shown_.leading() ? shown_.index->impl().nodes_in(Bucket::cordoned) : none;
  std::erase_if(cordoned_since_, [&](const auto& entry) { return !cordoned.contains(entry.first); });
  Duration longest = Duration::zero();
  Duration overdue = Duration::zero();
  for (const std::string& node : cordoned) {
    const MonoTime since = cordoned_since_.try_emplace(node, now).first->second;
    longest = std::max(longest, now - since);
    const Duration late = now - since - allowed_cordon(node);
    if (late > kLongCordon) affected.add("CordonedTooLong", "Node", node);
    overdue = std::max(overdue, late);
  }
  metrics.set("gpusharing_nodes_cordoned_overdue_seconds", {}, in_seconds(overdue));
  metrics.set("gpusharing_nodes_cordoned", {}, cordoned_since_.size());
  metrics.set("gpusharing_nodes_cordoned_longest_seconds", {}, in_seconds(longest));
}

void OperatorPages::fill_rollouts(Metrics& metrics) const {
  Counts phases;
  for (const char* phase : {"Progressing", "Paused", "AwaitingApproval", "Failed", "Completed"}) phases[phase] = 0;
  for (const char* name : {"gpusharing_rollout_nodes", "gpusharing_rollout_waiting", "gpusharing_rollout_standstill"})
    metrics.clear(name);
  for (const auto& [key, rollout] : shown_.world->rollouts.all()) {
    ++phases[rollout->phase.empty() ? "New" : rollout->phase];
    if (has_ended(rollout->phase)) continue;
    const nlohmann::json status = parse_status(rollout->status_json);
    const nlohmann::json condition = condition_in(status, "Progressing");
    const std::string reason = text_at(condition, "reason");
    const Metrics::Labels why{{"rollout", key.name}, {"policy", rollout->policy}, {"reason", reason}};
    if (!reason.empty() && reason != kRollingOut) metrics.set("gpusharing_rollout_waiting", why, 1);
    // The phase does not say that somebody stopped it, and yet nothing moves (Standstill).
    if (rollout->phase == "Progressing" && text_at(condition, "status") == "False")
      metrics.set("gpusharing_rollout_standstill", why, 1);
    const nlohmann::json counts = object_at(status, "counts");
    for (const auto& [state, count] : counts.items()) {
      if (!count.is_number()) continue;
      metrics.set("gpusharing_rollout_nodes", {{"rollout", key.name}, {"state", state}}, count.get<double>());
    }
  }
  set_counts(metrics, "gpusharing_rollouts", "phase", phases);
}

// --- One function for each page, and which path is which.

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kNodes = "/debug/nodes/";
constexpr std::string_view kLogLevel = "/debug/log-level";

OrderedJson log_level(LogLevel level) {
  Options options;
  options.log_level = level;
  return {{"level", find_option("log-level")->get(options)}};
}

HttpAnswer found(const OrderedJson& document) {
  return {200, "application/json",
          printable_json(document.dump(1, ' ', false, OrderedJson::error_handler_t::replace)) + "\n"};
}

HttpAnswer refused(int status, const std::string& why) {
  return {status, "application/json", OrderedJson{{"error", why}}.dump() + "\n"};
}

}  // namespace

OrderedJson OperatorPages::cache() const {
  OrderedJson watches = OrderedJson::array();
  for (const ClusterWatches::Kind& kind : shown_.cluster->kinds()) {
    const ScopedWatch& watch = *kind.watch;
    watches.push_back({{"resource", kind.gvr.resource},
                       {"group", kind.gvr.group},
                       {"synced", watch.synced()},
                       {"current", watch.current()},
                       {"absent", watch.api() == k8s::ApiState::absent},
                       {"error", watch.error() ? watch.error()->message : ""}});
  }
  OrderedJson stores = OrderedJson::array();
  for (const StoreSize& store : store_sizes(*shown_.world))
    stores.push_back({{"resource", store.resource}, {"objects", store.objects}, {"bytes", store.bytes}});
  OrderedJson loading = OrderedJson::array();
  for (const WatchScope& scope : shown_.dynamic->loading()) loading.push_back(to_string(scope));
  OrderedJson refusals = OrderedJson::array();
  for (const auto& refusal : shown_.dynamic->refused())
    refusals.push_back({{"scope", to_string(refusal.scope)}, {"error", refusal.error.message}});
  return {{"synced", parts_.loop->synced()},
          {"leading", shown_.leading()},
          {"watches", std::move(watches)},
          {"stores", std::move(stores)},
          {"loading", std::move(loading)},
          {"refused", std::move(refusals)},
          {"kaiIncomplete", shown_.world->kai.incomplete},
          {"internedBytes", k8s::Interned::pool_bytes()},
          {"residentBytes", resident_bytes()}};
}

OrderedJson OperatorPages::queue() const {
  const MonoTime now = shown_.clock->monotonic();
  const MonoTime due = parts_.loop->queue().next_due();
  OrderedJson timers = OrderedJson::object();
  for (const auto& [timer, since] : parts_.loop->held_since().timers(shown_.clock->now(), now))
    timers[to_string(timer)] = k8s::format_micro_time(since);
  OrderedJson actions = OrderedJson::array();
  for (const PlannedAction& action : shown_.view->last_plan.actions) actions.push_back(print(action));
  OrderedJson findings = OrderedJson::array();
  for (const Finding& finding : shown_.view->last_plan.findings) findings.push_back(to_json(finding));
  const auto& requeue = shown_.view->last_plan.requeue_after;
  return {{"leading", shown_.leading()},
          {"leader", parts_.leader()},
          {"passes", shown_.view->passes},
          {"writes", shown_.view->writes},
          {"writesInFlight", shown_.executor->in_flight()},
          {"queued", parts_.loop->queue().queued() ? 1 : 0},
          {"waiting", due == MonoTime::never() ? 0 : 1},
          {"nextDueSeconds", due == MonoTime::never() ? OrderedJson() : OrderedJson(in_seconds(due - now))},
          {"longestRunningSeconds", in_seconds(parts_.loop->queue().running())},
          {"lastPlan",
           {{"actions", std::move(actions)},
            {"findings", std::move(findings)},
            {"requeueAfterSeconds", requeue ? OrderedJson(in_seconds(*requeue)) : OrderedJson()}}},
          {"timers", std::move(timers)}};
}

HttpAnswer OperatorPages::node(const std::string& name) const {
  // A standby keeps its stores up to date but assesses nothing: its answer would look like an empty cluster.
  if (!shown_.leading()) {
    const std::string holder = parts_.leader();
    return refused(503, holder.empty() ? "no replica is the leader now; only the leader assesses nodes"
                                       : fmt::format("this replica stands by; ask the leader, {}", holder));
  }
  if (shown_.view->passes == 0) return refused(503, "no node has been assessed yet; retry in a few seconds");
  const MonoTime mono = shown_.clock->monotonic();
  const WallTime wall = shown_.clock->now();
  const Timers timers = parts_.loop->held_since().timers(wall, mono);
  const Snapshot snapshot{.world = *shown_.world,
                          .now = parts_.loop->held_since().at(wall, mono),
                          .timers = timers,
                          .consumers = shown_.consumers->listings(),
                          .settings = *shown_.settings,
                          .mono = mono};
  const auto explanation = explain_node(snapshot, *shown_.index, shown_.view->last_plan.findings, name);
  return explanation ? found(explanation_json(*explanation)) : refused(404, fmt::format("node {} not found", name));
}

HttpAnswer OperatorPages::answer(const HttpRequest& request) const {
  const std::string_view path = request.path;
  const bool names_level = path.starts_with(kLogLevel) && path.substr(kLogLevel.size()).starts_with('/');
  if ((request.method == "PUT") != names_level)
    return refused(405, "PUT /debug/log-level/LEVEL, and GET of all the others");
  if (path == "/debug/cache") return found(cache());
  if (path == "/debug/queue") return found(queue());
  if (path.starts_with(kNodes)) return node(std::string(path.substr(kNodes.size())));
  if (path == kLogLevel) return found(log_level(shown_.log->level()));
  if (names_level) {
    Options options;
    const std::string wrong = find_option("log-level")->set(options, std::string(path.substr(kLogLevel.size() + 1)));
    if (!wrong.empty()) return refused(400, wrong);
    shown_.log->set_level(options.log_level);
    return found(log_level(options.log_level));
  }
  return refused(404, "not found; available: /debug/cache, /debug/queue, /debug/nodes/NAME, /debug/log-level");
}

}  // namespace gso
