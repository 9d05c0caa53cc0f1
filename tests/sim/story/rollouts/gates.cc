// Stories about what holds a rollout up on purpose: windows, approval, pauses, held nodes.
#include <algorithm>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/rollouts/rollout_stories.h"

namespace gso::sim {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

Scene::Check nothing_in_progress(Scene* scene) {
  return [=] {
    for (const NodeSpec& node : scene->nodes())
      if (scene->state_of(node.name) == "Updating") return node.name + " is in progress";
    return std::string();
  };
}

// A daily window that is open from `from` (a full minute, UTC) until `to`.
json window(k8s::WallTime from, k8s::WallTime to) {
  const std::string start = k8s::format_time(from);  // 2026-03-01T08:00:00Z
  json entry;
  entry["cron"] =
      std::to_string(std::stoi(start.substr(14, 2))) + " " + std::to_string(std::stoi(start.substr(11, 2))) + " * * *";
  entry["duration"] = k8s::format_go_duration(to - from);
  return entry;
}

// Shuts the window in a moment. Returns the place in the journal from which on no node may start.
asio::awaitable<std::size_t> close_window(Scene* scene) {
  const k8s::WallTime now = scene->clock().now();
  const auto moment = std::chrono::ceil<k8s::WallTime::duration>(scene->scaled(20s));
  const k8s::WallTime closes = now + moment;
  json rollout;
  rollout["maintenanceWindows"].push_back(window(std::chrono::floor<std::chrono::minutes>(now) - 1min, closes));
  co_await scene->tune("default", rollout);
  const Scene::Check is_closed = [scene, closes] {
    return scene->clock().now() > closes ? std::string() : std::string("the window is open");
  };
  co_await scene->until("the window to close", 5min, is_closed);
  co_await scene->until("the window to be named as the reason", 10min,
                        scene->condition_is("default", "Progressing", "False", "OutsideWindow", "opens at"));
  co_await scene->until("the nodes in progress to be done", 0s, nothing_in_progress(scene));
  co_return scene->journal().size();
}

// Lets it open at a full minute, and sees that nobody goes before.
asio::awaitable<void> open_window_later(Scene* scene, std::size_t outside) {
  const k8s::WallTime now = scene->clock().now();
  const auto later = std::chrono::ceil<k8s::WallTime::duration>(scene->scaled(5min));
  const k8s::WallTime opens = std::chrono::ceil<std::chrono::minutes>(now + later);
  json rollout;
  rollout["maintenanceWindows"].push_back(window(opens, opens + 1h));
  co_await scene->tune("default", rollout);
  while (scene->failure().empty() && scene->clock().now() < opens) {
    const std::size_t started = scene->happened(Happening::started, outside);
    const std::string first = started == 0 ? "" : scene->nodes_that(Happening::started, outside).front();
    scene->require(started == 0, first + " was started outside the window");
    co_await scene->clock().sleep_for(std::min<k8s::Duration>(opens - scene->clock().now(), 1s));
  }
}

}  // namespace

asio::awaitable<void> window_closes(Scene* scene) {
  const OperatorSettings one_by_one{{"canary-nodes-per-group", "0"}};
  co_await scene->begin(time_slicing_profile(2), one_by_one);
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  const std::string text = time_slicing_profile(4);
  co_await scene->edit("any", text);
  co_await scene->until("two nodes that are done", 20min, scene->finished(from, 2));
  if (!scene->failure().empty()) co_return;

  const std::size_t outside = co_await close_window(scene);
  const std::size_t done = scene->plugins_restarted(before);
  scene->require(done < scene->nodes().size(), "every node was restarted before the window closed");
  scene->tell(std::to_string(done) + " of " + std::to_string(scene->nodes().size()) +
              " nodes were done when the window closed");
  co_await open_window_later(scene, outside);
  co_await scene->until_fleet_shows("every node, once the window is open", 40min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
  scene->require(scene->beyond(1));
  co_await scene->until("its record to be complete", 5min, scene->phase_is("default", text, "Completed"));
}

namespace {

// Paused when the first node is done: what is in progress finishes, and that is all until it is resumed.
asio::awaitable<void> pause_and_resume(Scene* scene, std::string text, std::size_t from) {
  co_await scene->until("a node that is done", 20min, scene->finished(from, 1));
  if (!scene->failure().empty()) co_return;
  const k8s::ObjectKey rollout{"", scene->rollout_of("default", text)["metadata"].value("name", "")};
  json pause;
  pause["spec"]["paused"] = true;
  co_await scene->change(kRollouts, rollout, pause);
  co_await scene->until("the record to say Paused", 5min, scene->phase_is("default", text, "Paused"));
  co_await scene->until("the nodes in progress to be done", 10min, nothing_in_progress(scene));
  const std::size_t paused = scene->journal().size();
  const Scene::Check none_starts = [scene, paused] {
    return scene->happened(Happening::started, paused) == 0 ? std::string() : std::string("a node was started");
  };
  co_await scene->stays("no node starts while it is paused", 5min, none_starts);
  json resume;
  resume["spec"]["paused"] = false;
  co_await scene->change(kRollouts, rollout, resume);
}

}  // namespace

asio::awaitable<void> approval(Scene* scene) {
  const OperatorSettings approve{{"mode", "Approve"}};
  co_await scene->begin(time_slicing_profile(2), approve);
  json hold;
  hold["metadata"]["annotations"]["gpusharing.dev/hold"] = "true";
  const k8s::ObjectKey held{"", "a100-03"};
  co_await scene->change(kNodes, held, hold);
  const Scene::Seen before = scene->seen();
  const std::size_t from = scene->journal().size();
  const std::string text = time_slicing_profile(4);
  co_await scene->edit("any", text);
  co_await scene->until("a rollout that waits", 5min, scene->phase_is("default", text, "AwaitingApproval"));
  co_await scene->until("the policy to say so", 2min,
                        scene->condition_is("default", "Progressing", "False", "AwaitingApproval", "spec.approved"));
  co_await scene->stays("nothing moves before it is approved", 10min, scene->undisturbed(before));
  if (!scene->failure().empty()) co_return;
  json approved;
  approved["spec"]["approved"] = true;
  const k8s::ObjectKey rollout{"", scene->rollout_of("default", text)["metadata"].value("name", "")};
  co_await scene->change(kRollouts, rollout, approved);
  co_await pause_and_resume(scene, text, from);
  scene->excused = {"a100-03"};
  co_await scene->until_fleet_shows("every node but the one that is held", 40min);
  const Scene::Check is_held = [scene] {
    const json status = scene->status_of("default");
    return status.value("nodes", json::object()).value("held", 0) == 1 ? std::string() : "it says " + status.dump();
  };
  co_await scene->until("the policy to count the held node", 5min, is_held);
  scene->require(scene->restarts_of("a100-03", before) == 0, "the held node was restarted");
  scene->excused.clear();
  hold["metadata"]["annotations"]["gpusharing.dev/hold"] = json();
  co_await scene->change(kNodes, held, hold);
  co_await scene->until_fleet_shows("the node that was held, too", 20min);
  co_await scene->until_settled(10min);
  scene->require(scene->restarts_problem(before, scene->all_nodes(), false));
  scene->require(scene->beyond(1));
}

}  // namespace gso::sim
