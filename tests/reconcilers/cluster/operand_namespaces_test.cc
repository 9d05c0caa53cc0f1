// Whose DaemonSets are believed: which namespaces are operand namespaces, and what is foreign.
#include "reconcilers/cluster/discovery.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/cluster/record_store.h"

namespace gso::operand_namespaces_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kOwn = "gpu-sharing-operator";
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

// A record in which machines run the profiles of `recorded`, and in which `chosen` was chosen.
std::string record(const std::set<std::string>& recorded, const std::set<std::string>& chosen) {
  RecordHead head;
  head.record.operand_namespaces = chosen;
  for (const std::string& ns : recorded) {
    MachineRecord entry;
    entry.config_map = k8s::Interned(ns + "/profiles");
    entry.revision = k8s::Interned("v1-a");
    head.record.machines.set(machine_id(ns), entry);
  }
  return fmt::format(
      "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: gpu-sharing-operator-state, namespace: {}}}, data: "
      "{{baseline.json: {}}}}}\n",
      kOwn, nlohmann::json(print_head(head)).dump());
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
  const std::string broken = fmt::format(
      "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: gpu-sharing-operator-state, namespace: {}}}, data: "
      "{{baseline.json: \"{{\"}}}}\n",
      kOwn);
  const Believed now = believed(daemonset("a") + broken);
  EXPECT_THAT(now.namespaces, IsEmpty());
  EXPECT_FALSE(now.chosen);
  EXPECT_THAT(now.foreign, ElementsAre("a"));
}

TEST(OperandNamespaces, OfADaemonSetThereThatIsNoOperandOnlyTheNameIsKept) {
  const auto kept = [](std::string_view container) {
    const auto daemonset = project_operand_daemonset(fmt::format(
        R"({{"kind":"DaemonSet","metadata":{{"name":"d","namespace":"gpu","uid":"u"}},"spec":{{"template":{{"spec":{{
        "containers":[{{"name":"{}","env":[{{"name":"X","value":"y"}}]}}]}}}}}}}})",
        container));
    EXPECT_TRUE(daemonset.has_value());
    EXPECT_EQ(daemonset->meta.name, "d");
    return daemonset->containers.empty() ? 0U : daemonset->containers.front().env.size();
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
}  // namespace gso::operand_namespaces_test
