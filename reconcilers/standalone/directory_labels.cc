#include "reconcilers/standalone/standalone.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/label_contest.h"

namespace gso {
namespace {

// A daemon that ends again and again is Ready in between.
constexpr Duration kReadyFor = std::chrono::seconds(10);
// The DaemonSet's controller replaces a pod within seconds, and a DaemonSet can be missing temporarily.
constexpr Duration kGoneFor = std::chrono::minutes(2);

void write_label(Pass& pass, const Node& node, const LabelChange& change, std::string why) {
  if (!pass.takes_more()) return;
  note_label_write(pass, node, change);
  PatchNode patch;
  patch.name = node.meta.name;
  add_to(patch, change);
  pass.add(std::move(patch), kDirectoryLabelled, std::move(why), false, node.meta.name);
}

void take_back_label_without_daemon(Pass& pass, const Node& node, const DirectoryLabel& label) {
  const auto value = node.meta.labels.get(kMpsPipeDirectory);
  if (!value && label.change.empty()) return;
  if (!pass.held_for({Timer::mps_gone, node.meta.name, std::string(kMpsPipeDirectory)}, kGoneFor)) return;
  if (!label.change.empty())
    return write_label(pass, node, label.change, "no standalone MPS daemon runs on the node any more");
  pass.finding(Severity::warning, node_ref(node.meta.name), kMpsDirectoryOfOthers,
               fmt::format("another client has set label {}={}, and no standalone MPS daemon runs on the node: pods "
                           "that select nodes by it might get the whole GPU there. Stop that client, or remove the "
                           "label (kubectl label node {} {}-)",
                           kMpsPipeDirectory, *value, node.meta.name, kMpsPipeDirectory));
}

void name_directory(Pass& pass, const Node& node, const DirectoryLabel& label) {
  if (label.value.empty()) {
    pass.finding(Severity::warning, node_ref(node.meta.name), "MPSDirectoryUnlabelled",
                 fmt::format("the node's standalone MPS daemon is in {}, which no label's value can express, so the "
                             "node has no label {}. Choose a standaloneMps.pipeDirectory of at most 64 letters, "
                             "digits, '-', '_' and '/' if pods must select nodes by it",
                             label.directory, kMpsPipeDirectory));
  }
  report_contested(pass, node.meta.name, label.change);
  if (label.change.empty()) return;
  if (!pass.held_for({Timer::mps_ready, node.meta.name, std::string(label.directory)}, kReadyFor)) return;
  write_label(pass, node, label.change,
              label.value.empty() ? "the node's standalone MPS daemon is in another directory now"
                                  : fmt::format("the node's standalone MPS daemon is in {}", label.directory));
}

// The timers of this file have a scope; those of KAI's mark have none.
void keep_timers(Pass& pass) {
  for (const auto& [timer, since] : pass.s.timers) {
    const bool of_mps = timer.timer == Timer::mps_ready || timer.timer == Timer::mps_gone;
    if (of_mps && !timer.scope.empty()) pass.keep(timer);
  }
}

}  // namespace

void plan_directory_labels(Pass& pass) {
  if (!knows_all_daemons(pass)) return keep_timers(pass);
  for (const std::string& name : pass.index.nodes_in(Bucket::mps_directory)) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr) continue;
    const DirectoryLabel label = directory_label(pass, *node);
    if (label.daemon == DirectoryLabel::Daemon::none) take_back_label_without_daemon(pass, *node, label);
    if (label.daemon == DirectoryLabel::Daemon::serving) name_directory(pass, *node, label);
  }
}

}  // namespace gso
