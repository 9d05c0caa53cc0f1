#include "controller/runtime/outage_log.h"

#include <utility>

#include "controller/reading/reads.h"

namespace gso {

namespace {

const std::string kServer = "server";
const std::string kCredentials = "credentials";

// No answer, or a request that cannot be sent as the connection is configured (`invalid`).
bool concerns_server(const k8s::Error& error) {
  return is_no_answer(error) || (error.http_status == 0 && error.reason == k8s::Reason::invalid);
}

}  // namespace

OutageLog::OutageLog(k8s::Clock* clock, std::shared_ptr<Logger> log) : clock_(clock), log_(std::move(log)) {}

void OutageLog::failed(const std::string& message, const std::string& subject, const k8s::Error& error) {
  if (concerns_server(error)) {
    note(kServer, "API server cannot be reached", subject, error);
  } else if (error.reason == k8s::Reason::unauthorized) {
    // Without an answer it is the credential's source that failed, a plugin for example.
    const char* headline =
        error.http_status == 0 ? "No credential for the API server" : "API server rejects the operator's credentials";
    note(kCredentials, headline, subject, error);
  } else {
    note(message + "/" + subject, message, subject, error);
  }
}

void OutageLog::worked(const std::string& message, const std::string& subject) {
  end(message + "/" + subject);
}

void OutageLog::answered(int status) {
  if (outages_.empty() || status == 0 || status >= 500) return;
  end(kServer);
  if (status != 401) end(kCredentials);
}

// A failure soon after a recovery belongs to the same outage: a flapping connection must not log a line per change.
void OutageLog::note(const std::string& key, const std::string& message, const std::string& subject,
                     const k8s::Error& error) {
  const k8s::MonoTime now = clock_->monotonic();
  const auto [place, fresh] = outages_.try_emplace(key);
  Outage& outage = place->second;
  if (fresh || (outage.over && now - outage.reported_at >= kReminder)) {
    outage = {
        .message = message, .subject = subject, .since = now, .reported_at = now, .failures = 1, .reported = true};
    log_->warning(message, {{"subject", subject}, {"error", error.message}});
    return;
  }
  outage.over = false;
  ++outage.failures;
  if (now - outage.reported_at < kReminder) return;
  outage.reported_at = now;
  outage.reported = true;
  log_->warning(message + ", still", {{"subject", subject},
                                      {"error", error.message},
                                      {"failures", outage.failures},
                                      {"for", k8s::format_go_duration(now - outage.since)}});
}

void OutageLog::end(const std::string& key) {
  const auto place = outages_.find(key);
  if (place == outages_.end() || place->second.over) return;
  Outage& outage = place->second;
  outage.over = true;
  if (!std::exchange(outage.reported, false)) return;
  log_->info("Recovered: " + outage.message, {{"subject", outage.subject},
                                              {"failures", outage.failures},
                                              {"after", k8s::format_go_duration(clock_->monotonic() - outage.since)}});
}

bool ReportedFindings::is_new(std::string text, k8s::MonoTime now) {
  const auto [known, added] = seen_.insert_or_assign(std::move(text), now);
  return added;
}

void ReportedFindings::end_pass(k8s::MonoTime now) {
  std::erase_if(seen_, [&](const auto& finding) { return now - finding.second >= kForgotten; });
}

}  // namespace gso
