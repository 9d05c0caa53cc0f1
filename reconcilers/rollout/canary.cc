#include "reconcilers/rollout/canary.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

namespace {

constexpr std::string_view kCanaryFirst = "CanaryFirst";

bool is_of(const RecordedCanary& entry, const RolloutView& rollout) {
  return entry.revision == rollout.target && rollout_key_of(entry) == rollout.key &&
         !rollout.has_other_templates(entry.templates);
}

const RecordedCanary* recorded(const RolloutView& rollout, const std::string& product) {
  const auto& record = rollout.pass.index.record;
  if (!record) return nullptr;
  const auto entry = std::ranges::find_if(
      record->canaries, [&](const RecordedCanary& c) { return c.product == product && is_of(c, rollout); });
  return entry == record->canaries.end() ? nullptr : &*entry;
}

// Canaries that show the revision now.
std::vector<std::string> proven(const RolloutView& rollout, const RecordedCanary& entry) {
  std::vector<std::string> out;
  for (const auto& [name, machine] : entry.nodes) {
    const NodeAssessment* a = rollout.pass.index.find(name);
    const bool shows = a != nullptr && is_same_machine(rollout.pass, name, machine) && rollout.has(*a) && a->ready &&
                       a->loaded.revision == rollout.target && is_settled(*a);
    if (shows) out.push_back(name);
  }
  return out;
}

// How many canaries the group needs: at most all of its uncordoned nodes, or all of its nodes if it has no others.
std::int64_t needed(const RolloutView& rollout, const std::string& product) {
  const std::int64_t quota = rollout.policy.rollout.canary_nodes_per_group;
  const auto group = rollout.profile_rollout.groups.find(product);
  if (group == rollout.profile_rollout.groups.end()) return quota;
  const Tally& nodes = group->second.tally;
  const std::int64_t uncordoned = nodes.total - nodes.cordoned;
  return std::min(quota, uncordoned > 0 ? uncordoned : nodes.total);
}

// Runs since the canary was verified.
TimerKey soaking_timer(const RecordedCanary& entry) {
  return {Timer::soaking, rollout_name(rollout_key_of(entry), entry.revision), entry.product};
}

}  // namespace

bool is_same_machine(const Pass& pass, const std::string& name, MachineId machine) {
  const Node* node = pass.s.world.nodes.find(name);
  return node != nullptr && machine_id(node->meta.uid.str()) == machine;
}

bool has_candidate(const RolloutView& rollout, const std::string& product, CanaryNodes which) {
  const auto group = rollout.profile_rollout.groups.find(product);
  if (group == rollout.profile_rollout.groups.end()) return false;
  const std::set<std::string>& set_aside = rollout.profile_rollout.nodes(RolloutBucket::set_aside);
  return std::ranges::any_of(group->second.pending, [&](const auto& entry) {
    const auto& [available, name] = entry;
    const bool serves = available || serves_cordoned(*rollout.pass.index.find(name));
    return serves && (which == CanaryNodes::any || !set_aside.contains(name));
  });
}

bool is_behind_canary(const RolloutView& rollout, const NodeAssessment& a) {
  const std::string product(a.product.view());
  if (!serves_cordoned(a) || rollout.canary_passed(product)) return false;
  // Those that are available come last.
  const auto group = rollout.profile_rollout.groups.find(product);
  return group != rollout.profile_rollout.groups.end() && !group->second.pending.empty() &&
         group->second.pending.rbegin()->first;
}

std::map<MachineId, std::string> vanished_canaries(const RolloutView& rollout) {
  std::map<MachineId, std::string> out;
  if (!rollout.pass.index.record) return out;
  for (const RecordedCanary& entry : rollout.pass.index.record->canaries) {
    if (entry.passed || !is_of(entry, rollout)) continue;
    for (const std::string& name : entry.begun) {
      const auto node = entry.nodes.find(name);
      if (node != entry.nodes.end() && !is_same_machine(rollout.pass, name, node->second))
        out.emplace(node->second, name);
    }
  }
  return out;
}

bool is_recorded_canary(const RolloutView& rollout, const std::string& node) {
  const auto& record = rollout.pass.index.record;
  return record && std::ranges::any_of(record->canaries, [&](const RecordedCanary& entry) {
           const auto named = entry.nodes.find(node);
           return is_of(entry, rollout) && named != entry.nodes.end() &&
                  is_same_machine(rollout.pass, node, named->second);
         });
}

