// UnwrittenRecords: the records of a plan that are not written, because they were refused, must wait, or are not
// answered yet; and which disruptions rest on them. Pure: no I/O, no clock.
//
//  - On a SharingPolicy or SharingRollout rest the nodes whose change belongs to that policy.
//  - On a ConfigMap rests every disruption: the record has the stops and canaries of all policies, and the keys of
//    inline profiles are read by whatever pod starts.
//  - What belongs to no policy that can be read (a reservation, the restart of a DaemonSet, the standalone MPS daemon
//    of a node) rests on each record.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "controller/writes/schedule.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// Whether a plan's disruptions can rest on the action: creations, and writes of the operator's own data. Keys in the
// ConfigMap of somebody else are none: what needs them is planned once they are there.
[[nodiscard]] bool is_record(const Action& action);

class UnwrittenRecords {
 public:
  // Ignored unless is_record().
  void add(const PlannedAction& record);
  // The chain's disruptive steps must not be sent. `world` has the changes that nodes are in.
  [[nodiscard]] bool hold(const Chain& chain, const World& world) const;

 private:
  bool all_ = false;
  std::set<std::string, std::less<>> policies_;
};

}  // namespace gso
