// Choosing faults.
#include "tests/sim/apiserver/faults.h"

namespace gso::sim {
namespace {

bool is_write(const std::string& verb) {
  return verb != "get" && verb != "list" && verb != "watch";
}

}  // namespace

std::uint64_t Faults::count(Fault fault) const {
  std::uint64_t count = 0;
  for (const State& s : rules_)
    if (s.rule.fault == fault) count += static_cast<std::uint64_t>(s.applied);
  return count;
}

std::optional<FaultRule> Faults::pick(Fault fault, const std::string& verb, const std::string& resource,
                                      const std::string& name) {
  for (State& s : rules_) {
    const FaultRule& rule = s.rule;
    if (rule.fault != fault || s.applied >= rule.times) continue;
    const bool verb_matches = rule.verb.empty() || rule.verb == verb || (rule.verb == "write" && is_write(verb));
    if (!verb_matches || (!rule.resource.empty() && rule.resource != resource)) continue;
    if (!rule.name.empty() && rule.name != name) continue;
    if (!rule.spared.empty() && rule.spared == resource) continue;
    if (s.seen++ < rule.skip) continue;
    if (std::uniform_real_distribution<double>(0.0, 1.0)(random_) >= rule.probability) continue;
    ++s.applied;
    return rule;
  }
  return std::nullopt;
}

}  // namespace gso::sim
