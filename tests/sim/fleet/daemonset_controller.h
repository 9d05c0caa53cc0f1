// The DaemonSet controller, for API servers that have none beside them: revisions, one pod on each eligible node (bound
// directly), rolling updates, status. Source of the rules: Kubernetes' pkg/controller/daemon.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/fleet/site.h"

namespace gso::sim {

// Whether a DaemonSet's template selects a node: nodeSelector, required node affinity, taints.
[[nodiscard]] bool daemonset_selects(const nlohmann::json& daemonset, const nlohmann::json& node);
// Whether a pod of it that runs there stays: a NoSchedule taint keeps only new ones away.
[[nodiscard]] bool daemonset_keeps(const nlohmann::json& daemonset, const nlohmann::json& node);
// The controller-revision-hash of its template.
[[nodiscard]] std::string template_hash(const nlohmann::json& daemonset);

class DaemonSetController : public Actor {
 public:
  using Actor::Actor;
  // To be called for every change of these mirrors.
  void on_daemonset(const k8s::ObjectKey& key) { dirty(key); }
  void on_node(const JsonPtr& before, const JsonPtr& after);
  void on_pod(const JsonPtr& before, const JsonPtr& after);

 private:
  using PodsByNode = std::map<std::string, std::vector<JsonPtr>>;

  void dirty(const k8s::ObjectKey& key);
  void sync(const k8s::ObjectKey& key);
  void collect_garbage(const std::string& gone_uid);
  void ensure_revision(const nlohmann::json& daemonset, const std::string& hash);
  [[nodiscard]] PodsByNode pods_of(const nlohmann::json& daemonset) const;
  void place(const nlohmann::json& daemonset, const std::string& hash, const PodsByNode& pods, std::int64_t* desired);
  void roll(const nlohmann::json& daemonset, const std::string& hash, const PodsByNode& pods, std::int64_t desired);
  void publish_status(const nlohmann::json& daemonset, const std::string& hash, const PodsByNode& pods,
                      std::int64_t desired);
  void create_pod(const nlohmann::json& daemonset, const std::string& hash, const std::string& node);
  void delete_pod(const nlohmann::json& pod);

  std::set<k8s::ObjectKey> dirty_;
  // What was sent and has not shown in the mirror yet: creations by DaemonSet uid and node, deletions by pod uid.
  std::set<std::string> creating_, deleting_;
  std::set<std::string> revising_;
  std::uint64_t names_ = 0;
};

}  // namespace gso::sim