Canary canary_of(const RolloutView& rollout, const std::string& product) {
  const Canary passed{.passed = true, .verified = true, .proven = {}, .soaks_to = {}};
  const RolloutSpec& spec = rollout.policy.rollout;
  if (spec.canary_nodes_per_group <= 0 || rollout.is_verified_on(product)) return passed;
  const RecordedCanary* entry = recorded(rollout, product);
  if (entry == nullptr) return {};
  if (entry->passed) return passed;
  Canary out{.proven = proven(rollout, *entry)};
  if (std::ssize(out.proven) < needed(rollout, product)) return out;
  out.verified = true;
  out.passed = rollout.pass.ages.has_run_for(soaking_timer(*entry), spec.canary_soak, entry->soaking_since);
  if (out.passed) return out;
  // For people: as recorded, which every look and every operator reads alike. A recorded time in the future was written
  // before the clock was set back, and the timer counts.
  const bool is_past = entry->soaking_since && *entry->soaking_since <= rollout.pass.s.now;
  const WallTime since =
      is_past ? *entry->soaking_since : rollout.pass.ages.since(soaking_timer(*entry), entry->soaking_since);
  out.soaks_to = since + std::chrono::ceil<std::chrono::milliseconds>(spec.canary_soak);
  return out;
}

bool has_passed_canary(const RolloutView& rollout) {
  if (rollout.policy.rollout.canary_nodes_per_group <= 0) return false;
  return std::ranges::any_of(rollout.profile_rollout.groups, [&](const auto& group) {
    return recorded(rollout, group.first) != nullptr && rollout.canary_passed(group.first);
  });
}

std::vector<std::string> canaries_in_progress(const RolloutView& rollout, const std::string& product) {
  std::vector<std::string> out;
  std::ranges::copy_if(rollout.changing(), std::back_inserter(out), [&](const std::string& name) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    // The node served before its change, so the change is a canary for its revision.
    return a.change && a.change->served && a.product == product;
  });
  return out;
}

std::int64_t left_in_canary(const RolloutView& rollout, const std::string& product) {
  if (rollout.canary_passed(product)) return rollout.profile_rollout.groups.at(product).tally.total;
  return needed(rollout, product) - std::ssize(rollout.canary(product).proven) -
         std::ssize(canaries_in_progress(rollout, product));
}

std::optional<Reason> awaited_canary(const RolloutView& rollout, const NodeAssessment& a, std::int64_t started) {
  const std::string product(a.product.view());
  if (!a.loads_by_itself() || rollout.canary_passed(product)) return std::nullopt;
  // It proves nothing for the others (S12): it starts beside no canary, and before one only if none can start.
  if (a.cause == ChangeCause::joined && has_candidate(rollout, product, CanaryNodes::free))
    return Reason{kCanaryFirst, "it waits for the canary of its group, which starts first"};
  std::vector<std::string> first = rollout.canary(product).proven;
  std::ranges::copy_if(rollout.changing(), std::back_inserter(first),
                       [&](const std::string& name) { return rollout.pass.index.find(name)->product == product; });
  if (std::ssize(first) + started < rollout.policy.rollout.canary_nodes_per_group) return std::nullopt;
  return Reason{kCanaryFirst, first.empty()
                                  ? std::string("it waits for the canary of its group, which starts now")
                                  : fmt::format("it waits for the canary of its group: {}", first_names(first))};
}

// A replacement canary could take down every node in turn. This canary recovers by itself, is restarted after
// verifyTimeout, or fails then; without labels, or while its node is NotReady, it waits. A canary that cannot be
// restarted (starts.cc) for another reason does not delay the rollout.
std::string drifting_canary(const RolloutView& rollout) {
  for (const auto& [product, group] : rollout.profile_rollout.groups) {
    if (group.pending.empty() || rollout.canary(product).verified) continue;
    const RecordedCanary* entry = recorded(rollout, product);
    if (entry == nullptr) continue;
    for (const auto& [name, machine] : entry->nodes) {
      const NodeAssessment* a = rollout.pass.index.find(name);
      if (a == nullptr || !is_same_machine(rollout.pass, name, machine)) continue;
      if (!a->ready && !a->change && a->loaded.revision == rollout.target)
        return fmt::format("canary node {} was verified and is NotReady: the rollout waits until it is Ready", name);
      if (!rollout.pass.index.nodes_in(Bucket::drifting).contains(name)) continue;
      const std::string_view missing = a->labels_missing.view();
      if (!missing.empty()) return fmt::format("canary node {} was verified and lost its labels: {}", name, missing);
      if (!rollout.pass.index.nodes_in(Bucket::repairable).contains(name)) continue;
      return fmt::format(
          "canary node {} was verified but no longer shows its profile: {}. The operator restarts its pods if this "
          "lasts {}",
          name, shown_difference(*a), k8s::format_go_duration(rollout.policy.rollout.verify_timeout));
    }
  }
  return {};
}

