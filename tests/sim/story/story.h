// The story: what an administrator does with a fleet of twelve nodes, and what must come of it. Written once, told on
// the simulated cluster in virtual time, over loopback HTTP with the real binary, and on a real API server.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "k8sclient/api/client.h"
#include "tests/sim/story/stage.h"

namespace gso::sim {

struct StoryStep {
  std::string title;
  bool held = false;
  std::string why;  // What was expected and what the cluster showed, when it did not hold.
  k8s::Duration took{0};
};

class Story : public Stage {
 public:
  // All must outlive the story. The fleet (of topology "demo") is attached by somebody else.
  Story(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, StageOptions options);

  // Tells it, up to the first step that does not hold. Leaves the operator running.
  boost::asio::awaitable<std::vector<StoryStep>> run();

 private:
  // Steps, in order (story_steps.cc, story_profiles.cc).
  boost::asio::awaitable<Held> running_fleet();
  boost::asio::awaitable<Held> install();
  boost::asio::awaitable<Held> refuse_mps_on_mig();
  boost::asio::awaitable<Held> more_replicas();
  boost::asio::awaitable<Held> invisible_edit();
  boost::asio::awaitable<Held> rename();
  boost::asio::awaitable<Held> broken_edit();
  boost::asio::awaitable<Held> one_node_by_label();
  boost::asio::awaitable<Held> mps_by_label();
  boost::asio::awaitable<Held> new_default();
  boost::asio::awaitable<Held> killed_in_between();

  boost::asio::awaitable<Held> apply_policy(std::string name, std::string node, std::string key);
  boost::asio::awaitable<Held> await_block(std::string policy, std::string reason, std::string mention);
  // A node's change begins or ends, in the order in which the server says so.
  struct Turn {
    k8s::MonoTime at;
    std::string node;
    bool begins = false;
  };
  void note_turn(const std::string& node, const JsonPtr& before, const JsonPtr& after);
  // Since turn `from`, each of `nodes` had its turn once, and of each product one node went first: the others waited
  // until it was done, and for `soak`.
  [[nodiscard]] std::string canary_problem(std::size_t from, const std::set<std::string>& nodes,
                                           k8s::Duration soak) const;
  // An edit of the default key that rolls every node that uses it, within the budget, each once.
  boost::asio::awaitable<Held> roll(std::string what, std::string text, bool mps_pods_too);

  std::vector<Turn> turns_;
};

}  // namespace gso::sim
