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

Scene::Check Scene::phase_is(std::string policy, std::string text, std::string phase) const {
  return [=, this] {
    const json status = rollout_of(policy, text).value("status", json::object());
    if (status.value("phase", "") == phase) return std::string();
    return "the SharingRollout of '" + policy + "' says " + status.dump();
  };
}

Scene::Check Scene::some_rollout_is(std::string policy, std::string phase) const {
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

Scene::Check Scene::shows(std::string node, std::map<std::string, std::string> labels,
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

Scene::Check Scene::replicas_are(std::set<std::string> nodes, int replicas) const {
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

Scene::Check Scene::condition_is(std::string policy, std::string type, std::string status, std::string reason,
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

Scene::Check Scene::blocked_by(std::string policy, std::string reason, std::string mention) const {
  return [=, this] {
    const json status = status_of(policy);
    for (const json& block : status.value("blocked", json::array()))
      if (block.value("reason", "") == reason && !block.value("message", "").empty() && block.dump().contains(mention))
        return std::string();
    return "the status of SharingPolicy '" + policy + "' is " + status.dump();
  };
}

Scene::Check Scene::event_says(std::string reason, std::string mention) const {
  return [=, this] {
    std::string all;
    for (const std::string& note : view_.event_notes(reason, begun_)) {
      if (note.contains(mention)) return std::string();
      all += " '" + note + "'";
    }
    return all.empty() ? "there is no Event " + reason : "the Events " + reason + " say" + all;
  };
}

Scene::Check Scene::pod_is_gone(std::string pod) const {
  return [=, this] {
    return view_.pods.find({"default", pod}) == nullptr ? std::string() : "pod " + pod + " is still there";
  };
}

std::string Scene::state_of(const std::string& node) const {
  return view_.label(node, "gpusharing.dev/state");
}

Scene::Check Scene::undisturbed(Seen before) const {
  return [this, before = std::move(before)] { return disturbed(before); };
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

Scene::Check Scene::finished(std::size_t from, std::size_t count) const {
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

k8s::Duration Scene::scaled(k8s::Duration real) const {
  return std::chrono::duration_cast<k8s::Duration>(std::chrono::duration<double>(real) * options_.time_scale);
}

std::string Scene::effective_key(const NodeSpec& node) const {
  auto label = node_labels_.find(node.name);
  if (label != node_labels_.end()) return label->second;
  return node.nfd ? default_key_ : install_.default_key;
}

std::string Scene::node_problem(const NodeSpec& node) const {
  const std::string key = effective_key(node);
  auto profile = profiles_.find(key);
  if (profile == profiles_.end() && !key.empty()) return node.name + ": the story has no profile '" + key + "'";
  const std::string text = key.empty() ? "version: v1\n" : profile->second;  // Without a key, nothing is shared.
  const auto expectation = expect_node(node, text, options_.plugin_version, "single");
  if (!expectation) return node.name + ": profile '" + key + "' cannot work there";
  const std::string differs = difference(view_, node.name, *expectation);
  return differs.empty() ? "" : node.name + ": " + differs;
}

// A DaemonSet controller that still replaces pods by a new template would restart them under the next step of a story.
std::string Scene::unfinished_update() const {
  for (const auto& [key, daemonset] : view_.daemonsets.all()) {
    const json spec = daemonset->value("spec", json::object());
    const json status = daemonset->value("status", json::object());
    const bool rolls = spec.value("updateStrategy", json::object()).value("type", "RollingUpdate") == "RollingUpdate";
    if (rolls && status.value("updatedNumberScheduled", 0) < status.value("desiredNumberScheduled", 0))
      return "DaemonSet '" + key.name + "' still replaces pods: " + status.dump();
  }
  return {};
}

std::string Scene::settled_problem() const {
  if (std::string unfinished = unfinished_update(); !unfinished.empty()) return unfinished;
  std::int64_t up_to_date = 0, total = 0;
  std::string all;
  for (const auto& [key, object] : view_.policies.all()) {
    const json counts = object->value("status", json::object()).value("nodes", json::object());
    up_to_date += counts.value("upToDate", std::int64_t{0});
    total += counts.value("total", std::int64_t{0});
    all += " " + key.name + ": " + object->value("status", json::object()).dump();
  }
  const auto there = static_cast<std::int64_t>(nodes_.size());
  const auto wanted = there - static_cast<std::int64_t>(excused.size());
  if (total != there || up_to_date < wanted) {
    return "the policies count " + std::to_string(up_to_date) + " of " + std::to_string(total) +
           " nodes as up to date, not " + std::to_string(wanted) + ":" + all;
  }
  for (const auto& [key, rollout] : view_.rollouts.all()) {
    const std::string phase = rollout->value("status", json::object()).value("phase", "");
    if (phase.empty() || phase == "Progressing" || phase == "AwaitingApproval")
      return "SharingRollout '" + key.name + "' is '" + phase + "'";
  }
  for (const NodeSpec& node : nodes_) {
    if (excused.contains(node.name)) continue;
    if (const std::string state = state_of(node.name); !state.empty())
      return node.name + " is " + state + ": " + view_.annotation(node.name, "gpusharing.dev/message");
  }
  return {};
}

Scene::Seen Scene::seen() const {
  return {view_.pods_seen("nvidia-device-plugin"), view_.pods_seen("gpu-feature-discovery"),
          view_.pods_seen("mps-control-daemon")};
}

std::string Scene::restarts_problem(const Seen& before, const std::set<std::string>& nodes, bool mps) const {
  for (const auto& [component, old] :
       {std::pair{"nvidia-device-plugin", &before.plugin}, std::pair{"gpu-feature-discovery", &before.gfd},
        std::pair{"mps-control-daemon", &before.mps}}) {
    for (const auto& [node, count] : view_.restarted(component, *old)) {
      if (!nodes.contains(node))
        return std::string(component) + " was restarted on " + node + ", which is not concerned";
      if (count > 1)
        return std::string(component) + " was restarted " + std::to_string(count) + " times on " + node + ", not once";
    }
  }
  const auto plugins = view_.restarted("nvidia-device-plugin", before.plugin);
  const auto daemons = view_.restarted("mps-control-daemon", before.mps);
  for (const std::string& node : nodes) {
    if (!plugins.contains(node)) return "the device plugin was not restarted on " + node;
    if (mps && !daemons.contains(node)) return "the MPS daemon was not restarted on " + node;
  }
  return {};
}

std::set<std::string> Scene::nodes_on(const std::string& key) const {
  std::set<std::string> names;
  for (const NodeSpec& node : nodes_)
    if (effective_key(node) == key) names.insert(node.name);
  return names;
}

std::set<std::string> Scene::all_nodes() const {
  std::set<std::string> names;
  for (const NodeSpec& node : nodes_) names.insert(node.name);
  return names;
}

std::string Scene::canary_problem(std::size_t from, const std::set<std::string>& nodes, k8s::Duration soak) const {
  struct Group {
    std::set<std::string> begun;
    std::optional<k8s::MonoTime> canary_done;
  };
  const k8s::Duration least = scaled(soak) - (exact() ? k8s::Duration(0) : k8s::Duration(std::chrono::seconds(1)));
  std::map<std::string, Group> groups;
  std::size_t begun = 0;
  for (std::size_t i = from; i < journal_.size(); ++i) {
    const Moment& moment = journal_[i];
    const auto node = std::ranges::find(nodes_, moment.node, &NodeSpec::name);
    if (node == nodes_.end() || !nodes.contains(moment.node)) return moment.node + " had a turn, too";
    const std::string& product = node->gpus.front().product;
    Group& group = groups[product];
    if (moment.what == Happening::finished && !group.canary_done) group.canary_done = moment.at;
    if (moment.what != Happening::started) continue;
    ++begun;
    if (!group.begun.insert(moment.node).second) return moment.node + " had a second turn";
    if (group.begun.size() == 1) continue;
    if (!group.canary_done) return moment.node + " started while the canary with " + product + " was under way";
    if (const k8s::Duration waited = moment.at - *group.canary_done; waited < least) {
      return moment.node + " started " + seconds(waited) + " after the canary with " + product +
             " was done, not after " + seconds(scaled(soak));
    }
  }
  return begun == nodes.size() ? std::string()
                               : std::to_string(begun) + " nodes of " + std::to_string(nodes.size()) + " had a turn";
}

}  // namespace gso::sim
