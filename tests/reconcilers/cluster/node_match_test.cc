// Which nodes the node affinity of a DaemonSet selects.
#include "reconcilers/cluster/facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gso::test::node_match_test {
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
  struct Case {
    const char* what;
    std::vector<Term> terms;
    Selects expected;
  };
  const Case cases[] = {
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
  for (const Case& c : cases) {
    Operand operand;
    operand.affinity_terms = c.terms;
    EXPECT_EQ(selects(operand, node, false), c.expected) << c.what;
  }
}

}  // namespace
}  // namespace gso::test::node_match_test
