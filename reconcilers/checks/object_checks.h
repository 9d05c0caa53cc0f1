// The checks of ConfigMaps, DaemonSets and ClusterPolicies themselves, independent of the nodes that they serve: their
// input, and what all of them find. Examples: a missing ConfigMap, a name that cannot become a volume name, keys that
// no label can name. They are rows of the chain's table (Check::of_objects); `lint` of a whole cluster and preflight
// list their findings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// A ConfigMap that pods mount, or will mount: one entry for each object that names it.
struct WantedConfigMap {
  ObjectRef wanted_by;  // The plugin's DaemonSet, or the ClusterPolicy that announces another ConfigMap.
  ObjectKey key;
  const ConfigMap* found = nullptr;  // Null: it does not exist.
  std::string elsewhere = {};        // If it does not exist: the namespaces with one of its name, "a, b".
};

// A ClusterPolicy's devicePlugin.config.
struct ClusterPolicyConfig {
  ObjectRef policy;
  std::string name;         // Not empty.
  std::string default_key;  // Can be empty.
  bool has_daemonsets = false;
  PluginVersion version = {};  // That it asks for.
};

// The input of the checks. References only; valid as long as the World and the Discovery.
struct OperandSetup {
  const World& world;
  std::vector<const Operand*> operands;  // Each DaemonSet once.
  std::vector<WantedConfigMap> config_maps;
  std::vector<ClusterPolicyConfig> cluster_policies;
};
// Leaves out installations in namespaces that are not read yet, and ClusterPolicies if the operator is not allowed to
// read them.
[[nodiscard]] OperandSetup operand_setup(const World& world, const Discovery& discovery);

struct ObjectComplaint {
  ObjectRef object;
  std::string message;
  std::optional<Severity> severity = std::nullopt;  // Overrides the severity of the check.
};

// All problems of all rows, as findings.
[[nodiscard]] std::vector<Finding> check_operand_setup(const World& world, const Discovery& discovery);

// --- Problems of a ConfigMap of profiles, apart from the profiles, which `lint` finds in a file, too.

// Why no node label can choose this key; empty if one can.
[[nodiscard]] std::string key_label_problem(std::string_view key);

// The ConfigMap has no key.
inline constexpr std::string_view kNoKeys =
    "the ConfigMap has no key: config-manager exits on it, even with the fallback \"empty\"";

// Why no volume can have the ConfigMap's name, which the GPU Operator uses as a volume name; empty if one can. A
// ConfigMap name can have dots and 253 characters, a volume name at most 63 characters and no dot.
[[nodiscard]] std::string volume_name_problem(std::string_view name);

}  // namespace gso
