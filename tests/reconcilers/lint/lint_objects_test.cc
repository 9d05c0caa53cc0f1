// What the API server refuses of any object: its metadata, and the pods that it describes. The expectations are
// kube-apiserver's answers (tests/conformance/linted_objects_test.py asks one the same).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_objects_test {
namespace {

using namespace lint_test;

Codes codes_of(const std::string& text) {
  Codes out;
  for (const LintedDocument& document : lint(text)) {
    const Codes found = codes(document);
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

struct Row {
  std::string text;
  Codes codes;
};

void expect_rows(const std::vector<Row>& rows, const std::string& before, const std::string& after = "") {
  for (const auto& [text, expected] : rows) EXPECT_EQ(codes_of(before + text + after), expected) << before << text;
}

std::string of(const std::string& kind, const std::string& version, const std::string& metadata,
               const std::string& spec) {
  return fmt::format("apiVersion: {}\nkind: {}\nmetadata: {}\nspec: {}\n", version, kind, metadata, spec);
}

const std::string kContainers = "containers: [{name: c, image: i}]";

TEST(LintObjects, MetadataIsWhatTheApiServerAccepts) {
  const std::vector<Row> rows{
      {"{name: p}", {}},
      {"{name: p.q-2}", {}},
      {"{name: '1'}", {}},
      {"{generateName: p-}", {}},
      {"{generateName: p-, name: ''}", {}},
      {"{name: p, namespace: team-a}", {}},
      {"{name: p, namespace: null, labels: null, annotations: null}", {}},
      {"{name: p, labels: {a: '', example.com/b: x_Y.z-1, c: null}}", {}},
      {"{name: p, annotations: {Example.com/B: any text, a: ''}}", {}},
      {"{}", {"NameMissing"}},
      {"null", {"NameMissing"}},
      {"{name: ''}", {"NameMissing"}},
      {"{Name: p}", {"NameMissing", "WrongCase"}},
      {"{name: P}", {"NameInvalid"}},
      {"{name: a_b}", {"NameInvalid"}},
      {"{name: -a}", {"NameInvalid"}},
      {"{name: a..b}", {"NameInvalid"}},
      {"{name: a/b}", {"NameInvalid"}},
      {"{name: " + std::string(253, 'a') + "}", {}},
      {"{name: " + std::string(254, 'a') + "}", {"NameInvalid"}},
      {"{generateName: P_}", {"NameInvalid"}},
      {"{generateName: p.}", {"NameInvalid"}},
      {"{name: 123}", {"WrongType"}},
      {"{name: p, namespace: Team}", {"NameInvalid"}},
      {"{name: p, namespace: a.b}", {"NameInvalid"}},
      {"p", {"WrongType"}},
      {"{name: p, labels: [a]}", {"WrongType"}},
      {"{name: p, labels: {a: x y}}", {"LabelInvalid"}},
      {"{name: p, labels: {a: -x}}", {"LabelInvalid"}},
      {"{name: p, labels: {a: " + std::string(64, 'x') + "}}", {"LabelInvalid"}},
      {"{name: p, labels: {a b: x}}", {"LabelInvalid"}},
      {"{name: p, labels: {a/b/c: x}}", {"LabelInvalid"}},
      {"{name: p, labels: {Example.com/a: x}}", {"LabelInvalid"}},
      {"{name: p, labels: {a: 1}}", {"LabelNoString"}},
      {"{name: p, annotations: {a b: x}}", {"AnnotationInvalid"}},
      {"{name: p, annotations: {a/b/c: x}}", {"AnnotationInvalid"}},
      {"{name: p, annotations: {a: true}}", {"AnnotationNoString"}},
      {"{name: p, annotations: {a: " + std::string(256 * 1024, 'x') + "}}", {"AnnotationInvalid"}},
  };
  expect_rows(rows, "apiVersion: v1\nkind: Pod\nmetadata: ", "\nspec: {" + kContainers + "}\n");
  expect_rows(rows, "apiVersion: v1\nkind: ConfigMap\nmetadata: ", "\ndata: {any: 'version: v1'}\n");
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: Pod\nspec: {" + kContainers + "}\n"), Codes{"NameMissing"});
  // A Node has no namespace: the API server ignores one.
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: Node\nmetadata: {name: n1, namespace: X}\n"), Codes{});
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: Node\nmetadata: {name: N1}\n"), Codes{"NameInvalid"});
  EXPECT_EQ(codes_of("apiVersion: gpusharing.dev/v1alpha1\nkind: SharingRollout\nmetadata: {labels: {a: b c}}\n"),
            (Codes{"NameMissing", "LabelInvalid"}));
  // Of another owner.
  EXPECT_EQ(codes_of("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: N}\n"), Codes{});
}

TEST(LintObjects, ANameIsReportedWhereItStands) {
  const auto documents =
      lint("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {a: b}\n  name: My_Map\ndata: {}\n");
  ASSERT_FALSE(documents.empty());
  ASSERT_FALSE(documents[0].diagnostics.empty());
  const Diagnostic& d = documents[0].diagnostics[0];
  EXPECT_EQ(d.path, "metadata.name");
  EXPECT_EQ(d.line, 5);
  EXPECT_EQ(d.column, 9);
  EXPECT_EQ(
      d.message,
      "\"My_Map\" is no name of an object: at most 253 lower-case letters, digits, '-' and '.', each part between "
      "dots beginning and ending with a letter or digit");
}

TEST(LintObjects, ThePercentageOfThreadsIsOne) {
  for (const auto& [value, expected] :
       std::vector<std::pair<std::string, Codes>>{{"50", {}},
                                                  {"12.5", {}},
                                                  {"100", {}},
                                                  {"$(SHARE)", {}},
                                                  {"150", {"ThreadPercentageInvalid"}},
                                                  {"-1", {"ThreadPercentageInvalid"}},
                                                  {"50%", {"ThreadPercentageInvalid"}}}) {
    const auto linted = lint(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, env: [{name: "
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, value: '" +
        value + "'}]}]}\n");
    EXPECT_EQ(codes(linted[0]), expected) << value;
    EXPECT_TRUE(linted[0].valid()) << value;
  }
}

TEST(LintObjects, MisspeltContainersAreNamed) {
  const auto linted =
      lint("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {contianers: [{name: c, image: i}]}\n");
  ASSERT_EQ(codes(linted[0]), Codes{"ContainersMissing"});
  EXPECT_NE(linted[0].diagnostics[0].message.find("did you mean \"containers\" instead of \"contianers\"?"),
            std::string::npos);
}

TEST(LintObjects, ContainersAreWhatTheApiServerAccepts) {
  const std::vector<Row> rows{
      {"containers: [{name: c, image: i}]", {}},
      {"containers: [{name: c, image: i, command: [a, '1'], args: [], env: [{name: A, value: '1'}, {name: B}]}]", {}},
      {"containers: [{name: c, image: i}], initContainers: [{name: d, image: i, restartPolicy: Always}]", {}},
      {"containers: [{name: c, image: i}], ephemeralContainers: [{name: d}]", {}},
      {"containers: [{name: c, image: i, imagePullPolicy: ''}], restartPolicy: '', dnsPolicy: Default", {}},
      {"containers: [{name: c, image: i, ports: [{containerPort: 80}]}]", {}},
      {"containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v}]", {}},
      {kContainers + ", tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}]", {}},
      {kContainers + ", nodeSelector: {a: b, c: ''}, serviceAccountName: a.b, hostIPC: true", {}},
      {"containers: []", {"ContainersMissing"}},
      {"containers: null", {"ContainersMissing"}},
      {"hostIPC: true", {"ContainersMissing"}},
      {"Containers: [{name: c, image: i}]", {"ContainersMissing", "WrongCase"}},
      {"containers: {name: c}", {"WrongType"}},
      {"containers: [c]", {"WrongType"}},
      {"containers: [null]", {"NameMissing", "ImageMissing"}},
      {"containers: [{image: i}]", {"NameMissing"}},
      {"containers: [{name: '', image: i}]", {"NameMissing"}},
      {"containers: [{name: C, image: i}]", {"NameInvalid"}},
      {"containers: [{name: a.b, image: i}]", {"NameInvalid"}},
      {"containers: [{name: " + std::string(64, 'a') + ", image: i}]", {"NameInvalid"}},
      {"containers: [{name: 1, image: i}]", {"WrongType"}},
      {"containers: [{name: c, image: i}, {name: c, image: i}]", {"NameTwice"}},
      {"containers: [{name: c, image: i}], initContainers: [{name: c, image: i}]", {"NameTwice"}},
      {"containers: [{name: c}]", {"ImageMissing"}},
      {"containers: [{name: c, image: i, imagePullPolicy: always}]", {"UnknownValue"}},
      {"containers: [{name: c, image: i, command: sleep}]", {"WrongType"}},
      {"containers: [{name: c, image: i, args: [--replicas, 4]}]", {"WrongType"}},
      {"containers: [{name: c, image: i, env: [{name: A, value: 1}]}]", {"WrongType"}},
      {"containers: [{name: c, image: i, env: [{value: a}]}]", {"NameMissing"}},
      {"containers: [{name: c, image: i, env: {A: a}}]", {"WrongType"}},
      {"containers: [{name: c, image: i, ports: [{containerPort: 70000}]}]", {"OutOfRange"}},
      {"containers: [{name: c, image: i, ports: [{port: 80}]}]", {"OutOfRange"}},
      {"containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]", {"VolumeNotFound"}},
      {kContainers + ", volumes: [{name: v}, {name: v}]", {"NameTwice"}},
      {kContainers + ", volumes: [{hostPath: {path: /x}}]", {"NameMissing"}},
      {kContainers + ", hostIPC: 'true'", {"WrongType"}},
      {kContainers + ", securityContext: {runAsUser: '1000'}", {"OutOfRange"}},
      {kContainers + ", nodeSelector: {a b: c}", {"SelectorInvalid"}},
      {kContainers + ", nodeSelector: {a: b c}", {"SelectorInvalid"}},
      {kContainers + ", tolerations: [{key: a, value: true}]", {"WrongType"}},
      {kContainers + ", tolerations: [{key: a, operator: Exists, value: b}]", {"TolerationInvalid"}},
      {kContainers + ", tolerations: [{value: b}]", {"TolerationInvalid"}},
      {kContainers + ", tolerations: [{key: a, value: b c}]", {"TolerationInvalid"}},
      {kContainers + ", tolerations: [{key: a, effect: NoScheduled}]", {"UnknownValue"}},
      {kContainers + ", tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 5}]", {"TolerationInvalid"}},
      {kContainers + ", nodeselector: {a: b}", {"WrongCase"}},
  };
  expect_rows(rows, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {", "}\n");
  expect_rows(rows, "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: p}\ntemplate: {spec: {", "}}\n");
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"), Codes{"WrongType"});
}

TEST(LintObjects, ResourcesAreWhatTheApiServerAccepts) {
  const std::vector<Row> rows{
      {"limits: {cpu: 500m, memory: 4Gi, ephemeral-storage: 1G, hugepages-2Mi: 2Mi}", {}},
      {"limits: {cpu: 2}, requests: {cpu: 2000m}", {}},
      {"requests: {cpu: 0.5}", {}},
      {"limits: {memory: 4GB}", {"ResourceInvalid"}},
      {"limits: {memory: 4gi}", {"ResourceInvalid"}},
      {"limits: {cpu: two}", {"ResourceInvalid"}},
      {"limits: {cpu: -1}", {"ResourceInvalid"}},
      {"limits: {gpu: 1}", {"ResourceInvalid"}},
      {"limits: {cpu: 1}, requests: {cpu: 2}", {"ResourceInvalid"}},
      {"Limits: {cpu: 1}", {"WrongCase"}},
      {"limits: [cpu]", {"WrongType"}},
  };
  expect_rows(rows,
              "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {",
              "}}]}\n");
}

TEST(LintObjects, EveryKindHasTheRestartPoliciesThatItsPodsCanHave) {
  const struct {
    std::string kind;
    std::string version;
    Codes absent, always, on_failure, never;
  } table[] = {
      {"Pod", "v1", {}, {}, {}, {}},
      {"Deployment", "apps/v1", {}, {}, {"RestartPolicyWrong"}, {"RestartPolicyWrong"}},
      {"ReplicaSet", "apps/v1", {}, {}, {"RestartPolicyWrong"}, {"RestartPolicyWrong"}},
      {"DaemonSet", "apps/v1", {}, {}, {"RestartPolicyWrong"}, {"RestartPolicyWrong"}},
      {"StatefulSet", "apps/v1", {}, {}, {"RestartPolicyWrong"}, {"RestartPolicyWrong"}},
      {"ReplicationController", "v1", {}, {}, {"RestartPolicyWrong"}, {"RestartPolicyWrong"}},
      {"Job", "batch/v1", {"RestartPolicyWrong"}, {"RestartPolicyWrong"}, {}, {}},
      {"CronJob", "batch/v1", {"RestartPolicyWrong"}, {"RestartPolicyWrong"}, {}, {}},
  };
  for (const auto& row : table) {
    const auto with = [&](const std::string& policy) {
      const std::string spec = "{" + (policy.empty() ? "" : "restartPolicy: " + policy + ", ") + kContainers + "}";
      const std::string pods = "template: {metadata: {labels: {a: b}}, spec: " + spec + "}";
      const bool selects = row.version == "apps/v1";
      const std::string workload = "{" + std::string(selects ? "selector: {matchLabels: {a: b}}, " : "") + pods + "}";
      return codes_of(of(row.kind, row.version, "{name: x}",
                         row.kind == "Pod"       ? spec
                         : row.kind == "CronJob" ? "{schedule: '@daily', jobTemplate: {spec: {" + pods + "}}}"
                                                 : workload));
    };
    EXPECT_EQ(with(""), row.absent) << row.kind;
    EXPECT_EQ(with("Always"), row.always) << row.kind;
    EXPECT_EQ(with("OnFailure"), row.on_failure) << row.kind;
    EXPECT_EQ(with("Never"), row.never) << row.kind;
    EXPECT_EQ(with("Sometimes"), Codes{"RestartPolicyWrong"}) << row.kind;
    EXPECT_EQ(with("never"), Codes{"RestartPolicyWrong"}) << row.kind;
  }
}

TEST(LintObjects, AWorkloadSelectsItsOwnPods) {
  const std::string pods = "template: {metadata: {labels: {a: b, c: d}}, spec: {" + kContainers + "}}";
  const std::vector<Row> rows{
      {"selector: {matchLabels: {a: b}}, " + pods, {}},
      {"selector: {matchExpressions: [{key: a, operator: Exists}]}, " + pods, {}},
      {pods, {"SelectorMissing"}},
      {"selector: {}, " + pods, {"SelectorMissing"}},
      {"selector: {matchLabels: {a: x}}, " + pods, {"SelectorMismatch"}},
      {"selector: {matchLabels: {e: f}}, " + pods, {"SelectorMismatch"}},
      {"selector: {matchLabels: {a: 1}}, " + pods, {"SelectorNoString"}},
      {"selector: a, " + pods, {"WrongType"}},
      {"selector: {matchLabels: {a: b}}", {"ContainersMissing"}},
  };
  for (const std::string kind : {"Deployment", "DaemonSet", "ReplicaSet", "StatefulSet"}) {
    expect_rows(rows, "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: x}\nspec: {", "}\n");
  }
  EXPECT_EQ(codes_of("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"), Codes{"ContainersMissing"});
  // Labels of a template are checked like those of an object; its name is not needed.
  EXPECT_EQ(
      codes_of(of("Job", "batch/v1", "{name: x}",
                  "{template: {metadata: {labels: {a: b c}}, spec: {restartPolicy: Never, " + kContainers + "}}}")),
      Codes{"LabelInvalid"});
  // 52 characters: its Jobs have eleven more.
  const std::string jobs =
      "{schedule: '@daily', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " + kContainers + "}}}}}";
  EXPECT_EQ(codes_of(of("CronJob", "batch/v1", "{name: " + std::string(52, 'a') + "}", jobs)), Codes{});
  EXPECT_EQ(codes_of(of("CronJob", "batch/v1", "{name: " + std::string(53, 'a') + "}", jobs)), Codes{"NameInvalid"});
}

TEST(LintObjects, AStatefulSetNamesHostsAndBringsVolumes) {
  const auto stateful = [](const std::string& name, const std::string& more, const std::string& spec) {
    return codes_of(of(
        "StatefulSet", "apps/v1", "{name: " + name + "}",
        "{selector: {matchLabels: {a: b}}, " + more + "template: {metadata: {labels: {a: b}}, spec: {" + spec + "}}}"));
  };
  EXPECT_EQ(stateful("x", "", kContainers), Codes{});
  EXPECT_EQ(stateful("a.b", "", kContainers), Codes{"NameInvalid"});
  EXPECT_EQ(stateful(std::string(63, 'a'), "", kContainers), Codes{});
  EXPECT_EQ(stateful(std::string(64, 'a'), "", kContainers), Codes{"NameInvalid"});
  EXPECT_EQ(stateful("x", "", "containers: [{image: i}]"), Codes{"NameMissing"});
  const std::string mounts = "containers: [{name: c, image: i, volumeMounts: [{name: data, mountPath: /data}]}]";
  EXPECT_EQ(stateful("x", "", mounts), Codes{"VolumeNotFound"});
  EXPECT_EQ(stateful("x", "volumeClaimTemplates: [{metadata: {name: data}}], ", mounts), Codes{});
}

// Their schemas differ, and operators complete what is missing.
TEST(LintObjects, TemplatesOfOtherOwnersAreLeftToThem) {
  EXPECT_EQ(codes_of(of("FlinkDeployment", "flink.apache.org/v1beta1", "{name: X}",
                        "{podTemplate: {spec: {containers: [{name: flink-main-container}]}}}")),
            Codes{});
  EXPECT_EQ(codes_of(of("Job", "batch.volcano.sh/v1alpha1", "{name: x}",
                        "{tasks: [{template: {spec: {containers: [{image: i}]}}}]}")),
            Codes{});
}

TEST(LintObjects, TheFieldsOfAConfigMapAreWhatTheApiServerAccepts) {
  const std::vector<Row> rows{
      {"immutable: true\ndata: {any: 'version: v1'}\n", {}},
      {"immutable: null\ndata: {any: 'version: v1'}\n", {}},
      {"immutable: 'true'\ndata: {any: 'version: v1'}\n", {"WrongType"}},
      {"immutable: 1\ndata: {any: 'version: v1'}\n", {"WrongType"}},
      {"Data: {any: 'version: v1'}\n", {"WrongCase", "NoProfiles"}},
      {"Immutable: true\ndata: {any: 'version: v1'}\n", {"WrongCase"}},
  };
  expect_rows(rows, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
  // Also of one that holds no profile.
  const std::string list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: ";
  EXPECT_EQ(codes_of(list + "{name: c}, data: {url: x, port: 80}}\n"), Codes{"WrongType"});
  EXPECT_EQ(codes_of(list + "{name: C}, data: {url: x}}\n"), Codes{"NameInvalid"});
  EXPECT_EQ(codes_of(list + "{name: c}, immutable: 'no', data: {url: x}}\n"), Codes{"WrongType"});
  EXPECT_EQ(codes_of(list + "{name: c}, data: {-x-: x}}\n"), Codes{}) << "no node label names it";
}

TEST(LintObjects, AnItemOfAListThatIsNullIsNoObject) {
  const std::string item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {url: x}}";
  for (const std::string kind : {"List", "ConfigMapList"}) {
    const std::string head = "apiVersion: v1\nkind: " + kind + "\nitems:\n";
    EXPECT_EQ(codes_of(head + "- null\n"), Codes{"WrongType"}) << kind;
    EXPECT_EQ(codes_of(head + "- " + item + "\n-\n"), Codes{"WrongType"}) << kind;
    EXPECT_EQ(codes_of(head + "- x\n- " + item + "\n"), Codes{"WrongType"}) << kind;
    EXPECT_EQ(codes_of(head + "- " + item + "\n"), Codes{}) << kind;
  }
}

TEST(LintObjects, AKindInThePluralAndAMisspeltFieldOfTheKindAreRecognised) {
  const std::vector<std::pair<std::string, std::string>> plurals{
      {"Sharingpolicies", "gpusharing.dev/v1alpha1"},
      {"sharingpolicies", "gpusharing.dev/v1alpha1"},
      {"configmaps", "v1"},
      {"DaemonSets", "apps/v1"},
      {"cronjobs", "batch/v1"},
  };
  for (const auto& [kind, version] : plurals) {
    EXPECT_EQ(codes_of("apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: x}\nspec: {}\n"),
              Codes{"KindMisspelt"})
        << kind;
  }
  for (const std::string head :
       {"Kind: ConfigMap\napiVersion: v1\n", "KIND: Pod\napiVersion: v1\n", "apiVersion: v1\n"}) {
    const auto documents = lint(head + "metadata: {name: x}\ndata: {any: x}\n");
    ASSERT_EQ(documents.size(), 1U) << head;
    EXPECT_EQ(codes(documents[0]), Codes{"KindMissing"}) << head;
    EXPECT_FALSE(documents[0].valid()) << head;
  }
  EXPECT_EQ(lint("apiVersion: v1\nKind: Pod\n")[0].diagnostics[0].line, 2);
  // A profile: no object has `version`.
  EXPECT_EQ(codes_of("version: v1\napiVersion: v1\n"), Codes{"UnknownField"});
}

}  // namespace
}  // namespace gso::lint_objects_test
