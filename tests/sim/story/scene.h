// Scene: what every story stands on. An administrator's acts against one cluster (edits, labels, the operator's start),
// waits with a bound, checks of what the fleet shows, the fleet itself (to break machines), and a journal of what
// happened to each node. Written once against a client and a clock: in virtual time, over loopback HTTP with the real
// binary, and on a real API server. Acts and waits follow each other like sentences: after the first that fails, all
// others do nothing, and failure() says what it was.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/fleet/topology.h"
#include "tests/sim/story/cluster_view.h"
#include "tests/sim/story/node_expectation.h"
#include "tests/sim/story/operator_control.h"

namespace gso::sim {

inline const k8s::Gvr kPolicies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
inline const k8s::Gvr kRollouts{"gpusharing.dev", "v1alpha1", "sharingrollouts"};
inline const k8s::Gvr kBudgets{"policy", "v1", "poddisruptionbudgets"};

struct StageOptions {
  std::string story = "long";  // Its name, for those who read what it left on the server.
  std::string plugin_version = "v0.20.0";
  // Of the fleet's time: the operator's own times (settle, soak, verification) and the story's patience shrink with it.
  double time_scale = 1.0;
  // Added to every bound: what the machines that run this take. 0 in virtual time.
  k8s::Duration slack{0};
  int max_unavailable = 3;                    // The budget of the default policy.
  std::vector<std::string> custom_resources;  // CustomResourceDefinitions to install, as JSON.
  bool install_definitions = true;            // Also small ones of the GPU Operator's kinds where they are not served.
  OperatorSettings operator_settings;         // Beside (or in place of) those that the story needs.
  std::function<void(const std::string& line)> progress = [](const std::string&) {};
};

// What can be seen to happen to a node.
enum class Happening { started, finished, failed, cordoned, uncordoned };

struct Moment {
  k8s::MonoTime at;
  std::string node;
  Happening what = Happening::started;
  std::string to;  // Where it started: the revision that its change goes to.
};

class Scene {
 public:
  // Empty: holds; else what is missing. Always a named value before it is awaited: g++ 12 copies the captures of a
  // lambda that stands in a co_await expression bitwise, and frees them twice.
  using Check = std::function<std::string()>;
  struct Seen {  // Pods so far, to see what a step restarted.
    ClusterView::Pods plugin, gfd, mps;
  };

  // All must outlive the scene. `fleet` plays `nodes`.
  Scene(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, Fleet* fleet, StageOptions options,
        std::vector<NodeSpec> nodes);
  virtual ~Scene() = default;
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  // Called while waiting; an invariant that broke ends the story.
  std::function<std::string()> invariant = [] { return std::string(); };
  // What went wrong first, or empty.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // Fails the scene where `holds` is false; `wrong` says what is the case instead.
  void require(bool holds, const std::string& wrong);
  // The same with a check's own words.
  void require(const std::string& problem) { require(problem.empty(), problem); }

  // --- The beginning and the end.
  // Watches, definitions, namespaces, registered nodes.
  boost::asio::awaitable<void> open();
  // Ends the watches. leave() returns at once; close() when they have ended, which the scene must not outlive.
  void leave() { view_.stop(); }
  boost::asio::awaitable<void> close() { return view_.close(); }
  // Removes everything that the story made, and stops the fleet; the operator must have ended. For servers that see
  // more than one story. Says what is left, or nothing.
  boost::asio::awaitable<std::string> strike();
  // ConfigMap and ClusterPolicy; `default_key` may be empty (no sharing by default). Waits until every node shows it.
  boost::asio::awaitable<void> install_gpu_operator(std::map<std::string, std::string> profiles,
                                                    std::string default_key);
  // The two halves of it, for stories in which people do one of them later.
  boost::asio::awaitable<void> put_profiles(std::string config_map, std::map<std::string, std::string> profiles);
  // `config_map` may be empty: the plugin is not configured.
  boost::asio::awaitable<void> put_cluster_policy(std::string config_map, std::string default_key);
  // kubectl patch clusterpolicy: name and default of spec.devicePlugin.config.
  boost::asio::awaitable<void> point_cluster_policy(std::string config_map, std::string default_key);
  // Starts the operator and waits until it counts every node as up to date. Nothing may be disturbed by it.
  boost::asio::awaitable<void> install(OperatorSettings more = {});
  // `more` stands in place of what the scene would set.
  boost::asio::awaitable<void> start(OperatorSettings more = {});
  // How most stories begin: install_gpu_operator with `text` under the default key "any", then install.
  boost::asio::awaitable<void> begin(std::string text, OperatorSettings more = {});
  boost::asio::awaitable<void> kill();

