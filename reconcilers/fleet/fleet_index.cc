// FleetIndex: follows the stores, re-assesses what changed, keeps the sums.
#include "reconcilers/fleet/fleet_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/kai_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/ailments.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

FleetIndex::FleetIndex() : impl_(std::make_unique<Impl>()) {}
FleetIndex::~FleetIndex() = default;

void FleetIndex::attach(World& world) {
  world.nodes.add_listener([this](const ObjectKey& key, const auto&, const auto&) { note_node_changed(key.name); });
  world.operand_pods.add_listener(
      [this](const ObjectKey&, const auto& before, const auto& after) { note_pod_changed(before, after); });
  world.configmaps.add_listener(
      [this](const ObjectKey& key, const auto&, const auto&) { note_configmap_changed(key); });
  world.daemonsets.add_listener([this](const ObjectKey&, const auto&, const auto&) { note_discovery_changed(); });
  world.revisions.add_listener([this](const ObjectKey&, const auto&, const auto&) { note_discovery_changed(); });
  world.clusterpolicies.add_listener([this](const ObjectKey&, const auto&, const auto&) { note_discovery_changed(); });
  world.gpu_clusters.add_listener([this](const ObjectKey&, const auto&, const auto&) { note_discovery_changed(); });
  world.policies.add_listener([this](const ObjectKey&, const auto&, const auto&) { note_policies_changed(); });
  impl_->kai.attach(world);
  note_everything_changed();
}

