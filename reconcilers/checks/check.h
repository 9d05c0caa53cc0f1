// The chain of checks: each possible problem of a node's setup is decided once, in one order. Preflight lists all
// checks that fail; the node's assessment uses the first one that blocks; documentation, `lint --codes` and remedies
// are generated from the table (chain.cc). A check is a pure function of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// --- The input of checks: the setup that nodes have in common, and one node with it. Values and references only; the
// caller keeps the referenced objects alive.

// A profile, the installation that must run it, and what nodes have in common. It names no node, so one answer applies
// to all nodes with an equal setup (PreflightCache); a check that needs the node itself takes a NodeSetup.
struct Setup {
  const PluginInstallation& installation;
  const Operand& plugin;
  const Operand* gfd = nullptr;  // Of the installation; null: none selects the node.
  const Operand* mps = nullptr;
  const Operand* other_gfd = nullptr;  // One of Discovery::strays that selects the node.
  const Operand* other_mps =
      nullptr;  // One of Discovery::strays that selects the node, in the installation's namespace.
  const Operand* standalone = nullptr;  // The standalone MPS daemon's DaemonSet that selects the node; null: none.
  bool config_map_exists = false;
  const EffectiveKey& key;
  ProfilePtr profile = nullptr;  // Null if no key resolves.
  // The key that the pods load first, if it differs from `key`: from v0.18.2 on the default key of a labelled node.
  const EffectiveKey* start = nullptr;
  ProfilePtr start_profile = nullptr;  // Null if no default resolves.
  PlannerSettings::LabelMode label_mode = PlannerSettings::LabelMode::automatic;
  bool mps_signal_fixed = false;     // PlannerSettings::mps_signal_fixed.
  bool labelled = false;             // The node has a value for the plugin's node label.
  bool label_left = false;           // It names a key that the operator generated, and no policy wants one there.
  const GpuFacts* gpus = nullptr;    // Never null in a check. Of their number checks only distinguish one from several.
  std::string_view autoscaler = {};  // The autoscaler that created the node; empty: none is known.
  std::optional<std::string_view> mps_capable = std::nullopt;  // The node's label nvidia.com/mps.capable.
  bool nfd_serves = false;                                     // Node Feature Discovery has left traces on the node.
  bool nfd_owns_mps_capable = false;

  // The profile if it is valid; else null.
  [[nodiscard]] const Profile* valid_profile() const;
  // The profile is valid and shares by MPS.
  [[nodiscard]] bool wants_mps() const;
  // The strategy in force: the plugin's own setting overrides the profile's.
  [[nodiscard]] std::string_view mig_strategy() const;
  // The valid profile with that strategy.
  [[nodiscard]] Profile effective_profile() const;
  // The installation's, else `other_gfd`.
  [[nodiscard]] const Operand* any_gfd() const { return gfd != nullptr ? gfd : other_gfd; }
  [[nodiscard]] const Operand* any_mps() const { return mps != nullptr ? mps : other_mps; }
  // Equal for setups for which every check has the same answer. Empty: the setup depends on one node. Valid as long as
  // the operands.
  [[nodiscard]] std::string identity() const;
};

// Other users of the GPUs of one node.
struct ForeignUse {
  std::string kai;           // "2 reservations, 1 fraction pod"; empty: KAI does not share them.
  std::string device_class;  // The DeviceClass by which the scheduler would also allocate them; empty: none.
};

// One node in its setup.
struct NodeSetup {
  Setup setup;
  const Node& node;
  const ConfigMap* config_map = nullptr;     // The plugin's; null if it does not exist.
  const SharingPolicy* policy = nullptr;     // The policy that governs the node.
  std::string_view policy_key_problem = {};  // Why the policy's configMapKey cannot be used; empty: no problem.
  std::string_view managed_key = {};         // Of the policy's inline profile; empty: it has none.
  std::string_view claimants =
      {};  // DaemonSets of the installations that claim it; empty: one does, or one is recorded.
  // The taint that prevents a new pod after a deletion; empty: no such taint, or no pod must be replaced.
  std::string_view taint = {};
  std::optional<std::string_view> label = std::nullopt;  // The new value of the plugin's node label; nullopt: it stays.
  const NodeExpectation* expectation = nullptr;
  const ForeignUse* use = nullptr;  // Null: unknown, which counts as no other use.
  bool starts = false;              // The node waits for a change, and is not in one.
  bool reloads = false;             // Its pods would be replaced to make it show what it runs already.
  // Selects by labels that the node lacks, and might govern it once they are back; null: no such policy.
  const SharingPolicy* awaited_by = nullptr;
};

