// One arm for each row of the table in node_step.h, in its order.
#include "reconcilers/node/node_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/ailments.h"
#include "reconcilers/node/loaded_content.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

TimerKey draining_timer(const std::string& node, const NodeChange& change) {
  return {Timer::draining, node, change.to};
}

namespace {
std::string list_of(const NodeChange& change) {
  std::string text;
  for (const auto& [component, uids] : change.pods) {
    text += to_string(component);
    for (const std::string& uid : uids) text += "," + uid;
    text += ";";
  }
  return fmt::format("{}/{}", change.to, short_hash(text));
}
}  // namespace

TimerKey verifying_timer(const std::string& node, const NodeChange& change) {
  return {Timer::verifying, node, list_of(change)};
}

TimerKey shown_timer(const std::string& node, const NodeChange& change) {
  return {Timer::shown, node, list_of(change)};
}

TimerKey reloading_timer(const std::string& node, const NodeChange& change) {
  return {Timer::reloading, node, change.to};
}

TimerKey unchanged_timer(const std::string& node, std::string_view target) {
  return {Timer::unchanged, node, std::string(target)};
}

namespace {

// The components of a change have been replaced since then, as far as objects tell: a new leader has not seen them
// come. Where none came yet, the pods were listed at that time and their workloads may have been waited for.
WallTime pods_came(const NodeView& view, const RolloutSpec& rollout) {
  const NodeChange& change = *view.facts.change;
  std::optional<WallTime> newest;
  for (const auto& [component, uids] : change.pods) {
    for (const Pod* pod : view.pods.of(component)) {
      if (uids.contains(pod->meta.uid)) continue;
      newest = newest ? std::max(*newest, pod->meta.creation_timestamp) : pod->meta.creation_timestamp;
    }
  }
  if (newest) return std::max(*newest, change.listed);
  if (drain_for(view.facts, change.kind, rollout.workloads) == Drain::nothing) return change.listed;
  return change.listed + std::chrono::ceil<WallTime::duration>(rollout.idle_timeout);
}

class ChangeStep {
 public:
  explicit ChangeStep(const StepInput& input)
      : in_(input),
        view_(input.view),
        s_(input.view.snapshot),
        node_(input.view.node),
        a_(input.view.facts),
        change_(*input.view.facts.change),
        rollout_(input.policy.rollout),
        pods_(input.view.pods),
        same_target_(a_.profile && a_.profile->valid && change_.to == a_.target.view()),
        target_(same_target_ ? a_.profile : input.book.by_revision(change_.to)),
        first_(first_components(a_, change_.kind)),
        content_(input.view, change_),
        ages_(s_, out_.plan) {}

  Step run() {
    out_.phase = phase_of(a_);
    if (same_target_ && !change_.failed) (void)ages_.age(unchanged_timer(name(), change_.to));
    using Row = bool (ChangeStep::*)();
    constexpr Row kRows[] = {&ChangeStep::c1_held,       &ChangeStep::c2_failed,        &ChangeStep::c3_back_out,
                             &ChangeStep::c4_wait,       &ChangeStep::c5_new_target,    &ChangeStep::c6_drain,
                             &ChangeStep::c7_list_older, &ChangeStep::c8_terminating,   &ChangeStep::c9_last,
                             &ChangeStep::c10_verified,  &ChangeStep::c11_time_is_over, &ChangeStep::c12_reload};
    for (const Row row : kRows) {
      if ((this->*row)()) break;
    }
    return std::move(out_);
  }

 private:
  // --- The rows. Each returns whether it applies.

  bool c1_held() { return !a_.holder.empty(); }

  bool c2_failed() {
    watch_lost_daemon();
    if (!change_.failed) return false;
    if (all_replaced() && shows_what_it_loaded() && has_shown_it()) finish("Recovered");
    return true;
  }

  bool c3_back_out() {
    if (is_touched(a_, pods_)) {
      // Its pods are all replaced, and the label that is left must not be written: nothing of it is half done.
      const bool label_only = a_.label && all_replaced();
      return label_only && !a_.reason.empty() && back_out(a_.reason, a_.message);
    }
    if (!same_target_) return back_out("Superseded", "the profile changed before any pod was restarted");
    if (!a_.reason.empty()) return back_out(a_.reason, a_.message);
    if (!in_.stop) return false;
    if (s_.settings.rollouts == PolicyMode::observe) {
      finding(Severity::warning, in_.stop->reason,
              fmt::format("{}: the node was being drained for {}{}", in_.stop->message, change_.to,
                          change_.cordoned ? " and stays cordoned: `cleanup`, or rollouts other than Observe, "
                                             "uncordons it"
                                           : ""));
      return true;
    }
    return back_out(in_.stop->reason, in_.stop->message);
  }

