// Many faulted rollouts: seeds, figures, and the shortest plan for what failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/soak/faulted_rollout.h"

namespace gso::sim {

struct SoakFigures {
  std::size_t rollouts = 0, failed = 0;
  std::size_t stops = 0;                  // Ended by a person's retry.
  std::size_t planned = 0, met = 0;       // Faults; those that met a request or a view.
  std::uint64_t writes = 0, crashes = 0;  // Of the operators.
  double virtual_hours = 0;
  [[nodiscard]] std::string text() const;
};

class Soak {
 public:
  using Tell = std::function<void(const std::string& line)>;
  // At most `jobs` processes at once.
  Soak(std::size_t jobs, Tell tell) : jobs_(jobs), tell_(std::move(tell)) {}

  // Of seeds only those whose plan has this fault ("history_lost").
  void play_only(std::string fault) { fault_ = std::move(fault); }
  // The rollouts of these seeds. Each decides a world and a plan.
  void play_seeds(const std::vector<std::uint64_t>& seeds);
  // Each write of the rollout in this world, with each of the three crashes. `part` of `parts`, from 0.
  void play_every_crash(const SoakWorld& world, std::size_t part = 0, std::size_t parts = 1);
  // One seed, of its plan only the faults with these numbers (from 1; empty: all). Says everything about it.
  void replay(std::uint64_t seed, const std::vector<std::size_t>& only);

  [[nodiscard]] const SoakFigures& figures() const { return figures_; }
  // One line for each failure: how to replay it, and what it was.
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

 private:
  struct Job {
    std::string name;  // How it is replayed.
    FaultPlan plan;
  };
  SoakBench* bench(const SoakWorld& world);
  void play(const SoakBench& bench, const std::vector<Job>& jobs);
  void judge(const SoakBench& bench, const Job& job, const SoakOutcome& outcome);
  void add(const SoakOutcome& outcome);

  std::size_t jobs_;
  std::string fault_;  // Empty: any.
  Tell tell_;
  std::map<std::string, std::unique_ptr<SoakBench>> benches_;
  SoakFigures figures_;
  std::vector<std::string> failures_;
};

// The world of a seed.
[[nodiscard]] const SoakWorld& world_of(std::uint64_t seed);

}  // namespace gso::sim
