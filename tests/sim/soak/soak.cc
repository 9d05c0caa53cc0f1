#include "tests/sim/soak/soak.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace gso::sim {

const SoakWorld& world_of(std::uint64_t seed) {
  return soak_worlds()[seed % soak_worlds().size()];
}

std::string SoakFigures::text() const {
  const double share = planned == 0 ? 100.0 : 100.0 * static_cast<double>(met) / static_cast<double>(planned);
  return fmt::format(
      "{} faulted rollouts, {} failed; {} came to a named stop and arrived after a retry; {} of {} injected faults "
      "({:.0f} %) met a request or a view; {} crashes, {} writes, {:.0f} hours of virtual time",
      rollouts, failed, stops, met, planned, share, crashes, writes, virtual_hours);
}

SoakBench* Soak::bench(const SoakWorld& world) {
  auto& built = benches_[world.name];
  if (built == nullptr) {
    built = std::make_unique<SoakBench>(world);
    if (!built->problem().empty()) {
      ++figures_.failed;
      failures_.push_back(fmt::format("world {}: {}", world.name, built->problem()));
      tell_(failures_.back());
    }
  }
  return built->problem().empty() ? built.get() : nullptr;
}

void Soak::add(const SoakOutcome& outcome) {
  ++figures_.rollouts;
  figures_.stops += outcome.stop.empty() ? 0 : 1;
  figures_.planned += outcome.applied.size();
  figures_.met += static_cast<std::size_t>(std::ranges::count_if(outcome.applied, [](int n) { return n > 0; }));
  figures_.writes += outcome.writes;
  figures_.crashes += outcome.crashes;
  figures_.virtual_hours += outcome.virtual_hours;
}

void Soak::judge(const SoakBench& bench, const Job& job, const SoakOutcome& outcome) {
  add(outcome);
  if (outcome.wrong.empty()) return;
  ++figures_.failed;
  tell_(fmt::format("FAILED {} ({}): {}", job.name, bench.world().name, outcome.wrong));
  // The same kind of failure: its first word, which is an invariant's name.
  const std::string kind = outcome.wrong.substr(0, outcome.wrong.find_first_of(": "));
  const FaultPlan least =
      shrink(job.plan, [&](const FaultPlan& part) { return bench.play(part).wrong.starts_with(kind); });
  std::vector<std::string> faults;
  std::vector<std::size_t> only;
  for (const FaultRule& rule : least) {
    faults.push_back(describe(rule));
    const auto at =
        std::ranges::find_if(job.plan, [&](const FaultRule& each) { return describe(each) == faults.back(); });
    only.push_back(static_cast<std::size_t>(at - job.plan.begin()) + 1);
  }
  failures_.push_back(fmt::format("{} --only {} ({}): {}: {}", job.name, fmt::join(only, ","), bench.world().name,
                                  fmt::join(faults, "; "), outcome.wrong));
  tell_("  shortest: " + failures_.back());
}

void Soak::play(const SoakBench& bench, const std::vector<Job>& jobs) {
  std::deque<std::pair<std::size_t, SoakBench::Run>> running;
  const auto finish_one = [&] {
    const auto [index, run] = running.front();
    running.pop_front();
    judge(bench, jobs[index], bench.finish(run));
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (running.size() == jobs_) finish_one();
    running.emplace_back(i, bench.begin(jobs[i].plan));
  }
  while (!running.empty()) finish_one();
}

void Soak::play_seeds(const std::vector<std::uint64_t>& seeds) {
  std::map<const SoakWorld*, std::vector<std::uint64_t>> by_world;
  for (const std::uint64_t seed : seeds) by_world[&world_of(seed)].push_back(seed);
  for (const auto& [world, its] : by_world) {
    SoakBench* built = bench(*world);
    if (built == nullptr) continue;
    std::vector<Job> jobs;
    for (const std::uint64_t seed : its) {
      FaultPlan plan = make_plan(seed, built->reference().places);
      const auto wanted = [&](const FaultRule& rule) { return describe(rule).contains(": " + fault_); };
      if (std::ranges::any_of(plan, wanted)) jobs.push_back({fmt::format("--seed {}", seed), std::move(plan)});
    }
    play(*built, jobs);
  }
}

void Soak::play_every_crash(const SoakWorld& world, std::size_t part, std::size_t parts) {
  SoakBench* built = bench(world);
  if (built == nullptr) return;
  const std::vector<FaultPlan> plans = every_crash(built->reference().places);
  std::vector<Job> jobs;
  for (std::size_t i = part; i < plans.size(); i += parts)
    jobs.push_back({fmt::format("--every-crash {} --number {}", world.name, i + 1), plans[i]});
  play(*built, jobs);
}

void Soak::replay(std::uint64_t seed, const std::vector<std::size_t>& only) {
  SoakBench* built = bench(world_of(seed));
  if (built == nullptr) return;
  FaultPlan plan = make_plan(seed, built->reference().places);
  for (std::size_t i = 0; i < plan.size(); ++i) tell_(fmt::format("{}. {}", i + 1, describe(plan[i])));
  if (!only.empty()) {
    FaultPlan chosen;
    for (const std::size_t number : only)
      if (number >= 1 && number <= plan.size()) chosen.push_back(plan[number - 1]);
    plan = std::move(chosen);
  }
  const SoakOutcome outcome = built->play(plan);
  add(outcome);
  tell_(outcome.log);
  if (!outcome.stop.empty()) tell_("named stop: " + outcome.stop);
  tell_(fmt::format("applied {}; trace {:016x}", fmt::join(outcome.applied, ","), outcome.trace));
  if (outcome.wrong.empty()) return tell_("arrived");
  ++figures_.failed;
  failures_.push_back(fmt::format("--seed {}: {}", seed, outcome.wrong));
  tell_(outcome.wrong);
}

}  // namespace gso::sim
