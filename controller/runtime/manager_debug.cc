// /debug: what the operator holds and is about to do, as JSON. Read from memory, changes nothing but the log level.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/runtime/manager.h"
#include "controller/serving/process_metrics.h"
#include "controller/serving/store_size.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/node_json.h"

namespace gso {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNodes = "/debug/nodes/";
constexpr std::string_view kLogLevel = "/debug/log-level";

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

const OptionSpec& log_level_spec() {
  const auto& specs = option_specs();
  return *std::find_if(specs.begin(), specs.end(), [](const OptionSpec& spec) { return spec.name == "log-level"; });
}

Json log_level(LogLevel level) {
  Options options;
  options.log_level = level;
  return {{"level", log_level_spec().get(options)}};
}

DebugAnswer found(const Json& document) {
  return {200, document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

DebugAnswer refused(int status, const std::string& why) {
  return {status, Json{{"error", why}}.dump() + "\n"};
}

}  // namespace

std::vector<Manager::StoreSize> Manager::store_sizes() const {
  const KaiWorld& kai = world_.kai;
  return {{"nodes", world_.nodes.size(), bytes_of(world_.nodes)},
          {"pods", world_.operand_pods.size(), bytes_of(world_.operand_pods)},
          {"configmaps", world_.configmaps.size(), bytes_of(world_.configmaps)},
          {"daemonsets", world_.daemonsets.size(), bytes_of(world_.daemonsets)},
          {"controllerrevisions", world_.revisions.size(), bytes_of(world_.revisions)},
          {"clusterpolicies", world_.clusterpolicies.size(), bytes_of(world_.clusterpolicies)},
          {"deviceclasses", world_.device_classes.size(), bytes_of(world_.device_classes)},
          {"resourceslices", world_.resource_slices.size(), bytes_of(world_.resource_slices)},
          {"sharingpolicies", world_.policies.size(), bytes_of(world_.policies)},
          {"sharingrollouts", world_.rollouts.size(), bytes_of(world_.rollouts)},
          {"kai-pods", kai.pods.size(), bytes_of(kai.pods)},
          {"configs", kai.configs.size(), bytes_of(kai.configs)},
          {"bindrequests", kai.bind_requests.size(), bytes_of(kai.bind_requests)}};
}

Json Manager::debug_cache() const {
  Json watches = Json::array();
  for (const auto& status : cluster_.status()) {
    watches.push_back({{"resource", status.gvr.resource},
                       {"group", status.gvr.group},
                       {"synced", status.synced},
                       {"absent", status.absent},
                       {"error", status.error ? status.error->message : ""}});
  }
  Json stores = Json::array();
  for (const StoreSize& store : store_sizes()) {
    stores.push_back({{"resource", store.resource}, {"objects", store.objects}, {"bytes", store.bytes}});
  }
  Json loading = Json::array();
  for (const WatchScope& scope : dynamic_.loading()) loading.push_back(to_string(scope));
  Json refusals = Json::array();
  for (const auto& refusal : dynamic_.refused()) {
    refusals.push_back({{"scope", to_string(refusal.scope)}, {"error", refusal.error.message}});
  }
  return {{"synced", synced()},
          {"leading", leading()},
          {"watches", std::move(watches)},
          {"stores", std::move(stores)},
          {"loading", std::move(loading)},
          {"refused", std::move(refusals)},
          {"kaiIncomplete", world_.kai.incomplete},
          {"internedBytes", k8s::Interned::pool_bytes()},
          {"residentBytes", resident_bytes()}};
}

Json Manager::debug_queue() const {
  const MonoTime now = clock_->monotonic();
  const MonoTime due = queue_.next_due();
  Json timers = Json::object();
  for (const auto& [timer, since] : held_since_.timers(clock_->now(), now)) {
    timers[to_string(timer)] = k8s::format_micro_time(since);
  }
  Json actions = Json::array();
  for (const PlannedAction& action : view_->last_plan.actions) actions.push_back(print(action));
  Json findings = Json::array();
  for (const Finding& finding : view_->last_plan.findings) findings.push_back(to_json(finding));
  const auto& requeue = view_->last_plan.requeue_after;
  return {{"leading", leading()},
          {"leader", leader()},
          {"passes", view_->passes},
          {"writes", view_->writes},
          {"writesInFlight", plan_executor_->in_flight()},
          {"queued", queue_.size()},
          {"waiting", queue_.waiting()},
          {"nextDueSeconds", due == MonoTime::never() ? Json() : Json(seconds(due - now))},
          {"longestRunningSeconds", seconds(queue_.longest_running())},
          {"lastPlan",
           {{"actions", std::move(actions)},
            {"findings", std::move(findings)},
            {"requeueAfterSeconds", requeue ? Json(seconds(*requeue)) : Json()}}},
          {"timers", std::move(timers)}};
}

std::string Manager::leader() const {
  return elector_ == nullptr ? options_.identity : elector_->observed().holder;
}

DebugAnswer Manager::debug_node(const std::string& name) {
  // A standby keeps its stores up to date but assesses nothing: its answer would look like an empty cluster.
  if (!leading()) {
    const std::string holder = leader();
    return refused(503, holder.empty() ? "no replica is the leader now; only the leader assesses nodes"
                                       : fmt::format("this replica stands by; ask the leader, {}", holder));
  }
  if (view_->passes == 0) return refused(503, "no node has been assessed yet; retry in a few seconds");
  const Timers timers = held_since_.timers(clock_->now(), clock_->monotonic());
  const Snapshot snapshot{world_, clock_->now(), timers, consumers_, settings_};
  const auto explanation = explain_node(snapshot, index_, view_->last_plan.findings, name);
  return explanation ? found(explanation_json(*explanation)) : refused(404, fmt::format("node {} not found", name));
}

DebugAnswer Manager::debug(const DebugRequest& request) {
  const std::string_view path = request.path;
  const bool names_level = path.starts_with(kLogLevel) && path.substr(kLogLevel.size()).starts_with('/');
  if (request.put != names_level) return refused(405, "PUT /debug/log-level/LEVEL, and GET of all the others");
  if (path == "/debug/cache") return found(debug_cache());
  if (path == "/debug/queue") return found(debug_queue());
  if (path.starts_with(kNodes)) return debug_node(std::string(path.substr(kNodes.size())));
  if (path == kLogLevel) return found(log_level(log_->level()));
  if (names_level) {
    Options options;
    const std::string wrong = log_level_spec().set(options, std::string(path.substr(kLogLevel.size() + 1)));
    if (!wrong.empty()) return refused(400, wrong);
    log_->set_level(options.log_level);
    return found(log_level(options.log_level));
  }
  return refused(404, "not found; available: /debug/cache, /debug/queue, /debug/nodes/NAME, /debug/log-level");
}

}  // namespace gso
