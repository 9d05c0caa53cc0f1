// The invariants about people, strangers and views, judged on every write of the API server. S10: a stop holds. S11:
// nothing counts as loaded that the pods have not seen. S13: a stranger's objects are left alone. S14: no disruption
// starts from a view that is not current, and nothing is overwritten that was not read. The first violation is kept.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/api_server.h"

namespace gso::sim {

// What the audit log does not show.
struct BoundaryEvidence {
  // The config text that the device plugin serving on the node has read; nullopt where nobody knows.
  std::function<std::optional<std::string>(const std::string& node)> served_text = {};
  // How long ago a watch of the resource brought something to the operator of that user agent; nullopt where nobody
  // knows.
  std::function<std::optional<k8s::Duration>(const std::string& agent, const std::string& resource)> silence = {};
  std::set<std::string> strangers = {};  // Their namespaces.
  // How long a person's stop may take to reach the operator: as old as a view may be that counts as current.
  k8s::Duration reaction = std::chrono::seconds(160);
};

class BoundaryRules {
 public:
  // Judges this user's writes; everybody else's who writes policies, rollouts, holds and pauses is a person.
  BoundaryRules(std::string user, BoundaryEvidence evidence) : user_(std::move(user)), evidence_(std::move(evidence)) {}
  BoundaryRules(const BoundaryRules&) = delete;
  BoundaryRules& operator=(const BoundaryRules&) = delete;

  // Once. The server must not outlive this object.
  void attach(ApiServer* server);
  // A person's stops take longer from now on: their events were lost.
  void set_reaction(k8s::Duration reaction) { evidence_.reaction = reaction; }

  // "S10: …", "S11: …", or empty.
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  void on_write(const AuditEntry& entry);
  void note_stop(const AuditEntry& entry);
  void note_text(const AuditEntry& entry);
  void judge_begin(const AuditEntry& entry, const std::string& target);
  void judge_proof(const AuditEntry& entry);
  void judge_versions(const AuditEntry& entry);
  void violated(const std::string& what);

  ApiServer* server_ = nullptr;
  std::string user_;
  BoundaryEvidence evidence_;
  std::string violation_;
  std::map<std::string, k8s::WallTime> stops_;          // "SharingPolicy default", since when.
  std::map<std::string, std::set<std::string>> texts_;  // Of each revision.
};

}  // namespace gso::sim
