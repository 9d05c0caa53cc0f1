// Every code that `lint` and preflight print, with what it means and what to do; and every reason of a Blocked node.
// The documentation is generated from it (`./dev docs`), and `lint --codes` prints it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/severity.h"

namespace gso {

struct CodeEntry {
  std::vector<std::string_view> codes;  // Several that mean the same.
  Severity severity = Severity::error;
  std::string_view meaning;
  std::string_view remedy;
};

struct CodeSection {
  std::string_view title;
  std::string_view intro;  // May be empty.
  std::vector<CodeEntry> entries;
};

// Each code once; those of the chain of checks are taken from it.
[[nodiscard]] const std::vector<CodeSection>& code_catalogue();
// nullptr: nothing has that code.
[[nodiscard]] const CodeEntry* find_code(std::string_view code);

// Why a node is Blocked: the closed list of labels.h, each with what it means and what to do.
struct BlockedReason {
  std::string_view reason;
  std::string_view meaning;
  std::string_view remedy;
  // The command to go on with, by next_step(): {node}, {namespace} and {configmap} (the plugin's), {label} (the
  // plugin's node label), {policy}. Empty: the command depends on more.
  std::string_view command = {};
};
[[nodiscard]] std::span<const BlockedReason> blocked_reasons();

// What to do about a finding of that code, or about a node that is Blocked for that reason; empty: neither is known.
[[nodiscard]] std::string_view remedy_of(std::string_view code_or_reason);

}  // namespace gso
