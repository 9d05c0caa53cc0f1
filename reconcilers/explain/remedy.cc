// See remedy.h.
#include "reconcilers/explain/remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reconcilers/explain/node.h"
#include "reconcilers/model/labels.h"

namespace gso {
namespace {

struct Remedy {
  std::string_view reason;
  std::string_view command;  // {0}: the node, {1}: the ConfigMap's namespace, {2}: its name, {3}: the policy.
};
constexpr std::array<Remedy, 8> kRemedies{{
    {kBudgetExhausted, "gpu-sharing-operator status"},
    {kWaitingForWorkloads, "kubectl get pods --all-namespaces --field-selector spec.nodeName={0}"},
    {kPdbRefuses, "kubectl get poddisruptionbudgets --all-namespaces"},
    {kLabelOwnedByOther, "kubectl label node {0} nvidia.com/device-plugin.config-"},
    {kDriverUpgrade, "kubectl get node {0} -L nvidia.com/gpu-driver-upgrade-state"},
    {kMigChange, "kubectl get node {0} -L nvidia.com/mig.config.state"},
    {kKaiReservations, "kubectl get pods --all-namespaces -l runai-gpu-group --field-selector spec.nodeName={0}"},
    {kRenameStrandsPods, "kubectl get pods --all-namespaces --field-selector spec.nodeName={0}"},
}};

class Chooser {
 public:
  Chooser(const World& world, const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a)
      : world_(world), set_(index.set_of(a)), node_(node), a_(a) {}

  [[nodiscard]] std::string fill(std::string_view command) const {
    return fmt::format(fmt::runtime(command), node_.meta.name, set_.ns, set_.config_map, a_.policy.view());
  }

  // MPS that cannot be on this node: whoever chose it chooses something else. Never MIG itself, which has users.
  [[nodiscard]] std::string choose_another() const {
    const SharingPolicy* policy = world_.policies.find(a_.policy.view());
    if (policy != nullptr && (policy->inline_profile || policy->config_map_key))
      return fill("kubectl edit sharingpolicies.gpusharing.dev {3}");
    if (const std::string key = time_slicing_key(); !key.empty())
      return fill("kubectl label node {0} nvidia.com/device-plugin.config=") + key + " --overwrite";
    const bool by_label = a_.source == EffectiveKey::Source::label && a_.label_by.empty();
    return fill(by_label ? "kubectl label node {0} nvidia.com/device-plugin.config-"
                         : "kubectl edit configmap {2} --namespace {1}");
  }

  [[nodiscard]] std::string mend_invalid() const {
    const SharingPolicy* policy = world_.policies.find(a_.policy.view());
    if (policy != nullptr && (policy->inline_profile || a_.wrong_key))
      return fill("kubectl edit sharingpolicies.gpusharing.dev {3}");
    const ConfigMap* config_map = world_.configmaps.find(set_.config_map_key());
    if (config_map == nullptr) return fill("kubectl get configmap {2} --namespace {1}");
    const bool there = config_map->data.contains(std::string(a_.key.view()));
    // Lint looks at texts: of a key that is missing it knows nothing.
    return fill(there ? "kubectl get configmap {2} --namespace {1} -o yaml | gpu-sharing-operator lint -"
                      : "kubectl edit configmap {2} --namespace {1}");
  }

 private:
  // A profile that every plugin takes by label.
  [[nodiscard]] std::string time_slicing_key() const {
    const ConfigMap* config_map = world_.configmaps.find(set_.config_map_key());
    if (config_map == nullptr) return {};
    ProfileBook book;
    for (const auto& [key, text] : config_map->data) {
      if (!text || is_managed_key(key) || !reads_like_profile(*text)) continue;
      const ProfilePtr profile = book.compile(*text);
      if (profile->valid && profile->profile().strategy() == Strategy::time_slicing) return key;
    }
    return {};
  }

  const World& world_;
  const OperandSet& set_;
  const Node& node_;
  const NodeAssessment& a_;
};

}  // namespace

std::string next_step(const World& world, const FleetIndex::Impl& index, const Node& node, const NodeAssessment* a,
                      std::string_view state) {
  if (a == nullptr) return "kubectl get daemonsets --all-namespaces -o wide";
  if (state == kUnknown) {
    return fmt::format("kubectl auth can-i list configmaps --namespace {}  # and pods, controllerrevisions.apps",
                       index.set_of(*a).ns);
  }
  if (a->situation == Situation::unmanaged) {
    return "kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge -p "
           "'{\"spec\":{\"devicePlugin\":{\"config\":{\"name\":\"CONFIGMAP\",\"default\":\"KEY\"}}}}'";
  }
  const Chooser chooser(world, index, node, *a);
  if (a->unknown_label) return chooser.fill("kubectl label node {0} nvidia.com/device-plugin.config-");
  const std::string_view reason = a->held ? kHeld : a->situation == Situation::blocked ? a->reason : std::string_view();
  if (reason == kMigEnabled || reason == kMpsByLabelUnsupported) return chooser.choose_another();
  if (reason == kConfigInvalid) return chooser.mend_invalid();
  if (reason == kTaintNotTolerated) {
    const Operand* plugin = index.set_of(*a).find(Component::plugin, node);
    const Taint* taint = plugin == nullptr ? nullptr : untolerated(*plugin, node);
    if (taint == nullptr) return fmt::format("kubectl describe node {}", node.meta.name);
    return fmt::format("kubectl taint node {} {}:{}-", node.meta.name, taint->key.view(), taint->effect.view());
  }
  if (reason == kHeld) {
    const bool labelled = hold_of(node).starts_with("label");
    return fmt::format("kubectl {} node {} {}-", labelled ? "label" : "annotate", node.meta.name, kHoldAnnotation);
  }
  const auto remedy = std::ranges::find(kRemedies, reason, &Remedy::reason);
  if (remedy != kRemedies.end()) return chooser.fill(remedy->command);
  if (a->situation == Situation::failed) return chooser.fill("gpu-sharing-operator rollout start {3}");
  if (a->situation == Situation::change || a->situation == Situation::in_flight)
    return "gpu-sharing-operator rollout status";
  if (state == kPreexistingDrift || state == kUnproven)
    return chooser.fill("gpu-sharing-operator rollout start {3} --adopt");
  if (!a->matches) return chooser.fill("kubectl get pods --namespace {1} --field-selector spec.nodeName={0} -o wide");
  return {};
}

}  // namespace gso
