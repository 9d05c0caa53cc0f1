// Node Feature Discovery's master: merges what was found about a node and writes it as labels. It owns exactly the keys
// that its annotation lists, overwrites foreign values of keys it wants, and never looks at Nodes by itself.
#pragma once

#include <map>
#include <set>
#include <string>

#include "tests/sim/fleet/site.h"

namespace gso::sim {

class NfdMaster : public Actor {
 public:
  using Actor::Actor;

  // What NFD's worker finds on a machine with an NVIDIA card.
  void add_node(const std::string& node);
  // Its machine is gone for good.
  void remove_node(const std::string& node);
  // From feature discovery or NFD's worker, as a whole.
  void hand_over(const std::string& node, const std::map<std::string, std::string>& labels);
  // What somebody says in a NodeFeature.
  void on_node_feature(const JsonPtr& before, const JsonPtr& after);

 private:
  using Labels = std::map<std::string, std::string>;
  void dirty(const std::string& node);
  void reconcile(const std::string& node);

  std::map<std::string, Labels> worker_, handed_over_;  // By node.
  std::map<std::string, std::map<k8s::ObjectKey, Labels>> features_;
  std::set<std::string> dirty_, gone_;
};

}  // namespace gso::sim
