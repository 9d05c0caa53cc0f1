#include "reconcilers/rollout/rollout_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/model/plan_draft.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/rollout_object.h"

namespace gso {

namespace {

// The last verified revision of the key is known to work: a rollout (or rollback) to it needs no canary on products
// that have shown it. A new template can bring other changes (another image), which are not verified.
bool is_verified(const Index& index, const RolloutKey& key, const ProfileRollout& profile_rollout,
                 std::string_view target) {
  if (!index.record || profile_rollout.tally.new_template > 0) return false;
  return !target.empty() && index.record->last_verified(key.config_map, key.key) == target;
}

}  // namespace

std::string target_of(const ProfileRollout& profile_rollout) {
  const auto most =
      std::ranges::max_element(profile_rollout.targets, {}, [](const auto& entry) { return entry.second; });
  return most == profile_rollout.targets.end() ? std::string() : most->first;
}

TimerKey unsettled_timer(const RolloutKey& key) {
  return {Timer::unsettled, key.config_map, fmt::format("{}/{}", key.policy, key.key)};
}

RolloutView::RolloutView(Pass& in, const RolloutKey& of, const ProfileRollout& nodes)
    : pass(in),
      key(of),
      profile_rollout(nodes),
      policy(in.index.policy(in.s.world, of.policy)),
      installation(in.index.discovery.installations[nodes.installation]),
      target(target_of(nodes)),
      object(in.s.world.rollouts.find(rollout_name(of, target))),
      anew(object != nullptr && begins_anew(in.index, nodes, *object)),
      verified(is_verified(in.index, of, nodes, target)) {}

const GateState& RolloutView::gate() const {
  if (!gate_) gate_ = first_closed_gate(*this, GateUse::start);
  return *gate_;
}

bool RolloutView::may_repair() const {
  if (!may_repair_) may_repair_ = first_closed_gate(*this, GateUse::repair).is_open();
  return *may_repair_;
}

const std::optional<Stop>& RolloutView::first_stop(std::optional<std::optional<Stop>>& known, GateUse use) const {
  if (known) return *known;
  GateState closed = first_closed_gate(*this, use);
  known.emplace();
  if (!closed.is_open()) *known = Stop{closed.reason(), std::move(closed.message)};
  return *known;
}

const std::optional<Stop>& RolloutView::stop() const {
  return first_stop(stop_, GateUse::wait);
}

const std::optional<Stop>& RolloutView::stop_of_repairs() const {
  return first_stop(stop_of_repairs_, GateUse::wait_for_repair);
}

bool RolloutView::is_verified_on(const std::string& product) const {
  return verified && pass.index.record->has_shown(key.config_map, key.key, target, product);
}

const Canary& RolloutView::canary(const std::string& product) const {
  const auto known = canaries_.find(product);
  return known != canaries_.end() ? known->second : canaries_.emplace(product, canary_of(*this, product)).first->second;
}

bool RolloutView::all_canaries_passed() const {
  return std::ranges::all_of(profile_rollout.groups, [&](const auto& group) {
    return !has_candidate(*this, group.first, CanaryNodes::free) || canary_passed(group.first);
  });
}

const std::set<std::string>& RolloutView::failed() const {
  if (!failed_) failed_ = failed_on(pass.index, profile_rollout, target);
  return *failed_;
}

std::int64_t RolloutView::failures() const {
  return std::ssize(counted_failures(*this));
}

std::int64_t RolloutView::present_failures() const {
  return count_failures(pass.index, failed());
}

const std::string& RolloutView::too_many_failures() const {
  if (!too_many_failures_) too_many_failures_ = failures_that_stop(*this);
  return *too_many_failures_;
}

const OutOfReach& RolloutView::out_of_reach() const {
  if (!out_of_reach_) out_of_reach_ = out_of_reach_of(*this);
  return *out_of_reach_;
}

const std::string& RolloutView::exhausted(const std::string& product) const {
  const auto known = exhausted_.find(product);
  if (known != exhausted_.end()) return known->second;
  std::string full = exhausted_budget(pass, UnservedNodes(pass), key, profile_rollout, product, {});
  return exhausted_.emplace(product, std::move(full)).first->second;
}

const Waits& RolloutView::waits() const {
  if (!waits_) waits_ = waits_of(*this);
  return *waits_;
}

bool RolloutView::waits_briefly() const {
  if (waits_briefly_) return *waits_briefly_;
  const Gate closed = gate().gate;
  waits_briefly_ = closed == Gate::new_attempt;
  if (closed == Gate::settling) {
    const Duration patience = std::max<Duration>(3 * pass.s.settings.settle, std::chrono::seconds(30));
    waits_briefly_ = !pass.ages.has_run_for(unsettled_timer(key), patience);
  }
  if (closed == Gate::view_stale) waits_briefly_ = !stale_view_of(pass.s, installation.ns)->reported;
  return *waits_briefly_;
}

const std::map<std::string, ChangeTrouble>& RolloutView::troubles() const {
  if (!troubles_) troubles_ = troubles_of(*this);
  return *troubles_;
}

const std::string& RolloutView::stalled() const {
  if (!stalled_) stalled_ = stalled_daemonsets(*this);
  return *stalled_;
}

const std::optional<Standstill>& RolloutView::standstill() const {
  if (!standstill_) standstill_.emplace(standstill_of(*this));
  return *standstill_;
}

const std::vector<std::string>& RolloutView::assumed() const {
  if (assumed_) return *assumed_;
  assumed_.emplace();
  const auto& record = pass.index.record;
  const bool lost = object != nullptr && !anew && object->phase != "Completed" && record &&
                    record->recorded_at >= object->meta.creation_timestamp;
  if (!lost || profile_rollout.tally.unproven == 0) return *assumed_;
  for (const auto& [name, node] : pass.index.nodes) {
    if (node.share.counts.unproven > 0 && node.assessment && has(*node.assessment)) assumed_->push_back(name);
  }
  std::ranges::sort(*assumed_);
  return *assumed_;
}

std::int64_t RolloutView::repairs_left() const {
  return object == nullptr || has_ended(object->phase) ? 0 : profile_rollout.tally.repairable;
}

bool RolloutView::has(const NodeAssessment& a) const {
  return pass.index.is_of(a, key);
}

const std::set<std::string>& RolloutView::changing() const {
  if (changing_) return *changing_;
  changing_.emplace();
  for (const std::string& name : pass.index.nodes_in(Bucket::changing)) {
    const NodeAssessment& a = *pass.index.find(name);
    if (has(a) && a.change && a.change->to == target) changing_->insert(name);
  }
  return *changing_;
}

const std::string& RolloutView::templates() const {
  if (!templates_) templates_ = templates_text(installation);
  return *templates_;
}

bool RolloutView::has_other_templates(std::string_view then) const {
  return then != templates() && gso::has_other_templates(installation, then);
}

RolloutView* RolloutViews::find(const RolloutKey& key) {
  if (const auto known = views_.find(key); known != views_.end()) return &known->second;
  const auto profile_rollout = pass_.index.profile_rollouts.find(key);
  if (profile_rollout == pass_.index.profile_rollouts.end()) return nullptr;
  return &views_.try_emplace(key, pass_, profile_rollout->first, profile_rollout->second).first->second;
}

const std::map<std::string, BlockedBy>& RolloutViews::blocked_in_progress() {
  if (!blocked_in_progress_) blocked_in_progress_ = find_blocked_in_progress(pass_);
  return *blocked_in_progress_;
}

RolloutView* find_rollout(const Pass& pass, const RolloutKey& key) {
  return pass.rollouts->find(key);
}

RolloutView& rollout_of(const Pass& pass, const RolloutKey& key) {
  return *find_rollout(pass, key);
}

}  // namespace gso
