// The chain of checks: each possible problem of a node's setup is decided once, in one order. Preflight lists all
// checks that fail; the node's assessment uses the first one that blocks; documentation, `lint --codes` and remedies
// are generated from the table (chain.cc). A check is a pure function of its arguments.
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

// One problem that a check has found.
struct Complaint {
  std::string path;  // The profile's field that causes it; can be empty.
  std::string message;
  std::optional<Severity> severity = std::nullopt;  // Overrides the severity of the check.
  bool blocks = true;                               // False: this problem does not block, although the check can block.
};
using Complaints = std::vector<Complaint>;

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
  // Preflight lists it for the node; otherwise the node's phase, or a finding about another object, reports it.
  bool listed = true;
  std::string_view meaning = {};  // For the documentation: its meaning,
  std::string_view remedy = {};   // and its remedy.
  // Exactly one of the two is set. Answers of the first kind are cached for all nodes with an equal setup.
  Complaints (*of_setup)(const Setup& setup) = nullptr;
  Complaints (*of_node)(const NodeSetup& setup) = nullptr;
};

// In the order in which they run.
[[nodiscard]] std::span<const Check> checks();
// Null: no check with that code exists.
[[nodiscard]] const Check* find_check(std::string_view code);

// Why a node is blocked.
struct Block {
  const Check* check = nullptr;
  std::string message;
};
// The first check from the first to the second of these stages that blocks the node.
[[nodiscard]] std::optional<Block> first_block(const NodeSetup& setup, CheckStage from, CheckStage to);

}  // namespace gso
