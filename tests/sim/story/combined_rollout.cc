#include "tests/sim/story/combined_rollout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/model/labels.h"
#include "tests/change_words/change_words.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/boundary_rules.h"
#include "tests/sim/story/combined_setting.h"
#include "tests/sim/story/kai_tenants.h"
#include "tests/sim/story/operator_host.h"
#include "tests/sim/story/restart_ledger.h"
#include "tests/sim/story/restart_rules.h"
#include "tests/sim/story/virtual_world.h"

namespace gso::sim {

using nlohmann::json;
using test::Combination;
using test::Superseding;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

constexpr const char* kAway = "t4-02";     // NotReady from before the edit on.
constexpr const char* kInUse = "a100-02";  // By a pod that its budget protects.
constexpr const char *kPod = "serving", *kTraining = "training";
constexpr const char *kSharedByKai = "a100-04", *kBoundSoon = "t4-01";
// Whoever dies at every write forgets each time how long anything has been true.
constexpr std::uint64_t kMostKills = 8;

// The acts of one rollout, and what its coroutines share.
struct Play {
  Scene* scene = nullptr;
  OperatorHost* op = nullptr;
  std::uint64_t writes = 0;                                                             // Since the edit.
  std::function<bool(std::uint64_t write)> dies = [](std::uint64_t) { return false; };  // After that write.
  Combination what = {};
  k8s::Duration disturbed_after{0};
  std::function<void()> slow_down = [] {};  // The operator's watches.
  OperatorSettings settings = {};
  Scene::Seen before = {};
  CombinedTrace trace = {};
  bool at_rest = false;

