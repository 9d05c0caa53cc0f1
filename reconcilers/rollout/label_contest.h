// Labels that the operator writes and that another client keeps taking away; and the label that names where clients
// find a node's standalone MPS daemon.
#pragma once

#include <string>
#include <string_view>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

// --- Sharing labels that another client keeps taking away together with the annotation gpusharing.dev/owned, in which
// the operator counts how often it has set a label again. The node then looks as if the operator had never labelled
// it, so these writes are remembered beside it, as timers of the kind `labelling`, until the operator ends. The scope
// of such a timer is "set N LABEL,LABEL" once the store shows those labels: the N-th of the last writes to that node,
// which counts for kRewriteWindow; and "written N LABEL,LABEL" before that.

// label_change() of a settled node, by the rules of now: a label that the last kMostRewrites writes to the node
// contained is contested.
[[nodiscard]] LabelChange settled_label_change(const Pass& pass, const Node& node, const NodeAssessment& assessment);

// A finding for each contested label. The operator looks again once it is allowed to set the first of them.
void report_contested(Pass& pass, const std::string& node, const LabelChange& change);

// Names the timers that continue. Once in a pass.
void run_labelling_timers(Pass& pass);
// This change of the node's labels is being written.
void note_label_write(Pass& pass, const Node& node, const LabelChange& change);

// Whether the labels of the node can be contested: the operator has written some that it does not own, or owns some.
[[nodiscard]] bool might_be_contested(const Pass& pass, const Node& node);

// --- The label gpusharing.dev/mps-pipe-directory of a Node: where clients find the standalone MPS daemon that runs
// there, so that pods can select the nodes whose directory they mount.
//
//   the node's pod of such a daemon      then the label
//   Ready, and reports a directory       names it; of several reports the newest one
//   Ready, and reports one that no       is removed; a finding names the directory
//   label's value can express
//   Ready, but another client keeps      stays as it is, by the rule for all labels (node_labels.h); a finding, and the
//   changing the label                   condition of the policy
//   otherwise there                      stays as it is: the daemon restarts, or its report was lost
//   none, and a person says that the     names the directory that gpusharing.dev/mps-host stands for
//   host runs a daemon
//   none, and its replacement is         stays as it is
//   in progress
//   none, for two minutes                is removed, unless another client has set it: then a finding says so
// A view with gaps changes nothing. Nodes that a person holds and nodes whose labels the operator only verifies are
// left as they are.

// As the pod of the daemon asks for it now.
struct DirectoryLabel {
  enum class Daemon {
    none,     // The node has no pod of a standalone daemon, and no person says that its host runs one.
    silent,   // It has one that is not Ready or has reported no directory, or the label is not the operator's to write.
    serving,  // In `directory`.
  };
  Daemon daemon = Daemon::silent;
  std::string directory;  // On the node.
  std::string value;      // Of `directory`; empty: no label's value can express it.
  // What the operator writes for it. Empty: nothing, because the label is right or contested, or is another client's.
  LabelChange change;
};

[[nodiscard]] DirectoryLabel directory_label(const Pass& pass, const Node& node);

// Every namespace with such a DaemonSet has been read. A view with gaps proves nothing: what has been true until now is
// not taken as having ended.
[[nodiscard]] bool knows_all_daemons(const Pass& pass);

// The reason of the writes. They have the annotation gpusharing.dev/owned, as a whole.
inline constexpr std::string_view kDirectoryLabelled = "MPSDirectory";
void plan_directory_labels(Pass& pass);

}  // namespace gso
