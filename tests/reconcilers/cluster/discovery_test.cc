// Which device plugin governs a node, and the findings about plugins that the operator does not manage.
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/registry.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"

namespace gso::discovery_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

enum class Profiles { none, managed, own_file };

// A device plugin for every node. `release`: empty for a static manifest, "operator" for the GPU Operator's.
std::string plugin(const std::string& ns, const std::string& name, const std::string& release, Profiles profiles) {
  const std::string owner =
      release == "operator"
          ? ", ownerReferences: [{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: cluster-policy, uid: p, "
            "controller: true}]"
      : release.empty() ? ""
                        : fmt::format(", labels: {{app.kubernetes.io/instance: {}}}", release);
  const std::string sidecar =
      profiles != Profiles::managed
          ? ""
          : "      - {name: config-manager, image: x, env: [{name: DEFAULT_CONFIG, value: any}, {name: "
            "CONFIG_FILE_SRCDIR, "
            "value: /available-configs}], volumeMounts: [{name: config, mountPath: /available-configs}]}\n";
  const std::string file = profiles == Profiles::own_file
                               ? ", args: [\"--config-file=/etc/plugin/config.yaml\"], volumeMounts: [{name: config, "
                                 "mountPath: /etc/plugin}]"
                               : "";
  return fmt::format(R"(---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {1}, namespace: {0}, uid: "uid-{0}-{1}"{2}}}
spec:
  selector: {{matchLabels: {{app: {1}}}}}
  template:
    metadata: {{labels: {{app: {1}}}}}
    spec:
      containers:
      - {{name: nvidia-device-plugin-ctr, image: "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"{3}}}
{4}      volumes: [{{name: config, configMap: {{name: profiles}}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: profiles, namespace: {0}, managedFields: []}}
data: {{any: "version: v1"}}
)",
                     ns, name, owner, file, sidecar);
}

constexpr const char* kNode = R"(---
apiVersion: v1
kind: Node
metadata: {name: n1, uid: n1, labels: {nvidia.com/gpu.present: "true", nvidia.com/gpu.count: "2"}}
spec: {taints: [{key: maintenance, value: "true", effect: EFFECT}]}
status: {capacity: {nvidia.com/gpu: "2"}, allocatable: {nvidia.com/gpu: "2"}, conditions: [{type: Ready, status: "True"}]}
)";

class Planned {
 public:
  // `taint`: the effect of a taint that the plugins do not tolerate.
  explicit Planned(const std::string& manifests, const std::string& taint = "PreferNoSchedule") {
    const WallTime now = *k8s::parse_rfc3339("2026-01-03T00:00:00Z");
    std::string node = kNode;
    node.replace(node.find("EFFECT"), 6, taint);
    auto loaded = load_manifests({{"cluster.yaml", manifests + node}}, now);
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
    loaded_ = std::make_unique<LoadedManifests>(*std::move(loaded));
    index_.note_everything_changed();
    plan_ = plan_all({loaded_->world, now, observed_, loaded_->consumers, settings_}, index_);
  }
  [[nodiscard]] std::string governed_by() const {
    const NodeAssessment* a = index_.assessment("n1");
    return a == nullptr ? "nobody" : index_.installations()[a->installation].operands.front().key.ns;
  }
  [[nodiscard]] bool is_blocked() const { return index_.assessment("n1")->obstacle.code == kDevicePluginConflict; }
  // Machines in the record that the plan writes.
  [[nodiscard]] std::size_t recorded_machines() const {
    std::size_t out = 0;
    for (const PlannedAction& planned : plan_.actions) {
      const auto* write = std::get_if<WriteConfigMap>(&planned.action);
      if (write == nullptr || !write->set.contains(std::string(kRecordKey))) continue;
      const auto head = parse_head(write->set.at(std::string(kRecordKey)));
      EXPECT_TRUE(head.has_value());
      if (head) out += head->record.machines.size();
    }
    return out;
  }
  [[nodiscard]] std::vector<std::string> findings(std::string_view reason) const {
    std::vector<std::string> out;
    for (const Finding& finding : plan_.findings)
      if (finding.why.code == reason) out.push_back(finding.object.name + ": " + finding.why.message);
    return out;
  }

 private:
  std::unique_ptr<LoadedManifests> loaded_;
  Timers observed_;
  PlannerSettings settings_;
  FleetIndex index_;
  Plan plan_;
};

