// When the mark is set and removed. Timers delay both, so that the label of a daemon that restarts repeatedly does not
// flap.
#include "reconcilers/node/mps_ready.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"

namespace gso {
namespace {

// A daemon that crashes does so within its first seconds, and restarts with a delay that grows to minutes.
constexpr Duration kUpFor = std::chrono::seconds(60);
// A pod that starts now would find no daemon. A single failed probe is not enough to remove the mark.
constexpr Duration kDownFor = std::chrono::seconds(15);

void set_mark(PlanDraft& draft, const std::string& name) {
  if (!draft.held_for({Timer::mps_ready, name, ""}, kUpFor)) return;
  PatchNode patch;
  patch.name = name;
  patch.set[std::string(kMpsEnabled)] = "true";
  patch.set_annotations[std::string(kMpsMarkAnnotation)] = "true";
  draft.add(std::move(patch), "MPSReady", "the node's MPS control daemon is running", false, name);
}

void remove_mark(PlanDraft& draft, const std::string& name, bool on_the_node) {
  if (!draft.held_for({Timer::mps_gone, name, ""}, kDownFor)) return;
  PatchNode patch;
  patch.name = name;
  if (on_the_node) patch.remove.insert(std::string(kMpsEnabled));
  patch.remove_annotations.insert(std::string(kMpsMarkAnnotation));
  draft.add(std::move(patch), "MPSGone", "the node's MPS control daemon is no longer running", false, name);
}

}  // namespace

MpsDaemon mps_daemon_on(const Node& node, const NodeAssessment* assessment, const PluginInstallation* installation,
                        const std::vector<const Pod*>& operand_pods, const Pod* standalone) {
  if (node.meta.annotations.get(kMpsHostAnnotation) == "true") return node.ready ? MpsDaemon::up : MpsDaemon::down;
  if (standalone != nullptr && node.ready && is_serving(*standalone)) return MpsDaemon::up;
  if (assessment == nullptr || installation == nullptr || !node.ready) return MpsDaemon::down;
  const NodePods pods = sort_pods(*installation, operand_pods);
  if (pods.mps.empty() || !is_serving(*pods.mps.front())) return MpsDaemon::down;
  // During a change the pod might be about to be deleted; before the change it serves the profile that it has loaded.
  if (assessment->change || assessment->loaded.revision.empty() || assessment->loaded.revision != assessment->target) {
    return MpsDaemon::unclear;
  }
  const bool wanted =
      assessment->profile && assessment->profile->valid && assessment->profile->profile().strategy() == Strategy::mps;
  return wanted ? MpsDaemon::up : MpsDaemon::down;
}

MpsMark mps_mark(const Node& node, MpsDaemon daemon) {
  const auto value = node.meta.labels.get(kMpsEnabled);
  const bool marked = node.meta.annotations.contains(kMpsMarkAnnotation);
  switch (daemon) {
    case MpsDaemon::up:
      // Another value belongs to a person. If a person removes the label while the operator owns it, it is set again.
      return !value ? MpsMark::to_set : MpsMark::right;
    case MpsDaemon::down:
      if (marked) return MpsMark::to_remove;
      return value == "true" ? MpsMark::foreign : MpsMark::right;
    case MpsDaemon::unclear:
      break;
  }
  return MpsMark::right;
}

bool marks_mps_nodes(const PlannerSettings& settings, bool kai_served) {
  if (settings.label_mode == PlannerSettings::LabelMode::verify) return false;
  return settings.kai.mps_ready == MpsReadyMode::on ||
         (settings.kai.mps_ready == MpsReadyMode::automatic && kai_served);
}

void plan_mps_mark(PlanDraft& draft, const Node& node, MpsMark mark) {
  const std::string& name = node.meta.name;
  switch (mark) {
    case MpsMark::right:
      return;
    case MpsMark::to_set:
      return set_mark(draft, name);
    case MpsMark::to_remove:
      return remove_mark(draft, name, node.meta.labels.get(kMpsEnabled) == "true");
    case MpsMark::foreign:
      draft.finding(
          Severity::warning, node_ref(name), "MPSMarkWithoutDaemon",
          fmt::format(
              "the node has the label {}=true, which the operator did not set, but no MPS control daemon runs on it: "
              "if the host runs one, set the annotation {}=true on the node; otherwise remove the label",
              kMpsEnabled, kMpsHostAnnotation));
  }
}

}  // namespace gso
