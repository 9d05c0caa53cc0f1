// Why a node cannot be changed, and what would break it.
#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/checks/preflight.h"
#include "reconcilers/cluster/node_checks.h"
#include "reconcilers/cluster/overrides.h"
#include "reconcilers/kai/index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assessor.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

void Assessor::block(std::string_view reason, std::string message, bool write) {
  out_.situation = Situation::blocked;
  out_.reason = reason;
  out_.message = std::move(message);
  out_.write_blocked = write;
}

bool Assessor::label_is_foreign() const {
  return out_.label && is_label_of_others(node_, plugin_->node_label);
}

void Assessor::find_obstacle() {
  if (const auto holder = foreign_holder(node_, set_); !holder.empty()) {
    find_own_obstacle();
    out_.only_held = out_.situation != Situation::blocked;
    block(
        holder,
        holder == kDriverUpgrade ? "a driver upgrade is under way on the node" : "the MIG manager is changing the node",
        false);
    return;
  }
  find_own_obstacle();
}

// Nothing is restarted where it could not come back. A node that has loaded its profile by itself is recorded.
std::string Assessor::taint_obstacle() const {
  const bool needs_nothing = out_.situation == Situation::to_record && out_.matches;
  if (out_.taint.empty() || needs_nothing) return {};
  return fmt::format(
      "the node has the taint {}: a pod that is deleted there would not come back. Remove the taint, or add a "
      "toleration "
      "to the DaemonSet{}",
      out_.taint.view(),
      set_.provider == Provider::gpu_operator ? " (spec.daemonsets.tolerations of the ClusterPolicy)" : "");
}

// What would be in the way even if nobody else were at work on the node.
void Assessor::find_own_obstacle() {
  if (std::string why = taint_obstacle(); !why.empty()) return block(kTaintNotTolerated, std::move(why), true);
  if (out_.label && label_is_foreign() && !policy_->takeover) {
    return block(
        kLabelOwnedByOther,
        fmt::format("the label {}={} was not written by us; policy {} wants {}. Remove it, or set spec.takeover",
                    plugin_->node_label, label_now(), out_.policy.view(), *out_.label),
        true);
  }
  if (config_map_->immutable && !managed_key_.empty() && !config_map_->data.contains(managed_key_)) {
    return block(kConfigInvalid,
                 fmt::format("ConfigMap {} is immutable: key {} of policy {} cannot be added to it", set_.id(),
                             managed_key_, out_.policy.view()),
                 false);
  }
  if (std::string why = mig_obstacle(); !why.empty()) return block(kMigEnabled, std::move(why), true);
  if (std::string why = kai_obstacle(); !why.empty()) return block(kKaiReservations, std::move(why), true);
  if (const auto wrong = wrong_settings(*plugin_); !wrong.empty()) {
    return block(kProviderUnsupported, fmt::format("DaemonSet {}: {}", k8s::to_string(plugin_->key), wrong.front()),
                 true);
  }
  if (wants_mps() && !knows_mps(plugin_->version)) {
    return block(
        kProviderUnsupported,
        fmt::format("device plugin {} does not know MPS, which came with v0.15.0", plugin_->version.to_string()), true);
  }
  if (wants_mps() && mps_ == nullptr) {
    return block(kProviderUnsupported,
                 "no MPS control daemon DaemonSet selects the node: MPS would leave it without GPUs", true);
  }
  if (std::string why = mps_capable_obstacle(); !why.empty()) return block(kProviderUnsupported, std::move(why), true);
  if (wants_mps() && !has_mps_root(*plugin_, out_.profile->profile())) {
    return block(kProviderUnsupported,
                 fmt::format("DaemonSet {} sets no --mps-root (MPS_ROOT): the plugin exits with an MPS profile",
                             k8s::to_string(plugin_->key)),
                 true);
  }
  if (std::string why = mps_label_obstacle(); !why.empty()) return block(kMpsByLabelUnsupported, std::move(why), true);
  if (out_.expectation->error) return block(kConfigInvalid, *out_.expectation->error, false);
}

// Our key would be a second one where nodes have the only one.
std::string Assessor::single_key_obstacle() const {
  const bool adds = !managed_key_.empty() && config_map_ != nullptr && !config_map_->data.contains(managed_key_);
  if (!adds || !relies_on_single_key(set_, *config_map_)) return {};
  return fmt::format(
      "ConfigMap {} has one key, {}, which nodes get by the fallback \"single\": with a second one, of policy {}, they "
      "would be left without it. Name it as the default (devicePlugin.config.default or, in the device plugin's chart, "
      "config.default)",
      set_.id(), config_map_->data.begin()->first, out_.policy.view());
}

std::string Assessor::mig_obstacle() const {
  if (!wants_mps()) return {};
  const std::string& strategy = mig_env().empty() ? out_.profile->profile().mig_strategy : plugin_->mig_strategy;
  if (facts_.mig_enabled) {
    return fmt::format("the node's GPUs have MIG enabled: {} (profile {})", kMpsWithMig, out_.key.view());
  }
  if (strategy == "mixed") {
    return fmt::format(
        "migStrategy mixed excludes MPS; profile {} uses MPS. Use migStrategy none or single, or time-slicing",
        out_.key.view());
  }
  return {};
}

