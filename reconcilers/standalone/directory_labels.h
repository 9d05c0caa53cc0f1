// The label gpusharing.dev/mps-pipe-directory of a Node: where clients find the standalone MPS daemon that runs there,
// so that pods can select the nodes whose directory they mount.
//
//   the node's pod of such a daemon      then the label
//   Ready, and reports a directory       names it; of several reports the newest one
//   Ready, and reports one that no       is removed; a finding names the directory
//   label's value can express
//   otherwise there                      stays as it is: the daemon restarts, or its report was lost
//   none, and its replacement is         stays as it is
//   in progress
//   none, for two minutes                is removed
// A view with gaps changes nothing. Nodes that a person holds and nodes whose labels the operator only verifies are
// left as they are.
#pragma once

#include "reconcilers/fleet/pass.h"

namespace gso {

void plan_directory_labels(Pass& pass);

}  // namespace gso
