// One node in a change, for the table tests of node_step.h: the input is facts and ages, without a fleet and a clock;
// the output is a phase and actions.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_step.h"

namespace gso {

inline constexpr std::string_view kFour =
    "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n";
inline constexpr std::string_view kMpsFour =
    "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n";

inline const Reason kBusy{"WaitingForWorkloads", "waits for team/train-0"};

// One node n1 whose target is `kFour` and that has another revision, with its three old pods.
class NodeStep : public testing::Test {
 protected:
  NodeStep();

  void aim_at(std::string_view text);
  Pod& add_pod(std::string uid, Component component, WallTime created);
  Pod& pod(const std::string& uid);
  void remove(const std::string& uid);
  // The listed pods are gone, and new ones serve.
  void replace_all();
  void text_was_written(WallTime when);
  void shows_target();
  void shows_something_else();
  void serves(std::int64_t gpus);
  void list_consumers(std::vector<std::string> names);
  void ran_for(Timer timer, Duration age) { ran.emplace_back(timer, age); }

  using Actions = std::vector<std::string>;
  const Step& take();
  // A step in short: row and phase, what it does and what it reports, as "C4 Restarting: delete old-plugin;
  // MIGEnabled".
  std::string look();
  // The actions in short: "out(Verified)" and "into(Superseded)" remove and write the change, "patch(Relabel)" does
  // neither; "delete old-plugin", "event Reason".
  Actions act();
  Actions reasons() const;  // What the last step reports.
  std::string said() const { return taken.plan.findings.front().why.message; }
  // The first write of the last step, an annotation that it sets, and the change that it writes.
  const PatchNode& patch() const { return std::get<PatchNode>(taken.plan.actions.front().action); }
  std::string annotated(std::string_view key) const { return patch().set_annotations.at(std::string(key)); }
  NodeChange written() const;

  Step taken;  // The last one.

  WallTime now = *k8s::parse_rfc3339("2026-03-02T10:00:00Z");
  World world;
  Node node;
  PluginInstallation installation;
  SharingPolicy policy;
  PlannerSettings settings;
  ProfileCache profiles;
  NodeAssessment facts;
  NodeChange change;
  std::list<Pod> pods;
  std::map<std::string, Component> components;
  Timers timers;
  std::map<std::string, NodeConsumers> consumers;
  std::vector<std::pair<Timer, Duration>> ran;
  bool first_look = false;
  std::optional<WallTime> released;
  std::chrono::milliseconds retargeted = std::chrono::seconds(2);  // Since when the node has its present target.
  std::optional<Reason> stop;
  std::optional<Reason> blocked_by_pods;
  std::optional<KaiHindrance> kai;
};

// The same node with an MPS profile, cordoned, and out of service for a minute.
class DisruptiveStep : public NodeStep {
 protected:
  DisruptiveStep();
};

}  // namespace gso
