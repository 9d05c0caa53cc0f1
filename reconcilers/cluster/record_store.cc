#include "reconcilers/cluster/record_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/model/labels.h"

namespace gso {

bool sharing_objects_unread(const World& world) {
  return world.policies_served && !(world.policies.synced() && world.rollouts.synced());
}

bool record_unread(const World& world, const PlannerSettings& settings) {
  const bool unread = world.unsynced_namespaces.contains(settings.operator_namespace);
  // Another scope of that namespace can be the one that is missing.
  const ObjectKey record{settings.operator_namespace, settings.state_config_map};
  return unread && world.configmaps.find(record) == nullptr;
}

std::string unread_decisions(const World& world, const PlannerSettings& settings) {
  std::string out;
  if (record_unread(world, settings))
    out = fmt::format(
        "States of nodes not checked: the operator's record, ConfigMap {}/{}, cannot be read. Grant list on it",
        settings.operator_namespace, settings.state_config_map);
  if (!sharing_objects_unread(world)) return out;
  return fmt::format(
      "{}{}Policies and stopped rollouts not checked: SharingPolicies and SharingRollouts cannot be "
      "read. Grant list on them",
      out, out.empty() ? "" : ". ");
}

namespace {

std::shared_ptr<const std::string> text_in(const World& world, const k8s::ObjectKey& config_map, std::string_view key) {
  return key_text(world.configmaps.find(config_map), key);
}

bool same(const std::shared_ptr<const std::string>& a, const std::shared_ptr<const std::string>& b) {
  return a == b || (a && b && *a == *b);
}

WriteConfigMap write_of(const k8s::ObjectKey& config_map, std::string_view key, std::string text) {
  return {config_map, {{std::string(key), std::move(text)}}, {}};
}

// The shards whose content differs from the wanted one. `taking`: a baseline is being written; shards already written
// for it are kept, because otherwise the baseline of a changing fleet would never complete.
std::vector<WriteConfigMap> shard_writes(const FleetRecord& next, const World& world, const k8s::ObjectKey& state,
                                         const FleetRecord* present, bool taking) {
  std::vector<WriteConfigMap> out;
  for (std::size_t i = 0; i < MachineRecords::kShards; ++i) {
    if (present != nullptr && next.machines.shares(i, present->machines)) continue;
    const auto there = text_in(world, shard_key(state, i), kShardKey);
    if (taking && there && parse_shard(*there, i, next.recorded_at)) continue;
    std::string text = print_shard(next.machines.shard(i), i, next.recorded_at);
    if (!there || *there != text) out.push_back(write_of(shard_key(state, i), kShardKey, std::move(text)));
  }
  return out;
}

}  // namespace

k8s::ObjectKey state_key(const PlannerSettings& settings) {
  return {settings.operator_namespace, settings.state_config_map};
}

k8s::ObjectKey shard_key(const k8s::ObjectKey& state, std::size_t index) {
  return {state.ns, fmt::format("{}-{}", state.name, index)};
}

std::vector<k8s::ObjectKey> state_keys(const k8s::ObjectKey& state) {
  std::vector<k8s::ObjectKey> out{state};
  for (std::size_t i = 0; i < MachineRecords::kShards; ++i) out.push_back(shard_key(state, i));
  return out;
}

bool is_shard(const k8s::ObjectKey& state, const k8s::ObjectKey& config_map) {
  if (config_map.ns != state.ns || !config_map.name.starts_with(state.name + "-")) return false;
  const std::vector<k8s::ObjectKey> all = state_keys(state);
  return std::ranges::find(all, config_map) != all.end();
}

bool RecordStore::read(const World& world, const PlannerSettings& settings) {
  const k8s::ObjectKey state = state_key(settings);
  const ConfigMap* head = world.configmaps.find(state);
  std::string forget;
  if (head != nullptr) forget = head->meta.annotations.get(kForgetPoliciesAnnotation).value_or("");
  bool changed = std::exchange(first_, false) || forget != forget_text_;
  forget_text_ = std::move(forget);
  Text text = text_in(world, state, kRecordKey);
  if (!same(text, head_text_)) changed = true;
  head_text_ = std::move(text);
  for (std::size_t i = 0; i < MachineRecords::kShards; ++i) {
    Text part = text_in(world, shard_key(state, i), kShardKey);
    if (!same(part, shard_texts_[i])) {
      changed = true;
      shards_[i].reset();
    }
    shard_texts_[i] = std::move(part);
  }
  if (changed) assemble(state);
  return changed;
}

// A value that the record does not have yet is new in this pass: no stop in the record is younger.
std::optional<k8s::WallTime> RecordStore::forget_until() const {
  const auto until = k8s::parse_rfc3339(forget_text_);
  if (!until || !record_ || !record_->forgetting || record_->forgetting->value != forget_text_) return until;
  return std::min(*until, record_->forgetting->seen);
}

void RecordStore::fail(const k8s::ObjectKey& config_map, std::string what) {
  record_.reset();
  problem_in_ = config_map;
  problem_ = std::move(what);
}

void RecordStore::assemble(const k8s::ObjectKey& state) {
  record_.reset();
  begun_.reset();
  problem_.clear();
  const auto repair = [&] {
    return fmt::format(
        "Restore it from a backup, with its labels. Or delete the whole record: `kubectl delete configmap --namespace "
        "{0} {1}` and `kubectl delete configmap --namespace {0} --selector {2}={3}`. The operator then records a new "
        "baseline and restarts no pod; rollout stops that only the record holds are lost",
        state.ns, state.name, kRecordLabel, kRecordShardValue);
  };
  if (head_text_ == nullptr) {
    const auto left = std::ranges::find_if(shard_texts_, [](const Text& text) { return text != nullptr; });
    if (left == shard_texts_.end()) return;
    return fail(
        state,
        fmt::format("{} is missing, but {} exists. {}", kRecordKey,
                    k8s::to_string(shard_key(state, static_cast<std::size_t>(left - shard_texts_.begin()))), repair()));
  }
  auto head = parse_head(*head_text_);
  if (!head) return fail(state, head.error().message);
  if (head->begun) {
    begun_ = std::move(head->record);
    return;
  }
  record_ = std::move(head->record);
  if (!head->sharded) return;
  // Shards belong to one baseline: with another head, also those whose texts are the same must be read again.
  if (shards_of_ != record_->recorded_at) shards_ = {};
  shards_of_ = record_->recorded_at;
  for (std::size_t i = 0; i < MachineRecords::kShards; ++i) {
    if (shard_texts_[i] == nullptr)
      return fail(shard_key(state, i), fmt::format("a part of the record is missing. {}", repair()));
    if (!shards_[i]) {
      auto parsed = parse_shard(*shard_texts_[i], i, record_->recorded_at);
      if (!parsed) return fail(shard_key(state, i), fmt::format("{}. {}", parsed.error().message, repair()));
      shards_[i] = *std::move(parsed);
    }
    record_->machines.replace_shard(i, shards_[i]);
  }
}

WriteConfigMap write_state(const PlannerSettings& settings, std::map<std::string, std::string> keys) {
  return {state_key(settings), std::move(keys), {}};
}

std::vector<WriteConfigMap> record_writes(const FleetRecord& next, const World& world, const PlannerSettings& settings,
                                          const FleetRecord* present) {
  const k8s::ObjectKey state = state_key(settings);
  const auto text = text_in(world, state, kRecordKey);
  const auto head_now = text ? parse_head(*text) : k8s::Result<RecordHead>(RecordHead{});
  const bool none = text == nullptr;
  const bool is_sharded = head_now && head_now->sharded;
  const bool taking = head_now && head_now->begun;
  const bool sharded = is_sharded || taking || next.machines.size() > kMostInlined;
  const auto write_head = [&](bool in_shards, bool begun) {
    std::vector<WriteConfigMap> out;
    std::string head = print_head({next, in_shards, begun});
    if (!text || *text != head) out.push_back(write_of(state, kRecordKey, std::move(head)));
    return out;
  };
  if (!sharded) return write_head(false, false);
  if (none) return write_head(false, true);
  std::vector<WriteConfigMap> out = shard_writes(next, world, state, is_sharded && !taking ? present : nullptr, taking);
  // If the head already says that the machines are in shards, one pass writes both, because each entry is independent.
  if (!out.empty() && !is_sharded) return out;
  std::vector<WriteConfigMap> head = write_head(true, false);
  out.insert(out.end(), std::make_move_iterator(head.begin()), std::make_move_iterator(head.end()));
  return out;
}

}  // namespace gso
