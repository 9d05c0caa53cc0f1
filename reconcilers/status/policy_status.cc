// policy.status: the status of every policy, and the Events that go with its changes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/label_contest.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/stops.h"
#include "reconcilers/status/next_status.h"

namespace gso {
namespace {

std::string failed_names(const FleetRecord::Failure& failure) {
  std::vector<std::string> names;
  for (const auto& [name, machine] : failure.nodes) names.push_back(name);
  return first_names(names);
}

class PolicyStatuses {
 public:
  explicit PolicyStatuses(Pass& pass) : pass_(pass), queued_(blocked_in_queue(pass)) { sum_up(); }

  void run() {
    if (pass_.s.world.policies_served)
      for (const auto& [name, sum] : sums_) patch_status(sum);
    else
      write_status_text();
  }

 private:
  void sum_up() {
    if (pass_.s.world.policies_served)
      for (const auto& [key, policy] : pass_.s.world.policies.all()) sums_[key.name].policy = policy.get();
    else
      sums_[std::string(kDefaultPolicy)].policy = &pass_.index.policy(pass_.s.world, kDefaultPolicy);
    for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts)
      if (PolicySum* sum = sum_of(key.policy)) add_rollout(key, profile_rollout, *sum);
    for (auto& [name, sum] : sums_) add_rollback(sum);
    for (const Bucket bucket : {Bucket::changing, Bucket::self_loaded, Bucket::following, Bucket::drifting,
                                Bucket::excused_drift, Bucket::missing_devices}) {
      each_of(bucket, [&](const std::string& name, const NodeAssessment& /*a*/, PolicySum& sum) {
        sum.nodes[static_cast<std::size_t>(bucket)].push_back(name);
      });
    }
    const std::map<std::string, Reason>& draining = pass_.rollouts->blocked_in_progress();
    each_of(Bucket::changing, [&](const std::string& name, const NodeAssessment& a, PolicySum& sum) {
      note_in_progress(name, a, sum.oldest);
      const auto who = draining.find(name);
      const ChangeTrouble* trouble = who == draining.end() ? trouble_in_change(pass_, name, a) : nullptr;
      // The change stands: some of the node's pods are gone, and the operator deletes none of the others.
      const bool stands = trouble != nullptr && trouble->kind == ChangeTrouble::Kind::stands;
      if (who != draining.end()) sum.waiting[who->second.code].emplace(name, who->second.message);
      if (stands) sum.waiting[trouble->code].emplace(name, trouble->message);
    });
    for (const auto& [name, who] : queued_)
      if (PolicySum* sum = sum_of(pass_.index.find(name)->policy.view()))
        sum->waiting[who.code].emplace(name, who.message);
    note_contested_labels();
    each_of(Bucket::would_break, [&](const std::string& name, const NodeAssessment& a, PolicySum& sum) {
      if (!pass_.plannable(a)) return;
      sum.breaking.push_back(name);
      sum.unstaged_owner = pass_.index.installation_of(a).owner;
    });
    each_of(Bucket::would_shrink, [&](const std::string&, const NodeAssessment& a, PolicySum& sum) {
      if (!sum.loss.empty() || !pass_.plannable(a)) return;
      const PluginInstallation& installation = pass_.index.installation_of(a);
      sum.loss = announced_loss(pass_, installation, a.policy.view());
      sum.unstaged_owner = installation.owner;
    });
  }

  // Null: the policy has no status.
  [[nodiscard]] PolicySum* sum_of(std::string_view policy) {
    const auto found = sums_.find(std::string(policy));
    return found == sums_.end() ? nullptr : &found->second;
  }

  // The nodes whose policy has a status.
  void each_of(Bucket bucket, const auto& note) {
    for (const std::string& name : pass_.index.nodes_in(bucket)) {
      const NodeAssessment& a = *pass_.index.find(name);
      if (PolicySum* sum = sum_of(a.policy.view())) note(name, a, *sum);
    }
  }

