#include "reconcilers/rollout/stops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

std::string retry_of(const Pass& pass, const std::string& policy) {
  return std::string(gso::retry_of(pass.index.policy(pass.s.world, policy)));
}

// The templates for which the object's switches are set: those that were the newest when a person last approved or
// aborted, or, if only a pause is on, when it was first seen. An entry of an earlier release has none and gets none,
// because the templates might have changed since.
std::map<std::string, std::string> templates_for(const Pass& pass, const SharingRollout& rollout,
                                                 const RecordedSwitches* known) {
  const bool decides =
      known == nullptr || (rollout.approved && !known->approved) || (rollout.aborted && !known->aborted);
  if (!decides) return known->templates;
  const auto nodes = pass.index.profile_rollouts.find(rollout_key_of(rollout));
  if (nodes == pass.index.profile_rollouts.end()) return {};
  return templates_of(pass.index.discovery.installations[nodes->second.installation]);
}

// The object's switches, combined with what the record has of them already.
RecordedSwitches switches_in(const Pass& pass, const SharingRollout& rollout, const RecordedSwitches* known) {
  const SharingPolicy& policy = pass.index.policy(pass.s.world, rollout.policy);
  const std::string retry(gso::retry_of(policy));
  const bool ends = is_retried(rollout, policy);
  RecordedSwitches out{rollout.policy,
                       rollout.config_map,
                       rollout.key,
                       rollout.to_revision,
                       rollout.paused,
                       rollout.approved,
                       rollout.aborted && !ends,
                       is_undone(rollout) && !ends,
                       false,
                       {},
                       templates_for(pass, rollout, known)};
  const bool holds = known != nullptr && (known->aborted || known->undone) && !asks_again(known->retry, retry);
  if (holds) {
    out.aborted = out.aborted || known->aborted;
    out.undone = out.undone || known->undone;
  }
  if (!out.aborted && !out.undone) return out;
  // Another retry value alone ends no stop that its object still says.
  const bool was_on = known != nullptr && (known->aborted || known->undone);
  out.retry = was_on ? known->retry : retry;
  return out;
}

// The policy, by its own key, would give its nodes a key other than the rollout's. In doubt it would not: after a
// rollback the nodes get an earlier key, and a key that the ConfigMap lacks changes no node.
bool names_other_key(const Pass& pass, const RolloutKey& key, const SharingPolicy& policy,
                     const ConfigMap& config_map) {
  if (policy.config_map_key)
    return *policy.config_map_key != key.key && config_map.data.contains(*policy.config_map_key);
  if (!policy.inline_profile) return false;
  return !owns_key(policy, key) && taken_back(pass.index, policy, key.config_map) == nullptr;
}

// For a policy that governs no node now: another valid revision has replaced this one, according to the policy's own
// key and the ConfigMap's text of the rollout's key.
bool is_replaced(const Pass& pass, const RolloutKey& key, std::string_view revision,
                 const PluginInstallation& installation) {
  const ConfigMap* config_map = pass.s.world.configmaps.find(installation.config_map_key());
  if (config_map == nullptr) return false;
  const SharingPolicy& policy = pass.index.policy(pass.s.world, key.policy);
  // In mode Observe the operator writes no label, so the policy's key is not the nodes' key.
  const bool chooses = pass.s.settings.mode_of(policy) != PolicyMode::observe;
  if (chooses && names_other_key(pass, key, policy, *config_map)) return true;
  if (owns_key(policy, key)) return false;  // The key has the hash of its text.
  const auto text = key_text(config_map, key.key);
  if (!text) return false;
  const std::string present = pass.index.profiles.compile(*text)->revision;
  return is_valid(present) && present != revision;
}

// The DaemonSet whose template the rollout is of; null: it is gone, or the rollout is of a profile.
const Operand* daemonset_in(const Pass& pass, const RolloutKey& key) {
  const auto& all = pass.index.discovery.standalone;
  const auto at = std::ranges::find_if(
      all, [&](const Operand& one) { return daemonset_of(key.config_map) == k8s::to_string(one.key); });
  return at == all.end() ? nullptr : &*at;
}

// What its nodes should run now; empty: it has no nodes, or that is unknown.
std::string present_target(const Pass& pass, const RolloutKey& key) {
  const auto at = pass.index.profile_rollouts.find(key);
  if (at != pass.index.profile_rollouts.end()) return target_of(at->second);
  const Operand* daemonset = daemonset_in(pass, key);
  return daemonset == nullptr ? std::string() : daemonset->newest_hash;
}

