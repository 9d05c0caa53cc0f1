// What the tests of rollouts have in common: small fleets, their default policy, and what plans say.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

// That number of nodes n01 … whose default key has that profile.
inline FleetSpec spec_of(int nodes, std::string_view profile = "ts-4", std::string_view prefix = "n") {
  FleetSpec out;
  out.profiles = {{"any", std::string(profile)}};
  out.nodes = alike_nodes(nodes, "NVIDIA-A100-SXM4-40GB", prefix);
  return out;
}

// A policy with that spec, in flow style; the default policy with that spec.rollout.
inline std::string policy_of(std::string_view spec, std::string_view name = "default",
                             std::string_view annotations = "") {
  return fmt::format(
      "{{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {{name: {}, annotations: {{{}}}}}, spec: "
      "{{{}}}}}",
      name, annotations, spec);
}
inline std::string rollout_of(std::string_view rollout, std::string_view annotations = "") {
  return policy_of(fmt::format("rollout: {{{}}}", rollout), "default", annotations);
}

// As many nodes change at once as the policy allows; or all of them.
inline void free_cluster_budget(FleetModel& fleet) {
  fleet.settings.cluster_max_unavailable = {100, true};
}
inline void let_all_go_at_once(FleetModel& fleet) {
  free_cluster_budget(fleet);
  fleet.settings.rollout.max_unavailable = fleet.settings.rollout.max_unavailable_per_group = {100, true};
  fleet.settings.rollout.canary_nodes_per_group = 0;
}

inline void tick(FleetModel& fleet, int times) {
  for (int i = 0; i < times; ++i) (void)fleet.tick();
}

// What the plan says with that code, as "object: message".
inline std::vector<std::string> said_with(const Plan& plan, std::string_view code) {
  std::vector<std::string> out;
  for (const Finding& finding : plan.findings)
    if (finding.why.code == code) out.push_back(finding.object.name + ": " + finding.why.message);
  return out;
}

template <class Action>
std::ptrdiff_t count_of(const Plan& plan) {
  return std::ranges::count_if(
      plan.actions, [](const PlannedAction& planned) { return std::holds_alternative<Action>(planned.action); });
}
inline std::ptrdiff_t disruptive_in(const Plan& plan) {
  return std::ranges::count_if(plan.actions, &PlannedAction::disruptive);
}

}  // namespace gso::test