  bool c4_wait() {
    if (!is_touched(a_, pods_) || (!any_listed_left(change_, pods_, false) && !a_.label)) return false;
    if (!a_.profile || !a_.profile->valid) {
      finding(Severity::error, kConfigInvalid, a_.message);
      return true;
    }
    if (!a_.reason.empty()) {
      finding(Severity::error, a_.reason,
              same_target_ ? fmt::format("half-way to {}, and nothing more is restarted: {}", change_.to, a_.message)
                           : fmt::format("half-way to {}, and cannot go on to {}: {}", change_.to, a_.target.view(),
                                         a_.message));
      return true;
    }
    const auto hindrance = in_.kai_hinders ? in_.kai_hinders() : std::nullopt;
    if (!hindrance || (same_target_ && !hindrance->certain)) return false;
    finding(hindrance->certain ? Severity::warning : Severity::info, kKaiReservations,
            fmt::format("not restarted into replicas of its GPUs{} {}", hindrance->certain ? ":" : "", hindrance->why));
    return true;
  }

  bool c5_new_target() {
    if (same_target_ || !any_listed_left(change_, pods_, false)) return false;
    if (!has_stood_for_a_second()) return true;
    const ChangePlan next = content_.from_what_it_shows();
    go_on(next, pods_to_replace(view_, next));
    return true;
  }

  bool c6_drain() {
    if (!any_deletable(first_) && !a_.label) return false;
    const Drain drain = drain_for(a_, change_.kind, rollout_.workloads);
    if (drain != Drain::nothing && !is_drained(drain)) return true;
    if (a_.label) write_label();
    delete_pods(first_, fmt::format("to {}", change_.to));
    return true;
  }

  bool c7_list_older() {
    expired_ = ages_.held_for(verifying_timer(name(), change_), rollout_.verify_timeout, pods_came(view_, rollout_));
    if (!is_superseded()) return false;
    if (hindered_by_kai()) return true;
    if (!has_stood_for_a_second()) return true;
    const ChangePlan next = content_.from_what_it_shows();
    go_on(next, content_.older_pods(next));
    return true;
  }

  bool c8_terminating() {
    if (!any_left(first_)) return false;
    if (expired_) fail("pods of the first step are still terminating");
    return true;
  }

  bool c9_last() {
    const std::vector<Component> last = steps_for(change_.kind).last;
    if (!any_deletable(last)) return false;
    const std::string why = waiting_for();
    if (why.empty()) {
      delete_pods(last, fmt::format("last step to {}", change_.to));
    } else if (expired_) {
      fail(why);
    }
    return true;
  }

  bool c10_verified() {
    if (!all_replaced() || !shows_what_it_loaded()) return false;
    // What the kubelet has refused is asked for once, and never keeps the node from being done.
    if (has_shown_it() && (expired_ || knows_rejected())) finish("Verified");
    return true;
  }

  bool c11_time_is_over() {
    if (expired_) give_up();
    return expired_;
  }

  // The sidecars did not bring the label's profile in by themselves.
  bool c12_reload() {
    const bool reloads = same_target_ && !a_.label && a_.reason.empty() && !change_.pods.contains(Component::plugin);
    if (!reloads || !ages_.held_for(reloading_timer(name(), change_), kReloadGrace)) return false;
    const Transition kind = change_.kind == Transition::none ? Transition::reshare : change_.kind;
    const ChangePlan next{kind, WayIn::moved};
    add(patch_into(view_, list_again(view_, change_, next, pods_to_replace(view_, next)), {}), "ReloadFailed",
        fmt::format("not reloaded within {}: {}", k8s::format_go_duration(kReloadGrace), a_.verified.mismatch), true);
    return true;
  }

  // --- What the rows ask.

  [[nodiscard]] const std::string& name() const { return node_.meta.name; }
  [[nodiscard]] bool any_left(const std::vector<Component>& components) const {
    return std::ranges::any_of(components, [&](Component c) { return pods_left(change_, pods_, c, true) > 0; });
  }
  [[nodiscard]] bool any_deletable(const std::vector<Component>& components) const {
    return std::ranges::any_of(components, [&](Component c) { return pods_left(change_, pods_, c, false) > 0; });
  }
  [[nodiscard]] bool all_replaced() const { return !any_listed_left(change_, pods_, true); }

