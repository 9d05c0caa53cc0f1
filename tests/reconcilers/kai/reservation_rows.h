// One rule of the reservation GC as a row: a reservation "r" of group "g" on node n1 that is deleted, with one thing
// changed.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <ostream>
#include <set>
#include <string>

#include "tests/reconcilers/kai/kai_cluster.h"

namespace gso::test {

using Names = std::set<std::string>;

struct Row {
  const char* name;
  std::function<void(KaiCluster&)> change;
  Names deleted;
  const char* reason = "";  // Of a finding about "r"; empty: not looked at.
};

inline void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

inline std::string row_name(const ::testing::TestParamInfo<Row>& info) {
  return info.param.name;
}

// What the row says must come of it, with every condition credited for long.
void expect_row(const Row& row);

// The reservation that the rows change.
[[nodiscard]] KaiPod& r(KaiCluster& cluster);

}  // namespace gso::test
