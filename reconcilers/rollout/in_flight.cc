// Nodes whose change is under way: drained, restarted in order, verified, taken out again, or declared failed. All of
// it is derived from the annotations, the pods and the content of the ConfigMap, so that a new leader goes on.
#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/ailments.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/in_flight.h"
#include "reconcilers/rollout/kai_gate.h"
#include "reconcilers/rollout/turned.h"

namespace gso {

std::string reloading_condition(const std::string& node, const Flight& flight) {
  return fmt::format("reloading/{}/{}", node, flight.target);
}

namespace {

class FlightPlan {
 public:
  FlightPlan(Pass& pass, const Node& node, const NodeAssessment& assessment)
      : pass_(pass),
        node_(node),
        a_(assessment),
        flight_(*assessment.flight),
        rollout_(pass.index.policy(pass.s.world, assessment.policy.view()).rollout),
        pods_(sort_pods(pass.index.set_of(assessment), pass.index.pods_of(node.meta.name))),
        same_target_(a_.profile && a_.profile->valid && flight_.target == a_.target.view()),
        target_(same_target_ ? a_.profile : pass.index.book.by_revision(flight_.target)),
        transition_(flight_transition(flight_, target_ ? &target_->profile() : nullptr)),
        turned_(pass, node, assessment, pods_, transition_) {}

  void run() {
    if (same_target_ && !flight_.failed) (void)pass_.age(unchanged_condition(node(), flight_.target));
    if (a_.held || !foreign_holder(node_, pass_.index.set_of(a_)).empty()) return;
    watch_lost_daemon();
    if (flight_.failed) {
      if (all_replaced() && shows_what_it_loaded() && has_shown_it()) finish("Recovered");
      return;
    }
    if (!same_target_ && !touched()) return back_out("Superseded", "the profile changed before any pod was restarted");
    if (stopped_by_taint()) return;
    if (!same_target_ && anything_listed_left()) return retarget();
    if (before_first_pods()) return;
    const std::string verifying = verifying_condition(node(), flight_.target, print_replace(flight_.replace));
    const bool expired = pass_.held_for(verifying, rollout_.verify_timeout);
    if (is_superseded() && a_.taint.empty()) return retarget();
    if (any_left(first_components(a_, transition_))) {
      // Terminating: they take the grace period that they need.
      if (expired) fail("pods of the first step are still terminating");
      return;
    }
    if (any_deletable(steps_for(transition_).last)) {
      if (ready_for_last()) return delete_last();
      if (expired) fail(waiting_for());
      return;
    }
    if (all_replaced() && shows_what_it_loaded()) {
      // What the kubelet has refused is asked for once, and never keeps the node from being done.
      if (has_shown_it() && (expired || knows_rejected())) finish("Verified");
      return;
    }
    if (expired) return give_up();
    if (reloads_by_itself() && a_.taint.empty() && pass_.held_for(reloading_condition(node(), flight_), kReloadGrace)) {
      heal_reload();
    }
  }

 private:
  [[nodiscard]] const std::string& node() const { return node_.meta.name; }

  // A pod that is deleted now would not come back: what is left of the change waits for the taint to go, or is taken
  // back where nothing of it has happened.
  bool stopped_by_taint() {
    if (a_.taint.empty() || !(anything_listed_left() || a_.label)) return false;
    const std::string message = fmt::format("the node has the taint {}", a_.taint.view());
    if (!touched()) {
      back_out(kTaintNotTolerated, message);
    } else {
      pass_.finding(Severity::error, node_ref(node()), kTaintNotTolerated,
                    message + ": no further pod is deleted until the taint is removed or tolerated");
    }
    return true;
  }

  // The node was lost while its MPS daemon was to end: how that ended is not known (a killed one is told apart,
  // killed_daemons.h).
  void watch_lost_daemon() {
    if (node_.ready) return;
    for (const Pod* pod : pods_.mps) {
      if (!pod->meta.deletion_timestamp) continue;
      pass_.finding(Severity::warning, node_ref(node()), kMpsUncleanExit,
                    fmt::format("the node was lost while MPS control daemon pod {} was ending: its GPUs may be left in "
                                "compute mode EXCLUSIVE_PROCESS",
                                pod->meta.name));
    }
  }

