#include "tests/sim/soak/faulted_rollout.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "reconcilers/model/labels.h"
#include "tests/change_words/change_words.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/boundary_rules.h"
#include "tests/sim/story/operator_host.h"
#include "tests/sim/story/restart_ledger.h"
#include "tests/sim/story/restart_rules.h"
#include "tests/sim/story/rollouts/rollout_stories.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

constexpr const char* kTenant = "a-team";
constexpr const char *kFirstNode = "a100-01", *kTraining = "training";
// By when a rollout has come to its end or to a named stop, beyond the time that its faults take.
constexpr k8s::Duration kBound = 4h;
constexpr k8s::Duration kSilence = 1h;
constexpr rlim_t kMostSeconds = 300;  // Of the processor's time for one rollout: then it hangs.

constexpr std::array kWorlds{
    SoakWorld{"one-node", 1, "mps-4", "mps-8", "mps-2"},
    SoakWorld{"time-slicing", 2, "ts-2", "ts-4", "ts-8"},
    SoakWorld{"into-mps", 2, "none", "mps-4", "ts-4"},
    SoakWorld{"edited-again", 2, "mps-4", "mps-8", "mps-2", Act::edited_again},
    SoakWorld{"edited-back", 2, "mps-4", "mps-8", "mps-2", Act::edited_back},
    SoakWorld{"paused", 3, "mps-4", "mps-8", "mps-2", Act::paused},
    SoakWorld{"held", 2, "ts-2", "mps-4", "mps-2", Act::held},
    SoakWorld{"busy", 2, "mps-4", "mps-8", "mps-2", Act::none, 1, true},
    SoakWorld{"two-operators", 2, "mps-4", "mps-8", "mps-2", Act::none, 2},
};

// The annotations and labels that a rollout leaves behind, and what the node then serves.
json end_of_node(const json& node, Act act) {
  json end;
  for (const auto& [key, value] : labels(node).items())
    if (key.starts_with("nvidia.com/gpu.") || key.starts_with("nvidia.com/mps") || key.starts_with(kGroup))
      end["labels"][key] = value;
  for (const auto& [key, value] : annotations(node).items()) {
    // Where people edit back, it depends on who is quicker whether a node has begun a change, and so has a record.
    const bool depends = act == Act::edited_back && (key == kRevisionAnnotation || key == kProfileAnnotation);
    if (key.starts_with(kGroup) && !depends) end["annotations"][key] = value;
  }
  end["unschedulable"] = member(node, "spec").value("unschedulable", false);
  for (const auto& [key, value] : member(member(node, "status"), "allocatable").items())
    if (key.starts_with("nvidia.com/")) end["allocatable"][key] = value;
  return end;
}

}  // namespace

std::span<const SoakWorld> soak_worlds() {
  return kWorlds;
}

// Everything of one world. Members are destroyed only in the process that built it: the others end without.
struct SoakBench::World {
  explicit World(const SoakWorld& what);
  ~World();

  // From an empty server to an operator that has nothing to do. Says what went wrong.
  std::string install();
  // The edit and what follows, under a plan.
  SoakOutcome roll(const FaultPlan& plan, const SoakOutcome* reference);

  void strike(OperatorHost& host, const FaultRule& rule);
  std::string violation() const;
  std::string unfinished() const;
  json open_rollouts() const;
  std::string named_stop() const;
  std::string end_state() const;
  std::string settle(k8s::Duration bound);
  std::string hear_silence();
  void keep_places();
  std::string logs() const;

  SoakWorld what;
  RestartLedger ledger{VirtualWorld::kOperatorUser};
  RestartRules rules{VirtualWorld::kOperatorUser, {}};
  VirtualWorld world;
  std::vector<std::unique_ptr<OperatorHost>> hosts;
  BoundaryRules boundary;
  Scene* scene = nullptr;
  OperatorSettings settings;
  bool people_done = false;
  std::uint64_t losses = 0;   // How often the server has lost what was written last.
  k8s::MonoTime calm_from{};  // Every fault that lasts has passed by then.
  std::uint64_t trace = 14695981039346656037U;
  std::uint64_t writes = 0;
  std::map<std::pair<std::string, std::string>, int> exchanges;  // Of the first operator: verb and resource.
};

namespace {

InvariantOptions judged_by(const SoakWorld& what) {
  return {.budget = what.act == Act::held ? 2U : 1U};
}

FleetTiming quiet_fleet() {
  FleetTiming timing;
  timing.heartbeat = 0s;  // Nobody here is lost without a word.
  timing.nfd_api = 1h;    // Nobody here installs it, and a look a third of a second each is most of a silent hour.
  return timing;
}

}  // namespace

