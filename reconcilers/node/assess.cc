// The assessment of one node: the order of its parts.
#include "reconcilers/node/assess.h"

#include <fmt/format.h>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/assessor.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// The operand of that component on the node, as PluginInstallation::find. Null if a taint keeps its pods away and none
// runs there, unless `served`: the node has been served.
const Operand* operand_on(const PluginInstallation& installation, Component component, const Node& node,
                          const std::vector<const Pod*>& pods, bool served) {
  const Operand* found = installation.find(component, node);
  if (found == nullptr || served || untolerated(*found, node) == nullptr) return found;
  const bool runs = std::ranges::any_of(pods, [&](const Pod* pod) {
    const auto* owner = pod->meta.controller();
    return owner != nullptr && owner->uid.view() == found->uid && pod->phase != "Succeeded" && pod->phase != "Failed";
  });
  return runs ? found : nullptr;
}

std::vector<Interned> names_of(const std::vector<const SharingPolicy*>& policies) {
  std::vector<Interned> out;
  for (const SharingPolicy* policy : policies) out.emplace_back(policy->meta.name);
  return out;
}

}  // namespace

bool NodeInput::has_been_served() const {
  return recorded != nullptr || node.meta.annotations.contains(kChangeAnnotation) ||
         node.meta.annotations.contains(kRevisionAnnotation);
}

Assessor::Assessor(const AssessContext& context, const NodeInput& input, const PluginInstallation& installation,
                   std::size_t index)
    : context_(context),
      node_(input.node),
      installation_(installation),
      use_(input.use),
      pods_(sort_pods(installation, input.operand_pods)),
      recorded_(input.recorded) {
  out_.installation = index;
  out_.claimants = Interned(input.claimants);
  const bool served = input.has_been_served();
  plugin_ = operand_on(installation, Component::plugin, node_, input.operand_pods, served);
  gfd_ = operand_on(installation, Component::gfd, node_, input.operand_pods, served);
  mps_ = operand_on(installation, Component::mps, node_, input.operand_pods, served);
}

void Assessor::find_taint() {
  for (const Operand* operand : {plugin_, gfd_, mps_}) {
    const Taint* taint = operand == nullptr ? nullptr : untolerated(*operand, node_);
    if (taint == nullptr) continue;
    out_.taint = Interned(
        fmt::format("{}, which DaemonSet {} does not tolerate", to_string(*taint), k8s::to_string(operand->key)));
    return;
  }
}

// Two plugins of one resource: the kubelet serves the devices of the one that registered last.
void Assessor::find_other_plugins() {
  std::string names;
  for (const PluginInstallation& installation : context_.installations) {
    for (const Operand& operand : installation.operands) {
      if (operand.component != Component::plugin || operand.uid == plugin_->uid) continue;
      if (selects(operand, node_, false) != Selects::yes) continue;
      names += (names.empty() ? "" : ", ") + k8s::to_string(operand.key);
    }
  }
  out_.other_plugins = Interned(names);
}

void Assessor::find_awaiting_policies() {
  if (!out_.has_labeller() || node_.meta.labels.contains(kGpuProduct)) return;
  const auto policies = policies_in_doubt(context_.policies, node_);
  if (!policies.empty()) awaited_by_ = policies.front();
  out_.awaited_by = names_of(policies);
}

// Labels can be absent for a moment, and a policy of lower precedence must not govern the node because of that. A node
// whose change is untouched can still go to another policy by another value of a label. A failed change has ended:
// selectors decide, but for labels that are discovered on the node.
const SharingPolicy* Assessor::governing_policy_in_change() const {
  const SharingPolicy* live = governing_policy(context_.policies, node_);
  if (out_.change == nullptr) return live;
  for (const SharingPolicy* policy : context_.policies) {  // In order of precedence.
    if (policy == live) return live;
    if (policy->meta.name == out_.change->policy) return keeps_its_node(*policy) ? policy : live;
  }
  return live;
}

bool Assessor::keeps_its_node(const SharingPolicy& of_change) const {
  // Any node can lose its labels. Then only the change says which policy governs it.
  const bool is_awaited = std::ranges::any_of(
      out_.awaited_by, [&](const Interned& name) { return name == std::string_view(of_change.meta.name); });
  if (is_awaited) return true;
  if (out_.change->failed) return false;
  return has_begun(*out_.change, pods_, false) || selects_but_for_lost_labels(of_change, node_);
}

