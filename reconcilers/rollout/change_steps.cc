#include "reconcilers/rollout/change_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

bool ChangeSteps::is_undecided(const std::string& node, const NodeAssessment& a) const {
  return !pass_.index.record || !pass_.plannable(a) || pass_.s.world.nodes_being_written.contains(node);
}

namespace {

// `hindrance`: what KAI was found to use, once the step has asked for it.
Step step_of(Pass& pass, const Node& node, const NodeAssessment& a, std::optional<Reason> stop,
             std::optional<Reason> who, std::optional<KaiHindrance>& hindrance) {
  const std::string& name = node.meta.name;
  const NodeView view = view_of(pass, node, a);
  return step({view, pass.index.policy(pass.s.world, a.policy.view()),
               profile_begun_for(view, pass.index.record_or_null(), pass.index.profiles), std::move(stop),
               std::move(who), [&] { return hindrance = kai_hindrance(pass, name, a); },
               released_since(pass, name, *a.change)});
}

}  // namespace

Step ChangeSteps::of(const Node& node, const NodeAssessment& a) {
  const std::string& name = node.meta.name;
  std::optional<Reason> who = blocked_by_pods(pass_, name, a);
  std::optional<Reason> stop;
  if (const RolloutView* rollout = find_rollout(pass_, pass_.index.rollout_key_of(a)))
    stop = is_drift_repair(*a.change) ? rollout->stop_of_repairs() : rollout->stop();
  if (!stop && who) stop = stop_for_idle_node(name, a, *who);
  std::optional<KaiHindrance> hindrance;
  return step_of(pass_, node, a, std::move(stop), std::move(who), hindrance);
}

// Neither a stop nor blocking pods matter for the row once a pod of the node has been deleted.
std::optional<Reason> obstacle_half_way(Pass& pass, const Node& node, const NodeAssessment& a) {
  if (a.phase != Phase::restarting) return std::nullopt;
  std::optional<KaiHindrance> hindrance;
  if (step_of(pass, node, a, std::nullopt, std::nullopt, hindrance).row != StepRow::c4) return std::nullopt;
  if (!a.obstacle.code.empty()) return a.obstacle;
  if (!hindrance || !hindrance->certain) return std::nullopt;
  return Reason{kKaiReservations, finding_of(node.meta.name, *hindrance).why.message};
}

std::optional<Reason> ChangeSteps::stop_for_idle_node(const std::string& name, const NodeAssessment& a,
                                                      const Reason& who) {
  const RolloutSpec& spec = pass_.index.policy(pass_.s.world, a.policy.view()).rollout;
  if (a.phase != Phase::draining || !a.holder.empty() || spec.workloads != WorkloadMode::wait_for_idle)
    return std::nullopt;
  // Unavailable without the operator's cordon, too, for example by a person's: it would go on holding the slot.
  if (!a.ready || (a.is_unavailable() && !a.change->cordoned)) return std::nullopt;
  for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
    if (profile_rollout.tally.of(Phase::pending) == 0) continue;
    const RolloutView& rollout = rollout_of(pass_, key);
    if (!rollout.gate().is_open()) continue;
    const std::string idle = idle_node(name, a, rollout);
    if (idle.empty()) continue;
    promised_.insert(idle);
    return Reason{"IdleNodesFirst",
                  fmt::format("idle node {} needs the slot, and this node still waits ({}): it is queued again", idle,
                              who.message)};
  }
  return std::nullopt;
}

std::string ChangeSteps::idle_node(const std::string& name, const NodeAssessment& a, const RolloutView& rollout) {
  const RolloutKey& key = rollout.key;
  for (const auto& [product, group] : rollout.profile_rollout.groups) {
    const BudgetCounts counts = budget_counts(pass_, key.policy, count_of(group.tally));
    if (group.pending.empty() || has_slot(pass_, key.policy, counts, {})) continue;
    const bool same_group = rollout.has(a) && a.product == product;
    const SlotsTaken without{-1, a.policy == key.policy ? -1 : 0, same_group ? -1 : 0};
    if (!has_slot(pass_, key.policy, counts, without)) continue;
    const std::vector<std::string> canaries = canaries_in_progress(rollout, product);
    const bool was_canary = same_group && std::ranges::find(canaries, name) != canaries.end();
    if (left_in_canary(rollout, product) + (was_canary ? 1 : 0) <= 0) continue;
    if (std::string idle = first_idle(rollout, group); !idle.empty()) return idle;
  }
  return {};
}