// Which one stands for a node that several claim: in statuses alone, because the node is Blocked.
TEST(Discovery, TheGPUOperatorsPluginIsShownThenOneWithProfilesThenTheFirstByName) {
  const std::string of_operator =
      plugin("gpu-operator", "nvidia-device-plugin-daemonset", "operator", Profiles::managed);
  const std::string bare = plugin("aaa", "static", "", Profiles::none);
  const std::string chart = plugin("bbb", "nvdp", "nvdp", Profiles::managed);
  const std::string other = plugin("ccc", "nvdp", "nvdp", Profiles::managed);
  EXPECT_EQ(Planned(bare + of_operator).governed_by(), "gpu-operator");
  EXPECT_EQ(Planned(chart + of_operator).governed_by(), "gpu-operator");
  EXPECT_EQ(Planned(bare + chart).governed_by(), "bbb");
  EXPECT_EQ(Planned(other + chart).governed_by(), "bbb");
}

Node labelled_node(const std::map<std::string, std::string>& labels) {
  Node node;
  for (const auto& [key, value] : labels) node.meta.labels.set(key, value);
  return node;
}

TEST(Discovery, ANodeIsOfNosByThePresentNameOfItsLabelAndByTheOldOneAlone) {
  const std::string present = "nos.nebuly.com/gpu-partitioning";
  const std::string old = "nos.nebuly.ai/gpu-partitioning";
  const struct {
    std::map<std::string, std::string> labels;
    std::string said_by;  // Empty: nos does not partition the node.
  } cases[] = {
      {{}, ""},
      {{{present, "mps"}}, present + "=mps"},
      {{{old, "mps"}}, old + "=mps"},
      {{{present, "mps"}, {old, "mig"}}, present + "=mps"},
      {{{present, "mig"}, {old, "mps"}}, ""},
      {{{present, "mig"}}, ""},
      {{{present, ""}}, ""},
      {{{"nos.nebuly.com/capacity", "mps"}}, ""},
  };
  for (const auto& c : cases) {
    const Node node = labelled_node(c.labels);
    EXPECT_EQ(nos_label(node), c.said_by);
    EXPECT_EQ(is_partitioned_by_nos(node), !c.said_by.empty()) << c.said_by;
  }
}

TEST(Discovery, TheDevicePluginOfNosIsAProviderOfItsOwn) {
  const std::string selector = "spec: {nodeSelector: {nos.nebuly.com/gpu-partitioning: mps}, ";
  const auto affinity = [](const std::string& values) {
    return "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
           "[{matchExpressions: [{key: nos.nebuly.com/gpu-partitioning, operator: In, values: [" +
           values + "]}]}]}}}, ";
  };
  const auto providers = [](const std::string& head) {
    const std::string daemonset =
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: fork, namespace: nebuly-nvidia, uid: f}\nspec: "
        "{selector: {matchLabels: {app: fork}}, template: {metadata: {labels: {app: fork}}, " +
        head +
        "containers: [{name: nvidia-device-plugin-ctr, image: 'ghcr.io/nebuly-ai/k8s-device-plugin:0.13.0'}]}}}\n";
    auto loaded = load_manifests({{"nos.yaml", daemonset}}, WallTime{});
    EXPECT_TRUE(loaded.has_value());
    const Discovery found = discover(loaded->world);
    std::vector<std::string_view> out;
    for (const PluginInstallation& installation : found.of_nos) out.push_back(to_string(installation.provider));
    for (const PluginInstallation& installation : found.installations) out.push_back(to_string(installation.provider));
    return out;
  };
  EXPECT_THAT(providers(selector), ElementsAre("Nos"));
  EXPECT_THAT(providers(affinity("mps")), ElementsAre("Nos"));
  EXPECT_THAT(providers(affinity("mps, none")), ElementsAre("Manifest"));
  EXPECT_THAT(providers("spec: {"), ElementsAre("Manifest"));
}

