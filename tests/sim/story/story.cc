// The order of the story's steps; what happens in them is in story_steps.cc and story_profiles.cc.
#include "tests/sim/story/story.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "k8sclient/api/client.h"

namespace gso::sim {

namespace {
namespace asio = boost::asio;
}  // namespace

Story::Story(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, StageOptions options)
    : Stage(client, clock, op, std::move(options), *topology("demo")) {
  view_.nodes.add_listener([this](const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after) {
    note_turn(key.name, before, after);
  });
}

asio::awaitable<std::vector<StoryStep>> Story::run() {
  const auto executor = co_await asio::this_coro::executor;
  asio::co_spawn(executor, view_.run(), asio::detached);
  struct Chapter {
    const char* title;
    asio::awaitable<Held> (Story::*tell)();
  };
  static constexpr Chapter kChapters[] = {
      {"A running fleet: MPS with 4 replicas by default, time-slicing on the MIG node", &Story::running_fleet},
      {"The operator is installed and disturbs nothing", &Story::install},
      {"A policy that would put the MIG node on MPS is blocked", &Story::refuse_mps_on_mig},
      {"The profile is edited to 8 replicas: canary, then waves within the budget", &Story::more_replicas},
      {"An edit that no label shows is rolled too", &Story::invisible_edit},
      {"renameByDefault: nvidia.com/gpu.shared takes over from nvidia.com/gpu", &Story::rename},
      {"A broken edit is refused, and its repair is rolled", &Story::broken_edit},
      {"One node labelled with another profile moves alone", &Story::one_node_by_label},
      {"A policy asks for another MPS profile by label", &Story::mps_by_label},
      {"The ClusterPolicy gets another default", &Story::new_default},
      {"The operator is killed in the middle of a rollout", &Story::killed_in_between},
  };
  std::vector<StoryStep> steps;
  for (const Chapter& chapter : kChapters) {
    StoryStep step;
    step.title = chapter.title;
    say("· " + step.title);
    const auto begun = clock_->monotonic();
    const Held held = co_await (this->*chapter.tell)();
    step.took = clock_->monotonic() - begun;
    step.held = held.has_value();
    if (!held) step.why = held.error().message;
    say((step.held ? "✓ " : "✗ ") + step.title + " (" + seconds(step.took) + ")" +
        (step.held ? "" : "\n  " + step.why));
    steps.push_back(step);
    if (!step.held) break;
  }
  view_.stop();
  co_return steps;
}

}  // namespace gso::sim
