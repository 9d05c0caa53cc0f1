// Short stories: each on a fleet of the size that it needs, told in a Scene. The list is what every way of telling them
// goes by: gtest in virtual time, gso-story on a real API server.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "tests/sim/story/scene.h"

namespace gso::sim {

// "a-01" … with `gpus` each.
[[nodiscard]] std::vector<NodeSpec> alike(const std::string& prefix, int count, const std::vector<Gpu>& gpus);
// "a100-01" …, with two A100s each.
[[nodiscard]] std::vector<NodeSpec> a100s(int count);

struct ShortStory {
  std::string name;   // "canary-fails"
  std::string title;  // One sentence.
  // Nodes out of service at once, over everything: the operator's --max-unavailable and the cluster's cap, and what S1
  // is judged by.
  std::size_t budget = 1;
  // `large`: where nodes cost nothing (virtual time). Unless a story says otherwise: three with two A100s each.
  std::vector<NodeSpec> (*nodes)(bool large) = [](bool) { return a100s(3); };
  boost::asio::awaitable<void> (*tell)(Scene* scene) = nullptr;
  std::string plugin_version = "v0.20.0";
  bool evicts = false;               // Some policy of it says workloads: Evict.
  bool restarts_daemonsets = false;  // Some policy of it says mechanism: DaemonSetRestart.
};

// The rollouts that an on-call engineer meets (rollouts/).
[[nodiscard]] const std::vector<ShortStory>& rollout_stories();
// The procedures of NVIDIA's documents about MPS, one by one (seeds/).
[[nodiscard]] const std::vector<ShortStory>& seed_scenarios();

// Opens the scene, tells the story, and says what went wrong, or nothing. Leaves the operator running.
boost::asio::awaitable<std::string> tell_story(Scene* scene, const ShortStory* story);

}  // namespace gso::sim
