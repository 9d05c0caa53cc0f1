// See change_trouble.h.
#include "reconcilers/rollout/change_trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/node/pod_faults.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/kai_gate.h"
#include "reconcilers/rollout/node_states.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {
namespace {

using Kind = ChangeTrouble::Kind;

// How long a node usually needs to show a new profile. It is not reported earlier, because each report costs two
// writes.
constexpr Duration kUsual = std::chrono::minutes(2);
constexpr std::size_t kMostSelfLoading = 200;  // Of the nodes that load a profile by themselves.

// What prevents the next step of a node in progress, while no deadline runs. The step is asked for its row without a
// stop and without blocking pods: neither matters for the row once a pod of the node has been deleted.
std::optional<ChangeTrouble> obstacle_of(Pass& pass, const Node& node, const NodeAssessment& a) {
  if (a.phase != Phase::restarting) return std::nullopt;
  const std::string& name = node.meta.name;
  const NodeView view = view_of(pass, node, a);
  std::optional<KaiHindrance> hindrance;
  const auto kai_hinders = [&] { return hindrance = kai_hindrance(pass, name, a); };
  const Step next = step({view, pass.index.policy(pass.s.world, a.policy.view()),
                          profile_begun_for(view, pass.index.record_or_null(), pass.index.profiles), std::nullopt,
                          std::nullopt, kai_hinders});
  switch (next.row) {
    case StepRow::c4:
      if (!a.reason.empty()) return ChangeTrouble{std::string(a.reason), a.message, Kind::stands};
      if (!hindrance || !hindrance->certain) return std::nullopt;
      return ChangeTrouble{std::string(kKaiReservations), finding_of(name, *hindrance).message, Kind::stands};
    default:
      return std::nullopt;
  }
}

// The pods that stay: those that the change has not listed for replacement.
NodePods staying(const NodeAssessment& a, const NodePods& pods) {
  NodePods out = pods;
  if (!a.change) return out;
  for (const auto& [component, uids] : a.change->pods) {
    auto& of = component == Component::plugin ? out.plugin : component == Component::gfd ? out.gfd : out.mps;
    std::erase_if(of, [&](const Pod* pod) { return uids.contains(pod->meta.uid); });
  }
  return out;
}

// Why a container of these pods cannot start, in the words of the kubelet. A container that is being created is on its
// way.
std::string failing_container(const NodePods& pods) {
  for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
    for (const Pod* pod : pods.of(component)) {
      if (pod->meta.deletion_timestamp) continue;
      for (const ContainerStatus* container : pod->all_containers()) {
        const std::string_view why = container->waiting_reason.view();
        if (!why.empty() && why != "ContainerCreating" && why != "PodInitializing") return std::string(why);
      }
    }
  }
  return {};
}

// An earlier pass has named the timer at least so long ago.
bool has_lasted(Pass& pass, const TimerKey& timer, Duration least) {
  if (!pass.s.timers.contains(timer)) return false;
  const Duration waited = pass.s.now - pass.since(timer);
  if (waited < least) pass.look_again_in(least - waited);
  return waited >= least;
}

// The node has been expected to show its profile for at least so long.
bool has_waited(Pass& pass, const std::string& name, const NodeAssessment& a, Duration least) {
  return has_lasted(pass, a.change ? verifying_timer(name, *a.change) : loading_timer(name, a), least);
}

}  // namespace

std::optional<ChangeTrouble> trouble_of(Pass& pass, const std::string& name, const NodeAssessment& a) {
  if (!a.holder.empty() || (!a.in_change() && !a.loads_by_itself())) return std::nullopt;
  if (a.in_change()) {
    if (const std::string* right = refused_write(pass, name))
      return ChangeTrouble{std::string(kForbidden), *right, Kind::stands};
  }
  const Node* node = pass.s.world.nodes.find(name);
  if (node == nullptr) return std::nullopt;
  if (a.in_change()) {
    if (auto obstacle = obstacle_of(pass, *node, a)) return obstacle;
    if (!a.ready) {
      // Nothing ends the change until the node is Ready again.
      const Duration patience = pass.index.policy(pass.s.world, a.policy.view()).rollout.verify_timeout;
      const TimerKey lost = not_ready_timer(name, *a.change);
      const bool stands = pass.ages.has_run_for(lost, patience, recorded_since(pass, lost));
      std::string message(kNotReadyInChangeText);
      if (stands) message += ". Make it Ready, or delete the Node (a canary that is deleted counts as one failure)";
      return ChangeTrouble{std::string(kNodesNotReady), std::move(message), stands ? Kind::stands : Kind::not_ready};
    }
  }
  if (a.phase == Phase::draining || a.matches() || !a.ready) return std::nullopt;
  const NodePods now = staying(a, sort_pods(pass.index.installation_of(a), pass.index.pods_of(name)));
  if (std::string why = failing_container(now); !why.empty()) {
    return ChangeTrouble{std::move(why), fmt::format("{}; {}", shown_difference(a), first_problem(now)),
                         Kind::container};
  }
  if (!has_waited(pass, name, a, kUsual)) return std::nullopt;
  if (!a.labels_missing.empty()) {
    // C11: without labels the change neither ends nor fails.
    const Duration patience = pass.index.policy(pass.s.world, a.policy.view()).rollout.verify_timeout;
    const bool stands = a.in_change() && has_waited(pass, name, a, patience);
    return ChangeTrouble{std::string(kLabelsMissing), std::string(a.labels_missing.view()),
                         stands ? Kind::stands : Kind::late};
  }
  return ChangeTrouble{std::string(to_string(a.phase)), shown_difference(a), Kind::late};
}

std::map<std::string, ChangeTrouble> troubles_of(const RolloutView& rollout) {
  std::map<std::string, ChangeTrouble> out;
  const Index& index = rollout.pass.index;
  const auto look = [&](const std::string& name, const NodeAssessment& a) {
    if (auto trouble = trouble_of(rollout.pass, name, a)) out.emplace(name, *std::move(trouble));
  };
  for (const std::string& name : index.nodes_in(Bucket::changing)) {
    if (const NodeAssessment& a = *index.find(name); rollout.has(a)) look(name, a);
  }
  // A restart by somebody else can concern the whole fleet, and the status names only the first nodes.
  std::size_t looked_at = 0;
  for (const std::string& name : index.nodes_in(Bucket::self_loaded)) {
    const NodeAssessment& a = *index.find(name);
    if (!rollout.has(a)) continue;
    if (++looked_at > kMostSelfLoading) break;
    look(name, a);
  }
  return out;
}

}  // namespace gso
