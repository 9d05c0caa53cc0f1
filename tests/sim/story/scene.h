// Scene: a stage for short stories, with its own fleet at hand (to break machines) and a journal of what happened to
// each node. Acts and waits follow each other like sentences: after the first that fails, all others do nothing, and
// failure() says what it was.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/api/client.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/story/stage.h"

namespace gso::sim {

// What can be seen to happen to a node.
enum class Happening { started, finished, failed, cordoned, uncordoned };

struct Moment {
  k8s::MonoTime at;
  std::string node;
  Happening what = Happening::started;
  std::string to;  // Where it started: the revision that its change goes to.
};

class Scene : public Stage {
 public:
  // All must outlive the scene. `fleet` plays `nodes`.
  Scene(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* op, Fleet* fleet, StageOptions options,
        std::vector<NodeSpec> nodes);

  // What went wrong first, or empty.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // Fails the scene where `holds` is false; `wrong` says what is the case instead.
  void require(bool holds, const std::string& wrong);
  // The same with a check's own words.
  void require(const std::string& problem) { require(problem.empty(), problem); }

  // --- The beginning and the end.
  // Watches, definitions, namespaces, registered nodes. The watches end with close(), which the scene must not outlive.
  boost::asio::awaitable<void> open();
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
  boost::asio::awaitable<void> install(OperatorSettings more);
  boost::asio::awaitable<void> start(OperatorSettings more);
  // How most stories begin: install_gpu_operator with `text` under the default key "any", then install.
  boost::asio::awaitable<void> begin(std::string text, OperatorSettings more);
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
  [[nodiscard]] Fleet& fleet() { return *fleet_; }

  // --- Waits. Bounds and durations are the fleet's: scaled. Where time is real, stays() looks for some seconds at
  // most. A bound of zero is for what must be there by now: each kind has a watch of its own, and where time is real,
  // one can bring late what was written before the news of another one.
  boost::asio::awaitable<void> until(std::string what, k8s::Duration bound, Check check);
  boost::asio::awaitable<void> stays(std::string what, k8s::Duration duration, Check check);
  boost::asio::awaitable<void> until_fleet_shows(std::string what, k8s::Duration bound);
  // Every node of every policy is up to date and no rollout is under way.
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
  // Empty where no node got a new pod since `before`.
  [[nodiscard]] std::string disturbed(const Seen& before) const { return restarts_problem(before, {}, false); }
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
  void reset_peak() { view_.reset_peak(); }

  using Stage::all_nodes;
  using Stage::nodes_on;
  using Stage::restarts_problem;
  using Stage::scaled;
  using Stage::seen;
  using Stage::settled_problem;
  [[nodiscard]] const std::vector<NodeSpec>& nodes() const { return nodes_; }
  // Nodes have come or gone: these are expected to show their profiles from now on.
  void expect_nodes(std::vector<NodeSpec> nodes) { nodes_ = std::move(nodes); }
  [[nodiscard]] const PluginInstall& gpu_operator() const { return install_; }
  [[nodiscard]] k8s::Clock& clock() { return *clock_; }
  [[nodiscard]] ClusterView& cluster() { return view_; }
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

 private:
  void note(const k8s::ObjectKey& key, const JsonPtr& before, const JsonPtr& after);
  void keep(const Held& held);
  // At once, whatever its grace; complaints are said only.
  boost::asio::awaitable<void> erase(k8s::Gvr gvr, k8s::ObjectKey key);
  boost::asio::awaitable<void> erase_all(k8s::Gvr gvr, const Mirror* mirror, std::string ns);
  [[nodiscard]] std::string unsettled() const;

  Fleet* fleet_;
  std::string failure_;
  std::vector<Moment> journal_;
  k8s::WallTime begun_;
  std::vector<std::pair<k8s::Gvr, k8s::ObjectKey>> made_;  // Beside what strike() knows anyway.
};

}  // namespace gso::sim
