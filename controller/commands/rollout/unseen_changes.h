// What the status of a policy does not say yet: an edit or a retry since an operator wrote it.
#pragma once

#include <string_view>
#include <vector>

#include "controller/commands/rollout/view.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/model/policy.h"

namespace gso {

// Of a wait: nodes need a change that no status names, and nothing stops them.
inline constexpr std::string_view kNotStarted = "NotStarted";

// `waits`: what the status of the policy, and its switches, say. A stop of another revision, or before a retry, does
// not hold the nodes any more: what they wait for takes its place. Without an operator nodes can wait although the
// status names nothing: then what they wait for is added.
void note_unseen_changes(ReadingPass& pass, const SharingPolicy& policy, bool has_operator,
                         std::vector<PolicyWait>& waits);

// A retry of the rollout, which stopped because nodes failed, is requested, and no operator has applied it yet.
[[nodiscard]] bool is_retried(ReadingPass& pass, const RolloutFacts& facts);

}  // namespace gso