  // --- What people do.
  boost::asio::awaitable<void> put(k8s::Gvr gvr, k8s::ObjectKey key, nlohmann::json object);
  boost::asio::awaitable<void> change(k8s::Gvr gvr, k8s::ObjectKey key, nlohmann::json merge);
  // kubectl replace: nothing of what stood there stays.
  boost::asio::awaitable<void> replace(k8s::Gvr gvr, k8s::ObjectKey key, nlohmann::json object);
  boost::asio::awaitable<void> remove(k8s::Gvr gvr, k8s::ObjectKey key);
  boost::asio::awaitable<void> edit(std::string key, std::string text);
  boost::asio::awaitable<void> label(std::string node, std::string key, std::optional<std::string> value);
  // kubectl patch clusterpolicy: spec.devicePlugin.config.default.
  boost::asio::awaitable<void> new_default(std::string key);
  // Serves a cluster-scoped kind with any content, where the server does not have it. `field`: a path by which objects
  // can be selected (".spec.driver"), or empty.
  boost::asio::awaitable<void> serve(k8s::Gvr gvr, std::string kind, std::string field);
  // A SharingPolicy's spec, or a part of one that exists.
  boost::asio::awaitable<void> policy(std::string name, nlohmann::json spec);
  // A part of spec.rollout of a policy.
  boost::asio::awaitable<void> tune(std::string name, nlohmann::json rollout);
  // A pod in namespace `default` that uses one replica on that node until it is removed or evicted; waits until it
  // runs.
  boost::asio::awaitable<void> use_gpu(std::string node, std::string pod, std::string ns = "default");
  // A PodDisruptionBudget over the pods of an app, in namespace `default`.
  boost::asio::awaitable<void> protect(std::string app, int min_available);
  [[nodiscard]] Fleet& fleet() { return *fleet_; }
  // The driver was exchanged under running programs, which go on; those that start from now on find no GPU.
  void break_drivers(bool broken);

  // --- Waits. Bounds and durations are the fleet's: scaled. Without a check, stays() sees to the invariant alone.
  // Where time is real, it looks for some seconds at most. A bound of zero is for what must be there by now: each kind
  // has a watch of its own, and where time is real, one can bring late what was written before the news of another one.
  boost::asio::awaitable<void> until(std::string what, k8s::Duration bound, Check check);
  boost::asio::awaitable<void> stays(std::string what, k8s::Duration duration, Check check = {});
  // Every node shows what its effective profile asks for.
  boost::asio::awaitable<void> until_fleet_shows(std::string what, k8s::Duration bound);
  // settled_problem() is empty.
  boost::asio::awaitable<void> until_settled(k8s::Duration bound);

  // --- Checks: empty, or what is missing.
  // The rollout of `policy` to `text`; "" for no such rollout.
  [[nodiscard]] std::string phase_of(const std::string& policy, const std::string& text) const;
  [[nodiscard]] nlohmann::json rollout_of(const std::string& policy, const std::string& text) const;
  [[nodiscard]] Check phase_is(std::string policy, std::string text, std::string phase) const;
  // Some rollout of `policy` is in that phase.
  [[nodiscard]] Check some_rollout_is(std::string policy, std::string phase) const;
  // The node has these labels, and these amounts both as capacity and as allocatable.
  [[nodiscard]] Check shows(std::string node, std::map<std::string, std::string> labels,
                            std::map<std::string, std::int64_t> amounts) const;
  // These nodes serve `replicas` of each GPU as nvidia.com/gpu, and their labels say so.
  [[nodiscard]] Check replicas_are(std::set<std::string> nodes, int replicas) const;
  // status.conditions of a policy has this, with `mention` in its message.
  [[nodiscard]] Check condition_is(std::string policy, std::string type, std::string status, std::string reason,
                                   std::string mention) const;
  // status.blocked of a policy has this, with `mention` in it.
  [[nodiscard]] Check blocked_by(std::string policy, std::string reason, std::string mention) const;
  // An Event with this reason since the scene began mentions it.
  [[nodiscard]] Check event_says(std::string reason, std::string mention) const;
  [[nodiscard]] Check pod_is_gone(std::string pod) const;
  [[nodiscard]] std::string state_of(const std::string& node) const;
  [[nodiscard]] nlohmann::json status_of(const std::string& policy) const;
  // Every node of every policy is up to date, no rollout and no update of a DaemonSet is under way.
  [[nodiscard]] std::string settled_problem() const;
  // Pods so far, and: nobody but `nodes` got new ones since then, and these got exactly one plugin pod each (and one
  // MPS pod, if `mps`).
  [[nodiscard]] Seen seen() const;
  [[nodiscard]] std::string restarts_problem(const Seen& before, const std::set<std::string>& nodes, bool mps) const;
  // Empty where no node got a new pod since `before`.
  [[nodiscard]] std::string disturbed(const Seen& before) const { return restarts_problem(before, {}, false); }
  [[nodiscard]] Check undisturbed(Seen before) const;
  // Plugin pods that a node got since `before`.
  [[nodiscard]] std::size_t restarts_of(const std::string& node, const Seen& before) const;
  // How many nodes got a new plugin pod since `before`.
  [[nodiscard]] std::size_t plugins_restarted(const Seen& before) const;
  [[nodiscard]] std::string beyond(std::size_t budget) const;
  [[nodiscard]] std::string node_differs(const std::string& node) const;