  // --- The listed pods.

  [[nodiscard]] const std::set<std::string>* listed(Component component) const {
    auto it = flight_.replace.find(component);
    return it == flight_.replace.end() ? nullptr : &it->second;
  }
  [[nodiscard]] bool any_left(const std::vector<Component>& components) const {
    return std::ranges::any_of(components, [&](Component component) { return count_left(component, true) > 0; });
  }
  [[nodiscard]] bool any_deletable(const std::vector<Component>& components) const {
    return std::ranges::any_of(components, [&](Component component) { return count_left(component, false) > 0; });
  }
  [[nodiscard]] std::size_t count_left(Component component, bool terminating_too) const {
    const auto* uids = listed(component);
    if (uids == nullptr) return 0;
    return static_cast<std::size_t>(std::ranges::count_if(pods_.of(component), [&](const Pod* pod) {
      return uids->contains(pod->meta.uid) && (terminating_too || !pod->meta.deletion_timestamp);
    }));
  }
  [[nodiscard]] bool anything_listed_left() const {
    return any_deletable({Component::plugin, Component::gfd, Component::mps});
  }
  // Something of this change has happened to the node: a listed pod is gone or going, or the label was written.
  [[nodiscard]] bool touched() const {
    std::size_t uids = 0;
    for (const auto& [component, set] : flight_.replace) {
      uids += set.size();
      if (count_left(component, false) < set.size()) return true;
    }
    return uids == 0 && !a_.label;
  }
  [[nodiscard]] bool all_replaced() const { return !any_left({Component::plugin, Component::gfd, Component::mps}); }
  [[nodiscard]] bool reloads_by_itself() const {
    return same_target_ && !a_.label && !flight_.replace.contains(Component::plugin);
  }

  // --- Before the first pod goes: workloads.

  // True while there is something to do or to wait for before the first pods have been deleted.
  bool before_first_pods() {
    const auto first = first_components(a_, transition_);
    if (!any_deletable(first) && !a_.label) return false;
    const Drain drain = drain_for(a_, transition_, rollout_.workloads);
    if (drain != Drain::nothing && !is_drained(drain)) return true;
    if (a_.label && label_is_foreign()) {
      back_out(kLabelOwnedByOther, fmt::format("somebody has set {} meanwhile, which policy {} does not take over",
                                               config_label(pass_, node_, a_), a_.policy.view()));
      return true;
    }
    if (a_.label) write_label();
    delete_pods(pass_, node(), pods_, first, flight_.replace, fmt::format("to {}", flight_.target));
    return true;
  }

  bool is_drained(Drain drain) {
    // A person has given the node back: it takes new pods.
    const bool uncordoned = flight_.cordoned && !node_.unschedulable;
    if (uncordoned && !touched()) {
      give_back();
      return false;
    }
    const std::string draining = draining_condition(node(), flight_.target);
    const WallTime since = pass_.since(draining);
    const Duration waited = pass_.age(draining);
    const NodeUse use = use_of(pass_.s, node(), since);
    if (drained(drain, use, a_)) return true;
    if (!use.fresh) {
      pass_.plan.consumers_wanted.insert(node());
      pass_.look_again_in(std::chrono::seconds(10));
      return false;
    }
    const InTheWay who = in_the_way(pass_, node(), a_).value_or(InTheWay{kWaitingForWorkloads, "waits"});
    if (waited >= rollout_.idle_timeout) {
      pass_.plan.conditions.push_back(fmt::format("deferred/{}/{}", node(), flight_.target));
      back_out(who.reason,
               fmt::format("still in use after {}: {}", k8s::format_go_duration(rollout_.idle_timeout), who.message));
      return false;
    }
    pass_.look_again_in(std::min<Duration>(std::chrono::seconds(10), rollout_.idle_timeout - waited));
    const bool plain = who.reason == kWaitingForWorkloads;
    pass_.finding(plain ? Severity::info : Severity::warning, node_ref(node()), who.reason, who.message);
    if (rollout_.workloads == WorkloadMode::evict && !uncordoned) evict_consumers(pass_, node(), a_, use);
    return false;
  }

