#include "tests/reconcilers/combinations/combinations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_phase.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/reconcilers/fleet_model/invariant_checks.h"
#include "tests/reconcilers/fleet_model/same_plan_checks.h"

namespace gso::test {

namespace {

using std::chrono::seconds;

constexpr int kDriftNodes = 40;
constexpr std::string_view kBroken = "a05", kCordoned = "a06";  // Before the installation.
// An operator that is killed at every write always loses its timers.
constexpr std::int64_t kMostKills = 30;
constexpr Duration kIdleTimeout = seconds(20);
constexpr Duration kVerifyTimeout = seconds(30);
// Longer than every time that the operator waits before it acts. A killed operator restarts its timers; it can be
// killed for a status at every edge of a window, so this must be less than the time between two windows.
constexpr Duration kRemembered = seconds(120);

constexpr std::string_view kPolicy =
    "{{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {{name: default}}, spec: {{rollout: {{"
    "maxUnavailable: {0}, maxUnavailablePerGroup: {1}, canary: {{nodesPerGroup: {2}, soak: 4s}}, workloads: {3}, "
    "idleTimeout: 20s, verifyTimeout: 30s, maxFailures: {4}{5}}}}}}}";

FleetSpec fleet_of(const Combination& c) {
  FleetSpec spec;
  spec.profiles = {{"any", c.change.from}};
  spec.nodes = alike_nodes(4, "NVIDIA-A100-SXM4-40GB", "a");
  for (NodeSpec& node : alike_nodes(2, "Tesla-T4", "t")) spec.nodes.push_back(std::move(node));
  NodeSpec one_more;
  one_more.name = kBroken;
  if (c.broken_before) spec.nodes.push_back(one_more);
  one_more.name = kCordoned;
  one_more.cordoned = true;
  if (c.cordoned_before) spec.nodes.push_back(one_more);
  if (!c.old_drift) return spec;
  spec.profiles["old"] = "ts-2";
  for (NodeSpec& node : alike_nodes(kDriftNodes, "Tesla-V100", "z")) {
    node.labels = {{std::string(kConfigLabel), "old"}};
    spec.nodes.push_back(std::move(node));
  }
  return spec;
}

// A reservation and its fraction pod on one node, a pending BindRequest for another (S8).
void share_by_kai(KaiWorld& kai) {
  kai.configs_served = kai.bind_requests_served = true;
  KaiPod pod;
  pod.scheduler_name = Interned("kai-scheduler");
  pod.node_name = Interned("a04");
  pod.phase = Interned("Running");
  pod.meta.labels.set(kai::kGroupLabel, "g");
  pod.meta.ns = Interned("team");
  pod.meta.name = pod.meta.uid = "fraction";
  kai.pods.apply(pod);
  pod.meta.labels.set(kai::kAppLabel, kai::kDefaultReservations);
  pod.meta.ns = Interned(kai::kDefaultReservations);
  pod.meta.name = pod.meta.uid = "reservation";
  kai.pods.apply(pod);
  BindRequest request;
  request.meta.ns = Interned("team");
  request.meta.name = request.meta.uid = request.pod_name = "waiting";
  request.selected_node = Interned("t01");
  request.groups = {Interned("h")};
  kai.bind_requests.apply(request);
}

void leave_to_us(KaiWorld& kai) {
  kai.pods.erase({std::string(kai::kDefaultReservations), "reservation"});
  kai.pods.erase({"team", "fraction"});
  kai.bind_requests.erase({"team", "waiting"});
}

class Rollout {
 public:
  explicit Rollout(const Combination& combination) : c_(combination), fleet_(fleet_of(combination)) {
    fleet_.settings.settle = seconds(2);
    fleet_.settings.cluster_max_unavailable = {50, true};
    fleet_.settings.projection = seconds(2);
    if (!c_.kai) return;
    fleet_.settings.kai.gc_mode = KaiGcMode::off;  // These tests are about the rollout.
    fleet_.settings.kai.mps_ready = MpsReadyMode::off;
    KaiWorld& kai = fleet_.world.kai;
    kai.configs.init_done();
    kai.deployments.init_done();
    kai.pods.init_done();
    kai.bind_requests.init_done();
    share_by_kai(kai);
  }

