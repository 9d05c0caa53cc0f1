// The only rule for counting a node.
#include "reconcilers/fleet/tally.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_phase.h"

namespace gso {

bool NodeShare::empty() const {
  return counts.total == 0 && buckets.empty() && left_to_nos_by.empty() && !mark && !abandoned;
}

namespace {

class Counter {
 public:
  Counter(const AssessContext& context, const Node& node, const NodeAssessment& assessment,
          const std::vector<const Pod*>& pods)
      : context_(context), node_(node), a_(assessment), pods_(pods) {}

  NodeShare run() {
    if (a_.phase == Phase::unrecorded) put(Bucket::unrecorded);
    if (a_.phase != Phase::unmanaged) {
      count();
      put_by_phase();
      put_by_marks();
    }
    put_by_labels();
    put(Bucket::contested, !a_.other_plugins.empty() || a_.is_contested());
    put(Bucket::pod_faults,
        std::ranges::any_of(pods_, [](const Pod* pod) { return pod_fault_of(*pod, Duration::zero()).has_value(); }));
    return std::move(out_);
  }

 private:
  void put(Bucket bucket, bool belongs = true) { out_.buckets.put(bucket, belongs); }
  void put(RolloutBucket bucket, bool belongs) { out_.buckets.put(bucket, belongs); }

  void count() {
    const bool settled = is_settled(a_);
    const bool pending = a_.phase == Phase::pending;
    NodeCounts<std::int8_t>& counts = out_.counts;
    counts.total = 1;
    counts.busy = is_busy(a_) ? 1 : 0;
    const bool cordoned_for_change = a_.change != nullptr && a_.change->cordoned;
    counts.cordoned = a_.availability == Availability::cordoned && !cordoned_for_change ? 1 : 0;
    counts.failed_before = pending && a_.change != nullptr && a_.change->failed ? 1 : 0;
    counts.settled = settled ? 1 : 0;
    counts.held = a_.is_held() ? 1 : 0;
    counts.unproven = a_.phase == Phase::up_to_date && a_.at_install == AtInstall::unproven && !a_.fresh_pods ? 1 : 0;
    counts.new_template = pending && a_.cause == ChangeCause::new_template ? 1 : 0;
    counts.shrinking = pending && a_.shrinks && !a_.change ? 1 : 0;
    counts.changing = a_.in_change() ? 1 : 0;
    counts.loading = a_.loads_by_itself() ? 1 : 0;
    counts.repairable = drifts_unexcused() && a_.reload_obstacle.empty() ? 1 : 0;
  }

  [[nodiscard]] bool drifts_unexcused() const {
    return drifts(a_) && excuse_of(a_).empty() && baseline_excuse(a_).empty();
  }

  void put_by_phase() {
    put(Bucket::changing, a_.in_change());
    put(Bucket::failed, a_.phase == Phase::failed);
    put(Bucket::self_loaded, a_.loads_by_itself());
    put(Bucket::following, a_.phase == Phase::following_daemonset);
    put(Bucket::drifting, drifts_unexcused());
    put(Bucket::repairable, out_.counts.repairable > 0);
    put(Bucket::excused_drift, drifts(a_) && !drifts_unexcused());
    put(Bucket::busy, is_busy(a_));
    put(Bucket::missing_devices, !a_.missing_of_loaded.empty());
    put(Bucket::early_text, !a_.early_text.empty());
    put(Bucket::drifted_at_install, a_.at_install == AtInstall::drifted);
    put(Bucket::uncounted,
        a_.phase == Phase::up_to_date && !a_.is_contested() && a_.matches() && a_.counted_devices > a_.had_devices);
    put(Bucket::would_break, !a_.would_break.empty());
    put(Bucket::would_shrink, a_.would_shrink);
    if (a_.phase == Phase::pending) {
      out_.pending = out_.counts.busy == 0;
      put(Bucket::deferred, applying_deferral(node_, a_, governing()).has_value());
    }
    // A node that is set aside neither delays a rollout nor counts for or against a revision.
    const bool counted = out_.counts.settled > 0 || a_.change != nullptr || a_.is_blocked();
    put(RolloutBucket::set_aside, !counted && (!a_.holder.empty() || !a_.ready));
    put(RolloutBucket::stuck, a_.in_change() && !a_.holder.empty());
    put(RolloutBucket::failed, a_.phase == Phase::failed || out_.counts.failed_before > 0);
  }

