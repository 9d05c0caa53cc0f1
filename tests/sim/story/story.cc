// The order of the story's steps; what happens in them is in story_steps.cc and story_profiles.cc.
#include "tests/sim/story/story.h"

#include <utility>

namespace gso::sim {

namespace {
namespace asio = boost::asio;
}  // namespace

Story::Story(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, Fleet* fleet, StageOptions options)
    : Scene(client, clock, op, fleet, std::move(options), *topology("demo")) {}

asio::awaitable<std::vector<StoryStep>> Story::run() {
  struct Chapter {
    const char* title;
    asio::awaitable<void> (Story::*tell)();
  };
  static constexpr Chapter kChapters[] = {
      {"A running fleet: MPS with 4 replicas by default, time-slicing on the MIG node", &Story::running_fleet},
      {"The operator is installed and disturbs nothing", &Story::installed},
      {"A policy that would put the MIG node on MPS is blocked", &Story::refuse_mps_on_mig},
      {"The profile is edited to 8 replicas: canary, then waves within the budget", &Story::more_replicas},
      {"An edit that no label shows is rolled too", &Story::invisible_edit},
      {"renameByDefault: nvidia.com/gpu.shared takes over from nvidia.com/gpu", &Story::rename},
      {"A broken edit is refused, and its repair is rolled", &Story::broken_edit},
      {"One node labelled with another profile moves alone", &Story::one_node_by_label},
      {"A policy asks for another MPS profile by label", &Story::mps_by_label},
      {"The ClusterPolicy gets another default", &Story::another_default},
      {"The operator is killed in the middle of a rollout", &Story::killed_in_between},
  };
  std::vector<StoryStep> steps;
  for (const Chapter& chapter : kChapters) {
    say(std::string("· ") + chapter.title);
    const auto begun = clock_->monotonic();
    co_await (this->*chapter.tell)();
    const StoryStep step{chapter.title, failure().empty(), failure()};
    say((step.held ? "✓ " : "✗ ") + step.title + " (" + seconds(clock_->monotonic() - begun) + ")" +
        (step.held ? "" : "\n  " + step.why));
    steps.push_back(step);
    if (!step.held) break;
  }
  view_.stop();
  co_return steps;
}

std::vector<std::vector<std::string>> Story::node_table() const {
  std::vector<std::vector<std::string>> rows;
  for (const NodeSpec& node : nodes_) {
    std::string state = view_.label(node.name, "gpusharing.dev/state");
    if (state.empty()) state = node_problem(node).empty() ? "UpToDate" : "Differs";
    std::string gpus;
    for (const auto& [resource, count] : view_.allocatable(node.name))
      gpus += (gpus.empty() ? "" : " ") + resource + "=" + std::to_string(count);
    rows.push_back({node.name, effective_key(node), view_.label(node.name, "nvidia.com/gpu.sharing-strategy"),
                    view_.label(node.name, "nvidia.com/gpu.replicas"), view_.label(node.name, "nvidia.com/gpu.product"),
                    gpus, state});
  }
  return rows;
}

}  // namespace gso::sim
