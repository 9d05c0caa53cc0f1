// A policy whose labels have vanished from a node.
#pragma once

#include "reconcilers/model/objects.h"
#include "reconcilers/model/policy.h"

namespace gso {

// The policy does not select the node, and would if the labels that its selector uses, and that the node lacks, were
// there. False of a node that has one of them with a value that the selector does not want: somebody gave it to another
// policy. Any label can be away for a moment (GPU Feature Discovery, a cloud's controller, a node that registers
// again).
[[nodiscard]] bool selects_but_for_lost_labels(const SharingPolicy& policy, const Node& node);

}  // namespace gso