  [[nodiscard]] const SharingPolicy* governing() const {
    const auto policy = std::ranges::find_if(
        context_.policies, [&](const SharingPolicy* other) { return other->meta.name == a_.policy.view(); });
    return policy == context_.policies.end() ? nullptr : *policy;
  }

  void put_by_marks() {
    put(Bucket::stale_marks, has_stale_marks());
    const auto says_blocked = [&] {
      return node_.meta.labels.get(kStateLabel) == kStateBlocked && has_message(node_, a_.obstacle.message);
    };
    put(Bucket::block_to_write, a_.is_blocked() && a_.write_blocked && !says_blocked());
    const bool releases = a_.left_policy == LeftPolicy::release || is_handed_over();
    put(Bucket::releases, releases && !a_.change && !a_.is_held());
  }

  // The label of another policy is the one that the policy wants which governs the node now. A policy in mode Observe
  // becomes the owner of nothing, and a node whose labels are missing might return to the other policy.
  [[nodiscard]] bool is_handed_over() const {
    if (a_.label_by.empty() || a_.label_by == a_.policy || a_.label || a_.left_policy != LeftPolicy::no) return false;
    const auto awaits = [&](const Interned& name) { return name == a_.label_by; };
    if (context_.record == nullptr || a_.wrong_key || std::ranges::any_of(a_.awaited_by, awaits)) return false;
    const SharingPolicy* policy = governing();
    return policy != nullptr && (policy->config_map_key || policy->inline_profile) &&
           context_.settings.mode_of(*policy) != PolicyMode::observe;
  }

  // A state or a deferral that no longer has a reason: the obstacle is gone, or a person has removed the annotation of
  // the change.
  [[nodiscard]] bool has_stale_marks() const {
    if (a_.change || a_.is_unreadable()) return false;
    const bool settled = a_.phase == Phase::up_to_date && !drifts(a_);  // A repair can be deferred as well.
    const bool deferred = settled && node_.meta.annotations.contains(kDeferredAnnotation);
    return deferred || (node_.meta.labels.contains(kStateLabel) && !(a_.is_blocked() && a_.write_blocked));
  }

  void put_by_labels() {
    put(Bucket::label_work,
        a_.takes_label_back() || !label_change(node_, a_, {context_.settings, std::nullopt}).empty());
    put(Bucket::unwritable, a_.expectation && !a_.expectation->dropped_labels.empty() &&
                                operator_owns_labels(node_, a_.has_labeller(), context_.settings));
    put(Bucket::label_problems, !label_problems(node_, a_, context_.settings).empty());
  }