  // To the back of the queue, like a node whose workloads did not end.
  void give_back() {
    const std::string message = fmt::format(
        "somebody has uncordoned the node while it was drained: the change to {} is put off, and tried again "
        "after {}",
        flight_.target, k8s::format_go_duration(rollout_.idle_timeout));
    pass_.plan.conditions.push_back(fmt::format("deferred/{}/{}", node(), flight_.target));
    pass_.plan.conditions.push_back(uncordoned_condition(node(), flight_.target));
    back_out(in_the_way(pass_, node(), a_).value_or(InTheWay{kWaitingForWorkloads, ""}).reason, message);
    pass_.event(node_ref(node()), false, "Uncordoned", "Drain", message);
  }

  // S3, looked at again where it is written: the node may have been in flight for long.
  [[nodiscard]] bool label_is_foreign() const {
    const bool takes_over = pass_.index.policy(pass_.s.world, a_.policy.view()).takeover;
    return !takes_over && is_label_of_others(node_, config_label(pass_, node_, a_));
  }

  void write_label() {
    PatchNode patch;
    patch.name = node();
    patch.resource_version = node_.meta.resource_version;
    add_to(patch, policy_label(node_, config_label(pass_, node_, a_), a_));
    pass_.add(std::move(patch), "Relabel", fmt::format("policy {} selects profile {}", a_.policy.view(), *a_.label),
              true, node());
  }

  // --- Between first and last.

  [[nodiscard]] bool serving(Component component) const {
    const auto* uids = listed(component);
    return std::ranges::any_of(pods_.of(component), [&](const Pod* pod) {
      return is_serving(*pod) && (uids == nullptr || !uids->contains(pod->meta.uid));
    });
  }
  [[nodiscard]] bool ready_for_last() const { return waiting_for().empty(); }
  [[nodiscard]] std::string waiting_for() const {
    const Steps steps = steps_for(transition_);
    if (steps.wait == Steps::Wait::mps_ready && !serving(Component::mps))
      return "the new MPS control daemon is not Ready";
    if (steps.wait == Steps::Wait::mps_gone && count_left(Component::mps, true) > 0)
      return "the MPS control daemon is still there";
    for (Component component : first_components(a_, transition_)) {
      const bool returns = component != Component::mps || steps.wait == Steps::Wait::mps_ready;
      if (returns && listed(component) != nullptr && !serving(component)) {
        return fmt::format("the new {} pod is not Ready", to_string(component));
      }
    }
    return {};
  }
  void delete_last() {
    delete_pods(pass_, node(), pods_, steps_for(transition_).last, flight_.replace,
                fmt::format("last step to {}", flight_.target));
  }

  // --- After the last.

  // The content may have changed again meanwhile: what counts is what these pods have loaded. Their creation time
  // tells, else what the node shows; an answer that is in doubt reads as the older content, which is rolled again.
  enum class Content { flight_target, present };
  [[nodiscard]] Content loaded_content() const {
    if (same_target_ || a_.fresh_pods) return Content::present;
    return !verify_flight_target().ok && a_.verified.ok ? Content::present : Content::flight_target;
  }

