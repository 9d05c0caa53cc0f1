// What a scene can look at: records, conditions, Events, the journal.
#include <algorithm>
#include <utility>

#include "reconcilers/model/policy.h"
#include "tests/change_words/change_words.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/story/scene.h"

namespace gso::sim {

using nlohmann::json;

namespace {

namespace asio = boost::asio;

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

Stage::Check Scene::some_rollout_is(std::string policy, std::string phase) const {
  return [=, this] {
    std::string all;
    for (const auto& [key, rollout] : view_.rollouts.all()) {
      if ((*rollout)["spec"].value("policy", "") != policy) continue;
      const std::string is = status_in(rollout).value("phase", "");
      if (is == phase) return std::string();
      all += " " + key.name + " is '" + is + "'";
    }
    return "no SharingRollout of '" + policy + "' is " + phase + ":" + all;
  };
}

Stage::Check Scene::shows(std::string node, std::map<std::string, std::string> labels,
                          std::map<std::string, std::int64_t> amounts) const {
  return [=, this] {
    const auto capacity = view_.capacity(node);
    const auto allocatable = view_.allocatable(node);
    for (const auto& [resource, amount] : amounts) {
      for (const auto* shown : {&capacity, &allocatable}) {
        const auto has = shown->find(resource);
        if (has != shown->end() && has->second == amount) continue;
        return node + " shows " + (has == shown->end() ? "no " : std::to_string(has->second) + " ") + resource +
               " as " + (shown == &capacity ? "capacity" : "allocatable") + ", not " + std::to_string(amount);
      }
    }
    for (const auto& [key, value] : labels)
      if (const std::string has = view_.label(node, key); has != value)
        return node + " has label " + key + "=" + has + ", not " + value;
    return std::string();
  };
}

Stage::Check Scene::replicas_are(std::set<std::string> nodes, int replicas) const {
  return [=, this] {
    for (const NodeSpec& node : nodes_) {
      if (!nodes.contains(node.name)) continue;
      const std::int64_t wanted = replicas * static_cast<std::int64_t>(node.gpus.size());
      const auto allocatable = view_.allocatable(node.name);
      const auto gpus = allocatable.find("nvidia.com/gpu");
      const bool right = gpus != allocatable.end() && gpus->second == wanted &&
                         view_.label(node.name, "nvidia.com/gpu.replicas") == std::to_string(replicas) &&
                         view_.schedulable(node.name);
      if (right) continue;
      return node.name + " shows " + shown(view_, node.name) + ", not " + std::to_string(replicas) + " replicas (" +
             view_.annotation(node.name, "gpusharing.dev/message") + ")";
    }
    return std::string();
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
          condition.value("reason", "") == reason && std::string(condition.value("message", "")).contains(mention)) {
        return std::string();
      }
    }
    return "SharingPolicy '" + policy + "' says " + all.dump();
  };
}

Stage::Check Scene::blocked_by(std::string policy, std::string reason, std::string mention) const {
  return [=, this] {
    const json status = status_of(policy);
    for (const json& block : status.value("blocked", json::array()))
      if (block.value("reason", "") == reason && block.dump().contains(mention)) return std::string();
    return "the status of SharingPolicy '" + policy + "' is " + status.dump();
  };
}

Stage::Check Scene::event_says(std::string reason, std::string mention) const {
  return [=, this] {
    std::string all;
    for (const std::string& note : view_.event_notes(reason, begun_)) {
      if (note.contains(mention)) return std::string();
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

std::size_t Scene::restarts_of(const std::string& node, const Seen& before) const {
  const auto all = view_.restarted("nvidia-device-plugin", before.plugin);
  const auto of_node = all.find(node);
  return of_node == all.end() ? 0 : of_node->second;
}

std::string Scene::operator_traces() const {
  if (operator_writes) return std::to_string(operator_writes());
  std::string traces;
  for (const auto& [key, node] : view_.nodes.all()) {
    for (const auto& [annotation, text] : test::write_change(test::read_change(*node))) traces += text;
    traces += state_of(key.name) + (view_.schedulable(key.name) ? "" : "-") + "|";
  }
  for (const auto& [key, pod] : view_.pods.all())
    traces += (*pod)["metadata"].contains("deletionTimestamp") ? key.name + "|" : "";
  for (const auto& [key, rollout] : view_.rollouts.all()) traces += status_in(rollout).value("phase", "") + "|";
  return traces;
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

Stage::Check Scene::finished(std::size_t from, std::size_t count) const {
  return [=, this] {
    const std::size_t done = happened(Happening::finished, from);
    return done >= count ? std::string() : std::to_string(done) + " nodes are done, not " + std::to_string(count);
  };
}

std::size_t Scene::happened(Happening what, std::size_t from) const {
  return nodes_that(what, from).size();
}

std::vector<std::string> Scene::nodes_that(Happening what, std::size_t from) const {
  std::vector<std::string> names;
  for (std::size_t i = from; i < journal_.size(); ++i)
    if (journal_[i].what == what) names.push_back(journal_[i].node);
  return names;
}

std::set<std::string> Scene::nodes_started_for(const std::string& policy, const std::string& text,
                                               std::size_t from) const {
  const json rollout = rollout_of(policy, text);
  const std::string revision = rollout.value("spec", json::object()).value("toRevision", "");
  std::set<std::string> names;
  for (std::size_t i = from; i < journal_.size() && !revision.empty(); ++i)
    if (journal_[i].what == Happening::started && journal_[i].to == revision) names.insert(journal_[i].node);
  return names;
}

std::string Scene::short_verify_timeout() const {
  return k8s::format_go_duration(scaled(std::chrono::minutes(5)) + options_.slack / 10);
}

std::string Scene::duration(k8s::Duration real) const {
  return k8s::format_go_duration(scaled(real));
}

}  // namespace gso::sim
