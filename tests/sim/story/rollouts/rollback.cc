// Stories about profiles that the operator keeps for a policy: taken back when they fail, restored when somebody wipes
// them, reverted when the policy goes.
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

json inline_time_slicing(int replicas) {
  json profile;
  profile["inline"]["strategy"] = "time-slicing";
  profile["inline"]["replicas"] = replicas;
  return profile;
}

}  // namespace

asio::awaitable<void> rollback(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  json spec;
  spec["profile"] = inline_time_slicing(3);
  spec["rollout"]["maxUnavailable"] = 2;
  spec["rollout"]["maxUnavailablePerGroup"] = 2;
  spec["rollout"]["canary"]["soak"] = scene->duration(60s);
  spec["rollout"]["maxFailures"] = 2;
  spec["rollout"]["onFailure"] = "Rollback";
  spec["rollout"]["verifyTimeout"] = scene->short_verify_timeout();
  co_await scene->policy("team", spec);
  const std::set<std::string> all = scene->all_nodes();
  co_await scene->until("every node on the policy's profile", 60min, scene->replicas_are(all, 3));
  co_await scene->until_settled(10min);
  const std::string good_key = scene->status_of("team").value("profileKey", "");
  scene->require(good_key.starts_with("gso-team-"), "the policy's profile is kept as '" + good_key + "'");

  // The next one passes its canary, and then the drivers of the others turn out to be broken.
  const std::size_t from = scene->journal().size();
  json next;
  next["spec"]["profile"] = inline_time_slicing(5);
  const k8s::ObjectKey team{"", "team"};
  co_await scene->change(kPolicies, team, next);
  co_await scene->until("a canary that is verified", 20min, scene->finished(from, 1));
  if (!scene->failure().empty()) co_return;
  const std::string canary = scene->nodes_that(Happening::finished, from).front();
  for (const NodeSpec& node : scene->nodes())
    if (node.name != canary) scene->fleet().node(node.name)->machine().break_driver(true);
  co_await scene->until("the rollout to be taken back", 30min, scene->some_rollout_is("team", "RolledBack"));
  const Scene::Check two_failed = [scene, from] {
    const std::size_t failed = scene->happened(Happening::failed, from);
    return failed >= 2 ? std::string() : std::to_string(failed) + " nodes have failed";
  };
  co_await scene->until("two nodes that failed", 0s, two_failed);
  const std::size_t failed = scene->happened(Happening::failed, from);
  const std::size_t started = scene->happened(Happening::started, from);
  scene->require(failed == 2, std::to_string(failed) + " nodes failed before the rollout was taken back, not 2");
  scene->break_drivers(false);
  scene->tell(std::to_string(failed) + " nodes failed after canary " + canary + ", of " + std::to_string(started) +
              " that had started");
  co_await scene->until("every node on the profile before", 60min, scene->replicas_are(all, 3));
  for (const std::string& node : all) {
    const std::string key = scene->view().label(node, kConfigLabel);
    scene->require(key == good_key, node + " has label '" + key + "', not '" + good_key + "'");
  }
  co_await scene->until("the policy to say so", 5min,
                        scene->condition_is("team", "Ready", "False", "RolledBack", "not retried"));
  co_await scene->until("an Event about it", 2min, scene->event_says("RolledBack", ""));
  const Scene::Seen back = scene->seen();
  co_await scene->stays("what failed is not tried again", 15min, scene->undisturbed(back));

  // Another profile of the same policy goes on.
  next["spec"]["profile"] = inline_time_slicing(4);
  co_await scene->change(kPolicies, team, next);
  co_await scene->until("every node on the corrected profile", 60min, scene->replicas_are(all, 4));
  co_await scene->until_settled(10min);
  co_await scene->until("the policy to say so", 0s, scene->condition_is("team", "Ready", "True", "UpToDate", ""));
}

asio::awaitable<void> replaced_by_gitops(Scene* scene) {
  co_await scene->begin(time_slicing_profile(2));
  json spec;
  spec["profile"] = inline_time_slicing(3);
  spec["nodeSelector"]["matchLabels"]["kubernetes.io/hostname"] = "a100-01";
  spec["deletionPolicy"] = "Revert";
  spec["rollout"]["canary"]["soak"] = scene->duration(60s);
  co_await scene->policy("team", spec);
  const std::set<std::string> ours{"a100-01"};
  const std::set<std::string> others{"a100-02", "a100-03"};
  co_await scene->until("the policy's node on its profile", 30min, scene->replicas_are(ours, 3));
  co_await scene->until_settled(10min);
  const std::string key = scene->status_of("team").value("profileKey", "");
  const Scene::Seen before = scene->seen();

  // What a GitOps tool has in its repository knows nothing of our key.
  const k8s::ObjectKey where{scene->gpu_operator().ns, scene->gpu_operator().config_map};
  const std::map<std::string, std::string> all_it_has{{"any", time_slicing_profile(2)}};
  const json from_git = config_map(where.ns, where.name, all_it_has);
  co_await scene->replace(kConfigMaps, where, from_git);
  const Scene::Check is_restored = [scene, where, key] {
    const JsonPtr there = scene->cluster().configmaps.find(where);
    const bool has = there != nullptr && there->value("data", json::object()).contains(key);
    return has ? std::string() : "key " + key + " is not there";
  };
  co_await scene->until("the key in use to be put back", 30s, is_restored);
  co_await scene->until("an Event about who took it away", 2min, scene->event_says("ConfigMapReplacedByGitOps", key));
  co_await scene->stays("nothing is restarted", 5min, scene->undisturbed(before));
  scene->require(scene->replicas_are(ours, 3)());

  // The policy goes: its node goes back first.
  const k8s::ObjectKey team{"", "team"};
  co_await scene->remove(kPolicies, team);
  const Scene::Check is_gone = [scene, team] {
    const JsonPtr there = scene->cluster().policies.find(team);
    return there == nullptr ? std::string() : "it is still there: " + there->value("status", json::object()).dump();
  };
  co_await scene->until("the policy to go", 30min, is_gone);
  co_await scene->until("its node on the default again", 10min, scene->replicas_are(scene->all_nodes(), 2));
  const std::string label = scene->view().label("a100-01", kConfigLabel);
  scene->require(label.empty(), "a100-01 still has label '" + label + "'");
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, ours, false).find("not concerned") == std::string::npos,
                 scene->restarts_problem(before, ours, false));
}

}  // namespace gso::sim
