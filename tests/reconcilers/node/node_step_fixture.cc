#include "tests/reconcilers/node/node_step_fixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

namespace gso {

NodeStep::NodeStep() {
  settings.clock_difference = {};  // One clock dates everything.
  using std::chrono::hours;
  using std::chrono::minutes;
  node.meta.name = "n1";
  node.meta.resource_version = "7";
  node.ready = true;
  installation.ns = "gpu-operator";
  installation.config_map = "mps-config";
  for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
    Operand operand;
    operand.component = component;
    operand.uid = std::string(to_string(component));
    installation.operands.push_back(operand);
  }
  policy.meta.name = "default";
  policy.rollout.verify_timeout = minutes(10);
  policy.rollout.idle_timeout = hours(1);
  facts.change = nullptr;
  facts.phase = Phase::draining;
  facts.policy = Interned("default");
  facts.key = Interned("any");
  facts.labeller = Labeller::gfd;
  facts.ready = true;
  aim_at(kFour);
  change.policy = "default";
  change.config_map = "gpu-operator/mps-config";
  change.key = "any";
  change.from = "v1-from";
  change.to = std::string(facts.target.view());
  change.kind = Transition::reshare;
  change.cause = ChangeCause::edited;
  change.begun = change.listed = now - minutes(1);
  change.served = true;
  change.touched = Touched::unknown;  // A pod that a test removes counts as deleted by the operator.
  change.pods = {{Component::plugin, {"old-plugin"}}, {Component::gfd, {"old-gfd"}}};
  add_pod("old-plugin", Component::plugin, now - hours(2));
  add_pod("old-gfd", Component::gfd, now - hours(2));
  ConfigMap config_map;
  config_map.meta.ns = Interned("gpu-operator");
  config_map.meta.name = "mps-config";
  config_map.data_changed = now - minutes(5);
  world.configmaps.apply(config_map);
}

void NodeStep::aim_at(std::string_view text) {
  facts.profile = profiles.compile(text);
  ASSERT_TRUE(facts.profile->valid) << facts.profile->error;
  facts.target = Interned(facts.profile->revision);
  facts.profile_ref = Interned("mps-config/any");
  auto expectation = std::make_shared<NodeExpectation>();
  expectation->capacity = {{"nvidia.com/gpu", 4}};
  facts.expectation = expectation;
}

Pod& NodeStep::add_pod(std::string uid, Component component, WallTime created) {
  Pod& pod = pods.emplace_back();
  pod.meta.ns = Interned("gpu-operator");
  pod.meta.name = uid;
  pod.meta.uid = uid;
  pod.meta.creation_timestamp = created;
  pod.phase = Interned("Running");
  pod.ready = true;
  components[uid] = component;
  return pod;
}

Pod& NodeStep::pod(const std::string& uid) {
  return *std::ranges::find_if(pods, [&](const Pod& p) { return p.meta.uid == uid; });
}

void NodeStep::remove(const std::string& uid) {
  std::erase_if(pods, [&](const Pod& p) { return p.meta.uid == uid; });
}

void NodeStep::replace_all() {
  for (const auto& [component, uids] : change.pods) {
    for (const k8s::Uid& uid : uids) remove(uid.str());
    add_pod("new-" + std::string(to_string(component)), component, now - std::chrono::seconds(30));
  }
}

void NodeStep::text_was_written(WallTime when) {
  ConfigMap edited = *world.configmaps.find(ObjectKey{"gpu-operator", "mps-config"});
  edited.data_changed = when;
  world.configmaps.apply(edited);
}

void NodeStep::shows_target() {
  facts.verified = {};
  facts.pods_ready = facts.fresh_pods = true;
  facts.verified.ok = facts.verified.serving = true;
}

void NodeStep::shows_something_else() {
  facts.pods_ready = true;
  facts.verified = {};
  facts.verified.mismatch = "nvidia.com/gpu: capacity 2, expected 4";
}

void NodeStep::serves(std::int64_t gpus) {
  node.allocatable[Interned("nvidia.com/gpu")] = node.capacity[Interned("nvidia.com/gpu")] = gpus;
}

