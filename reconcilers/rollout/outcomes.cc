#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/managed_keys.h"
#include "reconcilers/rollout/record_writes.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/repairs.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {
namespace {

// --- Which revisions nodes have shown: the last verified ones, and the last good profile of each policy.

// All nodes of the rollout have the same target, and every reachable node shows it. Blocked nodes and nodes that are
// held or NotReady (a large fleet always has some) delay this only while they could be their group's canary.
bool is_complete(const RolloutView& rollout) {
  const ProfileRollout& nodes = rollout.profile_rollout;
  const std::int64_t settled = nodes.tally.settled;
  if (nodes.targets.size() != 1 || settled == 0 || !is_valid(rollout.target)) return false;
  if (rollout.present_failures() > 0 || is_doubtful(rollout) || nodes.tally.changing > 0) return false;
  // The labels of these nodes return shortly, and then the nodes could be canaries.
  if (nodes.blocked.contains(std::string(kLabelsMissing))) return false;
  const std::int64_t set_aside = std::ssize(nodes.nodes(RolloutBucket::set_aside));
  // Nodes that were out of service before and failed again do not prevent the rollout from being complete (S12).
  const std::int64_t excused = std::ssize(rollout.failed());
  if (settled + nodes.tally.blocked() + set_aside + excused != nodes.tally.total) return false;
  return std::ranges::all_of(nodes.groups, [&](const auto& entry) {
    // A group without a possible canary cannot show more.
    return !has_candidate(rollout, entry.first, CanaryNodes::any) || rollout.canary_passed(entry.first);
  });
}

// The products that have shown the revision of their rollout: in their own canary, or on every node. Nodes that joined
// with it or loaded it by themselves prove nothing for the other nodes of their group (S12).
void add_products(const RolloutView& rollout, ShownKey& shown) {
  if (rollout.profile_rollout.targets.size() != 1 || rollout.target != shown.revision) return;
  for (const auto& [product, group] : rollout.profile_rollout.groups) {
    if (group.tally.settled == 0 || group.tally.unproven > 0) continue;
    if (group.tally.settled == group.tally.total || rollout.canary_passed(product)) shown.products.insert(product);
  }
}

bool is_at(const std::map<std::string, std::string>& revisions, const std::string& id, const std::string& revision) {
  const auto known = revisions.find(id);
  return known != revisions.end() && known->second == revision;
}

// `id`: "namespace/configmap/key". True: the revision has become the verified one of the key.
bool note_shown(Pass& pass, NextRecord& next, const std::string& id, const ShownKey& key) {
  const FleetRecord& record = *pass.index.record;
  if (is_at(record.verified, id, key.revision)) {
    const auto known = record.verified_on.find(id);
    const bool all_known =
        known == record.verified_on.end() ? key.products.empty() : std::ranges::includes(known->second, key.products);
    if (all_known) return false;
    next.note("Verified", "nodes of another product show a verified revision")
        .verified_on[id]
        .insert(key.products.begin(), key.products.end());
    return false;
  }
  if (!key.by_all) return false;
  if (key.proven) {
    next.change("Verified", "every node of a key shows its revision")
        .note(id, key, text_of_key(pass, id, key.revision));
  } else if (!record.verified.contains(id) && !is_at(record.previous, id, key.revision)) {
    next.change("Shown", "every node of a key shows its revision, with pods that might be older than its text")
        .note(id, key, text_of_key(pass, id, key.revision));
  }
  return key.proven;
}

// The profile to which an inline profile can be rolled back.
void note_good(const RolloutView& rollout, NextRecord& next) {
  const RolloutKey& key = rollout.key;
  if (!owns_key(rollout.policy, key)) return;
  FleetRecord::Good good{key.key, rollout.target, {}};
  const auto& all = rollout.pass.index.record->good;
  if (const auto known = all.find({key.policy, key.config_map}); known != all.end()) {
    good.before = known->second.key == key.key ? known->second.before : known->second.key;
    if (known->second == good) return;
  }
  next.change("Verified", fmt::format("policy {} is at {}", key.policy, rollout.target))
      .good[{key.policy, key.config_map}] = good;
}

struct Verified {
  std::set<RolloutKey> complete;  // Rollouts whose nodes all show the revision.
  bool newly = false;             // A revision has become the verified one of its key.
};

Verified record_verified(Pass& pass, NextRecord& next) {
  Verified out;
  std::map<std::string, ShownKey> keys;
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const RolloutView& rollout = rollout_of(pass, key);
    const bool complete = is_complete(rollout);
    if (complete) out.complete.insert(key);
    const bool proven = profile_rollout.tally.unproven == 0;
    ShownKey& shown = keys.try_emplace(key.config_map + "/" + key.key, rollout.target).first->second;
    shown.by_all = shown.by_all && complete && shown.revision == rollout.target;
    shown.proven = shown.proven && proven;
    add_products(rollout, shown);
    if (complete && proven) note_good(rollout, next);
  }
  for (const auto& [id, key] : keys) out.newly = note_shown(pass, next, id, key) || out.newly;
  return out;
}