// While everything is to be looked at, nothing needs to be remembered: that keeps the first list of a fleet small.
void FleetIndex::note_node_changed(const std::string& name) {
  if (!impl_->everything) impl_->dirty_nodes.insert(name);
}
void FleetIndex::note_pod_changed(const std::shared_ptr<const Pod>& before, const std::shared_ptr<const Pod>& after) {
  if (!impl_->everything) impl_->index_pod(before.get(), after);
}
void FleetIndex::note_configmap_changed(const ObjectKey& config_map) {
  if (!impl_->everything) impl_->dirty_config_maps.insert(config_map);
}
void FleetIndex::note_discovery_changed() {
  impl_->discovery_dirty = true;
}
void FleetIndex::note_policies_changed() {
  impl_->policies_dirty = true;
}
void FleetIndex::note_everything_changed() {
  impl_->everything = true;
  impl_->kai.note_everything_changed();
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
  for (const auto& [name, assessment] : impl_->nodes) out.push_back(name);
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> FleetIndex::abandoned_nodes() const {
  std::vector<std::string> out;
  for (const auto& [name, busy] : impl_->abandoned) out.push_back(name);
  return out;
}

const std::vector<OperandSet>& FleetIndex::operand_sets() const {
  return impl_->discovery.sets;
}

const NodeAssessment* FleetIndex::Impl::find(std::string_view node) const {
  auto it = nodes.find(std::string(node));
  return it == nodes.end() ? nullptr : &it->second;
}

const SharingPolicy& FleetIndex::Impl::policy(const World& world, std::string_view name) const {
  const SharingPolicy* found = world.policies.find(name);
  return found ? *found : built_in_policy;
}

std::vector<const Pod*> FleetIndex::Impl::pods_of(std::string_view node) const {
  std::vector<const Pod*> out;
  auto it = pods_by_node_.find(std::string(node));
  if (it == pods_by_node_.end()) return out;
  out.reserve(it->second.size());
  for (const PodPtr& pod : it->second) out.push_back(pod.get());
  return out;
}

void FleetIndex::Impl::reset() {
  nodes.clear();
  units.clear();
  policies.clear();
  cluster = {};
  loaded.clear();
  labelled.clear();
  overlaps.clear();
  setups.clear();
  setups_.clear();
  for (auto* names : {&unavailable, &in_flight, &failed, &to_record, &following, &written_blocked, &stale, &first_seen,
                      &drifting, &breaking, &unhealthy, &label_work, &unwritable, &releases, &ailing, &contested}) {
    names->clear();
  }
  abandoned.clear();
  mps_work.clear();
  quiet_flights.clear();
  pods_by_node_.clear();
}

void FleetIndex::Impl::index_pod(const Pod* before, const PodPtr& after) {
  if (before != nullptr && !before->node_name.empty()) {
    const std::string node(before->node_name.view());
    dirty_nodes.insert(node);
    auto here = pods_by_node_.find(node);
    if (here != pods_by_node_.end()) {
      std::erase_if(here->second, [before](const PodPtr& pod) {
        return pod->meta.name == before->meta.name && pod->meta.ns == before->meta.ns;
      });
      if (here->second.empty()) pods_by_node_.erase(here);
    }
  }
  if (after == nullptr || after->node_name.empty()) return;
  std::string node(after->node_name.view());
  pods_by_node_[node].push_back(after);
  dirty_nodes.insert(std::move(node));
}

void FleetIndex::Impl::read_record(const World& world, const PlannerSettings& settings) {
  const ConfigMap* state = world.configmaps.find({settings.operator_namespace, settings.state_config_map});
  std::shared_ptr<const std::string> held;
  if (state) {
    auto it = state->data.find(std::string(kRecordKey));
    if (it != state->data.end()) held = it->second;
  }
  const std::string_view text = held ? std::string_view(*held) : std::string_view();
  if (text == (record_text_ ? std::string_view(*record_text_) : std::string_view()) && !everything) return;
  record_text_ = held;
  auto parsed = text.empty() ? k8s::Result<FleetRecord>(FleetRecord{}) : parse_record(text);
  record_problem = parsed ? "" : parsed.error().message;
  std::optional<FleetRecord> next;
  if (!text.empty() && parsed) next = std::move(*parsed);
  // `verified` alone changes no node's assessment.
  const bool same = record.has_value() == next.has_value() &&
                    (!next || (record->nodes == next->nodes && record->gpus == next->gpus &&
                               record->unproven == next->unproven && record->failures == next->failures &&
                               record->good == next->good && record->preexisting_drift == next->preexisting_drift));
  record = std::move(next);
  if (!same) everything = true;
}

void FleetIndex::Impl::rediscover(const World& world) {
  Discovery next = discover(world);
  if (next == discovery) return;
  discovery = std::move(next);
  everything = true;
}

// Everything that a restarted pod would load or do differently: the ConfigMap's data, the templates, what is announced.
// Sets that mount one ConfigMap have one signature: a unit is of all of them.
void FleetIndex::Impl::sign_sets(const World& world) {
  std::map<std::string, std::string> texts;
  for (const OperandSet& set : discovery.sets) {
    std::string& text = texts[set.id()];
    text += fmt::format("{}|{}|{}|{}", set.clusterpolicy_generation, set.announced, set.announced_config_map,
                        set.announced_default);
    for (const Operand& operand : set.operands) text += fmt::format("|{}:{}", operand.uid, operand.generation);
    if (const ConfigMap* config_map = world.configmaps.find(set.config_map_key())) {
      for (const auto& [key, value] : config_map->data) text += fmt::format("|{}={}", key, value ? *value : "");
    }
  }
  signatures.clear();
  for (const OperandSet& set : discovery.sets) signatures.push_back(short_hash(texts.at(set.id())));
}

// Of sets that mount one ConfigMap: the GPU Operator's, which something may be announced to, else the first. Never by
// turns: what has held of one would begin anew with the other.
bool FleetIndex::Impl::speaks_for(std::size_t set, std::size_t other) const {
  const bool operators = discovery.sets[set].provider == Provider::gpu_operator;
  const bool others = discovery.sets[other].provider == Provider::gpu_operator;
  return operators != others ? operators : set < other;
}

void FleetIndex::Impl::refresh(const World& world, const PlannerSettings& settings) {
  built_in_policy.meta.name = kDefaultPolicy;
  built_in_policy.mode = settings.mode;
  if (built_in_policy.rollout != settings.rollout) built_in_policy.rollout = settings.rollout;
  kai.refresh(world, settings);
  for (std::string& name : kai.take_changed_nodes()) dirty_nodes.insert(std::move(name));
  const bool marks = marks_mps_nodes(settings, kai.view().served);
  everything = everything || marks != marks_;
  marks_ = marks;
  const bool config_maps_changed = everything || !dirty_config_maps.empty();
  if (discovery_dirty || everything) rediscover(world);
  if (config_maps_changed) read_record(world, settings);
  if (config_maps_changed || discovery_dirty || everything) sign_sets(world);
  ordered_policies_ = policies_in_order(world, built_in_policy);
  if (policies_dirty || everything) {
    std::vector<SharingPolicy> seen;
    for (const SharingPolicy* policy : ordered_policies_) {
      seen.push_back(*policy);
      seen.back().status_json.clear();
      seen.back().meta.resource_version.clear();
    }
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
      for (const auto& [name, assessment] : nodes) {
        const OperandSet& set = set_of(assessment);
        const bool uses = set.ns == config_map.ns &&
                          (set.config_map == config_map.name || set.announced_config_map == config_map.name);
        if (uses) dirty_nodes.insert(name);
      }
    }
  }
  const AssessContext context{world, settings,      discovery.sets,   ordered_policies_, record ? &*record : nullptr,
                              book,  expectations_, discovery.strays, setups_,           &kai};
  for (const std::string& name : dirty_nodes) assess(context, name);
  dirty_nodes.clear();
  dirty_config_maps.clear();
  everything = discovery_dirty = policies_dirty = false;
}