std::string ChangeSteps::first_idle(const RolloutView& rollout, const Group& group) {
  constexpr std::size_t kMostListed = 4;  // Per pass: each is a request.
  if (!busy_) busy_.emplace(pass_);
  std::size_t looked_at = 0;
  std::size_t listed = 0;
  for (const auto& [available, name] : group.pending) {
    const NodeAssessment& a = *pass_.index.find(name);
    if (!available || busy_->known(name) || promised_.contains(name)) continue;
    if (!is_free_to_begin(a) || is_repair(a)) continue;
    if (deferred_until(pass_, name).value_or(pass_.s.now) > pass_.s.now || kai_hindrance(pass_, name, a)) continue;
    if (++looked_at > BusyNodes::kLookAhead || listed == kMostListed) break;
    const Drain drain = drain_for(a, a.transition, rollout.policy.rollout.workloads);
    if (drain == Drain::nothing) return name;
    const NodeUse use = use_of(pass_.s, name);
    if (!use.listed) {
      pass_.plan.consumers_wanted.insert(name);
      ++listed;
    }
    if (!use.fresh) continue;
    if (drained(drain, use, a)) return name;
    busy_->note(name, a);
  }
  return {};
}

namespace {

// How long a node that only waits is skipped; everything it could depend on is checked again after that.
constexpr Duration kQuiet = std::chrono::seconds(10);

class ChangeWalk {
 public:
  explicit ChangeWalk(Pass& pass) : pass_(pass) {}

  void run() {
    pass_.walks(pass_.index.nodes_in(Bucket::changing).size() + pass_.index.nodes_in(Bucket::failed).size());
    for (const auto* names : {&pass_.index.nodes_in(Bucket::changing), &pass_.index.nodes_in(Bucket::failed)}) {
      // The first node differs from pass to pass, so that nodes whose writes fail repeatedly cannot use up every pass.
      const auto size = static_cast<std::int64_t>(names->size());
      const std::int64_t first = size > kInOrder ? pass_.s.now.time_since_epoch().count() % size : 0;
      const auto middle = std::next(names->begin(), first);
      std::for_each(middle, names->end(), [this](const std::string& name) { visit(name); });
      std::for_each(names->begin(), middle, [this](const std::string& name) { visit(name); });
    }
  }

 private:
  static constexpr std::int64_t kInOrder = Pass::kMostActions / 4;  // All of these fit into a pass, whatever they need.

  void visit(const std::string& name) {
    const Node* node = pass_.s.world.nodes.find(name);
    const NodeAssessment* a = pass_.index.find(name);
    if (node == nullptr || a == nullptr || !a->change || !pass_.plannable(*a)) return;
    const auto quiet = pass_.index.quiet_changes.find(name);
    if (quiet != pass_.index.quiet_changes.end() && pass_.s.mono < quiet->second.until) {
      const auto& seen = quiet->second.timers;
      pass_.plan.timers.insert(pass_.plan.timers.end(), seen.begin(), seen.end());
      if (quiet->second.due) pass_.look_again_in(*quiet->second.due - pass_.s.mono);
    } else if (!steps_.is_undecided(name, *a) && pass_.takes_more()) {
      look(name, *node, *a);
    } else {
      keep(*node, *a, quiet == pass_.index.quiet_changes.end() ? nullptr : &quiet->second);
    }
  }

