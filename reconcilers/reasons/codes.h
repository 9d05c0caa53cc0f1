// Every code that the operator says something by: of lint and preflight, of Blocked nodes, of findings, Events and
// conditions. A code has one row here, or in the table of checks (reconcilers/checks), and everything that is
// said about the code itself follows from that row: `lint --codes`, remedies, and docs/codes.md (`./dev docs`).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reconcilers/reasons/reason.h"

namespace gso {

struct CodeRow {
  // CamelCase, stable; several with the same meaning. The first is always there, and no empty one comes before another.
  std::array<std::string_view, 5> codes;
  Severity severity = Severity::error;
  std::string_view meaning = {};  // Empty: the table of checks has it.
  std::string_view remedy = {};
  // Where people meet it, for the documentation: "finding; Event on the Node". Empty: what its section says, and of
  // what is reported, a finding.
  std::string_view seen = {};
  // The next command for a node that is Blocked, completed by next_step(): {node}, {namespace} and {configmap} (the
  // plugin's), {label} (the plugin's node label), {policy}. Empty: the command depends on other facts.
  std::string_view command = {};

  [[nodiscard]] constexpr std::span<const std::string_view> names() const {
    return {codes.begin(), std::ranges::find(codes, std::string_view())};
  }
};

// A row of each severity. Of what is reported, `seen` is left out if it is a finding alone.
constexpr CodeRow error_row(decltype(CodeRow::codes) codes, std::string_view meaning, std::string_view remedy,
                            std::string_view seen = {}) {
  return {codes, Severity::error, meaning, remedy, seen};
}
constexpr CodeRow warning_row(decltype(CodeRow::codes) codes, std::string_view meaning, std::string_view remedy,
                              std::string_view seen = {}) {
  return {codes, Severity::warning, meaning, remedy, seen};
}
constexpr CodeRow info_row(decltype(CodeRow::codes) codes, std::string_view meaning, std::string_view remedy,
                           std::string_view seen = {}) {
  return {codes, Severity::info, meaning, remedy, seen};
}

struct CodeSection {
  enum class Kind : std::uint8_t {
    checked,   // Diagnostics of lint and preflight.
    blocks,    // Reasons of Blocked nodes.
    reported,  // Findings, Events and conditions.
  };
  Kind kind;
  std::string_view title;
  std::string_view intro;  // Can be empty.
  std::vector<CodeRow> rows;

  CodeSection(Kind of, std::string_view name, std::string_view about, std::span<const CodeRow> codes)
      : kind(of), title(name), intro(about), rows(codes.begin(), codes.end()) {}
};

[[nodiscard]] CodeSection codes_of_blocked_nodes();
[[nodiscard]] std::vector<CodeSection> codes_reported();
// The section without rows is of the checks of the chain that no other section has.
[[nodiscard]] std::vector<CodeSection> codes_checked();

}  // namespace gso