void FleetIndex::Impl::assess(const AssessContext& context, const std::string& name) {
  remove(name);
  const Node* node = context.world.nodes.find(name);
  const std::vector<const Pod*> pods = pods_of(name);
  auto assessment = node ? assess_node(context, *node, pods) : std::nullopt;
  if (!assessment || !assessment->flight) quiet_flights.erase(name);
  if (node == nullptr) return;
  if (record && assessment && assessment->loaded.proof == Proof::annotation) record->forget(name);
  compare_mark(context, *node, assessment ? &*assessment : nullptr);
  if (!assessment || assessment->situation == Situation::unmanaged) note_abandoned(*node);
  if (!assessment) return;
  add(name, *assessment, *node);
  if (!assessment->other_plugins.empty()) contested.insert(name);
  if (!assessment->pods_ready && may_be_ailing(pods)) ailing.insert(name);
  if (!label_change(*node, *assessment, context.settings).empty()) label_work.insert(name);
  if (assessment->expectation && !assessment->expectation->dropped_labels.empty() &&
      labels_are_ours(assessment->has_labeller(), context.settings)) {
    unwritable.insert(name);
  }
  nodes.insert_or_assign(name, std::move(*assessment));
}

// Out of service or half-way, it keeps its slot in the cluster's budget until its marks are off.
void FleetIndex::Impl::note_abandoned(const Node& node) {
  if (!carries_change(node)) return;
  const bool busy =
      node.meta.annotations.contains(kTargetAnnotation) || node.meta.annotations.contains(kCordonedAnnotation);
  abandoned.emplace(node.meta.name, busy);
  if (!busy) return;
  ++cluster.total;
  ++cluster.busy;
  unavailable.insert(node.meta.name);
}

void FleetIndex::Impl::compare_mark(const AssessContext& context, const Node& node, const NodeAssessment* assessment) {
  if (!marks_) {
    // Switched off: what is ours goes. (Where KAI is away for a moment, it stays.)
    const bool takes_back = context.settings.kai.mps_ready == MpsReadyMode::off &&
                            context.settings.label_mode != PlannerSettings::LabelMode::verify;
    if (takes_back && mps_mark(node, MpsDaemon::down) == MpsMark::to_remove) {
      mps_work.emplace(node.meta.name, MpsMark::to_remove);
    }
    return;
  }
  const std::vector<const Pod*> pods = pods_of(node.meta.name);
  const OperandSet* set = assessment ? &context.sets[assessment->set] : nullptr;
  const MpsMark mark = mps_mark(node, mps_daemon_on(node, assessment, set, pods));
  if (mark != MpsMark::right) mps_work.emplace(node.meta.name, mark);
}

namespace {
UnitKey unit_key_of(const NodeAssessment& a) {
  return {std::string(a.policy.view()), std::string(a.counted.set.view()), std::string(a.key.view())};
}
}  // namespace

namespace {
// Nobody waits for such a node, nor judges a revision by it.
bool is_set_aside(const NodeAssessment& a, bool foreign) {
  const bool counted = is_settled(a) || a.flight != nullptr || a.situation == Situation::blocked;
  return !counted && (a.held || !a.ready || foreign);
}

SetupKey setup_key_of(const NodeAssessment& a) {
  const bool blocked = a.situation == Situation::blocked;
  return {a.setup, std::string(a.counted.set.view()), blocked ? std::string(a.reason) : std::string()};
}
}  // namespace