  // Names the timer of the start of its change.
  void note_in_progress(const std::string& node, const NodeAssessment& a, OldestInProgress& oldest) {
    const TimerKey timer{Timer::changing, node, a.change->to};
    pass_.run(timer);
    const WallTime since = pass_.since(timer);
    if (oldest.node.empty() || since < oldest.since) oldest = {node, since};
  }

  // --- Labels of nodes that another client keeps changing, for the condition LabelsContested of their policies.

  void note_contested(const LabelChange& change, const std::string& node, PolicySum* sum) {
    if (sum == nullptr) return;
    for (const auto& [label, until] : change.contested) sum->contested[label].insert(node);
  }

  void note_contested_labels() {
    each_of(Bucket::label_work, [&](const std::string& name, const NodeAssessment& a, PolicySum& sum) {
      const Node* node = pass_.s.world.nodes.find(name);
      if (node != nullptr && might_be_contested(pass_, *node))
        note_contested(settled_label_change(pass_, *node, a), name, &sum);
    });
    // No plugin needs to serve these nodes.
    for (const std::string& name : pass_.index.nodes_in(Bucket::mps_directory)) {
      const Node* node = pass_.s.world.nodes.find(name);
      if (node == nullptr || !might_be_contested(pass_, *node)) continue;
      const LabelChange change = directory_label(pass_, *node).change;
      if (!change.contested.empty())
        note_contested(change, name, sum_of(pass_.index.policy_of(pass_.s.world, *node).meta.name));
    }
  }

  // Adds that the inline profile which the policy requests failed, or was undone, and was rolled back.
  void add_rollback(PolicySum& sum) const {
    const FleetRecord::Failure* failure = taken_back(pass_.index, *sum.policy);
    if (failure == nullptr) return;
    const std::string where = failure->nodes.empty() ? "" : " failed on " + failed_names(*failure) + " and";
    sum.rolled_back = fmt::format(
        "{}{} was rolled back; it is not retried until the profile changes. Retry: `gpu-sharing-operator rollout "
        "start {}`",
        failure->revision, where, sum.policy->meta.name);
  }

  void add_rollout(const RolloutKey& key, const ProfileRollout& profile_rollout, PolicySum& sum) {
    sum.tally.add(profile_rollout.tally, 1);
    for (const auto& [reason, nodes] : profile_rollout.blocked) sum.blocked[reason].insert(nodes.begin(), nodes.end());
    sum.failed.insert(profile_rollout.nodes(RolloutBucket::failed).begin(),
                      profile_rollout.nodes(RolloutBucket::failed).end());
    const RolloutView& view = rollout_of(pass_, key);
    const std::string& target = view.target;
    sum.targets.insert(target);
    const auto* failure = profile_rollout.nodes(RolloutBucket::failed).empty()
                              ? remembered_failure(pass_, key, *sum.policy, target)
                              : nullptr;
    if (failure != nullptr) sum.failed_before = fmt::format("{} failed on {}", target, failed_names(*failure));
    const PluginInstallation& installation = pass_.index.discovery.installations[profile_rollout.installation];
    if (auto invalid = profile_rollout.blocked.find(std::string(kConfigInvalid));
        invalid != profile_rollout.blocked.end()) {
      const NodeAssessment& blocked = *pass_.index.find(*invalid->second.begin());
      if (!blocked.has_unknown_label()) {
        sum.invalid.emplace_back(
            blocked.wrong_key ? policy_ref(*sum.policy) : config_map_ref(installation.config_map_key()),
            blocked.obstacle.message);
      }
    }
    sum.assumed.insert(sum.assumed.end(), view.assumed().begin(), view.assumed().end());
    const std::int64_t pending = profile_rollout.tally.of(Phase::pending);
    const std::int64_t moving = profile_rollout.tally.changing;
    if (pending > 0) {
      const GateState& gate = view.gate();
      if (!gate.is_open() && !view.waits_briefly()) {
        if (!sum.first_closed) sum.first_closed = gate.gate;
        sum.waits.emplace(key.key, Reason(gate.reason(), fmt::format("{}: {}", gate.reason(), gate.message)));
      }
    }
    const std::int64_t repairs = view.repairs_left();
    if (pending + profile_rollout.tally.moving() + repairs > 0 || view.standstill()) add_waits(view, sum);
    if (pending + moving + repairs > 0) {
      // The SharingRollout can be missing: an invalid text has no rollout, even while nodes change to another revision.
      std::string rollout = rollout_name(key, target);
      if (!pass_.s.world.policies_served || pass_.s.world.rollouts.find(rollout) != nullptr)
        sum.rollout = std::move(rollout);
      sum.stopped = view.stop().has_value();
    }
    const bool by_us = sum.policy->rollout.mechanism == Mechanism::daemonset_restart;
    const std::int64_t following = by_us ? 0 : profile_rollout.tally.of(Phase::following_daemonset);
    if (installation.announcement_unknown) sum.unread_owner = installation.owner;
    if (const auto& stalled = view.stalled())
      pass_.finding(Severity::warning, config_map_ref(installation.config_map_key()), stalled->code, stalled->message);
    // With updateStrategy OnDelete an announcement restarts no pod: the change is staged in the policy's waves.
    const bool waits_for_us = std::ranges::all_of(installation.operands, &Operand::on_delete);
    const bool announced = installation.announced && !waits_for_us;
    if (announced || following > 0) {
      sum.unstaged_owner = installation.owner;
      sum.unstaged =
          announced ? fmt::format("ClusterPolicy {} announces {}", installation.owner, installation.announced_config())
                    : fmt::format("the DaemonSets {} roll out a new template by themselves",
                                  installation.owner.empty() ? "in namespace " + installation.ns
                                                             : "of ClusterPolicy " + installation.owner);
    }
  }

