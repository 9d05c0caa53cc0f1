// Which nodes a DaemonSet's node affinity selects, and what a node's capacity says of the profile that it should serve.
#include "reconcilers/cluster/facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gso::test::facts_test {
namespace {

using Term = std::vector<NodeSelectorRequirement>;

NodeSelectorRequirement requirement(std::string_view key, std::string_view op, std::vector<std::string_view> values) {
  NodeSelectorRequirement out;
  out.key = k8s::Interned(key);
  out.op = k8s::Interned(op);
  for (const std::string_view value : values) out.values.emplace_back(value);
  return out;
}

TEST(NodeMatch, NodeAffinityFollowsTheDaemonSetController) {
  const NodeSelectorRequirement gpu = requirement("gpu", "In", {"a100", "h100"});
  const NodeSelectorRequirement no_zone = requirement("zone", "DoesNotExist", {});
  const NodeSelectorRequirement zone = requirement("zone", "Exists", {});
  const struct {
    const char* what;
    std::vector<Term> terms;
    Selects expected;
  } cases[] = {
      {"no affinity", {}, Selects::yes},
      {"a requirement that holds", {{gpu}}, Selects::yes},
      {"all requirements of a term hold", {{gpu, no_zone}}, Selects::yes},
      {"one requirement of a term does not", {{gpu, zone}}, Selects::no},
      {"one of two terms holds", {{zone}, {gpu}}, Selects::yes},
      {"a term without requirements matches nothing", {{}}, Selects::no},
      {"nor beside a term that does not hold", {{zone}, {}}, Selects::no},
      {"another value", {{requirement("gpu", "NotIn", {"a100"})}}, Selects::no},
      {"a number above", {{requirement("size", "Gt", {"7"})}}, Selects::yes},
      {"not above itself", {{requirement("size", "Gt", {"8"})}}, Selects::no},
      {"a number below", {{requirement("size", "Lt", {"9"})}}, Selects::yes},
      {"no number", {{requirement("gpu", "Lt", {"9"})}}, Selects::no},
      {"an operator that nobody knows", {{requirement("gpu", "Like", {"a100"})}}, Selects::no},
  };
  Node node;
  node.meta.name = "n01";
  node.meta.labels.set("gpu", "a100");
  node.meta.labels.set("size", "8");
  for (const auto& c : cases) {
    Operand operand;
    operand.affinity_terms = c.terms;
    EXPECT_EQ(selects(operand, node, false), c.expected) << c.what;
  }
}

TEST(Verify, ComparesCapacityAndAllocatableOfEachResource) {
  const struct {
    const char* what;
    std::int64_t capacity, allocatable;              // Of nvidia.com/gpu.
    std::int64_t other_capacity, other_allocatable;  // Of nvidia.com/gpu.shared.
    bool ok, unhealthy, shortfall, surplus, serving;
  } cases[] = {
      {"all devices are healthy", 8, 8, 0, 0, true, false, false, false, true},
      {"some devices are unhealthy", 8, 4, 0, 0, true, true, false, false, true},
      {"no device is healthy", 8, 0, 0, 0, false, false, false, false, false},
      {"one device is missing", 4, 4, 0, 0, false, false, true, false, true},
      {"one device more", 12, 12, 0, 0, false, false, false, true, true},
      {"no whole number of devices", 6, 6, 0, 0, false, false, false, false, true},
      {"nothing is registered", 0, 0, 0, 0, false, false, false, false, false},
      {"the other name is still there, and the kubelet hands none out", 8, 8, 8, 0, true, false, false, false, true},
      {"the other name can still be handed out", 8, 8, 8, 8, false, false, false, false, true},
      {"the other name can still be handed out, and a device is missing", 4, 4, 8, 8, false, false, false, false, true},
  };
  // A node of two GPUs with four replicas each, whose resource must be registered without ".shared".
  const k8s::Interned gpu("nvidia.com/gpu");
  const k8s::Interned shared("nvidia.com/gpu.shared");
  NodeExpectation eight;
  eight.strategy = Strategy::time_slicing;
  eight.capacity = {{"nvidia.com/gpu", 8}, {"nvidia.com/gpu.shared", 0}};
  eight.replicas = {{"nvidia.com/gpu", 4}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    Node node;
    node.capacity[gpu] = c.capacity;
    node.capacity[shared] = c.other_capacity;
    node.allocatable[gpu] = c.allocatable;
    node.allocatable[shared] = c.other_allocatable;
    const Verification seen = verify(eight, node, false, true);
    EXPECT_EQ(seen.ok, c.ok) << seen.mismatch;
    EXPECT_EQ(seen.unhealthy, c.unhealthy);
    EXPECT_EQ(seen.shortfall, c.shortfall);
    EXPECT_EQ(seen.surplus, c.surplus);
    EXPECT_EQ(seen.serving, c.serving);
  }
}

}  // namespace
}  // namespace gso::test::facts_test
