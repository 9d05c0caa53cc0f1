// Covering arrays: few rows that contain all combinations. A row has one value for each dimension; the array is
// complete if every group of `strength` dimensions occurs in each combination of its values.
#pragma once

#include <vector>

namespace gso::test {

/// What has to meet: any `strength` dimensions, in each combination of their classes. classes[d][v] is the class of
/// value v of dimension d, counted from 0. A dimension with one class is left out.
struct Meeting {
  std::vector<std::vector<int>> classes;
  int strength = 3;
};

/// Each value of a dimension with so many values is a class of its own.
[[nodiscard]] std::vector<int> each_value(int values);
/// Two classes: the first value, and all others.
[[nodiscard]] std::vector<int> none_or_some(int values);

/// The rows of an array in which all of `meetings` take place; the values of a class take turns. The same rows each
/// time: greedy, and nothing in it is random.
[[nodiscard]] std::vector<std::vector<int>> covering_array(const std::vector<int>& values,
                                                           const std::vector<Meeting>& meetings);

}  // namespace gso::test
