#include "reconcilers/partitioning/slice_agent.h"

#include <fmt/format.h>

#include <algorithm>

#include "k8sclient/value/time.h"
#include "reconcilers/partitioning/partitioned_node.h"

namespace gso {

namespace {

bool is_of(const SlicePod& pod, std::string_view daemonset) {
  return !daemonset.empty() &&
         std::ranges::any_of(pod.meta.owners, [&](const auto& owner) { return owner.uid.view() == daemonset; });
}

// The one that has been ready for longest; a time that is not known is long ago.
bool is_better(const SliceAgent& agent, const SliceAgent& than) {
  if (agent.ready != than.ready) return agent.ready;
  return agent.ready && agent.since < than.since;
}

// A time in the future is that of a node whose clock is ahead: the first look at it counts.
bool has_just_started(PlanDraft& draft, const PartitionedNode& node, const SliceAgent& agent) {
  if (!agent.since) return false;
  return !draft.ages.held_for(stored_time(node.name, "agent", *agent.since), kReportDelay, *agent.since);
}

}  // namespace

AgentView view_agent(const std::vector<const SlicePod*>& pods, std::string_view plugin, bool seen) {
  AgentView out;
  bool sees_plugin = false;
  for (const SlicePod* pod : pods) {
    sees_plugin = sees_plugin || is_of(*pod, plugin);
    if (pod->agent && (out.pod == nullptr || is_better(*pod->agent, *out.pod->agent))) out.pod = pod;
  }
  if (out.pod != nullptr) {
    out.state = out.pod->agent->ready ? AgentState::ready : AgentState::down;
  } else if (seen || sees_plugin) {
    out.state = AgentState::missing;
  }
  return out;
}

std::string doubt_about_report(PlanDraft& draft, const PartitionedNode& node) {
  constexpr std::string_view kFromBefore = "so its report of slices can be from before";
  switch (node.agent.state) {
    case AgentState::unseen:
      return {};
    case AgentState::missing:
      return fmt::format("no pod of nos's gpu-agent runs there, {}", kFromBefore);
    case AgentState::down:
      return fmt::format("nos's gpu-agent there (pod {}) is not ready, {}", k8s::to_string(node.agent.pod->meta.key()),
                         kFromBefore);
    case AgentState::ready:
      break;
  }
  if (!has_just_started(draft, node, *node.agent.pod->agent)) return {};
  return fmt::format("nos's gpu-agent there (pod {}) has just started, {}", k8s::to_string(node.agent.pod->meta.key()),
                     kFromBefore);
}

}  // namespace gso
