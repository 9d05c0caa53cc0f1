// The list of combinations, and their names.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "tests/reconcilers/combinations/combinations.h"
#include "tests/reconcilers/combinations/covering_array.h"

namespace gso::test {

namespace {

// Disruptive changes that begin, edit and end MPS, and changes that do not affect running clients.
constexpr std::array<Change, 6> kChanges = {{{"mps-4", "mps-8", "mps-6", "mps-5"},
                                             {"ts-4", "ts-8", "ts-6", "ts-5"},
                                             {"ts-4", "mps-4", "mps-8", "mps-5"},
                                             {"ts-8", "ts-2-renamed", "ts-4-renamed", "ts-3-renamed"},
                                             {"mps-4", "ts-4", "ts-8", "ts-5"},
                                             {"mps-4", "mps-4-many", "mps-6-many", "mps-5-many"}}};
constexpr std::array<const char*, 6> kFaultNames = {
    "none", "plugin crashes", "sidecar is stuck", "labels stay wrong", "capacity stays wrong", "pod never gets ready"};
}  // namespace

std::string Combination::name() const {
  std::string out = fmt::format("{} to {}", change.from, change.to);
  out += canary ? ", canary" : "";
  out += percent ? ", budgets in percent" : ", budgets of one";
  if (fault != Fault::none) {
    out += fmt::format(", {} {}", kFaultNames[static_cast<std::size_t>(fault)],
                       fault_in_canary ? "on the first node" : "on a later node");
  }
  if (killed_every > 0) out += fmt::format(", killed after every {}. write from the {}. on", killed_every, killed_from);
  out += not_ready ? ", nodes NotReady" : "";
  out += pdb_refuses ? ", a PodDisruptionBudget refuses" : "";
  out += window_closes ? ", the window closes" : "";
  out += superseding == Superseding::by_another        ? ", superseded"
         : superseding == Superseding::by_the_old_one  ? ", edited back"
         : superseding == Superseding::by_a_broken_one ? ", edited into a profile with an error"
                                                       : "";
  out += old_drift ? ", 40 nodes with old drift" : "";
  out += kai ? ", KAI on two nodes" : "";
  out += broken_before ? ", a node that was broken before" : "";
  out += cordoned_before ? ", a node that was cordoned before" : "";
  return out;
}

namespace {

// One dimension of a combination: how many values it has, and which of them are of one kind.
struct Dimension {
  int values;
  std::vector<int> kinds;      // none or some; of changes: disruptive or live.
  std::vector<int> on_server;  // The classes that must meet on the server: those that its fleet distinguishes; of
                               // changes only their kinds.
  void (*set)(Combination&, int value);
};

Dimension yes_or_no(void (*set)(Combination&, int value)) {
  return {2, each_value(2), each_value(2), set};
}

const std::vector<Dimension>& dimensions() {
  constexpr int kKills = 4, kEdits = 4, kChangeCount = kChanges.size();
  static const std::vector<Dimension> all = {
      {kChangeCount,
       {0, 1, 0, 1, 0, 1},
       {0, 1, 0, 1, 0, 1},
       [](Combination& c, int v) { c.change = kChanges[static_cast<std::size_t>(v)]; }},
      yes_or_no([](Combination& c, int v) { c.canary = v != 0; }),
      yes_or_no([](Combination& c, int v) { c.percent = v != 0; }),
      // On the server either a machine has no GPU for new programs, or labels stay as they are.
      {1 + kFaults,
       none_or_some(1 + kFaults),
       {0, 1, 1, 2, 1, 1},
       [](Combination& c, int v) { c.fault = static_cast<Fault>(v); }},
      // The place of a fault matters only if the combination has one.
      {2, {0, 0}, each_value(2), [](Combination& c, int v) { c.fault_in_canary = v != 0; }},
      {kKills, none_or_some(kKills), none_or_some(kKills),
       [](Combination& c, int v) {
         constexpr std::array<int, kKills> kEvery = {0, 1, 3, 7}, kFrom = {0, 4, 6, 2};
         c.killed_every = kEvery[static_cast<std::size_t>(v)];
         c.killed_from = kFrom[static_cast<std::size_t>(v)];
       }},
      yes_or_no([](Combination& c, int v) { c.not_ready = v != 0; }),
      yes_or_no([](Combination& c, int v) { c.pdb_refuses = v != 0; }),
      yes_or_no([](Combination& c, int v) { c.window_closes = v != 0; }),
      {kEdits, none_or_some(kEdits), each_value(kEdits),
       [](Combination& c, int v) { c.superseding = static_cast<Superseding>(v); }},
      yes_or_no([](Combination& c, int v) { c.old_drift = v != 0; }),
      yes_or_no([](Combination& c, int v) { c.kai = v != 0; }),
      yes_or_no([](Combination& c, int v) { c.broken_before = v != 0; }),
      yes_or_no([](Combination& c, int v) { c.cordoned_before = v != 0; }),
  };
  return all;
}

Combination combination_of(const std::vector<int>& row) {
  Combination out;
  for (std::size_t d = 0; d < row.size(); ++d) dimensions()[d].set(out, row[d]);
  return out;
}

std::vector<int> numbers_of_values() {
  std::vector<int> out;
  for (const Dimension& dimension : dimensions()) out.push_back(dimension.values);
  return out;
}

std::vector<Meeting> meetings_of(Extent extent) {
  Meeting values{.classes = {}, .strength = 3}, kinds{.classes = {}, .strength = 4};
  for (const Dimension& dimension : dimensions()) {
    values.classes.push_back(extent == Extent::on_server ? dimension.on_server : each_value(dimension.values));
    kinds.classes.push_back(dimension.kinds);
  }
  if (extent == Extent::on_server) {
    Meeting changes = values;
    changes.strength = 2;
    changes.classes.front() = each_value(kChanges.size());
    return {values, changes};
  }
  return {values, kinds};
}

// Every combination, with each value of a dimension, or with one of each kind; those of a kind take turns.
std::vector<std::vector<int>> product(bool every_value) {
  std::vector<std::vector<int>> out(1);
  std::vector<std::size_t> turns(dimensions().size());
  for (std::size_t d = 0; d < dimensions().size(); ++d) {
    const Dimension& dimension = dimensions()[d];
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& before : out) {
      for (int choice = 0; choice < (every_value ? dimension.values : 2); ++choice) {
        std::vector<int> alike;
        for (int v = 0; v < dimension.values; ++v)
          if (every_value ? v == choice : dimension.kinds[static_cast<std::size_t>(v)] == choice) alike.push_back(v);
        if (alike.empty()) continue;
        longer.push_back(before);
        longer.back().push_back(alike[turns[d]++ % alike.size()]);
      }
    }
    out = std::move(longer);
  }
  return out;
}

}  // namespace

std::vector<Combination> all_combinations(Extent extent) {
  const bool few = extent == Extent::triples || extent == Extent::on_server;
  std::vector<Combination> out;
  for (const std::vector<int>& row :
       few ? covering_array(numbers_of_values(), meetings_of(extent)) : product(extent == Extent::every_value)) {
    out.push_back(combination_of(row));
  }
  return out;
}

std::span<const Change> all_changes() {
  return kChanges;
}

}  // namespace gso::test
