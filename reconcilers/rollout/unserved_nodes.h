// Nodes of standalone MPS daemons that no device plugin serves, and the policy of a node whether a plugin serves it or
// not. The index counts unserved nodes for the cluster and for no policy; here they are counted for the one that
// governs them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/pass.h"

namespace gso {

class NodePolicies {
 public:
  // Both must outlive it.
  NodePolicies(const Index& index, const World& world);
  [[nodiscard]] const SharingPolicy& of(const Node& node) const;

 private:
  const Index* index_;
  const World* world_;
  std::vector<const SharingPolicy*> policies_;  // In order of precedence.
};

class UnservedNodes {
 public:
  explicit UnservedNodes(const Pass& pass);
  // Of the policy: how many, and which of them hold a slot.
  [[nodiscard]] std::int64_t total(std::string_view policy) const;
  [[nodiscard]] const std::set<std::string>& busy(std::string_view policy) const;

 private:
  struct Nodes {
    std::int64_t total = 0;
    std::set<std::string> busy;
  };
  [[nodiscard]] const Nodes& of(std::string_view policy) const;

  std::map<std::string, Nodes, std::less<>> policies_;
};

}  // namespace gso