// --- Timers that the record keeps (recorded_timers.h).

constexpr Duration kWorthAWrite = std::chrono::minutes(1);
// A restart that is this late is prevented by something.
constexpr Duration kLate = std::chrono::seconds(10);

// Its label was moved, and it is not recorded soon: somebody holds it, it is NotReady, or it cannot have read the text
// and has not been restarted for that in time, whatever prevents the restart.
bool loads_for_long(const Pass& pass, const std::string& name) {
  const NodeAssessment* a = pass.index.find(name);
  if (a == nullptr || a->cause != ChangeCause::relabelled) return false;
  return !a->holder.empty() || !a->ready || (loading_expired(pass, name, *a, kLate) && !must_have_read(pass, name, *a));
}

// What the record must contain now; nullopt: it is up to date. A timer is added when it has run for a minute, together
// with all others that run: conditions that pass quickly cost no write. It is removed as soon as it has stopped. Holds
// of nodes in a change are rare, and are recorded at once; a node that is lost begins two of them, in one write.
std::optional<Timers> update_timers(const Pass& pass) {
  // The first pass of an operator, which may know at most that holds have ended: what the record has seeds the timers.
  const auto is_release = [](const auto& timer) { return timer.first.timer == Timer::released; };
  if (std::ranges::all_of(pass.s.timers, is_release)) return std::nullopt;
  const Timers& known = pass.index.record->timers;
  Timers running;
  bool due = false;
  std::size_t still_known = 0;
  // Timers are sorted by kind: the others, several for each node in progress, are not visited.
  for (const Timer kind : kRecorded) {
    for (auto it = pass.s.timers.lower_bound({kind, "", ""}); it != pass.s.timers.end() && it->first.timer == kind;
         ++it) {
      if (kind == Timer::loading && !loads_for_long(pass, std::string(it->first.subject.view()))) continue;
      const auto key = recorded_key(pass.s.world, it->first);
      if (!key || running.size() >= FleetRecord::kMostTimers) continue;
      const auto recorded = known.find(*key);
      still_known += recorded == known.end() ? 0 : 1;
      const bool of_a_hold = kind == Timer::not_ready || kind == Timer::held || kind == Timer::released;
      const bool lasts = of_a_hold || pass.s.now - it->second >= kWorthAWrite;
      due = due || (recorded == known.end() && lasts);
      running.emplace(
          *key, recorded == known.end() ? std::chrono::floor<std::chrono::seconds>(it->second) : recorded->second);
    }
  }
  if (!due && still_known == known.size()) return std::nullopt;
  if (due) return running;
  Timers left;
  std::ranges::copy_if(running, std::inserter(left, left.end()),
                       [&](const auto& entry) { return known.contains(entry.first); });
  return left;
}

class Outcomes {
 public:
  explicit Outcomes(Pass& pass) : pass_(pass), next_(pass) {}

  void run() {
    const Verified verified = record_verified(pass_, next_);
    record_failures(pass_, next_, verified.complete);
    note_canaries();
    note_stops();
    note_forgetting();
    note_operand_namespaces();
    note_node_labels();
    note_devices();
    note_remediations();
    if (auto timers = update_timers(pass_))
      next_.note("TimersRecorded", "how long nodes have drifted, or waited for DaemonSets").timers = *std::move(timers);
    if (next_.is_due() || has_new_text(pass_))
      note(&FleetRecord::history, present_history(pass_), "TextsRecorded", "the texts that pods have read");
    next_.forget();
    if (!next_.is_due()) return;
    update_machines(verified.newly);
    write_record(pass_, next_.present(), next_.reason(), next_.message());
  }

 private:
  // What the record has of it is replaced, if it differs.
  template <class T>
  void note(T FleetRecord::* what, T now, std::string_view reason, const std::string& message) {
    if (now != *pass_.index.record.*what) next_.note(reason, message).*what = std::move(now);
  }