SoakBench::World::World(const SoakWorld& to_build)
    : what(to_build),
      world(a100s(to_build.nodes), judged_by(to_build), quiet_fleet()),
      boundary(
          VirtualWorld::kOperatorUser,
          {.served_text = [this](const std::string& node) { return world.plugin_text(node); },
           .silence = [this](const std::string& agent, const std::string& resource) -> std::optional<k8s::Duration> {
             for (const auto& host : hosts) {
               if (host->name() != agent) continue;
               const auto heard = host->heard_of(resource);
               if (heard) return world.clock.monotonic() - *heard;
             }
             return std::nullopt;
           },
           .strangers = {kTenant}}) {
  ledger.attach(&world.server);
  rules.attach(&world.server);
  boundary.attach(&world.server);
  for (int i = 0; i < what.operators; ++i) {
    hosts.push_back(std::make_unique<OperatorHost>(world.io.get_executor(), &world.clock, &world.server,
                                                   VirtualWorld::kOperatorUser, fmt::format("operator-{}", i)));
    OperatorHost* host = hosts.back().get();
    host->faults().strike = [this, host](const FaultRule& rule) { strike(*host, rule); };
  }
  world.server.add_audit_listener([this](const AuditEntry& entry) {
    if (entry.user != VirtualWorld::kOperatorUser) return;
    const std::string line = fmt::format("{} {} {} {} {} {}", k8s::format_time(entry.time), entry.user_agent,
                                         entry.verb, entry.gvr.resource, k8s::to_string(entry.key), entry.body);
    for (const char c : line) trace = (trace ^ static_cast<unsigned char>(c)) * 1099511628211U;
    // A fault of the Lease can come at any time; an Event about it says who leads since then.
    const bool about_lease =
        entry.gvr.resource == "leases" || (entry.gvr.resource == "events" && entry.after != nullptr &&
                                           text(member(*entry.after, "involvedObject"), "kind") == "Lease");
    if (!about_lease && entry.status < 300) ++writes;
  });
}

SoakBench::World::~World() {
  for (const auto& host : hosts) world.end(*host);
}

namespace {

asio::awaitable<std::string> install_all(Scene* scene, SoakWorld what, OperatorSettings settings) {
  co_await scene->open();
  const std::map<std::string, std::string> profiles{{"any", test::profile_text(what.from)}};
  co_await scene->install_gpu_operator(profiles, "any");
  co_await scene->install(settings);
  if (what.busy) co_await scene->use_gpu(kFirstNode, kTraining);
  co_return scene->failure();
}

// A person's write. Whoever sees that the server has lost it writes again; nothing else goes wrong with it.
asio::awaitable<void> insist(Scene* scene, k8s::Gvr gvr, k8s::ObjectKey key, json merge, const std::uint64_t* losses) {
  std::uint64_t before = 0;
  do {
    before = *losses;
    co_await scene->change(gvr, key, merge);
    co_await scene->clock().sleep_for(2s);
  } while (*losses != before && scene->failure().empty());
}

asio::awaitable<void> edit_to(Scene* scene, std::string text, const std::uint64_t* losses) {
  json merge;
  merge["data"]["any"] = text;
  co_await scene->edit("any", text);
  const k8s::ObjectKey profiles{"gpu-operator", "mps-config"};
  co_await insist(scene, kConfigMaps, profiles, merge, losses);
}

// Until a node's pods are being replaced.
asio::awaitable<void> await_a_start(Scene* scene, std::size_t from) {
  const k8s::MonoTime latest = scene->clock().monotonic() + 30min;
  while (scene->happened(Happening::started, from) == 0 && scene->clock().monotonic() < latest)
    co_await scene->clock().sleep_for(1s);
  co_await scene->clock().sleep_for(2s);
}

asio::awaitable<void> pause_for_a_while(Scene* scene, const std::uint64_t* losses) {
  const k8s::ObjectKey policy{"", std::string(kDefaultPolicy)};
  for (const bool paused : {true, false}) {
    json merge;
    merge["spec"]["rollout"]["paused"] = paused;
    co_await insist(scene, kPolicies, policy, merge, losses);
    if (paused) co_await scene->clock().sleep_for(10min);
  }
}

asio::awaitable<void> act(Scene* scene, SoakWorld what, const std::uint64_t* losses, bool* done) {
  json hold;
  hold["metadata"]["labels"][std::string(kHoldAnnotation)] = "true";
  json release;
  release["metadata"]["labels"][std::string(kHoldAnnotation)] = nullptr;
  const k8s::ObjectKey last{"", scene->nodes().back().name};
  if (what.act == Act::held) co_await insist(scene, kNodes, last, hold, losses);
  const std::size_t from = scene->journal().size();
  const std::string first = test::profile_text(what.from), second = test::profile_text(what.to);
  co_await edit_to(scene, second, losses);
  const k8s::ObjectKey training{"default", kTraining};
  if (what.busy) {
    co_await scene->clock().sleep_for(5min);
    co_await scene->remove(kPods, training);
  }
  if (what.act == Act::held) {
    co_await scene->clock().sleep_for(10min);
    co_await insist(scene, kNodes, last, release, losses);
  }
  if (what.act == Act::edited_again || what.act == Act::edited_back || what.act == Act::paused)
    co_await await_a_start(scene, from);
  const std::string third = what.act == Act::edited_again ? test::profile_text(what.another) : first;
  if (what.act == Act::edited_again || what.act == Act::edited_back) co_await edit_to(scene, third, losses);
  if (what.act == Act::paused) co_await pause_for_a_while(scene, losses);
  *done = true;
}

}  // namespace