void FleetIndex::Impl::add(const std::string& name, NodeAssessment& a, const Node& node) {
  if (a.situation == Situation::first_seen) first_seen.insert(name);
  if (a.situation == Situation::unmanaged) return;
  if (a.stale_state) stale.insert(name);
  Counted& share = a.counted;
  share.set = Interned(set_of(a).id());
  share.busy = a.unavailable || a.flight != nullptr;
  share.settled = is_settled(a);
  const bool foreign = !foreign_holder(node, set_of(a)).empty();
  const bool excused = !a.ready || a.held || a.drift_at_install || foreign;
  share.unwell = a.situation == Situation::current && !share.settled && !excused;
  share.new_template = a.situation == Situation::change && a.way == WayIn::on_delete;
  if (!a.loaded.profile.empty()) share.loaded = Interned(fmt::format("{}/{}", set_of(a).ns, a.loaded.profile.view()));
  const UnitKey unit_key = unit_key_of(a);
  if (!share.loaded.empty()) ++loaded[std::string(share.loaded.view())];
  if (!a.label_by.empty()) ++labelled[std::string(a.label_by.view())];
  for (const Interned& loser : a.losers) ++overlaps[{std::string(loser.view()), unit_key.policy}];
  if (a.releases && !a.flight && !a.held) releases.insert(name);
  Unit& unit = units[unit_key];
  Group& group = unit.groups[std::string(a.product.view())];
  if (unit.total == 0 || speaks_for(a.set, unit.set)) unit.set = a.set;
  ++unit.total;
  ++unit.counts[a.situation];
  ++unit.targets[std::string(a.target.view())];
  ++group.total;
  Sums& policy = policies[unit_key.policy];
  ++policy.total;
  ++cluster.total;
  if (share.busy) {
    ++group.busy;
    ++policy.busy;
    ++cluster.busy;
  }
  if (share.settled) ++group.settled;
  if (share.unwell) ++group.unwell;
  if (a.held) ++unit.held;
  if (is_set_aside(a, foreign)) unit.set_aside.insert(name);
  if (a.situation == Situation::in_flight && (a.held || foreign)) unit.stuck.insert(name);
  if (share.new_template) ++unit.new_template;
  if (a.unavailable && !a.flight) unavailable.insert(name);
  switch (a.situation) {
    case Situation::change:
      group.pending.emplace(!share.busy, name);
      break;
    case Situation::in_flight:
      in_flight.insert(name);
      break;
    case Situation::failed:
      failed.insert(name);
      break;
    case Situation::to_record:
      to_record.insert(name);
      break;
    case Situation::following:
      following.insert(name);
      break;
    case Situation::blocked:
      unit.blocked[std::string(a.reason)].insert(name);
      break;
    default:
      break;
  }
  if (a.flight && a.flight->failed) unit.failed.insert(name);
  const auto says_blocked = [&] {
    return node.meta.labels.get(kStateLabel) == kStateBlocked && has_message(node, a.message);
  };
  if (a.situation == Situation::blocked && a.write_blocked && !says_blocked()) written_blocked.insert(name);
  if (share.unwell) drifting.insert(name);
  if (a.situation == Situation::current && is_sick(a) && a.ready && !a.held) unhealthy.insert(name);
  if (!a.would_break.empty()) breaking.insert(name);
  if (a.setup && !a.setup->empty()) setups[setup_key_of(a)].insert(name);
}

void FleetIndex::Impl::remove(const std::string& name) {
  for (auto* names : {&unavailable, &in_flight, &failed, &to_record, &following, &written_blocked, &stale, &first_seen,
                      &drifting, &breaking, &unhealthy, &label_work, &unwritable, &releases, &ailing, &contested}) {
    names->erase(name);
  }
  mps_work.erase(name);
  if (const auto quiet = quiet_flights.find(name); quiet != quiet_flights.end()) quiet->second.until = {};
  if (const auto left = abandoned.find(name); left != abandoned.end()) {
    cluster.total -= left->second ? 1 : 0;
    cluster.busy -= left->second ? 1 : 0;
    abandoned.erase(left);
  }
  const auto before = nodes.extract(name);
  if (before.empty() || before.mapped().counted.set.empty()) return;
  const NodeAssessment& a = before.mapped();
  const Counted& share = a.counted;
  const UnitKey unit_key = unit_key_of(a);
  auto unit_at = units.find(unit_key);
  Unit& unit = unit_at->second;
  auto group_at = unit.groups.find(std::string(a.product.view()));
  Group& group = group_at->second;
  auto drop = [](auto& map, const auto& key) {
    if (auto entry = map.find(key); entry != map.end() && --entry->second == 0) map.erase(entry);
  };
  auto policy_at = policies.find(unit_key.policy);
  if (!share.loaded.empty()) drop(loaded, std::string(share.loaded.view()));
  if (!a.label_by.empty()) drop(labelled, std::string(a.label_by.view()));
  for (const Interned& loser : a.losers) drop(overlaps, std::pair(std::string(loser.view()), unit_key.policy));
  --unit.total;
  --group.total;
  --policy_at->second.total;
  --cluster.total;
  if (share.busy) {
    --group.busy;
    --policy_at->second.busy;
    --cluster.busy;
  }
  if (share.settled) --group.settled;
  if (share.unwell) --group.unwell;
  if (a.held) --unit.held;
  unit.set_aside.erase(name);
  unit.stuck.erase(name);
  if (share.new_template) --unit.new_template;
  drop(unit.counts, a.situation);
  drop(unit.targets, std::string(a.target.view()));
  unit.failed.erase(name);
  group.pending.erase({!share.busy, name});
  if (auto blocked = unit.blocked.find(std::string(a.reason)); blocked != unit.blocked.end()) {
    blocked->second.erase(name);
    if (blocked->second.empty()) unit.blocked.erase(blocked);
  }
  if (auto setup = a.setup ? setups.find(setup_key_of(a)) : setups.end(); setup != setups.end()) {
    setup->second.erase(name);
    if (setup->second.empty()) setups.erase(setup);
  }
  if (group.total == 0) unit.groups.erase(group_at);
  if (unit.total == 0) units.erase(unit_at);
  if (policy_at->second.total == 0) policies.erase(policy_at);
}

}  // namespace gso
