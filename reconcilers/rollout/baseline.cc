// The record: a baseline at first sight, and the last verified revision of each key afterwards.
#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/labels.h"
#include "reconcilers/rollout/pass.h"

namespace gso {

namespace {

void add_node(FleetRecord& record, const Pass& pass, const std::string& name, const NodeAssessment& a) {
  // What the node itself remembers counts more, and is newer.
  if (a.loaded.proof == Proof::annotation) return;
  const bool valid = a.profile && a.profile->valid;
  record.nodes[name] = {k8s::Interned(pass.index.set_of(a).id()), a.key, valid ? a.target : k8s::Interned(kInvalidRevision)};
  const Node* node = pass.s.world.nodes.find(name);
  const std::int64_t gpus = node ? gpus_to_remember(*node, a) : 0;
  if (gpus > 0) record.gpus[name] = gpus;
  if (!a.matches && !(a.verified.surplus && gpus > 0)) record.preexisting_drift.insert(name);
  if (!a.fresh_pods) record.unproven.insert(name);
}

std::string describe(const FleetRecord& record) {
  return fmt::format("{} nodes as they are, {} of them with drift, {} unproven", record.nodes.size(),
                     record.preexisting_drift.size(), record.unproven.size());
}

}  // namespace

void plan_baseline(Pass& pass) {
  if (pass.index.record || !pass.index.record_problem.empty() || pass.index.first_seen.empty()) return;
  if (!pass.s.world.unsynced_namespaces.empty()) return;
  FleetRecord record;
  record.recorded_at = pass.s.now;
  // A key counts as verified when every node of it shows it.
  std::map<std::string, std::pair<std::string, bool>> keys;
  for (const std::string& name : pass.index.first_seen) {
    const NodeAssessment& a = *pass.index.find(name);
    add_node(record, pass, name, a);
    const std::string id = fmt::format("{}/{}", pass.index.set_of(a).id(), a.key.view());
    auto [slot, added] = keys.try_emplace(id, std::string(a.target.view()), true);
    slot->second.second = slot->second.second && a.matches;
  }
  for (const auto& [id, state] : keys) {
    if (state.second) record.verified[id] = state.first;
  }
  const std::string message = describe(record);
  pass.add(write_state(pass.s, {{std::string(kRecordKey), print_record(record)}}), "Baseline",
           fmt::format("first sight: {}", message));
}

void plan_verified_revisions(Pass& pass) {
  if (!pass.index.record) return;
  std::map<std::string, std::pair<std::string, bool>> keys;
  for (const auto& [key, unit] : pass.index.units) {
    const std::string target = unit_target(unit);
    std::int64_t settled = 0;
    for (const auto& [product, group] : unit.groups) settled += group.settled;
    const auto blocked = unit.counts.find(Situation::blocked);
    const bool complete = unit.targets.size() == 1 && settled > 0 && !target.empty() && target != kInvalidRevision &&
                          settled + (blocked == unit.counts.end() ? 0 : blocked->second) == unit.total;
    auto [slot, added] = keys.try_emplace(key.set + "/" + key.key, target, complete);
    slot->second.second = slot->second.second && complete && slot->second.first == target;
  }
  FleetRecord next;
  bool changed = false;
  for (const auto& [id, state] : keys) {
    if (!state.second) continue;
    auto known = pass.index.record->verified.find(id);
    if (known != pass.index.record->verified.end() && known->second == state.first) continue;
    if (!changed) next = *pass.index.record;
    changed = true;
    next.verified[id] = state.first;
  }
  if (!changed) return;
  // Nodes that are gone, or that remember for themselves by now, leave the record when it is written anyway.
  std::erase_if(next.nodes, [&](const auto& entry) {
    const Node* node = pass.s.world.nodes.find(entry.first);
    return node == nullptr || node->meta.annotations.contains(kRevisionAnnotation);
  });
  std::erase_if(next.gpus, [&](const auto& entry) { return !next.nodes.contains(entry.first); });
  for (auto* names : {&next.preexisting_drift, &next.unproven}) {
    std::erase_if(*names, [&](const std::string& name) { return !next.nodes.contains(name); });
  }
  pass.add(write_state(pass.s, {{std::string(kRecordKey), print_record(next)}}), "Verified",
           "every node of a key shows its revision");
}

}  // namespace gso