TEST(Discovery, ATaintedNodeStaysInSightForAsLongAsThePluginsPodRunsThere) {
  const std::string chart = plugin("bbb", "nvdp", "nvdp", Profiles::managed);
  const auto pod = [](std::string_view phase) {
    return fmt::format(R"(---
apiVersion: v1
kind: Pod
metadata:
  name: nvdp-1
  namespace: bbb
  uid: pod-1
  ownerReferences: [{{apiVersion: apps/v1, kind: DaemonSet, name: nvdp, uid: uid-bbb-nvdp, controller: true}}]
spec: {{nodeName: n1, containers: [{{name: nvidia-device-plugin-ctr, image: x}}]}}
status: {{phase: {}, conditions: [{{type: Ready, status: "True"}}]}}
)",
                       phase);
  };
  for (const char* effect : {"NoSchedule", "NoExecute"}) {
    EXPECT_EQ(Planned(chart + pod("Running"), effect).governed_by(), "bbb") << effect;
    EXPECT_EQ(Planned(chart + pod("Failed"), effect).governed_by(), "nobody") << effect;
    EXPECT_EQ(Planned(chart, effect).governed_by(), "nobody") << effect;
  }
  EXPECT_EQ(Planned(chart, "PreferNoSchedule").governed_by(), "bbb");
}

// A record in which n1 runs the profiles of that namespace; empty: a record without n1.
std::string record_with(const std::string& ns) {
  FleetRecord record;
  record.recorded_at = *k8s::parse_rfc3339("2026-01-02T00:00:00Z");
  record.operand_namespaces = {"aaa", "bbb"};
  MachineRecord entry;
  entry.config_map = k8s::Interned(ns + "/profiles");
  entry.key = k8s::Interned("any");
  entry.revision = k8s::Interned("v1-old");
  if (!ns.empty()) record.machines.set(machine_id("n1"), entry);
  RecordHead head;
  head.record = record;
  return fmt::format(R"(---
apiVersion: v1
kind: ConfigMap
metadata: {{name: gpu-sharing-operator-state, namespace: gpu-sharing-operator, managedFields: []}}
data: {{baseline.json: {}}}
)",
                     nlohmann::json(print_head(head)).dump());
}

TEST(Discovery, TwoPluginsForANodeBlockItUnlessOneIsRecordedForIt) {
  const std::string both =
      plugin("aaa", "static", "", Profiles::managed) + plugin("bbb", "nvdp", "nvdp", Profiles::managed);
  const auto names_both = AllOf(HasSubstr("n1: "), HasSubstr("aaa/static, bbb/nvdp"));
  for (const std::string& record : {std::string(), record_with("")}) {
    const Planned planned(both + record);
    EXPECT_TRUE(planned.is_blocked());
    EXPECT_THAT(planned.findings(kDevicePluginConflict), ElementsAre(names_both));
    EXPECT_EQ(planned.recorded_machines(), 0U);
  }
  for (const std::string ns : {"aaa", "bbb"}) {
    const Planned planned(both + record_with(ns));
    EXPECT_EQ(planned.governed_by(), ns);
    EXPECT_FALSE(planned.is_blocked());
    EXPECT_THAT(planned.findings(kDevicePluginConflict), ElementsAre(HasSubstr("is recorded for the node")));
  }
  const Planned one(plugin("aaa", "static", "", Profiles::managed));
  EXPECT_FALSE(one.is_blocked());
  EXPECT_THAT(one.findings(kDevicePluginConflict), IsEmpty());
}

TEST(Discovery, APluginThatIsBeingDeletedClaimsNoNode) {
  std::string going = plugin("aaa", "static", "", Profiles::managed);
  going.replace(going.find("{name: static"), 13,
                "{deletionTimestamp: \"2026-01-02T00:00:00Z\", finalizers: [a/b], name: static");
  EXPECT_EQ(Planned(going + plugin("bbb", "nvdp", "nvdp", Profiles::managed)).governed_by(), "bbb");
  EXPECT_EQ(Planned(going).governed_by(), "nobody");
}

TEST(Discovery, APluginThatReadsItsOwnFileIsNamedAsNotManaged) {
  EXPECT_THAT(Planned(plugin("kube-system", "static", "", Profiles::own_file)).findings(kConfigNotManaged),
              ElementsAre(AllOf(HasSubstr("static: "), HasSubstr("/etc/plugin/config.yaml"),
                                HasSubstr("ConfigMap kube-system/profiles"), HasSubstr("not rolled out"))));
  EXPECT_THAT(Planned(plugin("kube-system", "static", "", Profiles::none)).findings(kConfigNotManaged), IsEmpty());
  EXPECT_THAT(Planned(plugin("kube-system", "nvdp", "nvdp", Profiles::managed)).findings(kConfigNotManaged), IsEmpty());
}

}  // namespace
}  // namespace gso::discovery_test
