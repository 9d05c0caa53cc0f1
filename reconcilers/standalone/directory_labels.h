// The label gpusharing.dev/mps-pipe-directory of a Node: where clients find the standalone MPS daemon that runs there,
// so that pods can select the nodes whose directory they mount.
//
//   the node's pod of such a daemon      then the label
//   Ready, and reports a directory       names it; of several reports the newest one
//   Ready, and reports one that no       is removed; a finding names the directory
//   label's value can express
//   Ready, but another client keeps      stays as it is, by the rule for all labels (node_labels.h); a finding, and the
//   changing the label                   condition of the policy
//   otherwise there                      stays as it is: the daemon restarts, or its report was lost
//   none, and its replacement is         stays as it is
//   in progress
//   none, for two minutes                is removed, unless another client has set it: then a finding says so
// A view with gaps changes nothing. Nodes that a person holds and nodes whose labels the operator only verifies are
// left as they are.
#pragma once

#include <string_view>

#include "reconcilers/fleet/pass.h"

namespace gso {

// The reason of the writes. They have the annotation gpusharing.dev/owned, as a whole.
inline constexpr std::string_view kDirectoryLabelled = "MPSDirectory";
// The reason of a node without such a daemon that has the label all the same.
inline constexpr std::string_view kMpsDirectoryOfOthers = "MPSDirectoryOfOthers";

void plan_directory_labels(Pass& pass);

}  // namespace gso