void NodeStep::list_consumers(std::vector<std::string> names) {
  NodeConsumers& listed = consumers["n1"] = {};
  listed.listed_at = one_look(now);
  for (std::string& name : names) {
    Pod consumer;
    consumer.meta.ns = Interned("team");
    consumer.meta.name = std::move(name);
    consumer.phase = Interned("Running");
    consumer.gpu_requests[Interned("nvidia.com/gpu")] = 1;
    listed.pods.push_back(std::move(consumer));
  }
}

const Step& NodeStep::take() {
  facts.change = std::make_shared<const NodeChange>(change);
  node.meta.annotations.set(kChangeAnnotation, print_change(change));
  NodePods sorted;
  for (const Pod& p : pods) {
    auto& list = components.at(p.meta.uid) == Component::plugin ? sorted.plugin
                 : components.at(p.meta.uid) == Component::gfd  ? sorted.gfd
                                                                : sorted.mps;
    list.insert(list.begin(), &p);
  }
  for (const auto& [timer, age] : ran) {
    for (const TimerKey& key :
         {change_timer(Timer::draining, "n1", change), change_timer(Timer::verifying, "n1", change),
          TimerKey{Timer::verifying, "n1", change.to + "/in-part"}, change_timer(Timer::shown, "n1", change),
          change_timer(Timer::reloading, "n1", change), change_timer(Timer::unchanged, "n1", change),
          TimerKey{Timer::not_ready, "n1", change.to}}) {
      if (key.timer == timer) timers[key] = now - std::chrono::duration_cast<std::chrono::milliseconds>(age);
    }
  }
  facts.phase = phase_in_change(facts, sorted);
  timers[TimerKey{Timer::retargeting, "n1", std::string(facts.target.view())}] = now - retargeted;
  const Snapshot snapshot{world, now, timers, consumers, settings, nullptr, first_look};
  const NodeView view{snapshot, node, facts, installation, sorted};
  StepInput input{view, policy, profiles.by_revision(change.to), stop, blocked_by_pods, {}};
  if (kai) input.kai_hinders = [this] { return kai; };
  input.released = released;
  return taken = step(input);
}

std::string NodeStep::look() {
  constexpr const char* kRows[] = {"wait", "C1", "cordon", "C2", "C3",  "C4",  "C5",
                                   "C6",   "C7", "C8",     "C9", "C10", "C11", "C12"};
  const Actions actions = act();
  return fmt::format("{} {}{}{}{}{}", kRows[static_cast<int>(taken.row)], to_string(phase_of(facts)),
                     actions.empty() ? "" : ": ", fmt::join(actions, ", "), reasons().empty() ? "" : "; ",
                     fmt::join(reasons(), ", "));
}

NodeStep::Actions NodeStep::act() {
  take();
  Actions out;
  for (const PlannedAction& planned : taken.plan.actions) {
    if (const auto* gone = std::get_if<DeletePod>(&planned.action)) out.push_back("delete " + gone->uid);
    if (const auto* event = std::get_if<RecordEvent>(&planned.action)) out.push_back("event " + event->why.code);
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch == nullptr) continue;
    const char* how = patch->set_annotations.contains(std::string(kChangeAnnotation))      ? "into"
                      : patch->remove_annotations.contains(std::string(kChangeAnnotation)) ? "out"
                                                                                           : "patch";
    out.push_back(fmt::format("{}({}){}", how, planned.why.code,
                              patch->unschedulable ? *patch->unschedulable ? " cordon" : " uncordon" : ""));
  }
  return out;
}

NodeStep::Actions NodeStep::reasons() const {
  Actions out;
  for (const Finding& finding : taken.plan.findings) out.push_back(finding.why.code);
  return out;
}

NodeChange NodeStep::written() const {
  return parse_change(annotated(kChangeAnnotation)).value_or(NodeChange());
}

DisruptiveStep::DisruptiveStep() {
  using std::chrono::hours;
  using std::chrono::minutes;
  aim_at(kMpsFour);
  change.to = std::string(facts.target.view());
  change.kind = Transition::change_mps;
  change.cordoned = node.unschedulable = true;
  change.pods[Component::mps] = {"old-mps"};
  add_pod("old-mps", Component::mps, now - hours(2));
  ran_for(Timer::draining, minutes(1));
}

}  // namespace gso
