#include "reconcilers/rollout/directory_label.h"

#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/mps_daemon_change.h"
#include "reconcilers/rollout/label_contest.h"

namespace gso {
namespace {

// By the pod's init container, or by the container itself if it has ended because the daemon of the host had moved.
// Empty: no report, or it was lost with the container.
std::string_view directory_of(const Pod& pod) {
  for (const ContainerStatus& container : pod.containers) {
    const std::string_view moved = reported_pipe_directory(container.last_message());
    if (!moved.empty()) return moved;
  }
  for (const ContainerStatus& container : pod.init_containers) {
    if (container.name != kStandaloneMpsCheck || !container.ready || !container.terminated) continue;
    return reported_pipe_directory(container.terminated->message.view());
  }
  return {};
}

}  // namespace

DirectoryLabel directory_label(const Pass& pass, const Node& node) {
  DirectoryLabel out;
  if (is_held(node) || label_mode_of(node, pass.s.settings) == PlannerSettings::LabelMode::verify) return out;
  const Pod* pod = pod_of_standalone(pass.index.discovery.standalone, pass.index.pods_of(node.meta.name));
  if (pod == nullptr) {
    if (mps_daemon_change_on(node).change) return out;  // Its replacement is in progress.
    out.daemon = DirectoryLabel::Daemon::none;
    out.change = take_back_label(node, kMpsPipeDirectory);
    return out;
  }
  if (is_serving(*pod)) out.directory = directory_of(*pod);
  if (out.directory.empty()) return out;
  out.daemon = DirectoryLabel::Daemon::serving;
  out.value = pipe_directory_label(out.directory);
  if (!out.value.empty() && node.meta.labels.get(kMpsPipeDirectory) == out.value) return out;  // Most nodes.
  out.change = out.value.empty() ? take_back_label(node, kMpsPipeDirectory)
                                 : directory_label_change(node, out.value, label_rules(pass, node));
  return out;
}

}  // namespace gso
