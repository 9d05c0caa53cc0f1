// What checks look at: the setup that nodes have in common, and one node with it. Values and references only; whoever
// builds one keeps what it refers to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// The GPUs of a node, as far as nodes are alike in them.
struct Hardware {
  std::string_view product;
  std::int64_t count = 0;  // 1 or 2: more than one is all that counts.
  int compute_major = 0;
  int compute_minor = 0;
  bool mig_enabled = false;
  std::vector<std::string_view> mig_names;  // nvidia.com/mig-1g.5gb, as GFD's labels show them.
  // As the annotation gpusharing.dev/devices has them; null: nobody wrote them down. Of this node alone.
  const std::vector<Device>* written_down = nullptr;

  // What checks are made with: written_down, else alike ones by what labels tell.
  [[nodiscard]] std::vector<Device> devices() const;
};

// A profile, the installation that shall run it, and what nodes have in common. Nothing of it names a node, so that one
// answer serves all nodes that are alike (PreflightCache): a check that needs the node itself takes a NodeSetup.
struct Setup {
  const PluginInstallation& set;
  const Operand& plugin;
  const Operand* gfd = nullptr;  // Of the set; null: none selects the node.
  const Operand* mps = nullptr;
  const Operand* other_gfd = nullptr;  // One of Discovery::strays that selects the node.
  const Operand* other_mps = nullptr;  // The same, from the set's own namespace.
  bool config_map_exists = false;
  const EffectiveKey& key;
  ProfilePtr profile = nullptr;  // Null where no key resolves.
  // What the pods load first, where that is not `key`: the default of a node that a label chooses for, from v0.18.2 on.
  const EffectiveKey* start = nullptr;
  ProfilePtr start_profile = nullptr;  // Null where no default resolves.
  PlannerSettings::LabelMode label_mode = PlannerSettings::LabelMode::automatic;
  bool labelled = false;  // The node has a value for the plugin's node label.
  Hardware hardware = {};
  std::string_view autoscaler = {};                            // The one that made the node; empty: none is known.
  std::optional<std::string_view> mps_capable = std::nullopt;  // The node's label of that name.
  bool nfd_serves = false;                                     // Node Feature Discovery has left traces on the node.
  bool nfd_owns_mps_capable = false;

  // The profile, where it is valid; else null.
  [[nodiscard]] const Profile* valid_profile() const;
  // It is valid and shares by MPS.
  [[nodiscard]] bool wants_mps() const;
  // The strategy in force: the plugin's own beats the profile's.
  [[nodiscard]] std::string_view mig_strategy() const;
  // The valid profile with that strategy.
  [[nodiscard]] Profile effective_profile() const;
  // Of the set, else the other one.
  [[nodiscard]] const Operand* any_gfd() const { return gfd != nullptr ? gfd : other_gfd; }
  [[nodiscard]] const Operand* any_mps() const { return mps != nullptr ? mps : other_mps; }
  // Equal for setups that every check answers alike. Empty: of one node alone. Valid as long as the operands are.
  [[nodiscard]] std::string identity() const;
};

// What others do with the GPUs of one node.
struct ForeignUse {
  std::string kai;           // "2 reservations, 1 fraction pod"; empty: KAI does not share them.
  std::string device_class;  // The DeviceClass by which the scheduler would hand them out as well; empty: none.
};

// One node in its setup.
struct NodeSetup {
  Setup setup;
  const Node& node;
  const ConfigMap* config_map = nullptr;     // The plugin's; null where it does not exist.
  const SharingPolicy* policy = nullptr;     // The one that governs the node.
  std::string_view policy_key_problem = {};  // Why the policy's configMapKey leads nowhere; empty: it does not.
  std::string_view managed_key = {};         // Of the policy's inline profile; empty: it has none.
  // The taint that keeps a replaced pod from coming back; empty: none does, or nothing is to be replaced.
  std::string_view taint = {};
  const std::string* label = nullptr;  // The value that the plugin's node label is to get; null: it stays.
  const NodeExpectation* expectation = nullptr;
  const ForeignUse* use = nullptr;  // Null: nothing is known, which counts as none.
  bool starts = false;              // It waits for a change, and is in none.
};

// Fills what follows from the node's labels, annotations and GPUs. `strays`: Discovery::strays.
void describe_node(const Node& node, const GpuFacts& facts, const std::vector<Operand>& strays, Setup& setup);

}  // namespace gso