  // Creation times are whole seconds. A pod that comes in the second of the edit could not be told from one that came
  // before it, and would be replaced again if the node does not verify.
  bool has_stood_for_a_second() {
    constexpr Duration kTellable = std::chrono::seconds(1);
    return ages_.held_for({Timer::retargeting, name(), std::string(a_.target.view())}, kTellable);
  }

  bool hindered_by_kai() {
    const auto hindrance = in_.kai_hinders ? in_.kai_hinders() : std::nullopt;
    if (!hindrance) return false;
    finding(hindrance->certain ? Severity::warning : Severity::info, kKaiReservations,
            fmt::format("not restarted into replicas of its GPUs{} {}", hindrance->certain ? ":" : "", hindrance->why));
    return true;
  }

  // All listed pods are gone, and the content has moved on before the new ones have shown the old one: they are older
  // than it, or do not serve, so that the node will hardly ever show what it was restarted for.
  [[nodiscard]] bool is_superseded() const {
    if (same_target_ || a_.label || !node_.ready || !a_.profile || !a_.profile->valid || !a_.reason.empty())
      return false;
    if (any_listed_left(change_, pods_, false) || shows_what_it_loaded() || (a_.fresh_pods && a_.pods_ready))
      return false;
    // A plugin that is not there yet would come before the daemon that it belongs to, and not be replaced after it.
    const bool has_plugin = !pods_.plugin.empty() && !pods_.plugin.front()->meta.deletion_timestamp;
    return has_plugin || !steps_for(content_.from_what_it_shows().kind).touches_mps;
  }

  // The node was lost while its MPS daemon was to end: how that ended is not known (a killed one is told apart,
  // killed_daemons.h).
  void watch_lost_daemon() {
    if (node_.ready) return;
    for (const Pod* pod : pods_.mps) {
      if (!pod->meta.deletion_timestamp) continue;
      finding(
          Severity::warning, kMpsUncleanExit,
          fmt::format("the node was lost while MPS control daemon pod {} was ending: its GPUs may be left in compute "
                      "mode EXCLUSIVE_PROCESS",
                      pod->meta.name));
    }
  }

  // --- Workloads.

  bool is_drained(Drain drain) {
    const bool touched = is_touched(a_, pods_);
    const bool uncordoned = change_.cordoned && !node_.unschedulable;
    if (uncordoned && !touched) {  // A person wants the node: it takes new pods.
      give_back();
      return false;
    }
    const TimerKey draining = draining_timer(name(), change_);
    const Duration waited = ages_.age(draining, change_.listed);
    const NodeUse use = use_of(s_, name(), s_.timers.contains(draining) ? ages_.since(draining) : s_.now);
    if (drained(drain, use, a_)) return true;
    if (!use.fresh) {
      out_.plan.consumers_wanted.insert(name());
      ages_.look_again_in(std::chrono::seconds(10));
      return false;
    }
    const InTheWay who = in_.in_the_way.value_or(InTheWay{kWaitingForWorkloads, "waits"});
    if (waited >= rollout_.idle_timeout && !touched) {
      defer(Deferral::By::idle_timeout, who.reason,
            fmt::format("still in use after {}: {}", k8s::format_go_duration(rollout_.idle_timeout), who.message));
      return false;
    }
    ages_.look_again_in(waited >= rollout_.idle_timeout
                            ? Duration(std::chrono::seconds(10))
                            : std::min<Duration>(std::chrono::seconds(10), rollout_.idle_timeout - waited));
    const bool plain = who.reason == kWaitingForWorkloads;
    finding(plain ? Severity::info : Severity::warning, who.reason, who.message);
    out_.evicts = rollout_.workloads == WorkloadMode::evict && !uncordoned;
    return false;
  }

  // To the back of the queue, like a node whose workloads did not end.
  void give_back() {
    const std::string message = fmt::format(
        "somebody has uncordoned the node while it was drained: the change to {} is put off, and tried again "
        "after {}",
        change_.to, k8s::format_go_duration(rollout_.idle_timeout));
    const InTheWay who = in_.in_the_way.value_or(InTheWay{kWaitingForWorkloads, ""});
    defer(Deferral::By::person, who.reason, message);
    event(false, "Uncordoned", "Drain", message);
  }

  void defer(Deferral::By by, std::string_view reason, std::string message) {
    PatchNode patch = patch_out(node_, a_);
    patch.remove_annotations.erase(std::string(kDeferredAnnotation));
    const auto until = s_.now + std::chrono::ceil<WallTime::duration>(rollout_.idle_timeout);
    patch.set_annotations[std::string(kDeferredAnnotation)] = print_deferral({change_.to, until, by});
    add(std::move(patch), reason, std::move(message), false);
  }

