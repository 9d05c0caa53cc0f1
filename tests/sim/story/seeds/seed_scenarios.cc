// The list of the scenarios, in the order of the documents.
#include "tests/sim/story/seeds/seed_scenarios.h"

#include "tests/sim/fleet/topology.h"

namespace gso::sim {

namespace {

std::vector<NodeSpec> t4s(int count) {
  return alike("gpu", count, {t4(), t4(), t4(), t4()});
}

std::vector<NodeSpec> with(std::vector<NodeSpec> nodes, const char* name, std::vector<Gpu> gpus) {
  nodes.push_back({.name = name, .gpus = std::move(gpus)});
  return nodes;
}

}  // namespace

const std::vector<ShortStory>& seed_scenarios() {
  static const std::vector<ShortStory> kScenarios{
      {.name = "cluster-wide",
       .title = "Applying one cluster-wide configuration",
       .nodes = [](bool) { return t4s(2); },
       .tell = cluster_wide_default},
      {.name = "by-label",
       .title = "Applying multiple node-specific configurations, node by node",
       .nodes = [](bool) { return t4s(3); },
       .tell = profiles_by_label,
       .plugin_version = "v0.17.0"},
      {.name = "by-selector",
       .title = "Applying a node-specific configuration to several nodes by label selector",
       .nodes = [](bool) { return with(t4s(2), "other-01", {a100()}); },
       .tell = profile_by_selector,
       .plugin_version = "v0.17.0"},
      {.name = "by-label-v0.20",
       .title = "The same with a plugin that cannot do it any more: said at once, and nothing is restarted for it",
       .nodes = [](bool) { return t4s(2); },
       .tell = mps_by_label_refused},
      {.name = "before-installation",
       .title = "Configuring MPS before installing the GPU Operator",
       .nodes = [](bool) { return t4s(2); },
       .tell = before_installation},
      {.name = "update",
       .title = "Updating the ConfigMap: nobody restarts anything by hand",
       .nodes = [](bool) { return t4s(2); },
       .tell = updated_config_map},
      {.name = "verification",
       .title = "Verifying the configuration: labels, capacity and a workload as the document prints them",
       .nodes = [](bool) { return t4s(1); },
       .tell = verification},
      {.name = "mig-single",
       .title = "MIG single: the product carries the MIG profile and the suffix -SHARED",
       .nodes = [](bool) { return with(t4s(1), "mig-01", {a100_mig_1g()}); },
       .tell = mig_single_shared},
      {.name = "mps-on-mig",
       .title = "MPS is not supported on MIG devices: refused, with the reason",
       .nodes = [](bool) { return with(t4s(1), "mig-01", {a100_mig_1g()}); },
       .tell = mps_refused_on_mig},
      {.name = "kind",
       .title = "MPS in kind: one node, also control plane, with nvidia.com/gpu.shared",
       .nodes = [](bool) { return *topology("kind"); },
       .tell = mps_in_kind},
  };
  return kScenarios;
}

}  // namespace gso::sim
