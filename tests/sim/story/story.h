// The story: what an administrator does with a fleet of twelve nodes, and what must come of it. Written once, told on
// the simulated cluster in virtual time, over loopback HTTP with the real binary, and on a real API server.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "tests/sim/story/scene.h"

namespace gso::sim {

struct StoryStep {
  std::string title;
  bool held = false;
  std::string why;  // What was expected and what the cluster showed, when it did not hold.
};

class Story : public Scene {
 public:
  // All must outlive the story. `fleet` plays the topology "demo".
  Story(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, Fleet* fleet, StageOptions options);

  // Tells it, up to the first step that does not hold. Leaves the operator running.
  boost::asio::awaitable<std::vector<StoryStep>> run();
  // Name, what each node shows, and its state, for a table.
  [[nodiscard]] std::vector<std::vector<std::string>> node_table() const;

 private:
  // Steps, in order (story_steps.cc, story_profiles.cc).
  boost::asio::awaitable<void> running_fleet();
  boost::asio::awaitable<void> installed();
  boost::asio::awaitable<void> refuse_mps_on_mig();
  boost::asio::awaitable<void> more_replicas();
  boost::asio::awaitable<void> invisible_edit();
  boost::asio::awaitable<void> rename();
  boost::asio::awaitable<void> broken_edit();
  boost::asio::awaitable<void> one_node_by_label();
  boost::asio::awaitable<void> mps_by_label();
  boost::asio::awaitable<void> another_default();
  boost::asio::awaitable<void> killed_in_between();

  // A policy that asks for a key on one node, and is blocked.
  boost::asio::awaitable<void> ask_for(std::string policy, std::string node, std::string key);
  // The node keeps its label, and nobody is restarted.
  [[nodiscard]] Check left_alone(std::string node, std::string label) const;
  // An edit of the default key that rolls every node that uses it, within the budget, each once.
  boost::asio::awaitable<void> roll(std::string what, std::string text, bool mps_pods_too);
  // From here on the pods are what they are now, and the peak of nodes out of service counts anew.
  [[nodiscard]] Seen look();
  [[nodiscard]] std::size_t budget() const { return static_cast<std::size_t>(options_.max_unavailable); }
  // With such a plugin no MPS profile but the default one gets to a node.
  [[nodiscard]] bool default_first() const { return PluginVersion::of_image(options_.plugin_version).default_first(); }
};

}  // namespace gso::sim
