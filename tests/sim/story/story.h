// The story of the product, once, for every cluster: a running fleet, the operator is installed and disturbs nothing,
// mps-config is edited and the fleet converges, a broken edit is refused, one node goes its own way, the ClusterPolicy
// is patched, and the operator is killed in the middle. Written against an API server, a clock and a way to start and
// kill the operator; so it runs in process on simulated time (a test), over HTTP (the demo) and on a real API server
// (conformance).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/client.h"
#include "k8sclient/clock.h"
#include "k8sclient/error.h"
#include "tests/sim/story/cluster_view.h"
#include "tests/sim/story/narrator.h"

namespace gso::sim {

// Starts and ends the operator, however it runs here.
class OperatorControl {
 public:
  virtual ~OperatorControl() = default;
  virtual boost::asio::awaitable<k8s::Result<void>> start() = 0;
  // As kill -9: no goodbye, the lease is not released.
  virtual boost::asio::awaitable<void> kill() = 0;
  [[nodiscard]] virtual bool running() const = 0;
  // What a person would look at when a step fails, e.g. the end of the log.
  [[nodiscard]] virtual std::string evidence() const { return {}; }
};

struct StoryNode {
  std::string name;
  std::int64_t gpus = 0;   // What the plugin registers without sharing (MIG devices for the MIG node).
  std::string product;     // GFD's product without a suffix.
  bool mig = false;        // Governed by its own label from the start.
  bool unlabelled = false; // No feature discovery there: nobody owns its sharing labels.
};

struct StorySettings {
  std::string ns = "gpu-operator";
  std::string operator_ns = "gpu-sharing-operator";
  std::string plugin_version = "v0.20.0";
  std::vector<StoryNode> nodes;
  // Manifests (JSON) that must be there before anything else: CRDs. Applied by server-side apply.
  std::vector<std::string> crds;
  // The longest wait of a step before it counts as failed, and how long "nothing happens" is watched.
  k8s::Duration patience = std::chrono::seconds(60);
  k8s::Duration quiet = std::chrono::seconds(2);
  // Of the policies' rollouts: the story shortens them where the fleet's time is scaled.
  std::string soak = "1s";
  std::string verify_timeout = "5m";
  // True where the chart has made the default policy and the namespaces already.
  bool installed_by_chart = false;
};

// One fleet state that every governed node shall show.
struct Shown {
  std::int64_t replicas = 1;
  std::string strategy = "mps";
  bool renamed = false;
  friend bool operator==(const Shown&, const Shown&) = default;
};

class Story {
 public:
  Story(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* control, Narrator* narrator,
        StorySettings settings);

  // Runs all steps, then prints the table of nodes. True when every check held. Stops at the first step that fails.
  boost::asio::awaitable<bool> run(boost::asio::any_io_executor executor);

 private:
  // Steps; each returns false when one of its checks failed.
  boost::asio::awaitable<bool> prepare();
  boost::asio::awaitable<bool> install();
  boost::asio::awaitable<bool> mig_is_refused();
  boost::asio::awaitable<bool> edit_replicas();
  boost::asio::awaitable<bool> edit_without_label();
  boost::asio::awaitable<bool> rename();
  boost::asio::awaitable<bool> broken_edit();
  boost::asio::awaitable<bool> label_one_node();
  boost::asio::awaitable<bool> mps_by_label();
  boost::asio::awaitable<bool> patch_cluster_policy();
  boost::asio::awaitable<bool> kill_in_the_middle();
  void print_nodes();

  // Waits until `holds`, then checks it; `seen` says what was seen instead.
  boost::asio::awaitable<bool> expect(std::string what, std::function<bool()> holds,
                                      std::function<std::string()> seen);
  boost::asio::awaitable<bool> expect_shown(std::string what, Shown shown);
  // Watches for `settings.quiet` that nothing is restarted.
  boost::asio::awaitable<bool> expect_no_restart(std::string what, PodHistory mark);
  bool check(bool held, std::string_view what, std::string_view detail = "");

  boost::asio::awaitable<bool> apply(k8s::Gvr gvr, k8s::ObjectKey key, std::string json);
  boost::asio::awaitable<bool> edit_config(std::string key, std::string profile);
  boost::asio::awaitable<bool> patch(k8s::Gvr gvr, k8s::ObjectKey key, std::string merge_patch);
  // Waits for an Event with this reason whose note holds every one of `words`.
  boost::asio::awaitable<bool> expect_event(std::string what, std::string reason, std::vector<std::string> words);
  boost::asio::awaitable<std::string> events(std::string reason);

  [[nodiscard]] bool shows(const StoryNode& node, const Shown& shown) const;
  [[nodiscard]] bool settled(const StoryNode& node) const;  // No state of ours left on it, schedulable.
  [[nodiscard]] std::string describe(const StoryNode& node) const;
  [[nodiscard]] std::string describe_missing(const Shown& shown) const;
  [[nodiscard]] std::vector<const StoryNode*> governed() const;  // Those that follow the default key.
  [[nodiscard]] const StoryNode* mig_node() const;
  [[nodiscard]] std::string policy_status(const std::string& policy) const;
  [[nodiscard]] std::size_t budget() const;
  [[nodiscard]] bool restarted_once(const PodHistory& mark, const std::vector<std::string>& components,
                                    std::string& why) const;
  void progress(const Node& node);

  k8s::ApiClient* client_;
  k8s::Clock* clock_;
  OperatorControl* control_;
  Narrator* narrator_;
  StorySettings settings_;
  ClusterView view_;
  std::string own_way_;  // The node that step 5 labelled by hand.
  std::map<std::string, std::string> last_progress_;
};

// The documents that the story edits mps-config with.
[[nodiscard]] std::string mps_profile(std::int64_t replicas, bool rename = false,
                                      std::optional<bool> fail_requests = std::nullopt);
[[nodiscard]] std::string time_slicing_profile(std::int64_t replicas, bool mig_single = false);

}  // namespace gso::sim