  // A node on which the programs that start from now on find no GPU.
  [[nodiscard]] std::string sick() const { return what.fault_in_canary ? "a100-01" : "a100-03"; }
  // Nothing stands in the way: the first edit must arrive everywhere.
  [[nodiscard]] bool is_plain() const {
    return what.fault == test::Fault::none && !what.not_ready && !what.pdb_refuses && !what.window_closes &&
           what.superseding == Superseding::none && !what.kai;
  }
  [[nodiscard]] k8s::Duration bound() const { return what.window_closes ? 8h : 2h; }
};

// --- Before the edit.

asio::awaitable<void> cordon(Scene* scene, std::string node, bool cordoned) {
  json spec;
  spec["spec"]["unschedulable"] = cordoned;
  const k8s::ObjectKey key{"", std::move(node)};
  co_await scene->change(kNodes, key, spec);
}

// Nobody has looked after these for long: one serves nothing, one runs a pod that is to be its last for now.
asio::awaitable<void> put_out_of_service(std::shared_ptr<Play> play) {
  Scene* scene = play->scene;
  if (play->what.broken_before) {
    scene->excused.insert(kBroken);
    scene->fleet().node(kBroken)->machine().break_driver(true);
    const bool crashed = scene->fleet().crash(kBroken, "nvidia-device-plugin-daemonset", "nvidia-device-plugin");
    scene->require(crashed, "the plugin did not run on the node that is to be broken");
  }
  if (play->what.cordoned_before) {
    scene->excused.insert(kCordoned);
    co_await scene->use_gpu(kCordoned, kTraining);
    co_await cordon(scene, kCordoned, true);
  }
  co_await scene->clock().sleep_for(1min);
}

// Both are well again.
asio::awaitable<void> put_back_into_service(std::shared_ptr<Play> play) {
  Scene* scene = play->scene;
  if (play->what.broken_before) {
    scene->fleet().node(kBroken)->machine().break_driver(false);
    scene->excused.erase(kBroken);
  }
  if (!play->what.cordoned_before) co_return;
  scene->require(!scene->view().schedulable(kCordoned), "S7: it uncordoned a node that a person had cordoned");
  const k8s::ObjectKey training{"default", kTraining};
  if (scene->cluster().pods.find(training) != nullptr) co_await scene->remove(kPods, training);
  co_await cordon(scene, kCordoned, false);
  scene->excused.erase(kCordoned);
}

// S9: an operator that comes to a running fleet changes nothing.
asio::awaitable<void> install(std::shared_ptr<Play> play) {
  Scene* scene = play->scene;
  std::map<std::string, std::string> profiles{{"any", test::profile_text(play->what.change.from)}};
  if (play->what.old_drift) {
    profiles["old"] = test::profile_text("ts-2");
    for (const NodeSpec& node : scene->nodes())
      if (node.name.starts_with("old")) scene->excused.insert(node.name);
  }
  co_await scene->install_gpu_operator(profiles, "any");
  co_await put_out_of_service(play);
  if (play->what.kai) co_await bring_kai(scene, kSharedByKai, kBoundSoon);
  // Nobody restarts anything after this one: what runs there is what stood there before.
  if (play->what.old_drift) co_await scene->edit("old", test::profile_text("ts-4"));
  co_await scene->install(play->settings);
  const json tuning = tuning_of(play->what);
  co_await scene->tune("default", tuning);
}

asio::awaitable<void> prepare(std::shared_ptr<Play> play) {
  Scene* scene = play->scene;
  // A service that must not lose its only pod.
  if (play->what.pdb_refuses) co_await scene->protect(kPod, 1);
  if (play->what.pdb_refuses) co_await scene->use_gpu(kInUse, kPod);
  if (!scene->failure().empty()) co_return;
  if (play->what.not_ready) scene->fleet().node(kAway)->set_runtime(false);
  const auto fault = play->what.fault;
  // The two ways in which a machine of this fleet can fail a profile that is right.
  if (fault == test::Fault::labels_stay_wrong)
    scene->fleet().faults().nfd_down = true;
  else if (fault != test::Fault::none)
    scene->fleet().node(play->sick())->machine().break_driver(true);
  co_await scene->clock().sleep_for(30s);
  if (!play->what.window_closes) co_return;
  const auto since = scene->clock().now().time_since_epoch() % kPeriod;
  const k8s::Duration until = kPeriod - since + kOpen - 100s;
  co_await scene->clock().sleep_for(until);
}

// --- The edit, and whatever comes of it.

// Until nothing is written for longer than anything may take, at most `limit`.
asio::awaitable<void> rest(std::shared_ptr<Play> play, k8s::Duration limit) {
  Scene* scene = play->scene;
  const k8s::Duration quiet = play->what.window_closes ? kPeriod + 1min : kPatience + 1min;
  const k8s::MonoTime end = scene->clock().monotonic() + limit;
  play->at_rest = false;
  while (scene->failure().empty() && !play->at_rest && scene->clock().monotonic() < end) {
    const std::string traces = scene->operator_traces();
    co_await scene->stays("the invariants", quiet);
    play->at_rest = scene->operator_traces() == traces;
  }
}

// What happens while nodes are in progress; soon, when none is.
asio::awaitable<void> disturb(std::shared_ptr<Play> play, std::size_t from) {
  Scene* scene = play->scene;
  const Combination& what = play->what;
  if (!what.not_ready && what.superseding == Superseding::none) co_return;
  const std::size_t wanted = what.canary ? 2 : 1;
  const k8s::MonoTime latest = scene->clock().monotonic() + 10min;
  const Scene::Check started = [scene, from, wanted, latest] {
    const bool enough = scene->happened(Happening::started, from) >= wanted || scene->clock().monotonic() >= latest;
    return enough ? std::string() : std::string("none has started");
  };
  co_await scene->until("nodes in progress", 15min, started);
  if (!scene->failure().empty()) co_return;
  co_await scene->clock().sleep_for(play->disturbed_after);  // Their pods are being replaced.
  const auto nodes = scene->nodes_that(Happening::started, from);
  if (what.not_ready && !nodes.empty()) scene->fleet().node(nodes.back())->set_runtime(false);
  if (what.superseding == Superseding::none) co_return;
  const char* next = what.change.another;
  if (what.superseding == Superseding::by_the_old_one) next = what.change.from;
  if (what.superseding == Superseding::by_a_broken_one) next = "broken";
  co_await scene->edit("any", test::profile_text(next));
}

// L1: nodes that are not where they should be have a reason that somebody can read.
std::string unexplained(const Scene& scene) {
  const json status = scene.status_of("default");
  const std::string blocked = status.value("blocked", json::array()).dump();
  std::string progressing;
  for (const json& condition : status.value("conditions", json::array()))
    if (condition.value("type", "") == "Progressing" && condition.value("status", "") == "False")
      progressing = condition.value("reason", "");
  // Those that wait for a slot say who holds it, and the status names that node.
  const std::string holder = status.value("oldestInProgress", json::object()).value("node", "");
  const bool waits = !holder.empty() && blocked.find(holder) != std::string::npos;
  const bool stopped = waits || (!progressing.empty() && progressing != "UpToDate");
  for (const NodeSpec& node : scene.nodes()) {
    if (scene.excused.contains(node.name)) continue;
    const std::string differs = scene.node_differs(node.name);
    const bool failed = scene.state_of(node.name) == kStateFailed;
    const bool named = blocked.find(node.name) != std::string::npos;
    if (!differs.empty() && !failed && !named && !stopped) return "L1: " + differs + ", and " + status.dump();
  }
  return {};
}

asio::awaitable<void> change(std::shared_ptr<Play> play) {
  Scene* scene = play->scene;
  if (!scene->failure().empty()) co_return;
  play->before = scene->seen();
  const Combination what = play->what;
  play->writes = 0;
  play->dies = [what, kills = std::uint64_t{0}](std::uint64_t write) mutable {
    const auto every = static_cast<std::uint64_t>(what.killed_every),
               first = static_cast<std::uint64_t>(what.killed_from);
    if (every == 0 || write < first || (write - first) % every != 0 || kills == kMostKills) return false;
    ++kills;
    return true;
  };
  const std::size_t from = scene->journal().size();
  play->slow_down();
  co_await scene->edit("any", test::profile_text(what.change.to));
  co_await disturb(play, from);
  if (play->is_plain()) {
    // Those that were out of service before are no reason to wait.
    co_await scene->until_fleet_shows("every node on the new profile", play->bound());
    if (what.broken_before || what.cordoned_before) co_return;
    co_await scene->until_settled(20min);
    const bool mps = std::string_view(what.change.to).starts_with("mps");
    std::set<std::string> all = scene->all_nodes();
    for (const std::string& node : scene->excused) all.erase(node);
    scene->require(scene->restarts_problem(play->before, all, mps));
    co_return;
  }
  // A node whose pods do not go is tried again and again.
  const k8s::Duration limit = what.pdb_refuses || what.cordoned_before ? 12min : 1h;
  co_await rest(play, what.window_closes ? 2 * kPeriod + kOpen : limit);
  if (play->at_rest) scene->require(unexplained(*scene));
}

// --- What stood in the way goes: then every node converges. What failed is not tried again without another edit.

asio::awaitable<void> repair(std::shared_ptr<Play> play) {
  Scene* scene = play->scene;
  const Combination& what = play->what;
  const bool all_well = play->is_plain() && !what.broken_before && !what.cordoned_before;
  if (!scene->failure().empty() || all_well) co_return;
  co_await put_back_into_service(play);
  scene->fleet().faults().nfd_down = false;
  for (const NodeSpec& node : scene->nodes()) {
    scene->fleet().node(node.name)->set_runtime(true);
    scene->fleet().node(node.name)->machine().break_driver(false);
  }
  const k8s::ObjectKey key{"default", kPod};
  json lenient;
  lenient["spec"]["minAvailable"] = 0;
  if (play->what.pdb_refuses) co_await scene->change(kBudgets, key, lenient);
  if (play->what.kai) co_await end_kai_pods(scene);
  // Nobody evicts a pod that would find nothing of what it asks for: it has to end by itself.
  const bool renamed = std::string_view(play->what.change.to).ends_with("-renamed");
  if (play->what.pdb_refuses && renamed) co_await scene->remove(kPods, key);
  const bool fails =
      what.fault != test::Fault::none || what.broken_before || what.superseding == Superseding::by_a_broken_one;
  if (fails) co_await scene->edit("any", test::profile_text(play->what.change.repair));
  co_await scene->until_fleet_shows("every node on the profile of the last edit", play->bound());
  co_await scene->until_settled(30min);
}

// Nothing of ours stays but the record.
std::string leftovers(const Scene& scene, const Scene::Seen& before) {
  for (const NodeSpec& node : scene.nodes()) {
    if (scene.excused.contains(node.name) && scene.restarts_of(node.name, before) > 0)
      return "S9: " + node.name + ", which had drifted before, was restarted";
    if (!scene.view().schedulable(node.name)) return "S7: " + node.name + " stays cordoned or NotReady";
    if (const std::string state = scene.state_of(node.name); !state.empty()) return node.name + " stays " + state;
    if (const auto found = scene.view().nodes.find(k8s::ObjectKey{"", node.name});
        found && test::has_change_annotations(test::annotations_of(*found)))
      return node.name + " keeps the annotations of its change";
    for (const std::string_view key : {kScaleDownDisabled, kKarpenterDoNotDisrupt, kMessageAnnotation}) {
      const std::string value = scene.view().annotation(node.name, std::string(key));
      if (!value.empty()) return fmt::format("{} keeps {}={}", node.name, key, value);
    }
  }
  return {};
}

// S6: converged means silent. S9: another start changes nothing.
asio::awaitable<void> look_back(std::shared_ptr<Play> play) {
  Scene* scene = play->scene;
  play->trace.kills = play->op->crashes();
  play->dies = [](std::uint64_t) { return false; };
  scene->tell(fmt::format("killed {} times", play->trace.kills));
  scene->require(leftovers(*scene, play->before));
  if (!scene->failure().empty()) co_return;
  co_await scene->clock().sleep_for(90s);  // The last Events.
  const std::string traces = scene->operator_traces();
  const Scene::Seen seen = scene->seen();
  co_await scene->stays("the invariants", 5min);
  scene->require(scene->operator_traces() == traces, "S6: it writes although everything has converged");
  co_await scene->kill();
  co_await scene->start(play->settings);
  co_await scene->stays("the invariants", 2min);
  scene->require(scene->disturbed(seen));
  scene->require(leftovers(*scene, play->before));
}

asio::awaitable<std::string> tell(std::shared_ptr<Play> play) {
  co_await play->scene->open();
  co_await install(play);
  co_await prepare(play);
  co_await change(play);
  co_await repair(play);
  co_await look_back(play);
  std::string wrong = play->scene->failure();
  if (wrong.empty()) wrong = play->scene->invariant();
  co_return wrong;
}

}  // namespace