  void note_canaries() {
    std::vector<RecordedCanary> canaries = update_canaries(pass_);
    // The canaries of revisions that this pass has verified on their product are dropped by the same write.
    std::erase_if(canaries, [&](const RecordedCanary& one) {
      return next_.is_due() && next_.present().has_shown(one.config_map, one.key, one.revision, one.product);
    });
    note(&FleetRecord::canaries, std::move(canaries), "CanaryRecorded", "the canaries of rollouts and their progress");
  }

  // Specs of policies, and switches of rollouts, so that a stop stays in effect when its object is deleted.
  void note_stops() {
    const FleetRecord& record = *pass_.index.record;
    const PolicyUpdate update =
        update_policies(record, pass_.s.world, pass_.ages, pass_.index.stored.forget_until(),
                        [&](const std::string& policy) { return pass_.index.policies.contains(policy); });
    if (update.policies != record.policies || update.crds_gone_since != record.crds_gone_since) {
      FleetRecord& next =
          next_.note("PoliciesRecorded", update.forgotten ? "the stops of deleted policies are forgotten"
                                                          : "the specs of policies changed");
      next.policies = update.policies;
      next.crds_gone_since = update.crds_gone_since;
    }
    if (update.grace_left) pass_.ages.look_again_in(*update.grace_left);
    for (const std::string& name : update.gone) report_gone_policy(pass_, name);
    if (update.crds_gone) report_gone_crds(pass_);
    note(&FleetRecord::rollouts, update_switches(pass_, update), "SwitchesRecorded",
         "the switches of rollouts changed");
    note(&FleetRecord::paused_config_maps,
         update_paused_config_maps(record, pass_.s.world, pass_.index.discovery.installations), "PausesRecorded",
         "the pauses of ConfigMaps changed");
  }

  // When the annotation was first seen: it forgets no stop that comes later, even if its time lies in the future.
  void note_forgetting() {
    const std::string& text = pass_.index.stored.forget_text();
    const auto& known = pass_.index.record->forgetting;
    if (text.empty() ? !known : known && known->value == text) return;
    FleetRecord& next = next_.note("ForgetPolicies", "up to when the stops of deleted policies are forgotten");
    next.forgetting.reset();
    if (text.empty()) return;
    next.forgetting = FleetRecord::Forgetting{text, std::chrono::floor<std::chrono::seconds>(pass_.s.now)};
  }

  // What was chosen because nothing named them; the setting ends that.
  void note_operand_namespaces() {
    const std::set<std::string>& recorded = pass_.index.record->operand_namespaces;
    std::set<std::string> chosen = pass_.s.settings.operand_namespaces.empty() ? recorded : std::set<std::string>();
    if (pass_.s.world.operand_namespaces_chosen) chosen = pass_.s.world.operand_namespaces;
    if (chosen == recorded) return;
    if (pass_.s.world.operand_namespaces_chosen) report_chosen_namespaces(pass_);
    note(&FleetRecord::operand_namespaces, std::move(chosen), "OperandNamespacesRecorded",
         "which namespaces are operand namespaces");
  }

  void note_node_labels() {
    std::set<std::string> labels = pass_.index.record->node_labels;
    for (const PluginInstallation& installation : pass_.index.discovery.installations) {
      for (const Operand& operand : installation.operands)
        if (!operand.node_label.empty() && operand.node_label != kConfigLabel) labels.insert(operand.node_label);
    }
    note(&FleetRecord::node_labels, std::move(labels), "NodeLabelsRecorded",
         "the labels by which plugins select their profile");
  }

  // The number of GPUs of machines that joined or that have more GPUs than before: several machines in one write, once
  // for each.
  void note_devices() {
    constexpr std::size_t kEnough = 32;
    const std::set<std::string>& uncounted = pass_.index.nodes_in(Bucket::uncounted);
    if (uncounted.empty() ||
        (!pass_.index.nodes_in(Bucket::self_loaded).empty() && uncounted.size() < kEnough && !next_.is_due()))
      return;
    FleetRecord& next = next_.note("DevicesRecorded", "counted the GPUs of " + counted(uncounted.size(), "node"));
    for (const std::string& name : uncounted) {
      const Node* node = pass_.s.world.nodes.find(name);
      if (node == nullptr) continue;
      const MachineId machine = machine_id(node->meta.uid.str());
      const MachineRecord* known = next.machines.find(machine);
      MachineRecord entry = known == nullptr ? MachineRecord() : *known;
      entry.devices = pass_.index.find(name)->counted_devices;
      next.machines.set(machine, entry);
    }
  }