std::string SoakBench::World::install() {
  scene = &open_scene(world, world.stage_options(), hosts.front().get());
  scene->invariant = [this] { return violation(); };
  // Renewals of the lease are most of an hour in which nothing happens.
  settings = {
      {"lease-duration", "1m"}, {"renew-deadline", "40s"}, {"retry-period", "20s"}, {"canary-nodes-per-group", "1"}};
  const auto wrong = world.hear(install_all(scene, what, settings), 2h);
  if (!wrong) return "the installation does not end";
  if (!wrong->empty()) return "the installation failed: " + *wrong;
  // Standbys that know everything already.
  OperatorSettings all = hosts.front()->settings();
  for (std::size_t i = 1; i < hosts.size(); ++i)
    if (const auto started = hosts[i]->start(all); !started) return started.error().message;
  world.clock.run_for(2min);
  return violation();
}

// --- What goes wrong.

namespace {

asio::awaitable<void> play_strangers(k8s::ApiClient* client, k8s::Clock* clock, k8s::Duration stay) {
  json daemons;
  daemons["apiVersion"] = "apps/v1";
  daemons["kind"] = "DaemonSet";
  daemons["metadata"] = {{"name", "nvidia-device-plugin"},
                         {"namespace", kTenant},
                         {"ownerReferences", json::array({{{"apiVersion", "nvidia.com/v1"},
                                                           {"kind", "ClusterPolicy"},
                                                           {"name", "cluster-policy"},
                                                           {"uid", "00000000-0000-0000-0000-000000000000"},
                                                           {"controller", true}}})}};
  json& spec = daemons["spec"];
  spec["selector"]["matchLabels"]["app"] = "stranger";
  spec["template"]["metadata"]["labels"]["app"] = "stranger";
  spec["template"]["spec"]["nodeSelector"]["example.com/nowhere"] = "true";
  spec["template"]["spec"]["containers"] =
      json::array({{{"name", "nvidia-device-plugin"},
                    {"image", "example.com/stranger:v0.17.0"},
                    {"env", json::array({{{"name", "CONFIG_FILE"}, {"value", "/config/config.yaml"}}})}}});
  json pod;
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"] = {{"name", "stranger"}, {"namespace", kTenant}, {"annotations", {{"gpu-fraction", "0.5"}}}};
  pod["spec"]["nodeName"] = kFirstNode;
  pod["spec"]["containers"] = json::array({{{"name", "pause"}, {"image", "pause"}}});
  const json ns{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", kTenant}}}};
  const std::string texts[] = {ns.dump(), daemons.dump(), pod.dump()};
  auto made = co_await client->create(kNamespaces, "", texts[0]);
  made = co_await client->create(kDaemonSets, kTenant, texts[1]);
  made = co_await client->create(kPods, kTenant, texts[2]);
  co_await clock->sleep_for(stay);
  const k8s::ObjectKey set{kTenant, "nvidia-device-plugin"}, stranger{kTenant, "stranger"};
  auto gone = co_await client->remove(kDaemonSets, set, {});
  gone = co_await client->remove(kPods, stranger, {});
}

asio::awaitable<void> connect_fleet_again(VirtualWorld* world, k8s::Duration length) {
  co_await world->clock.sleep_for(length);
  world->fleet_transport.set_connected(true);
}

// Kubelets compare what the server holds with what runs: their own views are lists again by then.
asio::awaitable<void> resync_fleet(VirtualWorld* world) {
  co_await world->clock.sleep_for(90s);
  for (const NodeSpec& machine : world->fleet.machines()) world->fleet.node(machine.name)->recover();
}

asio::awaitable<void> crash_soon(OperatorHost* host, k8s::Clock* clock, k8s::Duration delay) {
  if (delay > k8s::Duration(0)) co_await clock->sleep_for(delay);
  host->crash(1s);
}

}  // namespace

void SoakBench::World::strike(OperatorHost& host, const FaultRule& rule) {
  const k8s::MonoTime now = world.clock.monotonic();
  const auto lasts = [&](k8s::Duration length) { calm_from = std::max(calm_from, now + length); };
  switch (rule.fault) {
    case Fault::crash_unsent:
    case Fault::crash_unanswered:
      host.crash(1s);
      break;
    case Fault::crash_answered:
      asio::co_spawn(world.io, crash_soon(&host, &world.clock, rule.delay), asio::detached);
      break;
    case Fault::suspend:
      host.suspend(rule.delay);
      lasts(rule.delay);
      break;
    case Fault::wall_step:
      host.step_wall_clock(rule.delay);
      break;
    case Fault::cut_off:
      host.cut_off(rule.delay);
      lasts(rule.delay);
      break;
    case Fault::server_away:
      for (const auto& each : hosts) each->cut_off(rule.delay);
      world.fleet_transport.set_connected(false);
      asio::co_spawn(world.io, connect_fleet_again(&world, rule.delay), asio::detached);
      lasts(rule.delay);
      break;
    case Fault::history_lost:
      world.server.forget_last(rule.delay);
      ++losses;
      world.invariants.excuse_for(2s);
      ledger.excuse_for(2min);
      asio::co_spawn(world.io, resync_fleet(&world), asio::detached);
      lasts(2min);
      break;
    case Fault::strangers:
      asio::co_spawn(world.io, play_strangers(&world.user_client, &world.clock, rule.delay), asio::detached);
      lasts(rule.delay);
      break;
    default:
      break;
  }
}

// --- What is judged.

std::string SoakBench::World::violation() const {
  for (const std::string* each :
       {&world.invariants.violation(), &ledger.violation(), &rules.violation(), &boundary.violation()}) {
    if (!each->empty()) return *each;
  }
  return {};
}

// What keeps the rollout from being over, or nothing.
std::string SoakBench::World::unfinished() const {
  for (const NodeSpec& node : world.nodes) {
    if (std::string differs = scene->node_differs(node.name); !differs.empty()) return differs;
    const std::string state = scene->state_of(node.name);
    if (!state.empty()) return node.name + " is " + state;
    const auto found = world.server.get(kNodes, {"", node.name});
    if (found && test::has_change_annotations(test::annotations_of(*found)))
      return node.name + " keeps the annotations of its change";
  }
  if (const json open = open_rollouts(); !open.empty()) return "rollouts are open: " + open.dump();
  return scene->settled_problem();
}

// The phases of those that are neither complete nor superseded, by name.
json SoakBench::World::open_rollouts() const {
  json open;
  for (const json& rollout : world.server.list(kRollouts)) {
    const std::string& phase = text(member(rollout, "status"), "phase");
    if (phase != "Completed" && phase != "Superseded") open[text(metadata(rollout), "name")] = phase;
  }
  return open;
}

// L1: a node that is not where it should be is named with a reason.
std::string SoakBench::World::named_stop() const {
  const auto policy = world.server.get(kPolicies, {"", std::string(kDefaultPolicy)});
  if (!policy) return {};
  const json& status = member(*policy, "status");
  std::string stop;
  for (const json& condition : items(status, "conditions")) {
    const std::string reason = text(condition, "reason");
    if (text(condition, "type") == "Progressing" && text(condition, "status") == "False" && reason != "UpToDate")
      stop = reason;
  }
  for (const json& blocked : items(status, "blocked")) stop += (stop.empty() ? "" : "+") + text(blocked, "reason");
  return stop;
}

std::string SoakBench::World::end_state() const {
  json end;
  for (const NodeSpec& node : world.nodes) {
    const auto found = world.server.get(kNodes, {"", node.name});
    if (found) end[node.name] = end_of_node(*found, what.act);
  }
  const auto profiles = world.server.get(kConfigMaps, {"gpu-operator", "mps-config"});
  if (profiles) end["profiles"] = member(*profiles, "data");
  const auto policy = world.server.get(kPolicies, {"", std::string(kDefaultPolicy)});
  if (policy) {
    end["policy"] = member(*policy, "spec");
    end["counts"] = member(member(*policy, "status"), "nodes");
    for (const json& condition : items(member(*policy, "status"), "conditions"))
      end["conditions"][text(condition, "type")] = text(condition, "status") + " " + text(condition, "reason");
  }
  // How many rollouts there were depends on who was quicker. None is under way.
  end["rollouts"] = open_rollouts();
  return end.dump(1);
}

std::string SoakBench::World::logs() const {
  std::string all = world.lines;
  for (const auto& host : hosts) all += host->name() + ":\n" + host->recent_log();
  return all;
}

// Until it is over or something broke. Says what is missing at the bound.
std::string SoakBench::World::settle(k8s::Duration bound) {
  const k8s::MonoTime end = world.clock.monotonic() + bound;
  while (violation().empty()) {
    world.clock.run_for(5s);
    const k8s::MonoTime now = world.clock.monotonic();
    const bool passed = people_done && now > calm_from;
    const std::string missing = !passed ? "people or faults are not done" : unfinished();
    if (missing.empty() || now >= end + std::max(calm_from - end, k8s::Duration(0))) return missing;
  }
  return violation();
}

// S6: converged means silent.
std::string SoakBench::World::hear_silence() {
  world.clock.run_for(3min);  // The last Events.
  const std::uint64_t before = writes;
  const std::string state = end_state();
  world.clock.run_for(kSilence);
  if (!violation().empty()) return violation();
  if (writes != before)
    return fmt::format("S6: {} writes in an hour in which nothing happened, the last one {}", writes - before,
                       world.invariants.last_write());
  if (end_state() != state) return "the state changed although everything had converged";
  for (const auto& host : hosts)
    if (const std::string trouble = host->trouble(); !trouble.empty()) return host->name() + ": " + trouble;
  return {};
}

// --- One rollout.

namespace {

// Rules that matter for every operator; all others meet the first one.
bool is_of_every_operator(const FaultRule& rule) {
  return rule.verb == "watch" && rule.fault != Fault::crash_answered;
}

}  // namespace

void SoakBench::World::keep_places() {
  hosts.front()->set_request_listener([this](const k8s::HttpRequest& request) {
    const RequestInfo info = parse_request(request);
    if (!info.plural.empty()) ++exchanges[{info.verb, info.plural}];
  });
  world.server.add_audit_listener([this](const AuditEntry& entry) {
    if (entry.changed()) ++exchanges[{"event", entry.gvr.resource}];
  });
}

SoakOutcome SoakBench::World::roll(const FaultPlan& plan, const SoakOutcome* reference) {
  SoakOutcome outcome;
  const k8s::MonoTime begun = world.clock.monotonic();
  const std::uint64_t writes_before = writes;
  for (const auto& host : hosts) {
    for (const FaultRule& rule : plan) {
      FaultRule mine = rule;
      if (host != hosts.front() && !is_of_every_operator(rule)) mine.times = 0;
      host->faults().add(mine);
    }
  }
  if (plan.empty()) keep_places();
  const bool loses_stops = std::ranges::any_of(plan, [](const FaultRule& rule) { return rule.verb == "watch"; });
  if (loses_stops) boundary.set_reaction(66min);
  asio::co_spawn(world.io, act(scene, what, &losses, &people_done), asio::detached);
  outcome.wrong = settle(kBound);
  if (!outcome.wrong.empty() && violation().empty() && !named_stop().empty()) {
    outcome.stop = named_stop();
    json retry;
    retry["metadata"]["annotations"][std::string(kRetryAnnotation)] = "again";
    asio::co_spawn(world.io, scene->change(kPolicies, {"", std::string(kDefaultPolicy)}, retry), asio::detached);
    outcome.wrong = settle(kBound);
    if (!outcome.wrong.empty()) outcome.wrong += " (after a retry; it had stopped with " + outcome.stop + ")";
  }
  for (const auto& [place, count] : exchanges) outcome.places.push_back({place.first, place.second, count});
  if (outcome.wrong.empty()) outcome.wrong = scene->failure();
  if (outcome.wrong.empty()) outcome.wrong = hear_silence();
  outcome.end = end_state();
  if (outcome.wrong.empty() && reference != nullptr && outcome.stop.empty() && outcome.end != reference->end)
    outcome.wrong = "the end differs from that of the rollout without faults: " + outcome.end;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    int applied = 0;
    for (const auto& host : hosts) applied = std::max(applied, host->faults().use(i).applied);
    outcome.applied.push_back(applied);
  }
  for (const auto& host : hosts) outcome.crashes += host->crashes();
  outcome.writes = writes - writes_before;
  outcome.trace = trace;
  outcome.virtual_hours = std::chrono::duration<double, std::ratio<3600>>(world.clock.monotonic() - begun).count();
  if (!outcome.wrong.empty()) outcome.log = logs();
  return outcome;
}

