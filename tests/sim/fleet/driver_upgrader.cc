#include "tests/sim/fleet/driver_upgrader.h"

#include <array>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/paused_operands.h"

namespace gso::sim {

using nlohmann::json;

namespace {

constexpr const char* kUpgradeState = "nvidia.com/gpu-driver-upgrade-state";

enum class Act { none, cordon, pause, resume, uncordon };
struct Step {
  const char* state;
  Act act;  // On entering the state.
};
// Source: pkg/upgrade of k8s-operator-libs; the pause is k8s-driver-manager's.
constexpr std::array kSteps{Step{"upgrade-required", Act::none},         Step{"cordon-required", Act::none},
                            Step{"wait-for-jobs-required", Act::cordon}, Step{"pod-deletion-required", Act::none},
                            Step{"drain-required", Act::none},           Step{"pod-restart-required", Act::pause},
                            Step{"validation-required", Act::resume},    Step{"uncordon-required", Act::none},
                            Step{"upgrade-done", Act::uncordon}};

}  // namespace

void DriverUpgrader::upgrade(const std::string& node) {
  enter(node, 0);
}

void DriverUpgrader::enter(const std::string& node, std::size_t step) {
  const Act act = kSteps[step].act;
  json patch;
  patch["metadata"]["labels"][kUpgradeState] = kSteps[step].state;
  if (act == Act::cordon) {
    const JsonPtr live = site_->nodes.find({"", node});
    const bool was = live != nullptr && member(*live, "spec").value("unschedulable", false);
    if (was) cordoned_before_.insert(node);
    patch["spec"]["unschedulable"] = true;
  }
  for (const char* label : kPausedLabels) {
    if (act == Act::pause) patch["metadata"]["labels"][label] = "paused-for-driver-upgrade";
    if (act == Act::resume) patch["metadata"]["labels"][label] = "true";
  }
  if (act == Act::uncordon && cordoned_before_.erase(node) == 0) patch["spec"]["unschedulable"] = nullptr;
  outbox_.push({.gvr = kNodes, .key = {"", node}, .body = patch.dump()});
  if (step + 1 == kSteps.size()) return;
  leave_later(node, step);
}

void DriverUpgrader::leave_later(const std::string& node, std::size_t step) {
  site_->after(site_->pace.timing().upgrade_step, life_, [this, node, step] {
    const Act act = kSteps[step].act;
    if (act == Act::cordon && site_->faults.jobs_remain) return leave_later(node, step);
    // The driver is not exchanged under pods that use it.
    if (act == Act::pause && paused_operands_run(*site_, node)) return leave_later(node, step);
    enter(node, step + 1);
  });
}

}  // namespace gso::sim
