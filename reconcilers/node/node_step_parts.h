// The work of one step of a node in a change: one function for each row of the table in node_step.h, and the conditions
// that the rows check. Only node_step*.cc use it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/node/replace_order.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// While only its plugin serves, beside workloads (C7).
[[nodiscard]] TimerKey in_part_timer(const std::string& node, const NodeChange& change);

class ChangeStep {
 public:
  explicit ChangeStep(const StepInput& input);
  Step run();

 private:
  // --- The rows. Each returns whether it applies.

  bool c1_held();
  bool forget_cordon();
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
  bool c12_reload();  // The sidecars did not load the label's profile.

  // --- Conditions of the rows.

  [[nodiscard]] const std::string& name() const { return node_.meta.name; }
  [[nodiscard]] TimerKey timer(Timer timer) const { return change_timer(timer, name(), change_); }
  [[nodiscard]] bool any_deletable(const std::vector<Component>& components) const {
    return any_left_of(components, change_, pods_, false);
  }
  [[nodiscard]] bool all_replaced() const { return !any_listed_left(change_, pods_, true); }
  // The node has another key than the change was begun for, and not by a label of the operator.
  [[nodiscard]] bool was_taken_to_another_key() const;

  // Creation times are whole seconds. A pod created in the second of the edit cannot
  // be distinguished from an older one, and would be replaced again if the node does not verify.
  bool has_stood_long_enough();
  // Also reports it. `only_certain`: a use that is still being looked up does not count.
  bool is_hindered_by_kai(bool only_certain);

  // All listed pods are gone, and before the new pods have shown what they read, the content was edited or, under
  // OnDelete, the template changed: the pods are older than that, or do not serve, so the node will probably never show
  // the profile that it was restarted for.
  [[nodiscard]] bool is_superseded() const;
  // OnDelete: the new pods are of a template that was replaced or taken back since, and do not serve.
  [[nodiscard]] bool has_superseded_template() const;
  // What remains to be done for the present content and template.
  [[nodiscard]] ChangePlan next_plan() const;

  // The node is NotReady; and if its MPS daemon was terminating, how that one ended is unknown (cluster/cluster_pods.h
  // reports a killed one).
  void report_lost_node();

  // --- Workloads.

  bool is_drained(Drain drain);
  // With a new list the node would keep its slot while it waits for its workloads (WaitForIdle). Also reports it.
  bool would_wait_for_workloads(const ChangePlan& next);
  // Instead it leaves the change once its new pods show what they have read, however late, and gives the slot to a node
  // that is idle.
  bool serves_beside_workloads(const ChangePlan& next);
  void report_daemonset_pods();

  // Leaves the untouched change. If the node has waited, it is deferred: its workloads have had their turn.
  bool queue_again(const Reason& why);
  void defer(Deferral::By by, const Reason& why);
  // The change as it is from its first deletion on.
  [[nodiscard]] NodeChange begin() const;
  // `begun`: what is written in the same patch.
  void write_label(const NodeChange& begun);

  // --- Between first and last.

  [[nodiscard]] bool serving(Component component) const;
  // The condition that the last pods wait for; empty: none.
  [[nodiscard]] std::string waiting_for() const;

  // --- What the pods of the change have read, if the profile's text or the templates were edited again. Creation times
  // and ControllerRevisions decide this; labels only show what GFD wrote last.

  [[nodiscard]] const ConfigMap* content() const;
  // The pod has certainly read the present text, and was created from the present template.
  [[nodiscard]] bool has_read(Component component, const Pod& pod, const ConfigMap& content) const;
  [[nodiscard]] bool is_of_old_template(Component component, const Pod& pod) const;
  // The difference between what the node shows and what is in the ConfigMap, as if it had just been edited.
  [[nodiscard]] ChangePlan from_what_it_shows() const;
  // The pods to replace for that difference. Pods stay if they have certainly read the present content and have the
  // present templates; but a plugin is replaced after its MPS daemon is replaced or ended.
  [[nodiscard]] ListedPods older_pods(const ChangePlan& next) const;
  // Considers only the successors of the listed pods: pods that were not listed (mostly the MPS daemon) might be old,
  // and if no successor was created (the node is lost) no pod can be replaced. `unchanged`: since when the text of the
  // node's own key is known to be unchanged; pods that were created no longer than `tolerance` before that count as
  // newer.
  [[nodiscard]] bool is_older(WallTime unchanged, Duration tolerance) const;
  // Since when an operator that has just been started takes the text to be unchanged, if the ConfigMap does not show
  // when it changed, or shows a time that lies in the future (the clock was set back since): since the pods were listed
  // for that text. Otherwise each start of an operator would list the new pods again, and the node's pods would be
  // replaced without end. nullopt: the ConfigMap shows the time.
  [[nodiscard]] std::optional<WallTime> unchanged_seed() const;

  // --- After the last.

  // The content might have changed again meanwhile: the text that these pods have loaded counts. Their creation time
  // decides; if it proves nothing, the node's labels and capacity do, unless somebody took the node to another key: its
  // sidecars reload then, and might still read the former text of that key. A doubtful answer counts as the older
  // content, which is rolled out again.
  [[nodiscard]] bool loaded_the_present() const;
  // Their creation times prove that they have read the present text.
  [[nodiscard]] bool are_pods_newer() const { return facts_.fresh_pods && !is_from_the_future(pods_, snapshot_.now); }
  [[nodiscard]] Verification verify_target() const;
  [[nodiscard]] Verification verification() const { return loaded_the_present() ? facts_.verified : verify_target(); }
  // A status that no kubelet updates proves nothing.
  [[nodiscard]] bool shows_what_it_loaded() const { return node_.ready && facts_.pods_ready && verification().ok; }
  // Another text is the target now: its pods serve, with what they have read before. (NodeAssessment::pods_ready asks
  // for the pods that the target needs, an MPS daemon for example.)
  [[nodiscard]] bool serves_what_it_read() const;

  // The kubelet publishes a node's status every ten seconds. The status might date from before the restart (a new
  // plugin pod is Ready before it has registered), so the profile must be shown for longer than that. Otherwise a node
  // would be recorded as verified and then go out of service, beyond the budget.
  bool has_shown_it();
  bool knows_rejected();
  void finish(std::string_view reason);
  bool lists_older_again();
  void give_up();
  void fail(const std::string& why);

  // --- Actions of a step.

  bool back_out(const Reason& why);
  // A valid new content becomes the target, because the node is already out of service.
  void go_on(const ChangePlan& next, ListedPods pods);
  void delete_pods(const NodeChange& change, const std::vector<Component>& components, std::string_view why);
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
  ProfilePtr target_;  // The profile of change.to; null: unknown.
  std::vector<Component> first_;
  bool expired_ = false;  // verifyTimeout has passed.
  Step out_;
  Ages ages_;
};

}  // namespace gso
