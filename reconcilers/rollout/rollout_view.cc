#include "reconcilers/rollout/rollout_view.h"

#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/plan_draft.h"
#include "reconcilers/model/policy.h"

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

RolloutView::RolloutView(Pass& in, const RolloutKey& of, const ProfileRollout& nodes)
    : pass(in),
      key(of),
      profile_rollout(nodes),
      policy(in.index.policy(in.s.world, of.policy)),
      installation(in.index.discovery.installations[nodes.installation]),
      target(target_of(nodes)),
      object(in.s.world.rollouts.find(rollout_name(of, target))),
      anew(object != nullptr &&
           (ended_earlier(in.index, nodes, *object) || is_of_other_templates(in.index, nodes, *object))),
      verified(is_verified(in.index, of, nodes, target)),
      templates(templates_text(installation)) {}

bool RolloutView::is_verified_on(const std::string& product) const {
  return verified && pass.index.record->has_shown(key.config_map, key.key, target, product);
}

std::vector<std::string> assumed_nodes(const RolloutView& rollout) {
  std::vector<std::string> out;
  const auto& record = rollout.pass.index.record;
  const SharingRollout* object = rollout.object;
  const bool lost = object != nullptr && !rollout.anew && object->phase != "Completed" && record &&
                    record->recorded_at >= object->meta.creation_timestamp;
  if (!lost || rollout.profile_rollout.tally.unproven == 0) return out;
  for (const auto& [name, node] : rollout.pass.index.nodes)
    if (node.share.counts.unproven > 0 && node.assessment && rollout.has(*node.assessment))
      out.emplace_back(name.view());
  std::ranges::sort(out);
  return out;
}

std::int64_t RolloutView::repairs_left() const {
  return object == nullptr || has_ended(object->phase) ? 0 : profile_rollout.tally.repairable;
}

bool RolloutView::has(const NodeAssessment& a) const {
  return pass.index.is_of(a, key);
}

std::set<std::string> changing_nodes(const RolloutView& rollout) {
  std::set<std::string> out;
  for (const auto& [name, a] : rollout.nodes_in(Bucket::changing))
    if (a.change && a.change->to == rollout.target) out.insert(name);
  return out;
}

bool RolloutView::has_other_templates(std::string_view then) const {
  return then != templates && gso::has_other_templates(installation, then);
}

RolloutView* RolloutViews::find(const RolloutKey& key) {
  if (const auto known = views_.find(key); known != views_.end()) return &known->second;
  const auto profile_rollout = pass_.index.profile_rollouts.find(key);
  if (profile_rollout == pass_.index.profile_rollouts.end()) return nullptr;
  return &views_.try_emplace(key, pass_, profile_rollout->first, profile_rollout->second).first->second;
}

RolloutView* find_rollout(const Pass& pass, const RolloutKey& key) {
  return pass.rollouts->find(key);
}

RolloutView& rollout_of(const Pass& pass, const RolloutKey& key) {
  return *find_rollout(pass, key);
}

const RecordedSwitches* recorded(const Index& index, const SharingRollout& rollout) {
  return index.record ? index.record->rollout(rollout.policy, rollout.config_map, rollout.key, rollout.to_revision)
                      : nullptr;
}

bool says_left(const SharingRollout& rollout) {
  // Few rollouts have the condition, and every pass asks for all of them: the whole status is parsed only where it is.
  if (!std::string_view(rollout.status_json).contains(kCurrentCondition)) return false;
  return !text_at(condition_in(parse_status(rollout.status_json), kCurrentCondition), "status").empty();
}

bool was_left(const Index& index, const SharingRollout& rollout) {
  const RecordedSwitches* entry = recorded(index, rollout);
  return entry != nullptr ? entry->left : says_left(rollout);
}