// --- Processes.

namespace {

std::string packed(const SoakOutcome& outcome) {
  json all;
  all["wrong"] = outcome.wrong;
  all["stop"] = outcome.stop;
  all["applied"] = outcome.applied;
  all["end"] = outcome.end;
  all["writes"] = outcome.writes;
  all["crashes"] = outcome.crashes;
  all["trace"] = outcome.trace;
  all["hours"] = outcome.virtual_hours;
  all["log"] = outcome.log;
  for (const FaultPlace& place : outcome.places) all["places"].push_back({place.verb, place.resource, place.count});
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

SoakOutcome unpacked_outcome(const std::string& bytes, int status) {
  const json all = json::parse(bytes, nullptr, false);
  if (!all.is_object())
    return {.wrong = fmt::format("the process of the rollout ended with status {:#x} and said nothing", status)};
  SoakOutcome outcome{.wrong = all["wrong"], .stop = all["stop"], .applied = all["applied"], .end = all["end"]};
  outcome.writes = all["writes"];
  outcome.crashes = all["crashes"];
  outcome.trace = all["trace"];
  outcome.virtual_hours = all["hours"];
  outcome.log = all["log"];
  for (const json& place : items(all, "places")) outcome.places.push_back({place[0], place[1], place[2]});
  return outcome;
}

void write_all(int out, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t some = ::write(out, bytes.data() + done, bytes.size() - done);
    if (some <= 0) return;
    done += static_cast<std::size_t>(some);
  }
}

}  // namespace

