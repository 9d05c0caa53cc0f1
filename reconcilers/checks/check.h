// The chain of checks: what can be wrong with a node's setup, each decided once, in one order. Preflight lists all that
// fail; the node's assessment takes the first that blocks; documentation, `lint --codes` and remedies are made from the
// table. A check is a pure function of what it is given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/checks/setup.h"
#include "reconcilers/model/severity.h"

namespace gso {

// One thing that a check has found.
struct Complaint {
  std::string path;  // The profile's field that is to blame; may be empty.
  std::string message;
  std::optional<Severity> severity = std::nullopt;  // Another one than the check's.
  bool blocks = true;                               // False: not here, although the check can block.
};
using Complaints = std::vector<Complaint>;

// What a check is a condition of, from the first to be asked to the last.
enum class CheckStage : std::uint8_t {
  provider,  // Whether profiles apply to the node at all.
  policy,    // What the node's policy wants of the ConfigMap.
  profile,   // Whether a pod can start with what the node resolves to.
  change,    // Whether the node can be changed to it. Not asked of nodes that run it already.
};

struct Check {
  std::string_view code;  // CamelCase, stable.
  Severity severity = Severity::error;
  // The reason (labels.h, "Why a node is Blocked") of a node that an error of this check blocks; empty: it blocks none.
  std::string_view blocks = {};
  bool writes_to_node = false;  // The reason concerns the node alone: state and message are written to it.
  CheckStage stage = CheckStage::change;
  // Preflight lists it about the node; else the node's phase, or a finding about another object, says it.
  bool listed = true;
  std::string_view meaning = {};  // For the documentation: what it means,
  std::string_view remedy = {};   // and what to do.
  // One of the two. Answers of the first kind are kept for all nodes that are alike.
  Complaints (*of_setup)(const Setup& setup) = nullptr;
  Complaints (*of_node)(const NodeSetup& setup) = nullptr;
};

// In the order in which they are asked.
[[nodiscard]] std::span<const Check> checks();
// Null: no check has that code.
[[nodiscard]] const Check* find_check(std::string_view code);

// Why a node is blocked.
struct Block {
  const Check* check = nullptr;
  std::string message;
};
// The first check of these stages, and of those between, that blocks the node.
[[nodiscard]] std::optional<Block> first_block(const NodeSetup& setup, CheckStage from, CheckStage to);

// The link into docs/runbooks.md for a reason of a Blocked node or a code of a check:
// "runbooks.md#why-a-node-is-blocked".
[[nodiscard]] std::string runbook_of(const Check& check);

}  // namespace gso
