// Texts as lint reads them, and what it says by code.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/lint/lint.h"
#include "reconcilers/reasons/reason.h"

namespace gso::lint_test {

using Codes = std::vector<std::string>;

inline std::vector<LintedDocument> lint(const std::string& text, PodRules rules = {}) {
  return lint_text("f.yaml", text, rules);
}

// As the command does it: each document alone, then all of them together.
inline std::vector<LintedDocument> lint_together(const std::string& text, const PodRules& rules = {}) {
  std::vector<ClusterObject> objects;
  std::vector<LintedDocument> documents = lint_text("f.yaml", text, rules, &objects);
  lint_cluster(objects, documents);
  lint_nos(objects, documents);
  lint_kai(objects, rules, documents);
  lint_pods(objects, documents);
  return documents;
}

inline Codes codes(const LintedDocument& document, bool infos = false) {
  Codes out;
  for (const Diagnostic& d : document.diagnostics)
    if (infos || d.severity != Diagnostic::Severity::info) out.push_back(d.code);
  return out;
}

// Of all documents of a text, infos among them.
inline Codes codes_of(const std::string& text) {
  Codes out;
  for (const LintedDocument& document : lint(text)) std::ranges::copy(codes(document, true), std::back_inserter(out));
  return out;
}

// One text for each document: "#1 Profile map.key: error WrongType 7:3", with the places of its diagnostics.
inline Codes told(const std::vector<LintedDocument>& documents) {
  Codes out;
  for (const LintedDocument& document : documents) {
    std::string line = document.source.substr(document.source.rfind('#')) + " " + document.kind;
    if (!document.name.empty()) line += " " + document.name;
    if (!document.key.empty()) line += "." + document.key;
    for (const Diagnostic& d : document.diagnostics)
      line += fmt::format("{} {} {} {}:{}", &d == document.diagnostics.data() ? ":" : ",", to_string(d.severity),
                          d.code, d.at.line, d.at.column);
    out.push_back(line);
  }
  return out;
}

// What the first document's first diagnostic says; empty: there is none.
inline std::string first_message(const std::string& text) {
  const auto documents = lint(text);
  return documents[0].diagnostics.empty() ? "" : documents[0].diagnostics[0].message;
}

}  // namespace gso::lint_test
