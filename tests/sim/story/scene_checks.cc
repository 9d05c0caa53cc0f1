// What a scene can look at: records, conditions, Events, the journal. And how it is cleared away.
#include <algorithm>
#include <utility>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/scene.h"

namespace gso::sim {

using nlohmann::json;

namespace {

namespace asio = boost::asio;

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

json status_in(const JsonPtr& object) {
  return object == nullptr ? json::object() : object->value("status", json::object());
}

}  // namespace

json Scene::rollout_of(const std::string& policy, const std::string& text) const {
  for (const auto& [key, rollout] : view_.rollouts.all()) {
    const json& spec = (*rollout)["spec"];
    if (spec.value("policy", "") == policy && spec.value("profile", "") == text) return *rollout;
  }
  return json::object();
}

std::string Scene::phase_of(const std::string& policy, const std::string& text) const {
  return rollout_of(policy, text).value("status", json::object()).value("phase", "");
}

Stage::Check Scene::phase_is(std::string policy, std::string text, std::string phase) const {
  return [=, this] {
    const json status = rollout_of(policy, text).value("status", json::object());
    if (status.value("phase", "") == phase) return std::string();
    return "the SharingRollout of '" + policy + "' says " + status.dump();
  };
}

json Scene::status_of(const std::string& policy) const {
  return status_in(view_.policies.find({"", policy}));
}

Stage::Check Scene::condition_is(std::string policy, std::string type, std::string status, std::string reason,
                                 std::string mention) const {
  return [=, this] {
    const json all = status_of(policy).value("conditions", json::array());
    for (const json& condition : all) {
      if (condition.value("type", "") == type && condition.value("status", "") == status &&
          condition.value("reason", "") == reason && mentions(condition.value("message", ""), mention)) {
        return std::string();
      }
    }
    return "SharingPolicy '" + policy + "' says " + all.dump();
  };
}

Stage::Check Scene::blocked_by(std::string policy, std::string reason, std::string mention) const {
  return [=, this] {
    const json status = status_of(policy);
    for (const json& block : status.value("blocked", json::array())) {
      if (block.value("reason", "") == reason && mentions(block.dump(), mention)) return std::string();
    }
    return "the status of SharingPolicy '" + policy + "' is " + status.dump();
  };
}

Stage::Check Scene::event_says(std::string reason, std::string mention) const {
  return [=, this] {
    std::string all;
    for (const std::string& note : view_.event_notes(reason, begun_)) {
      if (mentions(note, mention)) return std::string();
      all += " '" + note + "'";
    }
    return all.empty() ? "there is no Event " + reason : "the Events " + reason + " say" + all;
  };
}

Stage::Check Scene::pod_is_gone(std::string pod) const {
  return [=, this] {
    return view_.pods.find({"default", pod}) == nullptr ? std::string() : "pod " + pod + " is still there";
  };
}

std::string Scene::state_of(const std::string& node) const {
  return view_.label(node, "gpusharing.dev/state");
}

std::size_t Scene::plugins_restarted(const Seen& before) const {
  return view_.restarted("nvidia-device-plugin", before.plugin).size();
}

std::string Scene::beyond(std::size_t budget) const {
  if (view_.peak_unavailable() <= budget) return {};
  return std::to_string(view_.peak_unavailable()) + " nodes were out of service at once, with a budget of " +
         std::to_string(budget);
}

std::string Scene::node_differs(const std::string& node) const {
  const auto spec = std::ranges::find(nodes_, node, &NodeSpec::name);
  return spec == nodes_.end() ? "there is no node " + node : node_problem(*spec);
}

std::size_t Scene::happened(Happening what, std::size_t from) const {
  return nodes_that(what, from).size();
}

std::vector<std::string> Scene::nodes_that(Happening what, std::size_t from) const {
  std::vector<std::string> names;
  for (std::size_t i = from; i < journal_.size(); ++i) {
    if (journal_[i].what == what) names.push_back(journal_[i].node);
  }
  return names;
}

std::string Scene::short_verify_timeout() const {
  return k8s::format_go_duration(scaled(std::chrono::minutes(5)) + options_.slack / 6);
}

std::string Scene::duration(k8s::Duration real) const {
  return k8s::format_go_duration(scaled(real));
}

}  // namespace gso::sim
