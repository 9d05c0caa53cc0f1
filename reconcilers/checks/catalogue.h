// Every code that `lint` and preflight print, and every reason of a Blocked node, each with its meaning and remedy. The
// documentation is generated from it (`./dev docs`), and `lint --codes` prints it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/message_text.h"

namespace gso {

struct CodeEntry {
  std::vector<std::string_view> codes;  // Several codes with the same meaning.
  Severity severity = Severity::error;
  std::string_view meaning;
  std::string_view remedy;
};

struct CodeSection {
  std::string_view title;
  std::string_view intro;  // Can be empty.
  std::vector<CodeEntry> entries;
};

// Each code once; the rows of the chain's codes come from the chain.
[[nodiscard]] const std::vector<CodeSection>& code_catalogue();
// nullptr: the code does not exist.
[[nodiscard]] const CodeEntry* find_code(std::string_view code);

// Why a node is Blocked: the closed list of labels.h, each with its meaning and remedy.
struct BlockedReason {
  std::string_view reason;
  std::string_view meaning;
  std::string_view remedy;
  // The next command, completed by next_step(): {node}, {namespace} and {configmap} (the plugin's), {label} (the
  // plugin's node label), {policy}. Empty: the command depends on other facts.
  std::string_view command = {};
};
[[nodiscard]] std::span<const BlockedReason> blocked_reasons();

// What a finding with that code means, or the reason of a node that is Blocked; empty: the code is unknown.
[[nodiscard]] std::string_view meaning_of(std::string_view code_or_reason);

// The remedy for a finding with that code, or for a node that is Blocked for that reason; empty: the code is unknown.
[[nodiscard]] std::string_view remedy_of(std::string_view code_or_reason);

}  // namespace gso
