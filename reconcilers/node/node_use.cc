#include "reconcilers/node/node_use.h"

#include <algorithm>

#include "reconcilers/cluster/consumers.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/served_afterwards.h"

namespace gso {

std::int64_t NodeUse::requested(std::string_view resource) const {
  std::int64_t sum = 0;
  for (const auto* pods : {&waiting, &daemonset_owned}) {
    for (const Pod* pod : *pods) {
      for (const auto& [name, count] : pod->gpu_requests) sum += name == resource ? count : 0;
    }
  }
  return sum;
}

std::string NodeUse::names() const {
  return names_of(waiting);
}

std::string names_of(const std::vector<const Pod*>& pods) {
  std::vector<std::string> names;
  names.reserve(pods.size());
  for (const Pod* pod : pods) names.push_back(k8s::to_string(pod->meta.key()));
  std::ranges::sort(names);
  return first_names(names);
}

NodeUse use_of(const Snapshot& snapshot, const std::string& node, Duration within) {
  NodeUse out;
  auto it = snapshot.consumers.find(node);
  if (it == snapshot.consumers.end()) return out;
  // As precise as the timers by which `within` is measured.
  const auto age = std::chrono::floor<WallTime::duration>(snapshot.mono - it->second.listed_at);
  out.fresh = age <= std::min(within, kListingFresh);
  for (const Pod& pod : it->second.pods) {
    if (!is_gpu_consumer(pod, snapshot.world)) continue;
    const auto* owner = pod.meta.controller();
    // Mirror pods belong to the Node and cannot be evicted either.
    const bool stays = owner != nullptr && (owner->kind == "DaemonSet" || owner->kind == "Node");
    (stays ? out.daemonset_owned : out.waiting).push_back(&pod);
  }
  auto by_name = [](const Pod* a, const Pod* b) { return a->meta.key() < b->meta.key(); };
  std::ranges::sort(out.waiting, by_name);
  std::ranges::sort(out.daemonset_owned, by_name);
  return out;
}

Drain drain_for(const NodeAssessment& assessment, Transition transition, WorkloadMode mode) {
  if (mode == WorkloadMode::interrupt) return Drain::nothing;
  if (steps_for(transition).disruptive) return Drain::idle;
  return assessment.shrinks ? Drain::fits : Drain::nothing;
}

bool drained(Drain drain, const NodeUse& use, const NodeAssessment& assessment) {
  return (assessment.expectation || drain != Drain::fits) && drained(drain, use, served_afterwards(assessment));
}

bool drained(Drain drain, const NodeUse& use, const std::map<std::string, std::int64_t>& serves) {
  if (drain == Drain::nothing) return true;
  if (!use.fresh) return false;
  if (drain == Drain::idle) return use.waiting.empty();
  return std::ranges::all_of(serves, [&](const auto& entry) { return use.requested(entry.first) <= entry.second; });
}

bool starts_live(Drain drain, bool is_drained) {
  return is_drained && drain != Drain::idle;
}

bool start_cordons(const std::optional<bool>& asked, Transition transition, bool live) {
  return asked.value_or(!live || steps_for(transition).disruptive);
}

}  // namespace gso
