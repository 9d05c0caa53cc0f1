// Rows of rules.
#include "tests/reconcilers/kai/reservation_rows.h"

namespace gso::test {

void expect_row(const Row& row) {
  KaiCluster cluster;
  cluster.reservation("r", "g");
  row.change(cluster);
  const Plan plan = cluster.credited();
  EXPECT_EQ(deleted(plan), row.deleted);
  if (*row.reason != '\0') {
    EXPECT_TRUE(reasons(plan, "r").contains(row.reason)) << ::testing::PrintToString(reasons(plan, "r"));
  }
}

KaiPod& r(KaiCluster& cluster) {
  return cluster.pods.at({"kai-resource-reservation", "r"});
}

}  // namespace gso::test
