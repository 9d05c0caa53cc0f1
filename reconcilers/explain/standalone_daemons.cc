#include "reconcilers/explain/standalone_daemons.h"

#include <algorithm>

#include "reconcilers/standalone/standalone.h"

namespace gso {
namespace {

void count(const DaemonNode& node, DaemonProgress& out) {
  ++out.total;
  const bool serves = node.pod != nullptr && is_serving(*node.pod);
  if (serves && !node.is_outdated()) ++out.updated;
  if (node.in_change()) {
    out.in_progress.push_back(node.name());
  } else if (node.mark.deferred) {
    out.deferred.push_back(node.name());
  } else if (!serves) {
    out.not_ready.push_back(node.name());
  }
}

// Of a node that needs a change of its daemon, or is in one.
Phase phase_of_change(const DaemonNode& node) {
  if (!node.holder.empty()) return Phase::held;
  if (!node.in_change()) return Phase::pending;
  if (node.has_failed()) return Phase::failed;
  return node.is_outdated() && !node.pod->meta.deletion_timestamp ? Phase::draining : Phase::restarting;
}

}  // namespace

std::map<std::string, Phase> daemon_phases(const World& world, const FleetIndex::Impl& index,
                                           const RolloutKey& rollout) {
  std::map<std::string, Phase> out;
  for (const DaemonNode& node : read_daemon_nodes(world, index)) {
    const bool changes = node.in_change() || node.is_outdated();
    if (changes && node.rollout() == rollout) out.emplace(node.name(), phase_of_change(node));
  }
  return out;
}

std::vector<DaemonProgress> daemon_progress(const World& world, const FleetIndex& index) {
  const std::vector<DaemonNode> nodes = read_daemon_nodes(world, index.impl());
  std::vector<DaemonProgress> out;
  for (const Operand& daemonset : index.impl().discovery.standalone) {
    DaemonProgress& progress = out.emplace_back();
    progress.daemonset = k8s::to_string(daemonset.key);
    progress.watches_host = daemonset.watches_host;
    progress.revision = daemonset.newest_hash;
    for (const DaemonNode& node : nodes) {
      if (node.daemonset == &daemonset) count(node, progress);
    }
  }
  std::ranges::sort(out, {}, &DaemonProgress::daemonset);
  return out;
}

}  // namespace gso
