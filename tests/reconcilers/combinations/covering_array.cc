#include "tests/reconcilers/combinations/covering_array.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace gso::test {

namespace {

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

class Array {
 public:
  Array(const std::vector<int>& values, const std::vector<Meeting>& meetings) : groups_of_(values.size()) {
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

}  // namespace

std::vector<int> each_value(int values) {
  std::vector<int> out(static_cast<std::size_t>(values));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::vector<int> none_or_some(int values) {
  std::vector<int> out(static_cast<std::size_t>(values), 1);
  out.front() = 0;
  return out;
}

std::vector<std::vector<int>> covering_array(const std::vector<int>& values, const std::vector<Meeting>& meetings) {
  return Array(values, meetings).rows();
}

}  // namespace gso::test