  [[nodiscard]] Verification verify_flight_target() const {
    Verification out;
    if (target_) {
      const Operand* plugin = pass_.index.set_of(a_).find(Component::plugin, node_);
      const std::string_view env = plugin ? std::string_view(plugin->mig_strategy) : std::string_view();
      return verify(expect_on_node(target_->profile(), facts_of(node_), env), node_, a_.gfd);
    }
    // Nobody knows that text any more: serving is all that can be asked.
    out.ok = out.serving = std::ranges::any_of(node_.allocatable, [](const auto& entry) { return entry.second > 0; });
    if (!out.ok) out.mismatch = "nothing is allocatable";
    return out;
  }
  [[nodiscard]] Verification verification() const {
    return loaded_content() == Content::present ? a_.verified : verify_flight_target();
  }
  // The kubelet publishes a node's status every ten seconds: what the node shows may be from before the restart (a new
  // plugin pod is Ready before it has registered), so it must hold for longer than that. Else a node would be called
  // verified and then go out of service, beyond the budget.
  bool has_shown_it() { return pass_.held_for(shown_condition(), pass_.s.settings.status_lag); }
  [[nodiscard]] std::string shown_condition() const {
    return "shown/" + verifying_condition(node(), flight_.target, print_replace(flight_.replace));
  }
  bool knows_rejected() {
    if (pass_.s.settings.remove_rejected_pods.empty()) return true;
    if (use_of(pass_.s, node(), pass_.since(shown_condition())).fresh) return true;
    pass_.plan.consumers_wanted.insert(node());
    pass_.look_again_in(std::chrono::seconds(1));
    return false;
  }
  // A status that no kubelet keeps up to date shows nothing.
  [[nodiscard]] bool shows_what_it_loaded() const { return node_.ready && a_.pods_ready && verification().ok; }

  void finish(std::string_view reason) {
    const Verification shown = verification();
    PatchNode patch = patch_out(pass_, node_, a_);
    const bool present = loaded_content() == Content::present;
    const std::string revision = present ? std::string(a_.target.view()) : flight_.target;
    record_on(patch, node_, a_, revision);
    if (present && a_.expectation) {
      add_to(patch, label_change_to(node_, *a_.expectation, a_.has_labeller(), pass_.s.settings));
    }
    pass_.add(std::move(patch), reason, fmt::format("runs {}", revision), false, node());
    remove_rejected(pass_, node());
    if (shown.unhealthy || shown.shortfall) {
      pass_.finding(Severity::warning, node_ref(node()), kUnhealthyDevices,
                    shown.ok ? "allocatable is below capacity: a device is unhealthy" : shown.mismatch);
    }
  }

  void give_up() {
    const Verification shown = verification();
    const bool is_back = node_.ready && all_replaced() && a_.pods_ready;
    if (is_back && shown.shortfall) return finish("VerifiedDegraded");
    // The content was changed and changed back meanwhile: these pods have loaded what stood there between.
    if (all_replaced() && same_target_ && !shown.ok && a_.taint.empty() &&
        turned_.have_loaded_older_content(pass_.since(unchanged_condition(node(), flight_.target))))
      return replace_again();
    if (is_back && shown.surplus && a_.measured_gpus > 0) return finish("Verified");
    std::string why = shown.ok ? "" : shown.mismatch;
    if (!a_.pods_ready) why = first_problem(pods_);
    if (!node_.ready) why = fmt::format("the node is not Ready{}{}", why.empty() ? "" : "; ", why);
    fail(why.empty() ? "did not verify" : why);
  }

  void fail(const std::string& why) {
    PatchNode patch;
    patch.name = node();
    patch.set[std::string(kStateLabel)] = kStateFailed;
    // Its pods have read what stands there now: that is what they were held against.
    const bool moved_on = !same_target_ && loaded_content() == Content::present;
    const std::string what =
        moved_on ? fmt::format("{}, which took the place of {} on the way,", a_.target.view(), flight_.target)
                 : flight_.target;
    const std::string message =
        fmt::format("{} did not verify within {}: {}", what, k8s::format_go_duration(rollout_.verify_timeout), why);
    set_message(patch, message);
    remove_guards(patch, node_);  // An autoscaler may take it away, failed as it is.
    const auto retry = pass_.index.policy(pass_.s.world, a_.policy.view()).meta.annotations.get(kRetryAnnotation);
    if (retry) patch.set_annotations[std::string(kRetryAnnotation)] = *retry;
    pass_.add(std::move(patch), kVerificationFailed, message, false, node());
    pass_.event(node_ref(node()), true, kVerificationFailed, "Verify", message);
  }

  void back_out(std::string_view reason, std::string message) {
    pass_.add(patch_out(pass_, node_, a_), reason, std::move(message), false, node());
  }

