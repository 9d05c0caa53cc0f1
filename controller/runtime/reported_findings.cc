#include "controller/runtime/reported_findings.h"

#include <utility>

namespace gso {

bool ReportedFindings::is_new(std::string text, k8s::MonoTime now) {
  const auto [known, added] = seen_.insert_or_assign(std::move(text), now);
  return added;
}

void ReportedFindings::end_pass(k8s::MonoTime now) {
  std::erase_if(seen_, [&](const auto& finding) { return now - finding.second >= kForgotten; });
}

}  // namespace gso
