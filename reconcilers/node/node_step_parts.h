// The work of one step of a node in a change: one function for each row of the table in node_step.h, and what the rows
// ask. Not for use outside of node_step*.cc.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/node/loaded_content.h"
#include "reconcilers/node/node_step.h"

namespace gso {

class ChangeStep {
 public:
  explicit ChangeStep(const StepInput& input);
  Step run();

 private:
  // --- The rows. Each returns whether it applies.

  bool c1_held();
  bool c2_failed();
  bool c3_back_out();
  bool c4_wait();
  bool c5_new_target();
  bool c6_drain();
  bool c7_list_older();
  bool c8_terminating();
  bool c9_last();
  bool c10_verified();
  bool c11_time_is_over();

  // The sidecars did not bring the label's profile in by themselves.
  bool c12_reload();

  // --- What the rows ask.

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] bool any_left(const std::vector<Component>& components) const;
  [[nodiscard]] bool any_deletable(const std::vector<Component>& components) const;
  [[nodiscard]] bool all_replaced() const;

  // Creation times are whole seconds. A pod that comes in the second of the edit could not be told from one that came
  // before it, and would be replaced again if the node does not verify.
  bool has_stood_for_a_second();
  bool hindered_by_kai();

  // All listed pods are gone, and the content has moved on before the new ones have shown the old one: they are older
  // than it, or do not serve, so that the node will hardly ever show what it was restarted for.
  [[nodiscard]] bool is_superseded() const;

  // The node was lost while its MPS daemon was to end: how that ended is not known (a killed one is told apart,
  // killed_daemons.h).
  void watch_lost_daemon();

  // --- Workloads.

  bool is_drained(Drain drain);

  // To the back of the queue, like a node whose workloads did not end.
  void give_back();
  void defer(Deferral::By by, std::string_view reason, std::string message);
  void write_label();

  // --- Between first and last.

  [[nodiscard]] bool is_listed(Component component) const;
  [[nodiscard]] bool serving(Component component) const;
  // What the last pods wait for; empty: nothing.
  [[nodiscard]] std::string waiting_for() const;

  // --- After the last.

  // The content may have changed again meanwhile: what counts is what these pods have loaded. Their creation time
  // tells, else what the node shows; an answer that is in doubt reads as the older content, which is rolled again.
  [[nodiscard]] bool loaded_the_present() const;
  [[nodiscard]] Verification verify_target() const;
  [[nodiscard]] Verification verification() const;
  // A status that no kubelet keeps up to date shows nothing.
  [[nodiscard]] bool shows_what_it_loaded() const;

  // The kubelet publishes a node's status every ten seconds: what the node shows may be from before the restart (a new
  // plugin pod is Ready before it has registered), so it must hold for longer than that. Else a node would be called
  // verified and then go out of service, beyond the budget.
  bool has_shown_it();
  bool knows_rejected();
  void finish(std::string_view reason);
  void give_up();
  void fail(const std::string& why);

  // --- What a step plans.

  bool back_out(std::string_view reason, std::string message);

  // A valid new content becomes the target: the node is out of service already.
  void go_on(const ChangePlan& next, std::map<Component, std::set<std::string>> pods);
  void delete_pods(const std::vector<Component>& components, std::string_view why);
  void add(PatchNode patch, std::string_view reason, std::string message, bool disruptive);
  void event(bool warning, std::string_view reason, std::string_view action, std::string note);
  void finding(Severity severity, std::string_view reason, std::string message);

  const StepInput& input_;
  const NodeView& view_;
  const Snapshot& snapshot_;
  const Node& node_;
  const NodeAssessment& facts_;
  const NodeChange& change_;
  const RolloutSpec& rollout_;
  const NodePods& pods_;
  bool same_target_;
  ProfilePtr target_;
  std::vector<Component> first_;
  LoadedContent content_;
  bool expired_ = false;  // verifyTimeout has passed.
  Step out_;
  Ages ages_;
};

}  // namespace gso
