// FleetIndex: follows the stores, re-assesses what changed, keeps the sums.
#include "reconcilers/fleet/fleet_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/node/node_phase.h"

namespace gso {

namespace {

// The store shows of the operator's write what was assessed when that was handed over, and nothing else.
bool is_as_assessed(const World& world, const Node* before, const Node* after) {
  if (before == nullptr || after == nullptr) return false;
  std::optional<Node> assessed = with_change_being_written(world, *before);
  if (!assessed) return false;
  assessed->meta.resource_version = after->meta.resource_version;
  return *assessed == *after;
}

}  // namespace

FleetIndex::FleetIndex() : impl_(std::make_unique<Impl>()) {
  note_everything_changed();
}
FleetIndex::~FleetIndex() = default;

void FleetIndex::attach(World& world) {
  Impl& impl = *impl_;
  const auto note_discovery = [&impl](const ObjectKey&, const auto&, const auto&) { impl.discovery_dirty = true; };
  world.nodes.add_listener([this, &world](const ObjectKey& key, const auto& before, const auto& after) {
    if (!is_as_assessed(world, before.get(), after.get())) note_node_changed(key.name);
  });
  world.operand_pods.add_listener([&impl](const ObjectKey&, const auto& before, const auto& after) {
    if (!impl.everything) impl.index_pod(before.get(), after);
  });
  world.configmaps.add_listener([&impl](const ObjectKey& key, const auto&, const auto&) {
    if (!impl.everything) impl.dirty_config_maps.insert(key);
  });
  world.daemonsets.add_listener(note_discovery);
  world.revisions.add_listener(note_discovery);
  world.clusterpolicies.add_listener(note_discovery);
  world.gpu_clusters.add_listener(note_discovery);
  world.policies.add_listener([&impl](const ObjectKey&, const auto&, const auto&) { impl.policies_dirty = true; });
  impl.kai.attach(world);
  impl.dra.attach(world);
}

// If every node is dirty, single objects need not be remembered; this keeps the first list of a fleet small.
void FleetIndex::note_node_changed(const std::string& name) {
  if (!impl_->everything) impl_->dirty_nodes.insert(name);
}
void FleetIndex::note_everything_changed() {
  impl_->everything = true;
  impl_->kai.note_everything_changed();
  impl_->dra.note_everything_changed();
}

void FleetIndex::refresh(const World& world, const PlannerSettings& settings) {
  impl_->refresh(world, settings);
}

const NodeAssessment* FleetIndex::assessment(std::string_view node) const {
  return impl_->find(node);
}

std::vector<std::string> FleetIndex::node_names() const {
  std::vector<std::string> out;
  out.reserve(impl_->nodes.size());
  for (const auto& [name, node] : impl_->nodes)
    if (node.assessment) out.emplace_back(name.view());
  std::ranges::sort(out);
  return out;
}

const std::vector<PluginInstallation>& FleetIndex::installations() const {
  return impl_->discovery.installations;
}

const NodeAssessment* FleetIndex::Impl::find(std::string_view node) const {
  const auto it = nodes.find(node);
  return it == nodes.end() || !it->second.assessment ? nullptr : &*it->second.assessment;
}

const SharingPolicy& FleetIndex::Impl::policy(const World& world, std::string_view name) const {
  const SharingPolicy* found = world.policies.find(name);
  if (found != nullptr) return *found;
  const auto held = held_policies.find(std::string(name));
  return held != held_policies.end() ? held->second : built_in_policy;
}

const SharingPolicy& FleetIndex::Impl::policy_of(const World& world, const Node& node) const {
  if (const auto known = nodes.find(node.meta.name); known != nodes.end()) {
    const IndexedNode& indexed = known->second;
    if (indexed.assessment) return policy(world, indexed.assessment->policy.view());
    if (!indexed.share.unserved_by.empty()) return policy(world, indexed.share.unserved_by.view());
  }
  const SharingPolicy* governs = governing_policy(policies_in_order(world, built_in_policy, held_policies), node);
  return governs != nullptr ? *governs : built_in_policy;
}

std::vector<const Pod*> FleetIndex::Impl::pods_of(std::string_view node) const {
  std::vector<const Pod*> out;
  auto it = pods_by_node_.find(Interned(node));
  if (it == pods_by_node_.end()) return out;
  out.reserve(it->second.size());
  for (const PodPtr& pod : it->second) out.push_back(pod.get());
  return out;
}

void FleetIndex::Impl::reset() {
  nodes.clear();
  profile_rollouts.clear();
  policies.clear();
  unserved.clear();
  cluster = {};
  shown = {};
  loaded.clear();
  labelled.clear();
  overlaps.clear();
  left_to_nos.clear();
  awaited.clear();
  setups.clear();
  setups_.clear();
  for (auto& names : buckets_) names.clear();
  abandoned.clear();
  mps_work.clear();
  quiet_changes.clear();
  pods_by_node_.clear();
}

void FleetIndex::Impl::index_pod(const Pod* before, const PodPtr& after) {
  if (before != nullptr && !before->node_name.empty()) {
    dirty_nodes.emplace(before->node_name.view());
    auto here = pods_by_node_.find(before->node_name);
    if (here != pods_by_node_.end()) {
      std::erase_if(here->second, [before](const PodPtr& pod) {
        return pod->meta.name == before->meta.name && pod->meta.ns == before->meta.ns;
      });
      if (here->second.empty()) pods_by_node_.erase(here);
    }
  }
  if (after == nullptr || after->node_name.empty()) return;
  pods_by_node_[after->node_name].push_back(after);
  dirty_nodes.emplace(after->node_name.view());
}

void FleetIndex::Impl::read_record(const World& world, const PlannerSettings& settings) {
  if (!stored.read(world, settings) && !everything) return;
  record_problem = stored.problem();
  const std::optional<FleetRecord>& next = stored.record();
  // Switches, canaries and timers change no node's assessment.
  const bool same = record.has_value() == next.has_value() &&
                    (!next || (record->failures == next->failures && record->good == next->good &&
                               record->recorded_at == next->recorded_at && record->templates == next->templates &&
                               record->history == next->history && record->without_baseline == next->without_baseline));
  if (same && next) {
    note_machines_changed(world, record->machines.differing(next->machines));
    if (record->verified != next->verified) note_blocked();
  }
  record = next;
  policies_dirty = true;
  if (!same) everything = true;
}

// A key that was verified once is not a typing error on the nodes that still name it.
void FleetIndex::Impl::note_blocked() {
  for (const auto& [name, node] : nodes)
    if (node.assessment && node.assessment->blocked_by != nullptr) dirty_nodes.emplace(name.view());
}

void FleetIndex::Impl::note_machines_changed(const World& world, const std::set<MachineId>& machines) {
  if (machines.empty() || everything) return;
  for (const auto& [key, node] : world.nodes.all())
    if (machines.contains(machine_id(node->meta.uid.str()))) dirty_nodes.insert(key.name);
}

void FleetIndex::Impl::rediscover(const World& world) {
  Discovery next = discover(world);
  if (next == discovery) return;
  discovery = std::move(next);
  everything = true;
}

// Everything that a restarted pod would load or do differently: the ConfigMap's data, the templates, the announcement.
// Installations that mount the same ConfigMap have one signature, because one rollout covers all of them.
void FleetIndex::Impl::sign_sets(const World& world) {
  std::map<std::string, std::string> texts;
  for (const PluginInstallation& installation : discovery.installations) {
    std::string& text = texts[installation.id()];
    text += fmt::format("{}|{}|{}|{}", installation.clusterpolicy_generation, installation.announced,
                        installation.announced_config_map, installation.announced_default);
    for (const Operand& operand : installation.operands) text += fmt::format("|{}:{}", operand.uid, operand.generation);
    if (const ConfigMap* config_map = world.configmaps.find(installation.config_map_key()))
      for (const auto& [key, value] : config_map->data) text += fmt::format("|{}={}", key, value ? *value : "");
  }
  signatures.clear();
  for (const PluginInstallation& installation : discovery.installations)
    signatures.push_back(short_hash(texts.at(installation.id())));
}

// Of the installations that mount one ConfigMap: the GPU Operator's, because only it can have an announcement, else the
// first. The choice must not alternate, or its timers would restart.
bool FleetIndex::Impl::speaks_for(std::size_t installation, std::size_t other) const {
  const bool operators = discovery.installations[installation].provider == Provider::gpu_operator;
  const bool others = discovery.installations[other].provider == Provider::gpu_operator;
  return operators != others ? operators : installation < other;
}

namespace {

// Of the policies, without the fields that change no node's policy or target.
std::vector<SharingPolicy> what_nodes_read(const std::vector<const SharingPolicy*>& ordered, const World& world) {
  std::vector<SharingPolicy> out;
  const auto add = [&](const SharingPolicy* policy) {
    out.push_back(*policy);
    out.back().status_json.clear();
    out.back().spec_json.clear();
    out.back().meta.resource_version.clear();
  };
  std::ranges::for_each(ordered, add);
  // A policy that is being deleted governs no node, and says whether nodes that leave it are reverted.
  for (const SharingPolicy* policy : in_order(world.policies))
    if (policy->meta.deletion_timestamp) add(policy);
  return out;
}

}  // namespace

void FleetIndex::Impl::refresh(const World& world, const PlannerSettings& settings) {
  built_in_policy.meta.name = kDefaultPolicy;
  built_in_policy.mode = settings.mode;
  if (built_in_policy.rollout != settings.rollout) built_in_policy.rollout = settings.rollout;
  kai.refresh(world, settings);
  for (std::string& name : kai.take_changed_nodes()) dirty_nodes.insert(std::move(name));
  dra.refresh(world);
  for (std::string& name : dra.take_changed_nodes()) dirty_nodes.insert(std::move(name));
  const bool marks = marks_mps_nodes(settings, kai.view().served);
  everything = everything || marks != marks_;
  marks_ = marks;
  const bool config_maps_changed = everything || !dirty_config_maps.empty();
  if (discovery_dirty || everything) rediscover(world);
  if (config_maps_changed) read_record(world, settings);
  if (config_maps_changed || discovery_dirty || everything) sign_sets(world);
  held_policies = record ? policies_that_hold(*record, world, stored.forget_until()) : decltype(held_policies)();
  ordered_policies_ = policies_in_order(world, built_in_policy, held_policies);
  if (policies_dirty || everything) {
    std::vector<SharingPolicy> seen = what_nodes_read(ordered_policies_, world);
    if (seen != policies_seen_) everything = true;
    policies_seen_ = std::move(seen);
  }
  if (everything) {
    reset();
    for (const auto& [key, pod] : world.operand_pods.all()) index_pod(nullptr, pod);
    dirty_nodes.clear();
    for (const auto& [key, node] : world.nodes.all()) dirty_nodes.insert(key.name);
  } else {
    for (const ObjectKey& config_map : dirty_config_maps) {
      for (const auto& [name, node] : nodes) {
        if (!node.assessment) continue;
        const PluginInstallation& installation = installation_of(*node.assessment);
        const bool uses = installation.ns == config_map.ns && (installation.config_map == config_map.name ||
                                                               installation.announced_config_map == config_map.name);
        if (uses) dirty_nodes.emplace(name.view());
      }
    }
  }
  const AssessContext context{world,    settings,      discovery.installations, ordered_policies_,    record_or_null(),
                              profiles, expectations_, discovery.strays,        discovery.standalone, setups_};
  for (const std::string& name : dirty_nodes) assess(context, name);
  dirty_nodes.clear();
  dirty_config_maps.clear();
  everything = discovery_dirty = policies_dirty = false;
}

void FleetIndex::Impl::assess(const AssessContext& context, const std::string& name) {
  if (const auto quiet = quiet_changes.find(name); quiet != quiet_changes.end()) quiet->second.until = {};
  const auto known = nodes.find(name);
  if (known != nodes.end()) count(name, known->second, -1);
  IndexedNode next;
  if (const Node* seen = context.world.nodes.find(name)) {
    const std::optional<Node> written = with_change_being_written(context.world, *seen);
    const Node& node = written ? *written : *seen;
    const std::vector<const Pod*> pods = pods_of(name);
    next.assessment = assess_node(context, node, pods, {kai.use_of(name), dra.class_of(name)});
    next.share = share_of(context, node, next.assessment ? &*next.assessment : nullptr, pods, marks_);
  }
  if (!next.assessment || !next.assessment->change) quiet_changes.erase(name);
  if (next.assessment || !next.share.empty()) {
    count(name, next, 1);
    nodes.insert_or_assign(Interned(name), std::move(next));
  } else if (known != nodes.end()) {
    nodes.erase(known);
  }
}

namespace {

// Counts are removed when they become zero, sets when they become empty.
template <class Map, class Key>
void add_count(Map& counts, const Key& key, std::int64_t sign) {
  const auto at = counts.try_emplace(key, 0).first;
  if ((at->second += sign) == 0) counts.erase(at);
}

template <class Set, class Value>
void put(Set& names, const Value& name, std::int64_t sign) {
  if (sign > 0)
    names.insert(name);
  else
    names.erase(name);
}

template <class Map, class Key>
void put_under(Map& sets, const Key& key, const std::string& name, std::int64_t sign) {
  const auto at = sets.try_emplace(key).first;
  put(at->second, name, sign);
  if (at->second.empty()) sets.erase(at);
}

}  // namespace

void ShownSums::add(const std::string& name, const NodeAssessment& a, std::int64_t sign) {
  const std::string state(state_name(a));
  add_count(states, state, sign);
  const auto profile = profiles.try_emplace(std::string(a.profile_ref.view())).first;
  add_count(profile->second, state, sign);
  if (profile->second.empty()) profiles.erase(profile);
  if (drifts(a) && a.at_install == AtInstall::shown) put(drifting, name, sign);
  const Phase phase = phase_of(a);
  if (phase == Phase::failed) put(failed, name, sign);
  if (phase == Phase::blocked || phase == Phase::held) put_under(reasons, std::string(shown_reason(a)), name, sign);
}

void FleetIndex::Impl::count(const std::string& name, const IndexedNode& node, std::int64_t sign) {
  const NodeShare& share = node.share;
  for (std::size_t i = 0; i < kBuckets; ++i)
    if (share.buckets.has(static_cast<Bucket>(i))) put(buckets_[i], name, sign);
  cluster.add(share.counts, sign);
  if (share.mark && sign > 0) mps_work.insert_or_assign(name, *share.mark);
  if (share.mark && sign < 0) mps_work.erase(name);
  if (share.abandoned && sign > 0) abandoned.insert_or_assign(name, *share.abandoned);
  if (share.abandoned && sign < 0) abandoned.erase(name);
  for (const Interned& policy : share.left_to_nos_by) put_under(left_to_nos, std::string(policy.view()), name, sign);
  if (!share.unserved_by.empty()) count_unserved(name, share, sign);
  if (node.assessment) shown.add(name, *node.assessment, sign);
  if (!node.assessment || node.assessment->phase == Phase::unmanaged) return;
  cluster.add(node.assessment->phase, sign);
  count_in_fleet(name, *node.assessment, sign);
  count_in_rollout(name, share, *node.assessment, sign);
}

void FleetIndex::Impl::count_unserved(const std::string& name, const NodeShare& share, std::int64_t sign) {
  const auto at = unserved.try_emplace(std::string(share.unserved_by.view())).first;
  at->second.total += sign;
  if (share.buckets.has(Bucket::busy)) put(at->second.busy, name, sign);
  if (at->second.total == 0) unserved.erase(at);
}

void FleetIndex::Impl::count_in_fleet(const std::string& name, const NodeAssessment& assessment, std::int64_t sign) {
  const PluginInstallation& installation = installation_of(assessment);
  if (const Interned& profile = assessment.loaded.profile; !profile.empty()) {
    std::string id = installation.ns;
    id.append("/").append(profile.view());
    add_count(loaded, id, sign);
  }
  if (!assessment.label_by.empty()) add_count(labelled, std::string(assessment.label_by.view()), sign);
  for (const Interned& loser : assessment.losers)
    add_count(overlaps, std::pair(std::string(loser.view()), std::string(assessment.policy.view())), sign);
  for (const Interned& policy : assessment.awaited_by) put_under(awaited, std::string(policy.view()), name, sign);
  if (assessment.setup && !assessment.setup->empty()) {
    const std::string blocked = assessment.is_blocked() ? assessment.obstacle.code : std::string();
    put_under(setups, SetupKey{assessment.setup, installation.id(), blocked}, name, sign);
  }
}

void FleetIndex::Impl::count_in_rollout(const std::string& name, const NodeShare& share,
                                        const NodeAssessment& assessment, std::int64_t sign) {
  const auto found_rollout = profile_rollouts.try_emplace(rollout_key_of(assessment)).first;
  ProfileRollout& profile_rollout = found_rollout->second;
  const auto group_at = profile_rollout.groups.try_emplace(std::string(assessment.product.view())).first;
  Group& group = group_at->second;
  const auto policy_at = policies.try_emplace(std::string(assessment.policy.view())).first;
  add_count(profile_rollout.installations, assessment.installation, sign);
  for (const auto& [installation, count] : profile_rollout.installations) {
    const bool known = profile_rollout.installations.contains(profile_rollout.installation);
    if (!known || speaks_for(installation, profile_rollout.installation)) profile_rollout.installation = installation;
  }
  for (Tally* tally : {&profile_rollout.tally, &group.tally, &policy_at->second}) {
    tally->add(share.counts, sign);
    tally->add(assessment.phase, sign);
  }
  for (std::size_t i = 0; i < kRolloutBuckets; ++i)
    if (share.buckets.has(static_cast<RolloutBucket>(i))) put(profile_rollout.buckets[i], name, sign);
  if (share.pending) put(group.pending, std::pair(*share.pending, name), sign);
  if (assessment.is_blocked() && !assessment.obstacle.code.empty())
    put_under(profile_rollout.blocked, assessment.obstacle.code, name, sign);
  add_count(profile_rollout.targets, std::string(assessment.target.view()), sign);
  if (group.tally.total == 0) profile_rollout.groups.erase(group_at);
  if (profile_rollout.tally.total == 0) profile_rollouts.erase(found_rollout);
  if (policy_at->second.total == 0) policies.erase(policy_at);
}

}  // namespace gso
