// NodeAgent: kubelet of one GPU node. Owns the Node object (labels at registration, status, heartbeats) and runs the
// pods that are bound to it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/sim/fleet/gpu.h"
#include "tests/sim/fleet/machine.h"
#include "tests/sim/fleet/outbox.h"
#include "tests/sim/fleet/pod_runner.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

// One node of a topology.
struct NodeSpec {
  std::string name;
  std::vector<Gpu> gpus;
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> annotations = {};
  bool nfd = true;  // NFD labels it, so the GPU Operator finds it and deploys its DaemonSets there.
};

class NodeAgent {
 public:
  // Receives the labels that feature discovery found; nothing when it takes them back.
  using FeatureSink = std::function<void(std::optional<std::map<std::string, std::string>>)>;

  // `acts_as_controller`: no node lifecycle controller runs beside us, so a lost node's Ready is set to Unknown here.
  NodeAgent(Site* site, NodeSpec spec, bool acts_as_controller, FeatureSink features);
  ~NodeAgent();

  // Registers the node (one that exists is taken over) and starts publishing.
  void begin();
  // The node's writes, until stop().
  boost::asio::awaitable<void> run() { return outbox_.run(); }
  void stop() { outbox_.stop(); }

  void on_node(const JsonPtr& after);
  void on_pod(const JsonPtr& before, const JsonPtr& after);

  // Faults.
  void lose();  // The network is gone: nothing is read or published; processes go on.
  // It is back. Also without lose(): what the API server holds is compared with what runs, as kubelet does regularly.
  void recover();
  [[nodiscard]] bool lost() const { return lost_; }
  // The container runtime is down (or up again): kubelet says NotReady, and pods go on.
  void set_runtime(bool up);
  // For good, unless recover() is called.
  void power_off();
  // Power off, and on again after `downtime` (scaled).
  void reboot(k8s::Duration downtime);

  [[nodiscard]] const NodeSpec& spec() const { return spec_; }
  [[nodiscard]] Machine& machine() { return machine_; }
  // Slices that pods here have been given.
  [[nodiscard]] SliceCounts slices_in_use() const { return used_slices(); }
  // The pod of a DaemonSet here, or any pod by name; nullptr when there is none.
  [[nodiscard]] PodRunner* pod_of(std::string_view daemonset_or_pod);
  // Uids of all pods of a DaemonSet that this node has ever run.
  [[nodiscard]] const std::vector<std::string>& uids_seen(const std::string& daemonset) { return seen_[daemonset]; }

 private:
  struct Entry {
    std::unique_ptr<PodRunner> runner;
    std::string published;  // The status as written last.
    bool writing = false;
    bool ended = false;                                        // Deleted, and every process has ended.
    bool removing = false;                                     // The object's removal has been handed over.
    bool object_gone = false;                                  // Somebody removed the object; nothing left to delete.
    std::vector<std::pair<std::size_t, std::int64_t>> slices;  // Of Nebuly's fork: GPU and size of each it was given.
    std::shared_ptr<int> life = std::make_shared<int>();
  };

  void adopt_pod(const nlohmann::json& pod);
  [[nodiscard]] bool is_lost_before_it_stops(const PodRunner& pod);
  void lose_object(const std::string& uid);
  void admit(Entry& entry);
  // node_slices.cc
  void allocate_slices(Entry& entry);
  [[nodiscard]] SliceCounts used_slices() const;
  void break_clients_without_a_slice();
  void break_slice_clients();
  void report_slices();
  void write_slice_report(const std::map<std::string, std::string>& report);
  void publish_pod(const std::string& uid);
  void end_pod(const std::string& uid);
  void remove_pod(const std::string& uid);
  void forget_pod(const std::string& uid);
  void schedule_node_status(bool at_once);
  void publish_node();
  void heartbeat();
  [[nodiscard]] nlohmann::json node_status() const;
  [[nodiscard]] std::string label(std::string_view key) const;

  Site* site_;
  NodeSpec spec_;
  bool acts_as_controller_;
  FeatureSink features_;
  Machine machine_;
  Outbox outbox_;
  JsonPtr node_;
  std::map<std::string, Entry> pods_;  // By uid.
  std::map<std::string, std::vector<std::string>> seen_;
  std::string published_;
  bool publishing_ = false, publish_scheduled_ = false;
  bool ready_ = true;
  bool lost_ = false, off_ = false;
  k8s::WallTime ready_changed_{};
  std::shared_ptr<int> heartbeats_;  // Of the current series; a new one ends the old.
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace gso::sim
