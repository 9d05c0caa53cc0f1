#include "tests/sim/fleet/gpu_operator.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

constexpr const char* kHash = "nvidia.com/last-applied-hash";
constexpr const char* kPresent = "nvidia.com/gpu.present";
constexpr std::array<const char*, 5> kDeployLabels{
    "nvidia.com/gpu.deploy.device-plugin", "nvidia.com/gpu.deploy.gpu-feature-discovery",
    "nvidia.com/gpu.deploy.driver", "nvidia.com/gpu.deploy.container-toolkit", "nvidia.com/gpu.deploy.mig-manager"};
constexpr std::array kOperands{Operand::device_plugin, Operand::mps_control_daemon, Operand::feature_discovery};

}  // namespace

GpuOperator::GpuOperator(Site* site, std::string ns) : Actor(site), namespace_(std::move(ns)) {}

// Of several the oldest counts, then the lowest name.
JsonPtr GpuOperator::active_policy() const {
  JsonPtr active;
  const auto created = [](const JsonPtr& p) { return text(metadata(*p), "creationTimestamp"); };
  for (const auto& [key, policy] : site_->clusterpolicies.all())
    if (active == nullptr || created(policy) < created(active)) active = policy;
  return active;
}

bool GpuOperator::has_gpu_nodes() const {
  for (const auto& [key, node] : site_->nodes.all())
    if (text(labels(*node), kPresent) == "true") return true;
  return false;
}

void GpuOperator::on_node(const JsonPtr& before, const JsonPtr& after) {
  if (after == nullptr) return;
  if (before != nullptr && labels(*before) == labels(*after)) return;
  label_node(*after);
}

// gpu.present and the deploy labels where NFD found the card. A value that is there is honoured, but an empty one.
void GpuOperator::label_node(const json& node) {
  if (active_policy() == nullptr) return;
  const json& has = labels(node);
  if (text(has, "feature.node.kubernetes.io/pci-10de.present") != "true") return;
  json wanted = json::object();
  if (text(has, kPresent) != "true") wanted[kPresent] = "true";
  const bool operands = text(has, "nvidia.com/gpu.deploy.operands") != "false";
  for (const char* label : kDeployLabels) {
    if (operands && text(has, label).empty()) wanted[label] = "true";
    if (!operands && has.contains(label)) wanted[label] = nullptr;
  }
  const std::string& name = name_of(node);
  if (wanted.empty()) {
    if (!reconcile_pending_ && site_->daemonsets.all().empty()) on_clusterpolicy();
    return;
  }
  if (!labelling_.insert(name).second) return;
  outbox_.push({.gvr = kNodes,
                .key = {"", name},
                .body = json{{"metadata", {{"labels", wanted}}}}.dump(),
                .done = [this, name](const k8s::Result<std::string>&) { labelling_.erase(name); }});
}

void GpuOperator::on_clusterpolicy() {
  if (std::exchange(reconcile_pending_, true)) return;
  site_->after(site_->pace.timing().operator_state, life_, [this] {
    reconcile_pending_ = false;
    reconcile();
  });
}

// State after state: plugin, then MPS, then feature discovery, each some time after the one before it.
void GpuOperator::reconcile() {
  if (active_policy() == nullptr) return;
  for (const auto& [key, node] : site_->nodes.all()) label_node(*node);
  if (!has_gpu_nodes()) return on_clusterpolicy();
  k8s::Duration later{0};
  for (const Operand operand : kOperands) {
    site_->agenda.after(later, life_, [this, operand] { reconcile_operand(operand); });
    later += site_->pace.delay(site_->pace.timing().operator_state);
  }
  update_status_soon();
}

// The live object is never compared, only its hash annotation; and written as a whole, without a resourceVersion.
void GpuOperator::reconcile_operand(Operand operand) {
  const JsonPtr policy = active_policy();
  if (policy == nullptr) return;
  const json desired = operand_daemonset(operand, *policy, namespace_);
  const k8s::ObjectKey key{namespace_, desired["metadata"]["name"]};
  const std::string hash = desired["metadata"]["annotations"][kHash];
  const JsonPtr live = site_->daemonsets.find(key);
  if (writing_[key.name] == hash) return;
  if (live != nullptr && text(annotations(*live), kHash) == hash) return;
  writing_[key.name] = hash;
  outbox_.push({.verb = live == nullptr ? Write::Verb::create : Write::Verb::update,
                .gvr = kDaemonSets,
                .key = key,
                .body = desired.dump(),
                .done = [this, name = key.name](const k8s::Result<std::string>& answer) {
                  writing_.erase(name);
                  if (!answer) on_clusterpolicy();
                }});
}

void GpuOperator::update_status_soon() {
  if (std::exchange(status_pending_, true)) return;
  site_->after(site_->pace.timing().operator_state, life_, [this] {
    status_pending_ = false;
    update_status();
  });
}

void GpuOperator::update_status() {
  const JsonPtr policy = active_policy();
  if (policy == nullptr) return;
  bool ready = true;
  for (const Operand operand : kOperands) {
    const std::string name = operand_daemonset(operand, *policy, namespace_)["metadata"]["name"];
    const JsonPtr daemonset = site_->daemonsets.find({namespace_, name});
    if (daemonset == nullptr) {
      ready = false;
      continue;
    }
    const json& status = member(*daemonset, "status");
    const auto count = [&status](const char* field) { return status.value(field, std::int64_t{0}); };
    ready = ready && count("numberUnavailable") == 0 &&
            count("updatedNumberScheduled") == count("desiredNumberScheduled") &&
            count("observedGeneration") >= (*daemonset)["metadata"].value("generation", std::int64_t{0});
  }
  const std::string state = ready ? "ready" : "notReady";
  const json& live = member(*policy, "status");
  if (text(live, "state") == state && text(live, "namespace") == namespace_) return;
  outbox_.push({.gvr = kClusterPolicies,
                .key = {"", (*policy)["metadata"]["name"]},
                .body = json{{"status", {{"state", state}, {"namespace", namespace_}}}}.dump(),
                .subresource = "status"});
}

}  // namespace gso::sim
