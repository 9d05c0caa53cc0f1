// A node whose change waits for pods: nothing is wrong, and what ends the wait is a decision. `explain` and `rollout
// status` both say what is decided here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/explain/reading_pass.h"

namespace gso {

// Something that ends the wait, and who decides it.
struct PodDecision {
  std::string decision;     // "the administrator of policy default sets spec.rollout.workloads: Evict"
  std::string command;      // Carries it out; empty: no command of this cluster does.
  std::string effect = {};  // May be empty.
  // For a list of what can be decided.
  [[nodiscard]] std::string text() const;
  // The command, with the rest as its comment; empty if there is no command.
  [[nodiscard]] std::string next() const;
};

// What ends a node's wait for pods.
struct PodAdvice {
  std::string command;                 // Shows the pods, or the budget that keeps them, or lets the operator evict.
  std::string owners;                  // What the owners of the pods, or of what keeps them, can do.
  std::vector<PodDecision> decisions;  // Of administrators, the mildest first.
  // The command, with what the owners can do as its comment.
  [[nodiscard]] std::string next() const;
};

// A node waits for pods, or has been deferred because of them, where a status gives this reason.
[[nodiscard]] bool is_about_pods(std::string_view reason);
// `blocked`: such a reason, and what the operator, or a listing of the pods, says of them. Who can do what follows from
// the policy's `rollout`, from why the pods stay and, where the pass has listed the pods, from what each setting would
// bring.
[[nodiscard]] PodAdvice advice_on_pods(const ReadingPass& pass, const Node& node, const NodeAssessment& assessment,
                                       const Reason& blocked);

// Of a node that waits for pods, with the alternatives as `explain` lists them, one a line. Empty: the node does not
// wait for pods, or its rollout is stopped as well.
struct PodChoices {
  std::vector<std::string> options;
  std::string command;  // Of the advice.
};
[[nodiscard]] PodChoices pod_choices(ReadingPass& pass, const Node& node, const NodeAssessment& assessment);

}  // namespace gso
