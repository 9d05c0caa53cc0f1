#include "reconcilers/rollout/label_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

constexpr std::string_view kWritten = "written";
constexpr std::string_view kSet = "set";
// A write that the store never shows, because a webhook changes it, counts after this time like one that it has shown.
constexpr Duration kLongestWrite = std::chrono::hours(1);

struct LabelWrite {
  std::string_view state;  // kWritten or kSet.
  std::size_t number = 0;  // Of those of its node, from 1.
  std::set<std::string_view> labels = {};
  WallTime since{};
};

// Views into the timer.
LabelWrite parse(const TimerKey& timer, WallTime since) {
  std::string_view text = timer.scope.view();
  const auto next = [&](char end) {
    const std::string_view part = text.substr(0, text.find(end));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    return part;
  };
  LabelWrite out{.state = next(' '), .since = since};
  const std::string_view number = next(' ');
  std::from_chars(number.data(), number.data() + number.size(), out.number);
  while (!text.empty()) out.labels.insert(next(','));
  return out;
}

TimerKey timer_of(std::string_view node, std::string_view state, std::size_t number,
                  const std::set<std::string_view>& labels) {
  return {Timer::labelling, node, fmt::format("{} {} {}", state, number, fmt::join(labels, ","))};
}

// Of one node, in no order.
std::vector<LabelWrite> writes_to(const Pass& pass, const std::string& node) {
  std::vector<LabelWrite> out;
  for (auto at = pass.s.timers.lower_bound({Timer::labelling, node, ""});
       at != pass.s.timers.end() && at->first.timer == Timer::labelling && at->first.subject == node; ++at) {
    out.push_back(parse(at->first, at->second));
  }
  return out;
}

// Those of the last kMostRewrites writes that all contained them -> when the first of these has stopped to count.
std::map<std::string, WallTime> contested_labels(const Pass& pass, const std::string& node) {
  std::map<std::string_view, std::vector<WallTime>> times;
  for (const LabelWrite& write : writes_to(pass, node)) {
    if (write.state != kSet) continue;
    for (const std::string_view label : write.labels) times[label].push_back(write.since);
  }
  std::map<std::string, WallTime> out;
  for (const auto& [label, since] : times) {
    if (since.size() < kMostRewrites) continue;
    const WallTime first = *std::ranges::min_element(since);
    out.emplace(label, std::chrono::ceil<std::chrono::milliseconds>(first + kRewriteWindow));
  }
  return out;
}

LabelRules label_rules(const Pass& pass, const Node& node) {
  return {pass.s.settings, pass.s.now, contested_labels(pass, node.meta.name)};
}

// The labels that the change sets and that the node's annotation does not call the operator's. Views into the change.
std::set<std::string_view> unowned_labels(const Node& node, const LabelChange& change) {
  std::set<std::string_view> out;
  if (change.set.empty()) return out;
  const OwnedLabels owned = owned_labels(node);
  for (const auto& [label, value] : change.set)
    if (!owned.contains(label)) out.insert(label);
  return out;
}

// The store does not show these labels: they must still be set.
bool is_unseen(const Pass& pass, const Node& node, const LabelWrite& write) {
  const auto sets_one = [&](const LabelChange& change) {
    return std::ranges::any_of(write.labels,
                               [&](std::string_view label) { return change.set.contains(std::string(label)); });
  };
  if (write.labels.contains(kMpsPipeDirectory) && sets_one(directory_label(pass, node).change)) return true;
  const NodeAssessment* a = pass.index.find(node.meta.name);
  if (a == nullptr || !pass.index.nodes_in(Bucket::label_work).contains(node.meta.name)) return false;
  return sets_one(settled_label_change(pass, node, *a));
}

}  // namespace

LabelChange settled_label_change(const Pass& pass, const Node& node, const NodeAssessment& assessment) {
  return label_change(node, assessment, label_rules(pass, node));
}

void report_contested(Pass& pass, const std::string& node, const LabelChange& change) {
  for (const auto& [label, until] : change.contested) {
    pass.look_again_in(until - pass.s.now);
    pass.finding(Severity::warning, node_ref(node), kLabelContested, contested_text(label, node));
  }
}

