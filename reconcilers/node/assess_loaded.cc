// What a node has loaded, and how that is known.
#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assessor.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/profile/profile.h"

namespace gso {

const Pod* Assessor::newest(Component component) const {
  for (const Pod* pod : pods_.of(component))
    if (!pod->meta.deletion_timestamp) return pod;
  return nullptr;
}

bool Assessor::wants_mps() const {
  return out_.profile && out_.profile->valid && out_.profile->profile().strategy() == Strategy::mps;
}

// The plugin always, GFD where it selects the node, MPS for MPS profiles.
Loaders Assessor::loaders() const {
  Loaders out{{plugin_, newest(Component::plugin)}};
  if (gfd_) out.emplace_back(gfd_, newest(Component::gfd));
  if (mps_ && wants_mps()) out.emplace_back(mps_, newest(Component::mps));
  return out;
}

bool is_old_template(const Operand& operand, const Pod& pod) {
  const auto hash = pod.meta.labels.get(kRevisionHashLabel);
  return hash && !operand.newest_hash.empty() && *hash != operand.newest_hash;
}

bool Assessor::has_read(const Pod& pod) const {
  auto known_since = data_known_since(context_.world, *config_map_);
  if (!known_since) return false;
  const auto doubtful = texts_ == nullptr ? std::nullopt : doubtful_until(*texts_, out_.target.view());
  if (doubtful) known_since = std::max(*known_since, *doubtful);
  return loaded_after(pod, moment_of_doubt(*known_since), context_.settings.projection);
}

// Pods that seem to be created after it have certainly been. Of the first text of a ConfigMap there is no doubt: who
// mounts it has waited for it.
WallTime Assessor::moment_of_doubt(WallTime since) const {
  const bool is_first =
      config_map_->data_time_known && config_map_->data_changed <= config_map_->meta.creation_timestamp;
  const bool is_known =
      texts_ == nullptr || texts_->front().since >= std::chrono::floor<std::chrono::seconds>(config_map_->data_changed);
  return is_first && is_known ? since : since + clock_difference(context_.settings);
}

void Assessor::find_texts() {
  if (context_.record == nullptr || context_.record->history.empty()) return;
  const auto known = context_.record->history.find(fmt::format("{}/{}", installation_.id(), out_.key.view()));
  if (known != context_.record->history.end()) texts_ = &known->second;
}

namespace {

// It serves what it read when it was created.
bool is_first_run(const Pod& pod) {
  return is_serving(pod) && std::ranges::none_of(pod.containers, [](const auto& one) { return one.restarts > 0; });
}

}  // namespace

std::vector<ReadingTime> reading_times(const Pod& pod, Duration projection) {
  if (!is_serving(pod)) return {};
  const auto lag = std::chrono::ceil<WallTime::duration>(projection);
  const WallTime created = pod.meta.creation_timestamp;
  const bool reads_again = std::ranges::any_of(pod.containers, [](const ContainerStatus& container) {
    return container.restarts > 0 && component_of_container(container.name.view());
  });
  std::vector<ReadingTime> out;
  for (const ContainerStatus& container : pod.containers) {
    const WallTime started = std::max(created, container.started_at.value_or(created));
    if (container.restarts > 0)
      out.push_back({started - lag, started});
    else if (!reads_again)  // The plugin, GFD or the MPS daemon itself started again: the first text is gone.
      out.push_back({std::max(created, started - lag), started});
  }
  if (out.empty()) out.push_back({created, created});
  return out;
}

// The time at which the present text came is known of the ConfigMap as a whole: another key must not have changed after
// it. Once the record has the present text, it knows when.
bool Assessor::knows_when_it_came() const {
  if (is_last(*texts_, out_.target.view())) return true;
  const std::string prefix = fmt::format("{}/", installation_.id());
  const auto& history = context_.record->history;
  for (auto it = history.lower_bound(prefix); it != history.end() && it->first.starts_with(prefix); ++it) {
    const std::string key = it->first.substr(prefix.size());
    if (key == out_.key.view()) continue;
    const auto text = key_text(config_map_, key);
    if (!text || !is_last(it->second, compile_text(*text)->revision)) return false;
  }
  return true;
}

// The text was edited and edited back, and pods that were created or started again in between can have read another
// one, although the node is recorded with the present one.
Assessor::OtherTexts Assessor::other_texts_read() const {
  OtherTexts out;
  const bool has_texts = texts_ != nullptr && config_map_ != nullptr && out_.profile && out_.profile->valid;
  if (!has_texts || !has_come_back(*texts_, out_.target.view())) return out;
  const auto since = data_known_since(context_.world, *config_map_);
  if (!since) return out;
  const WallTime first = knows_when_it_came() ? *since : std::min(*since, texts_->back().since);
  const PlannerSettings& settings = context_.settings;
  for (const auto& [operand, pod] : loaders()) {
    ReadTexts read;
    if (pod == nullptr) continue;
    for (const ReadingTime& time : reading_times(*pod, settings.projection))
      add_texts_read(*texts_, {out_.target.view(), *since, first}, time, settings.clock_difference, read);
    if (operand->component != Component::plugin)
      std::erase_if(read.others, [&](std::string_view text) { return !matters_to(operand->component, text); });
    if (out.texts.empty()) out.certain = !read.present && read.others.size() == 1;
    out.texts.insert(out.texts.end(), read.others.begin(), read.others.end());
  }
  return out;
}

// Pods of that component would be replaced for a change from that revision to the target.
bool Assessor::matters_to(Component component, std::string_view revision) const {
  const ProfilePtr before = profile_of(revision);
  const Transition kind = transition_on(node_, newest(Component::mps) != nullptr, before ? &before->profile() : nullptr,
                                        out_.profile->profile());
  return steps_for(kind).replaces(component);
}

bool Assessor::pods_had_no_other_text() const {
  if (texts_ == nullptr || !is_last(*texts_, out_.target.view())) return false;
  const RecordedText& text = texts_->back();
  const WallTime since = std::max(text.since, text.doubtful_until.value_or(text.since));
  return config_map_ != nullptr &&
         all_load([&](const Operand&, const Pod& pod) { return created_after(pod, moment_of_doubt(since)); });
}

const Operand* Assessor::rolling_daemonset() const {
  for (const auto& [operand, pod] : loaders())
    if (pod != nullptr && !operand->on_delete && is_old_template(*operand, *pod)) return operand;
  return nullptr;
}

bool Assessor::waits_for_deletion() const {
  if (context_.record == nullptr) return false;
  // What had drifted before the operator was installed stays as it is. Nothing of a DaemonSet that was created later
  // had; its present template can have been created before (it comes back with its first creation time).
  const auto is_newer_than_baseline = [&](const Operand& operand) {
    const auto known = context_.record->templates.find(operand.uid);
    if (known != context_.record->templates.end()) return operand.newest_number > known->second;
    return std::max(operand.created, operand.newest_since) > context_.record->recorded_at;
  };
  return std::ranges::any_of(loaders(), [&](const auto& loader) {
    const auto& [operand, pod] = loader;
    return pod != nullptr && operand->on_delete && is_newer_than_baseline(*operand) && is_old_template(*operand, *pod);
  });
}

bool created_from_an_older_template(const NodeChange& change, const Loaders& loaders) {
  const auto created = [&](const Pod& pod) {
    return std::ranges::none_of(change.pods, [&](const auto& listed) { return listed.second.contains(pod.meta.uid); });
  };
  return std::ranges::any_of(loaders, [&](const auto& loader) {
    const auto& [operand, pod] = loader;
    return pod != nullptr && operand->on_delete && created(*pod) && is_old_template(*operand, *pod);
  });
}

void Assessor::read_loaded() {
  read_recorded();
  const bool claims_target = out_.loaded.profile == out_.profile_ref && out_.loaded.revision == out_.target;
  if (!claims_target || out_.fresh_pods || out_.change || out_.target.empty()) return;
  others_ = other_texts_read();
  if (others_.texts.empty()) return;
  const std::string_view read = others_.certain ? others_.texts.front() : kInvalidRevision;
  out_.loaded = {Interned(read == kUnknownText ? kInvalidRevision : read), out_.profile_ref, Proof::pods};
}

void Assessor::read_recorded() {
  const auto revision = node_.meta.annotations.get(kRevisionAnnotation);
  if (revision && known_revision_format(*revision)) {
    out_.loaded = {Interned(*revision), Interned(node_.meta.annotations.get(kProfileAnnotation).value_or("")),
                   Proof::annotation};
    return;
  }
  if (recorded_ == nullptr || recorded_->revision.empty()) return;
  const MachineRecord& entry = *recorded_;
  out_.at_install = entry.drift ? AtInstall::drifted : entry.unproven ? AtInstall::unproven : AtInstall::shown;
  if (out_.at_install != AtInstall::shown && adopts_drift())
    out_.loaded = {Interned(kInvalidRevision), reference(entry.config_map.view(), entry.key.view()), Proof::baseline};
  else if (known_revision_format(entry.revision.view()))
    out_.loaded = {entry.revision, reference(entry.config_map.view(), entry.key.view()), Proof::baseline};
}

// Null if its text is not known any more.
ProfilePtr Assessor::profile_of(std::string_view revision) const {
  return known_profile(revision, context_.world, context_.record, context_.profiles, overridden_errors(*plugin_, gfd_));
}

ProfilePtr Assessor::profile_of_daemon() const {
  const Pod* pod = newest(Component::mps);
  const auto has_target_key = [&](std::string_view profile) { return profile.empty() || profile == out_.profile_ref; };
  const bool same_key = !out_.label && has_target_key(out_.loaded.profile.view()) &&
                        (!out_.change || has_target_key(profile_ref_of(*out_.change)));
  if (pod != nullptr && same_key && config_map_ != nullptr && has_read(*pod)) return out_.profile;
  if (!out_.change) return loaded_profile();
  return of_kept_daemon(*out_.change, profile_of(out_.change->to));
}

EffectiveKey Assessor::present_key() const {
  return out_.label ? resolve(label_now(), plugin_->default_key, config_map_) : effective_;
}

// The label has moved since the plugin's pod started, and whether its sidecar has reloaded the plugin shows only in
// what the node serves. A change that has begun has moved it, or has replaced that pod.
bool Assessor::may_run_former_key() const {
  if (out_.change && has_begun(*out_.change, pods_, false)) {
    const bool replaces_it = out_.change->pods.contains(Component::plugin);
    return !replaces_it || pods_left(*out_.change, pods_, Component::plugin, true) > 0;
  }
  if (out_.loaded.revision.empty() || (!out_.label && out_.loaded.revision == out_.target)) return false;
  return out_.loaded.profile != reference(installation_.id(), present_key().key);
}

// The profile that the plugin certainly runs; null: none is certain.
ProfilePtr Assessor::profile_in_use() const {
  const bool shows_target = !out_.label && (out_.verified.ok || (gfd_ != nullptr && out_.verified.surplus));
  if (may_run_former_key() && !shows_target) return nullptr;
  if (out_.fresh_pods) {
    if (!out_.label) return out_.profile;
    const EffectiveKey key = present_key();
    return key.source == EffectiveKey::Source::error ? nullptr : compile(key.key);
  }
  // Its text was edited since, but it has shown what it loaded, and its plugin has not started again.
  const Pod* pod = newest(Component::plugin);
  const bool proven = !out_.loaded.revision.empty() && out_.at_install == AtInstall::shown;
  const bool counted = out_.expectation->divisible.empty();
  return proven && !counted && pod != nullptr && is_first_run(*pod) ? loaded_profile() : nullptr;
}

Verification Assessor::shows(const ProfilePtr& profile, bool proven) const {
  return verify(*context_.expectations.get(profile, facts_, mig_env()), node_, gfd_ != nullptr, proven);
}

// A node that waits for another target, or drains for it, still serves what it has loaded, and loses devices there.
// What is not certainly loaded proves nothing: pods without GFD's labels that have read a later text might serve fewer
// replicas.
void Assessor::find_missing_of_loaded() {
  const bool drains = out_.phase == Phase::draining && !out_.change->self_loaded;
  const bool waits = out_.phase == Phase::pending || out_.phase == Phase::blocked;
  const bool runs_target = out_.phase == Phase::up_to_date;
  if (!(drains || runs_target || (waits && !out_.change)) || out_.is_unreadable() || !out_.ready) return;
  if (runs_target) {
    if (has_missing_devices(out_)) out_.missing_of_loaded = Interned(missing_devices_text(out_, out_.verified));
    return;
  }
  const ProfilePtr before = loaded_profile();
  // The usual case, which costs less than a verification: as many devices as are counted, and all of them allocatable.
  const bool is_counted = !facts_.devices && !facts_.mig_enabled && facts_.count > 0 && out_.missing_devices() == 0;
  if (before && is_counted && measured_gpus(node_, before->profile()) == facts_.count &&
      node_.allocatable == node_.capacity)
    return;
  std::vector<const Pod*> pods{newest(Component::plugin)};
  if (gfd_ != nullptr) pods.push_back(newest(Component::gfd));
  if (mps_ != nullptr && before && before->profile().strategy() == Strategy::mps)
    pods.push_back(newest(Component::mps));
  if (!std::ranges::all_of(pods, [](const Pod* pod) { return pod != nullptr && is_serving(*pod); })) return;
  Verification shown{.ok = true};
  const bool reloaded = gfd_ == nullptr && config_map_ != nullptr && has_read(*pods.front());
  if (before && !reloaded) {
    const bool showed_it = gfd_ != nullptr && out_.at_install == AtInstall::shown;
    shown = shows(before, showed_it);
  }
  const bool fewer = shown.unhealthy || out_.missing_devices() > 0;
  if (!shown.shortfall && !(shown.ok && fewer)) return;
  out_.missing_of_loaded = Interned(missing_devices_text(out_, shown));
}

// A label that was changed and changed back, SIGHUP, or a kubelet that was restarted makes a plugin read its text
// again, and no pod shows it. A text that no label or capacity distinguishes from the one before shows nothing.
void Assessor::find_early_text() {
  const bool waits = out_.phase == Phase::pending && !out_.change && out_.cause == ChangeCause::edited;
  if (!waits || !out_.ready || !out_.matches() || out_.loaded.revision == out_.target) return;
  const ProfilePtr before = loaded_profile();
  if (!before || !before->valid) return;
  const Verification former = shows(before, false);
  if (!former.ok) out_.early_text = Interned(former.mismatch);
}

bool Assessor::adopts_drift() const {
  if (context_.settings.adopt_drift) return true;
  const auto asked = policy_ == nullptr ? std::nullopt : policy_->meta.annotations.get(kAdoptAnnotation);
  // The annotation names one baseline and outlives it: if the operator is uninstalled and installed again, nobody has
  // reviewed the drift that exists by then.
  return asked && (*asked == "true" || *asked == k8s::format_time(context_.record->recorded_at));
}

Interned Assessor::reference(std::string_view installation, std::string_view key) const {
  const std::string prefix = installation_.ns + "/";
  if (installation.starts_with(prefix)) installation.remove_prefix(prefix.size());
  return Interned(fmt::format("{}/{}", installation, key));
}

Transition keep_daemon(Transition by_sight, const Shape& shown, const ProfilePtr& daemon, const Profile& after) {
  if (by_sight != Transition::change_mps || shown != shape_of(after) || daemon == nullptr) return by_sight;
  const bool is_same = !steps_for(transition_between(daemon->profile(), after)).touches_mps;
  return is_same ? Transition::reshare : by_sight;
}

ProfilePtr of_kept_daemon(const NodeChange& change, const ProfilePtr& begun_for) {
  return steps_for(change.kind).touches_mps ? nullptr : begun_for;
}

}  // namespace gso
