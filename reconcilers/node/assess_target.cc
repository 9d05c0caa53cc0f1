// What a node should run: its policy, label and key, and the resulting profile.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assessor.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/reasons/names.h"

namespace gso {

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
  keep_present_profile();
  // From v0.18.2 on a pod starts with the default key, whatever the label is, and cannot start if no default resolves.
  if (effective_.source == EffectiveKey::Source::label && !plugin_->version.known_below(0, 18, 2)) {
    start_ = resolve("", plugin_->default_key, config_map_);
    if (start_->source != EffectiveKey::Source::error) start_profile_ = compile(start_->key);
  }
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

// Until the key exists that a policy wants, or that a label names which the operator would restore (a revert, the last
// good key).
void Assessor::keep_present_profile() {
  if (config_map_ == nullptr || config_map_->data.empty()) return;
  const bool gone = out_.label && !out_.label->empty() && effective_.source == EffectiveKey::Source::error;
  out_.wrong_key =
      policy_ != nullptr && policy_->config_map_key && !config_map_->data.contains(*policy_->config_map_key);
  if (!gone && !out_.wrong_key) return;
  if (out_.wrong_key) {
    wrong_key_ = missing_key(*policy_, installation_.id(), *config_map_);
  } else {
    wrong_key_ = fmt::format(
        "the label {} of the node is to become \"{}\" again, its value from before policy {}, and ConfigMap {} does "
        "not have that key; it has {}. Until then the label stays as it is: add the key, or set spec.deletionPolicy: "
        "Retain in the policy",
        plugin_->node_label, out_.label->view(), out_.label_by.empty() ? std::string_view("now") : out_.label_by.view(),
        installation_.id(), first_names(keys_of(*config_map_)));
  }
  if (out_.label && !out_.change) {
    out_.label.reset();
    effective_ = resolve(label_now(), plugin_->default_key, config_map_);
  }
  if (effective_.source == EffectiveKey::Source::error) effective_.error = wrong_key_;
}

ProfilePtr Assessor::compile(const std::string& key) const {
  if (key.empty()) return context_.profiles.compile("");
  if (key == managed_key_) return context_.profiles.compile(managed_text_);
  const auto text = key_text(config_map_, key);
  return compile_text(text ? std::string_view(*text) : std::string_view());
}

// The profile as it works on this node: errors in fields that the DaemonSets override do not count.
ProfilePtr Assessor::compile_text(std::string_view text) const {
  ProfilePtr plain = context_.profiles.compile(text);
  return plain->valid ? plain : context_.profiles.compile(text, overridden_errors(*plugin_, gfd_));
}

// --- Why a node cannot be changed, and what would break it.

void Assessor::block(std::string_view reason, std::string message, bool write) {
  out_.phase = Phase::blocked;
  out_.obstacle = {reason, std::move(message)};
  out_.write_blocked = write;
  out_.blocked_by = nullptr;
}

void Assessor::describe_setup() {
  setup_.emplace(Setup{.installation = installation_,
                       .plugin = *plugin_,
                       .gfd = gfd_,
                       .mps = mps_,
                       .config_map_exists = config_map_ != nullptr,
                       .key = effective_,
                       .profile = out_.profile,
                       .start = start_ ? &*start_ : nullptr,
                       .start_profile = start_profile_,
                       .label_mode = label_mode_of(node_, context_.settings),
                       .mps_signal_fixed = context_.settings.mps_signal_fixed});
  describe_node(node_, facts_, context_.strays, *setup_);
  setup_->standalone = find_operand(context_.standalone, Component::mps, node_);
  const bool policy_has_key = policy_ != nullptr && (policy_->inline_profile || policy_->config_map_key);
  const bool is_followed = effective_.key == label_now() ||
                           (effective_.source == EffectiveKey::Source::error && !out_.label);  // The key is gone, too.
  setup_->label_left = is_managed_key(label_now()) && is_followed && !policy_has_key;
}

NodeSetup Assessor::setup() const {
  return {.setup = *setup_,
          .node = node_,
          .config_map = config_map_,
          .policy = policy_,
          .policy_key_problem = wrong_key_,
          .managed_key = managed_key_,
          .claimants = out_.claimants.view(),
          .taint = out_.taint.view(),
          .label = out_.label ? std::optional(out_.label->view()) : std::nullopt,
          .expectation = out_.expectation.get(),
          .use = &use_,
          .starts = out_.phase == Phase::pending && out_.change == nullptr,
          .awaited_by = awaited_by_};
}

std::optional<Reason> Assessor::first_block_of(CheckStage from, CheckStage to) const {
  return first_block(setup(), from, to);
}

// True if a check was given.
bool Assessor::block_by(std::optional<Reason> found) {
  if (!found) return false;
  const Check& check = *find_check(found->code);
  bool write = check.writes_to_node;
  if (check.code == "KeyNotFound") {
    // A label set by hand, with a key that was never verified here: it is a typing error. A key that was once verified
    // on the node was removed from the ConfigMap while nodes use it: the node is not at fault.
    const bool by_hand = effective_.source == EffectiveKey::Source::error && !out_.label && !label_now().empty();
    write = write && by_hand && config_map_ != nullptr && !config_map_->data.empty() &&
            !context_.record->knows_key(installation_.id(), label_now());
  }
  block(check.blocks, std::move(found->message), write);
  out_.blocked_by = &check;
  return true;
}

void Assessor::find_obstacle() {
  // A node that shows what it has loaded by itself is recorded, and no pod of it is restarted (find_reload_obstacle).
  const bool stays = out_.loads_by_itself() && out_.matches();
  if (!stays) find_own_obstacle();
  if (foreign_holder_.empty()) {
    if (!out_.is_blocked()) hold_unreadable_deferral();
    return;
  }
  // The obstacle remains when the holder is done. But a system that quarantines the node might use a taint: that taint
  // is no obstacle of its own.
  if (out_.is_blocked() && foreign_holder_ != kQuarantined) {
    out_.write_blocked = false;  // Nothing is written while somebody holds the node.
    return;
  }
  block(foreign_holder_, describe_holder(foreign_holder_, node_), false);
}

// A node that runs its target, or is being verified, is not Blocked without its labels, but it is not restarted either.
void Assessor::find_missing_labels() {
  const bool unlabelled = out_.has_labeller() && !node_.meta.labels.contains(kGpuProduct);
  if (!unlabelled || (out_.phase != Phase::up_to_date && out_.phase != Phase::verifying)) return;
  NodeSetup restarted = setup();
  restarted.reloads = true;
  const Complaints found = find_check(kLabelsMissing)->of_node(restarted);
  if (!found.empty()) out_.labels_missing = Interned(found.front().message);
}

// A node that does not show its target any more is restarted into it only if the target could be shown. The same if it
// shows what it has loaded by itself, and its pods cannot have read the text. Pods that a DaemonSet controller replaces
// anyway are left to it: it has a budget of its own.
void Assessor::find_reload_obstacle() {
  if (out_.phase == Phase::up_to_date && out_.matches()) return;
  if (const Operand* rolling = rolling_daemonset()) {
    out_.reload_obstacle = Interned(
        fmt::format("DaemonSet {} has a new template and replaces its pods itself (updateStrategy RollingUpdate), and "
                    "has not reached this node yet; `kubectl -n {} rollout status daemonset {}` says what it waits for",
                    k8s::to_string(rolling->key), rolling->key.ns, rolling->key.name));
    return;
  }
  if (out_.phase == Phase::verifying && !out_.matches()) return;
  NodeSetup restarted = setup();
  restarted.reloads = true;
  if (const auto found = first_block(restarted, CheckStage::change, CheckStage::change))
    out_.reload_obstacle = Interned(found->message);
}

// Which labels of the node are the operator's is unknown: it could take a label of its own for a person's.
void Assessor::hold_unreadable_owner() {
  const OwnedOnNode on = owned_on(node_);
  if (on.problem.empty()) return;
  block(kOwnedUnreadable, owner_unknown_text(node_.meta.name, on.problem), false);
}

// The end of the node's deferral is unknown: its change does not begin by itself.
void Assessor::hold_unreadable_deferral() {
  const DeferralOnNode on = deferral_on(node_);
  if (on.problem.empty()) return;
  block(kDeferralUnreadable,
        fmt::format("{}. The operator does not change the node until a person removes the annotation (kubectl annotate "
                    "node {} {}-)",
                    on.problem, node_.meta.name, kDeferredAnnotation),
        false);
}

// A node pinned by its label to the MPS key that is the default today: with another default its profile comes by label,
// which some releases cannot do. Report this only while the old pods still run; a node that never ran the key is
// Blocked(MPSByLabelUnsupported), which is enough.
std::string Assessor::pinned_break() const {
  const bool runs_it = out_.loaded.profile == out_.profile_ref && wants_mps() && out_.verified.ok &&
                       effective_.source == EffectiveKey::Source::label;
  const std::string& default_key = installation_.announced ? installation_.announced_default : plugin_->default_key;
  if (!runs_it || effective_.key == default_key) return {};
  if (loads_mps_by_label(plugin_->version, context_.settings.mps_signal_fixed)) return {};
  return fmt::format(
      "a label pins the node to MPS key {}, which its pods cannot load {}: device plugin {} starts with the default "
      "key",
      shown_value(effective_.key),
      default_key.empty()
          ? "without a default key"
          : fmt::format("{} {} is the default", installation_.announced ? "once" : "while", shown_value(default_key)),
      plugin_->version.known ? plugin_->version.to_string() : "of an unknown release");
}

// What the ClusterPolicy announces (or the new templates say) would leave the node without GPUs.
std::string Assessor::announced_break() {
  if (context_.world.unsynced_namespaces.contains(installation_.ns)) return {};  // What cannot be read breaks nothing.
  const bool is_labelled = !label_now().empty();
  const bool has_profiles = !installation_.config_map.empty();
  // The templates already have it; the pods that still run do not.
  if (has_profiles && !is_labelled && effective_.source == EffectiveKey::Source::error && !out_.label)
    return effective_.error;
  if (std::string pinned = has_profiles && is_labelled ? pinned_break() : std::string(); !pinned.empty()) {
    if (std::ranges::find(*out_.setup, kMpsByLabelUnsupported, &Diagnostic::code) != out_.setup->end())
      out_.would_break_by = kMpsByLabelUnsupported;
    return pinned;
  }
  return installation_.announced ? find_announced() : std::string();
}

std::string Assessor::find_announced() {
  // With the first ConfigMap the GPU Operator adds sidecars that read this label and have this fallback.
  const bool has_profiles = !installation_.config_map.empty();
  const std::string_view label = has_profiles ? label_now() : node_.meta.labels.get(kConfigLabel).value_or("");
  const std::vector<std::string> fallbacks = has_profiles ? plugin_->fallbacks : std::vector<std::string>{"empty"};
  const std::string& name = installation_.announced_config_map;
  // The operator writes its own keys into the announced ConfigMap, too.
  const bool keeps_its_key = !label.empty() && (name == installation_.config_map || is_managed_key(label));
  // From v0.18.2 on a labelled node starts with the default key: an announced default that does not exist stops it.
  if (keeps_its_key && !start_) return {};
  const ConfigMap* config_map = context_.world.configmaps.find({installation_.ns, name});
  if (config_map == nullptr && !name.empty()) {
    out_.would_break_by = kConfigMapMissing;
    return fmt::format("ConfigMap {}/{} does not exist", installation_.ns, shown_value(name));
  }
  EffectiveKey key{EffectiveKey::Source::fallback_empty, "", ""};  // Without a ConfigMap the GPUs are not shared.
  if (config_map != nullptr) {
    const std::vector<std::string> keys = keys_of(*config_map);
    const EffectiveKey first = resolve_effective_key("", installation_.announced_default, fallbacks, keys);
    if (first.source == EffectiveKey::Source::error && (label.empty() || start_)) return first.error;
    if (keeps_its_key) return {};
    key = resolve_effective_key(label, installation_.announced_default, fallbacks, keys);
    if (key.source == EffectiveKey::Source::error) return key.error;
  }
  const auto text = key_text(config_map, key.key);
  const ProfilePtr profile = compile_text(text ? std::string_view(*text) : std::string_view());
  if (!profile->valid) return fmt::format("key {}: {}", shown_value(key.key), profile->error);
  const auto expectation = context_.expectations.get(profile, facts_, mig_env());
  if (expectation->error) return *expectation->error;
  if (has_profiles && expectation->strategy == Strategy::mps && mps_ == nullptr)
    return "no MPS control daemon selects the node";
  out_.announced = std::make_shared<const NodeAssessment::Announced>(
      NodeAssessment::Announced{reference(name, key.key), profile->revision, expectation});
  if (profile->revision == out_.target && name == installation_.config_map) return {};
  for (const auto& [resource, after] : served_with(*expectation, out_.measured_gpus))
    out_.would_shrink = out_.would_shrink || after < amount_of(node_.capacity, resource);
  return {};
}

}  // namespace gso