CombinedTrace play_on_server(const CombinedRollout& rollout) {
  // The world's end is judged, too.
  RestartLedger ledger(VirtualWorld::kOperatorUser);
  RestartRules rules(VirtualWorld::kOperatorUser, {});
  FleetTiming timing;
  timing.heartbeat = 0s;  // Half of all writes otherwise, and nobody here is lost without a word.
  VirtualWorld world(nodes_of(rollout.what), judged_by(rollout.what), timing);
  BoundaryRules boundary(VirtualWorld::kOperatorUser,
                         {.served_text = [&world](const std::string& node) { return world.plugin_text(node); }});
  ledger.attach(&world.server);
  rules.attach(&world.server);
  boundary.attach(&world.server);
  OperatorHost op(world.io.get_executor(), &world.clock, &world.server, VirtualWorld::kOperatorUser, "operator");
  Scene& scene = open_scene(world, world.stage_options(), &op);
  scene.invariant = [&world, &ledger, &rules, &boundary] {
    std::string first = world.invariants.violation();
    if (first.empty()) first = ledger.violation();
    if (first.empty()) first = rules.violation();
    return first.empty() ? boundary.violation() : first;
  };
  auto play = std::make_shared<Play>();
  play->scene = &scene;
  play->op = &op;
  op.hooks().crash_after_write = [play, &op](std::uint64_t, const PlannedAction&) {
    if (!play->dies(++play->writes)) return false;
    op.crash(1s);
    return true;
  };
  play->what = rollout.what;
  play->disturbed_after = rollout.disturbed_after;
  play->settings = settings_of(rollout.what);
  std::vector<std::string> late{"nodes", "pods"};
  if (rollout.records_lag) late.insert(late.end(), {"sharingpolicies", "sharingrollouts"});
  play->slow_down = [&op, late, lag = rollout.watch_lag, relists = rollout.relists, refused = rollout.refused_writes] {
    FaultRule goaway;
    goaway.fault = Fault::refused;
    goaway.verb = "write";
    goaway.probability = 0.2;
    if (refused) op.faults().add(goaway);
    for (const std::string& resource : late) {
      FaultRule gone;
      gone.fault = Fault::gone;
      gone.verb = "watch";
      gone.resource = resource;
      gone.probability = 0.2;  // Of each event.
      if (relists) op.faults().add(gone);
      FaultRule slow;
      slow.fault = Fault::latency;
      slow.verb = "watch";
      slow.resource = resource;
      slow.delay = lag;
      if (lag > 0s) op.faults().add(slow);
    }
  };
  const auto wrong = world.hear(tell(play), 72h);
  EXPECT_EQ(wrong.value_or("the rollout does not end"), "") << world.lines << op.recent_log();
  world.end(op);
  play->trace.deletions = ledger.deletions();
  play->trace.idle_writes = ledger.idle_writes();
  play->trace.idle_write = ledger.idle_write();
  return play->trace;
}

}  // namespace gso::sim
