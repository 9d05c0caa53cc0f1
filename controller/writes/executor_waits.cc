// What may be sent when: the backoff of what failed, refusals that are remembered, and how often a status is written.
#include <set>

#include "controller/writes/executor.h"

namespace gso {

std::string Executor::read_of_node(const std::string& node) {
  return "get nodes " + node;
}

std::optional<Duration> Executor::not_before(const PlannedAction& planned) {
  const std::string subject = subject_of(planned);
  const MonoTime now = parts_.clock->monotonic();
  if (auto it = terminal_.find(subject); it != terminal_.end()) {
    if (it->second.action.action == planned.action && now < it->second.retry_at) return it->second.retry_at - now;
    if (it->second.action.action != planned.action) terminal_.erase(it);
  }
  if (auto it = retries_.find(subject); it != retries_.end()) {
    if (now < it->second.at) return it->second.at - now;
  }
  return status_wait(planned);
}

std::optional<Duration> Executor::status_wait(const PlannedAction& planned) const {
  const auto* patch = std::get_if<PatchStatus>(&planned.action);
  if (patch == nullptr) return std::nullopt;
  auto it = statuses_.find(subject_of(planned));
  if (it == statuses_.end() || it->second.phase != phase_of_status(patch->status_json)) return std::nullopt;
  const Duration passed = parts_.clock->monotonic() - it->second.at;
  return passed < options_.status_interval ? std::optional(options_.status_interval - passed) : std::nullopt;
}

// Pod names do not repeat: entries that are neither pending nor wanted would be kept forever. For a node that is being
// written nothing is planned, and its failures go on counting.
void Executor::forget_what_is_over(const std::vector<PlannedAction>& actions) {
  if (remembered() == 0) return;
  const MonoTime now = parts_.clock->monotonic();
  std::erase_if(statuses_, [&](const auto& entry) { return now - entry.second.at >= options_.status_interval; });
  std::set<std::string> planned;
  for (const PlannedAction& action : actions) {
    planned.insert(subject_of(action));
    if (!action.node.empty()) planned.insert(read_of_node(action.node));
  }
  std::erase_if(terminal_, [&](const auto& entry) { return !planned.contains(entry.first); });
  const NodesBeingWritten written = nodes_being_written();
  std::erase_if(retries_, [&](const auto& entry) {
    const Retry& retry = entry.second;
    const bool over = now >= retry.at && !planned.contains(entry.first) && !written.contains(retry.node);
    if (over) backoff_.forget(entry.first);
    return over;
  });
}

void Executor::forget(const std::string& subject) {
  backoff_.forget(subject);
  retries_.erase(subject);
  terminal_.erase(subject);
}

// Repeats the findings and Events of refusals that still apply, so that they remain while no write is sent.
void Executor::report_remembered(const RunPtr& run) {
  for (const auto& [subject, refused] : terminal_) {
    if (parts_.clock->monotonic() < refused.retry_at) report(run, refused.action, refused.error);
  }
}

}  // namespace gso