  // What its nodes wait for: named in `blocked` and in the message of Progressing. A node that is not Ready is not
  // Blocked: it counts against the budgets, and the SharingRollout names it.
  static void add_waits(const RolloutView& view, PolicySum& sum) {
    ++sum.rollouts_with_work;
    sum.progress.emplace(view.key.key, progress_text(view));
    if (const auto& still = view.standstill()) sum.standing.emplace_back(view.key.key, *still);
    for (const auto& [reason, nodes] : view.out_of_reach().nodes)
      if (reason != kNodesNotReady) sum.waiting[reason].insert(nodes.begin(), nodes.end());
    if (view.profile_rollout.tally.of(Phase::pending) == 0) return;
    if (const Waits& waits = view.waits(); !waits.message.empty())
      sum.waits.emplace(view.key.key, Reason(kRollingOut, waits.message, waits.facts));
  }

  // Nodes that cannot be changed, or that are out of service and wait for their workloads. The message is the first
  // node's.
  static Json blocked_entry(const std::string& reason, const std::vector<std::pair<std::string, std::string>>& nodes) {
    constexpr std::size_t kNodes = 5;
    Json names = Json::array();
    for (const auto& [name, message] : nodes)
      if (names.size() < kNodes) names.push_back(name);
    return {{"reason", reason},
            {"count", nodes.size()},
            {"nodes", std::move(names)},
            {"message", cut_message(nodes.front().second)}};
  }

