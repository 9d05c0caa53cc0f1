// The assessment of one node.
#include "reconcilers/assess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/kai/index.h"
#include "reconcilers/labels.h"
#include "reconcilers/overrides.h"

namespace gso {

namespace {

class Assessor {
 public:
  Assessor(const AssessContext& context, const Node& node, const OperandSet& set, std::size_t index,
           const std::vector<const Pod*>& operand_pods)
      : context_(context), node_(node), set_(set), pods_(sort_pods(set, operand_pods)) {
    out_.set = index;
    plugin_ = set.find(Component::plugin, node);
    gfd_ = set.find(Component::gfd, node);
    mps_ = set.find(Component::mps, node);
  }

  NodeAssessment run() {
    facts_ = facts_of(node_, recorded_gpus());
    out_.product = Interned(facts_.product);
    out_.ready = node_.ready;
    out_.held = node_.meta.annotations.get(kHoldAnnotation) == "true";
    out_.gfd = gfd_ != nullptr;
    out_.flight = read_flight(node_);
    policy_ = governing_policy(context_.policies, node_);
    out_.policy = Interned(policy_ ? std::string_view(policy_->meta.name) : kDefaultPolicy);
    find_losers();
    if (set_.config_map.empty()) {
      out_.situation = Situation::unmanaged;
      finish();
      return std::move(out_);
    }
    resolve_target();
    out_.setup = context_.setups.check({node_, set_, context_.strays, *plugin_, gfd_, mps_, config_map_, effective_, out_.profile,
                                        start_ ? &*start_ : nullptr, start_profile_, facts_, context_.settings.label_mode});
    read_loaded();
    decide();
    find_announced_break();
    finish();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::int64_t recorded_gpus() const {
    if (context_.record == nullptr) return 0;
    auto it = context_.record->gpus.find(node_.meta.name);
    return it == context_.record->gpus.end() ? 0 : it->second;
  }

  // --- What the node should run.

  [[nodiscard]] std::string_view label_now() const { return node_.meta.labels.get(plugin_->node_label).value_or(""); }

  [[nodiscard]] EffectiveKey resolve(std::string_view label, std::string_view default_key,
                                     const ConfigMap* config_map) const {
    if (config_map == nullptr) {
      return {EffectiveKey::Source::error, "", fmt::format("ConfigMap {} does not exist", set_.id())};
    }
    std::vector<std::string> keys;
    keys.reserve(config_map->data.size() + 1);
    for (const auto& [key, text] : config_map->data) keys.push_back(key);
    // Ours to put there, and back there.
    if (!managed_key_.empty() && !config_map->data.contains(managed_key_)) keys.push_back(managed_key_);
    return resolve_effective_key(label, default_key, plugin_->fallbacks, keys);
  }

  void find_losers() {
    for (const SharingPolicy* policy : context_.policies) {
      const bool catches_all = policy->meta.name == kDefaultPolicy;
      if (policy != policy_ && !catches_all && policy->node_selector.matches(node_.meta.labels)) {
        out_.losers.emplace_back(policy->meta.name);
      }
    }
  }

  // A policy's key becomes the node's label, unless the node's own resolution gives that key already.
  void resolve_label() {
    const auto writer = label_writer(node_, plugin_->node_label);
    if (writer) out_.label_by = Interned(*writer);
    if (policy_ == nullptr || context_.settings.mode_of(*policy_) == PolicyMode::observe) return;
    std::string wanted;
    if (policy_->config_map_key) wanted = *policy_->config_map_key;
    if (policy_->inline_profile) {
      managed_key_ = wanted = inline_profile_key(policy_->meta.name, *policy_->inline_profile);
      managed_text_ = inline_profile_text(*policy_->inline_profile);
      if (has_failed()) {
        out_.rolled_back = true;
        wanted = roll_back();
      }
    }
    if (wanted.empty()) return leave_policy(writer);
    if (label_now() == wanted) return;
    if (label_now().empty() && plugin_->default_key == wanted) return;
    out_.label = wanted;
  }

  // The inline profile is remembered as one that failed and was taken back.
  [[nodiscard]] bool has_failed() const {
    if (context_.record == nullptr || context_.record->failures.empty()) return false;
    const ProfilePtr profile = context_.book.compile(managed_text_);
    const auto* failure = context_.record->failure(policy_->meta.name, set_.id(), managed_key_, profile->revision, retry());
    return failure != nullptr && failure->rolled_back;
  }

  // The key that was good before; empty where there was none: then what stood before the policy comes back.
  std::string roll_back() {
    const std::string failed = std::exchange(managed_key_, {});
    managed_text_.clear();
    const auto good = context_.record->good.find({policy_->meta.name, set_.id()});
    if (good == context_.record->good.end()) return {};
    return good->second.key == failed ? good->second.before : good->second.key;  // Undone after it was good.
  }

  // The label is of a policy that does not govern the node any more, and no other one wants a label there.
  void leave_policy(std::optional<std::string_view> writer) {
    if (!writer) return;
    const SharingPolicy* former = context_.world.policies.find(std::string(*writer));
    const std::string before = owned_labels(node_).at(plugin_->node_label).value_or("");
    const bool reverts = former != nullptr && (out_.rolled_back || former->deletion_policy == DeletionPolicy::revert);
    if (!reverts || before == label_now()) {
      out_.releases = true;
      return;
    }
    out_.reverts = true;
    out_.label = before;
  }

  void resolve_target() {
    resolve_label();
    config_map_ = context_.world.configmaps.find(set_.config_map_key());
    const std::string_view label = out_.label ? std::string_view(*out_.label) : label_now();
    effective_ = resolve(label, plugin_->default_key, config_map_);
    refuse_wrong_key();
    resolve_start();
    out_.source = effective_.source;
    out_.key = Interned(effective_.source == EffectiveKey::Source::error ? label : effective_.key);
    if (effective_.source == EffectiveKey::Source::error) {
      if (out_.key.empty()) out_.key = Interned(plugin_->default_key);
      return;
    }
    out_.profile_ref = Interned(fmt::format("{}/{}", set_.config_map, effective_.key));
    out_.profile = compile(effective_.key);
    out_.target = Interned(out_.profile->revision);
    if (!out_.profile->valid) return;
    out_.expectation = context_.expectations.get(out_.profile, facts_, mig_env());
  }

  // The policy names a key that the ConfigMap does not have. Until it does, the node stays with what it has.
  void refuse_wrong_key() {
    const bool ours = policy_ != nullptr && policy_->config_map_key && context_.settings.mode_of(*policy_) != PolicyMode::observe;
    if (!ours || config_map_ == nullptr || config_map_->data.empty() || config_map_->data.contains(*policy_->config_map_key)) return;
    std::vector<std::string_view> keys;
    for (const auto& [key, text] : config_map_->data) keys.push_back(key);
    out_.wrong_key = true;
    wrong_key_ = fmt::format("policy {} names the key \"{}\" (spec.profile.configMapKey), which ConfigMap {} does not have; it has {}",
                             out_.policy.view(), *policy_->config_map_key, set_.id(), fmt::join(keys, ", "));
    if (out_.label && !out_.flight) {
      out_.label.reset();
      effective_ = resolve(label_now(), plugin_->default_key, config_map_);
    }
    if (effective_.source == EffectiveKey::Source::error) effective_.error = wrong_key_;
  }

  // From v0.18.2 on a pod starts with the default whatever the label says, and cannot where none resolves.
  void resolve_start() {
    if (effective_.source != EffectiveKey::Source::label || plugin_->version.known_below(0, 18, 2)) return;
    start_ = resolve("", plugin_->default_key, config_map_);
    if (start_->source != EffectiveKey::Source::error) start_profile_ = compile(start_->key);
  }

  [[nodiscard]] ProfilePtr compile(const std::string& key) const {
    if (key.empty()) return context_.book.compile("");
    if (key == managed_key_) return context_.book.compile(managed_text_);
    auto it = config_map_->data.find(key);
    return compile_text(it == config_map_->data.end() || !it->second ? std::string_view() : *it->second);
  }

  // As it works here: errors in what the DaemonSets override do not count.
  [[nodiscard]] ProfilePtr compile_text(std::string_view text) const {
    ProfilePtr plain = context_.book.compile(text);
    return plain->valid ? plain : context_.book.compile(text, beaten_errors(*plugin_, gfd_));
  }

  [[nodiscard]] std::string_view mig_env() const { return plugin_->mig_strategy; }

  // --- What it has loaded.

  [[nodiscard]] const Pod* newest(Component component) const {
    for (const Pod* pod : pods_.of(component)) {
      if (!pod->meta.deletion_timestamp) return pod;
    }
    return nullptr;
  }

  [[nodiscard]] bool wants_mps() const {
    return out_.profile && out_.profile->valid && out_.profile->profile().strategy() == Strategy::mps;
  }

  // Pods of components that load the profile: plugin always, GFD where it selects the node, MPS for MPS profiles.
  [[nodiscard]] std::vector<std::pair<const Operand*, const Pod*>> loaders() const {
    std::vector<std::pair<const Operand*, const Pod*>> out{{plugin_, newest(Component::plugin)}};
    if (gfd_) out.emplace_back(gfd_, newest(Component::gfd));
    if (mps_ && wants_mps()) out.emplace_back(mps_, newest(Component::mps));
    return out;
  }

  [[nodiscard]] static bool old_template(const Operand& operand, const Pod& pod) {
    const auto hash = pod.meta.labels.get(kRevisionHashLabel);
    return hash && !operand.newest_hash.empty() && *hash != operand.newest_hash;
  }

  [[nodiscard]] bool pods_are_fresh() const {
    if (config_map_ == nullptr) return false;
    return std::ranges::all_of(loaders(), [&](const auto& loader) {
      return loader.second && created_after(*loader.second, config_map_->data_changed) &&
             !old_template(*loader.first, *loader.second);
    });
  }

  // The same for the pods that this difference concerns.
  [[nodiscard]] bool affected_pods_are_fresh() const {
    if (out_.fresh_pods) return true;
    const Steps steps = steps_for(out_.transition);
    return config_map_ != nullptr && std::ranges::all_of(loaders(), [&](const auto& loader) {
      const bool affected = loader.first->component == Component::plugin || steps.replaces(loader.first->component);
      return !affected || (loader.second && created_after(*loader.second, config_map_->data_changed));
    });
  }

  enum class Template { newest, rolling, waits_for_deletion };
  [[nodiscard]] Template template_state() const {
    Template state = Template::newest;
    for (const auto& [operand, pod] : loaders()) {
      if (pod == nullptr || !old_template(*operand, *pod)) continue;
      if (!operand->on_delete) return Template::rolling;
      state = Template::waits_for_deletion;
    }
    return state;
  }

  void read_loaded() {
    const auto revision = node_.meta.annotations.get(kRevisionAnnotation);
    if (revision && known_revision_format(*revision)) {
      out_.loaded = {Interned(*revision), Interned(node_.meta.annotations.get(kProfileAnnotation).value_or("")),
                     Proof::annotation};
      return;
    }
    if (context_.record == nullptr) return;
    auto it = context_.record->nodes.find(node_.meta.name);
    if (it == context_.record->nodes.end()) return;
    const FleetRecord::Entry& entry = it->second;
    out_.drift_at_install = context_.record->preexisting_drift.contains(node_.meta.name) ||
                            context_.record->unproven.contains(node_.meta.name);
    if (out_.drift_at_install && adopts_drift()) {
      out_.loaded = {Interned(kInvalidRevision), reference(entry.set.view(), entry.key.view()), Proof::baseline};
    } else if (known_revision_format(entry.revision.view())) {
      out_.loaded = {entry.revision, reference(entry.set.view(), entry.key.view()), Proof::baseline};
    }
  }

  [[nodiscard]] bool adopts_drift() const {
    return context_.settings.adopt_drift || (policy_ != nullptr && policy_->meta.annotations.get(kAdoptAnnotation) == "true");
  }
  [[nodiscard]] std::string_view retry() const {
    return policy_ == nullptr ? std::string_view() : policy_->meta.annotations.get(kRetryAnnotation).value_or("");
  }

  [[nodiscard]] Interned reference(std::string_view set, std::string_view key) const {
    const std::string prefix = set_.ns + "/";
    if (set.starts_with(prefix)) set.remove_prefix(prefix.size());
    return Interned(fmt::format("{}/{}", set, key));
  }

  // --- What the difference needs.

  void decide() {
    verify_target();
    if (context_.record == nullptr) {
      out_.situation = Situation::first_seen;
      out_.message = wrong_key_;
      return;
    }
    if (out_.flight) {
      decide_flight();
      return;
    }
    if (out_.wrong_key) return block(kConfigInvalid, wrong_key_, false);
    if (std::string why = config_error(); !why.empty()) return block(kConfigInvalid, std::move(why), false);
    decide_difference();
    if (out_.situation == Situation::current || out_.situation == Situation::following) return;
    find_obstacle();
  }

  // Why a pod of the node could not start with what it resolves to; empty when it could.
  [[nodiscard]] std::string config_error() const {
    if (effective_.source == EffectiveKey::Source::error) return effective_.error;
    if (!out_.profile->valid) {
      return fmt::format("{} key {}: {}", set_.id(), out_.key.view(), out_.profile->error);
    }
    if (!start_ || start_->source != EffectiveKey::Source::error) return {};
    return fmt::format("{}: {}. Plugin {} needs a default on a labelled node too: a restarted pod does not see the label in time",
                       set_.id(), start_->error, plugin_->version.to_string());
  }

  void verify_target() {
    out_.pods_ready = std::ranges::all_of(loaders(), [](const auto& loader) {
      return loader.second != nullptr && is_serving(*loader.second);
    });
    out_.fresh_pods = pods_are_fresh();
    if (!out_.expectation) return;
    out_.shrinks = std::ranges::any_of(node_.allocatable, [&](const auto& entry) {
      if (entry.second <= 0) return false;
      auto it = out_.expectation->capacity.find(std::string(entry.first.view()));
      return it != out_.expectation->capacity.end() && it->second < entry.second;
    });
    out_.verified = verify(*out_.expectation, node_, out_.gfd);
    out_.matches = out_.pods_ready && out_.verified.ok;
    // What a plugin serves that certainly runs this profile tells the devices.
    if (out_.fresh_pods && out_.pods_ready && !facts_.devices && !facts_.mig_enabled) {
      out_.measured_gpus = measured_gpus(node_, out_.profile->profile());
    }
  }

  void decide_flight() {
    out_.situation = out_.flight->failed ? Situation::failed : Situation::in_flight;
    if (std::string why = config_error(); !why.empty()) {
      out_.reason = kConfigInvalid;
      out_.message = std::move(why);
      return;
    }
    out_.way = out_.label ? WayIn::relabel : WayIn::edited;
    const bool asked_again = node_.meta.annotations.get(kRetryAnnotation).value_or("") != retry();
    if (out_.flight->failed && (out_.flight->target != out_.target.view() || asked_again)) {
      // What it failed on has been replaced by something new, or somebody wants it: another attempt, with every pod.
      out_.situation = Situation::change;
      set_transition(false);
      find_obstacle();
    }
  }

  void decide_difference() {
    const bool same_profile = out_.loaded.profile == out_.profile_ref;
    if (out_.loaded.revision.empty()) {
      out_.situation = Situation::to_record;
      out_.way = WayIn::joined;
      set_transition(false);
      return;
    }
    if (out_.label) {
      out_.situation = Situation::change;
      out_.way = WayIn::relabel;
      set_transition(true);
      return;
    }
    if (same_profile && out_.loaded.revision == out_.target) {
      out_.situation = Situation::current;
      // Should it keep showing something else, every pod that could be the cause is replaced.
      if (!out_.matches) set_transition(false);
      return;
    }
    const Template state = template_state();
    if (state == Template::rolling) {
      out_.situation = Situation::following;
      return;
    }
    set_transition(true);
    if (state == Template::waits_for_deletion) {
      out_.situation = Situation::change;
      out_.way = WayIn::on_delete;
      return;
    }
    if (same_profile) {
      out_.way = WayIn::edited;
      const bool adopted = out_.loaded.revision == kInvalidRevision && out_.drift_at_install;
      out_.situation = !adopted && affected_pods_are_fresh() ? Situation::to_record : Situation::change;
      return;
    }
    out_.way = WayIn::moved;
    out_.situation = mps_kept_its_old_profile() ? Situation::change : Situation::to_record;
  }

  // The MPS daemon never reloads by label: between two MPS profiles its pod has to go. By template it was replaced,
  // but up to v0.18.1 (where MPS by label works at all) a label that was taken away looks the same.
  [[nodiscard]] bool mps_kept_its_old_profile() const {
    const ProfilePtr before = context_.book.by_revision(out_.loaded.revision.view());
    const bool entered = before && before->profile().strategy() != Strategy::mps;
    if (out_.transition != Transition::change_mps || entered) return false;
    return effective_.source == EffectiveKey::Source::label || plugin_->version.known_below(0, 18, 2);
  }

  void set_transition(bool loaded_known) {
    const bool mps_pod = newest(Component::mps) != nullptr;
    const ProfilePtr before = loaded_known ? context_.book.by_revision(out_.loaded.revision.view()) : nullptr;
    out_.transition = transition_on(node_, mps_pod, before ? &before->profile() : nullptr, out_.profile->profile());
    // The daemon is there already (a label set by hand keeps it): then it must be replaced, not waited for.
    if (out_.transition == Transition::enter_mps && mps_pod) out_.transition = Transition::change_mps;
    if (out_.transition == Transition::none) out_.transition = Transition::plugin_only;
  }

  // --- Why it cannot be.

  void block(std::string_view reason, std::string message, bool write) {
    out_.situation = Situation::blocked;
    out_.reason = reason;
    out_.message = std::move(message);
    out_.write_blocked = write;
  }

  [[nodiscard]] bool label_is_foreign() const {
    return out_.label && !label_now().empty() && !label_writer(node_, plugin_->node_label);
  }

  void find_obstacle() {
    if (const auto holder = foreign_holder(node_, set_); !holder.empty()) {
      block(holder, holder == kDriverUpgrade ? "a driver upgrade is under way on the node" : "the MIG manager is changing the node",
            false);
      return;
    }
    if (out_.label && label_is_foreign() && !policy_->takeover) {
      return block(kLabelOwnedByOther,
                   fmt::format("the label {}={} was not written by us; policy {} wants {}. Remove it, or set spec.takeover",
                               plugin_->node_label, label_now(), out_.policy.view(), *out_.label),
                   true);
    }
    if (config_map_->immutable && !managed_key_.empty() && !config_map_->data.contains(managed_key_)) {
      return block(kConfigInvalid,
                   fmt::format("ConfigMap {} is immutable: key {} of policy {} cannot be added to it", set_.id(), managed_key_,
                               out_.policy.view()),
                   false);
    }
    if (std::string why = mig_obstacle(); !why.empty()) return block(kMigEnabled, std::move(why), true);
    if (std::string why = kai_obstacle(); !why.empty()) return block(kKaiReservations, std::move(why), true);
    if (wants_mps() && mps_ == nullptr) {
      return block(kProviderUnsupported,
                   "no MPS control daemon DaemonSet selects the node: MPS would leave it without GPUs", true);
    }
    if (wants_mps() && !has_mps_root(*plugin_, out_.profile->profile())) {
      return block(kProviderUnsupported,
                   fmt::format("DaemonSet {} sets no --mps-root (MPS_ROOT): the plugin exits with an MPS profile",
                               k8s::to_string(plugin_->key)),
                   true);
    }
    if (std::string why = mps_label_obstacle(); !why.empty()) return block(kMpsByLabelUnsupported, std::move(why), true);
    if (out_.expectation->error) return block(kConfigInvalid, *out_.expectation->error, false);
  }

  [[nodiscard]] std::string mig_obstacle() const {
    if (!wants_mps()) return {};
    const std::string& strategy = mig_env().empty() ? out_.profile->profile().mig_strategy : plugin_->mig_strategy;
    if (facts_.mig_enabled) {
      return fmt::format("the node's GPUs have MIG enabled, where MPS does not work; profile {} uses MPS. Use time-slicing there",
                         out_.key.view());
    }
    if (strategy == "mixed") {
      return fmt::format("migStrategy mixed excludes MPS; profile {} uses MPS. Use migStrategy none or single, or time-slicing",
                         out_.key.view());
    }
    return {};
  }

  // Replicas multiply nvidia.com/gpu, and KAI's reservations rest on one unit being one device (S8).
  [[nodiscard]] std::string kai_obstacle() const {
    if (context_.kai == nullptr || out_.profile->profile().strategy() == Strategy::none) return {};
    const std::string use = context_.kai->use_of(node_.meta.name);
    if (use.empty()) return {};
    return fmt::format("KAI shares GPUs of this node ({}), and profile {} shares them by replicas: only one of the two can. "
                       "Drain the fraction pods, or keep KAI off the node",
                       use, out_.key.view());
  }

  // From v0.18.2 the config-manager applies the default first, and then cannot signal the MPS daemon.
  [[nodiscard]] std::string mps_label_obstacle() const {
    return wants_mps() ? mps_by_label_refusal(*plugin_, effective_) : std::string();
  }

  // A node pinned by its label to the MPS key that is the default today: with another default its profile comes by
  // label, which these releases cannot do. Said while its pods still run from before; a node that never ran the key is
  // Blocked(MPSByLabelUnsupported) and needs no second word.
  void find_pinned_break() {
    if (out_.loaded.profile != out_.profile_ref) return;
    if (!wants_mps() || effective_.source != EffectiveKey::Source::label || !out_.verified.ok) return;
    if (plugin_->version.known_below(0, 18, 2)) return;
    const std::string& default_key = set_.announced ? set_.announced_default : plugin_->default_key;
    if (effective_.key == default_key) return;
    out_.would_break = fmt::format("pinned to MPS key {} by label, which device plugin {} cannot start once {} is the default",
                                   effective_.key, plugin_->version.to_string(), default_key);
  }

  // A labelled node starts with the default from v0.18.2 on: one that is announced and not there stops it.
  void find_announced_default() {
    if (!start_ || !set_.announced || set_.announced_config_map.empty()) return;
    const auto* config_map = context_.world.configmaps.find({set_.ns, set_.announced_config_map});
    const EffectiveKey key = resolve("", set_.announced_default, config_map);
    if (key.source == EffectiveKey::Source::error) out_.would_break = key.error;
  }

  // What the ClusterPolicy announces (or the new templates say) would leave the node without GPUs.
  void find_announced_break() {
    if (!label_now().empty()) {
      find_pinned_break();
      if (out_.would_break.empty()) find_announced_default();
      return;
    }
    if (effective_.source == EffectiveKey::Source::error && !out_.label) {
      out_.would_break = effective_.error;  // The templates have it already; the pods that still run do not.
      return;
    }
    if (!set_.announced) return;
    const auto* config_map = context_.world.configmaps.find({set_.ns, set_.announced_config_map});
    if (set_.announced_config_map.empty()) return;
    if (config_map == nullptr) {
      out_.would_break = fmt::format("ConfigMap {}/{} does not exist", set_.ns, set_.announced_config_map);
      return;
    }
    const EffectiveKey key = resolve("", set_.announced_default, config_map);
    if (key.source == EffectiveKey::Source::error) {
      out_.would_break = key.error;
      return;
    }
    auto text = config_map->data.find(key.key);
    const ProfilePtr profile = compile_text(text == config_map->data.end() || !text->second ? std::string_view() : *text->second);
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

  void finish() {
    const bool expects_gpus = facts_.count > 0 || (facts_.devices && !facts_.devices->empty()) ||
                              std::ranges::any_of(node_.capacity, [](const auto& entry) { return entry.second > 0; });
    const bool serves = std::ranges::any_of(node_.allocatable, [](const auto& entry) { return entry.second > 0; });
    out_.unavailable = !node_.ready || node_.unschedulable || (expects_gpus && !serves);
    const auto state = node_.meta.labels.get(kStateLabel);
    const bool blocked_written = state == kStateBlocked;
    const bool left_cordoned = node_.meta.annotations.get(kCordonedAnnotation) == "true";
    const bool wants_blocked = out_.situation == Situation::blocked && out_.write_blocked;
    out_.stale_state = !out_.flight && ((blocked_written && !wants_blocked) || left_cordoned);
  }

  const AssessContext& context_;
  const Node& node_;
  const OperandSet& set_;
  NodePods pods_;
  const Operand* plugin_ = nullptr;
  const Operand* gfd_ = nullptr;
  const Operand* mps_ = nullptr;
  const SharingPolicy* policy_ = nullptr;
  const ConfigMap* config_map_ = nullptr;
  EffectiveKey effective_;
  std::optional<EffectiveKey> start_;  // What a pod loads before the label's key; see resolve_start.
  ProfilePtr start_profile_;
  std::string wrong_key_;  // What is wrong with the policy's key.
  std::string managed_key_;   // Of the policy's inline profile, and its text.
  std::string managed_text_;
  GpuFacts facts_;
  NodeAssessment out_;
};

}  // namespace

std::optional<NodeAssessment> assess_node(const AssessContext& context, const Node& node,
                                          const std::vector<const Pod*>& operand_pods) {
  if (!has_gpus(node)) return std::nullopt;
  for (std::size_t i = 0; i < context.sets.size(); ++i) {
    const OperandSet& set = context.sets[i];
    if (set.find(Component::plugin, node) == nullptr) continue;
    return Assessor(context, node, set, i, operand_pods).run();
  }
  return std::nullopt;
}

}  // namespace gso
