// Texts as lint reads them, and what it says by code.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "reconcilers/reasons/reason.h"

namespace gso::lint_test {

using Codes = std::vector<std::string>;

inline std::vector<LintedDocument> lint(const std::string& text, PodRules rules = {}) {
  return lint_text("f.yaml", text, rules);
}

inline Codes codes(const LintedDocument& document, bool infos = false) {
  Codes out;
  for (const Diagnostic& d : document.diagnostics)
    if (infos || d.severity != Diagnostic::Severity::info) out.push_back(d.code);
  return out;
}

}  // namespace gso::lint_test
