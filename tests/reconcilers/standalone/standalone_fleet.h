// A fleet with the chart's DaemonSet of standalone MPS daemons beside its device plugin, and what that DaemonSet's
// controller does with a plan.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/mps_pipe_directory.h"
#include "reconcilers/node/mps_daemon_change.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

using namespace std::chrono_literals;
using k8s::Interned;

inline const ObjectKey kDaemons{"gpu-sharing-operator", "gpu-sharing-operator-mps"};

// A fleet whose device plugin shares nothing, and the chart's DaemonSet beside it.
class StandaloneMps : public ::testing::Test {
 protected:
  void begin(int nodes, const std::string& mode = "run", const char* profile = "none") {
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

  void put_daemonset() {
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

  void new_template(const std::string& hash) {
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

  void make_pod(const std::string& node) {
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

  [[nodiscard]] ContainerStatus finished_check() const {
    ContainerStatus check;
    check.name = Interned(kStandaloneMpsCheck);
    check.ready = true;
    check.terminated = Rare(Termination{0, Interned("Completed"), Interned(report)});
    return check;
  }

  [[nodiscard]] const Pod* pod_on(const std::string& node) const {
    for (const auto& [key, pod] : fleet->world.operand_pods.all()) {
      if (key.ns == kDaemons.ns && pod->node_name == node) return pod.get();
    }
    return nullptr;
  }
  void set_ready(const std::string& node, bool ready) {
    Pod changed = *pod_on(node);
    changed.ready = ready;
    changed.containers.front().ready = ready;
    fleet->world.operand_pods.apply(changed);
  }
  [[nodiscard]] std::string hash_on(const std::string& node) const {
    const Pod* pod = pod_on(node);
    return pod == nullptr ? "" : std::string(pod->meta.labels.get(kRevisionHashLabel).value_or(""));
  }
  [[nodiscard]] int on(const std::string& hash) const {
    int out = 0;
    for (const auto& [key, pod] : fleet->world.operand_pods.all()) {
      out += key.ns == kDaemons.ns && pod->meta.labels.get(kRevisionHashLabel) == hash ? 1 : 0;
    }
    return out;
  }
  [[nodiscard]] int in_change() const {
    int out = 0;
    for (const auto& [key, node] : fleet->world.nodes.all()) out += mps_daemon_change_on(*node).change ? 1 : 0;
    return out;
  }
  [[nodiscard]] std::string mark(const std::string& node) const {
    return fleet->annotation_of(node, kMpsDaemonChangeAnnotation);
  }

  // One second: what is planned is done, and the DaemonSet's controller replaces pods that are deleted.
  void tick() {
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
  void run(Duration span) {
    const WallTime end = fleet->now + std::chrono::ceil<std::chrono::milliseconds>(span);
    while (fleet->now < end) tick();
  }
  [[nodiscard]] std::string finding(std::string_view reason) const {
    for (const Finding& found : last.findings) {
      if (found.reason == reason) return found.object.name + ": " + found.message;
    }
    return {};
  }

  std::unique_ptr<FleetModel> fleet;
  Plan last;
  std::string approved;
  std::string report;                           // The termination message of new pods' init containers; empty: none.
  std::map<std::string, std::string> products;  // Of nodes with another one.
  bool crds = false;                            // Else the settings are the policy.
  bool without_gfd = false;
  bool broken = false;  // New pods do not become Ready.
  bool interrupts = false;
  int most_in_change = 0;

 private:
  std::string mode_;
  std::string hash_;
  std::int64_t revisions_ = 0;
  int pods_ = 0;
};

}  // namespace gso::test