  RolloutTrace play() {
    install();
    prepare();
    change();
    if (!failed()) repair();
    if (!failed()) look_back();
    return trace_;
  }

 private:
  // Failures of this rollout only: other rollouts of the same test might have failed before.
  [[nodiscard]] bool failed() const { return failures() > failures_before_; }
  static int failures() { return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count(); }

  // S9: an operator that is installed in a running fleet changes nothing.
  void install() {
    // Its GPUs are missing, and no person has repaired it.
    if (c_.broken_before) {
      fleet_.crash_pods(std::string(kBroken), true);
      fleet_.delete_pod_of(std::string(kBroken), "plugin");
      fleet_.advance(seconds(5));
    }
    if (c_.cordoned_before) fleet_.use(std::string(kCordoned), "train", std::string(kGpuResource), 1);
    // No pod has been restarted since: 40 nodes show the earlier text.
    if (c_.old_drift) fleet_.edit("old", "ts-4");
    // In addition to two NotReady nodes, and those that have been out of service for a long time.
    const std::string one_left =
        std::to_string(1 + (c_.not_ready ? 2 : 0) + (c_.broken_before ? 1 : 0) + (c_.cordoned_before ? 1 : 0));
    fleet_.policy(
        fmt::format(kPolicy, c_.percent ? "34%" : one_left, c_.percent ? "50%" : one_left, c_.canary ? 1 : 0,
                    c_.pdb_refuses ? "Evict" : "WaitForIdle",
                    c_.broken_before ? 1 : 2,  // A node that was broken before does not count.
                    c_.window_closes ? ", maintenanceWindows: [{cron: \"*/10 * * * *\", duration: 1m}]" : ""));
    installing_ = true;
    EXPECT_TRUE(run_until_quiet(seconds(60))) << "S6: the installation does not come to rest";
    installing_ = false;
    for (const auto& [key, node] : fleet_.world.nodes.all())
      EXPECT_EQ(fleet_.patches(key.name), 0) << "S9: " << key.name;
  }

  void prepare() {
    fleet_.advance(seconds(5));
    if (c_.window_closes) to_the_end_of_a_window();
    if (c_.not_ready) fleet_.set_ready("t02", false);
    if (c_.pdb_refuses) {
      fleet_.use("a02", "web", std::string(c_.change.from == std::string_view("none") ? "" : kGpuResource), 1);
      fleet_.protect("web", "Cannot evict pod as it would violate the pod's disruption budget.");
    }
    const std::string ill = sick_node();
    if (c_.fault == Fault::plugin_crashes) fleet_.crash_pods(ill, true);
    if (c_.fault == Fault::sidecar_is_stuck) fleet_.ail(ill, "plugin", "created", 1000);
    if (c_.fault == Fault::labels_stay_wrong) fleet_.stick_labels(ill, true);
    if (c_.fault == Fault::capacity_stays_wrong) fleet_.stick_sidecars(ill, true);
    if (c_.fault == Fault::never_ready) fleet_.hold_pods(ill, true);
  }

  // Windows of a minute, every ten minutes.
  static constexpr std::int64_t kPeriod = 600;
  [[nodiscard]] std::int64_t seconds_since_a_window_opened() const {
    return std::chrono::duration_cast<seconds>(fleet_.now.time_since_epoch()).count() % kPeriod;
  }

  // Fifteen seconds before the window closes.
  void to_the_end_of_a_window() { fleet_.advance(seconds(kPeriod - seconds_since_a_window_opened() + 45)); }

