// Stories about nodes that fail: in the canary, and after it.
#include <utility>

#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

}  // namespace

asio::awaitable<void> canary_fails(Scene* scene) {
  const OperatorSettings impatient{{"verify-timeout", scene->short_verify_timeout()}};
  co_await scene->begin(time_slicing_profile(2), impatient);
  if (!scene->failure().empty()) co_return;
  scene->break_drivers(true);
  const Scene::Seen before = scene->seen();
  const std::string bad = time_slicing_profile(5);
  co_await scene->edit("any", bad);
  co_await scene->until("the rollout to stop", 30min, scene->phase_is("default", bad, "Paused"));
  co_await scene->until("the policy to name the failure", 2min,
                        scene->condition_is("default", "Progressing", "False", "MaxFailures", "in the canary"));
  co_await scene->until("the policy to be Degraded", 2min,
                        scene->condition_is("default", "Degraded", "True", "VerificationFailed", "-01"));
  co_await scene->until("an Event on the node", 2min, scene->event_says("VerificationFailed", "did not verify"));
  co_await scene->until("an Event on the rollout", 2min, scene->event_says("MaxFailures", "in the canary"));
  // One node of each model at most was risked, and it stays so.
  const std::size_t risked = scene->plugins_restarted(before);
  scene->require(risked >= 1 && risked <= 2,
                 std::to_string(risked) + " nodes were restarted by a canary of two models");
  const Scene::Check none_more = [scene, before, risked] {
    const std::size_t now = scene->plugins_restarted(before);
    return now == risked ? std::string()
                         : std::to_string(now) + " nodes have been restarted, not " + std::to_string(risked);
  };
  co_await scene->stays("nobody else is restarted", 15min, none_more);
  if (!scene->failure().empty()) co_return;

  // The fix: working drivers, and another text, which goes on from its own canary.
  scene->break_drivers(false);
  const std::string good = time_slicing_profile(6);
  co_await scene->edit("any", good);
  co_await scene->until_fleet_shows("every node on the fixed profile", 60min);
  co_await scene->until_settled(10min);
  co_await scene->until("the fix to be complete", 5min, scene->phase_is("default", good, "Completed"));
  co_await scene->until("what failed to be superseded", 5min, scene->phase_is("default", bad, "Superseded"));
  co_await scene->until("the policy not to be Degraded", 0s,
                        scene->condition_is("default", "Degraded", "False", "AsExpected", ""));

  // What failed is remembered: nobody is restarted into it again, until a person says so.
  const Scene::Seen fixed = scene->seen();
  co_await scene->edit("any", bad);
  co_await scene->until("what failed to be refused", 5min,
                        scene->condition_is("default", "Progressing", "False", "MaxFailures", "failed before"));
  co_await scene->stays("nobody is restarted into what failed", 10min, scene->undisturbed(fixed));
  json retry;
  retry["metadata"]["annotations"]["gpusharing.dev/retry"] = "once-more";
  const k8s::ObjectKey policy{"", "default"};
  co_await scene->change(kPolicies, policy, retry);
  co_await scene->until_fleet_shows("every node on what a person asked for again", 60min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(fixed, scene->all_nodes(), false));
}

}  // namespace gso::sim