NodeAssessment Assessor::run() {
  out_.recorded_gpus = recorded_gpus();
  facts_ = facts_of(node_, out_.recorded_gpus);
  out_.product = Interned(facts_.product);
  out_.ready = node_.ready;
  foreign_holder_ = foreign_holder(node_, installation_);
  out_.holder = is_held(node_) ? kHeld : foreign_holder_;
  if (gfd_ != nullptr)
    out_.labeller = Labeller::gfd;
  else if (find_operand(context_.strays, Component::gfd, node_) != nullptr)
    out_.labeller = Labeller::foreign_gfd;
  ChangeOnNode on = change_on(node_);
  out_.change = std::move(on.change);
  change_problem_ = std::move(on.problem);
  if (out_.change) out_.product = Interned(out_.change->product);  // It stays in its group while its labels are absent.
  find_taint();
  find_other_plugins();
  find_awaiting_policies();
  policy_ = governing_policy_in_change();
  out_.policy = Interned(policy_ ? std::string_view(policy_->meta.name) : kDefaultPolicy);
  out_.losers = names_of(losing_policies(context_.policies, node_, policy_));
  // Without them there is nothing to compare, and N1 applies.
  const bool has_profiles = !installation_.config_map.empty();
  if (has_profiles) {  // What the node should run, what it has loaded, and what it shows.
    resolve_target();
    describe_setup();
    out_.setup = context_.setups.check(*setup_);
    find_texts();
    out_.fresh_pods = config_map_ != nullptr && all_load([&](const Operand& operand, const Pod& pod) {
                        return has_read(pod) && !is_old_template(operand, pod);
                      });
    read_loaded();
    verify_target();
  }
  decide();
  if (has_profiles) {
    count_devices();
    find_missing_of_loaded();
    find_early_text();
  }
  out_.would_break = Interned(announced_break());
  finish();
  return std::move(out_);
}

void Assessor::finish() {
  const bool had_gpus = recorded_ != nullptr && recorded_->devices > 0;
  const bool expects_gpus = had_gpus || facts_.count > 0 || (facts_.devices && !facts_.devices->empty()) ||
                            std::ranges::any_of(node_.capacity, [](const auto& entry) { return entry.second > 0; });
  if (node_.unschedulable) out_.availability = Availability::cordoned;
  if (expects_gpus && !serves_gpus(node_)) out_.availability = Availability::no_gpus;
  if (!node_.ready) out_.availability = Availability::not_ready;
}

std::int64_t Assessor::recorded_gpus() const {
  return recorded_ != nullptr && recorded_->measured ? recorded_->devices : 0;
}

// A GPU that is lost over a reboot is missing both from GFD's count and from the plugin's capacity: only the recorded
// count shows it.
void Assessor::count_devices() {
  const bool known_otherwise = facts_.devices || facts_.mig_enabled || recorded_gpus() > 0 ||
                               node_.meta.annotations.contains(kGpuCountAnnotation);
  if (known_otherwise) return;
  out_.counted_devices = labelled_gpus(node_);
  out_.had_devices = recorded_ == nullptr ? 0 : recorded_->devices;
}

void Assessor::verify_target() {
  out_.pods_ready = all_load([](const Operand&, const Pod& pod) { return is_serving(pod); });
  if (!out_.expectation) return;
  // A node that has shown this text still runs it, even if its pods are older than an edit of another key. A container
  // that has restarted meanwhile with another text would change the labels.
  const bool showed_it = !out_.change && out_.at_install == AtInstall::shown && !out_.target.empty() &&
                         out_.loaded.revision == out_.target && (gfd_ != nullptr || pods_had_no_other_text());
  out_.verified = verify(*out_.expectation, node_, gfd_ != nullptr, out_.fresh_pods || showed_it);
  doubt_what_fits_several_profiles();
  // The capacity of a profile that the plugin certainly runs gives the number of devices.
  if (out_.pods_ready && !facts_.devices && !facts_.mig_enabled) {
    const ProfilePtr runs = profile_in_use();
    if (runs != nullptr && runs->valid) out_.measured_gpus = measured_gpus(node_, runs->profile());
  }
  out_.shrinks = std::ranges::any_of(node_.allocatable, [&](const auto& entry) {
    const auto afterwards = served_afterwards(out_, entry.first.view());
    return entry.second > 0 && afterwards && *afterwards < entry.second;
  });
}

