#include "tests/sim/story/short_story_teller.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <sstream>
#include <utility>

namespace gso::sim {

namespace {

namespace asio = boost::asio;

asio::awaitable<void> run_fleet(Fleet* fleet, bool* ended, k8s::Signal* signal) {
  co_await fleet->run();
  *ended = true;
  signal->notify();
}

// Empty, or why it did not hold; `cleared` says whether the next one can be told.
asio::awaitable<std::string> tell_one(const ShortStoryTeller* teller, const ShortStory* story, bool* cleared) {
  const auto executor = co_await asio::this_coro::executor;
  const std::vector<NodeSpec> nodes = story->nodes(false);
  FleetOptions fleet_options;
  fleet_options.nodes = nodes;
  fleet_options.timing = teller->timing;
  fleet_options.act_as_controllers = teller->act_as_controllers;
  Fleet fleet(teller->client, teller->clock, std::move(fleet_options));
  bool fleet_ended = false;
  const auto ended = teller->clock->make_signal();
  asio::co_spawn(executor, run_fleet(&fleet, &fleet_ended, ended.get()), asio::detached);

  StageOptions options = teller->options;
  options.story = story->name;
  options.plugin_version = story->plugin_version;
  options.max_unavailable = static_cast<int>(story->budget);
  Scene scene(teller->client, teller->clock, teller->child, &fleet, std::move(options), nodes);
  std::string wrong = co_await tell_story(&scene, story);
  co_await teller->child->stop(std::chrono::seconds(5));
  const std::string left = co_await scene.strike();
  *cleared = left.empty();
  if (wrong.empty() && !left.empty()) wrong = "the cluster cannot be cleared: " + left;
  while (!fleet_ended) {
    const bool over = co_await ended->wait_until(k8s::MonoTime::never());
    (void)over;
  }
  co_await scene.close();
  co_return wrong;
}

const ShortStory* find_story(const std::string& name) {
  for (const auto* stories : {&rollout_stories(), &seed_scenarios()}) {
    const auto story = std::ranges::find(*stories, name, &ShortStory::name);
    if (story != stories->end()) return &*story;
  }
  return nullptr;
}

}  // namespace

asio::awaitable<ShortStoryTally> tell_short_stories(ShortStoryTeller teller, std::vector<const ShortStory*> stories) {
  ShortStoryTally tally;
  for (const ShortStory* story : stories) {
    const auto begun = teller.clock->monotonic();
    bool cleared = false;
    const std::string wrong = co_await tell_one(&teller, story, &cleared);
    const std::string took = " (" + seconds(teller.clock->monotonic() - begun) + ")";
    ++tally.told;
    if (wrong.empty()) ++tally.held;
    teller.options.progress((wrong.empty() ? "✓ " : "✗ ") + story->name + ": " + story->title + took +
                            (wrong.empty() ? "" : "\n  " + wrong));
    if (!cleared) break;
    // They are there by now.
    teller.options.custom_resources.clear();
    teller.options.install_definitions = false;
  }
  co_return tally;
}

k8s::Result<std::vector<const ShortStory*>> choose_stories(const std::string& list) {
  std::vector<const ShortStory*> chosen;
  std::stringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    const bool all = name == "all";
    if (all || name == "rollouts")
      for (const ShortStory& story : rollout_stories()) chosen.push_back(&story);
    if (all || name == "seeds")
      for (const ShortStory& story : seed_scenarios()) chosen.push_back(&story);
    if (all || name == "rollouts" || name == "seeds") continue;
    const ShortStory* story = find_story(name);
    if (story == nullptr) return k8s::fail(k8s::Reason::invalid, "there is no story '" + name + "'");
    chosen.push_back(story);
  }
  return chosen;
}

std::vector<const ShortStory*> share_of(const std::vector<const ShortStory*>& stories,
                                        std::pair<std::size_t, std::size_t> share) {
  std::vector<const ShortStory*> mine;
  for (std::size_t i = share.first - 1; i < stories.size(); i += share.second) mine.push_back(stories[i]);
  return mine;
}

}  // namespace gso::sim
