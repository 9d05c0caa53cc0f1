// Which findings the log has named: each is one line for as long as it lasts.
#pragma once

#include <map>
#include <string>

#include "k8sclient/clock.h"

namespace gso {

class ReportedFindings {
 public:
  // A finding of this pass, as its whole text. True: it is new, and belongs in the log.
  [[nodiscard]] bool is_new(std::string text, k8s::MonoTime now);
  // After all findings of a pass. A pass that lists the pods of a node anew can lack a finding that the passes before
  // and after it have: only one that has been absent for kForgotten is new when it returns.
  void end_pass(k8s::MonoTime now);

  static constexpr k8s::Duration kForgotten = std::chrono::minutes(1);

 private:
  std::map<std::string, k8s::MonoTime> seen_;  // When a pass had it last.
};

}  // namespace gso
