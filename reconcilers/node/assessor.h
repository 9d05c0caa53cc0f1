// The work of assessing one node, in the parts assess*.cc. Only these files use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/record.h"
#include "reconcilers/node/assess.h"

namespace gso {

// What an assessment is made from, beside what all nodes have in common.
struct NodeInput {
  const Node& node;
  const std::vector<const Pod*>& operand_pods;
  const ForeignUse& use;
  const MachineRecord* recorded = nullptr;  // This machine's entry in the record; null: none.
  // DaemonSets of the installations that claim it, if there are several and none is recorded for it: "a/b, c/d".
  std::string claimants = {};

  // The operator has seen the plugin serve the node, or has begun a change there. If a taint keeps the pods away now,
  // the node is out of service and stays counted: it must not vanish from budgets and statuses.
  [[nodiscard]] bool has_been_served() const;
};

class Assessor {
 public:
  Assessor(const AssessContext& context, const NodeInput& input, const PluginInstallation& installation,
           std::size_t index);
  NodeAssessment run();

 private:
  void finish();
  void find_taint();
  void find_other_plugins();
  void find_awaiting_policies();
  [[nodiscard]] std::int64_t recorded_gpus() const;
  void count_devices();

  // --- What the node should run.
  [[nodiscard]] std::string_view label_now() const { return node_.meta.labels.get(plugin_->node_label).value_or(""); }
  [[nodiscard]] EffectiveKey resolve(std::string_view label, std::string_view default_key,
                                     const ConfigMap* config_map) const;
  [[nodiscard]] const SharingPolicy* governing_policy_in_change() const;
  // The policy of the node's change governs it on, although another one governs by its selector.
  [[nodiscard]] bool keeps_its_node(const SharingPolicy& of_change) const;
  void resolve_label();
  [[nodiscard]] bool has_failed() const;
  std::string roll_back();
  void leave_policy(std::optional<std::string_view> writer);
  void resolve_target();
  void keep_present_profile();
  [[nodiscard]] ProfilePtr compile(const std::string& key) const;
  [[nodiscard]] ProfilePtr compile_text(std::string_view text) const;
  [[nodiscard]] std::string_view mig_env() const { return plugin_->mig_strategy; }

  // --- What it has loaded.
  [[nodiscard]] const Pod* newest(Component component) const;
  [[nodiscard]] bool wants_mps() const;
  // Components that load the profile, each with its newest pod; null: it has none.
  [[nodiscard]] Loaders loaders() const;
  // Each of them has a pod, and `is` is true of component and pod.
  template <class Is>
  [[nodiscard]] bool all_load(const Is& is) const {
    return std::ranges::all_of(
        loaders(), [&](const auto& loader) { return loader.second != nullptr && is(*loader.first, *loader.second); });
  }
  [[nodiscard]] WallTime moment_of_doubt(WallTime since) const;
  [[nodiscard]] bool has_read(const Pod& pod) const;  // The present content of its ConfigMap.
  // Under updateStrategy OnDelete: pods whose template has changed since the baseline, which only the operator
  // replaces.
  [[nodiscard]] bool waits_for_deletion() const;
  // The record knows no other text that their key has had since they were created.
  [[nodiscard]] bool pods_had_no_other_text() const;
  // Under RollingUpdate: one whose controller has not replaced the node's pod with its newest template yet; null: none.
  [[nodiscard]] const Operand* rolling_daemonset() const;
  void read_loaded();
  void read_recorded();
  void find_texts();
  [[nodiscard]] bool knows_when_it_came() const;
  // Texts other than the target that its pods can have read, those of the plugin first. `certain`: the first one is
  // what that pod has read.
  struct OtherTexts {
    std::vector<std::string_view> texts;
    bool certain = false;
  };
  [[nodiscard]] OtherTexts other_texts_read() const;
  void find_former_label();
  [[nodiscard]] bool matters_to(Component component, std::string_view revision) const;
  [[nodiscard]] bool adopts_drift() const;
  [[nodiscard]] std::string_view retry() const { return policy_ == nullptr ? std::string_view() : retry_of(*policy_); }
  [[nodiscard]] Interned reference(std::string_view installation, std::string_view key) const;

  [[nodiscard]] ProfilePtr profile_of(std::string_view revision) const;
  [[nodiscard]] ProfilePtr loaded_profile() const { return profile_of(out_.loaded.revision.view()); }
  // With which profile its MPS daemon certainly runs; null: none is certain.
  [[nodiscard]] ProfilePtr profile_of_daemon() const;
  // The key of the node's present label, or the default; the operator may still have to write another label.
  [[nodiscard]] EffectiveKey present_key() const;
  [[nodiscard]] bool may_run_former_key() const;
  [[nodiscard]] ProfilePtr profile_in_use() const;
  // What its Node shows of that profile. `proven`: its pods have certainly read the text.
  [[nodiscard]] Verification shows(const ProfilePtr& profile, bool proven) const;
  void find_missing_of_loaded();
  void find_early_text();

