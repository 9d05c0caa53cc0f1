// Tells short stories one after the other against one API server, with the operator's real binary and a fleet for each,
// and clears the cluster in between.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/api/client.h"
#include "tests/sim/story/child_operator.h"
#include "tests/sim/story/short_story.h"

namespace gso::sim {

struct ShortStoryTeller {
  k8s::ApiClient* client = nullptr;
  k8s::Clock* clock = nullptr;
  ChildOperator* child = nullptr;
  StageOptions options = {};        // Of every story; plugin version and budget are the story's own.
  FleetTiming timing = {};          // Of every fleet.
  bool act_as_controllers = false;  // See FleetOptions.
};

struct ShortStoryTally {
  std::size_t held = 0;
  std::size_t told = 0;
};

// One line for each ("✓ canary-fails: A canary … (12.3 s)") to options.progress. Goes on after one that does not hold,
// but not after a cluster that cannot be cleared.
boost::asio::awaitable<ShortStoryTally> tell_short_stories(ShortStoryTeller teller,
                                                           std::vector<const ShortStory*> stories);

// "all", "rollouts", "seeds", or names with commas. The error names what is unknown.
[[nodiscard]] k8s::Result<std::vector<const ShortStory*>> choose_stories(const std::string& list);

// The first of `share` is which of the second's shares: {2, 3} is every third story, from the second one on.
[[nodiscard]] std::vector<const ShortStory*> share_of(const std::vector<const ShortStory*>& stories,
                                                      std::pair<std::size_t, std::size_t> share);

}  // namespace gso::sim
