// How the story acts and waits; what happens in it is in story_steps.cc and story_profiles.cc.
#include "tests/sim/story/story.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

namespace asio = boost::asio;

std::unexpected<k8s::Error> broken(std::string why) {
  return k8s::fail(k8s::Reason::invalid, std::move(why));
}

std::string seconds(k8s::Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(duration).count());
  return text;
}

}  // namespace

std::string mps_profile(int replicas, bool rename, std::optional<bool> fail_above_one) {
  std::string text = "version: v1\nsharing:\n  mps:\n";
  if (rename) text += "    renameByDefault: true\n";
  if (fail_above_one)
    text += std::string("    failRequestsGreaterThanOne: ") + (*fail_above_one ? "true" : "false") + "\n";
  return text + "    resources:\n    - name: nvidia.com/gpu\n      replicas: " + std::to_string(replicas) + "\n";
}

std::string time_slicing_profile(int replicas) {
  return "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: " +
         std::to_string(replicas) + "\n";
}

Story::Story(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, StoryOptions options)
    : client_(client),
      clock_(clock),
      operator_(op),
      options_(std::move(options)),
      view_(client, clock),
      nodes_(*topology("demo")) {
  install_.plugin_version = options_.plugin_version;
}

k8s::Duration Story::scaled(k8s::Duration real) const {
  return std::chrono::duration_cast<k8s::Duration>(std::chrono::duration<double>(real) * options_.time_scale);
}