  void write_label() {
    PatchNode patch;
    patch.name = name();
    patch.resource_version = node_.meta.resource_version;
    add_to(patch, policy_label(node_, config_label(view_.set, node_), a_));
    add(std::move(patch), "Relabel", fmt::format("policy {} selects profile {}", a_.policy.view(), *a_.label), true);
  }

  // --- Between first and last.

  [[nodiscard]] bool is_listed(Component component) const { return change_.pods.contains(component); }
  [[nodiscard]] bool serving(Component component) const {
    const auto listed = change_.pods.find(component);
    return std::ranges::any_of(pods_.of(component), [&](const Pod* pod) {
      return is_serving(*pod) && (listed == change_.pods.end() || !listed->second.contains(pod->meta.uid));
    });
  }
  // What the last pods wait for; empty: nothing.
  [[nodiscard]] std::string waiting_for() const {
    const Steps steps = steps_for(change_.kind);
    if (steps.wait == Steps::Wait::mps_ready && !serving(Component::mps))
      return "the new MPS control daemon is not Ready";
    if (steps.wait == Steps::Wait::mps_gone && pods_left(change_, pods_, Component::mps, true) > 0)
      return "the MPS control daemon is still there";
    for (Component component : first_) {
      const bool returns = component != Component::mps || steps.wait == Steps::Wait::mps_ready;
      if (returns && is_listed(component) && !serving(component)) {
        return fmt::format("the new {} pod is not Ready", to_string(component));
      }
    }
    return {};
  }

  // --- After the last.

  // The content may have changed again meanwhile: what counts is what these pods have loaded. Their creation time
  // tells, else what the node shows; an answer that is in doubt reads as the older content, which is rolled again.
  [[nodiscard]] bool loaded_the_present() const {
    if (same_target_ || a_.fresh_pods) return true;
    return !verify_target().ok && a_.verified.ok;
  }
  [[nodiscard]] Verification verify_target() const {
    Verification out;
    if (target_) {
      const Operand* plugin = view_.set.find(Component::plugin, node_);
      const std::string_view env = plugin ? std::string_view(plugin->mig_strategy) : std::string_view();
      return verify(expect_on_node(target_->profile(), facts_of(node_, a_.recorded_gpus), env), node_,
                    a_.labeller == Labeller::gfd);
    }
    // That text is not known any more: serving is all that can be asked.
    out.ok = out.serving = std::ranges::any_of(node_.allocatable, [](const auto& entry) { return entry.second > 0; });
    if (!out.ok) out.mismatch = "nothing is allocatable";
    return out;
  }
  [[nodiscard]] Verification verification() const { return loaded_the_present() ? a_.verified : verify_target(); }
  // A status that no kubelet keeps up to date shows nothing.
  [[nodiscard]] bool shows_what_it_loaded() const { return node_.ready && a_.pods_ready && verification().ok; }

  // The kubelet publishes a node's status every ten seconds: what the node shows may be from before the restart (a new
  // plugin pod is Ready before it has registered), so it must hold for longer than that. Else a node would be called
  // verified and then go out of service, beyond the budget.
  bool has_shown_it() { return ages_.held_for(shown_timer(name(), change_), s_.settings.status_lag); }
  bool knows_rejected() {
    if (s_.settings.remove_rejected_pods.empty()) return true;
    if (use_of(s_, name(), ages_.since(shown_timer(name(), change_))).fresh) return true;
    out_.plan.consumers_wanted.insert(name());
    ages_.look_again_in(std::chrono::seconds(1));
    return false;
  }

  void finish(std::string_view reason) {
    const Verification shown = verification();
    PatchNode patch = patch_out(node_, a_);
    const bool present = loaded_the_present();
    const std::string revision = present ? std::string(a_.target.view()) : change_.to;
    record_on(patch, node_, a_, revision);
    if (present && a_.expectation) {
      add_to(patch, label_change_to(node_, *a_.expectation, a_.has_labeller(), s_.settings));
    }
    add(std::move(patch), reason, fmt::format("runs {}", revision), false);
    out_.done = true;
    if (shown.unhealthy || shown.shortfall) {
      finding(Severity::warning, kUnhealthyDevices,
              shown.ok ? "allocatable is below capacity: a device is unhealthy" : shown.mismatch);
    }
  }

