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
    std::vector<Provider> out;
    for (const PluginInstallation& installation : found.of_nos) out.push_back(installation.provider);
    for (const PluginInstallation& installation : found.installations) out.push_back(installation.provider);
    return out;
  };
  EXPECT_THAT(providers(selector), ElementsAre(Provider::nos));
  EXPECT_THAT(providers(affinity("mps")), ElementsAre(Provider::nos));
  EXPECT_THAT(providers(affinity("mps, none")), ElementsAre(Provider::manifest));
  EXPECT_THAT(providers("spec: {"), ElementsAre(Provider::manifest));
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

constexpr std::string_view kOwn = "gpu-sharing-operator";

// The operator's ConfigMap with that record.
std::string record_map(const std::string& text) {
  return fmt::format(
      "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: gpu-sharing-operator-state, namespace: {}, "
      "managedFields: "
      "[]}}, data: {{baseline.json: {}}}}}\n",
      kOwn, nlohmann::json(text).dump());
}

// A record in which a machine runs the profiles of each namespace of `recorded`, and in which `chosen` was chosen.
std::string record(const std::set<std::string>& recorded, const std::set<std::string>& chosen,
                   const std::string& uid = "") {
  RecordHead head;
  head.record.recorded_at = *k8s::parse_rfc3339("2026-01-02T00:00:00Z");
  head.record.operand_namespaces = chosen;
  for (const std::string& ns : recorded) {
    MachineRecord entry;
    entry.config_map = k8s::Interned(ns + "/profiles");
    entry.key = k8s::Interned("any");
    entry.revision = k8s::Interned("v1-old");
    head.record.machines.set(machine_id(uid.empty() ? ns : uid), entry);
  }
  return record_map(print_head(head));
}