bool Story::default_first() const {
  return PluginVersion::of_image(options_.plugin_version).default_first();
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

asio::awaitable<Story::Held> Story::apply(k8s::Gvr gvr, k8s::ObjectKey key, std::string object) {
  auto created = co_await client_->create(gvr, key.ns, object);
  if (created) co_return Held{};
  if (created.error().reason != k8s::Reason::already_exists) co_return std::unexpected(created.error());
  auto patched = co_await client_->merge_patch(gvr, key, object);
  if (!patched) co_return std::unexpected(patched.error());
  co_return Held{};
}

asio::awaitable<Story::Held> Story::patch(k8s::Gvr gvr, k8s::ObjectKey key, std::string body) {
  auto patched = co_await client_->merge_patch(gvr, key, body);
  if (!patched) co_return std::unexpected(patched.error());
  co_return Held{};
}

asio::awaitable<Story::Held> Story::edit_profile(std::string key, std::string text) {
  profiles_[key] = text;
  json body;
  body["data"][key] = text;
  const Held edited = co_await patch(kConfigMaps, {install_.ns, install_.config_map}, body.dump());
  co_return edited;
}

asio::awaitable<Story::Held> Story::label_node(std::string node, std::string key, std::optional<std::string> value) {
  json body;
  body["metadata"]["labels"][key] = value ? json(*value) : json();
  if (key == kConfigLabel && value) node_labels_[node] = *value;
  if (key == kConfigLabel && !value) node_labels_.erase(node);
  const Held labelled = co_await patch(kNodes, {"", node}, body.dump());
  co_return labelled;
}

asio::awaitable<Story::Held> Story::start_operator() {
  const auto text = [this](k8s::Duration real) {
    return k8s::format_go_duration(std::max<k8s::Duration>(scaled(real), std::chrono::milliseconds(20)));
  };
  OperatorSettings settings{
      {"settle", text(std::chrono::seconds(10))},
      {"status-lag", text(std::chrono::seconds(15))},
      {"projection", text(std::chrono::seconds(100))},
      {"status-interval", text(std::chrono::seconds(1))},
      {"canary-soak", text(std::chrono::seconds(60))},
      {"verify-timeout", k8s::format_go_duration(scaled(std::chrono::minutes(10)) + options_.slack)},
      {"max-unavailable", std::to_string(options_.max_unavailable)},
      {"max-unavailable-per-group", std::to_string(options_.max_unavailable)},
      {"cluster-max-unavailable", std::to_string(options_.max_unavailable)}};
  settings.insert(settings.end(), options_.operator_settings.begin(), options_.operator_settings.end());
  running_ = true;
  co_return operator_->start(settings);
}

asio::awaitable<Story::Held> Story::await(std::string what, k8s::Duration bound, Check check) {
  const k8s::MonoTime deadline = clock_->monotonic() + scaled(bound) + options_.slack;
  while (true) {
    if (const std::string why = invariant(); !why.empty()) co_return broken(why);
    const std::string missing = check();
    if (missing.empty()) co_return Held{};
    if (const std::string why = running_ ? operator_->trouble() : ""; !why.empty()) {
      co_return broken("while waiting for " + what + ": " + why);
    }
    if (clock_->monotonic() >= deadline) {
      co_return broken("waited " + seconds(scaled(bound) + options_.slack) + " for " + what + "; but " + missing);
    }
    // Also without a change: the check may depend on time, and the operator may have ended.
    const bool something = co_await view_.changed(std::min(deadline, clock_->monotonic() + std::chrono::seconds(1)));
    (void)something;
  }
}

asio::awaitable<Story::Held> Story::holds_for(std::string what, k8s::Duration duration, Check check) {
  const k8s::MonoTime end = clock_->monotonic() + scaled(duration);
  while (true) {
    const std::string wrong = check();
    if (!wrong.empty()) co_return broken(what + "; but " + wrong);
    if (const std::string why = invariant(); !why.empty()) co_return broken(why);
    if (clock_->monotonic() >= end) co_return Held{};
    const bool something = co_await view_.changed(end);
    (void)something;
  }
}

std::string Story::effective_key(const NodeSpec& node) const {
  auto label = node_labels_.find(node.name);
  if (label != node_labels_.end()) return label->second;
  return node.nfd ? default_key_ : install_.default_key;
}

std::string Story::node_problem(const NodeSpec& node) const {
  const std::string key = effective_key(node);
  auto profile = profiles_.find(key);
  if (profile == profiles_.end()) return node.name + ": the story has no profile '" + key + "'";
  const auto expectation = expect_node(node, profile->second, options_.plugin_version, "single");
  if (!expectation) return node.name + ": profile '" + key + "' cannot work there";
  const std::string differs = difference(view_, node.name, *expectation);
  return differs.empty() ? "" : node.name + ": " + differs;
}

std::string Story::fleet_problem() {
  std::string first;
  std::size_t wrong = 0;
  for (const NodeSpec& node : nodes_) {
    const std::string problem = node_problem(node);
    if (problem.empty()) {
      if (told_.insert(node.name).second) say("    " + node.name + "  " + shown(view_, node.name));
      continue;
    }
    told_.erase(node.name);
    if (++wrong == 1) first = problem;
  }
  if (wrong == 0) return {};
  const std::string message = view_.annotation(first.substr(0, first.find(':')), "gpusharing.dev/message");
  return first + (message.empty() ? "" : " (the operator says: " + message + ")") +
         (wrong > 1 ? ", and " + std::to_string(wrong - 1) + " more" : "");
}

asio::awaitable<Story::Held> Story::await_fleet(std::string what, k8s::Duration bound) {
  // Only nodes that change are reported.
  told_.clear();
  for (const NodeSpec& node : nodes_) {
    if (node_problem(node).empty()) told_.insert(node.name);
  }
  const Check is_held = [this] { return fleet_problem(); };
  const Held held = co_await await(std::move(what), bound, is_held);
  co_return held;
}

std::string Story::settled_problem() const {
  const JsonPtr policy = view_.policies.find({"", "default"});
  if (policy == nullptr) return "there is no SharingPolicy 'default'";
  const json status = policy->value("status", json::object());
  const json counts = status.value("nodes", json::object());
  const auto total = counts.value("total", std::int64_t{0});
  const auto fine = counts.value("upToDate", std::int64_t{0});
  if (total != static_cast<std::int64_t>(nodes_.size()) || fine != total) {
    return "the SharingPolicy 'default' counts " + std::to_string(fine) + " of " + std::to_string(total) +
           " nodes as up to date, not " + std::to_string(nodes_.size()) + ": " + status.dump();
  }
  for (const auto& [key, rollout] : view_.rollouts.all()) {
    const std::string phase = rollout->value("status", json::object()).value("phase", "");
    if (phase != "Completed" && phase != "Superseded") return "SharingRollout '" + key.name + "' is '" + phase + "'";
  }
  for (const NodeSpec& node : nodes_) {
    if (const std::string state = view_.label(node.name, "gpusharing.dev/state"); !state.empty()) {
      return node.name + " is " + state + ": " + view_.annotation(node.name, "gpusharing.dev/message");
    }
  }
  return {};
}

asio::awaitable<Story::Held> Story::await_settled(k8s::Duration bound) {
  const Check is_held = [this] { return settled_problem(); };
  const Held held = co_await await("every node counted as up to date", bound, is_held);
  co_return held;
}

Story::Seen Story::seen() const {
  return {view_.pods_seen("nvidia-device-plugin"), view_.pods_seen("gpu-feature-discovery"),
          view_.pods_seen("mps-control-daemon")};
}

// Nobody but `nodes` got new pods, and these got exactly one plugin pod each (and one MPS pod, if `mps`).
std::string Story::restarts_problem(const Seen& before, const std::set<std::string>& nodes, bool mps) const {
  for (const auto& [component, old] :
       {std::pair{"nvidia-device-plugin", &before.plugin}, std::pair{"gpu-feature-discovery", &before.gfd},
        std::pair{"mps-control-daemon", &before.mps}}) {
    for (const auto& [node, count] : view_.restarted(component, *old)) {
      if (!nodes.contains(node))
        return std::string(component) + " was restarted on " + node + ", which is not concerned";
      if (count > 1) {
        return std::string(component) + " was restarted " + std::to_string(count) + " times on " + node + ", not once";
      }
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

std::set<std::string> Story::nodes_on(const std::string& key) const {
  std::set<std::string> names;
  for (const NodeSpec& node : nodes_) {
    if (effective_key(node) == key) names.insert(node.name);
  }
  return names;
}

std::set<std::string> Story::all_nodes() const {
  std::set<std::string> names;
  for (const NodeSpec& node : nodes_) names.insert(node.name);
  return names;
}

std::vector<std::vector<std::string>> Story::node_table() const {
  std::vector<std::vector<std::string>> rows;
  for (const NodeSpec& node : nodes_) {
    std::string state = view_.label(node.name, "gpusharing.dev/state");
    if (state.empty()) state = node_problem(node).empty() ? "UpToDate" : "Differs";
    std::string gpus;
    for (const auto& [resource, count] : view_.allocatable(node.name)) {
      gpus += (gpus.empty() ? "" : " ") + resource + "=" + std::to_string(count);
    }
    rows.push_back({node.name, effective_key(node), view_.label(node.name, "nvidia.com/gpu.sharing-strategy"),
                    view_.label(node.name, "nvidia.com/gpu.replicas"), view_.label(node.name, "nvidia.com/gpu.product"),
                    gpus, state});
  }
  return rows;
}

}  // namespace gso::sim