// If the number of GPUs is unknown, the capacity fits several profiles: it proves the target only where the plugin
// cannot run another one. Without GFD the labels are those of the profile that the node last showed.
void Assessor::doubt_what_fits_several_profiles() {
  if (gfd_ != nullptr || !out_.verified.ok || out_.expectation->divisible.empty()) return;
  const bool may_be_former = may_run_former_key();
  const bool proven = out_.fresh_pods || (!out_.loaded.revision.empty() && out_.at_install == AtInstall::shown);
  if (proven && !may_be_former) return;
  const auto wanted = out_.expectation->labels.find(std::string(kGpuReplicas));
  const auto shown = node_.meta.labels.get(kGpuReplicas);
  const auto fits_former_key = [&] {
    const ProfilePtr former = loaded_profile();
    return former == nullptr || shows(former, false).ok;
  };
  if (!shown && may_be_former && fits_former_key()) {
    const std::string_view former = out_.loaded.profile.view();
    out_.verified.ok = false;
    out_.verified.mismatch = fmt::format("the number of GPUs is not known, and what the node serves might still be {}",
                                         former.empty() ? "what it served before its label changed"
                                                        : fmt::format("the profile {} of its former label", former));
    return;
  }
  if (wanted == out_.expectation->labels.end() || !shown || *shown == wanted->second) return;
  out_.verified.ok = false;
  out_.verified.mismatch = fmt::format("label {} is {}, expected {}, and the pods might run an earlier profile",
                                       kGpuReplicas, shown_value(*shown), wanted->second);
}

namespace {

// Cleans up after the operator on a node that nos has taken over. A change with a deleted pod is finished first,
// because a half-changed node would leave a plugin waiting for an MPS daemon of another profile. If it cannot be
// finished it is stopped like a change without a deleted pod. A change that cannot be read is left to a person (S11).
bool is_still_ours(const NodeAssessment& a, const NodePods& pods) {
  if (a.is_unreadable()) return true;
  return a.change && !a.change->failed && a.obstacle.code.empty() && is_touched(a, pods);
}

using Claimants = std::vector<const PluginInstallation*>;

// The one that the record has for the machine: by its ConfigMap, or in its namespace if that has another one now. Null:
// none of them, or several.
const PluginInstallation* recorded_one(const Claimants& claimants, const MachineRecord* recorded) {
  if (recorded == nullptr || recorded->config_map.empty()) return nullptr;
  const std::string_view id = recorded->config_map.view();
  const auto same = std::ranges::find_if(claimants, [&](const auto* claimant) { return claimant->has_id(id); });
  if (same != claimants.end()) return *same;
  const auto in_namespace = [&](const auto* claimant) { return claimant->ns == id.substr(0, id.find('/')); };
  const auto found = std::ranges::find_if(claimants, in_namespace);
  return std::ranges::count_if(claimants, in_namespace) == 1 ? *found : nullptr;
}

std::string names_of(const Claimants& claimants, const Node& node) {
  std::string out;
  for (const PluginInstallation* claimant : claimants)
    out += (out.empty() ? "" : ", ") + k8s::to_string(claimant->find(Component::plugin, node)->key);
  return out;
}

}  // namespace

std::optional<NodeAssessment> assess_node(const AssessContext& context, const Node& node,
                                          const std::vector<const Pod*>& operand_pods, const ForeignUse& use) {
  if (!has_gpus(node)) return std::nullopt;
  const bool of_nos = is_partitioned_by_nos(node);
  if (of_nos && !node.meta.annotations.contains(kChangeAnnotation)) return std::nullopt;
  NodeInput input{node, operand_pods, use};
  if (context.record != nullptr) input.recorded = context.record->machines.find(machine_id(node.meta.uid.str()));
  const auto claimants_of = [&](bool served) {
    Claimants out;
    for (const PluginInstallation& installation : context.installations)
      if (operand_on(installation, Component::plugin, node, operand_pods, served) != nullptr)
        out.push_back(&installation);
    return out;
  };
  Claimants claimants = claimants_of(false);
  if (claimants.empty() && input.has_been_served()) claimants = claimants_of(true);
  if (claimants.empty()) return std::nullopt;
  const PluginInstallation* installation = claimants.front();
  if (claimants.size() > 1) {
    const PluginInstallation* recorded = recorded_one(claimants, input.recorded);
    if (recorded == nullptr) input.claimants = names_of(claimants, node);
    if (recorded != nullptr) installation = recorded;
  }
  const auto index = static_cast<std::size_t>(installation - context.installations.data());
  NodeAssessment out = Assessor(context, input, *installation, index).run();
  if (of_nos && !is_still_ours(out, sort_pods(*installation, operand_pods))) return std::nullopt;
  return out;
}

}  // namespace gso
