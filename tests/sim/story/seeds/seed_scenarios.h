// The procedures of NVIDIA's documents about MPS, each in its own words.
#pragma once

#include "tests/sim/story/short_story.h"

namespace gso::sim {

// cluster_wide.cc
boost::asio::awaitable<void> cluster_wide_default(Scene* scene);
boost::asio::awaitable<void> before_installation(Scene* scene);
boost::asio::awaitable<void> updated_config_map(Scene* scene);
boost::asio::awaitable<void> verification(Scene* scene);
boost::asio::awaitable<void> mps_in_kind(Scene* scene);
// by_node.cc
boost::asio::awaitable<void> profiles_by_label(Scene* scene);
boost::asio::awaitable<void> profile_by_selector(Scene* scene);
boost::asio::awaitable<void> mps_by_label_refused(Scene* scene);
boost::asio::awaitable<void> mig_single_shared(Scene* scene);
boost::asio::awaitable<void> mps_refused_on_mig(Scene* scene);

}  // namespace gso::sim