// Those that are on, and that no retry has lifted.
std::optional<RecordedSwitches> recorded_switches(const Pass& pass, const RolloutKey& key, const std::string& target) {
  if (!pass.index.record) return std::nullopt;
  return pass.index.record->switches(key.policy, key.config_map, key.key, target, retry_of(pass, key.policy));
}

bool is_left_template(const Pass& pass, const RolloutKey& key, std::string_view revision) {
  const std::string_view name = daemonset_of(key.config_map);
  const Operand* daemonset = daemonset_in(pass, key);
  if (daemonset != nullptr) return !daemonset->newest_hash.empty() && daemonset->newest_hash != revision;
  return !pass.s.world.unsynced_namespaces.contains(std::string(name.substr(0, name.find('/'))));
}

}  // namespace

bool is_valid(std::string_view target) {
  return !target.empty() && target != kInvalidRevision;
}

bool is_left(const Pass& pass, const RolloutKey& key, std::string_view revision) {
  if (!daemonset_of(key.config_map).empty()) return is_left_template(pass, key, revision);
  const auto& profile_rollouts = pass.index.profile_rollouts;
  const auto at = profile_rollouts.find(key);
  if (at != profile_rollouts.end()) {
    const std::string target = target_of(at->second);
    return target != revision && is_valid(target);
  }
  const auto uses_it = [&](const auto& profile_rollout) {
    return profile_rollout.first.config_map == key.config_map &&
           !pass.s.world.unsynced_namespaces.contains(
               pass.index.discovery.installations[profile_rollout.second.installation].ns);
  };
  const auto other = std::ranges::find_if(profile_rollouts, uses_it);
  if (other == profile_rollouts.end()) return false;
  // Nodes that have lost the labels by which the policy selects them will return. So might nodes that are away, or on
  // another key by their label, of a policy that chooses no key itself.
  const SharingPolicy& policy = pass.index.policy(pass.s.world, key.policy);
  const bool has_moved = std::ranges::any_of(profile_rollouts, [&](const auto& profile_rollout) {
    return profile_rollout.first.policy == key.policy && uses_it(profile_rollout);
  });
  const bool chooses = policy.config_map_key || policy.inline_profile;
  if (chooses && has_moved && !pass.index.awaited.contains(key.policy)) return true;
  if (!is_known_policy(pass, key.policy)) return true;
  return is_replaced(pass, key, revision, pass.index.discovery.installations[other->second.installation]);
}

Switches switches_of(const Pass& pass, const RolloutKey& key, const std::string& target,
                     const SharingRollout* rollout) {
  Switches out;
  if (rollout != nullptr) out = {rollout->paused, rollout->approved, rollout->aborted, is_undone(*rollout)};
  const auto kept = recorded_switches(pass, key, target);
  if (!kept) return out;
  out.aborted = out.aborted || kept->aborted;
  out.undone = out.undone || kept->undone;
  if (rollout != nullptr) return out;
  out.paused = kept->paused;
  out.approved = kept->approved && !pass.s.world.policies_served;
  return out;
}

std::optional<RecordedSwitches> switches_to_restore(const Pass& pass, const RolloutKey& key,
                                                    const std::string& target) {
  auto kept = pass.s.world.policies_served ? recorded_switches(pass, key, target) : std::nullopt;
  if (!kept) return std::nullopt;
  kept->approved = false;
  return kept->any() ? kept : std::nullopt;
}

std::vector<RecordedSwitches> update_switches(const Pass& pass, const PolicyUpdate& policies) {
  const World& world = pass.s.world;
  using Subject = std::pair<RolloutKey, std::string>;  // With the revision.
  std::map<Subject, const RecordedSwitches*> known;
  for (const RecordedSwitches& entry : pass.index.record->rollouts)
    known.emplace(Subject{rollout_key_of(entry), entry.revision}, &entry);
  std::vector<RecordedSwitches> out;
  std::set<Subject> seen;
  for (const SharingRollout* rollout : in_order(world.rollouts)) {
    if (rollout->meta.deletion_timestamp) continue;
    const RolloutKey key = rollout_key_of(*rollout);
    const Subject subject{key, rollout->to_revision};
    seen.insert(subject);
    const auto profile_rollout = pass.index.profile_rollouts.find(key);
    const auto before = known.find(subject);
    const RecordedSwitches* entry_before = before == known.end() ? nullptr : before->second;
    RecordedSwitches entry = switches_in(pass, *rollout, entry_before);
    if (!entry.any()) continue;
    entry.left = (entry_before != nullptr && entry_before->left) || is_left(pass, key, rollout->to_revision);
    const bool has_nodes = !entry.left && profile_rollout != pass.index.profile_rollouts.end();
    // For an attempt that ended before a newer template arrived, or that another revision replaced before a switch was
    // set.
    if (has_nodes && ended_earlier(pass.index, profile_rollout->second, *rollout)) continue;
    // Only the entry shows that the switches are those of another template: it is kept until the object is gone.
    entry.left = entry.left || (has_nodes && is_of_other_templates(pass.index, profile_rollout->second, *rollout));
    out.push_back(std::move(entry));
  }
  for (const auto& [subject, entry] : known) {
    if (seen.contains(subject) || entry->left) continue;
    const std::string target = present_target(pass, subject.first);
    const bool has_policy = policies.policies.contains(entry->policy);
    if (is_valid(target) && target != entry->revision) continue;
    if (policies.forgotten ? !has_policy || !world.policies_served : world.policies_served && !has_policy) continue;
    RecordedSwitches kept = *entry;
    if (asks_again(kept.retry, retry_of(pass, kept.policy))) kept.aborted = kept.undone = false;
    if (world.policies_served) kept.approved = false;  // Deleting the object withdraws the approval.
    if (kept.any()) out.push_back(std::move(kept));
  }
  std::ranges::sort(out);
  return out;
}

