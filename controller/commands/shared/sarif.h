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
  // In a file: its name, and a line and column from 1, or 0 if there is no position. Empty: in a cluster.
  std::string file = {};
  int line = 0;
  int column = 0;
  std::vector<std::string> objects = {};  // What it is about, if `file` does not say it: "Node/gpu-1".
};

// One run. Each rule that occurs is described by the catalogue of codes. Each result has a place in an artifact: code
// scanning takes no other. What is found in a cluster is at the first line of an artifact that is called "cluster".
void print_sarif(const std::vector<SarifResult>& results, std::ostream& out);

}  // namespace gso
