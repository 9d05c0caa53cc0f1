// The rollout stories, each in its own words.
#pragma once

#include "tests/sim/story/short_story.h"

namespace gso::sim {

// Some nodes of a100s(), and "t4-01" … with one T4 each.
[[nodiscard]] std::vector<NodeSpec> two_models(int a100_nodes, int t4_nodes);

// waves.cc
boost::asio::awaitable<void> strategy_change(Scene* scene);
boost::asio::awaitable<void> not_ready(Scene* scene);
// failures.cc
boost::asio::awaitable<void> canary_fails(Scene* scene);
// rollback.cc
boost::asio::awaitable<void> rollback(Scene* scene);
boost::asio::awaitable<void> replaced_by_gitops(Scene* scene);
// workloads.cc
boost::asio::awaitable<void> workloads(Scene* scene);
boost::asio::awaitable<void> eviction_annotations(Scene* scene);
// remedies.cc
boost::asio::awaitable<void> stuck_pods(Scene* scene);
boost::asio::awaitable<void> silent_stuck_pods(Scene* scene);
boost::asio::awaitable<void> unclean_exits(Scene* scene);
// mechanisms.cc
boost::asio::awaitable<void> daemonset_restart(Scene* scene);
// gates.cc
boost::asio::awaitable<void> window_closes(Scene* scene);
boost::asio::awaitable<void> approval(Scene* scene);
// interruptions.cc
boost::asio::awaitable<void> superseded(Scene* scene);
boost::asio::awaitable<void> killed(Scene* scene);
boost::asio::awaitable<void> old_drift(Scene* scene);
boost::asio::awaitable<void> cluster_policy_patched(Scene* scene);
// devices.cc
boost::asio::awaitable<void> gpu_dies(Scene* scene);
// neighbours.cc
boost::asio::awaitable<void> labels_vanish(Scene* scene);
boost::asio::awaitable<void> driver_upgraded(Scene* scene);
boost::asio::awaitable<void> mig_changed(Scene* scene);
boost::asio::awaitable<void> offered_twice(Scene* scene);
boost::asio::awaitable<void> shared_by_kai(Scene* scene);

}  // namespace gso::sim
