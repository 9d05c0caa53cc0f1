// See preflight.h.
#include "reconcilers/checks/preflight.h"

#include <algorithm>
#include <utility>

#include "reconcilers/checks/check.h"

namespace gso {
namespace {

// Unused answers are removed when the cache has twice as many as after the last sweep, and at least this many.
constexpr std::size_t kLeastToSweep = 64;

}  // namespace

std::vector<Diagnostic> run_preflight(const Setup& setup) {
  std::vector<Diagnostic> found;
  for (const Check& check : checks()) {
    if (!check.listed || check.of_setup == nullptr) continue;
    for (Complaint& complaint : check.of_setup(setup)) {
      found.push_back({complaint.severity.value_or(check.severity), std::string(check.code), std::move(complaint.path),
                       0, 0, std::move(complaint.message)});
    }
  }
  return found;
}

PreflightCache::Answer PreflightCache::check(const Setup& setup) {
  std::string identity = setup.identity();
  if (identity.empty()) return std::make_shared<const std::vector<Diagnostic>>(run_preflight(setup));
  if (const auto kept = answers_.find(identity); kept != answers_.end()) {
    if (Answer answer = kept->second.lock()) return answer;
  }
  if (answers_.size() >= std::max(sweep_at_, kLeastToSweep)) {
    std::erase_if(answers_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * answers_.size();
  }
  Answer answer = std::make_shared<const std::vector<Diagnostic>>(run_preflight(setup));
  answers_.insert_or_assign(std::move(identity), answer);
  return answer;
}

}  // namespace gso
