// Lint of SharingPolicies: field by field, and against the CRD; and of ClusterPolicies.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/lint/checks.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/yaml_node.h"
#include "tests/reconcilers/lint/linted.h"
#include "tests/reconcilers/source_files.h"

namespace gso::lint_policies_test {
namespace {

using namespace lint_test;

std::string policy(const std::string& spec) {
  return "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\nspec: {" + spec + "}\n";
}

TEST(LintPolicies, AWrongKindOfValueIsNamed) {
  EXPECT_EQ(first_message(policy("rollout: {maxUnavailable: '10'}")),
            "a count must have no quotes: write 10, or a percentage such as \"10%\"");
  EXPECT_TRUE(first_message(policy("profile: {configMapKey: {key: slices}}"))
                  .starts_with("expected a string, the name of a key"));
}

// Regression: only the dropped field was reported, as a warning, and the policy would have governed every node.
TEST(LintPolicies, ASelectorThatIsEmptyAfterTheDropSelectsEveryNode) {
  const auto last = [](const std::string& selector) {
    return lint(policy("nodeSelector: {" + selector + "}"))[0].diagnostics.back();
  };
  const Diagnostic label = last("nvidia.com/gpu.family: turing");
  EXPECT_EQ(label.path, "spec.nodeSelector");
  EXPECT_EQ(label.severity, Diagnostic::Severity::error);
  EXPECT_TRUE(label.message.contains("would select every node; write matchLabels: {nvidia.com/gpu.family: turing}"))
      << label.message;
  EXPECT_TRUE(last("matchlabels: {pool: a}").message.contains("write matchLabels: {LABEL: VALUE}"));
}

TEST(LintPolicies, PoliciesAreCheckedFieldByField) {
  const std::pair<Codes, std::vector<std::string>> table[] = {
      {{},
       {"",
        "mode: Observe, takeover: true, priority: -5, nodeSelector: {matchLabels: {a: b}}",
        "profile: {configMapKey: mps-4}",
        "profile: {inline: {strategy: mps, replicas: 8}}",
        "rollout: {maxUnavailable: 25%, maxUnavailablePerGroup: 3}",
        "rollout: {idleTimeout: 720h}",
        "rollout: {workloads: Evict}",
        "rollout: {mechanism: DaemonSetRestart, workloads: Interrupt, canary: {nodesPerGroup: 0}}",
        "deletionPolicy: Revert, revisionHistoryLimit: 3",
        "profile: {inline: {strategy: time-slicing, replicas: 10000}}",
        "profile: {inline: {strategy: none, renameByDefault: false}}",
        "profile: {inline: {strategy: time-slicing, replicas: 4, resource: nvidia.com/mig-1g.5gb}}",
        "rollout: {verifyTimeout: 1.5h}",
        "rollout: {maintenanceWindows: [{cron: 0 0 29 2 *, duration: 4h}]}",
        "nodeSelector: {matchLabels: {nvidia.com/device-plugin.config: a}}",
        "nodeSelector: {matchLabels: {nvidia.com/device-plugin.config: a}}, profile: {configMapKey: a}",
        "nodeSelector: {matchLabels: {nvidia.com/gpu.product: Tesla-T4}}",
        "rollout: {maintenanceWindows: [{cron: 0 2 * * SAT, duration: 4h, timeZone: Europe/Berlin}]}",
        "nodeSelector: {}",
        "nodeSelector: {matchLabels: {}}",
        "nodeSelector: {matchExpressions: [{key: a, operator: DoesNotExist, values: []}]}",
        "nodeSelector: {matchLabels: {pool: ''}}",
        "nodeSelector: {matchExpressions: [{key: nvidia.com/gpu.count, operator: Exists}]}"}},
      {{"ProfileNotUnique"}, {"profile: {}", "profile: {configMapKey: a, inline: {strategy: none}}"}},
      {{"KeyNoLabelValue"}, {"profile: {configMapKey: 'not a label'}"}},
      {{"OutOfRange"},
       {"profile: {inline: {strategy: mps, replicas: 49}}", "rollout: {maxUnavailable: 0}",
        "rollout: {maxUnavailable: 101%}", "rollout: {maxUnavailable: '3'}", "rollout: {idleTimeout: 0s}",
        "rollout: {verifyTimeout: 999ms}", "rollout: {verifyTimeout: 24h1ns}",
        "rollout: {canary: {nodesPerGroup: -1, soak: 2m}}",
        "profile: {inline: {strategy: time-slicing, replicas: 10001}}", "revisionHistoryLimit: -1"}},
      {{"ReplicasMissing"}, {"profile: {inline: {strategy: time-slicing}}"}},
      {{"UnknownValue"},
       {"profile: {inline: {strategy: timeslicing, replicas: 4}}", "mode: enforce",
        "nodeSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}",
        "nodeSelector: {matchExpressions: [{key: a, operator: in, values: [b]}]}"}},
      {{"InvalidDuration"},
       {"rollout: {idleTimeout: 1d}", "rollout: {verifyTimeout: 90}", "rollout: {verifyTimeout: .5h}",
        "rollout: {verifyTimeout: 1h30\u00b5s}", "rollout: {verifyTimeout: 1.s}"}},
      {{"EvictNeedsCordon"}, {"rollout: {workloads: Evict, cordon: false}"}},
      {{"DaemonSetRestartInterrupts", "DaemonSetRestartHasNoCanary"}, {"rollout: {mechanism: DaemonSetRestart}"}},
      {{"DaemonSetRestartPauses"},
       {"rollout: {mechanism: DaemonSetRestart, workloads: Interrupt, canary: {nodesPerGroup: 0}, onFailure: "
        "Rollback}"}},
      {{"StrategyMissing"}, {"profile: {inline: {replicas: 4}}"}},
      {{"NothingShared"},
       {"profile: {inline: {strategy: none, renameByDefault: true}}",
        "profile: {inline: {strategy: none, replicas: 4}}"}},
      {{"NameInvalid"},
       {"profile: {inline: {strategy: time-slicing, replicas: 4, resource: gpu}}",
        "profile: {inline: {strategy: time-slicing, replicas: 4, resource: amd.com/gpu}}"}},
      {{"InvalidWindow"},
       {"rollout: {maintenanceWindows: [{cron: 0 2 * * *, duration: 30s}]}",
        "rollout: {maintenanceWindows: [{cron: 0 2 * *, duration: 4h}]}",
        "rollout: {maintenanceWindows: [{cron: 0 2 * * *, duration: 4h, timeZone: Berlin}]}",
        "rollout: {maintenanceWindows: [{cron: 0 2 * * *, duration: 200h}]}"}},
      {{"WindowNeverOpens"}, {"rollout: {maintenanceWindows: [{cron: 0 0 31 2 *, duration: 4h}]}"}},
      {{"MPSSharesGPUsOnly"}, {"profile: {inline: {strategy: mps, replicas: 4, resource: nvidia.com/mig-1g.5gb}}"}},
      {{"SelectorOnSharingLabel"},
       {"nodeSelector: {matchLabels: {nvidia.com/gpu.replicas: '1'}}",
        "nodeSelector: {matchLabels: {nvidia.com/mig-1g.5gb.sharing-strategy: none}}",
        "nodeSelector: {matchExpressions: [{key: nvidia.com/mps.capable, operator: DoesNotExist}]}",
        "nodeSelector: {matchLabels: {gpusharing.dev/state: Failed}}",
        "nodeSelector: {matchLabels: {gpusharing.dev/mps-pipe-directory: mps}}",
        "nodeSelector: {matchLabels: {nvidia.com/device-plugin.config: a}}, profile: {configMapKey: b}"}},
      {{"SharedSuffixIgnored"},
       {"nodeSelector: {matchLabels: {nvidia.com/gpu.product: Tesla-T4-SHARED}}",
        "nodeSelector: {matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [A, A-SHARED]}]}",
        "nodeSelector: {matchExpressions: [{key: nvidia.com/gpu.product, operator: NotIn, values: [A-SHARED]}]}"}},
      {{"UnknownField"},
       {"rollout: {maintenanceWindows: [{cron: 0 2 * * *, duration: 4h, zone: UTC}]}", "rollout: {maxFailure: 3}",
        "nodeSelector: {matchLabels: {any: thing}, matchExpressions: [{key: a, operator: Exists, op: In}]}",
        "nodeSelector: {pool: a, matchLabels: {pool: b}}"}},
      {{"WrongType"},
       {"rollout: {maintenanceWindows: 2h}", "nodeSelector: {matchExpressions: [{key: a, operator: In, values: b}]}",
        "nodeSelector: {matchExpressions: [{key: a, operator: In, values: [5]}]}",
        "nodeSelector: {matchExpressions: {key: a, operator: Exists}}", "nodeSelector: {matchExpressions: [a]}",
        "nodeSelector: {matchLabels: [a]}", "nodeSelector: {matchLabels: {pool: 5}}", "rollout: 4"}},
      {{"DaemonSetRestartHasNoCanary"},
       {"rollout: {mechanism: DaemonSetRestart, workloads: Interrupt, canary: {nodesPerGroup: 1}}"}},
      {{"UnknownField", "SelectorInvalid"},
       {"nodeSelector: {nvidia.com/gpu.family: turing}", "nodeSelector: {matchlabels: {pool: a}}"}},
      {{"SelectorInvalid"},
       {"nodeSelector: {matchExpressions: [{key: a, operator: In}]}",
        "nodeSelector: {matchExpressions: [{key: a, operator: NotIn, values: []}]}",
        "nodeSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}",
        "nodeSelector: {matchExpressions: [{operator: Exists}]}", "nodeSelector: {matchExpressions: [{key: a}]}",
        "nodeSelector: {matchExpressions: [{key: '', operator: Exists}]}",
        "nodeSelector: {matchExpressions: [{key: a b, operator: Exists}]}",
        "nodeSelector: {matchExpressions: [{key: example.com/a, operator: In, values: [b, 'c d']}]}",
        "nodeSelector: {matchLabels: {pool: a b}}", "nodeSelector: {matchLabels: {-pool: a}}"}},
      {{"SelectorOnGPUCount"},
       {"nodeSelector: {matchLabels: {nvidia.com/gpu.count: '8'}}",
        "nodeSelector: {matchExpressions: [{key: nvidia.com/gpu.count, operator: NotIn, values: ['8']}]}"}},
      {{"UnknownField", "UnknownField"}, {"rollout: {canary: {Soak: 1m}}, modes: Observe"}},
  };
  for (const auto& [expected, specs] : table)
    for (const std::string& spec : specs) EXPECT_EQ(codes(lint(policy(spec))[0]), expected) << spec;
}

// `diff -f` says who refuses a policy.
TEST(LintPolicies, ErrorsThatTheSchemaOfTheCrdDoesNotContainAreCounted) {
  const struct {
    const char* selector;
    std::size_t left;
    Codes codes;
  } rows[] = {
      {"{}", 0, {}},
      {"{matchlabels: {pool: a}}", 0, {"UnknownField", "SelectorInvalid"}},
      {"{matchExpressions: [{key: a, operator: In}]}", 0, {"SelectorInvalid"}},
      {"{matchLabels: {pool: 5}}", 0, {"WrongType"}},
      {"{matchLabels: {pool: a b}}", 1, {"SelectorInvalid"}},
      {"{matchLabels: {-pool: a}}", 1, {"SelectorInvalid"}},
      {"{matchLabels: {-pool: a b}}", 2, {"SelectorInvalid", "SelectorInvalid"}},
      {"{matchLabels: {-pool: 5}}", 1, {"SelectorInvalid", "WrongType"}},
      {"{matchExpressions: [{key: a b, operator: Exists}]}", 1, {"SelectorInvalid"}},
      {"{matchExpressions: [{key: a b, operator: In}]}", 1, {"SelectorInvalid", "SelectorInvalid"}},
      {"{matchLabels: {nvidia.com/gpu.sharing-strategy: mps}}", 1, {"SelectorOnSharingLabel"}},
  };
  for (const auto& row : rows) {
    const LintedDocument linted = lint(policy(std::string("nodeSelector: ") + row.selector))[0];
    EXPECT_EQ(codes(linted), row.codes) << row.selector;
    EXPECT_EQ(linted.left_to_operator, row.left) << row.selector;
  }
}

TEST(LintPolicies, WhatSurroundsTheSpecIsCheckedAsTheApiServerDoes) {
  const std::string of = "kind: SharingPolicy\nspec: {}\napiVersion: gpusharing.dev/";
  EXPECT_EQ(codes_of(of + "v1alpha1\nmetadata: {name: p}\n"), Codes{});
  EXPECT_EQ(codes_of(of + "v1alpha1\nmetadata: {generateName: p-}\n"), Codes{});
  EXPECT_EQ(codes_of(of + "v1\nmetadata: {name: p}\n"), Codes{"UnknownValue"});
  EXPECT_EQ(codes_of(of + "v1alpha1\nmetadata: {name: p}\nspce: {}\n"), Codes{"UnknownField"});
}

// A property of the CRD, as lint calls it, and the words that it may be.
struct CrdField {
  std::string path;
  std::vector<std::string> words;
};

void schema_fields(const DocumentValue& schema, const std::string& path, std::vector<CrdField>& out) {
  const DocumentValue* properties = schema.find("properties");
  for (std::size_t i = 0; properties != nullptr && i < properties->members.size(); ++i) {
    const DocumentMember& property = properties->members[i];
    CrdField& field = out.emplace_back(CrdField{path + property.key, {}});
    if (const DocumentValue* words = property.value.find("enum"); words != nullptr)
      for (const DocumentValue& word : words->items) field.words.push_back(word.text);
    schema_fields(property.value, path + property.key + ".", out);
    if (const DocumentValue* items = property.value.find("items"); items != nullptr)
      schema_fields(*items, path + property.key + "[].", out);
  }
}

std::vector<CrdField> crd_fields() {
  const std::string text = testing::read_file(testing::source_dir() / "crds/gpusharing.dev_sharingpolicies.yaml");
  YamlStream stream(text);
  const auto document = stream.next();
  std::vector<CrdField> fields;
  if (document) {
    std::vector<Diagnostic> unused;
    const DocumentValue crd = to_document_value(*document->root, DecodeTarget::none, unused);
    const DocumentValue& schema = *crd.find("spec")->find("versions")->items[0].find("schema")->find("openAPIV3Schema");
    schema_fields(*schema.find("properties")->find("spec"), "", fields);
  }
  return fields;
}

// "a.b[].c" and a value as a spec in flow style.
std::string spec_with(const std::string& path, const std::string& value) {
  const auto dot = path.find('.');
  const std::string head = path.substr(0, dot);
  const bool list = head.ends_with("[]");
  const std::string key = list ? head.substr(0, head.size() - 2) : head;
  const std::string inner = dot == std::string::npos ? value : "{" + spec_with(path.substr(dot + 1), value) + "}";
  return key + ": " + (list ? "[" + inner + "]" : inner);
}

TEST(LintPolicies, EveryFieldOfTheCrdIsKnownWithItsWords) {
  const auto fields = crd_fields();
  ASSERT_GT(fields.size(), 10u);
  for (const CrdField& field : fields) {
    EXPECT_EQ(std::ranges::count(codes_of(policy(spec_with(field.path, "null"))), "UnknownField"), 0) << field.path;
    for (const std::string& word : field.words)
      EXPECT_EQ(std::ranges::count(codes_of(policy(spec_with(field.path, word))), "UnknownValue"), 0) << word;
  }
}

TEST(LintPolicies, EveryFieldThatLintKnowsIsOneOfTheCrd) {
  // Names that are reserved: lint reads them, the CRD need not have them.
  const std::vector<std::string> reserved{"profile.inline", "deletionPolicy", "rollout.mechanism", "rollout.onFailure",
                                          "rollout.maintenanceWindows"};
  const auto served = crd_fields();
  for (const PolicyField& of_spec : policy_fields()) {
    const std::string_view field = of_spec.path.substr(std::string_view("spec.").size());
    const bool known =
        std::any_of(served.begin(), served.end(), [&](const CrdField& f) { return f.path == field; }) ||
        std::any_of(reserved.begin(), reserved.end(), [&](const std::string& name) { return field.starts_with(name); });
    EXPECT_TRUE(known) << field;
  }
}

// --- The fields of a ClusterPolicy that choose the plugin's ConfigMap and default key.

std::string cluster_policy(const std::string& spec) {
  return "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: cluster-policy}\nspec: " + spec + "\n";
}

TEST(LintClusterPolicy, AMisspeltFieldThatChoosesTheProfilesIsNamed) {
  const struct {
    std::string spec, path, advice;
  } cases[] = {{"{devicePlugin: {config: {nam: a}}}", "spec.devicePlugin.config.nam", "Did you mean \"name\"?"},
               {"{devicePlugin: {config: {name: a, defualt: b}}}", "spec.devicePlugin.config.defualt",
                "Did you mean \"default\"?"},
               {"{devicePlugin: {config: {name: a, namespace: b}}}", "spec.devicePlugin.config.namespace",
                "Known fields: name, default"},
               {"{devicePlugin: {confg: {name: a}}}", "spec.devicePlugin.confg", "Did you mean \"config\"?"},
               {"{deviceplugin: {config: {name: a}}}", "spec.deviceplugin", "Did you mean \"devicePlugin\"?"}};
  for (const auto& [spec, path, advice] : cases) {
    const auto documents = lint(cluster_policy(spec));
    ASSERT_EQ(codes(documents.at(0), true), Codes{"UnknownField"}) << spec;
    EXPECT_TRUE(documents[0].valid()) << spec;
    EXPECT_EQ(documents[0].diagnostics[0].path, path);
    EXPECT_EQ(documents[0].diagnostics[0].message, "unknown field; the API server drops it. " + advice);
  }
}

TEST(LintClusterPolicy, OtherFieldsAreTheGpuOperatorsOwn) {
  for (const char* spec :
       {"{devicePlugin: {enabled: true, version: v1, image: i, mps: {root: /run/nvidia/mps}, config: "
        "{name: a, default: ''}}, sandboxDevicePlugin: {enabled: false}, dcgm: {confg: x}}",
        "{devicePlugin: {config: null}}", "{}"})
    EXPECT_EQ(codes(lint(cluster_policy(spec)).at(0)), Codes{}) << spec;
}

}  // namespace
}  // namespace gso::lint_policies_test
