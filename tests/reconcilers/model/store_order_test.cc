// in_order(): a store keeps its objects in the order of their hashes, which differs between clusters that are equal.
#include "reconcilers/model/object_refs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reconcilers/model/kai_objects.h"

namespace gso::store_order_test {
namespace {

TEST(StoreOrder, IsThatOfTheKeysNamespaceFirst) {
  k8s::Store<Deployment> store;
  std::vector<std::string> expected;
  for (int i = 99; i >= 0; --i) {
    Deployment deployment;
    deployment.meta.ns = Interned(i % 2 == 0 ? "a" : "b");
    deployment.meta.name = fmt::format("d{:02}", i);
    expected.push_back(k8s::to_string(deployment.meta.key()));
    store.apply(std::move(deployment));
  }
  std::ranges::sort(expected);
  std::vector<std::string> actual;
  for (const Deployment* deployment : in_order(store)) actual.push_back(k8s::to_string(deployment->meta.key()));
  EXPECT_EQ(actual, expected);
}

}  // namespace
}  // namespace gso::store_order_test