  void give_up() {
    const Verification shown = verification();
    const bool is_back = node_.ready && all_replaced() && a_.pods_ready;
    if (is_back && shown.shortfall) return finish("VerifiedDegraded");
    // The content was changed and changed back meanwhile: these pods have loaded what was there in between.
    if (all_replaced() && same_target_ && !shown.ok && a_.reason.empty() &&
        content_.is_older(ages_.since(unchanged_timer(name(), change_.to)))) {
      const ChangePlan next = content_.from_what_it_shows();
      add(patch_into(view_, list_again(view_, change_, next, pods_to_replace(view_, next)), {}), "ReplaceAgain",
          fmt::format("its pods are older than the profile's last change: {}", a_.verified.mismatch), true);
      return;
    }
    if (is_back && shown.surplus && a_.measured_gpus > 0) return finish("Verified");
    std::string why = shown.ok ? "" : shown.mismatch;
    if (!a_.pods_ready) why = first_problem(pods_);
    if (!node_.ready) why = fmt::format("the node is not Ready{}{}", why.empty() ? "" : "; ", why);
    fail(why.empty() ? "did not verify" : why);
  }

  void fail(const std::string& why) {
    PatchNode patch;
    patch.name = name();
    patch.set[std::string(kStateLabel)] = kStateFailed;
    // Its pods have read what is there now: that is what they were held against.
    const bool moved_on = !same_target_ && loaded_the_present();
    const std::string what =
        moved_on ? fmt::format("{}, which took the place of {} on the way,", a_.target.view(), change_.to) : change_.to;
    const std::string message =
        fmt::format("{} did not verify within {}: {}", what, k8s::format_go_duration(rollout_.verify_timeout), why);
    set_message(patch, message);
    remove_guards(patch, node_, change_);  // An autoscaler may take it away, failed as it is.
    NodeChange failed = change_;
    failed.guards.clear();
    failed.failed = {why, std::string(in_.policy.meta.annotations.get(kRetryAnnotation).value_or(""))};
    patch.set_annotations[std::string(kChangeAnnotation)] = print_change(failed);
    add(std::move(patch), kVerificationFailed, message, false);
    event(true, kVerificationFailed, "Verify", message);
  }

  // --- What a step plans.

  bool back_out(std::string_view reason, std::string message) {
    add(patch_out(node_, a_), reason, std::move(message), false);
    return true;
  }

  // A valid new content becomes the target: the node is out of service already.
  void go_on(const ChangePlan& next, std::map<Component, std::set<std::string>> pods) {
    add(patch_into(view_, list_again(view_, change_, next, std::move(pods)),
                   {.cordon = steps_for(next.kind).disruptive}),
        "Superseded", fmt::format("half-way to {}; goes on to {}", change_.to, a_.target.view()), true);
  }

  void delete_pods(const std::vector<Component>& components, std::string_view why) {
    for (PlannedAction& deletion : deletions(view_, change_, components, why)) {
      out_.plan.actions.push_back(std::move(deletion));
    }
  }

  void add(PatchNode patch, std::string_view reason, std::string message, bool disruptive) {
    out_.plan.actions.push_back({"", std::move(patch), std::string(reason), std::move(message), disruptive, name()});
  }
  void event(bool warning, std::string_view reason, std::string_view action, std::string note) {
    RecordEvent event{node_ref(name()), warning, std::string(reason), std::string(action), std::move(note)};
    out_.plan.actions.push_back({"", std::move(event), std::string(reason), {}, false, {}});
  }
  void finding(Severity severity, std::string_view reason, std::string message) {
    out_.plan.findings.push_back({severity, node_ref(name()), std::string(reason), std::move(message)});
  }

  const StepInput& in_;
  const NodeView& view_;
  const Snapshot& s_;
  const Node& node_;
  const NodeAssessment& a_;
  const NodeChange& change_;
  const RolloutSpec& rollout_;
  const NodePods& pods_;
  bool same_target_;
  ProfilePtr target_;
  std::vector<Component> first_;
  LoadedContent content_;
  bool expired_ = false;  // verifyTimeout has passed.
  Step out_;
  Ages ages_;
};

}  // namespace

Step step(const StepInput& input) {
  return ChangeStep(input).run();
}

void keep_timers(const NodeView& view, const RolloutSpec& rollout, Ages& ages) {
  const NodeChange& change = *view.facts.change;
  const std::string& name = view.node.meta.name;
  if (is_touched(view.facts, view.pods)) {
    ages.keep(draining_timer(name, change));
    if (!change.failed) (void)ages.age(verifying_timer(name, change), pods_came(view, rollout));
  } else {
    (void)ages.age(draining_timer(name, change), change.listed);
    ages.keep(verifying_timer(name, change));
  }
  ages.keep(reloading_timer(name, change));
  ages.keep(unchanged_timer(name, change.to));
  ages.keep(shown_timer(name, change));
}

}  // namespace gso
