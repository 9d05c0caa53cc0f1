// One function for each page, and which path is which.
#include "controller/serving/debug_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "controller/config/options.h"
#include "controller/serving/metrics.h"
#include "controller/serving/process_metrics.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/node_json.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kNodes = "/debug/nodes/";
constexpr std::string_view kLogLevel = "/debug/log-level";

const OptionSpec& log_level_spec() {
  const auto& specs = option_specs();
  return *std::find_if(specs.begin(), specs.end(), [](const OptionSpec& spec) { return spec.name == "log-level"; });
}

OrderedJson log_level(LogLevel level) {
  Options options;
  options.log_level = level;
  return {{"level", log_level_spec().get(options)}};
}

DebugAnswer found(const OrderedJson& document) {
  return {200, printable_json(document.dump(1, ' ', false, OrderedJson::error_handler_t::replace)) + "\n"};
}

DebugAnswer refused(int status, const std::string& why) {
  return {status, OrderedJson{{"error", why}}.dump() + "\n"};
}

}  // namespace

OrderedJson DebugPages::cache() const {
  OrderedJson watches = OrderedJson::array();
  for (const auto& status : parts_.cluster->status()) {
    watches.push_back({{"resource", status.gvr.resource},
                       {"group", status.gvr.group},
                       {"synced", status.synced},
                       {"current", status.current()},
                       {"absent", status.api == k8s::ApiState::absent},
                       {"error", status.error ? status.error->message : ""}});
  }
  OrderedJson stores = OrderedJson::array();
  for (const StoreSize& store : store_sizes(*parts_.world)) {
    stores.push_back({{"resource", store.resource}, {"objects", store.objects}, {"bytes", store.bytes}});
  }
  OrderedJson loading = OrderedJson::array();
  for (const WatchScope& scope : parts_.dynamic->loading()) loading.push_back(to_string(scope));
  OrderedJson refusals = OrderedJson::array();
  for (const auto& refusal : parts_.dynamic->refused()) {
    refusals.push_back({{"scope", to_string(refusal.scope)}, {"error", refusal.error.message}});
  }
  return {{"synced", parts_.synced()},
          {"leading", parts_.leading()},
          {"watches", std::move(watches)},
          {"stores", std::move(stores)},
          {"loading", std::move(loading)},
          {"refused", std::move(refusals)},
          {"kaiIncomplete", parts_.world->kai.incomplete},
          {"internedBytes", k8s::Interned::pool_bytes()},
          {"residentBytes", resident_bytes()}};
}

OrderedJson DebugPages::queue() const {
  const MonoTime now = parts_.clock->monotonic();
  const MonoTime due = parts_.queue->next_due();
  OrderedJson timers = OrderedJson::object();
  for (const auto& [timer, since] : parts_.held_since->timers(parts_.clock->now(), now)) {
    timers[to_string(timer)] = k8s::format_micro_time(since);
  }
  OrderedJson actions = OrderedJson::array();
  for (const PlannedAction& action : parts_.view->last_plan.actions) actions.push_back(print(action));
  OrderedJson findings = OrderedJson::array();
  for (const Finding& finding : parts_.view->last_plan.findings) findings.push_back(to_json(finding));
  const auto& requeue = parts_.view->last_plan.requeue_after;
  return {{"leading", parts_.leading()},
          {"leader", parts_.leader()},
          {"passes", parts_.view->passes},
          {"writes", parts_.view->writes},
          {"writesInFlight", parts_.executor->in_flight()},
          {"queued", parts_.queue->queued() ? 1 : 0},
          {"waiting", due == MonoTime::never() ? 0 : 1},
          {"nextDueSeconds", due == MonoTime::never() ? OrderedJson() : OrderedJson(in_seconds(due - now))},
          {"longestRunningSeconds", in_seconds(parts_.queue->running())},
          {"lastPlan",
           {{"actions", std::move(actions)},
            {"findings", std::move(findings)},
            {"requeueAfterSeconds", requeue ? OrderedJson(in_seconds(*requeue)) : OrderedJson()}}},
          {"timers", std::move(timers)}};
}

DebugAnswer DebugPages::node(const std::string& name) const {
  // A standby keeps its stores up to date but assesses nothing: its answer would look like an empty cluster.
  if (!parts_.leading()) {
    const std::string holder = parts_.leader();
    return refused(503, holder.empty() ? "no replica is the leader now; only the leader assesses nodes"
                                       : fmt::format("this replica stands by; ask the leader, {}", holder));
  }
  if (parts_.view->passes == 0) return refused(503, "no node has been assessed yet; retry in a few seconds");
  const MonoTime mono = parts_.clock->monotonic();
  const WallTime wall = parts_.clock->now();
  const Timers timers = parts_.held_since->timers(wall, mono);
  const Snapshot snapshot{.world = *parts_.world,
                          .now = parts_.held_since->at(wall, mono),
                          .timers = timers,
                          .consumers = parts_.consumers->listings(),
                          .settings = *parts_.settings,
                          .mono = mono};
  const auto explanation = explain_node(snapshot, *parts_.index, parts_.view->last_plan.findings, name);
  return explanation ? found(explanation_json(*explanation)) : refused(404, fmt::format("node {} not found", name));
}

DebugAnswer DebugPages::answer(const DebugRequest& request) {
  const std::string_view path = request.path;
  const bool names_level = path.starts_with(kLogLevel) && path.substr(kLogLevel.size()).starts_with('/');
  if (request.put != names_level) return refused(405, "PUT /debug/log-level/LEVEL, and GET of all the others");
  if (path == "/debug/cache") return found(cache());
  if (path == "/debug/queue") return found(queue());
  if (path.starts_with(kNodes)) return node(std::string(path.substr(kNodes.size())));
  if (path == kLogLevel) return found(log_level(parts_.log->level()));
  if (names_level) {
    Options options;
    const std::string wrong = log_level_spec().set(options, std::string(path.substr(kLogLevel.size() + 1)));
    if (!wrong.empty()) return refused(400, wrong);
    parts_.log->set_level(options.log_level);
    return found(log_level(options.log_level));
  }
  return refused(404, "not found; available: /debug/cache, /debug/queue, /debug/nodes/NAME, /debug/log-level");
}

}  // namespace gso
