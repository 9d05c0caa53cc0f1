#include "reconcilers/fleet/shown_sums.h"

#include <string_view>

#include "reconcilers/node/drift.h"
#include "reconcilers/node/node_phase.h"

namespace gso {
namespace {

void add_count(ShownSums::Counts& counts, std::string_view value, std::int64_t sign) {
  auto at = counts.find(value);
  if (at == counts.end()) at = counts.emplace(value, 0).first;
  at->second += sign;
  if (at->second == 0) counts.erase(at);
}

void put(ShownSums::Names& names, const std::string& name, std::int64_t sign) {
  if (sign > 0) {
    names.insert(name);
  } else {
    names.erase(name);
  }
}

}  // namespace

void ShownSums::add(const std::string& name, const NodeAssessment& assessment, std::int64_t sign) {
  const std::string_view state = state_name(assessment);
  add_count(states, state, sign);

  const std::string_view ref = assessment.profile_ref.view();
  auto profile = profiles.find(ref);
  if (profile == profiles.end()) profile = profiles.try_emplace(std::string(ref)).first;
  add_count(profile->second, state, sign);
  if (profile->second.empty()) profiles.erase(profile);

  if (drifts(assessment) && assessment.at_install == AtInstall::shown) put(drifting, name, sign);
  const Phase phase = phase_of(assessment);
  if (phase == Phase::failed) put(failed, name, sign);
  if (phase != Phase::blocked && phase != Phase::held) return;
  const std::string_view why = shown_reason(assessment);
  auto reason = reasons.find(why);
  if (reason == reasons.end()) reason = reasons.try_emplace(std::string(why)).first;
  put(reason->second, name, sign);
  if (reason->second.empty()) reasons.erase(reason);
}

}  // namespace gso