  Json status_of(const PolicySum& sum, const Json& before) {
    constexpr std::size_t kMostOfRetry = 64;  // Bytes; the CRD's maxLength.
    const std::int64_t generation = sum.policy->meta.generation;
    const std::vector<StatusCondition> conditions = conditions_of(pass_, sum, before);
    Json out = {{"nodes",
                 {{"total", sum.tally.total},
                  {"upToDate", sum.tally.settled},
                  {"pending", sum.tally.shown_pending()},
                  {"updating", sum.tally.moving()},
                  {"blocked", sum.tally.blocked()},
                  {"failed", sum.tally.shown_failed()},
                  {"drifting", sum.tally.unshown()},
                  {"held", sum.tally.held}}},
                {"conditions", condition_list(conditions, before, generation, pass_.s.now)}};
    out["reason"] = fields_of(conditions[1].why);
    if (generation > 0) out["observedGeneration"] = generation;
    const std::string_view retry = retry_of(*sum.policy);
    if (!retry.empty() && retry.size() <= kMostOfRetry) out["observedRetry"] = retry;
    out["mode"] = word_of(kPolicyModeWords, pass_.s.settings.mode_of(*sum.policy));
    if (!sum.rollout.empty()) out["currentRollout"] = sum.rollout;
    const bool stopped =
        sum.stopped || std::ranges::any_of(sum.waiting, [](const auto& nodes) { return is_of_workloads(nodes.first); });
    add_progress(pass_, sum, stopped, before, out);
    if (sum.targets.size() == 1 && sum.tally.settled == sum.tally.total && sum.tally.total > 0)
      out["verifiedRevision"] = *sum.targets.begin();
    // Nodes that are out of service because of it come first.
    std::map<std::string, std::vector<std::pair<std::string, std::string>>> blocked;
    for (const auto& [reason, nodes] : sum.waiting) blocked[reason].assign(nodes.begin(), nodes.end());
    for (const auto& [reason, nodes] : sum.blocked) {
      auto& named = blocked[reason];
      for (const std::string& name : nodes)
        named.emplace_back(name, named.empty() ? pass_.index.find(name)->obstacle.message : std::string());
    }
    for (const auto& [reason, nodes] : blocked) out["blocked"].push_back(blocked_entry(reason, nodes));
    return out;
  }

  // --- Writing.

  void patch_status(const PolicySum& sum) {
    const Json before = parse_status(sum.policy->status_json);
    const Json after = status_of(sum, before);
    auto text = text_to_write(pass_.s.world, "SharingPolicy", sum.policy->status_json, after);
    if (!text) return;
    report_changes(pass_, sum, before, after);
    pass_.add(PatchStatus{policy_ref(*sum.policy), *std::move(text)}, std::string(kStatusChanged), "");
  }

  // The conditions without their messages, which name other nodes in each pass.
  static std::set<std::string> states_of(const Json& status) {
    std::set<std::string> out;
    for (const Json& condition : list_at(status, "conditions")) {
      out.insert(fmt::format("{} {} {}", text_at(condition, "type"), text_at(condition, "status"),
                             text_at(condition, "reason")));
    }
    return out;
  }

  // Without the CRDs the same text is written to the state ConfigMap, every few seconds at most unless a condition
  // flips.
  void write_status_text() {
    constexpr Duration kInterval = std::chrono::seconds(5);
    const PolicySum& sum = sums_.begin()->second;
    const ConfigMap* state =
        pass_.s.world.configmaps.find({pass_.s.settings.operator_namespace, pass_.s.settings.state_config_map});
    Json before = Json::object();
    if (const auto text = key_text(state, kStatusKey)) before = Json::parse(*text, nullptr, false);
    const Json old_policy = object_at(before, "policy");
    const Json policy = status_of(sum, old_policy);
    if (policy == old_policy) return;
    const auto written = k8s::parse_rfc3339(text_at(before, "updatedAt"));
    const bool flipped = states_of(old_policy) != states_of(policy);
    const bool waits =
        written && !pass_.ages.held_for(stored_time(std::string(kStatusKey), "status", *written), kInterval, *written);
    if (waits && !flipped) return;
    report_changes(pass_, sum, old_policy, policy);
    const Json text = {{"version", 1}, {"updatedAt", k8s::format_time(pass_.s.now)}, {"policy", policy}};
    pass_.add(write_state(pass_.s.settings, {{std::string(kStatusKey), dump(text)}}), std::string(kStatusChanged), "");
  }

  Pass& pass_;
  std::map<std::string, Reason> queued_;  // Nodes at the back of the queue.
  std::map<std::string, PolicySum> sums_;
};

}  // namespace

const ChangeTrouble* trouble_in_change(const Pass& pass, const std::string& node, const NodeAssessment& a) {
  const RolloutView* view = pass.rollouts == nullptr ? nullptr : find_rollout(pass, pass.index.rollout_key_of(a));
  if (view == nullptr) return nullptr;
  const auto found = view->troubles().find(node);
  return found == view->troubles().end() ? nullptr : &found->second;
}

void plan_policy_statuses(Pass& pass) {
  PolicyStatuses(pass).run();
}

}  // namespace gso