  void look(const std::string& name, const Node& node, const NodeAssessment& a) {
    Plan& plan = pass_.plan;
    const auto sizes = [&plan] { return std::pair(plan.actions.size(), plan.findings.size()); };
    const auto before = sizes();
    const std::size_t seen = plan.timers.size();
    const std::optional<Duration> others = std::exchange(plan.requeue_after, std::nullopt);
    go_on(name, node, a);
    const std::optional<Duration> wait = plan.requeue_after;
    if (others) pass_.look_again_in(*others);  // The earlier of the two.
    QuietChange quiet;
    quiet.timers.assign(plan.timers.begin() + static_cast<std::ptrdiff_t>(seen), plan.timers.end());
    // A timer is due at a millisecond of the wall clock.
    const auto in = [this](Duration d) { return pass_.s.mono + std::chrono::ceil<WallTime::duration>(d); };
    // A requested listing of the node's consumers is not visible in the plan if other code has requested it already, so
    // such a node is checked in every pass.
    const bool listens = plan.consumers_wanted.contains(name);
    if (sizes() == before && !listens) quiet.until = in(std::min(wait.value_or(kQuiet), kQuiet));
    if (wait) quiet.due = in(*wait);
    pass_.index.quiet_changes.insert_or_assign(name, std::move(quiet));
  }

  void go_on(const std::string& name, const Node& node, const NodeAssessment& a) {
    Step next = steps_.of(node, a);
    const bool evicts = next.evicts;
    const bool done = next.done;
    pass_.take(std::move(next.plan), name);
    if (evicts) evict_consumers(pass_, name, a, use_of(pass_.s, name));
    if (done) remove_rejected(pass_, name);
  }

  // Keeps the timers of a node that is being written, or that this pass has no time for.
  void keep(const Node& node, const NodeAssessment& a, const QuietChange* seen) {
    if (seen != nullptr) {
      pass_.plan.timers.insert(pass_.plan.timers.end(), seen->timers.begin(), seen->timers.end());
    } else {
      keep_timers(view_of(pass_, node, a), pass_.index.policy(pass_.s.world, a.policy.view()).rollout,
                  released_since(pass_, node.meta.name, *a.change), pass_.ages);
    }
  }

  Pass& pass_;
  ChangeSteps steps_{pass_};
};

}  // namespace

void plan_changes_in_progress(Pass& pass) {
  ChangeWalk(pass).run();
}

namespace {

// How long a node must have been without a plugin with profiles before the marks of a change are removed: longer than
// the GPU Operator or Helm need to create a DaemonSet again, or NFD to write its labels again.
constexpr Duration kAbandonGrace = std::chrono::minutes(2);

// `a`: null if no plugin DaemonSet selects the node.
std::string why_left(const Pass& pass, const Node& node, const NodeAssessment* a) {
  if (is_partitioned_by_nos(node))
    return fmt::format("nos partitions the GPUs of the node now (label {})", nos_label(node));
  if (a != nullptr)
    return fmt::format("the device plugin in namespace {} now runs without profiles",
                       pass.index.installation_of(*a).ns);
  return pass.index.discovery.installations.empty() ? "the cluster no longer has a device plugin DaemonSet"
                                                    : "no device plugin DaemonSet selects the node any more";
}

bool is_plugin_pod(const Pass& pass, const Pod& pod) {
  const auto* owner = pod.meta.controller();
  if (owner == nullptr || pod.meta.deletion_timestamp) return false;
  return std::ranges::any_of(pass.index.discovery.installations, [&](const PluginInstallation& installation) {
    const Operand* operand = installation.by_uid(owner->uid.view());
    return operand != nullptr && operand->component == Component::plugin;
  });
}

// What prevents the cleanup, independent of time; empty: nothing prevents it.
std::string obstacle_of_cleanup(const Pass& pass, const Node& node, const NodeAssessment* a) {
  const PluginInstallation none;
  const PluginInstallation& installation = a == nullptr ? none : pass.index.installation_of(*a);
  if (const auto holder = holder_of(node, installation); !holder.empty()) return describe_holder(holder, node);
  const auto& unsynced = pass.s.world.unsynced_namespaces;
  if (a == nullptr ? !unsynced.empty() : unsynced.contains(installation.ns))
    return "the operator cannot read all of its pods";
  if (is_partitioned_by_nos(node) || a != nullptr) return {};
  // The DaemonSet might select the node again before that pod is gone: then the change continues.
  const std::vector<const Pod*> pods = pass.index.pods_of(node.meta.name);
  const auto plugin = std::ranges::find_if(pods, [&](const Pod* pod) { return is_plugin_pod(pass, *pod); });
  return plugin == pods.end() ? std::string() : fmt::format("its pod {} still exists", (*plugin)->meta.name);
}

// `why`: nobody manages the node any more.
std::string given_up(const Pass& pass, const Node& node, const NodeChange* change, std::string why) {
  if (change != nullptr) why += fmt::format(": the operator gives up the change to {}", change->to);
  if (change != nullptr && change->cordoned)
    why += node.unschedulable ? " and uncordons the node" : "; someone has already uncordoned the node";
  std::vector<std::string> stays;
  for (const Pod* pod : pass.index.pods_of(node.meta.name)) {
    const bool listed = change != nullptr && std::ranges::any_of(change->pods, [&](const auto& entry) {
                          return entry.second.contains(pod->meta.uid);
                        });
    if (listed) stays.push_back(fmt::format("pod {} (not replaced)", pod->meta.name));
  }
  std::ranges::sort(stays);
  for (const auto& [label, owned] : owned_labels(node))
    if (const auto now = node.meta.labels.get(label)) stays.push_back(fmt::format("label {}={}", label, *now));
  return stays.empty() ? why : fmt::format("{}; left on the node: {}", why, fmt::join(stays, ", "));
}

}  // namespace