SoakBench::SoakBench(const SoakWorld& world) : world_(world), built_(std::make_unique<World>(world)) {
  problem_ = built_->install();
  if (!problem_.empty()) {
    problem_ += "\n" + built_->logs();
    return;
  }
  reference_ = play({});
  if (!reference_.wrong.empty()) problem_ = "without faults: " + reference_.wrong + "\n" + reference_.log;
}

SoakBench::~SoakBench() = default;

SoakBench::Run SoakBench::begin(const FaultPlan& plan) const {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  boost::asio::io_context& io = built_->world.io;
  io.notify_fork(boost::asio::execution_context::fork_prepare);
  const pid_t pid = ::fork();
  if (pid != 0) {
    io.notify_fork(boost::asio::execution_context::fork_parent);
    ::close(ends[1]);
    return {pid, ends[0]};
  }
  io.notify_fork(boost::asio::execution_context::fork_child);
  ::close(ends[0]);
  const rlimit most{kMostSeconds, kMostSeconds};
  (void)::setrlimit(RLIMIT_CPU, &most);
  SoakOutcome outcome;
  try {
    outcome = built_->roll(plan, plan.empty() ? nullptr : &reference_);
  } catch (const std::exception& error) {
    outcome.wrong = fmt::format("an exception reached the simulator: {}", error.what());
    outcome.log = built_->logs();
  }
  write_all(ends[1], packed(outcome));
  ::_exit(0);  // Nothing of the world is destroyed twice.
}

SoakOutcome SoakBench::finish(Run run) const {
  if (run.pid < 0) return {.wrong = "no process could be made for the rollout"};
  std::string bytes;
  std::array<char, 65536> some{};
  for (ssize_t count = 0; (count = ::read(run.out, some.data(), some.size())) > 0;)
    bytes.append(some.data(), static_cast<std::size_t>(count));
  ::close(run.out);
  int status = 0;
  (void)::waitpid(run.pid, &status, 0);
  return unpacked_outcome(bytes, status);
}

SoakOutcome SoakBench::play(const FaultPlan& plan) const {
  return finish(begin(plan));
}

}  // namespace gso::sim