  void verify_target();
  void doubt_what_fits_several_profiles();

  // --- The phase (assess_rows.cc): the rows of docs/node-steps.md, in the order in which they are asked. True: the row
  // applies.
  void decide();
  bool n1_no_profiles();
  bool n2_no_baseline();
  bool n3_unreadable_annotation();
  bool c1_to_c12_change();
  bool n4_no_target();
  bool n5_loaded_by_itself();
  bool n6_rolling_update();
  bool n7_runs_target();
  bool n8_needs_change();
  void try_again();
  [[nodiscard]] bool has_lost_its_cause() const;
  void note_obstacle();
  // How what the node has loaded differs from its target.
  enum class Difference : std::uint8_t {
    unknown,       // Nothing is known to be loaded.
    none,          // It has loaded its target.
    label,         // The policy's label is missing.
    rolling,       // RollingUpdate replaces its pods.
    new_template,  // Under OnDelete, its pods are of an older template.
    text,          // Another text of the same key.
    key,           // Another key.
  };
  [[nodiscard]] Difference difference() const;
  // That its pods have an older template; `otherwise` if they have the newest.
  [[nodiscard]] Difference of_template(Difference otherwise) const;
  void find_difference();
  [[nodiscard]] bool may_show_the_text() const;
  [[nodiscard]] bool mps_kept_its_old_profile(Transition transition) const;
  // Row N5: no pod need be restarted for that difference. `transition`: from what it has loaded to its target.
  [[nodiscard]] bool loads_by_itself(Difference difference, Transition transition) const;
  [[nodiscard]] Transition transition_from(const ProfilePtr& before) const;
  void replace_by_template();
  void set_transition(bool loaded_known);

  // --- Why the change is not possible.
  void block(std::string_view reason, std::string message, bool write);
  void describe_setup();
  [[nodiscard]] NodeSetup setup() const;
  [[nodiscard]] std::optional<Reason> first_block_of(CheckStage from, CheckStage to) const;
  bool block_by(std::optional<Reason> found);
  void find_missing_labels();
  void find_reload_obstacle();
  void find_obstacle();
  void hold_unreadable_owner();
  void hold_unreadable_deferral();
  // What would block the change even if no other actor held the node.
  void find_own_obstacle() { block_by(first_block_of(CheckStage::change, CheckStage::change)); }
  // NodeAssessment::would_break: by a default that is announced (or that the new templates have), and by the node's
  // own label.
  [[nodiscard]] std::string announced_break();
  // The same of what is announced alone; NodeAssessment::announced if the node would not break.
  [[nodiscard]] std::string find_announced();
  [[nodiscard]] std::string pinned_break() const;

  const AssessContext& context_;
  const Node& node_;
  const PluginInstallation& installation_;
  const ForeignUse& use_;
  NodePods pods_;
  const Operand* plugin_ = nullptr;
  const Operand* gfd_ = nullptr;
  const Operand* mps_ = nullptr;
  const SharingPolicy* policy_ = nullptr;
  const SharingPolicy* awaited_by_ = nullptr;  // The first of NodeAssessment::awaited_by.
  const MachineRecord* recorded_;              // This machine's entry in the record; null: none.
  const ConfigMap* config_map_ = nullptr;
  OtherTexts others_;                                 // With these the node does not count as running its target.
  const std::vector<RecordedText>* texts_ = nullptr;  // The last texts of its key, according to the record; null: none.
  EffectiveKey effective_;
  std::string_view foreign_holder_;    // foreign_holder() of the node.
  std::optional<Setup> setup_;         // Once the target is known.
  std::optional<EffectiveKey> start_;  // What a pod loads before the label's key; see resolve_target().
  ProfilePtr start_profile_;
  std::string wrong_key_;    // What is wrong with the key that a policy wants, now or as before.
  std::string managed_key_;  // Of the policy's inline profile, and its text.
  std::string managed_text_;
  bool rolled_back_ = false;  // That profile has failed, and the node is to be rolled back to the last good one.
  GpuFacts facts_;
  Difference difference_ = Difference::unknown;  // Once N4 does not apply.
  std::string change_problem_;                   // Why the annotation of the node's change cannot be read.
  NodeAssessment out_;
};

}  // namespace gso
