// The list of the rollout stories, in the order in which they are told.
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

const std::vector<ShortStory>& rollout_stories() {
  static const std::vector<ShortStory> kStories{
      {.name = "strategy-change",
       .title = "MPS to time-slicing and back: canary, soak, and waves within percent budgets",
       .budget = 2,
       .nodes = [](bool) { return two_models(); },
       .tell = strategy_change},
      {.name = "canary-fails",
       .title = "A canary that fails stops the rollout, a fix goes on, and what failed is not tried again",
       .budget = 2,
       .nodes = [](bool) { return two_models(); },
       .tell = canary_fails},
      {.name = "not-ready",
       .title = "Nodes that are not Ready are skipped and counted, and rolled when they are back",
       .budget = 2,
       .nodes = [](bool) { return alike("a100", 5, {a100(), a100()}); },
       .tell = not_ready},
  };
  return kStories;
}

std::vector<NodeSpec> two_models() {
  std::vector<NodeSpec> nodes = alike("a100", 6, {a100(), a100()});
  for (NodeSpec& node : alike("t4", 2, {t4()})) nodes.push_back(std::move(node));
  return nodes;
}

}  // namespace gso::sim
