// Logs what lasts once when it begins and once when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "controller/config/logging.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

// --- What fails again and again is logged once: a line at first, a reminder a minute with the number of failures, and
// a line on recovery. A failure of the whole server (no answer, rejected credentials) is one outage for all callers.

class OutageLog {
 public:
  static constexpr k8s::Duration kReminder = std::chrono::minutes(1);

  // `clock` must outlive the log.
  OutageLog(k8s::Clock* clock, std::shared_ptr<Logger> log);

  // `message` is what did not work ("Watch failed"), `subject` what it concerns ("nodes", "Lease ops/operator").
  void failed(const std::string& message, const std::string& subject, const k8s::Error& error);
  // The same works.
  void worked(const std::string& message, const std::string& subject);
  // A request ended, with this HTTP status (0: no answer).
  void answered(int status);

 private:
  struct Outage {
    std::string message;
    std::string subject;
    k8s::MonoTime since;
    k8s::MonoTime reported_at;
    std::uint64_t failures = 0;
    bool over = false;
    bool reported = false;  // Since it was over last.
  };
  void note(const std::string& key, const std::string& message, const std::string& subject, const k8s::Error& error);
  void end(const std::string& key);

  k8s::Clock* clock_;
  std::shared_ptr<Logger> log_;
  std::map<std::string, Outage> outages_;
};

// --- Which findings the log has named: each is one line for as long as it lasts.

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
