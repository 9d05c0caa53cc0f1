// The list of combinations, and their names.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "tests/reconcilers/combinations/combinations.h"

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

// What has to meet: any `strength` dimensions, in each combination of their classes. classes[d][v] is the class of
// value v of dimension d, counted from 0. A dimension with one class is left out.
struct Meeting {
  std::vector<std::vector<int>> classes;
  int strength = 3;
};

// Each value of a dimension with so many values is a class of its own.
std::vector<int> each_value(int values) {
  std::vector<int> out(static_cast<std::size_t>(values));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// Two classes: the first value, and all others.
std::vector<int> none_or_some(int values) {
  std::vector<int> out(static_cast<std::size_t>(values), 1);
  out.front() = 0;
  return out;
}

constexpr int kOpen = -1;       // A dimension of a row that has no value yet.
constexpr int kCandidates = 4;  // The number of rows that are tried for each chosen row.

// Some dimensions that must meet, and the combinations of their classes that have already occurred.
struct Group {
  const std::vector<std::vector<int>>* classes;
  std::vector<std::size_t> dimensions;
  std::vector<bool> met = {};  // By number().
  std::size_t missing = 0;

  [[nodiscard]] int class_of(std::size_t dimension, int value) const {
    return (*classes)[dimension][static_cast<std::size_t>(value)];
  }
  [[nodiscard]] int classes_of(std::size_t dimension) const { return std::ranges::max((*classes)[dimension]) + 1; }
  // Of the combination in which the row has them meet; nothing where a value is open.
  [[nodiscard]] bool number(const std::vector<int>& row, std::size_t& out) const {
    out = 0;
    for (const std::size_t d : dimensions) {
      if (row[d] == kOpen) return false;
      out = out * static_cast<std::size_t>(classes_of(d)) + static_cast<std::size_t>(class_of(d, row[d]));
    }
    return true;
  }
  [[nodiscard]] bool gains(const std::vector<int>& row) const {
    std::size_t combination = 0;
    return missing > 0 && number(row, combination) && !met[combination];
  }
};

void add_groups(const Meeting& meeting, std::vector<std::size_t> so_far, std::vector<Group>& out) {
  if (so_far.size() == static_cast<std::size_t>(meeting.strength)) {
    Group group{.classes = &meeting.classes, .dimensions = std::move(so_far)};
    group.missing = 1;
    for (const std::size_t d : group.dimensions) group.missing *= static_cast<std::size_t>(group.classes_of(d));
    group.met.assign(group.missing, false);
    out.push_back(std::move(group));
    return;
  }
  const std::size_t first = so_far.empty() ? 0 : so_far.back() + 1;
  for (std::size_t d = first; d < meeting.classes.size(); ++d) {
    if (std::ranges::max(meeting.classes[d]) == 0) continue;
    std::vector<std::size_t> longer = so_far;
    longer.push_back(d);
    add_groups(meeting, std::move(longer), out);
  }
}

// A covering array: few rows in which all meetings take place; the values of a class take turns. The same rows each
// time: greedy, and nothing in it is random.
class CoveringArray {
 public:
  CoveringArray(const std::vector<int>& values, const std::vector<Meeting>& meetings) : groups_of_(values.size()) {
    for (const Meeting& meeting : meetings) add_groups(meeting, {}, groups_);
    for (Group& group : groups_)
      for (const std::size_t d : group.dimensions) groups_of_[d].push_back(&group);
    for (const int count : values) used_.emplace_back(count, 0);
  }

  std::vector<std::vector<int>> rows() {
    std::vector<std::vector<int>> out;
    for (;;) {
      const auto worst = std::ranges::max_element(groups_, {}, &Group::missing);
      if (worst == groups_.end() || worst->missing == 0) return out;
      std::vector<int> best;
      std::size_t most = 0;
      for (int candidate = 0; candidate < kCandidates; ++candidate) {
        std::vector<int> row = complete(beginning(*worst, candidate), candidate);
        const auto gain = static_cast<std::size_t>(
            std::ranges::count_if(groups_, [&row](const Group& group) { return group.gains(row); }));
        if (gain > most) std::tie(best, most) = std::pair(std::move(row), gain);
      }
      take(best);
      out.push_back(std::move(best));
    }
  }

 private:
  // A row with one combination that the group still needs; all other values are open.
  [[nodiscard]] std::vector<int> beginning(const Group& group, int candidate) const {
    const std::size_t nth = group.missing * static_cast<std::size_t>(candidate) / kCandidates;
    std::size_t combination = 0;
    for (std::size_t seen = 0;; ++combination)
      if (!group.met[combination] && seen++ == nth) break;
    std::vector<int> row(used_.size(), kOpen);
    for (auto d = group.dimensions.rbegin(); d != group.dimensions.rend(); ++d) {
      const auto classes = static_cast<std::size_t>(group.classes_of(*d));
      row[*d] = least_used(group, *d, static_cast<int>(combination % classes));
      combination /= classes;
    }
    return row;
  }

  [[nodiscard]] int least_used(const Group& group, std::size_t dimension, int of_class) const {
    int out = kOpen;
    for (int value = 0; value < static_cast<int>(used_[dimension].size()); ++value) {
      const bool better = out == kOpen || used(dimension, value) < used(dimension, out);
      if (group.class_of(dimension, value) == of_class && better) out = value;
    }
    return out;
  }

  // Sets each open dimension, one after another, to the value that gives the most new combinations.
  [[nodiscard]] std::vector<int> complete(std::vector<int> row, int candidate) const {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t d = (i + 3 * static_cast<std::size_t>(candidate)) % row.size();
      if (row[d] != kOpen) continue;
      int best = kOpen;
      std::ptrdiff_t most = 0;
      for (int value = 0; value < static_cast<int>(used_[d].size()); ++value) {
        row[d] = value;
        const auto gain =
            std::ranges::count_if(groups_of_[d], [&row](const Group* group) { return group->gains(row); });
        const bool better = gain > most || (gain == most && best != kOpen && used(d, value) < used(d, best));
        if (best == kOpen || better) std::tie(best, most) = std::pair(value, gain);
      }
      row[d] = best;
    }
    return row;
  }

  void take(const std::vector<int>& row) {
    for (std::size_t d = 0; d < row.size(); ++d) ++used_[d][static_cast<std::size_t>(row[d])];
    for (Group& group : groups_) {
      std::size_t combination = 0;
      if (!group.number(row, combination) || group.met[combination]) continue;
      group.met[combination] = true;
      --group.missing;
    }
  }

  [[nodiscard]] int used(std::size_t dimension, int value) const {
    return used_[dimension][static_cast<std::size_t>(value)];
  }

  std::vector<Group> groups_;
  std::vector<std::vector<Group*>> groups_of_;  // By dimension.
  std::vector<std::vector<int>> used_;          // How many rows have each value.
};

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