  // --- The journal, from an index on (journal().size() marks a place).
  [[nodiscard]] const std::vector<Moment>& journal() const { return journal_; }
  [[nodiscard]] std::size_t happened(Happening what, std::size_t from) const;
  [[nodiscard]] Check finished(std::size_t from, std::size_t count) const;
  [[nodiscard]] std::vector<std::string> nodes_that(Happening what, std::size_t from) const;
  // Those that set out for the revision of `text` in a rollout of `policy`, as far as there still is a record of it.
  [[nodiscard]] std::set<std::string> nodes_started_for(const std::string& policy, const std::string& text,
                                                        std::size_t from) const;
  // Since then each of `nodes` had its turn once, and of each product one node went first: the others waited until it
  // was done, and for `soak` (of the fleet's time). Where time is real, a watch may come a second late.
  [[nodiscard]] std::string canary_problem(std::size_t from, const std::set<std::string>& nodes,
                                           k8s::Duration soak) const;
  void reset_peak() { view_.reset_peak(); }

  // Nodes whose plugin reads that key of the ConfigMap.
  [[nodiscard]] std::set<std::string> nodes_on(const std::string& key) const;
  [[nodiscard]] std::set<std::string> all_nodes() const;
  [[nodiscard]] k8s::Duration scaled(k8s::Duration real) const;
  [[nodiscard]] const std::vector<NodeSpec>& nodes() const { return nodes_; }
  // Nodes have come or gone: these are expected to show their profiles from now on.
  void expect_nodes(std::vector<NodeSpec> nodes) { nodes_ = std::move(nodes); }
  [[nodiscard]] const PluginInstall& gpu_operator() const { return install_; }
  [[nodiscard]] k8s::Clock& clock() { return *clock_; }
  [[nodiscard]] ClusterView& cluster() { return view_; }
  [[nodiscard]] const ClusterView& view() const { return view_; }
  // How long a node may take that is going to fail: long enough for one that is not, also on a slow machine.
  [[nodiscard]] std::string short_verify_timeout() const;
  // A Go duration of the fleet's time.
  [[nodiscard]] std::string duration(k8s::Duration real) const;
  // Virtual time has no slack: there, durations mean what they say.
  [[nodiscard]] bool exact() const { return options_.slack == k8s::Duration::zero(); }
  // How many writes the operator has made so far; where nobody counts them, something that changes with what they do.
  [[nodiscard]] std::string operator_traces() const;
  std::function<std::uint64_t()> operator_writes;
  // Nodes that are not expected to show their profile, nor to be counted as up to date.
  std::set<std::string> excused;
  void tell(const std::string& line) const { say("    " + line); }

 protected:
  // The two halves of open(). Definitions and namespaces: what is there before anything of ours or NVIDIA's is
  // installed.
  boost::asio::awaitable<void> prepare_cluster();
  boost::asio::awaitable<void> until_registered();
  [[nodiscard]] std::string effective_key(const NodeSpec& node) const;
  [[nodiscard]] std::string node_problem(const NodeSpec& node) const;
  void say(const std::string& line) const { options_.progress(line); }

  k8s::ApiClient* client_;
  k8s::Clock* clock_;
  OperatorControl* operator_;
  StageOptions options_;
  ClusterView view_;
  std::vector<NodeSpec> nodes_;
  PluginInstall install_;
  // The administrator's memory of what was asked for.
  std::map<std::string, std::string> profiles_;     // Key -> document.
  std::map<std::string, std::string> node_labels_;  // Node -> key, where labelled.
  std::string default_key_ = "any";

 private:
  void note(const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after);
  template <class T>
  void keep(const k8s::Result<T>& done) {
    if (!done) require(false, done.error().message);
  }
  // Creates the object, or merges it into the one that is there.
  boost::asio::awaitable<void> write(k8s::Gvr gvr, k8s::ObjectKey key, nlohmann::json object);
  // Leaves what the operator is started with in a ConfigMap, where the judge of the audit log finds its limits
  // (tests/conformance/invariants).
  boost::asio::awaitable<void> declare_settings(std::map<std::string, std::string> settings);
  // Says which nodes have arrived since the last call.
  [[nodiscard]] std::string fleet_problem();
  [[nodiscard]] std::string unfinished_update() const;
  // At once, whatever its grace; complaints are said only.
  boost::asio::awaitable<void> erase(k8s::Gvr gvr, k8s::ObjectKey key);
  boost::asio::awaitable<void> erase_all(k8s::Gvr gvr, const Mirror* mirror, std::string ns);

  Fleet* fleet_;
  std::string failure_;
  std::vector<Moment> journal_;
  k8s::WallTime begun_;
  std::vector<std::pair<k8s::Gvr, k8s::ObjectKey>> made_;  // Beside what strike() knows anyway.
  std::set<std::string> told_;                             // Nodes whose arrival was reported in this wait.
  bool running_ = false;
};

// The documents of the stories.
[[nodiscard]] std::string mps_profile(int replicas, bool rename = false, std::optional<bool> fail_above_one = {});
[[nodiscard]] std::string time_slicing_profile(int replicas);
// "1.5 s"
[[nodiscard]] std::string seconds(k8s::Duration duration);

}  // namespace gso::sim