namespace {

// When it ended, according to its status; nullopt if it has not ended, or if the time of its abort is unknown: an abort
// then applies to every template. If an object has no status (lost in a restore from a backup, or not written yet), or
// says that it is Completed and not since when, the operator assumes that it ended right after its creation: its
// approval then does not apply to a template that is newer than the object.
std::optional<WallTime> ended_at(const SharingRollout& rollout) {
  const WallTime at_once = rollout.meta.creation_timestamp + std::chrono::seconds(1);
  if (rollout.phase.empty()) return at_once;
  const nlohmann::json status = parse_status(rollout.status_json);
  if (rollout.phase == "Completed") return k8s::parse_rfc3339(text_at(status, "completedAt")).value_or(at_once);
  if (rollout.phase != "Failed") return std::nullopt;
  const std::string since = since_when(status, rollout.aborted ? kAbortedCondition : "Progressing");
  return k8s::parse_rfc3339(since);
}

// It has ended, and nodes wait for pods of a template that arrived later (updateStrategy OnDelete). A template belongs
// to the rollout itself if nodes still wait for it at the end (aborted), or if nodes get it late.
bool ended_before_template(const Index& index, const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  if (profile_rollout.tally.new_template == 0) return false;
  // The status is lost, and the record has the switches: the templates that they were set for decide
  // (is_of_other_templates).
  if (rollout.phase.empty() && recorded(index, rollout) != nullptr) return false;
  const std::optional<WallTime> ended = ended_at(rollout);
  if (!ended) return false;
  // Creation times are whole seconds. An abort in the same second applies to that template, too.
  const WallTime oldest = rollout.aborted ? *ended + std::chrono::seconds(1) : *ended;
  const bool later =
      std::ranges::any_of(index.discovery.installations[profile_rollout.installation].operands,
                          [&](const Operand& operand) { return operand.on_delete && operand.newest_since >= oldest; });
  // A template that returns keeps its first creation time; but then no node is settled on it.
  const bool nobody_settled =
      std::ranges::all_of(profile_rollout.groups, [](const auto& group) { return group.second.tally.settled == 0; });
  return later || (rollout.phase == "Completed" && nobody_settled);
}

bool waits(const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  return profile_rollout.tally.of(Phase::pending) > 0 && !is_undone(rollout);
}

}  // namespace

std::map<std::string, std::string> templates_of(const PluginInstallation& installation) {
  std::map<std::string, std::string> out;
  for (const Operand& operand : installation.operands)
    if (!operand.newest_hash.empty()) out.emplace(k8s::to_string(operand.key), operand.newest_hash);
  return out;
}

namespace {

// Neither names of objects nor hashes contain these characters.
std::string text_of(const std::map<std::string, std::string>& templates) {
  std::string out;
  for (const auto& [daemonset, hash] : templates)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", daemonset, hash);
  return out;
}

}  // namespace

std::string templates_text(const PluginInstallation& installation) {
  return text_of(templates_of(installation));
}

bool has_other_templates(const PluginInstallation& installation, std::string_view then) {
  const std::string all = fmt::format(",{},", then);
  return std::ranges::any_of(installation.operands, [&](const Operand& operand) {
    const std::string known = fmt::format(",{}=", k8s::to_string(operand.key));
    if (!operand.on_delete || operand.newest_hash.empty() || !all.contains(known)) return false;
    return !all.contains(fmt::format("{}{},", known, operand.newest_hash));
  });
}

bool is_of_other_templates(const Index& index, const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  const RecordedSwitches* entry = recorded(index, rollout);
  if (entry == nullptr || entry->paused || rollout.paused) return false;
  if (!waits(profile_rollout, rollout) || profile_rollout.tally.new_template == 0) return false;
  return has_other_templates(index.discovery.installations[profile_rollout.installation], text_of(entry->templates));
}

bool ended_earlier(const Index& index, const ProfileRollout& profile_rollout, const SharingRollout& rollout) {
  return waits(profile_rollout, rollout) &&
         (was_left(index, rollout) || ended_before_template(index, profile_rollout, rollout));
}

}  // namespace gso
