// How a change ends (rows C10 to C12 of the table in node_step.h): what the pods have loaded, and whether that is
// proven.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/node/node_step_parts.h"
#include "reconcilers/reasons/names.h"

namespace gso {

bool ChangeStep::loaded_the_present() const {
  if (same_target_ && !was_taken_to_another_key()) return true;
  if (facts_.label) return false;  // They have read the key of the present label.
  if (are_pods_newer()) return true;
  return !was_taken_to_another_key() && target_ != nullptr && !verify_target().ok && facts_.verified.ok;
}

Verification ChangeStep::verify_target() const {
  Verification out;
  if (target_) {
    const Operand* plugin = view_.installation.find(Component::plugin, node_);
    const std::string_view env = plugin ? std::string_view(plugin->mig_strategy) : std::string_view();
    return verify(expect_on_node(target_->profile(), facts_of(node_, facts_.recorded_gpus), env), node_,
                  facts_.labeller == Labeller::gfd, false);
  }
  out.serving = serves_gpus(node_);
  out.mismatch =
      out.serving
          ? fmt::format("the text of {} is no longer known, and what the node serves might be another one", change_.to)
          : "nothing is allocatable";
  return out;
}

bool ChangeStep::serves_what_it_read() const {
  const bool shows_it = target_ == nullptr ? serves_gpus(node_) : verify_target().ok;
  if (!node_.ready || !shows_it || loaded_the_present()) return false;
  const auto serves = [this](Component component) {
    const auto& pods = pods_.of(component);
    return !pods.empty() && is_serving(*pods.front());
  };
  const bool has_gfd = view_.installation.find(Component::gfd, node_) != nullptr;
  const bool needs_mps = target_ ? target_->profile().strategy() == Strategy::mps : !pods_.mps.empty();
  return serves(Component::plugin) && (!has_gfd || serves(Component::gfd)) && (!needs_mps || serves(Component::mps));
}

bool ChangeStep::has_shown_it() {
  return ages_.held_for(timer(Timer::shown), snapshot_.settings.status_lag);
}

bool ChangeStep::knows_rejected() {
  if (snapshot_.settings.remove_rejected_pods.empty()) return true;
  if (use_of(snapshot_, name(), snapshot_.now - ages_.since(timer(Timer::shown))).listed) return true;
  out_.plan.consumers_wanted.insert(name());
  ages_.look_again_in(std::chrono::seconds(1));
  return false;
}

void ChangeStep::finish(std::string_view reason) {
  const Verification shown = verification();
  PatchNode patch = patch_out(node_, facts_);
  const bool present = loaded_the_present();
  const bool unknown = !present && target_ == nullptr;
  const std::string revision = present ? std::string(facts_.target.view()) : change_.to;
  record_on(patch, node_, facts_, unknown ? std::string(kInvalidRevision) : revision);
  // The pods have the key for which they were replaced, also if the ConfigMap is missing now or the node's key changed.
  if (!present) patch.set_annotations[std::string(kProfileAnnotation)] = profile_ref_of(change_);
  if (present && facts_.expectation) {
    add_to(patch,
           label_change_to(node_, *facts_.expectation, facts_.has_labeller(), {snapshot_.settings, snapshot_.now}));
  }
  add(std::move(patch), unknown ? kUnproven : reason,
      unknown ? fmt::format("serves, and nothing proves that it runs {}: {}", revision, shown.mismatch)
              : fmt::format("runs {}", revision),
      false);
  out_.done = true;
  if (shown.unhealthy || shown.shortfall) {
    finding(Severity::warning, kUnhealthyDevices,
            shown.ok ? "allocatable is below capacity: a device is unhealthy" : shown.mismatch);
  }
}

// The content was edited and edited back during the change: these pods may have loaded the text in between.
bool ChangeStep::lists_older_again() {
  if (!same_target_ || facts_.fresh_pods || !facts_.obstacle.code.empty()) return false;
  // Creation times are whole seconds. What shows the profile needs more than the same second to be doubted.
  const Duration tolerance = std::chrono::seconds(facts_.verified.ok ? 1 : 0);
  if (!is_older(ages_.since(timer(Timer::unchanged), unchanged_seed()), tolerance)) return false;
  const ChangePlan next = from_what_it_shows();
  auto older = older_pods(next);
  if (std::ranges::all_of(older, [](const auto& listed) { return listed.second.empty(); }))
    older = pods_to_replace(view_, next);
  add(patch_into(view_, list_again(view_, change_, next, std::move(older)), {}), "ReplaceAgain",
      facts_.verified.mismatch.empty()
          ? std::string("its pods are older than the profile's last change")
          : fmt::format("its pods are older than the profile's last change: {}", facts_.verified.mismatch),
      true);
  return true;
}

void ChangeStep::give_up() {
  const Verification shown = verification();
  const bool is_back = all_replaced() && facts_.pods_ready;
  if (is_back && shown.shortfall) return finish("VerifiedDegraded");
  if (all_replaced() && !shown.ok && lists_older_again()) return;
  if (is_back && shown.surplus && facts_.measured_gpus > 0) return finish("Verified");
  std::string why = shown.ok ? "" : shown.mismatch;
  if (!facts_.pods_ready) why = first_problem(pods_);
  if (facts_.had_devices > 0 && facts_.pods_ready && !serves_gpus(node_))
    why += fmt::format("; the machine had {} before, and its pods find none now", counted(facts_.had_devices, "GPU"));
  fail(why.empty() ? "did not verify" : why);
}

void ChangeStep::fail(const std::string& why) {
  PatchNode patch{.name = name()};
  patch.set[std::string(kStateLabel)] = kStateFailed;
  // Its pods have read the present text, so the failure is recorded for that text.
  const bool moved_on = !same_target_ && loaded_the_present();
  const std::string what =
      moved_on ? fmt::format("{}, which replaced {} during the change,", facts_.target.view(), change_.to) : change_.to;
  const std::string message = failure_text(what, rollout_.verify_timeout, why);
  set_message(patch, message);
  remove_guards(patch, node_, change_);  // An autoscaler is allowed to remove the failed node.
  NodeChange failed = change_;
  failed.guards.clear();
  failed.failed = {why, std::string(retry_of(input_.policy))};
  patch.set_annotations[std::string(kChangeAnnotation)] = print_change(failed);
  add(std::move(patch), kVerificationFailed, message, false);
  event(true, kVerificationFailed, "Verify", message);
}

// --- What the pods of a change have read.

const ConfigMap* ChangeStep::content() const {
  return snapshot_.world.configmaps.find(view_.installation.config_map_key());
}

bool ChangeStep::is_of_old_template(Component component, const Pod& pod) const {
  const Operand* operand = view_.installation.find(component, node_);
  return operand != nullptr && is_old_template(*operand, pod);
}

bool ChangeStep::has_read(Component component, const Pod& pod, const ConfigMap& content) const {
  const auto known_since = data_known_since(snapshot_.world, content);
  const PlannerSettings& settings = snapshot_.settings;
  return known_since && loaded_after(pod, *known_since + clock_difference(settings), settings.projection) &&
         !is_from_the_future(pod, snapshot_.now) && !is_of_old_template(component, pod);
}

ChangePlan ChangeStep::from_what_it_shows() const {
  const bool daemon = !pods_.mps.empty();
  // The labels come from GFD: an MPS daemon that started during this change might have loaded the text before the last
  // edit.
  const ConfigMap* now = content();
  const bool is_new = now != nullptr && daemon && has_read(Component::mps, *pods_.mps.front(), *now);
  const ProfilePtr of_daemon = is_new ? facts_.profile : of_kept_daemon(change_, target_);
  const Shape shown = observed_shape(node_, daemon);
  const Profile& after = facts_.profile->profile();
  return {keep_daemon(transition_from(shown, after), shown, of_daemon, after), ChangeCause::edited};
}

ListedPods ChangeStep::older_pods(const ChangePlan& next) const {
  auto out = pods_to_replace(view_, next);
  const ConfigMap* now = content();
  if (now == nullptr || next.kind == Transition::leave_mps) return out;
  for (const Component component : {Component::mps, Component::gfd, Component::plugin}) {
    const auto entry = out.find(component);
    const auto daemon = out.find(Component::mps);
    const bool follows = component == Component::plugin && daemon != out.end() && !daemon->second.empty();
    if (entry == out.end() || follows) continue;
    for (const Pod* pod : pods_.of(component))
      if (has_read(component, *pod, *now)) entry->second.erase(pod->meta.uid);
  }
  return out;
}

std::optional<WallTime> ChangeStep::unchanged_seed() const {
  const ConfigMap* now = content();
  if (now == nullptr) return std::nullopt;
  const bool shows_time = now->data_time_known && now->data_changed <= snapshot_.now;
  return shows_time ? std::nullopt : std::optional(change_.listed);
}

// One check is enough: later pods are newer. The last edit might have changed another key.
bool ChangeStep::is_older(WallTime unchanged, Duration tolerance) const {
  const ConfigMap* now = content();
  if (now == nullptr) return false;
  const WallTime known = data_known_since(snapshot_.world, *now).value_or(unchanged);
  // The time of the edit and the creation times come from API servers; nothing else is compared with doubt, because an
  // operator that cannot know the time of the edit would replace pods without end.
  const bool is_its_edit = now->data_time_known && known <= unchanged;
  const WallTime since = is_its_edit ? known + clock_difference(snapshot_.settings)
                                     : std::min(known, unchanged) - std::chrono::ceil<WallTime::duration>(tolerance);
  return std::ranges::any_of(change_.pods, [&](const auto& entry) {
    const auto& pods = pods_.of(entry.first);
    return !pods.empty() && (!created_after(*pods.front(), since) || is_of_old_template(entry.first, *pods.front()));
  });
}

}  // namespace gso
