// The story: what an administrator does with a fleet of twelve nodes, and what must come of it. Written once, told on
// the simulated cluster in virtual time, over loopback HTTP with the real binary, and on a real API server.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "k8sclient/client.h"
#include "k8sclient/clock.h"
#include "tests/sim/fleet/topology.h"
#include "tests/sim/story/cluster_view.h"
#include "tests/sim/story/node_expectation.h"
#include "tests/sim/story/operator_control.h"

namespace gso::sim {

struct StoryOptions {
  std::string plugin_version = "v0.20.0";
  // Of the fleet's time: the operator's own times (settle, soak, verification) and the story's patience shrink with it.
  double time_scale = 1.0;
  // Added to every bound: what the machines that run this take. 0 in virtual time.
  k8s::Duration slack{0};
  int max_unavailable = 3;                    // The budget of the default policy.
  std::vector<std::string> custom_resources;  // CustomResourceDefinitions to install, as JSON.
  bool install_definitions = true;            // Also small ones of the GPU Operator's kinds where they are not served.
  OperatorSettings operator_settings;         // Beside those that the story needs.
  std::function<void(const std::string& line)> progress = [](const std::string&) {};
};

struct StoryStep {
  std::string title;
  bool held = false;
  std::string why;  // What was expected and what the cluster showed, when it did not hold.
  k8s::Duration took{0};
};

class Story {
 public:
  // All must outlive the story. The fleet (of topology "demo") is attached by somebody else.
  Story(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, StoryOptions options);

  // Tells it, up to the first step that does not hold. Leaves the operator running.
  boost::asio::awaitable<std::vector<StoryStep>> run();
  [[nodiscard]] const ClusterView& view() const { return view_; }
  // Name, what each node shows, and its state, for the table at the end.
  [[nodiscard]] std::vector<std::vector<std::string>> node_table() const;
  // Called between steps and while waiting; an invariant that broke ends the story.
  std::function<std::string()> invariant = [] { return std::string(); };

 private:
  using Held = k8s::Result<void>;
  // Empty: holds; else what is missing. Always a named value before it is awaited: g++ 12 copies the captures of a
  // lambda that stands in a co_await expression bitwise, and frees them twice.
  using Check = std::function<std::string()>;
  struct Seen {  // Pods so far, to see what a step restarted.
    ClusterView::Pods plugin, gfd, mps;
  };

  // Steps, in order (story_steps.cc, story_profiles.cc).
  boost::asio::awaitable<Held> running_fleet();
  boost::asio::awaitable<Held> install();
  boost::asio::awaitable<Held> refuse_mps_on_mig();
  boost::asio::awaitable<Held> more_replicas();
  boost::asio::awaitable<Held> invisible_edit();
  boost::asio::awaitable<Held> rename();
  boost::asio::awaitable<Held> broken_edit();
  boost::asio::awaitable<Held> one_node_by_label();
  boost::asio::awaitable<Held> mps_by_label();
  boost::asio::awaitable<Held> new_default();
  boost::asio::awaitable<Held> killed_in_between();

  // What an administrator does.
  boost::asio::awaitable<Held> apply(k8s::Gvr gvr, k8s::ObjectKey key, std::string json);
  boost::asio::awaitable<Held> patch(k8s::Gvr gvr, k8s::ObjectKey key, std::string json);
  boost::asio::awaitable<Held> edit_profile(std::string key, std::string text);
  boost::asio::awaitable<Held> label_node(std::string node, std::string key, std::optional<std::string> value);
  boost::asio::awaitable<Held> apply_policy(std::string name, std::string node, std::string key);
  boost::asio::awaitable<Held> await_block(std::string policy, std::string reason, std::string mention);
  boost::asio::awaitable<Held> start_operator();

  // Waits until `check` holds, at most `bound` (real time of a real cluster: scaled here).
  boost::asio::awaitable<Held> await(std::string what, k8s::Duration bound, Check check);
  // Fails as soon as `check` does not hold within `duration`.
  boost::asio::awaitable<Held> holds_for(std::string what, k8s::Duration duration, Check check);
  // Every node shows what its effective profile asks for.
  boost::asio::awaitable<Held> await_fleet(std::string what, k8s::Duration bound);
  // The policy `default` counts all its nodes as up to date, and its rollouts are done.
  boost::asio::awaitable<Held> await_settled(k8s::Duration bound);
  // An edit of the default key that rolls every node that uses it, within the budget, each once.
  boost::asio::awaitable<Held> roll(std::string what, std::string text, bool mps_pods_too);

  [[nodiscard]] std::string effective_key(const NodeSpec& node) const;
  [[nodiscard]] std::string node_problem(const NodeSpec& node) const;
  [[nodiscard]] std::string fleet_problem();
  [[nodiscard]] std::string settled_problem() const;
  [[nodiscard]] std::string restarts_problem(const Seen& before, const std::set<std::string>& nodes, bool mps) const;
  [[nodiscard]] Seen seen() const;
  [[nodiscard]] std::set<std::string> nodes_on(const std::string& key) const;
  [[nodiscard]] std::set<std::string> all_nodes() const;
  [[nodiscard]] bool default_first() const;
  [[nodiscard]] k8s::Duration scaled(k8s::Duration real) const;
  void say(const std::string& line) const { options_.progress(line); }

  k8s::ApiClient* client_;
  k8s::Clock* clock_;
  OperatorControl* operator_;
  StoryOptions options_;
  ClusterView view_;
  std::vector<NodeSpec> nodes_;
  PluginInstall install_;
  // The administrator's memory of what was asked for.
  std::map<std::string, std::string> profiles_;     // Key -> document.
  std::map<std::string, std::string> node_labels_;  // Node -> key, where labelled.
  std::string default_key_ = "any";
  std::set<std::string> told_;  // Nodes whose arrival was reported in this wait.
  bool running_ = false;
};

// The documents of the story.
[[nodiscard]] std::string mps_profile(int replicas, bool rename = false, std::optional<bool> fail_above_one = {});
[[nodiscard]] std::string time_slicing_profile(int replicas);

}  // namespace gso::sim
