// The phase of a node: one function for each row N1 to N8 of the table in docs/node-steps.md, in its order.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assessor.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"

namespace gso {

void Assessor::decide() {
  using Row = bool (Assessor::*)();
  constexpr Row kRows[] = {&Assessor::n1_no_profiles,    &Assessor::n2_no_baseline, &Assessor::n3_unreadable_annotation,
                           &Assessor::c1_to_c12_change,  &Assessor::n4_no_target,   &Assessor::n5_loaded_by_itself,
                           &Assessor::n6_rolling_update, &Assessor::n7_runs_target, &Assessor::n8_needs_change};
  for (const Row row : kRows)
    if ((this->*row)()) return;
}

bool Assessor::n1_no_profiles() {
  if (!installation_.config_map.empty()) return false;
  out_.phase = Phase::unmanaged;
  return true;
}

bool Assessor::n2_no_baseline() {
  // Which of them governs it is a person's decision: until then nothing is recorded for it.
  if (out_.is_contested() && !out_.change) return block_by(first_block_of(CheckStage::profile, CheckStage::profile));
  const bool waits = context_.record != nullptr && recorded_ == nullptr &&
                     context_.record->without_baseline.contains(installation_.ns);
  if (context_.record != nullptr && !waits) return false;
  out_.phase = Phase::unrecorded;
  out_.obstacle.message = wrong_key_;
  return true;
}

// It is unknown what was in progress and who cordoned the node, or which labels of it are the operator's.
bool Assessor::n3_unreadable_annotation() {
  if (change_problem_.empty()) {
    if (!out_.change) hold_unreadable_owner();
    return out_.is_blocked();
  }
  block(kChangeUnreadable,
        fmt::format("{}. The operator does not change the node. If no change is in progress, remove the annotation "
                    "(kubectl annotate node {} {}-) and then uncordon the node if it is still cordoned",
                    change_problem_, node_.meta.name, kChangeAnnotation),
        false);
  return true;
}

// The phase of a node with a change. step() (node_step.cc) decides its row; only the attempt after a failure (C2)
// begins here.
bool Assessor::c1_to_c12_change() {
  if (!out_.change) return false;
  out_.phase = phase_in_change(out_, pods_);
  if (auto found = first_block_of(CheckStage::profile, CheckStage::profile)) {
    out_.blocked_by = find_check(found->code);
    out_.obstacle = {out_.blocked_by->blocks, std::move(found->message)};
    return true;
  }
  out_.cause = out_.label ? ChangeCause::policy : ChangeCause::edited;
  if (out_.change->failed)
    try_again();
  else
    note_obstacle();
  return true;
}

// C2: the failed target has been replaced, or a person requested a retry: the node needs another change, which replaces
// every pod that could be the cause, or with a new template the pods of that template's DaemonSets.
void Assessor::try_again() {
  const bool asked_again = asks_again(out_.change->failed->retry, retry());
  const bool new_template = created_from_an_older_template(*out_.change, loaders());
  if (out_.change->to == out_.target.view() && !asked_again && !new_template) return;
  // It shows its target with pods that have read it: it needs no second change.
  const bool is_done =
      out_.fresh_pods && out_.matches() && !out_.label && !new_template && !any_listed_left(*out_.change, pods_, true);
  if (is_done) return;
  out_.phase = Phase::pending;
  if (new_template)
    replace_by_template();
  else
    set_transition(false);
  find_obstacle();
  if (!out_.is_blocked()) hold_unreadable_owner();
}

// It only waits for its workloads, and without the change it would be up to date (N7), or verified (N5): it shows its
// target again, its image was taken back under OnDelete, or it has loaded its target after all. What its pods cannot
// have read proves nothing.
bool Assessor::has_lost_its_cause() const {
  if (out_.phase != Phase::draining || !out_.obstacle.code.empty() || !out_.matches()) return false;
  if (out_.change->to != out_.target.view()) return false;
  if (!out_.fresh_pods && !other_texts_read().texts.empty()) return false;
  const Difference now = difference();
  return now == Difference::none || (out_.fresh_pods && loads_by_itself(now, transition_from(loaded_profile())));
}

// An obstacle appeared during the change: keep its reason, and take the phase from the change.
void Assessor::note_obstacle() {
  find_own_obstacle();
  if (!out_.is_blocked()) hold_unreadable_owner();
  out_.phase = phase_in_change(out_, pods_);
  out_.write_blocked = false;
  if (has_lost_its_cause()) out_.cause = ChangeCause::ended;
  find_missing_labels();
}

bool Assessor::n4_no_target() {
  if (block_by(first_block_of(CheckStage::provider, CheckStage::profile))) return true;
  find_difference();  // N5 to N8 depend on it.
  return false;
}

bool Assessor::n5_loaded_by_itself() {
  if (!loads_by_itself(difference_, out_.transition)) return false;
  out_.phase = Phase::verifying;
  find_missing_labels();
  find_reload_obstacle();
  find_obstacle();
  return true;
}

bool Assessor::n6_rolling_update() {
  if (difference_ != Difference::rolling) return false;
  out_.phase = Phase::following_daemonset;
  return true;
}

bool Assessor::n7_runs_target() {
  if (difference_ != Difference::none) return false;
  out_.phase = Phase::up_to_date;
  find_missing_labels();
  find_reload_obstacle();
  const bool lost_to_a_taint = !out_.taint.empty() && newest(Component::plugin) == nullptr;
  if (lost_to_a_taint) find_obstacle();
  return true;
}

bool Assessor::n8_needs_change() {
  out_.phase = Phase::pending;
  find_obstacle();
  return true;
}

Assessor::Difference Assessor::difference() const {
  if (out_.loaded.revision.empty()) {
    // Without the label that its policy wants, no pod of it can load the policy's key.
    const bool lacks_label = out_.label && !out_.label->empty();
    if (lacks_label) return Difference::label;
    // Its pods have the default of their own template, and need not have read the present one.
    return effective_.source == EffectiveKey::Source::label ? Difference::unknown : of_template(Difference::unknown);
  }
  if (out_.label) return Difference::label;
  const bool same_profile = out_.loaded.profile == out_.profile_ref;
  if (same_profile && out_.loaded.revision == out_.target)
    return waits_for_deletion() ? Difference::new_template : Difference::none;
  return of_template(same_profile ? Difference::text : Difference::key);
}

Assessor::Difference Assessor::of_template(Difference otherwise) const {
  if (rolling_daemonset() != nullptr) return Difference::rolling;
  const bool waits = std::ranges::any_of(loaders(), [](const auto& loader) {
    return loader.second != nullptr && is_old_template(*loader.first, *loader.second);
  });
  return waits ? Difference::new_template : otherwise;
}

// With the cause of the change, and the pods that it replaces.
void Assessor::find_difference() {
  using enum Difference;
  constexpr ChangeCause kCauses[] = {ChangeCause::joined,    ChangeCause::none,         ChangeCause::policy,
                                     ChangeCause::none,      ChangeCause::new_template, ChangeCause::edited,
                                     ChangeCause::relabelled};  // In the order of Difference.
  difference_ = difference();
  out_.cause = kCauses[static_cast<std::size_t>(difference_)];
  if (difference_ == rolling || (difference_ == none && out_.matches())) return;
  if (difference_ == new_template) return replace_by_template();
  // A node that keeps showing another profile than the one that it has loaded: every pod that could be the cause is
  // replaced.
  const bool is_known = difference_ == text || difference_ == key || difference_ == label;
  set_transition(is_known && !out_.loaded.revision.empty());
}

bool Assessor::loads_by_itself(Difference difference, Transition transition) const {
  return difference == Difference::unknown || (difference == Difference::text && may_show_the_text()) ||
         (difference == Difference::key && !mps_kept_its_old_profile(transition));
}

bool Assessor::may_show_the_text() const {
  // Pods that existed when the operator was installed have shown that they do not load the profile.
  const bool adopted = out_.loaded.revision == kInvalidRevision && out_.at_install != AtInstall::shown;
  const auto is_newer = [&](const Operand&, const Pod& pod) {
    return created_after(pod, context_.record->recorded_at);
  };
  if (adopted && !all_load(is_newer)) return false;
  if (out_.fresh_pods) return true;
  if (config_map_ == nullptr) return false;
  // Only the pods that this difference concerns must have read it. One that is still to come reads it as the others
  // did.
  const Steps steps = steps_for(out_.transition);
  bool any = false;
  for (const auto& [operand, pod] : loaders()) {
    const bool affected = operand->component == Component::plugin || steps.replaces(operand->component);
    if (!affected || pod == nullptr) continue;
    if (!has_read(*pod)) return false;
    any = true;
  }
  return any;
}

void Assessor::replace_by_template() {
  set_transition(true);
  // An old MPS pod might mount a ConfigMap that is deleted with the old template, and would not start again.
  const Pod* mps = wants_mps() ? newest(Component::mps) : nullptr;
  if (mps != nullptr && mps_ != nullptr && is_old_template(*mps_, *mps)) out_.transition = Transition::change_mps;
  out_.cause = ChangeCause::new_template;
}

// The MPS daemon never reloads by label: between two MPS profiles its pod must be replaced. After a template change it
// has been replaced; but where MPS by label works at all a removed label looks the same.
bool Assessor::mps_kept_its_old_profile(Transition transition) const {
  const ProfilePtr before = loaded_profile();
  const bool entered = before && before->profile().strategy() != Strategy::mps;
  if (transition != Transition::change_mps || entered) return false;
  return effective_.source == EffectiveKey::Source::label ||
         loads_mps_by_label(plugin_->version, context_.settings.mps_signal_fixed);
}

Transition Assessor::transition_from(const ProfilePtr& before) const {
  const bool mps_pod = newest(Component::mps) != nullptr;
  const Profile& after = out_.profile->profile();
  Transition out = transition_on(node_, mps_pod, before ? &before->profile() : nullptr, after);
  if (!before) out = keep_daemon(out, observed_shape(node_, mps_pod), profile_of_daemon(), after);
  return out == Transition::none ? Transition::plugin_only : out;
}

void Assessor::set_transition(bool loaded_known) {
  if (!loaded_known || others_.texts.empty()) {
    out_.transition = transition_from(loaded_known ? loaded_profile() : nullptr);
    return;
  }
  // Whatever its pods have read: the strongest one replaces every pod that one of these texts matters to.
  out_.transition = Transition::plugin_only;
  for (const std::string_view text : others_.texts)
    out_.transition = std::max(out_.transition, transition_from(profile_of(text)));
}

}  // namespace gso
