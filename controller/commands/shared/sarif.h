// SARIF 2.1.0, the form in which code review tools take findings: GitHub code scanning, GitLab, editors.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "reconcilers/model/severity.h"

namespace gso {

struct SarifResult {
  Severity severity = Severity::warning;
  std::string rule;  // The code.
  std::string message;
  // In a file: its name, and a line and column from 1, or 0 if there is no position.
  std::string file = {};
  int line = 0;
  int column = 0;
  // Of a cluster: "Node/gpu-1". One of `file` and `objects` is given.
  std::vector<std::string> objects = {};
};

// One run. Each rule that occurs is described by the catalogue of codes.
void print_sarif(const std::vector<SarifResult>& results, std::ostream& out);

}  // namespace gso
