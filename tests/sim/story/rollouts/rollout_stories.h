// The rollout stories, each in its own words.
#pragma once

#include "tests/sim/story/short_story.h"

namespace gso::sim {

// Six nodes with A100s, two with a T4.
[[nodiscard]] std::vector<NodeSpec> two_models();

// rollouts/waves.cc
boost::asio::awaitable<void> strategy_change(Scene* scene);
boost::asio::awaitable<void> not_ready(Scene* scene);
// rollouts/failures.cc
boost::asio::awaitable<void> canary_fails(Scene* scene);

}  // namespace gso::sim