bool holds_a_switch(const Pass& pass, const SharingRollout& rollout) {
  const RolloutKey key = rollout_key_of(rollout);
  if (present_target(pass, key) == rollout.to_revision) return true;
  const bool on = rollout.paused || rollout.aborted || is_undone(rollout);
  return on && !is_left(pass, key, rollout.to_revision);
}

namespace {

// The command that clears the stops of policies that are deleted by now.
ObjectRef gone_policy_ref(const std::string& name) {
  return {std::string(kApiVersion), "SharingPolicy", "", name, ""};
}

std::string gone_policy_text(const Pass& pass, const std::string& name) {
  const std::string stop = stops_of(pass.index.policy(pass.s.world, name));
  const bool served = pass.s.world.policies_served;
  // A command that finds no policies can have read files without them: forgetting all stops is not offered then.
  const bool sure = served || pass.s.settings.options_text.has_value();
  return fmt::format(
      "SharingPolicy {} was deleted while it had a stop ({}): the stop still applies to the nodes that it selected. "
      "{} the policy again, or create another policy for these nodes with at least the same priority{}",
      name, stop.empty() ? "a paused or aborted rollout" : stop,
      served ? "Create" : fmt::format("Install the CRDs ({}), then create", kInstallCrds),
      sure ? ". To forget the stops of all deleted policies: " + forget_policies_command(pass.s.settings) : "");
}

// How many nodes wait for the end of the stop; empty: none.
std::string waiting_text(std::int64_t pending, std::int64_t total) {
  if (pending == 0) return {};
  return fmt::format("{} of {} wait{} for the end of this stop: ", pending, counted(total, "node"),
                     pending == 1 ? "s" : "");
}

std::string gone_crds_text(const Pass& pass) {
  std::string names;
  std::size_t shown = 0;
  for (const auto& [name, policy] : pass.index.held_policies) {
    const std::string stop = stops_of(policy);
    if (++shown <= 5)
      names += fmt::format("{}{}{}", names.empty() ? "" : ", ", name, stop.empty() ? "" : " (" + stop + ")");
  }
  if (shown > 5) names += fmt::format(" and {} more", shown - 5);
  // Only the operator certainly looks at a cluster: commands also read files.
  const bool of_operator = pass.s.settings.options_text.has_value();
  return fmt::format(
      "The SharingPolicy/SharingRollout CRDs are not installed in this cluster{}: the last known specs of these "
      "policies apply: {}. Install the CRDs again: {}{}",
      of_operator ? "" : ", or the files that were read contain neither the CRDs nor a SharingPolicy", names,
      kInstallCrds,
      of_operator
          ? fmt::format(". To work without these policies from now on: {}", forget_policies_command(pass.s.settings))
          : "");
}

void find_unreadable_forgetting(Pass& pass) {
  const std::string& text = pass.index.stored.forget_text();
  if (text.empty() || k8s::parse_rfc3339(text)) return;
  pass.finding(Severity::warning, config_map_ref(state_key(pass.s.settings)), "ForgetPoliciesUnreadable",
               fmt::format("annotation {} is \"{}\", which is not a time as in 2026-01-02T03:04:05Z: no stop is "
                           "forgotten. Set it again: {}",
                           kForgetPoliciesAnnotation, shown_value(text), forget_policies_command(pass.s.settings)));
}

}  // namespace

std::string forget_policies_command(const PlannerSettings& settings) {
  return fmt::format("kubectl annotate configmap --namespace {} {} --overwrite {}=$(date -u +%Y-%m-%dT%H:%M:%SZ)",
                     settings.operator_namespace, settings.state_config_map, kForgetPoliciesAnnotation);
}

