// What a node should run: its policy, label and key, and the resulting profile.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "reconcilers/cluster/config_map_keys.h"
#include "reconcilers/cluster/overrides.h"
#include "reconcilers/cluster/policy_keys.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/assessor.h"
#include "reconcilers/profile/effective_key.h"

namespace gso {

std::string_view Assessor::label_now() const {
  return node_.meta.labels.get(plugin_->node_label).value_or("");
}

EffectiveKey Assessor::resolve(std::string_view label, std::string_view default_key,
                               const ConfigMap* config_map) const {
  if (config_map == nullptr) {
    // What is not read yet, or cannot be read, is not known to be missing.
    const bool unread = context_.world.unsynced_namespaces.contains(installation_.ns);
    return {
        EffectiveKey::Source::error, "",
        fmt::format("ConfigMap {} {}", shown_value(installation_.id()), unread ? "cannot be read" : "does not exist")};
  }
  std::vector<std::string> keys = keys_of(*config_map);
  // The operator writes this key and restores it.
  if (!managed_key_.empty() && !config_map->data.contains(managed_key_)) keys.push_back(managed_key_);
  return resolve_effective_key(label, default_key, plugin_->fallbacks, keys);
}

// A policy's key becomes the node's label, unless the node's own resolution gives that key already. In mode Observe it
// only says what would change: the gate is closed.
void Assessor::resolve_label() {
  const auto writer = label_writer(node_, plugin_->node_label);
  if (writer) out_.label_by = Interned(*writer);
  if (policy_ == nullptr) return;
  const bool observes = context_.settings.mode_of(*policy_) == PolicyMode::observe;
  std::string wanted;
  if (policy_->config_map_key) wanted = *policy_->config_map_key;
  if (policy_->inline_profile) {
    managed_key_ = wanted = inline_profile_key(policy_->meta.name, *policy_->inline_profile);
    managed_text_ = inline_profile_text(*policy_->inline_profile);
    if (has_failed()) {
      rolled_back_ = true;
      wanted = roll_back();
    }
  }
  if (wanted.empty()) {
    if (!observes) return leave_policy(writer);
    // The label of a policy that the node has left is only reported, and no owner is written.
    const bool wants_a_key = policy_->config_map_key || policy_->inline_profile;
    if (!out_.change && !wants_a_key) leave_policy(writer);
    if (out_.left_policy == LeftPolicy::release) out_.left_policy = LeftPolicy::no;
    return;
  }
  if (label_now() == wanted) return;
  if (label_now().empty() && plugin_->default_key == wanted) return;
  out_.label = Interned(wanted);
}

// The inline profile is recorded as failed and rolled back.
bool Assessor::has_failed() const {
  if (context_.record == nullptr || context_.record->failures.empty()) return false;
  const ProfilePtr profile = context_.profiles.compile(managed_text_);
  const auto* failure =
      context_.record->failure(policy_->meta.name, installation_.id(), managed_key_, profile->revision, retry());
  return failure != nullptr && failure->rolled_back;
}

// The last good key; empty if there was none: then the value from before the policy is restored.
std::string Assessor::roll_back() {
  const std::string failed = std::exchange(managed_key_, {});
  managed_text_.clear();
  const auto good = context_.record->good.find({policy_->meta.name, installation_.id()});
  if (good == context_.record->good.end()) return {};
  return good->second.key == failed ? good->second.before
                                    : good->second.key;  // It was undone after all nodes had shown it.
}

// The label was written by a policy that no longer governs the node, and no other policy wants a label there.
void Assessor::leave_policy(std::optional<std::string_view> writer) {
  if (!writer) return;
  if (context_.record == nullptr)
    return;  // The record is missing or cannot be read: the operator keeps the ownership of the label.
  // The node might return to that policy with its labels.
  if (std::ranges::any_of(out_.awaited_by, [&](const Interned& name) { return name == *writer; })) return;
  // A deleted `default` is still there, and the built-in one of that name governs meanwhile.
  const SharingPolicy* former = context_.world.policies.find(std::string(*writer));
  const auto governs = std::ranges::find(context_.policies, *writer,
                                         [](const auto* policy) { return std::string_view(policy->meta.name); });
  if (former == nullptr && governs != context_.policies.end()) former = *governs;
  const auto owned = owned_labels(node_);
  const auto known = owned.find(plugin_->node_label);
  const std::string before = known == owned.end() ? std::string() : known->second.before.value_or("");
  const bool reverts = former != nullptr && (rolled_back_ || former->deletion_policy == DeletionPolicy::revert);
  if (!reverts || before == label_now()) {
    out_.left_policy = LeftPolicy::release;
    return;
  }
  out_.left_policy = LeftPolicy::revert;
  out_.label = Interned(before);
}

// Pods of an older template still read it.
void Assessor::find_former_label() {
  if (context_.record == nullptr || !node_.meta.annotations.contains(kOwnedAnnotation)) return;
  if (policy_ != nullptr && context_.settings.mode_of(*policy_) == PolicyMode::observe) return;
  std::set<std::string_view> read;
  for (const Operand* operand : {plugin_, gfd_, mps_}) {
    if (operand == nullptr) continue;
    read.insert(operand->node_label);
    const Pod* pod = newest(operand->component);
    if (pod != nullptr && is_old_template(*operand, *pod)) return;
  }
  for (const auto& [label, owned] : owned_labels(node_)) {
    const bool is_former = !owned.policy.empty() && context_.record->is_node_label(label) && !read.contains(label);
    if (!is_former) continue;
    out_.former_label = Interned(label);
    return;
  }
}

void Assessor::resolve_target() {
  resolve_label();
  find_former_label();
  config_map_ = context_.world.configmaps.find(installation_.config_map_key());
  const std::string_view label = out_.label ? out_.label->view() : label_now();
  effective_ = resolve(label, plugin_->default_key, config_map_);
  keep_label_of_missing_key();
  refuse_wrong_key();
  resolve_start();
  out_.source = effective_.source;
  out_.key = Interned(effective_.source == EffectiveKey::Source::error ? label : effective_.key);
  if (effective_.source == EffectiveKey::Source::error) {
    if (out_.key.empty()) out_.key = Interned(plugin_->default_key);
    return;
  }
  out_.profile_ref = Interned(fmt::format("{}/{}", installation_.config_map, effective_.key));
  out_.profile = compile(effective_.key);
  out_.target = Interned(out_.profile->revision);
  if (!out_.profile->valid) return;
  out_.expectation = context_.expectations.get(out_.profile, facts_, mig_env());
}

// A label that the operator would restore (a revert, the last good key) names a key that is gone: the label stays.
void Assessor::keep_label_of_missing_key() {
  const bool gone = out_.label && !out_.label->empty() && effective_.source == EffectiveKey::Source::error &&
                    config_map_ != nullptr && !config_map_->data.empty();
  if (!gone) return;
  wrong_key_ = fmt::format(
      "the label {} of the node is to become \"{}\" again, its value from before policy {}, and ConfigMap {} does not "
      "have that key; it has {}. Until then the label stays as it is: add the key, or set spec.deletionPolicy: Retain "
      "in the policy",
      plugin_->node_label, out_.label->view(), out_.label_by.empty() ? std::string_view("now") : out_.label_by.view(),
      installation_.id(), first_names(keys_of(*config_map_)));
  keep_present_profile();
}

// Until the key exists that a policy wants.
void Assessor::keep_present_profile() {
  if (out_.label && !out_.change) {
    out_.label.reset();
    effective_ = resolve(label_now(), plugin_->default_key, config_map_);
  }
  if (effective_.source == EffectiveKey::Source::error) effective_.error = wrong_key_;
}

// The policy names a key that the ConfigMap does not have.
void Assessor::refuse_wrong_key() {
  if (policy_ == nullptr || !policy_->config_map_key || config_map_ == nullptr || config_map_->data.empty() ||
      config_map_->data.contains(*policy_->config_map_key)) {
    return;
  }
  out_.wrong_key = true;
  wrong_key_ = missing_key(*policy_, installation_.id(), *config_map_);
  keep_present_profile();
}

// From v0.18.2 on a pod starts with the default key, whatever the label is, and cannot start if no default resolves.
void Assessor::resolve_start() {
  if (effective_.source != EffectiveKey::Source::label || plugin_->version.known_below(0, 18, 2)) return;
  start_ = resolve("", plugin_->default_key, config_map_);
  if (start_->source != EffectiveKey::Source::error) start_profile_ = compile(start_->key);
}

ProfilePtr Assessor::compile(const std::string& key) const {
  if (key.empty()) return context_.profiles.compile("");
  if (key == managed_key_) return context_.profiles.compile(managed_text_);
  auto it = config_map_->data.find(key);
  return compile_text(it == config_map_->data.end() || !it->second ? std::string_view() : *it->second);
}

// The profile as it works on this node: errors in fields that the DaemonSets override do not count.
ProfilePtr Assessor::compile_text(std::string_view text) const {
  ProfilePtr plain = context_.profiles.compile(text);
  return plain->valid ? plain : context_.profiles.compile(text, overridden_errors(*plugin_, gfd_));
}

std::string_view Assessor::mig_env() const {
  return plugin_->mig_strategy;
}

}  // namespace gso