  // Half-way, and the content has moved on: nothing more is restarted into what nobody asked for. A valid new content
  // becomes the target (the node is out of service already); one that is invalid, or cannot be on this node, is waited
  // out.
  void retarget() {
    if (!a_.profile || !a_.profile->valid) {
      pass_.finding(Severity::error, node_ref(node()), kConfigInvalid, a_.message);
      return;
    }
    if (!a_.reason.empty()) {
      pass_.finding(
          Severity::error, node_ref(node()), a_.reason,
          fmt::format("half-way to {}, and cannot go on to {}: {}", flight_.target, a_.target.view(), a_.message));
      return;
    }
    if (report_kai_hindrance(pass_, node(), a_)) return;
    // Creation times are whole seconds. A pod that comes in the second of the edit could not be told from one that came
    // before it, and would be replaced again if the node does not verify.
    constexpr Duration kTellable = std::chrono::seconds(1);
    if (!pass_.held_for(fmt::format("turning/{}/{}", node(), a_.target.view()), kTellable)) return;
    const NodeAssessment next = turned_.from_what_it_shows();
    PatchNode patch = patch_into(pass_, node_, next, steps_for(next.transition).disruptive, false);
    list_pods(patch, anything_listed_left() ? pods_to_replace(pass_, node_, next) : turned_.older_pods(next));
    pass_.add(std::move(patch), "Superseded",
              fmt::format("half-way to {}; goes on to {}", flight_.target, a_.target.view()), true, node());
  }

  // All listed pods are gone, and the content has moved on before the new ones have shown the old one: they are older
  // than it, or do not serve, so that the node will hardly ever show what it was restarted for. A label that is still
  // to be written comes first.
  [[nodiscard]] bool is_superseded() const {
    if (same_target_ || a_.label || !node_.ready || !a_.profile || !a_.profile->valid || !a_.reason.empty())
      return false;
    if (anything_listed_left() || shows_what_it_loaded() || (a_.fresh_pods && a_.pods_ready)) return false;
    // A plugin that is not there yet would come before the daemon that it belongs to, and not be replaced after it.
    const bool has_plugin = !pods_.plugin.empty() && !pods_.plugin.front()->meta.deletion_timestamp;
    return has_plugin || !steps_for(turned_.from_what_it_shows().transition).touches_mps;
  }
  // One pod that is gone stays in the list: an edit back before the next one goes must not take the node for untouched.
  void list_pods(PatchNode& patch, std::map<Component, std::set<std::string>> replace) const {
    const std::string gone = listed_and_gone(flight_, pods_);
    if (!gone.empty()) replace[Component::plugin].insert(gone);
    patch.set_annotations[std::string(kReplaceAnnotation)] = print_replace(replace);
  }

  void replace_again() {
    const NodeAssessment next = turned_.from_what_it_shows();
    PatchNode patch = patch_into(pass_, node_, next, false, false);
    list_pods(patch, pods_to_replace(pass_, node_, next));
    pass_.add(std::move(patch), "ReplaceAgain",
              fmt::format("its pods are older than the profile's last change: {}", a_.verified.mismatch), true, node());
  }

  // The sidecars did not bring the label's profile in by themselves.
  void heal_reload() {
    NodeAssessment next = a_;
    next.way = WayIn::moved;
    next.transition = transition_ == Transition::none ? Transition::reshare : transition_;
    PatchNode patch = patch_into(pass_, node_, next, false, false);
    pass_.add(std::move(patch), "ReloadFailed",
              fmt::format("not reloaded within {}: {}", k8s::format_go_duration(kReloadGrace), a_.verified.mismatch),
              true, node());
  }

  Pass& pass_;
  const Node& node_;
  const NodeAssessment& a_;
  const Flight& flight_;
  const RolloutSpec& rollout_;
  NodePods pods_;
  bool same_target_;
  ProfilePtr target_;
  Transition transition_;
  Turned turned_;
};

}  // namespace

void plan_flight(Pass& pass, const Node& node, const NodeAssessment& assessment) {
  FlightPlan(pass, node, assessment).run();
}

}  // namespace gso