// Replicas multiply nvidia.com/gpu, and KAI's reservations rest on one unit being one device (S8).
std::string Assessor::kai_obstacle() const {
  if (context_.kai == nullptr || out_.profile->profile().strategy() == Strategy::none) return {};
  const std::string use = context_.kai->use_of(node_.meta.name);
  if (use.empty()) return {};
  return fmt::format(
      "KAI shares GPUs of this node ({}), and profile {} shares them by replicas: only one of the two can. "
      "Drain the fraction pods, or keep KAI off the node",
      use, out_.key.view());
}

// A GFD that loads something else writes nvidia.com/mps.capable by that, and nobody else may.
std::string Assessor::mps_capable_obstacle() const {
  if (!wants_mps() || !out_.gfd_elsewhere || labels_are_ours(true, context_.settings)) return {};
  const auto wanted = mps_->node_selector.find(std::string(kMpsCapable));
  const bool there = wanted == mps_->node_selector.end() || node_.meta.labels.get(kMpsCapable) == wanted->second;
  const Operand* gfd = find_stray(context_.strays, Component::gfd, node_);
  const std::string difference = there ? std::string() : config_difference(*gfd, *plugin_);
  if (difference.empty()) return {};
  return fmt::format("DaemonSet {} (GPU Feature Discovery) {}: it will not write {}, which the MPS daemon's pods need",
                     k8s::to_string(gfd->key), difference, kMpsCapable);
}

// From v0.18.2 the config-manager applies the default first, and then cannot signal the MPS daemon.
std::string Assessor::mps_label_obstacle() const {
  return wants_mps() ? mps_by_label_refusal(*plugin_, effective_) : std::string();
}

// A node pinned by its label to the MPS key that is the default today: with another default its profile comes by
// label, which these releases cannot do. Said while its pods still run from before; a node that never ran the key is
// Blocked(MPSByLabelUnsupported) and needs no second word.
void Assessor::find_pinned_break() {
  if (out_.loaded.profile != out_.profile_ref) return;
  if (!wants_mps() || effective_.source != EffectiveKey::Source::label || !out_.verified.ok) return;
  if (plugin_->version.known_below(0, 18, 2)) return;
  const std::string& default_key = set_.announced ? set_.announced_default : plugin_->default_key;
  if (effective_.key == default_key) return;
  out_.would_break =
      fmt::format("pinned to MPS key {} by label, which device plugin {} cannot start once {} is the default",
                  effective_.key, plugin_->version.to_string(), default_key);
}

// A labelled node starts with the default from v0.18.2 on: one that is announced and not there stops it.
void Assessor::find_announced_default() {
  if (!start_ || !set_.announced || set_.announced_config_map.empty()) return;
  const ConfigMap* config_map = find_announced_map();
  if (config_map == nullptr) return;
  const EffectiveKey key = resolve("", set_.announced_default, config_map);
  if (key.source == EffectiveKey::Source::error) out_.would_break = key.error;
}

// Null where it is missing, which is what will break the node then.
const ConfigMap* Assessor::find_announced_map() {
  const auto* config_map = context_.world.configmaps.find({set_.ns, set_.announced_config_map});
  if (config_map == nullptr) {
    out_.would_break = fmt::format("ConfigMap {}/{} does not exist", set_.ns, set_.announced_config_map);
    out_.announced_map_missing = true;
  }
  return config_map;
}

// What the ClusterPolicy announces (or the new templates say) would leave the node without GPUs.
void Assessor::find_announced_break() {
  if (!label_now().empty()) {
    find_pinned_break();
    if (out_.would_break.empty()) find_announced_default();
    return;
  }
  if (effective_.source == EffectiveKey::Source::error && !out_.label) {
    out_.would_break = effective_.error;  // The templates have it already; the pods that still run do not.
    return;
  }
  if (!set_.announced || set_.announced_config_map.empty()) return;
  const ConfigMap* config_map = find_announced_map();
  if (config_map == nullptr) return;
  const EffectiveKey key = resolve("", set_.announced_default, config_map);
  if (key.source == EffectiveKey::Source::error) {
    out_.would_break = key.error;
    return;
  }
  auto text = config_map->data.find(key.key);
  const ProfilePtr profile =
      compile_text(text == config_map->data.end() || !text->second ? std::string_view() : *text->second);
  if (!profile->valid) {
    out_.would_break = fmt::format("key {}: {}", key.key, profile->error);
    return;
  }
  const auto expectation = context_.expectations.get(profile, facts_, mig_env());
  if (expectation->error) {
    out_.would_break = *expectation->error;
  } else if (expectation->strategy == Strategy::mps && mps_ == nullptr) {
    out_.would_break = "no MPS control daemon selects the node";
  }
}

}  // namespace gso