  void note_remediations() {
    const std::vector<RecordedRemediation> due = due_remediations(pass_);
    if (due.empty()) return;
    FleetRecord next = next_.present();  // Its machines are shared, not copied.
    const auto is_too_old = [&](const RecordedRemediation& known) {
      return age_of(pass_, known) >= FleetRecord::kRemediationsKept;
    };
    const auto added =
        std::ranges::count_if(due, [&](const auto& attempt) { return next.note_remediation(attempt, is_too_old); });
    if (added == 0) return;
    next_.note("RemediationRecorded", counted(added, "stuck pod") + " will be replaced").remediations =
        std::move(next.remediations);
  }

  // Removes machines that no longer exist, and notes what the annotations of the others show as loaded. An older entry
  // does no harm while its annotation exists, so both happen only in the parts of the record that are written anyway,
  // and in all parts once a revision is verified.
  void update_machines(bool all) {
    std::set<std::size_t> written;
    for (std::size_t i = 0; i < MachineRecords::kShards; ++i) {
      const bool is_due = all || next_.due().machines.size() <= kMostInlined;
      if (is_due || !next_.due().machines.shares(i, pass_.index.record->machines)) written.insert(i);
    }
    if (written.empty()) return;
    MachineRecords& machines = next_.due().machines;
    std::vector<MachineId> present;
    present.reserve(pass_.s.world.nodes.size());
    for (const auto& [key, node] : pass_.s.world.nodes.all()) {
      const MachineId machine = machine_id(node->meta.uid.str());
      present.push_back(machine);
      const NodeAssessment* a = pass_.index.find(node->meta.name);
      if (!written.contains(MachineRecords::shard_of(machine)) || a == nullptr || a->is_contested()) continue;
      const MachineRecord* known = machines.find(machine);
      MachineRecord entry = known == nullptr ? MachineRecord() : *known;
      enter_loaded(pass_, *a, entry);
      machines.set(machine, entry);
    }
    std::ranges::sort(present);
    for (const std::size_t shard : written) {
      const MachineRecords::Shard known = machines.shard(shard);
      for (const auto& [machine, entry] : known)
        if (!std::ranges::binary_search(present, machine)) machines.erase(machine);
    }
  }

  Pass& pass_;
  NextRecord next_;
};

}  // namespace

void plan_outcomes(Pass& pass) {
  if (!pass.index.record) return;
  if (!completes_baseline(pass)) Outcomes(pass).run();
}

void RolloutViews::declare_timers() {
  const Index& index = pass_.index;
  for (const PluginInstallation& installation : index.discovery.installations) {
    // A finding reads it, with a record or without one.
    if (installation.announced) pass_.run(differing_timer(installation));
  }
  if (index.record || !index.record_problem.empty()) run_text_timers(pass_);
  if (!index.record) {
    if (!index.record_problem.empty()) run_loading_timers_of_all(pass_);
    return;
  }
  std::set<std::size_t> installations;
  for (const auto& [key, profile_rollout] : index.profile_rollouts) {
    // Inputs that have settled stay settled while another gate is closed or no node is left to start.
    const std::size_t installation = profile_rollout.installation;
    if (installations.insert(installation).second) pass_.run(settled_timer(pass_, installation));
    const std::int64_t following = profile_rollout.tally.of(Phase::following_daemonset);
    if (following > 0) run_recorded(pass_, stalls_timer(key, following));
  }
  run_loading_timers(pass_);
  for (const auto& [name, node, a] : nodes_in(pass_, Bucket::repairable)) run_recorded(pass_, drifting_timer(name, a));
  run_hold_timers(pass_);
  run_deferral_timers(pass_);
  run_remediation_timers(pass_);
  run_soaking_timers(pass_);
  // Last: a gate reads other timers.
  for (const auto& [key, profile_rollout] : index.profile_rollouts) {
    const Tally& nodes = profile_rollout.tally;
    const bool waits = nodes.of(Phase::pending) + nodes.moving() + nodes.repairable > 0;
    if (waits && rollout_of(pass_, key).gate().gate == Gate::settling) pass_.run(unsettled_timer(key));
  }
}

}  // namespace gso
