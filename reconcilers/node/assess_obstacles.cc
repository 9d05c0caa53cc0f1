// Why a node cannot be changed, and what would break it.
#include <fmt/format.h>

#include <utility>

#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/cluster/release.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assessor.h"

namespace gso {

void Assessor::block(std::string_view reason, std::string message, bool write) {
  out_.phase = Phase::blocked;
  out_.reason = reason;
  out_.message = std::move(message);
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
  setup_->standalone = find_standalone(context_.standalone, node_);
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

std::optional<Block> Assessor::first_block_of(CheckStage from, CheckStage to) const {
  return first_block(setup(), from, to);
}

// True if a check was given.
bool Assessor::block_by(std::optional<Block> found) {
  if (!found) return false;
  // A key that was once verified on the node was removed from the ConfigMap: the node is not at fault.
  const bool write = found->check->writes_to_node && (found->check->code != "KeyNotFound" || names_unknown_key());
  block(found->check->blocks, std::move(found->message), write);
  out_.blocked_by = found->check;
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
  if (out_.phase != Phase::up_to_date && out_.phase != Phase::verifying) return;
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

// What would block the change even if no other actor held the node.
void Assessor::find_own_obstacle() {
  block_by(first_block_of(CheckStage::change, CheckStage::change));
}

// A node pinned by its label to the MPS key that is the default today: with another default its profile comes by label,
// which some releases cannot do. Report this only while the old pods still run; a node that never ran the key is
// Blocked(MPSByLabelUnsupported), which is enough.
void Assessor::find_pinned_break() {
  if (out_.loaded.profile != out_.profile_ref) return;
  if (!wants_mps() || effective_.source != EffectiveKey::Source::label || !out_.verified.ok) return;
  if (loads_mps_by_label(plugin_->version, context_.settings.mps_signal_fixed)) return;
  const std::string& default_key = installation_.announced ? installation_.announced_default : plugin_->default_key;
  if (effective_.key == default_key) return;
  would_break_ = fmt::format("{} {}, with which device plugin {} cannot start once {} is the default", kPinnedToMpsKey,
                             effective_.key, plugin_->version.to_string(), default_key);
}

// From v0.18.2 on a labelled node starts with the default key: an announced default that does not exist stops it.
void Assessor::find_announced_default() {
  if (!start_ || !installation_.announced || installation_.announced_config_map.empty()) return;
  const ConfigMap* config_map = find_announced_map();
  if (config_map == nullptr) return;
  const EffectiveKey key = resolve("", installation_.announced_default, config_map);
  if (key.source == EffectiveKey::Source::error) would_break_ = key.error;
}

// Null if it does not exist; that is then what breaks the node.
const ConfigMap* Assessor::find_announced_map() {
  const auto* config_map = context_.world.configmaps.find({installation_.ns, installation_.announced_config_map});
  if (config_map == nullptr) {
    would_break_ = fmt::format("ConfigMap {}/{} does not exist", installation_.ns,
                               shown_value(installation_.announced_config_map));
    out_.announced_map_missing = true;
  }
  return config_map;
}

// What the ClusterPolicy announces (or the new templates say) would leave the node without GPUs.
void Assessor::find_announced_break() {
  if (context_.world.unsynced_namespaces.contains(installation_.ns)) return;  // What cannot be read breaks nothing.
  if (!label_now().empty()) {
    find_pinned_break();
    if (would_break_.empty()) find_announced_default();
    return;
  }
  if (effective_.source == EffectiveKey::Source::error && !out_.label) {
    would_break_ = effective_.error;  // The templates already have it; the pods that still run do not.
    return;
  }
  if (!installation_.announced || installation_.announced_config_map.empty()) return;
  const ConfigMap* config_map = find_announced_map();
  if (config_map == nullptr) return;
  const EffectiveKey key = resolve("", installation_.announced_default, config_map);
  if (key.source == EffectiveKey::Source::error) {
    would_break_ = key.error;
    return;
  }
  auto text = config_map->data.find(key.key);
  const ProfilePtr profile =
      compile_text(text == config_map->data.end() || !text->second ? std::string_view() : *text->second);
  if (!profile->valid) {
    would_break_ = fmt::format("key {}: {}", key.key, profile->error);
    return;
  }
  const auto expectation = context_.expectations.get(profile, facts_, mig_env());
  if (expectation->error) {
    would_break_ = *expectation->error;
  } else if (expectation->strategy == Strategy::mps && mps_ == nullptr) {
    would_break_ = "no MPS control daemon selects the node";
  }
}

}  // namespace gso
