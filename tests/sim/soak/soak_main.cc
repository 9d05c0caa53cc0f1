// gso-soak: rollouts under seeded faults, for minutes or for hours. Exit code 0: all kept the invariants and arrived.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "tests/sim/soak/soak.h"

namespace {

void tell(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

struct Wanted {
  std::uint64_t seeds = 500, from = 1;
  double minutes = 0;
  std::uint64_t seed = 0;
  std::vector<std::size_t> only;
  std::string every_crash;
  std::size_t number = 0;
  std::string fault;
  std::size_t jobs = std::max(1U, std::thread::hardware_concurrency());
};

void play(const Wanted& wanted, gso::sim::Soak& soak) {
  if (!wanted.every_crash.empty()) {
    for (const gso::sim::SoakWorld& world : gso::sim::soak_worlds()) {
      if (wanted.every_crash != world.name) continue;
      if (wanted.number > 0) return soak.play_every_crash(world, wanted.number - 1, 1'000'000);
      return soak.play_every_crash(world);
    }
    return tell("no world is called " + wanted.every_crash);
  }
  if (wanted.seed != 0) return soak.replay(wanted.seed, wanted.only);
  const auto begun = std::chrono::steady_clock::now();
  const auto limit = std::chrono::duration<double, std::ratio<60>>(wanted.minutes);
  for (std::uint64_t next = wanted.from;; next += wanted.seeds) {
    // In portions: each world is prepared once.
    std::vector<std::uint64_t> seeds(wanted.seeds);
    std::iota(seeds.begin(), seeds.end(), next);
    soak.play_seeds(seeds);
    if (std::chrono::steady_clock::now() - begun >= limit) return;
    tell(soak.figures().text());
  }
}

// Small pieces of JSON are most of the work. glibc keeps seven freed ones of a size at hand, and takes its long way for
// the others: with more of them an eighth of the time is saved. It reads this at the start of a program only.
void start_again_with_a_larger_cache(char** argv) {
  if (std::getenv("GLIBC_TUNABLES") != nullptr) return;
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=60000", 1);
  ::execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  start_again_with_a_larger_cache(argv);
  Wanted wanted;
  CLI::App app{"Rollouts on the simulated cluster under seeded faults"};
  app.add_option("--seeds", wanted.seeds, "Rollouts, or with --minutes: rollouts at a time")
      ->check(CLI::PositiveNumber);
  app.add_option("--from", wanted.from, "First seed");
  app.add_option("--minutes", wanted.minutes, "Go on with further seeds for so long");
  app.add_option("--seed", wanted.seed, "Replay one seed, and show its faults and logs");
  app.add_option("--only", wanted.only, "Of that seed's faults only these, by number")->delimiter(',');
  app.add_option("--fault", wanted.fault, "Of the seeds only those with this fault, such as history_lost");
  app.add_option("--every-crash", wanted.every_crash, "Crash at each write of the rollout in this world");
  app.add_option("--number", wanted.number, "Only this one of them");
  app.add_option("--jobs", wanted.jobs, "Processes at once")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  gso::sim::Soak soak(wanted.jobs, tell);
  soak.play_only(wanted.fault);
  play(wanted, soak);
  for (const std::string& failure : soak.failures()) tell("FAILED " + failure.substr(0, 600));
  tell(soak.figures().text());
  std::printf("%zu passed, %zu failed\n", soak.figures().rollouts - soak.figures().failed, soak.figures().failed);
  return soak.figures().failed == 0 ? 0 : 1;
}
