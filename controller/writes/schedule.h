// A plan put into the order in which it is executed. Pure: no I/O, no clock.
//
//   records   creations and ConfigMap writes: they precede every disruption (a rollout is written before it acts)
//   subjects  one chain per node (or per object where no node is concerned), each in the plan's order; first that of
//             all deletions of KAI's reservations
//   statuses  status patches and deletions of SharingPolicies and SharingRollouts: last
//
// All PatchNode parts of one node become one merge patch, at the place of the first: one writer per Node.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/api/writer.h"
#include "k8sclient/value/object.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/plan.h"

namespace gso {

struct Chain {
  // "node/<name>", "<Kind>/<ns>/<name>" or kReservations: chains of one subject never run side by side.
  std::string subject;
  std::string node;  // Empty when no node is concerned.
  std::vector<PlannedAction> steps;
  [[nodiscard]] bool disruptive() const;
  // Its first disruptive step is refused by the server unless the Node is as the plan saw it.
  [[nodiscard]] bool is_preconditioned() const;
};

// The subject of all deletions of KAI's reservations: one last look at a time judges them.
inline constexpr std::string_view kReservations = "reservations";
// Of a reservation pod of KAI: sent only after a last look, and once.
[[nodiscard]] bool is_reservation_deletion(const PlannedAction& planned);

struct Schedule {
  std::vector<Chain> records;
  std::vector<Chain> subjects;
  std::vector<Chain> statuses;
  std::vector<RecordEvent> events;
  // Two reconcilers want different values for one key of a node: a bug in them. The later one wins.
  std::vector<Finding> findings;
};

[[nodiscard]] Schedule arrange(const std::vector<PlannedAction>& actions);
// The actions in the same order, one by one: `plan` prints what the operator would do in the order in which it would.
// Events have no order of their own: they stay between the actions of their subjects.
[[nodiscard]] std::vector<PlannedAction> in_execution_order(std::vector<PlannedAction> actions);

// What an action of one type is for the API server, and for the order of a plan.
struct ActionTraits {
  k8s::WriteKind kind = k8s::WriteKind::object;
  std::string_view verb = "patch";  // Of RBAC.
  std::string_view subresource{};   // "/status"
  bool deletes = false;             // The object, which is gone afterwards.
  // A plan's disruptions can rest on it: creations, and writes of the operator's own data. Keys in the ConfigMap of
  // somebody else are none: what needs them is planned once they are there.
  bool is_record = false;
  // Of an object that concerns the whole fleet, and is small: its answer is the whole object, so that the next plan
  // need not wait for its watch.
  bool is_known_from_answer = false;
};
[[nodiscard]] const ActionTraits& traits_of(const Action& action);

// --- UnwrittenRecords: the records of a plan that are not written, because they were refused, must wait, or are not
// answered yet; and which disruptions rest on them.
//  - On a SharingPolicy or SharingRollout rest the nodes whose change belongs to that policy.
//  - On a ConfigMap rests every disruption: the record has the stops and canaries of all policies, and the keys of
//  inline
//    profiles are read by whatever pod starts.
//  - What belongs to no policy that can be read (a reservation, the restart of a DaemonSet, the standalone MPS daemon
//  of
//    a node) rests on each record.

class UnwrittenRecords {
 public:
  // Ignored unless ActionTraits::is_record.
  void add(const PlannedAction& record);
  // The chain's disruptive steps must not be sent. `node`: as it was planned from, with the change that it is in; null:
  // the chain concerns none.
  [[nodiscard]] bool hold(const Chain& chain, const Node* node) const;

 private:
  bool all_ = false;
  std::set<std::string, std::less<>> policies_;
};

// --- What an action is for the API server.

// The RBAC verb, and its resource ("nodes", "pods/eviction", "sharingrollouts/status").
struct Verb {
  std::string verb;
  std::string resource;
};
[[nodiscard]] Verb verb_of(const Action& action);
// {"gpusharing.dev", "v1alpha1", "sharingrollouts"}. Plural by Kubernetes' rules (policy -> policies).
[[nodiscard]] k8s::Gvr resource_of(const ObjectRef& object);

// The JSON merge patch of a PatchNode.
[[nodiscard]] std::string merge_patch_of(const PatchNode& patch);
[[nodiscard]] std::string merge_patch_of(const PatchConfigMap& patch);
// The JSON merge patch (RFC 7386) that turns `before` into `after`; both are JSON texts, an unreadable or empty
// `before` counts as {}. "{}" when nothing changes.
[[nodiscard]] std::string merge_patch_between(const std::string& before, const std::string& after);

}  // namespace gso
