#include "reconcilers/rollout/abandoned.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reconcilers/cluster/nos.h"
#include "reconcilers/model/labels.h"

namespace gso {

namespace {

class Left {
 public:
  Left(const Pass& pass, const Node& node)
      : pass_(pass),
        node_(node),
        a_(pass.index.find(node.meta.name)),
        change_(change_of(node)),
        cordoned_(change_ && change_->cordoned),
        of_nos_(is_partitioned_by_nos(node)) {}

  // A Blocked label alone needs no report.
  [[nodiscard]] bool is_change() const { return change_ != nullptr; }

  [[nodiscard]] std::string_view reason() const {
    return of_nos_ ? kPartitionedByNos : is_change() ? kAbandoned : std::string_view("Released");
  }

  // How long this must have been true. A DaemonSet can be missing temporarily; the label of nos is a person's decision.
  [[nodiscard]] Duration grace() const {
    return of_nos_ ? Duration::zero() : std::max(pass_.s.settings.settle, kAbandonGrace);
  }

  [[nodiscard]] std::string why() const {
    if (of_nos_) return fmt::format("nos partitions the GPUs of the node now (label {})", nos_label(node_));
    if (a_ != nullptr) return fmt::format("the device plugin in namespace {} now runs without profiles", set().ns);
    return pass_.index.discovery.installations.empty() ? "the cluster no longer has a device plugin DaemonSet"
                                                       : "no device plugin DaemonSet selects the node any more";
  }

  // What prevents the cleanup, independent of time; empty: nothing prevents it.
  [[nodiscard]] std::string obstacle() const {
    const PluginInstallation none;
    if (const auto holder = holder_of(node_, a_ == nullptr ? none : set()); !holder.empty()) {
      return describe_holder(holder, node_);
    }
    const auto& unsynced = pass_.s.world.unsynced_namespaces;
    if (a_ == nullptr ? !unsynced.empty() : unsynced.contains(set().ns))
      return "the operator cannot read all of its pods";
    if (of_nos_) return {};
    // The DaemonSet might select the node again before that pod is gone: then the change continues.
    const Pod* plugin = a_ == nullptr ? plugin_pod() : nullptr;
    return plugin == nullptr ? "" : fmt::format("its pod {} still exists", plugin->meta.name);
  }

  [[nodiscard]] std::string given_up() const {
    std::string out = why();
    if (change_) out += fmt::format(": the operator gives up the change to {}", change_->to);
    if (cordoned_) out += node_.unschedulable ? " and uncordons the node" : "; someone has already uncordoned the node";
    std::vector<std::string> stays;
    for (const Pod* pod : pass_.index.pods_of(node_.meta.name)) {
      const bool listed = change_ && std::ranges::any_of(change_->pods, [&](const auto& entry) {
                            return entry.second.contains(std::string(pod->meta.uid));
                          });
      if (listed) stays.push_back(fmt::format("pod {} (not replaced)", pod->meta.name));
    }
    std::ranges::sort(stays);
    for (const auto& [label, owned] : owned_labels(node_)) {
      if (const auto now = node_.meta.labels.get(label)) stays.push_back(fmt::format("label {}={}", label, *now));
    }
    return stays.empty() ? out : fmt::format("{}; left on the node: {}", out, fmt::join(stays, ", "));
  }

 private:
  [[nodiscard]] const PluginInstallation& set() const { return pass_.index.installation_of(*a_); }

  [[nodiscard]] const Pod* plugin_pod() const {
    for (const Pod* pod : pass_.index.pods_of(node_.meta.name)) {
      const auto* owner = pod->meta.controller();
      if (owner == nullptr || pod->meta.deletion_timestamp) continue;
      for (const PluginInstallation& installation : pass_.index.discovery.installations) {
        const Operand* operand = installation.by_uid(owner->uid.view());
        if (operand != nullptr && operand->component == Component::plugin) return pod;
      }
    }
    return nullptr;
  }

  const Pass& pass_;
  const Node& node_;
  const NodeAssessment* a_;  // Null: no plugin DaemonSet selects it.
  std::shared_ptr<const NodeChange> change_;
  bool cordoned_;
  bool of_nos_;
};

}  // namespace

void plan_abandoned(Pass& pass) {
  constexpr std::size_t kMost = 50;  // Maximum number of findings.
  std::size_t reported = 0;
  for (const auto& [name, busy] : pass.index.abandoned) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr) continue;
    // Neither the change in progress nor the owner of the cordon is known, so a person decides (S11).
    const ChangeOnNode on = change_on(*node);
    if (!on.problem.empty()) {
      if (++reported <= kMost) {
        pass.finding(
            Severity::warning, node_ref(name), kChangeUnreadable,
            fmt::format("{}. No plugin with profiles serves the node any more, and the operator does not change the "
                        "node. If no change is in progress, remove the annotation (kubectl annotate node {} {}-)",
                        on.problem, name, kChangeAnnotation));
      }
      continue;
    }
    const Left left(pass, *node);
    const std::string obstacle = left.obstacle();
    if (!obstacle.empty() || !pass.held_for({Timer::abandoned, name, ""}, left.grace())) {
      if (!left.is_change() || ++reported > kMost) continue;
      const std::string until =
          obstacle.empty() ? fmt::format("the operator removes what a change left on the node once this has lasted {}",
                                         k8s::format_go_duration(left.grace()))
                           : fmt::format("the operator keeps what a change left on the node while {}", obstacle);
      pass.finding(Severity::warning, node_ref(name), left.reason(), fmt::format("{}: {}", left.why(), until));
      continue;
    }
    pass.add(take_off(*node, on.change.get(), {}), left.reason(), left.given_up(), false, name);
    if (left.is_change() && pass.s.settings.rollouts != PolicyMode::observe) {
      pass.event(node_ref(name), true, left.reason(), "Abandon", left.given_up());
    }
  }
}

}  // namespace gso