void report_gone_policy(Pass& pass, const std::string& name) {
  pass.event(gone_policy_ref(name), true, kPolicyGone, "Hold", gone_policy_text(pass, name));
}

void report_gone_crds(Pass& pass) {
  pass.event(config_map_ref(state_key(pass.s.settings)), true, kCrdsGone, "Hold", gone_crds_text(pass));
}

void find_held_policies(Pass& pass) {
  const World& world = pass.s.world;
  if (!pass.index.record) return;
  find_unreadable_forgetting(pass);
  if (sharing_objects_unread(world)) return;  // No policy is known to be gone.
  if (!world.policies_served && !pass.index.held_policies.empty())
    pass.finding(Severity::warning, config_map_ref(state_key(pass.s.settings)), kCrdsGone, gone_crds_text(pass));
  for (const auto& [name, policy] : pass.index.held_policies) {
    const auto nodes = pass.index.policies.find(name);
    if (!policy.gone || nodes == pass.index.policies.end()) continue;
    if (!has_recorded_stop(*pass.index.record, policy)) continue;
    pass.finding(Severity::warning, gone_policy_ref(name), kPolicyGone,
                 fmt::format("{}{}", waiting_text(nodes->second.of(Phase::pending), nodes->second.total),
                             gone_policy_text(pass, name)));
  }
}

bool is_known_policy(const Pass& pass, const std::string& policy) {
  return policy == kDefaultPolicy || pass.s.world.policies.find(policy) != nullptr ||
         pass.index.held_policies.contains(policy);
}

const FleetRecord::Failure* taken_back(const Index& index, const SharingPolicy& policy, std::string_view config_map) {
  if (!policy.inline_profile || !index.record) return nullptr;
  const std::string own = inline_profile_key(policy.meta.name, *policy.inline_profile);
  const std::string_view retry = retry_of(policy);
  const FleetRecord::Failure* last = nullptr;
  for (const FleetRecord::Failure& failure : index.record->failures) {
    const bool of_set = config_map.empty() || failure.config_map == config_map;
    if (failure.rolled_back && failure.policy == policy.meta.name && of_set && failure.key == own &&
        !asks_again(failure.retry, retry))
      last = &failure;
  }
  return last;
}

bool owns_key(const SharingPolicy& policy, const RolloutKey& key) {
  return policy.meta.name == key.policy && policy.inline_profile &&
         inline_profile_key(policy.meta.name, *policy.inline_profile) == key.key;
}

void ensure_object(Pass& pass, const RolloutView& rollout, const std::string& target) {
  constexpr std::size_t kMaxText = 64 << 10;  // A longer profile is left out: the object must fit into etcd.
  const auto text = key_text(pass.s.world.configmaps.find(rollout.installation.config_map_key()), rollout.key.key);
  const bool fits = text && text->size() <= kMaxText;
  ensure_object(pass, rollout.key, target, fits ? std::string_view(*text) : std::string_view());
}

void ensure_object(Pass& pass, const RolloutKey& key, const std::string& target, std::string_view profile) {
  const std::string name = rollout_name(key, target);
  if (!pass.s.world.policies_served || pass.s.world.rollouts.find(name) != nullptr) return;
  if (plans<CreateObject>(pass, [&](const CreateObject& made) { return made.object == rollout_ref(name); })) return;
  const std::string_view daemonset = daemonset_of(key.config_map);
  nlohmann::ordered_json spec = {{"policy", key.policy}};
  spec[daemonset.empty() ? "configMap" : "daemonSet"] = daemonset.empty() ? key.config_map : daemonset;
  spec["key"] = key.key;
  spec["toRevision"] = target;
  if (!profile.empty()) spec["profile"] = profile;
  nlohmann::ordered_json object = {
      {"apiVersion", kApiVersion}, {"kind", "SharingRollout"}, {"metadata", {{"name", name}}}};
  const auto kept = switches_to_restore(pass, key, target);
  if (kept && kept->paused) spec["paused"] = true;
  if (kept && kept->aborted) spec["aborted"] = true;
  if (kept && kept->undone) object["metadata"]["annotations"][std::string(kUndoAnnotation)] = "true";
  object["spec"] = std::move(spec);
  pass.add(CreateObject{rollout_ref(name), dump(object)}, kept ? "RolloutRestored" : "RolloutStarted",
           daemonset.empty() ? fmt::format("Rolling out {} (key {}) to {} under policy {}", key.config_map, key.key,
                                           target, key.policy)
                             : fmt::format("Rolling out {} to {} under policy {}",
                                           describe_subject(key.config_map, key.key), target, key.policy));
}

}  // namespace gso