TEST(Discovery, TwoPluginsForANodeBlockItUnlessOneIsRecordedForIt) {
  const std::string both =
      plugin("aaa", "static", "", Profiles::managed) + plugin("bbb", "nvdp", "nvdp", Profiles::managed);
  const auto names_both = AllOf(HasSubstr("n1: "), HasSubstr("aaa/static, bbb/nvdp"));
  for (const std::string& beside : {std::string(), record({}, {"aaa", "bbb"})}) {
    const Planned planned(both + beside);
    EXPECT_TRUE(planned.is_blocked());
    EXPECT_THAT(planned.findings(kDevicePluginConflict), ElementsAre(names_both));
    EXPECT_EQ(planned.recorded_machines(), 0U);
  }
  for (const std::string ns : {"aaa", "bbb"}) {
    const Planned planned(both + record({ns}, {"aaa", "bbb"}, "n1"));
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

// --- Whose DaemonSets are believed: which namespaces are operand namespaces, and what is foreign.

constexpr std::string_view kPolicy =
    "---\n{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: cluster-policy, uid: the-policy}}\n";
constexpr std::string_view kPolicyThatGoes =
    "---\n{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: cluster-policy, uid: the-policy, "
    "deletionTimestamp: \"2026-01-02T00:00:00Z\"}}\n";

// A DaemonSet of that namespace. `owner`: the uid of the ClusterPolicy that it names as its controller; empty: none.
std::string daemonset(std::string_view ns, std::string_view owner = "",
                      std::string_view container = "nvidia-device-plugin", std::string_view more = "") {
  const std::string owners = owner.empty()
                                 ? ""
                                 : fmt::format(
                                       ", ownerReferences: [{{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: "
                                       "cluster-policy, uid: {}, controller: true}}]",
                                       owner);
  return fmt::format(
      "---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: d, namespace: {0}, uid: of-{0}{1}{3}}}, spec: "
      "{{template: {{spec: {{containers: [{{name: {2}, image: x}}]}}}}}}}}\n",
      ns, owners, container, more);
}

struct Believed {
  std::vector<std::string> namespaces;  // Without the operator's own.
  bool chosen = false;
  std::vector<std::string> foreign;
};

Believed believed(const std::string& manifests, const std::set<std::string>& setting = {}) {
  PlannerSettings settings;
  settings.operand_namespaces = setting;
  const auto loaded = load_manifests({{"cluster.yaml", manifests}}, WallTime{}, settings);
  EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
  const World& world = loaded->world;
  EXPECT_TRUE(world.operand_namespaces.contains(std::string(kOwn)));
  Believed out;
  for (const std::string& ns : world.operand_namespaces)
    if (ns != kOwn) out.namespaces.push_back(ns);
  out.chosen = world.operand_namespaces_chosen;
  for (const auto& [key, foreign] : world.foreign_daemonsets.all()) out.foreign.push_back(key.ns);
  std::ranges::sort(out.foreign);
  EXPECT_EQ(all_daemonsets(world).size(), world.daemonsets.size() + out.foreign.size());
  return out;
}

TEST(OperandNamespaces, AreThoseThatSomethingTrustedNames) {
  const std::string operators = std::string(kPolicy) + daemonset("gpu", "the-policy");
  const struct {
    std::string_view what;
    std::string manifests;
    std::set<std::string> setting;
    std::vector<std::string> namespaces;
  } rows[] = {
      {"the setting", daemonset("a") + daemonset("b"), {"a"}, {"a"}},
      {"the setting, before anything is there", "", {"a"}, {"a"}},
      {"the ClusterPolicy's", operators + daemonset("a"), {}, {"gpu"}},
      {"the ClusterPolicy's beside the setting", operators + daemonset("a"), {"a"}, {"a", "gpu"}},
      {"not those that name it with another uid", operators + daemonset("a", "another"), {}, {"gpu"}},
      {"not those of a ClusterPolicy that does not exist", daemonset("a", "the-policy"), {"b"}, {"b"}},
      {"not those of one that is being deleted",
       std::string(kPolicyThatGoes) + daemonset("a", "the-policy"),
       {"b"},
       {"b"}},
      {"not a DaemonSet that is being deleted",
       operators +
           daemonset("a", "the-policy", "nvidia-device-plugin", ", deletionTimestamp: \"2026-01-02T00:00:00Z\""),
       {},
       {"gpu"}},
      {"not another DaemonSet of the GPU Operator", operators + daemonset("a", "the-policy", "dcgm"), {}, {"gpu"}},
      {"those recorded for nodes", daemonset("a") + daemonset("b") + record({"b"}, {}), {}, {"b"}},
      {"those recorded for nodes beside the setting", daemonset("b") + record({"b"}, {}), {"a"}, {"a", "b"}},
      {"those chosen once", daemonset("a") + daemonset("b") + daemonset("c") + record({}, {"a", "b"}), {}, {"a", "b"}},
      {"not those chosen once where the setting says others", record({}, {"a", "b"}), {"c"}, {"c"}},
  };
  for (const auto& row : rows) {
    const Believed now = believed(row.manifests, row.setting);
    EXPECT_EQ(now.namespaces, row.namespaces) << row.what;
    EXPECT_FALSE(now.chosen) << row.what;
  }
}

TEST(OperandNamespaces, AreChosenOnceIfNothingNamesAny) {
  const Believed now =
      believed(daemonset("a") + daemonset("b", "", "gpu-feature-discovery") + daemonset("c", "", "web"));
  EXPECT_THAT(now.namespaces, ElementsAre("a", "b"));
  EXPECT_TRUE(now.chosen);
  EXPECT_THAT(now.foreign, ElementsAre("c"));
  const Believed nothing = believed(daemonset("c", "", "web"));
  EXPECT_THAT(nothing.namespaces, IsEmpty());
  EXPECT_FALSE(nothing.chosen);
}

TEST(OperandNamespaces, AreChosenFromAllThatWereSeenHoweverManyOneNamespaceHas) {
  SeenDaemonSets seen;
  World world;
  DaemonSet daemonset;
  daemonset.containers.resize(1);
  daemonset.containers[0].name = "nvidia-device-plugin";
  daemonset.meta.ns = k8s::Interned("a-team");
  for (std::size_t i = 0; i < SeenDaemonSets::kMost; ++i) {
    daemonset.meta.name = fmt::format("fake-{}", i);
    seen.add(daemonset, world);
  }
  daemonset.meta.ns = k8s::Interned("nvidia-device-plugin");
  seen.add(daemonset, world);
  OperandNamespaces().decide(world, PlannerSettings(), seen);
  EXPECT_THAT(world.operand_namespaces, ElementsAre("a-team", kOwn, "nvidia-device-plugin"));
  EXPECT_TRUE(world.operand_namespaces_chosen);
}

TEST(OperandNamespaces, OfARecordThatCannotBeReadAreNotChosenAnew) {
  const Believed now = believed(daemonset("a") + record_map("{"));
  EXPECT_THAT(now.namespaces, IsEmpty());
  EXPECT_FALSE(now.chosen);
  EXPECT_THAT(now.foreign, ElementsAre("a"));
}

TEST(OperandNamespaces, OfADaemonSetThereThatIsNoOperandOnlyTheNameIsKept) {
  const auto kept = [](std::string_view container) {
    const auto read = project_operand_daemonset(fmt::format(
        R"({{"kind":"DaemonSet","metadata":{{"name":"d","namespace":"gpu","uid":"u"}},"spec":{{"template":{{"spec":{{
        "containers":[{{"name":"{}","env":[{{"name":"X","value":"y"}}]}}]}}}}}}}})",
        container));
    EXPECT_TRUE(read.has_value());
    EXPECT_EQ(read->meta.name, "d");
    return read->containers.empty() ? 0U : read->containers.front().env.size();
  };
  EXPECT_EQ(kept("nvidia-device-plugin"), 1U);
  EXPECT_EQ(kept("dcgm-exporter"), 0U);
}

TEST(OperandNamespaces, OfManyDaemonSetsABoundedNumberIsKeptAndNothingOfTheirTemplates) {
  SeenDaemonSets seen;
  World world;
  DaemonSet daemonset;
  daemonset.containers.resize(2);
  daemonset.containers[0].env["X"] = std::string(1U << 20U, 'x');
  daemonset.containers[1].name = "nvidia-device-plugin";
  for (std::size_t i = 0; i < SeenDaemonSets::kMost + 3; ++i) {
    daemonset.meta.name = fmt::format("d{}", i);
    seen.add(daemonset, world);
  }
  EXPECT_EQ(seen.kept.size(), SeenDaemonSets::kMost);
  EXPECT_EQ(seen.beyond, 3U);
  ASSERT_EQ(seen.kept.front().containers.size(), 1U);
  EXPECT_EQ(seen.kept.front().containers.front().name, "nvidia-device-plugin");
  EXPECT_TRUE(seen.kept.front().containers.front().env.empty());
}

}  // namespace
}  // namespace gso::discovery_test
