// rollout_bench: one edit rolled over a model fleet (no API server), step by step through all of its waves: CPU of each
// planning step, apart from what the step's events cost the index, and resident memory on the way. Every node of a wave
// answers in the same second, so bursts are as large as they can be.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <vector>

#include "reconcilers/model/policy.h"
#include "tests/change_words/change_words.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace {

using namespace gso;

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  long size = 0;
  long resident = 0;
  file >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

struct Step {
  double refresh_ms = 0;  // The index takes in what has happened since the last step.
  double plan_ms = 0;
  std::size_t actions = 0;
  std::size_t starts = 0;
};

void print_percentiles(const char* what, std::vector<Step> steps, double Step::* value) {
  std::ranges::sort(steps, {}, value);
  const auto at = [&](double share) {
    return steps[static_cast<std::size_t>(share * static_cast<double>(steps.size() - 1))].*value;
  };
  fmt::print("{:26} p50 {:7.2f}   p90 {:7.2f}   p99 {:7.2f}   max {:7.2f} ms\n", what, at(0.5), at(0.9), at(0.99),
             at(1.0));
}

class Bench {
 public:
  Bench(int nodes, const std::string& from, std::string to, int budget, const std::string& names)
      : to_(std::move(to)), fleet_(fleet_of(nodes, from, names)) {
    fleet_.settings.cluster_max_unavailable = fleet_.settings.rollout.max_unavailable = {budget, true};
  }

  void run() {
    fleet_.plan();  // The default policy and the baseline.
    while (!fleet_.tick().actions.empty()) continue;
    nodes_ = fleet_.index.node_names().size();
    fmt::print("resident before the edit   {:8.1f} MiB (the model fleet included)\n", resident_mib());
    fleet_.edit("any", to_);
    roll();
    print_percentiles("CPU of planning a step", steps_, &Step::plan_ms);
    print_percentiles("CPU of its events", steps_, &Step::refresh_ms);
    std::vector<Step> quiet = steps_;
    std::erase_if(quiet, [](const Step& step) { return step.actions > 100; });
    print_percentiles("planning, <= 100 actions", quiet, &Step::plan_ms);
    const auto worst = std::ranges::max_element(steps_, {}, &Step::plan_ms);
    fmt::print("dearest step               number {} of {}: {} actions, {} of them starts\n",
               worst - steps_.begin() + 1, steps_.size(), worst->actions, worst->starts);
  }

 private:
  // Cloud providers give nodes long names, and the record, messages and logs contain them.
  static std::string name_of(const std::string& names, std::size_t number) {
    const std::size_t subnet = number / 250;
    if (names == "eks")
      return fmt::format("ip-10-{}-{}-{}.eu-central-1.compute.internal", subnet / 250, subnet % 250, number % 250);
    // The suffixes of GKE's node pools and instances are random; these are as long, and unique.
    return fmt::format("gke-ml-production-eu-gpu-a100-pool-{:08x}-{:04x}", (subnet * 2654435761U) & 0xffffffffU,
                       number);
  }

  static test::FleetSpec fleet_of(int nodes, const std::string& from, const std::string& names) {
    test::FleetSpec spec;
    spec.profiles = {{"any", from}};
    spec.nodes = test::alike_nodes(nodes);
    constexpr const char* kProducts[] = {"NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3", "Tesla-T4"};
    for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
      spec.nodes[i].product = kProducts[i % 3];
      if (names != "short") spec.nodes[i].name = name_of(names, i);
    }
    return spec;
  }

  void roll() {
    const auto begun = fleet_.now;
    std::size_t started = 0;
    std::size_t waves = 0;
    std::size_t printed = 0;
    bool was_starting = false;
    for (bool done = false; !done;) {
      const Step step = take_step();
      started += step.starts;
      const bool starting = step.starts > 0;
      if (starting && !was_starting) ++waves;
      was_starting = starting;
      done = finished();
      const std::size_t quarter = started * 4 / nodes_;
      if ((waves >= 2 && printed == 0) || quarter > printed || done) {
        printed = std::max<std::size_t>(quarter, 1);
        fmt::print("resident, {:5} started     {:8.1f} MiB (wave {})\n", started, resident_mib(), waves);
      }
    }
    fmt::print("waves                      {:8} in {} steps, {} of simulated time\n", waves, steps_.size(),
               k8s::format_go_duration(fleet_.now - begun));
  }

  Step take_step() {
    Step step;
    const double begun = cpu_ms();
    fleet_.index.refresh(fleet_.world, fleet_.settings);
    const double refreshed = cpu_ms();
    const Plan plan = fleet_.plan();
    step.plan_ms = cpu_ms() - refreshed;
    step.refresh_ms = refreshed - begun;
    step.actions = plan.actions.size();
    step.starts = static_cast<std::size_t>(std::ranges::count_if(plan.actions, [](const PlannedAction& planned) {
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      return patch && test::target_written_by(*patch).has_value();
    }));
    steps_.push_back(step);
    fleet_.apply(plan);
    // What a pass had no time for comes in the next one, as soon as its writes have been seen.
    const bool more = plan.requeue_after == Duration::zero();
    fleet_.advance(more ? std::chrono::milliseconds(50) : std::chrono::seconds(1));
    return step;
  }

  [[nodiscard]] bool finished() const {
    return std::ranges::any_of(fleet_.world.rollouts.all(),
                               [](const auto& entry) { return entry.second->phase == "Completed"; });
  }

  std::string to_;
  test::FleetModel fleet_;
  std::size_t nodes_ = 0;
  std::vector<Step> steps_;
};

}  // namespace

int main(int argc, char** argv) {
  int nodes = 15000;
  int budget = 10;
  std::string from = "ts-4";
  std::string to = "ts-8";
  std::string names = "eks";
  CLI::App app("What a rollout costs the planner");
  app.add_option("--nodes", nodes, "GPU nodes, of three products")->check(CLI::Range(10, 100000));
  app.add_option("--budget", budget, "Percent of the nodes that may be out of service: the size of a wave")
      ->check(CLI::Range(1, 100));
  app.add_option("--from", from, "Profile before the edit: ts-4, mps-4, …");
  app.add_option("--to", to, "Profile after it");
  app.add_option("--names", names, "Names like those of EKS, of GKE, or short ones: n00001")
      ->check(CLI::IsMember({"eks", "gke", "short"}));
  CLI11_PARSE(app, argc, argv);
  fmt::print("{} nodes with {} names, {} to {}, budget {}%\n", nodes, names, from, to, budget);
  Bench(nodes, from, to, budget, names).run();
  return 0;
}
