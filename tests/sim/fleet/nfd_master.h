// Node Feature Discovery's master: merges what was found about a node and writes it as labels. It owns exactly the keys
// that its annotation lists, overwrites foreign values of keys it wants, and never looks at Nodes by itself.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/sim/fleet/outbox.h"
#include "tests/sim/fleet/pod_spec.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

class NfdMaster {
 public:
  explicit NfdMaster(Site* site);

  // What NFD's worker finds on a machine with an NVIDIA card.
  void add_node(const std::string& node);
  // Its machine is gone for good; what feature discovery published there goes with it, as nfd-gc does it.
  void remove_node(const std::string& node);
  // From feature discovery in `pod` on `node`: by a NodeFeature where the server has that kind, else handed over.
  void publish(const std::string& node, const PodSpec& pod, const std::map<std::string, std::string>& labels);
  // From NFD's worker, as a whole.
  void hand_over(const std::string& node, const std::map<std::string, std::string>& labels);
  void on_node_feature(const JsonPtr& before, const JsonPtr& after);

  boost::asio::awaitable<void> run() { return outbox_.run(); }
  void stop() { outbox_.stop(); }

 private:
  using Labels = std::map<std::string, std::string>;
  void write_node_feature(const std::string& node, const PodSpec& pod, const Labels& labels);
  void dirty(const std::string& node);
  void reconcile(const std::string& node);

  Site* site_;
  Outbox outbox_;
  std::map<std::string, Labels> worker_, handed_over_;  // By node.
  std::map<std::string, std::map<k8s::ObjectKey, Labels>> features_;
  std::map<k8s::ObjectKey, std::string> written_;  // NodeFeatures as sent last: node's labels as text.
  std::set<std::string> dirty_, gone_;
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace gso::sim