namespace {

// A verified canary of the entry has lost the labels that would show its profile.
bool misses_labels(const Pass& pass, const RecordedCanary& entry) {
  return entry.soaking_since && std::ranges::any_of(entry.nodes, [&](const auto& node) {
           const NodeAssessment* a = pass.index.find(node.first);
           return a != nullptr && !a->labels_missing.empty();
         });
}

// The entry as it must be now; without nodes: no entry. `pass`: the one that plans changes and starts.
RecordedCanary next_entry(const Pass& pass, const RolloutView& rollout, const std::string& product) {
  const RecordedCanary* known = recorded(rollout, product);
  const RolloutKey& key = rollout.key;
  RecordedCanary out;
  if (known != nullptr)
    out = *known;
  else
    out = {key.policy, key.config_map, key.key, rollout.target, product, {}, {}, {}, {}, false};
  if (out.templates.empty()) out.templates = rollout.templates;
  if (out.passed) return out;
  std::erase_if(out.nodes, [&](const auto& node) { return !is_same_machine(pass, node.first, node.second); });
  out.begun.clear();
  const auto add = [&](const std::string& name, bool begun) {
    out.nodes[name] = machine_id(pass.s.world.nodes.find(name)->meta.uid.str());
    const bool loses_pods = std::ranges::any_of(pass.plan.actions, [&](const PlannedAction& planned) {
      return planned.node == name && std::holds_alternative<DeletePod>(planned.action);
    });
    if (begun || loses_pods) out.begun.insert(name);
  };
  for (const std::string& name : canaries_in_progress(rollout, product))
    add(name, pass.index.find(name)->phase != Phase::draining);
  for (const std::string& name : rollout.started_canaries)
    if (pass.index.find(name)->product == product) add(name, false);
  // Without its labels a canary cannot be verified, which says nothing about its profile: its soak continues.
  if (misses_labels(pass, out)) return out;
  const Canary& canary = rollout.canary(product);
  out.passed = canary.passed;
  if (!canary.verified)
    out.soaking_since.reset();
  else if (!out.soaking_since)
    out.soaking_since = std::chrono::floor<std::chrono::seconds>(pass.s.now);
  return out;
}

// The rollout has no node now, or the present text is invalid: neither ends it.
bool is_out_of_sight(const Pass& pass, const RecordedCanary& entry) {
  const RolloutKey key = rollout_key_of(entry);
  const RolloutView* rollout = find_rollout(pass, key);
  return rollout != nullptr ? !is_valid(rollout->target) : !is_left(pass, key, entry.revision);
}

}  // namespace

void run_soaking_timers(Pass& pass) {
  for (const RecordedCanary& entry : pass.index.record->canaries) {
    const TimerKey timer = soaking_timer(entry);
    // Out of sight, or without its labels, a canary cannot be verified, which says nothing about its profile.
    if (is_out_of_sight(pass, entry) || misses_labels(pass, entry)) {
      pass.keep(timer);
      continue;
    }
    const RolloutView* rollout = find_rollout(pass, rollout_key_of(entry));
    if (rollout == nullptr || !is_of(entry, *rollout) || rollout->is_verified_on(entry.product) || entry.passed)
      continue;
    if (rollout->canary(entry.product).verified) pass.ages.run(timer, entry.soaking_since);
  }
}

std::vector<RecordedCanary> update_canaries(Pass& pass) {
  std::vector<RecordedCanary> out;
  for (const RecordedCanary& entry : pass.index.record->canaries)
    if (is_out_of_sight(pass, entry)) out.push_back(entry);
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const RolloutView& rollout = rollout_of(pass, key);
    if (!is_valid(rollout.target) || rollout.policy.rollout.canary_nodes_per_group <= 0) continue;
    std::set<std::string> products;
    for (const auto& [product, group] : profile_rollout.groups) products.insert(product);
    // A group whose nodes have temporarily lost their labels is still known by its canary.
    for (const RecordedCanary& entry : pass.index.record->canaries)
      if (is_of(entry, rollout)) products.insert(entry.product);
    for (const std::string& product : products) {
      if (rollout.is_verified_on(product)) continue;
      RecordedCanary entry = next_entry(pass, rollout, product);
      if (!entry.nodes.empty() || entry.passed) out.push_back(std::move(entry));
    }
  }
  return out;
}

}  // namespace gso
