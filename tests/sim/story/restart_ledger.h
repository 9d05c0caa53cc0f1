// What the invariants (invariants.h) do not remember: who was restarted for what, and who held the lease. Judged on
// every write of the API server; the first violation is kept.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "tests/sim/apiserver/api_server.h"

namespace gso::sim {

class RestartLedger {
 public:
  // Judges this user's writes; where there are several operators, they are distinguished by their user agents.
  explicit RestartLedger(std::string user) : user_(std::move(user)) {}
  RestartLedger(const RestartLedger&) = delete;
  RestartLedger& operator=(const RestartLedger&) = delete;

  // Once. The server must not outlive this object.
  void attach(ApiServer* server);

  // "S4: …": a write without the lease, or after it ran out. "Again: …": a pod was deleted that had come for another
  // one of its DaemonSet on the same way of its node to a revision. That is right where the node has failed in between,
  // or where the other one was deleted before the text of the ConfigMap changed (and changed back), and this pod is not
  // so much newer than the text that no clocks of two API servers could tell it otherwise: then the node's pods may be
  // replaced once more. Or empty.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  // The server has just lost writes: a node whose begin is lost with them is restarted once more, whenever the operator
  // can. For so long nothing counts as a violation.
  void excuse_for(k8s::Duration length);
  // Pods that were deleted on a node's way to a revision.
  [[nodiscard]] std::size_t deletions() const { return deletions_; }
  // Writes that changed nothing, the last one named: somebody did again what he had not seen that he had done.
  [[nodiscard]] std::size_t idle_writes() const { return idle_writes_; }
  [[nodiscard]] const std::string& idle_write() const { return idle_write_; }

 private:
  void on_write(const AuditEntry& entry);
  void note_deletion(const AuditEntry& entry);
  void note_content(const AuditEntry& entry);
  void note_failure(const AuditEntry& entry);
  void violated(const std::string& what);

  ApiServer* server_ = nullptr;
  std::string user_;
  std::string violation_;
  std::optional<k8s::WallTime> lost_at_;
  k8s::WallTime excused_until_{};
  std::size_t deletions_ = 0, idle_writes_ = 0;
  std::string idle_write_;
  struct Way {
    std::set<std::string> uids;
    k8s::WallTime last{};
  };
  std::map<std::tuple<std::string, std::string, std::string>, Way> deleted_;  // Of a node, revision, DaemonSet.
  // Not by what the objects say of themselves, which is whole seconds.
  std::map<std::string, k8s::WallTime> created_;  // Pods, by uid.
  k8s::WallTime content_changed_{};
  std::string holder_;  // User agent of the last renewal.
  k8s::WallTime renewed_{};
  k8s::Duration lease_{0};
};

}  // namespace gso::sim
