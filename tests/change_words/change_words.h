// The annotations of a Node that say which change is in progress, for tests: what they mean, not how they are spelled.
// Golden cases, invariants and stories use this header, so that a new spelling needs few other edits. Tests of the
// annotations themselves name them: tests/reconcilers/node, tests of unreadable values, a story's log, and tests that
// read a real API server (tests/conformance, tests/chart).
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/model/objects.h"
#include "reconcilers/model/plan.h"

namespace gso::test {

using Annotations = std::map<std::string, std::string>;

// The change that is in progress on a node.
struct ChangeWords {
  std::string to;  // Target revision; empty: none.
  // Uids of the pods to replace, by component ("plugin"). Components without a pod are left out.
  std::map<std::string, std::set<std::string>> pods;
  bool touched = false;          // The operator has begun to delete pods. Not written if false, as by earlier releases.
  bool cordoned = false;         // The operator cordoned the node.
  std::set<std::string> guards;  // Autoscalers whose annotation the operator set: "cluster-autoscaler", "karpenter".
  bool failed = false;           // It did not verify.
  bool served = true;            // The node served GPUs when the change began: written, and not read back.
  std::string retry;             // Value of the policy's retry annotation when the change failed; empty: none.
  friend bool operator==(const ChangeWords&, const ChangeWords&) = default;
};

[[nodiscard]] Annotations annotations_of(const Node& node);
// `node` is a Node object as the API server returns it; one without annotations has none.
[[nodiscard]] Annotations annotations_of(const nlohmann::json& node);

// Text that cannot be read counts as an empty list.
[[nodiscard]] ChangeWords read_change(const Annotations& annotations);
[[nodiscard]] ChangeWords read_change(const Node& node);
[[nodiscard]] ChangeWords read_change(const nlohmann::json& node);

// The annotations to put on a Node so that `change` is in progress there.
[[nodiscard]] Annotations write_change(const ChangeWords& change);

// Whether any annotation of a change remains, readable or not.
[[nodiscard]] bool has_change_annotations(const Annotations& annotations);

// The target revision that this patch writes; nothing where it leaves the target as it is, or removes it.
[[nodiscard]] std::optional<std::string> target_written_by(const PatchNode& patch);

// The annotations of a node after the patch.
[[nodiscard]] Annotations patched(Annotations before, const PatchNode& patch);

// The document in words: "total 3, pending 2". What is zero, false or empty is left out.
[[nodiscard]] std::string document_words(const nlohmann::json& document);

// What the actions do, without uids and versions: one line for each node and for the record, with all that is done to
// it, as "a01: touched (Begin!); deletes mps gfd (Restart!)", where (Begin!) is the reason of a disruptive action; and
// print() for each Event and every other object. A reconciler other than sharing.rollout is named. The autoscalers'
// annotations are left out unless `with_guards`.
[[nodiscard]] std::vector<std::string> action_lines(
    const std::vector<PlannedAction>& actions,
    const std::function<Annotations(const std::string& node)>& annotations_of_node, bool with_guards);

}  // namespace gso::test
