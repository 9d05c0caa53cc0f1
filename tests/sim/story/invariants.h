// The safety invariants of the design, checked on the API server's audit log while the operator works. Attach one to a
// simulated server; the first violation is kept.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "k8sclient/value/object.h"
#include "tests/sim/apiserver/api_server.h"

namespace gso::sim {

// S1 for some of the nodes: those of one policy, or of one product and profile.
struct NodeBudget {
  std::string name;
  std::set<std::string> nodes;
  std::size_t most = 0;  // Of them out of service at once.
};

struct InvariantOptions {
  std::string operator_user = {};   // Whose writes are judged.
  std::size_t budget = 3;           // S1: nodes out of service at once, over everything.
  bool evictions = false;           // Some policy says workloads: Evict.
  bool daemonset_restarts = false;  // Some policy says mechanism: DaemonSetRestart.
  std::vector<NodeBudget> groups = {};
};

class Invariants {
 public:
  // `server` must outlive this object.
  Invariants(ApiServer* server, InvariantOptions options);

  // The first violation ("S2: …"), or empty.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  // The server has lost writes. For so long nobody can know of it, and what was on its way is judged by a state that
  // nobody has seen: nothing counts as a violation.
  void excuse_for(k8s::Duration length);
  // S6: the operator's writes so far, Leases not counted.
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  // What it wrote last, for messages.
  [[nodiscard]] const std::string& last_write() const { return last_write_; }
  // PATCHes per node so far, to see that an unchanged node gets none and a changed one at most three.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& node_patches() const { return node_patches_; }

 private:
  void on_write(const AuditEntry& entry);
  void note_serving(const AuditEntry& entry);
  void judge_pod_deletion(const AuditEntry& entry);
  void judge_eviction(const AuditEntry& entry);
  void judge_repeated_eviction(const AuditEntry& entry);
  void judge_node_patch(const AuditEntry& entry);
  void judge_daemonset_patch(const AuditEntry& entry);
  void judge_budget(const std::string& node);
  void judge_budget(const NodeBudget& budget, const std::set<std::string>& out);
  void violated(const std::string& what);
  [[nodiscard]] std::set<std::string> out_of_service() const;

  ApiServer* server_;
  InvariantOptions options_;
  k8s::WallTime excused_until_{};
  std::string violation_, last_write_;
  std::uint64_t writes_ = 0;
  std::map<std::string, std::uint64_t> node_patches_;
  std::set<std::string> cordoned_by_operator_;
  std::set<std::string> evicted_;  // Uids of pods.
  std::set<std::string> served_;   // Uids of nodes that have had GPUs to give: the others are still coming up.
};

}  // namespace gso::sim