  // Whoever is killed every few seconds of a window, for statuses alone, has not had the chance to start anything.
  [[nodiscard]] bool is_well_within_a_window() const {
    const std::int64_t since = seconds_since_a_window_opened();
    return c_.window_closes && since > 5 && since < 60;
  }

  [[nodiscard]] std::string sick_node() const { return c_.fault_in_canary ? "a01" : "a03"; }

  // The edit, and its effects until nothing happens any more, or until nodes only wait for a budget.
  void change() {
    fleet_.edit("any", c_.change.to);
    // A node whose pods do not end is retried again and again.
    const bool tries = c_.pdb_refuses || c_.cordoned_before;
    const bool quiet = run_until_quiet(tries && c_.killed_every == 0 ? bound() / 4 : bound());
    // A pod whose fault a new pod does not fix is retried forever, with growing delays.
    EXPECT_TRUE(quiet || tries || c_.fault == Fault::sidecar_is_stuck)
        << "L1: no rest within " << k8s::format_go_duration(bound());
    Plan rest = fleet_.plan();
    // During the rollout, a status is one step behind its objects.
    for (int i = 0; i < 5 && !quiet && !all_converged_or_named(fleet_, rest); ++i) {
      (void)step();
      fleet_.advance(seconds(1));
      rest = fleet_.plan();
    }
    check_converged_or_named(fleet_, rest);
    // While nodes wait for the next window, the status says so when it closes. The remediation of a pod whose fault a
    // new pod does not fix is repeated.
    const bool heals = c_.fault == Fault::sidecar_is_stuck;
    const bool waits = fleet_.index.impl().profile_rollouts.begin()->second.tally.of(Phase::pending) > 0;
    if (quiet && !failed() && !heals && !c_.kai && !(waits && c_.window_closes)) check_silent(fleet_);
    if (c_.old_drift) expect_drift_untouched();
    if (c_.cordoned_before) {
      EXPECT_TRUE(fleet_.node(std::string(kCordoned)).unschedulable) << "S7: a person has cordoned it";
    }
    if (failed() || !nothing_stands_in_the_way()) return;
    for (const std::string& node : rolled_nodes())
      if (node != kBroken && node != kCordoned) expect_arrived(node, rest);
  }

  // Except nodes that were out of service before: they are no reason to wait.
  [[nodiscard]] bool nothing_stands_in_the_way() const {
    return c_.fault == Fault::none && !c_.not_ready && !c_.pdb_refuses && !c_.window_closes && !c_.kai &&
           c_.superseding == Superseding::none;
  }

  void expect_arrived(const std::string& node, const Plan& rest) {
    const NodeAssessment& a = *fleet_.index.assessment(node);
    EXPECT_TRUE(a.phase == Phase::up_to_date && a.matches())
        << "L1: " << node << " " << to_string(phase_of(a)) << " " << named_reason(fleet_, rest, node) << " "
        << a.verified.mismatch << " " << fleet_.annotation_of(node, kMessageAnnotation) << "\n"
        << fleet_.policy_status("default");
  }

  // Without the nodes with old drift.
  [[nodiscard]] std::vector<std::string> rolled_nodes() const {
    std::vector<std::string> out;
    for (const auto& [key, node] : fleet_.world.nodes.all()) {
      if (!key.name.starts_with("z")) out.push_back(key.name);
    }
    std::ranges::sort(out);
    return out;
  }

  void expect_drift_untouched() {
    for (const auto& [key, node] : fleet_.world.nodes.all()) {
      if (!key.name.starts_with("z")) continue;
      EXPECT_EQ(fleet_.patches(key.name), 0) << "S9: drift from before the installation: " << key.name;
      EXPECT_EQ(fleet_.restarts(key.name, "plugin"), 0) << "S9: " << key.name;
    }
  }

