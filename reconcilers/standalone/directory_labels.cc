#include "reconcilers/standalone/standalone.h"

#include <fmt/format.h>

#include <algorithm>
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

class LabelOfNode {
 public:
  LabelOfNode(Pass& pass, const Node& node) : pass_(pass), node_(node), label_(directory_label(pass, node)) {}

  void run() {
    if (label_.daemon == DirectoryLabel::Daemon::none) gone();
    if (label_.daemon == DirectoryLabel::Daemon::serving) serves();
  }

 private:
  void gone() {
    const auto value = node_.meta.labels.get(kMpsPipeDirectory);
    if (!value && label_.change.empty()) return;
    if (!pass_.held_for({Timer::mps_gone, node_.meta.name, std::string(kMpsPipeDirectory)}, kGoneFor)) return;
    if (!label_.change.empty()) return add("no standalone MPS daemon runs on the node any more");
    pass_.finding(Severity::warning, node_ref(node_.meta.name), kMpsDirectoryOfOthers,
                  fmt::format("another client has set label {}={}, and no standalone MPS daemon runs on the node: pods "
                              "that select nodes by it might get the whole GPU there. Stop that client, or remove the "
                              "label (kubectl label node {} {}-)",
                              kMpsPipeDirectory, *value, node_.meta.name, kMpsPipeDirectory));
  }

  void serves() {
    if (label_.value.empty()) {
      pass_.finding(Severity::warning, node_ref(node_.meta.name), "MPSDirectoryUnlabelled",
                    fmt::format("the node's standalone MPS daemon is in {}, which no label's value can express, so the "
                                "node has no label {}. Choose a standaloneMps.pipeDirectory of at most 64 letters, "
                                "digits, '-', '_' and '/' if pods must select nodes by it",
                                label_.directory, kMpsPipeDirectory));
    }
    report_contested(pass_, node_.meta.name, label_.change);
    if (label_.change.empty()) return;
    if (!pass_.held_for({Timer::mps_ready, node_.meta.name, std::string(label_.directory)}, kReadyFor)) return;
    add(label_.value.empty() ? "the node's standalone MPS daemon is in another directory now"
                             : fmt::format("the node's standalone MPS daemon is in {}", label_.directory));
  }

  void add(std::string why) {
    if (!pass_.takes_more()) return;
    note_label_write(pass_, node_, label_.change);
    PatchNode patch;
    patch.name = node_.meta.name;
    add_to(patch, label_.change);
    pass_.add(std::move(patch), kDirectoryLabelled, std::move(why), false, node_.meta.name);
  }

  Pass& pass_;
  const Node& node_;
  DirectoryLabel label_;
};

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
    if (node != nullptr) LabelOfNode(pass, *node).run();
  }
}

}  // namespace gso