  const AssessContext& context_;
  const Node& node_;
  const NodeAssessment& a_;
  const std::vector<const Pod*>& pods_;
  NodeShare out_;
};

// A node that no plugin installation serves any more, and that is out of service or mid-change, keeps its slot in the
// cluster's budget until the marks of its change are removed.
void count_abandoned(const Node& node, NodeShare& out) {
  const bool busy = node.meta.annotations.contains(kChangeAnnotation);
  if (!busy && !node.meta.labels.contains(kStateLabel)) return;
  out.abandoned = busy;
  if (!busy) return;
  out.counts.total = out.counts.busy = 1;
  out.buckets.put(Bucket::busy);
}

// A node whose standalone MPS daemon is being replaced holds a slot of every budget, and so does one whose mark cannot
// be read. Without a plugin, such a node counts for the cluster like the others.
void count_standalone(const Node& node, NodeShare& out) {
  out.buckets.put(Bucket::standalone_mps);
  const MpsDaemonChangeOnNode mark = mps_daemon_change_on(node);
  const bool served = out.counts.total > 0;
  const bool unavailable = !served && (!node.ready || node.unschedulable);
  out.counts.total = 1;
  if (!mark.change && mark.problem.empty() && !unavailable) return;
  out.counts.busy = 1;
  out.buckets.put(Bucket::busy);
}

// A node that nos partitions is not counted; the policies that select it report it. `default` selects every node, and
// reports those that no other policy selects.
std::vector<Interned> policies_that_select(const AssessContext& context, const Node& node) {
  std::vector<Interned> out;
  const SharingPolicy* governs = governing_policy(context.policies, node);
  if (governs != nullptr) out.emplace_back(governs->meta.name);
  for (const SharingPolicy* loser : losing_policies(context.policies, node, governs))
    out.emplace_back(loser->meta.name);
  return out;
}

Interned governed_by(const AssessContext& context, const Node& node, const NodeAssessment* assessment) {
  if (assessment != nullptr) return assessment->policy;
  const SharingPolicy* governs = governing_policy(context.policies, node);
  return Interned(governs == nullptr ? kDefaultPolicy : std::string_view(governs->meta.name));
}

std::optional<MpsMark> mark_to_change(const AssessContext& context, const Node& node, const Pod* standalone,
                                      bool marks) {
  if (is_partitioned_by_nos(node) || label_mode_of(node, context.settings) == PlannerSettings::LabelMode::verify)
    return std::nullopt;
  if (marks) return mps_mark(node, standalone);
  // Switched off: remove the operator's marks. (If KAI is only temporarily absent, they stay.)
  if (context.settings.kai.mps_ready != MpsReadyMode::off) return std::nullopt;
  return node.meta.annotations.contains(kMpsMarkAnnotation) ? std::optional(MpsMark::to_remove) : std::nullopt;
}

// What only metrics and alerts show.
void put_what_is_shown(const Node& node, const NodeAssessment* assessment, NodeShare& out) {
  // A change, a driver upgrade, a MIG change or a person explains for now why the node offers no GPU; and a node
  // without a plugin that reads profiles need not offer any.
  constexpr Phase kExplaining[] = {Phase::unmanaged,           Phase::draining, Phase::restarting, Phase::verifying,
                                   Phase::following_daemonset, Phase::held};
  const bool lacks_gpus = assessment != nullptr && node.ready && !serves_gpus(node);
  out.buckets.put(Bucket::without_gpus,
                  lacks_gpus && std::ranges::find(kExplaining, phase_of(*assessment)) == std::end(kExplaining));
  const bool known = assessment != nullptr || out.abandoned;
  out.buckets.put(Bucket::cordoned, known && node.unschedulable && is_cordoned_by_operator(node));
}

}  // namespace

NodeShare share_of(const AssessContext& context, const Node& node, const NodeAssessment* assessment,
                   const std::vector<const Pod*>& pods, bool marks) {
  NodeShare out;
  if (assessment != nullptr) out = Counter(context, node, *assessment, pods).run();
  if (assessment == nullptr || assessment->phase == Phase::unmanaged) count_abandoned(node, out);
  const bool partitioned = is_partitioned_by_nos(node);
  out.buckets.put(Bucket::partitioned, partitioned || node.meta.annotations.contains(kPartitioningAnnotation));
  if (assessment == nullptr && has_gpus(node) && partitioned) out.left_to_nos_by = policies_that_select(context, node);
  const Pod* standalone = pod_of_standalone(context.standalone, pods);
  const bool has_daemon = standalone != nullptr;
  if (has_daemon || node.meta.annotations.contains(kMpsDaemonChangeAnnotation)) {
    count_standalone(node, out);
    const bool served = assessment != nullptr && assessment->phase != Phase::unmanaged;
    if (!served) out.unserved_by = governed_by(context, node, assessment);
  }
  out.buckets.put(Bucket::mps_directory, has_daemon || node.meta.annotations.contains(kMpsHostAnnotation) ||
                                             node.meta.labels.contains(kMpsPipeDirectory) ||
                                             owned_labels(node).contains(std::string(kMpsPipeDirectory)));
  out.mark = mark_to_change(context, node, standalone, marks);
  put_what_is_shown(node, assessment, out);
  return out;
}

}  // namespace gso