  // The faults and blocking pods are removed, and a person writes another profile: then every node converges.
  void repair() {
    for (const std::string& node : rolled_nodes()) fleet_.set_ready(node, true);
    fleet_.protect("web", "");
    leave_to_us(fleet_.world.kai);
    // The operator does not evict a pod whose requested resource would not exist afterwards: the pod must end by
    // itself.
    if (std::string_view(c_.change.to).ends_with("-renamed")) fleet_.release("a02");
    if (c_.broken_before) fleet_.crash_pods(std::string(kBroken), false);
    if (c_.cordoned_before) {
      fleet_.release(std::string(kCordoned));
      fleet_.cordon(std::string(kCordoned), false);
    }
    const std::string ill = sick_node();
    fleet_.crash_pods(ill, false);
    fleet_.ail(ill, "plugin", "", 0);
    fleet_.stick_labels(ill, false);
    fleet_.stick_sidecars(ill, false);
    fleet_.hold_pods(ill, false);
    superseded_ = lost_ = true;
    fleet_.edit("any", c_.change.repair);
    EXPECT_TRUE(run_until_quiet(bound())) << "L1: no rest within " << k8s::format_go_duration(bound());
    if (failed()) return;
    const Plan rest = fleet_.plan();
    for (const std::string& node : rolled_nodes()) {
      expect_arrived(node, rest);
      EXPECT_FALSE(fleet_.node(node).unschedulable) << "S7: " << node << " stays cordoned";
      EXPECT_EQ(fleet_.label_of(node, kStateLabel), "") << node;
      EXPECT_EQ(fleet_.annotation_of(node, kScaleDownDisabled), "") << node;
    }
    if (!failed()) check_silent(fleet_);
    if (c_.old_drift) expect_drift_untouched();
  }

  // S9: a restart, and a restart without any of the operator's own state, change nothing.
  void look_back() {
    fleet_.kill_operator();
    for (int i = 0; i < 3; ++i) {
      const Plan plan = fleet_.tick();
      for (const PlannedAction& action : plan.actions) ADD_FAILURE() << "S9: after a restart: " << print(action);
    }
    fleet_.world.configmaps.erase({fleet_.settings.operator_namespace, fleet_.settings.state_config_map});
    fleet_.delete_rollouts();
    fleet_.kill_operator();
    for (int i = 0; i < 8; ++i) check_undisruptive(fleet_.tick(), "after our state was lost");
  }

  // All nodes one after another, each with the longest time allowed; with windows, one minute in ten.
  [[nodiscard]] Duration bound() const {
    const int nodes = 6 + (c_.broken_before ? 1 : 0) + (c_.cordoned_before ? 1 : 0);
    const Duration each = 2 * (kIdleTimeout + kVerifyTimeout) + seconds(30);
    return nodes * each * (c_.window_closes ? 10 : 1) + std::chrono::minutes(1);
  }

  // --- Steps.

  // KAI and replicas on one node are a lasting finding: its Event is planned in every pass, and the runtime sends it
  // once.
  [[nodiscard]] bool is_told_again(const PlannedAction& planned) const {
    return !fleet_.world.kai.pods.all().empty() && std::holds_alternative<RecordEvent>(planned.action);
  }

  // True once nothing except statuses has changed for longer than the time between two windows.
  bool run_until_quiet(Duration limit) {
    const WallTime end = fleet_.now + std::chrono::duration_cast<std::chrono::milliseconds>(limit);
    const Duration enough = c_.window_closes ? std::chrono::minutes(12) : std::chrono::minutes(2);
    WallTime busy = fleet_.now;
    WallTime killed{};
    while (fleet_.now < end && !failed()) {
      const std::int64_t kills = trace_.kills;
      const Plan plan = step();
      const bool acts = std::ranges::any_of(plan.actions, [this](const PlannedAction& planned) {
        return !std::holds_alternative<PatchStatus>(planned.action) && !is_told_again(planned);
      });
      if (acts) busy = fleet_.now;
      if (trace_.kills > kills) killed = fleet_.now;
      if (trace_.kills > kills && is_well_within_a_window()) busy = fleet_.now;
      const auto told = [this](const PlannedAction& planned) { return is_told_again(planned); };
      const bool rests = std::ranges::all_of(plan.actions, told) && plan.consumers_wanted.empty();
      const bool long_enough = fleet_.now - busy > enough && fleet_.now - killed > kRemembered;
      if (rests && (!plan.requeue_after || long_enough)) return true;
      const Duration wait = plan.requeue_after.value_or(seconds(1));
      fleet_.advance(rests && fleet_.now - busy > seconds(3) ? std::clamp<Duration>(wait, seconds(1), seconds(30))
                                                             : Duration(seconds(1)));
    }
    return failed();
  }

