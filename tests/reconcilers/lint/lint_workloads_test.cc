// Pods as people write them for MPS, KAI and nos, and the pods of workloads.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_workloads_test {
namespace {

using namespace lint_test;

std::string pod(const std::string& metadata, const std::string& spec, const std::string& container = "") {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p" + metadata + "}\nspec: {" + spec +
         "containers: [{name: c, image: i" + container + "}]}\n";
}

const std::string kOfKai = "schedulerName: kai-scheduler, ";
const std::string kShare = ", annotations: {gpu-fraction: '0.5'}";

std::string mounted(const std::string& host, const std::string& inside) {
  return ", volumeMounts: [{name: mps, mountPath: " + inside + "}]}], volumes: [{name: mps, hostPath: {path: " + host +
         "}}], x: [{a: b";
}

std::string asks(const std::string& limits) {
  return ", resources: {limits: {" + limits + "}}";
}

// As the API server says about extended resources: kubernetes/kubernetes, pkg/apis/core/validation.
TEST(LintWorkloads, AmountsThatTheApiServerRefusesAreErrors) {
  const std::pair<Codes, std::vector<std::string>> table[] = {
      {{},
       {"limits: {nvidia.com/gpu: 1}", "limits: {nvidia.com/gpu: '0'}", "limits: {nvidia.com/gpu: 1000m}",
        "limits: {nvidia.com/gpu: 1e0}", "limits: {nvidia.com/gpu: 1k}", "limits: {nvidia.com/gpu: 1Ki}",
        "limits: {nvidia.com/gpu: 2.0}", "limits: {cpu: 500m, memory: 1.5Gi, hugepages-2Mi: 1.5Mi}",
        "limits: {nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 1000m}",
        "limits: {cpu: 2}, requests: {cpu: 1, memory: 1Gi}"}},
      {{"ResourceNotWhole"},
       {"limits: {nvidia.com/gpu: 500m}", "limits: {nvidia.com/gpu: 0.5}", "limits: {nvidia.com/gpu: -1}",
        "limits: {nvidia.com/gpu: one}", "limits: {nvidia.com/gpu: ''}", "limits: {nvidia.com/gpu: true}",
        "limits: {nvidia.com/gpu: 1x}", "limits: {nvidia.com/gpu: 1.5k, nvidia.com/mig-1g.5gb: 15e-1}"}},
      {{"RequestUnlikeLimit"},
       {"limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 1}", "requests: {nvidia.com/gpu: 1}"}},
  };
  for (const auto& [expected, all] : table)
    for (const std::string& resources : all)
      EXPECT_EQ(codes(lint(pod("", "", ", resources: {" + resources + "}")).at(0)), expected) << resources;
}

TEST(LintWorkloads, PodsOfTheGuidesAreCheckedAsTheyStandThere) {
  const std::string pipe = ", env: [{name: CUDA_MPS_PIPE_DIRECTORY, value: ";
  const std::string all = ", env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]";
  const std::string sound = "hostIPC: true, securityContext: {runAsUser: 1000}, ";
  const std::vector<std::pair<std::string, Codes>> table{
      // KAI's guide to MPS.
      {pod(kShare, kOfKai, mounted("/tmp/nvidia-mps", "/tmp/nvidia-mps")), {}},
      {pod(kShare, kOfKai, mounted("/tmp/nvidia-smp", "/tmp/nvidia-smp")), {"PipeDirectoryMisspelt"}},
      {pod("", "", mounted("/tmp/nvidia-smp", "/tmp/nvidia-smp")), {"PipeDirectoryMisspelt"}},
      {pod(kShare, kOfKai + "nodeSelector: {nvidia.mps/enabled: true}, "), {"SelectorNoString"}},
      {pod(kShare, kOfKai + "nodeSelector: {nvidia.mps/enabled: 'true'}, "), {}},
      {pod(", labels: {a: 1}", ""), {"LabelNoString"}},
      {pod(", annotations: {a: true}", ""), {"AnnotationNoString"}},
      {pod(", annotations: {a: null}", ""), {}},
      {pod(kShare, kOfKai, pipe + "/other}]" + mounted("/tmp/nvidia-mps", "/tmp/nvidia-mps")),
       {"PipeDirectoryNotMounted"}},
      {pod(kShare, kOfKai, pipe + "/other/pipe}]" + mounted("/run/nvidia-mps", "/other")), {}},
      {pod("", "", pipe + "$(DIR)}]"), {}},
      // The guide of nos.
      {pod("", sound, asks("nvidia.com/gpu-10gb: 1")), {}},
      {pod("", "securityContext: {runAsUser: 1000}, ", asks("nvidia.com/gpu-10gb: 1")), {"SliceWithoutHostIPC"}},
      {pod("", "hostIPC: true, securityContext: {runAsUser: 0}, ", asks("nvidia.com/gpu-10gb: 1")),
       {"SliceOfAnotherUser"}},
      {pod("", sound, asks("nvidia.com/gpu-10gb: 1") + ", securityContext: {runAsUser: 5}"), {"SliceOfAnotherUser"}},
      {pod("", sound, asks("nvidia.com/gpu-10gb: 2")), {"SeveralSlices"}},
      {pod("", sound, asks("nvidia.com/gpu-10gb: 1, nvidia.com/gpu-5gb: 1")), {"SeveralSlices"}},
      {pod("", "", asks("nvidia.com/gpu-memory: 1")), {}},
      // The GPU Operator's guide: one GPU for a container under MPS.
      {pod("", "", asks("nvidia.com/gpu.shared: 2")), {"SeveralReplicas"}},
      {pod("", "", asks("nvidia.com/gpu.shared: 1")), {}},
      {pod("", "", asks("nvidia.com/gpu: 2")), {}},
      {pod("", "nodeSelector: {nvidia.com/gpu.sharing-strategy: mps}, ", asks("nvidia.com/gpu: 2")),
       {"SeveralReplicas"}},
      {pod("", "nodeSelector: {nvidia.com/gpu.sharing-strategy: mps}, ", asks("nvidia.com/gpu: 1")), {}},
      {pod("", "nodeSelector: {nvidia.com/gpu.sharing-strategy: none}, ", asks("nvidia.com/gpu: 2")), {}},
      // Every GPU of the node, whatever was requested.
      {pod("", "", asks("nvidia.com/gpu: 1") + all), {"VisibleDevicesSet"}},
      {pod("", "", asks("nvidia.com/gpu.shared: 1") + all), {"VisibleDevicesSet"}},
      {pod("", "", asks("nvidia.com/gpu: 0") + all), {}},
      {pod("", "", asks("cpu: 1") + all), {}},
      {pod("", "", asks("nvidia.com/gpu: 1") + ", env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}]"), {}},
      // One warning, whether the request is written as well or not.
      {pod("", "", ", resources: {limits: {nvidia.com/gpus: 1}, requests: {nvidia.com/gpus: 1}}"),
       {"ResourceMisspelt"}},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(codes(lint(text)[0]), expected) << text;
}

TEST(LintWorkloads, MisspeltNamesAreReportedWithTheRightOnes) {
  const std::vector<std::pair<std::string, std::string>> table{
      {", annotations: {gpu_fraction: '0.5'}", "did you mean \"gpu-fraction\"?"},
      {", annotations: {gpuMemory: '10'}", "did you mean \"gpu-memory\"?"},
      {", annotations: {kai.scheduler/gpu-fraction: '0.5'}", "did you mean \"gpu-fraction\"?"},
      {", annotations: {gpu-fractions: '0.5'}", "did you mean \"gpu-fraction\"?"},
      {", annotations: {gpu-fraction-num-device: '2'}", "did you mean \"gpu-fraction-num-devices\"?"},
      {", labels: {gpu-fraction: '0.5'}", "KAI reads the annotation gpu-fraction"},
      {", labels: {kai.scheduler/queues: q}", "did you mean \"kai.scheduler/queue\"?"},
      {", annotations: {kai.scheduler/queue: q}", "is a label"},
      {", annotations: {nvidia.com/container.c.gpu-memory.requests: 4Gi}", "container.c.gpu-memory.request\"?"},
      {", annotations: {nvidia.com/container.c.gpu-compute.mode: mps}", "sm-sharing (MPS)"},
      {", annotations: {nvidia.com/container.c.gpu-memory.limit: lots}", "is not an amount of memory"},
      {", annotations: {nvidia.com/container.c.gpus.devices: GPU-1}", "binder writes this annotation"},
      {", annotations: {nvidia.com/container.nope.gpu-memory.limit: 4Gi}",
       "the pod has no container \"nope\", so that no container gets this setting; its containers: c"},
      {", annotations: {nvidia.com/container.c.gpu-memory.limit: 4Gi, nvidia.com/container.c.gpu-compute.mode: "
       "sm-sharing}",
       ""},
      {", annotations: {example.com/gpu-memory: '10', gpu-model: a100}, labels: {kai.scheduler/queue: q, app: x}", ""},
  };
  for (const auto& [metadata, expected] : table) {
    const auto documents = lint(pod(metadata, kOfKai));
    std::string said;
    for (const Diagnostic& d : documents[0].diagnostics) said += d.message;
    EXPECT_EQ(said.empty(), expected.empty()) << metadata << ": " << said;
    EXPECT_NE(said.find(expected), std::string::npos) << metadata << ": " << said;
    EXPECT_TRUE(documents[0].valid()) << metadata;
  }
  const auto node = [](const std::string& metadata) {
    return codes(lint("apiVersion: v1\nkind: Node\nmetadata: {name: n1, " + metadata + "}\n")[0]);
  };
  EXPECT_EQ(node("labels: {nvidia.com/device-plugin-config: a}"), Codes{"LabelMisspelt"});
  EXPECT_EQ(node("labels: {nvidia.com/device-plugin.configs: a}"), Codes{"LabelMisspelt"});
  EXPECT_EQ(node("labels: {nvidia.com/device-plugin.config: a, nos.nebuly.ai/gpu-partitioning: mps}"), Codes{});
  EXPECT_EQ(node("annotations: {gpusharing.dev/hodl: 'true'}"), Codes{"AnnotationMisspelt"});
}

TEST(LintWorkloads, ThePercentageOfThreadsIsOne) {
  const auto found = [](const std::string& value) {
    return told(lint(pod("", "", ", env: [{name: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, value: '" + value + "'}]")));
  };
  for (const char* value : {"50", "12.5", "100", "$(SHARE)"}) EXPECT_EQ(found(value), Codes{"#0 Pod p"}) << value;
  for (const char* value : {"150", "-1", "50%"})
    EXPECT_TRUE(found(value).at(0).starts_with("#0 Pod p: warning ThreadPercentageInvalid ")) << value;
}

// `true` and `4` without quotes.
TEST(LintWorkloads, LabelsAnnotationsAndSelectorsAreStrings) {
  const auto errors = [](const std::string& text) {
    Codes out;
    const auto documents = lint(text);
    for (const Diagnostic& d : documents[0].diagnostics)
      if (d.severity == Diagnostic::Severity::error) out.push_back(d.code + " " + d.path);
    return out;
  };
  const std::string deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, labels: {a: ";
  const std::string selector = "}}\nspec: {selector: {matchLabels: {a: ";
  const std::string pods = "}}, template: {metadata: {labels: {a: ";
  const std::string rest = "}}, spec: {containers: [{name: c, image: i}]}}}\n";
  EXPECT_EQ(errors(deployment + "b" + selector + "b" + pods + "b" + rest), Codes{});
  EXPECT_EQ(errors(deployment + "1" + selector + "true" + pods + "2" + rest),
            (Codes{"LabelNoString metadata.labels[a]", "SelectorNoString spec.selector.matchLabels[a]",
                   "LabelNoString spec.template.metadata.labels[a]"}));
  EXPECT_EQ(errors("apiVersion: v1\nkind: Node\nmetadata: {name: n, annotations: {a: true}}\n"),
            Codes{"AnnotationNoString metadata.annotations[a]"});
  EXPECT_EQ(
      errors("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {a: 1}}\ndata: {any: 'version: v1'}\n"),
      Codes{"LabelNoString metadata.labels[a]"});
  EXPECT_EQ(errors("apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p, labels: {a: true}}\n"
                   "spec: {nodeSelector: {matchLabels: {a: b}}}\n"),
            Codes{"LabelNoString metadata.labels[a]"});
}

// `kubectl apply --dry-run=server` says it.
TEST(LintWorkloads, WhatOnlyTheApiServerRefusesIsLeftToIt) {
  for (const std::string text :
       {"apiVersion: v1\nkind: Pod\nmetadata: {name: P_, namespace: X Y}\nspec: {containers: []}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {restartPolicy: never, containers: [{image: 4}]}\n",
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {backoffLimit: -1, template: {spec: {containers: "
        "[{name: c, resources: {limits: {cpu: two}}, volumeMounts: [{name: v}]}]}}}\n"}) {
    EXPECT_EQ(codes(lint(text)[0]), Codes{}) << text;
  }
}

TEST(LintWorkloads, ThePodsOfEveryWorkloadAreChecked) {
  const auto template_of = [](const std::string& restart) {
    return "{metadata: {labels: {app: w}, annotations: {gpu-fraction: '2'}}, spec: {" + restart +
           "schedulerName: kai-scheduler, containers: [{name: c, image: i}]}}";
  };
  const std::string bad = template_of("");
  const std::string ends = template_of("restartPolicy: Never, ");
  const std::string selected = "selector: {matchLabels: {app: w}}, template: " + bad;
  const struct {
    std::string version, kind, spec;
  } table[] = {
      {"apps/v1", "Deployment", selected},
      {"apps/v1", "StatefulSet", selected},
      {"apps/v1", "DaemonSet", selected},
      {"batch/v1", "Job", "template: " + ends},
      {"batch/v1", "CronJob", "jobTemplate: {spec: {template: " + ends + "}}"},
      {"kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs: {Worker: {template: " + bad + "}}"},
      {"ray.io/v1", "RayCluster", "workerGroupSpecs: [{template: " + bad + "}]"},
      // Volcano and OpenKruise have kinds of these names.
      {"batch.volcano.sh/v1alpha1", "Job", "template: " + bad},
      {"apps.kruise.io/v1alpha1", "DaemonSet", "template: " + bad},
      {"", "Deployment", selected},
  };
  for (const auto& [version, kind, spec] : table) {
    const std::string head = version.empty() ? "" : "apiVersion: " + version + "\n";
    const auto documents = lint(head + "kind: " + kind + "\nmetadata: {name: w}\nspec: {" + spec + "}\n");
    ASSERT_EQ(documents.size(), 1U);
    EXPECT_EQ(codes(documents[0], true), Codes{"GPUFractionInvalid"}) << version << kind;
    const Diagnostic& found = documents[0].diagnostics.at(0);
    EXPECT_TRUE(found.path.starts_with("spec.") && found.path.ends_with("emplate.metadata.annotations[gpu-fraction]"));
    EXPECT_EQ(found.at.line, version.empty() ? 3 : 4);
  }
}

TEST(LintWorkloads, SeveralGpusUnderAnMpsProfileBesideThePodAreReported) {
  const auto path = [](const std::string& profile, const std::string& limits) {
    const auto documents = lint_together(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any: '" + profile +
        "'\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {app: "
        "w}}, "
        "template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: i, resources: {limits: {" +
        limits + "}}}]}}}\n");
    return documents.back().diagnostics.empty() ? std::string() : documents.back().diagnostics[0].path;
  };
  const std::string mps = "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}";
  const std::string sliced = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}";
  EXPECT_EQ(path(mps, "nvidia.com/gpu: 2"), "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]");
  EXPECT_EQ(path(mps, "nvidia.com/gpu: 1"), "");
  EXPECT_EQ(path(sliced, "nvidia.com/gpu: 2"), "");
}

// --- Annotations by which a pod asks KAI for a share of a GPU, and an MPS daemon's clients for what they lack.

std::string kai_pod(const std::string& annotations, const std::string& limits = "",
                    const std::string& scheduler = "kai-scheduler") {
  return pod(", annotations: {" + annotations + "}", "schedulerName: " + scheduler + ", ", asks(limits));
}

TEST(LintDocuments, PodsAreCheckedAsKaisAdmissionDoes) {
  const struct {
    std::string annotations, limits;
    Codes codes;
  } cases[] = {{"gpu-fraction: '0.25'", "", {}},
               {"gpu-fraction: '0x1p-2'", "", {}},
               {"gpu-fraction: '1.0'", "", {"GPUFractionInvalid"}},
               {"gpu-fraction: 'NAN'", "", {"GPUFractionInvalid"}},
               {"gpu-fraction: ''", "", {"GPUFractionInvalid"}},
               {"gpu-fraction: 0.25", "", {"AnnotationNoString"}},
               {"gpu-memory: '2048'", "", {}},
               {"gpu-memory: '2Gi'", "", {"GPUMemoryInvalid"}},
               {"gpu-memory: '+2048'", "", {"GPUMemoryInvalid"}},
               {"gpu-memory: '9223372036854775808'", "", {"GPUMemoryInvalid"}},
               {"gpu-fraction: '0.5', gpu-memory: '10'", "", {"MemoryWithOtherRequest"}},
               {"gpu-fraction: '0.5'", "nvidia.com/gpu: 1", {"FractionWithWholeGPU"}},
               {"gpu-memory: '10'", "nvidia.com/gpu: 1", {"MemoryWithOtherRequest"}},
               {"gpu-fraction: '0.5'", "nvidia.com/mig-1g.5gb: 1", {"FractionWithOtherGPUResource"}},
               {"gpu-fraction-num-devices: '2'", "", {"DevicesWithoutFraction"}},
               {"gpu-fraction: '0.5', gpu-fraction-num-devices: '0'", "", {"NumDevicesInvalid"}},
               {"gpu-fraction: '0.5', gpu-fraction-num-devices: '9223372036854775808'", "", {"NumDevicesInvalid"}},
               {"gpu-fraction: '0.5', gpu-fraction-container-name: side", "", {"ContainerNotFound"}},
               {"gpu-fraction: '0.5', gpu-fraction-container-name: c", "", {}},
               {"gpu-fraction-container-name: side", "nvidia.com/gpu: 1", {"AnnotationIgnored"}},
               {"mps: 'true'", "", {"MPSWithoutFraction"}},
               {"mps: 'True', gpu-fraction: '0.5'", "", {"AnnotationIgnored"}},
               {"gpusharing.dev/mps-client: true", "", {"AnnotationNoString"}},
               {"gpusharing.dev/mps-client: 'True'", "", {"AnnotationIgnored"}},
               {"gpusharing.dev/mps-pipe-directory: /run/nvidia-mps", "", {}},
               {"gpusharing.dev/mps-pipe-directory: '/a.b/c-d/_e'", "", {}},
               {"", "nvidia.com/gpu: 2", {}}};
  for (const auto& c : cases) EXPECT_EQ(codes(lint(kai_pod(c.annotations, c.limits))[0]), c.codes) << c.annotations;
  for (const std::string directory : {"run/nvidia-mps", "'/tmp/../etc'", "'/tmp//x'", "'/tmp/'", "'/'", "'/a b'"})
    EXPECT_EQ(codes(lint(kai_pod("gpusharing.dev/mps-pipe-directory: " + directory, ""))[0]),
              Codes{"AnnotationIgnored"});
  EXPECT_EQ(codes(lint(kai_pod("gpu-fraction: '7'", "", "default-scheduler"))[0]), Codes{"AnnotationIgnored"});
  EXPECT_EQ(codes(lint(kai_pod("gpu-fraction: '0.5'"), {.kai_gpu_sharing = false})[0]), Codes{"KAISharingDisabled"});
  EXPECT_EQ(codes(lint(kai_pod("", "nvidia.com/gpu: 1"), {.kai_gpu_sharing = false})[0]), Codes{});
}

TEST(LintDocuments, AClientOfAnMpsDaemonIsToldWhatItLacksUnlessTheClusterAddsIt) {
  const std::string client = "mps: 'true', gpu-fraction: '0.5'";
  const Codes lacking{"NoPipeDirectory", "NoHostIPC", "NoDaemonSelector"};
  EXPECT_EQ(codes(lint(kai_pod(client, ""))[0], true), lacking);
  EXPECT_EQ(codes(lint(kai_pod(client + ", gpusharing.dev/mps-client: 'false'", ""))[0], true), lacking);
  EXPECT_EQ(codes(lint(kai_pod(client + ", gpusharing.dev/mps-client: 'true'", ""))[0], true), Codes{});
}

}  // namespace
}  // namespace gso::lint_workloads_test
