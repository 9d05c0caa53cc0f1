#include "reconcilers/explain/change_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "reconcilers/explain/shown_state.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/node/pod_faults.h"

namespace gso {
namespace {

constexpr Component kComponents[] = {Component::mps, Component::gfd, Component::plugin};

// Of the pods that the change replaces, those for which `fits` is true.
template <class Fits>
std::vector<std::string> listed_pods(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a,
                                     Fits fits) {
  std::vector<std::string> out;
  const NodePods pods = sort_pods(index.installation_of(a), index.pods_of(node.meta.name));
  for (const Component component : kComponents) {
    const auto listed = a.change->pods.find(component);
    if (listed == a.change->pods.end()) continue;
    for (const Pod* pod : pods.of(component)) {
      if (listed->second.contains(pod->meta.uid) && fits(*pod))
        out.push_back(fmt::format("{} {}", to_string(component), shown_value(pod->meta.name)));
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> pods_to_go(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  return listed_pods(index, node, a, [](const Pod&) { return true; });
}

namespace {

// No row applies yet: the node waits for pods to end or to become Ready, or does not show its profile.
std::string last_wait(const NodeAssessment& a, const NodePods& pods, const std::vector<std::string>& going) {
  if (!going.empty()) return fmt::format("waits for {} to end", going.front());
  if (!a.pods_ready) return first_problem(pods);
  return a.matches() ? "new profile is live; confirming" : "verifying: " + shown_difference(a);
}

// Why the step ends the change of a node that has lost no pod; null: it does not.
const std::string* why_it_leaves(const Step& step) {
  if (step.done) return nullptr;
  for (const PlannedAction& planned : step.plan.actions) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch == nullptr) continue;
    const auto state = patch->set.find(std::string(kStateLabel));
    const bool restores = step.row <= StepRow::c6 && state != patch->set.end() && state->second == kStateFailed;
    if (restores || patch->remove_annotations.contains(std::string(kChangeAnnotation))) return &planned.message;
  }
  return nullptr;
}

// What the step reports instead of acting; empty: nothing. How a daemon ended is no reason to wait.
std::string reported(const Step& step) {
  std::string out;
  if (!step.plan.actions.empty()) return out;
  for (const Finding& finding : step.plan.findings) {
    if (finding.reason != kMpsUncleanExit) out = finding.message;
  }
  return out;
}

// One change of one node, in words.
class StepText {
 public:
  StepText(const Index& index, const Node& node, const NodeAssessment& a, const Step& step)
      : node_(node),
        a_(a),
        step_(step),
        pods_(sort_pods(index.installation_of(a), index.pods_of(node.meta.name))),
        left_(pods_to_go(index, node, a)),
        going_(listed_pods(index, node, a, [](const Pod& pod) { return pod.meta.deletion_timestamp.has_value(); })) {}

  // `waiting`: what the status of the rollout says about the node.
  [[nodiscard]] std::string text(const std::string& waiting) const {
    if (const std::string* why = why_it_leaves(step_)) return fmt::format("{}: the node leaves its change", *why);
    switch (step_.row) {
      case StepRow::c1:
        return fmt::format("{}: the operator waits until this ends", describe_holder(a_.holder, node_));
      case StepRow::forget_cordon:
        return "someone uncordoned the node; the change continues";
      case StepRow::c2:
        return "the change has failed";
      case StepRow::c3:
      case StepRow::c4:
        return reported(step_);
      default:
        return node_.ready ? next(waiting) : std::string(kNotReadyInChangeText);
    }
  }

 private:
  // Of a Ready node, from C5 on.
  [[nodiscard]] std::string next(const std::string& waiting) const {
    switch (step_.row) {
      case StepRow::c5:
        return "the profile changed again: the pods to replace are listed again";
      case StepRow::c6:
        return waiting.empty() || !step_.plan.actions.empty() ? draining() : waiting;
      default:
        return waiting.empty() ? replacing() : waiting;
    }
  }

  [[nodiscard]] std::string draining() const {
    if (std::string why = reported(step_); !why.empty()) return why;
    if (!step_.plan.actions.empty())
      return left_.empty() ? "its label is written next" : fmt::format("{} is replaced next", left_.front());
    return left_.empty() ? "is being drained; then its label is written"
                         : "is being drained; then " + left_.front() + " is replaced";
  }

  [[nodiscard]] std::string replacing() const {
    switch (step_.row) {
      case StepRow::c7: {
        const std::string why = reported(step_);
        return why.empty() ? "the profile changed again: new pods that might have read the former text are replaced too"
                           : why;
      }
      case StepRow::c9: {
        const bool has_problem = !a_.pods_ready && !step_.last_wait_for.empty();
        const std::string why = has_problem ? first_problem(pods_) : step_.last_wait_for;
        return why.empty() ? fmt::format("{} is replaced next", left_.front())
                           : fmt::format("{}; then {} is replaced", why, left_.front());
      }
      case StepRow::c10:
        return "new profile is live; confirming";
      default: {
        std::string why = reported(step_);
        return why.empty() ? last_wait(a_, pods_, going_) : why;
      }
    }
  }

  const Node& node_;
  const NodeAssessment& a_;
  const Step& step_;
  NodePods pods_;
  std::vector<std::string> left_;
  std::vector<std::string> going_;
};

}  // namespace

std::string change_step(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  const Step* step = pass.step_of(node, a);
  if (step == nullptr) return "the operator decides about the node once it has read all that it needs";
  return StepText(pass.index(), node, a, *step).text(blocking_pods_of(pass.world(), node.meta.name)) +
         deadline_text(pass, node, a);
}

std::string deadline_text(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  constexpr Duration kUsual = std::chrono::minutes(2);
  const Step* step = a.change == nullptr || a.change->failed ? nullptr : pass.step_of(node, a);
  if (step == nullptr || step->done || !step->verifying_since || a.matches()) return {};
  const bool waits = step->row == StepRow::none || step->row == StepRow::c8 || step->row == StepRow::c9;
  if (!waits) return {};
  // Its pods serve: missing labels only make it wait, and other counts of devices can end its change as verified.
  const bool serves = node.ready && a.pods_ready;
  if (serves && (!a.labels_missing.empty() || a.verified.shortfall || a.verified.surplus)) return {};
  const Duration timeout = pass.index().policy(pass.world(), a.policy.view()).rollout.verify_timeout;
  const WallTime end = *step->verifying_since + std::chrono::ceil<WallTime::duration>(timeout);
  const bool is_late = pass.now() - *step->verifying_since >= std::min(kUsual, timeout / 2);
  if (!is_late || end <= pass.now()) return {};
  return fmt::format("; if this lasts, the change fails at {} at the latest (verifyTimeout {})", k8s::format_time(end),
                     k8s::format_go_duration(timeout));
}

std::vector<NodeStep> steps_to(ReadingPass& pass, std::string_view policy, std::string_view id, std::size_t most) {
  std::vector<NodeStep> out;
  const Index& index = pass.index();
  const auto is_of = [&](const NodeAssessment& a) {
    return a.policy == policy &&
           (id.empty() || fmt::format("{}/{}", index.installation_of(a).id(), a.key.view()) == id);
  };
  for (const Bucket bucket : {Bucket::changing, Bucket::self_loaded}) {
    const bool changes = bucket == Bucket::changing;
    for (const std::string& name : index.nodes_in(bucket)) {
      const NodeAssessment* a = index.find(name);
      const Node* node = pass.world().nodes.find(name);
      if (a == nullptr || node == nullptr || !is_of(*a) || out.size() >= most) continue;
      if (changes ? !a->change || a->change->failed : !a->loads_by_itself()) continue;
      std::string text = changes ? change_step(pass, *node, *a) : shown_state(pass, *node).message;
      out.push_back({name, phase_of(*a), std::move(text), node->ready});
    }
  }
  return out;
}

}  // namespace gso