void plan_abandoned(Pass& pass) {
  constexpr std::size_t kMost = 50;  // Maximum number of findings.
  std::size_t reported = 0;
  for (const auto& [name, busy] : pass.index.abandoned) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr) continue;
    // Neither the change in progress nor the owner of the cordon is known, so a person decides (S11).
    const ChangeOnNode on = change_on(*node);
    if (!on.problem.empty()) {
      if (++reported <= kMost) {
        pass.finding(
            Severity::warning, node_ref(name), kChangeUnreadable,
            fmt::format("{}. No plugin with profiles serves the node any more, and the operator does not change the "
                        "node. If no change is in progress, remove the annotation (kubectl annotate node {} {}-)",
                        on.problem, name, kChangeAnnotation));
      }
      continue;
    }
    const NodeAssessment* a = pass.index.find(name);
    const NodeChange* change = on.change.get();  // A Blocked label alone needs no report.
    const bool of_nos = is_partitioned_by_nos(*node);
    const std::string_view reason = of_nos              ? kPartitionedByNos
                                    : change != nullptr ? kAbandoned
                                                        : std::string_view("Released");
    // A DaemonSet can be missing temporarily; the label of nos is a person's decision.
    const Duration grace = of_nos ? Duration::zero() : std::max(pass.s.settings.settle, kAbandonGrace);
    const std::string why = why_left(pass, *node, a);
    const std::string obstacle = obstacle_of_cleanup(pass, *node, a);
    if (!obstacle.empty() || !pass.held_for({Timer::abandoned, name, ""}, grace)) {
      if (change == nullptr || ++reported > kMost) continue;
      const std::string until =
          obstacle.empty() ? fmt::format("the operator removes what a change left on the node once this has lasted {}",
                                         k8s::format_go_duration(grace))
                           : fmt::format("the operator keeps what a change left on the node while {}", obstacle);
      pass.finding(Severity::warning, node_ref(name), reason, fmt::format("{}: {}", why, until));
      continue;
    }
    const std::string message = given_up(pass, *node, change, why);
    pass.add(take_off(*node, change), reason, message, false, name);
    if (change != nullptr && pass.s.settings.rollouts != PolicyMode::observe)
      pass.event(node_ref(name), true, reason, "Abandon", message);
  }
}

const std::map<std::string, Reason>& RolloutViews::blocked_in_progress() {
  if (!blocked_in_progress_) blocked_in_progress_ = find_blocked_in_progress(pass_);
  return *blocked_in_progress_;
}

}  // namespace gso
