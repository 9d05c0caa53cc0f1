// Whose DaemonSets are believed. Anybody who can create DaemonSets in one namespace can name a container like the
// device plugin's, so an operand counts only in an operand namespace:
//  - the operator's own, and those of the setting (PlannerSettings::operand_namespaces);
//  - those of DaemonSets whose owner is a ClusterPolicy that exists, by name and uid;
//  - those of the installations that the record has for nodes.
// If that names none (first start, no ClusterPolicy, no record), all in which an operand's DaemonSet is found count,
// and the record keeps this choice until the setting names some.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

class RecordStore;  // record_store.h

// project_daemonset() for operand namespaces: of one that is no operand, only what names it is kept.
[[nodiscard]] k8s::Result<DaemonSet> project_operand_daemonset(std::string_view json);

// The DaemonSets of a whole cluster that look like an operand's: by the name of a container (runs_operand()).
struct SeenDaemonSets {
  static constexpr std::size_t kMost = 256;
  std::vector<DaemonSet> kept;  // At most kMost, without their templates, and not those that are being deleted.
  std::size_t beyond = 0;       // How many more there are.
  // Namespaces of all of them, kept or not: whoever fills `kept` with DaemonSets of one namespace hides no other one.
  std::set<std::string> namespaces;
  std::set<std::string> of_cluster_policies;  // Of those that a ClusterPolicy owns, kept or not.

  // Takes it if it looks like an operand's. The ClusterPolicies are those of `world`.
  void add(const DaemonSet& daemonset, const World& world);
};

// Decides over the operand namespaces of one World, again and again.
class OperandNamespaces {
 public:
  OperandNamespaces();
  ~OperandNamespaces();
  // Sets World::operand_namespaces and operand_namespaces_chosen. World::configmaps must have the record. A record that
  // cannot be read adds what it added before, and nothing is chosen then.
  void decide(World& world, const PlannerSettings& settings, const SeenDaemonSets& seen);

 private:
  void read_record(const World& world, const PlannerSettings& settings);

  std::unique_ptr<RecordStore> stored_;
  std::set<std::string> recorded_;  // Of the installations of nodes.
  std::set<std::string> choice_;    // FleetRecord::operand_namespaces
};

// For a World that has every DaemonSet of the cluster in World::daemonsets: decides, and moves those of other
// namespaces to World::foreign_daemonsets.
void keep_trusted_daemonsets(World& world, const PlannerSettings& settings);

}  // namespace gso