// Fills the fields that follow from the node's labels, annotations and GPUs. `strays`: Discovery::strays.
void describe_node(const Node& node, const GpuFacts& facts, const std::vector<Operand>& strays, Setup& setup);

// --- One check.

// One problem that a check has found.
struct Complaint {
  std::string path;  // The profile's field that causes it; can be empty.
  std::string message;
  std::optional<Severity> severity = std::nullopt;  // Overrides the severity of the check.
  bool blocks = true;                               // False: this problem does not block, although the check can block.
  std::string key = {};                             // Diagnostic::key
  std::string brief = {};                           // Diagnostic::brief
};
using Complaints = std::vector<Complaint>;

struct ObjectComplaint;  // The same about an object (object_checks.h).
using ObjectComplaints = std::vector<ObjectComplaint>;
struct OperandSetup;

// The stages of the checks, in the order in which they run.
enum class CheckStage : std::uint8_t {
  provider,  // Whether profiles apply to the node at all.
  policy,    // Whether the ConfigMap has what the node's policy needs.
  profile,   // Whether a pod can start with the key and profile that the node resolves to.
  change,    // Whether the node can be changed to it. Not checked for nodes that already run it.
};

struct Check {
  std::string_view code;  // CamelCase, stable.
  Severity severity = Severity::error;
  // The reason (labels.h, "Why a node is Blocked") of a node that an error of this check blocks; empty: it blocks none.
  std::string_view blocks = {};
  bool writes_to_node = false;  // The reason concerns the node alone: state and message are written to it.
  CheckStage stage = CheckStage::change;
  // Of a check of setups: preflight lists it for the node; otherwise the node's phase, or a finding about another
  // object, reports it.
  bool listed = true;
  bool needs_no_action = false;  // While an operator runs.
  bool says_no_gpus = false;     // Its message says that the node has no GPUs.
  // For the documentation. Empty where the code is itself the reason of a Blocked node, whose row has them
  // (reconcilers/reasons/codes_of_blocked_nodes.cc).
  std::string_view meaning = {};
  std::string_view remedy = {};
  // At most one of the first two is set. Answers of the first kind are cached for all nodes with an equal setup.
  Complaints (*of_setup)(const Setup& setup) = nullptr;
  Complaints (*of_node)(const NodeSetup& setup) = nullptr;
  ObjectComplaints (*of_objects)(const OperandSetup& setup) = nullptr;
};

// In the order in which they run.
[[nodiscard]] std::span<const Check> checks();
// Null: no check with that code exists.
[[nodiscard]] const Check* find_check(std::string_view code);

// The code of the first check from the first to the second of these stages that blocks the node, and what it found.
[[nodiscard]] std::optional<Reason> first_block(const NodeSetup& setup, CheckStage from, CheckStage to);

// --- Preflight: problems of the setup of a node and of its operands for the profile that the node should run, found
// before anything is changed.

// Every check of the chain that fails and is listed for nodes: errors (a component would exit, or never serve a GPU),
// warnings (a setting would be ignored, or labels would be wrong), infos (defects of the plugin's release that the
// operator works around). In the chain's order.
[[nodiscard]] std::vector<Diagnostic> run_preflight(const Setup& setup);

// Caches the answers for nodes with equal setups, and shares them as long as a node holds them.
class PreflightCache {
 public:
  using Answer = std::shared_ptr<const std::vector<Diagnostic>>;
  // Never null. Equal setups get the same object.
  Answer check(const Setup& setup);
  // Call this before operands move in memory.
  void clear() { answers_.clear(); }
  // The number of cached answers, including unused ones that are not swept yet.
  [[nodiscard]] std::size_t size() const { return answers_.size(); }

 private:
  std::unordered_map<std::string, std::weak_ptr<const std::vector<Diagnostic>>> answers_;
  std::size_t sweep_at_ = 0;
};

}  // namespace gso
