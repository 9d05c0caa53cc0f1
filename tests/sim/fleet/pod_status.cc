// The status that kubelet publishes for a pod.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/pod_container.h"

namespace gso::sim {

using nlohmann::json;

namespace {

json condition(const char* type, bool holds, const std::optional<k8s::WallTime>& since) {
  json entry{{"type", type}, {"status", holds ? "True" : "False"}};
  if (since) entry["lastTransitionTime"] = k8s::format_time(*since);
  return entry;
}

}  // namespace

json container_status(const PodRunner::Container& container) {
  using State = PodRunner::Container::State;
  const bool running = container.state == State::running;
  const bool done = container.state == State::ended;
  json status{{"name", container.spec.name},
              {"image", container.spec.image},
              {"imageID", ""},
              {"restartCount", container.restarts},
              {"started", running},
              {"ready", container.init ? done && container.last_end->code == 0 : running}};
  const auto ended = [&container](const PodRunner::Container::End& end) {
    json state{{"exitCode", end.code},
               {"reason", end.code == 0 ? "Completed" : "Error"},
               {"startedAt", k8s::format_time(end.started_at)},
               {"finishedAt", k8s::format_time(end.finished_at)}};
    // What a process printed is not in its status, unless the container asks for it.
    if (container.spec.message_from_log && !end.message.empty()) state["message"] = end.message;
    return state;
  };
  if (running) {
    status["state"]["running"] = {{"startedAt", k8s::format_time(container.started_at)}};
  } else if (done) {
    status["state"]["terminated"] = ended(*container.last_end);
  } else {
    status["state"]["waiting"] = {{"reason", container.waiting_reason}};
    if (!container.waiting_message.empty()) status["state"]["waiting"]["message"] = container.waiting_message;
  }
  const auto& before = done ? container.previous_end : container.last_end;
  if (before) status["lastState"]["terminated"] = ended(*before);
  return status;
}

json PodRunner::status() const {
  json status;
  if (stage_ == Stage::finished && !reason_.empty())
    return {{"phase", "Failed"}, {"reason", reason_}, {"message", message_}};
  bool failed =
      stage_ == Stage::finished && !init_.empty() && init_.back()->last_end && init_.back()->last_end->code != 0;
  for (const auto& container : main_) failed = failed || (container->last_end && container->last_end->code != 0);
  status["phase"] = stage_ == Stage::finished ? (failed ? "Failed" : "Succeeded") : main_begun_ ? "Running" : "Pending";
  // Ready changed when the last container started, or when the last one ended.
  std::optional<k8s::WallTime> changed = begun_;
  for (const auto& container : main_) {
    const bool runs = container->state == Container::State::running;
    if (runs) changed = std::max(*changed, container->started_at);
    if (!runs && container->last_end) changed = std::max(*changed, container->last_end->finished_at);
  }
  status["qosClass"] = "BestEffort";
  if (begun_) status["startTime"] = k8s::format_time(*begun_);
  status["conditions"] = {condition("PodScheduled", true, begun_), condition("Initialized", main_begun_, begun_),
                          condition("ContainersReady", ready(), changed), condition("Ready", ready(), changed)};
  if (!init_.empty()) {
    status["initContainerStatuses"] = json::array();
    for (const auto& container : init_) status["initContainerStatuses"].push_back(container_status(*container));
  }
  status["containerStatuses"] = json::array();
  for (const auto& container : main_) status["containerStatuses"].push_back(container_status(*container));
  return status;
}

}  // namespace gso::sim
