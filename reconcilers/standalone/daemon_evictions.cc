#include "reconcilers/standalone/daemon_evictions.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/evictions.h"

namespace gso {
namespace {

NodeDrain drain_of_daemon(const DaemonNode& node) {
  NodeDrain out;
  out.node = node.name();
  out.policy = node.policy;
  out.until = Drain::idle;
  if (node.in_change()) out.since = node.mark.change->begun;
  return out;
}

// A node of the same policy and DaemonSet.
const DaemonNode* find_peer(const DaemonNode& of, const std::vector<DaemonNode>& nodes, const std::string& name) {
  const auto found = std::ranges::find_if(nodes, [&](const DaemonNode& other) { return other.name() == name; });
  return found == nodes.end() || found->rollout() != of.rollout() ? nullptr : &*found;
}

bool waits_for_change(const DaemonNode& node) {
  return !node.in_change() && node.is_outdated() && node.node->ready && node.holder.empty();
}

}  // namespace

void evict_clients(Pass& pass, const DaemonNode& node, const std::vector<DaemonNode>& nodes, const NodeUse& use) {
  const auto waits = [&](const std::string& name) {
    const DaemonNode* peer = find_peer(node, nodes, name);
    return peer != nullptr && waits_for_change(*peer);
  };
  const auto counts = [&](const std::string& name) {
    const DaemonNode* peer = find_peer(node, nodes, name);
    return peer != nullptr && (peer->in_change() || waits_for_change(*peer));
  };
  const DrainOf drain_of_peer = [&](const std::string& name) -> std::optional<NodeDrain> {
    const DaemonNode* peer = find_peer(node, nodes, name);
    return peer == nullptr ? std::nullopt : std::optional(drain_of_daemon(*peer));
  };
  evict_consumers(
      pass,
      {drain_of_daemon(node), gang_peers_of(pass.s, node.name(), {counts, waits}), drain_of_peer,
       fmt::format("standalone MPS daemon is replaced (DaemonSet {})", k8s::to_string(node.daemonset->key))},
      use);
}

std::string why_clients_stay(const Pass& pass, const DaemonNode& node, const NodeUse& use) {
  std::string out;
  for (const auto& why : {refused_evictions(pass, node.name(), use), why_pods_stay(pass, drain_of_daemon(node), use)}) {
    if (why) out += "; " + why->message;
  }
  return out;
}

}  // namespace gso
