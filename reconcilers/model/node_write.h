// What a write of the operator to a Node makes of it, before the stores show the result.
#pragma once

#include <optional>

#include "reconcilers/model/objects.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// The Node as the patch leaves it. Not what the API server adds by itself, such as the taint of a cordon.
[[nodiscard]] Node patched(Node node, const PatchNode& patch);

// The patch begins a change of the Node or the replacement of its standalone MPS daemon, or writes how far that is.
[[nodiscard]] bool writes_change(const PatchNode& patch);

// The Node with the change that an unanswered patch writes (World::nodes_being_written). From the moment at which that
// patch was handed over the node counts as changing, since the API server can execute it at any time: as a canary that
// has begun, as one that waits for its workload, and so on. A patch that ends a change counts only once the stores show
// it. nullopt: there is no such patch.
[[nodiscard]] std::optional<Node> with_change_being_written(const World& world, const Node& stored);

}  // namespace gso
