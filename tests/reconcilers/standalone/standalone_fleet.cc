#include "tests/reconcilers/standalone/standalone_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <variant>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"

namespace gso::test {

void StandaloneMps::begin(int nodes, const std::string& mode, const char* profile) {
  FleetSpec spec;
  spec.profiles = {{"any", profile}, {"mps", "mps-4"}};
  spec.nodes = alike_nodes(nodes);
  spec.crds = crds;
  for (NodeSpec& node : spec.nodes) {
    node.labels["team.example/mps"] = "true";
    node.gfd = !without_gfd;
    if (const auto other = products.find(node.name); other != products.end()) node.product = other->second;
  }
  fleet = std::make_unique<FleetModel>(spec);
  fleet->settings.cluster_max_unavailable = {1, false};
  mode_ = mode;
  put_daemonset();
  new_template("old");
  for (const NodeSpec& node : spec.nodes) make_pod(node.name);
  ASSERT_TRUE(fleet->settle());
}

void StandaloneMps::put_daemonset() {
  DaemonSet out;
  out.meta.ns = Interned(kDaemons.ns);
  out.meta.name = kDaemons.name;
  out.meta.uid = "ds-standalone";
  out.match_labels = {{"app.kubernetes.io/component", "standalone-mps"}};
  out.node_selector = {{"team.example/mps", "true"}};
  out.affinity_terms = {{{Interned(kMpsCapable), Interned("NotIn"), {Interned("true")}}}};
  out.on_delete = true;
  ContainerSpec container;
  container.name = "standalone-mps";
  container.command = {"mps-daemon", mode_};
  out.containers = {container};
  if (!approved.empty()) out.meta.annotations.set(kApprovedAnnotation, approved);
  fleet->world.daemonsets.apply(out);
}

void StandaloneMps::new_template(const std::string& hash) {
  hash_ = hash;
  ControllerRevision out;
  out.meta.ns = Interned(kDaemons.ns);
  out.meta.name = kDaemons.name + "-" + hash;
  out.meta.uid = "revision-" + hash;
  out.meta.creation_timestamp = fleet->now;
  out.meta.labels.set(kRevisionHashLabel, hash);
  out.meta.owners.push_back({Interned("DaemonSet"), Interned(kDaemons.name), Interned("ds-standalone"), true});
  out.revision = ++revisions_;
  fleet->world.revisions.apply(out);
}

void StandaloneMps::make_pod(const std::string& node) {
  Pod out;
  out.meta.ns = Interned(kDaemons.ns);
  out.meta.name = fmt::format("mps-{}-{}", node, ++pods_);
  out.meta.uid = "uid-" + out.meta.name;
  out.meta.creation_timestamp = fleet->now;
  out.meta.labels.set(kRevisionHashLabel, hash_);
  out.meta.owners.push_back({Interned("DaemonSet"), Interned(kDaemons.name), Interned("ds-standalone"), true});
  out.node_name = Interned(node);
  out.phase = Interned("Running");
  out.ready = !broken;
  ContainerStatus status;
  status.name = Interned("standalone-mps");
  status.ready = out.ready;
  status.running = true;
  out.containers = {status};
  if (!report.empty()) out.init_containers = {finished_check()};
  fleet->world.operand_pods.apply(out);
}

void StandaloneMps::use(const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) fleet->use(node, "trainer", std::string(kGpuResource), 1);
}

void StandaloneMps::begin_with_a_client(int nodes) {
  begin(nodes);
  use({"n01"});
  new_template("new");
}

void StandaloneMps::allow_all_at_once(int nodes) {
  fleet->settings.cluster_max_unavailable = fleet->settings.rollout.max_unavailable =
      fleet->settings.rollout.max_unavailable_per_group = {nodes, false};
}

ContainerStatus StandaloneMps::finished_check() const {
  ContainerStatus check;
  check.name = Interned(kStandaloneMpsCheck);
  check.ready = true;
  check.terminated = Rare(Termination{0, Interned("Completed"), Interned(report)});
  return check;
}

const Pod* StandaloneMps::pod_on(const std::string& node) const {
  for (const auto& [key, pod] : fleet->world.operand_pods.all())
    if (key.ns == kDaemons.ns && pod->node_name == node) return pod.get();
  return nullptr;
}

void StandaloneMps::set_ready(const std::string& node, bool ready) {
  Pod changed = *pod_on(node);
  changed.ready = ready;
  changed.containers.front().ready = ready;
  fleet->world.operand_pods.apply(changed);
}

std::string StandaloneMps::hash_on(const std::string& node) const {
  const Pod* pod = pod_on(node);
  return pod == nullptr ? "" : std::string(pod->meta.labels.get(kRevisionHashLabel).value_or(""));
}

int StandaloneMps::on(const std::string& hash) const {
  int out = 0;
  for (const auto& [key, pod] : fleet->world.operand_pods.all())
    out += key.ns == kDaemons.ns && pod->meta.labels.get(kRevisionHashLabel) == hash ? 1 : 0;
  return out;
}

int StandaloneMps::in_change() const {
  int out = 0;
  for (const auto& [key, node] : fleet->world.nodes.all()) out += mps_daemon_change_on(*node).change ? 1 : 0;
  return out;
}

std::string StandaloneMps::mark(const std::string& node) const {
  return fleet->annotation_of(node, kMpsDaemonChangeAnnotation);
}

void StandaloneMps::tick() {
  last = fleet->plan();
  if (fleet->on_plan) fleet->on_plan(last);
  for (const PlannedAction& planned : last.actions) {
    const auto* deleted = std::get_if<DeletePod>(&planned.action);
    if (deleted == nullptr || deleted->pod.ns != kDaemons.ns) {
      fleet->apply(planned);
      continue;
    }
    const Pod* pod = fleet->world.operand_pods.find(deleted->pod);
    ASSERT_NE(pod, nullptr);
    ASSERT_EQ(pod->meta.uid, deleted->uid);
    const std::string node(pod->node_name.view());
    EXPECT_TRUE(fleet->consumers[node].pods.empty() || interrupts) << "clients of " << node << " were not drained";
    fleet->world.operand_pods.erase(deleted->pod);
    make_pod(node);
  }
  fleet->advance(1s);
  most_in_change = std::max(most_in_change, in_change());
}

void StandaloneMps::run(Duration span) {
  const WallTime end = fleet->now + std::chrono::ceil<std::chrono::milliseconds>(span);
  while (fleet->now < end) tick();
}

std::string StandaloneMps::finding(std::string_view reason) const {
  for (const Finding& found : last.findings)
    if (found.why.code == reason) return found.object.name + ": " + found.why.message;
  return {};
}

}  // namespace gso::test
