// nos's gpu-agent of a node: whether what it has reported can be what pods use now.
//
// The agent looks every 10 s. While it is down, pods end and start, and the report stays: its numbers can agree with
// the pods that are bound, and place their slices on the wrong GPUs. Where no pod of the GPU software can be seen at
// all, as in manifests without such pods, nothing speaks against the report.
//
// Source: nebuly-ai/nos at 12e0a72, internal/controllers/gpuagent/reporter.go.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/plan_draft.h"

namespace gso {

struct PartitionedNode;

inline constexpr std::string_view kPartitioningReportStale = "PartitioningReportStale";

// Within this time after a pod was bound, or after the agent became ready, the agent reports the slices that are used:
// it looks every 10 s, after the kubelet has admitted the pod.
inline constexpr Duration kReportDelay = std::chrono::seconds(30);

// `unseen`: it is not known whether an agent runs there. `missing`: none does, although it should.
enum class AgentState { unseen, missing, down, ready };
struct AgentView {
  AgentState state = AgentState::unseen;
  const SlicePod* pod = nullptr;  // If it is down or ready.
};

// `pods`: those of a node on which the agent should run. `plugin`: the uid of the DaemonSet of nos's device plugin
// there: where that one's pod can be seen, the agent's could be seen as well. So it could if `seen` elsewhere.
[[nodiscard]] AgentView view_agent(const std::vector<const SlicePod*>& pods, std::string_view plugin, bool seen);

// Why the node's report can be from before: a part of a sentence, for people. Empty: nothing speaks against it. An
// agent that became ready less than kReportDelay ago might not have reported yet; then another look is requested.
[[nodiscard]] std::string doubt_about_report(PlanDraft& draft, const PartitionedNode& node);

}  // namespace gso