  Plan step() {
    ++trace_.steps;
    // A new index costs several times as much as a step, so not every step is compared: an event that the index has
    // missed still causes a difference at the next comparison.
    if (trace_.steps % (c_.old_drift ? 20 : 5) == 0) check_same_plan(fleet_);
    const Plan plan = fleet_.plan();
    check_plan(fleet_, plan);
    if (installing_) check_undisruptive(plan, "installing");
    if (std::ranges::any_of(plan.actions, starts) && !incomplete_checked_) {
      incomplete_checked_ = true;
      check_incomplete_views(fleet_);
    }
    show(plan);
    execute(plan);
    disturb();
    return plan;
  }

  void execute(const Plan& plan) {
    for (const PlannedAction& planned : plan.actions) {
      ledger_.note(fleet_, planned);
      trace_.starts += starts(planned) ? 1 : 0;
      fleet_.apply(planned);
      if (std::holds_alternative<RecordEvent>(planned.action)) continue;
      ++trace_.writes;
      const std::int64_t since = trace_.writes - c_.killed_from;
      if (c_.killed_every == 0 || since < 0 || since % c_.killed_every != 0 || trace_.kills >= kMostKills) continue;
      ++trace_.kills;
      fleet_.kill_operator();
      return;
    }
  }

  // Events while nodes are in a change.
  void disturb() {
    if (installing_) return;
    for (const auto& [key, node] : fleet_.world.nodes.all()) {
      const auto flight = change_of(*node);
      if (!flight || flight->failed) continue;
      if (c_.superseding != Superseding::none && !superseded_ && (!c_.canary || ++in_progress_seen_ > 3)) {
        superseded_ = true;
        fleet_.advance(seconds(1));
        fleet_.edit("any", c_.superseding == Superseding::by_another       ? c_.change.another
                           : c_.superseding == Superseding::by_the_old_one ? c_.change.from
                                                                           : "broken");
      }
      if (c_.not_ready && !lost_ && key.name != "t02") {
        lost_ = true;
        fleet_.set_ready(key.name, false);
      }
      return;
    }
  }

  void show(const Plan& plan) const {
    if (std::getenv("GSO_SHOW_STORY") == nullptr) return;
    for (const PlannedAction& action : plan.actions) {
      if (std::getenv("GSO_SHOW_STATUS") != nullptr || !std::holds_alternative<PatchStatus>(action.action))
        fmt::print("{} {}\n", k8s::format_time(fleet_.now), print(action));
    }
    for (const std::string& name : plan.consumers_wanted) fmt::print("  wants consumers of {}\n", name);
    if (plan.requeue_after) fmt::print("  again in {}\n", k8s::format_go_duration(*plan.requeue_after));
  }

  const Combination& c_;
  FleetModel fleet_;
  RestartLedger ledger_;
  RolloutTrace trace_;
  bool installing_ = false;
  bool superseded_ = false;
  bool lost_ = false;
  bool incomplete_checked_ = false;
  int in_progress_seen_ = 0;
  int failures_before_ = failures();
};

}  // namespace

RolloutTrace play(const Combination& combination) {
  return Rollout(combination).play();
}

}  // namespace gso::test