// Every combination of one value of each kind; the values of a kind take turns.
std::vector<std::vector<int>> product() {
  std::vector<std::vector<int>> out(1);
  for (const Dimension& dimension : dimensions()) {
    std::size_t turn = 0;
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& before : out) {
      for (const int kind : {0, 1}) {
        std::vector<int> alike;
        for (int v = 0; v < dimension.values; ++v)
          if (dimension.kinds[static_cast<std::size_t>(v)] == kind) alike.push_back(v);
        if (alike.empty()) continue;
        longer.push_back(before);
        longer.back().push_back(alike[turn++ % alike.size()]);
      }
    }
    out = std::move(longer);
  }
  return out;
}

}  // namespace

std::vector<Combination> all_combinations(Extent extent) {
  std::vector<int> values;
  for (const Dimension& dimension : dimensions()) values.push_back(dimension.values);
  std::vector<Combination> out;
  for (const std::vector<int>& row :
       extent == Extent::yes_and_no ? product() : CoveringArray(values, meetings_of(extent)).rows()) {
    Combination& combination = out.emplace_back();
    for (std::size_t d = 0; d < row.size(); ++d) dimensions()[d].set(combination, row[d]);
  }
  return out;
}

std::span<const Change> all_changes() {
  return kChanges;
}

}  // namespace gso::test