void run_labelling_timers(Pass& pass) {
  for (auto at = pass.s.timers.lower_bound({Timer::labelling, "", ""});
       at != pass.s.timers.end() && at->first.timer == Timer::labelling; ++at) {
    const auto& [timer, since] = *at;
    const Node* node = pass.s.world.nodes.find(timer.subject.view());
    if (node == nullptr) continue;
    const LabelWrite write = parse(timer, since);
    const Duration age = pass.s.now - since;
    if (write.state == kSet) {
      if (age < kRewriteWindow) pass.keep(timer);
    } else if (age < kLongestWrite && is_unseen(pass, *node, write)) {
      pass.keep(timer);
    } else {
      pass.run(timer_of(timer.subject.view(), kSet, write.number, write.labels));
    }
  }
}

void note_label_write(Pass& pass, const Node& node, const LabelChange& change) {
  const std::set<std::string_view> labels = unowned_labels(node, change);
  if (labels.empty()) return;
  std::set<std::size_t> taken;
  for (const LabelWrite& write : writes_to(pass, node.meta.name)) {
    if (write.state == kWritten) return;  // The same write, once more.
    if (pass.s.now - write.since < kRewriteWindow) taken.insert(write.number);
  }
  std::size_t number = 1;
  while (taken.contains(number)) ++number;
  pass.run(timer_of(node.meta.name, kWritten, number, labels));
}

bool might_be_contested(const Pass& pass, const Node& node) {
  return node.meta.annotations.contains(kOwnedAnnotation) || !writes_to(pass, node.meta.name).empty();
}

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
  out.directory = host_pipe_directory(node);
  if (pod == nullptr && out.directory.empty()) {
    if (mps_daemon_change_on(node).change) return out;  // Its replacement is in progress.
    out.daemon = DirectoryLabel::Daemon::none;
    out.change = take_back_label(node, kMpsPipeDirectory);
    return out;
  }
  if (pod != nullptr && is_serving(*pod)) out.directory = directory_of(*pod);
  if (out.directory.empty()) return out;
  out.daemon = DirectoryLabel::Daemon::serving;
  out.value = pipe_directory_label(out.directory);
  if (!out.value.empty() && node.meta.labels.get(kMpsPipeDirectory) == out.value) return out;  // Most nodes.
  out.change = out.value.empty() ? take_back_label(node, kMpsPipeDirectory)
                                 : directory_label_change(node, out.value, label_rules(pass, node));
  return out;
}

bool knows_all_daemons(const Pass& pass) {
  return std::ranges::none_of(pass.index.discovery.standalone, [&](const Operand& daemon) {
    return pass.s.world.unsynced_namespaces.contains(daemon.key.ns);
  });
}

namespace {

// A daemon that ends again and again is Ready in between.
constexpr Duration kReadyFor = std::chrono::seconds(10);
// The DaemonSet's controller replaces a pod within seconds, and a DaemonSet can be missing temporarily.
constexpr Duration kGoneFor = std::chrono::minutes(2);

void write_label(Pass& pass, const Node& node, const LabelChange& change, std::string why) {
  if (!pass.takes_more()) return;
  note_label_write(pass, node, change);
  PatchNode patch{.name = node.meta.name};
  add_to(patch, change);
  pass.add(std::move(patch), kDirectoryLabelled, std::move(why), false, node.meta.name);
}

void take_back_label_without_daemon(Pass& pass, const Node& node, const DirectoryLabel& label) {
  const auto value = node.meta.labels.get(kMpsPipeDirectory);
  if (!value && label.change.empty()) return;
  if (!pass.held_for({Timer::mps_gone, node.meta.name, kMpsPipeDirectory}, kGoneFor)) return;
  if (!label.change.empty())
    return write_label(pass, node, label.change, "the standalone MPS daemon of the node has ended");
  pass.finding(Severity::warning, node_ref(node.meta.name), "MPSDirectoryOfOthers",
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
  if (!pass.held_for({Timer::mps_ready, node.meta.name, label.directory}, kReadyFor)) return;
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
