// Pods beside other objects: inference servers that reserve a fraction of the whole GPU beside the MPS profile that
// gives them a slice of it, and fraction pods of KAI.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reconcilers/checks/inference_memory.h"
#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_pods_test {
namespace {

using namespace lint_test;

constexpr const char* kFour =
    "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: mps-config, namespace: gpu-operator}, data: {any: "
    "'sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}', many: 'sharing: {mps: {resources: [{name: "
    "nvidia.com/gpu, replicas: 10}]}}', slices: 'sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: "
    "4}]}}'}}\n";

std::string pod(const std::string& container, const std::string& spec = "",
                const std::string& resource = "nvidia.com/gpu") {
  return "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: t}, spec: {" + spec +
         "containers: [{name: server, resources: {limits: {" + resource + ": 1}}, " + container + "}]}}\n";
}

// What is said about the Pod's memory.
std::vector<std::string> warned_of(const std::string& text, const std::string& code = "MemoryFractionAboveSlice") {
  std::vector<std::string> out;
  for (const LintedDocument& document : lint_together(text))
    for (const Diagnostic& d : document.diagnostics)
      if (d.code == code) out.push_back(d.path + ": " + d.message);
  return out;
}

const std::string kOnAny = "nodeSelector: {nvidia.com/device-plugin.config: any}, ";

// One text that has this part; an empty part: none.
void expect_told(const std::string& text, const std::string& part,
                 const std::string& code = "MemoryFractionAboveSlice") {
  const std::vector<std::string> found = warned_of(text, code);
  ASSERT_EQ(found.size(), part.empty() ? 0U : 1U) << text;
  for (const std::string& one : found) EXPECT_TRUE(one.contains(part)) << one;
}

// Only an info, which has this part.
void expect_unknown(const std::string& text, const std::string& part) {
  EXPECT_TRUE(warned_of(text).empty()) << text;
  expect_told(text, part, "MemoryFractionUnknown");
}

TEST(LintMemory, NamesTheNumberThatFits) {
  const std::vector<std::string> found =
      warned_of(pod("image: vllm/vllm-openai, args: [--model, m, --gpu-memory-utilization=0.9]", kOnAny) + kFour);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0],
            "spec.containers[0].args: container server: vLLM reserves a fraction of the whole GPU "
            "(--gpu-memory-utilization is 0.9), and key any of ConfigMap mps-config shares each GPU by MPS among 4 "
            "clients, which get 1/4 of its memory each: the server would run out of memory at start; set "
            "--gpu-memory-utilization to at most 0.22");
}

// The container, and a part of what is said; empty: nothing.
using Rows = std::vector<std::pair<std::string, std::string>>;

TEST(LintMemory, KnowsTheServersTheirFlagsAndTheirDefaults) {
  const Rows rows{
      {"image: vllm/vllm-openai, args: [--gpu-memory-utilization, '0.22']", ""},
      {"image: vllm/vllm-openai, args: [--gpu-memory-utilization, '0.23']", "is 0.23"},
      {"image: vllm/vllm-openai, args: [--model, m]", "is not set, and its default is 0.9"},
      {"image: vllm/vllm-openai, command: [sleep, infinity]", ""},
      {"image: mine, command: [sh, -c, 'exec vllm serve m --gpu_memory_utilization 0.5']", "is 0.5"},
      {"image: mine, command: [python3, -m, vllm.entrypoints.openai.api_server]", "default is 0.9"},
      {"image: lmsysorg/sglang, command: [python3, -m, sglang.launch_server, --mem-fraction-static, '0.8']", "SGLang"},
      {"image: mine, command: [python3, -m, sglang.launch_server]", "--mem-fraction-static is not set"},
      {"image: mine, command: [sglang, --mem-fraction-static, '0.2']", ""},
      {"image: mine, command: [trtllm-serve, m, --kv_cache_free_gpu_memory_fraction, '0.9']", "TensorRT-LLM"},
      {"image: nvcr.io/nvidia/tensorrt-llm/release", "free_gpu_memory_fraction is not set"},
      {"image: mine, command: [train]", ""},
      {"image: mine", ""}};
  for (const auto& [container, part] : rows) expect_told(pod(container, kOnAny) + kFour, part);
}

TEST(LintMemory, GoesByTheProfilesThatThePodCanMeet) {
  const std::string server = "image: vllm/vllm-openai, args: [--gpu-memory-utilization=0.15]";
  EXPECT_EQ(warned_of(pod(server, kOnAny) + kFour).size(), 0U);
  expect_told(pod(server) + kFour, "key many of ConfigMap mps-config");  // It may run where ten share a GPU.
  expect_told(pod(server) + kFour, "at most 0.09");
  EXPECT_EQ(warned_of(pod(server, "nodeSelector: {nvidia.com/device-plugin.config: slices}, ") + kFour).size(), 0U);
  EXPECT_EQ(warned_of(pod(server, "", "nvidia.com/gpu.shared") + kFour).size(), 0U) << "nobody offers that name";
  EXPECT_EQ(warned_of(pod(server)).size(), 0U);
  const std::string inline_profile =
      "---\n{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {name: p8}, spec: {profile: {inline: "
      "{strategy: mps, replicas: 8, renameByDefault: true}}}}\n";
  EXPECT_EQ(warned_of(pod(server, "", "nvidia.com/gpu.shared") + inline_profile).size(), 1U);
}

TEST(LintMemory, ReadsEverySpellingAndEveryPlaceOfTheFlag) {
  const Rows rows{
      {"image: vllm/vllm-openai, args: ['--gpu-memory-utilization=90']", "is 90"},
      {"image: mine, command: [python, -c, 'from vllm import LLM; LLM(model=1, gpu_memory_utilization=0.9)']",
       "is 0.9"},
      {"image: mine, command: [python, -c, 'from vllm import LLM; LLM(model=1, gpu_memory_utilization=0.2)']", ""},
      {"image: mine, command: [sh, -c, 'vllm serve m --gpu-memory-utilization 0.2 # not --gpu-memory-utilization 0.9']",
       ""},
      {"image: mine, command: [trtllm-serve, m, --kv_cache_free_gpu_mem_fraction, '0.2']", ""},
      {"image: mine, command: [trtllm-serve, m, --kv-cache-free-gpu-memory-fraction=0.2]", ""},
      {"image: mine, command: [trtllm-serve, m, --free-gpu-memory-fraction=0.8]", "is 0.8"},
      {R"(image: mine, command: [sh, -c, "cat > e <<EOF\nk:\n  free_gpu_memory_fraction: 0.2\nEOF\ntrtllm-serve m"])",
       ""},
      {R"(image: mine, command: [sh, -c, "cat > e <<EOF\nk:\n  free_gpu_memory_fraction: 0.85\nEOF\ntrtllm-serve m"])",
       "is 0.85"},
      {R"(image: vllm/vllm-openai, args: ['{"gpu-memory-utilization": 0.2}'])", ""}};
  for (const auto& [container, part] : rows) expect_told(pod(container, kOnAny) + kFour, part);
}

TEST(LintMemory, PutsTheContainersVariablesInTheirPlace) {
  const auto with = [](const std::string& value, const std::string& env) {
    return pod("image: vllm/vllm-openai, command: [sh, -c, 'vllm serve m --gpu-memory-utilization " + value +
                   "'], env: [" + env + "]",
               kOnAny) +
           kFour;
  };
  const std::string indirect = "{name: INDIRECT, value: $(UTIL)}, {name: UTIL, value: '";
  for (const char* value : {"$(UTIL)", "$(INDIRECT)"}) {
    EXPECT_TRUE(warned_of(with(value, indirect + "0.2'}")).empty()) << value;
    expect_told(with(value, indirect + "0.7'}"), "is 0.7");
  }
  for (const std::string value : {"$UTIL", "${UTIL}", "${UTIL:-0.9}"})
    expect_unknown(with(value, "{name: UTIL, value: '0.7'}"), value + ", which only a shell evaluates");
}

TEST(LintMemory, AValueThatTheManifestDoesNotShowIsAnInfo) {
  for (const std::string container :
       {"args: ['--gpu-memory-utilization=$(UTIL)'], env: [{name: UTIL, valueFrom: {secretKeyRef: {name: s, key: k}}}]",
        "args: ['--gpu-memory-utilization=$(UTIL)'], envFrom: [{secretRef: {name: s}}]",
        "args: ['$(EXTRA_ARGS)'], envFrom: [{configMapRef: {name: c}}]", "args: [--config, /etc/vllm.yaml]"}) {
    const std::string text = pod("image: vllm/vllm-openai, " + container, kOnAny) + kFour;
    expect_unknown(text, "whose content is not in the manifest");
    EXPECT_FALSE(warned_of(text, "MemoryFractionUnknown")[0].contains("default")) << container;
  }
}

TEST(LintMemory, NamesAVariableThatTheImageMightTurnIntoTheFlag) {
  const Rows rows{
      {"image: vllm/vllm-openai, env: [{name: GPU_MEMORY_UTILIZATION, value: '0.2'}]", "GPU_MEMORY_UTILIZATION"},
      {"image: mine, env: [{name: VLLM_GPU_MEMORY_UTILIZATION, value: '0.9'}]", "VLLM_GPU_MEMORY_UTILIZATION"},
      {"image: vllm/vllm-openai, env: [{name: EXTRA, value: '--gpu-memory-utilization 0.2'}]", "EXTRA"}};
  for (const auto& [container, variable] : rows) {
    const std::string text = pod(container, kOnAny) + kFour;
    expect_unknown(text, "comes from variable " + variable);
    expect_unknown(text, "if the image reads it");
    EXPECT_FALSE(warned_of(text, "MemoryFractionUnknown")[0].contains("not in the manifest")) << container;
  }
}

TEST(LintMemory, GoesByTheAffinityAndTheLabelsOfSharing) {
  const std::string server = "image: vllm/vllm-openai, args: [--gpu-memory-utilization=0.15]";
  const auto affine = [](const std::string& expression) {
    return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
           "[{matchExpressions: [" +
           expression + "]}]}}}, ";
  };
  const std::string key = "{key: nvidia.com/device-plugin.config, operator: ";
  const std::string label = "nodeSelector: {nvidia.com/gpu.";
  const std::pair<std::string, bool> rows[] = {
      {affine(key + "In, values: [any]}"), false},  // Four clients.
      {affine(key + "In, values: [any, many]}"), true},
      {affine(key + "In, values: [slices]}"), false},
      {affine(key + "NotIn, values: [many]}"), false},
      {affine(key + "Exists}"), true},
      {affine("{key: pool, operator: In, values: [a]}"), true},
      {label + "sharing-strategy: none}, ", false},
      {label + "sharing-strategy: mps}, ", true},
      {label + "replicas: '4'}, ", false},
  };
  for (const auto& [spec, warned] : rows)
    EXPECT_EQ(warned_of(pod(server, spec) + kFour).size(), warned ? 1U : 0U) << spec;
}

TEST(LintMemory, LooksAtSidecarsToo) {
  const std::string init = "image: vllm/vllm-openai, resources: {limits: {nvidia.com/gpu: 1}}, name: s";
  const std::vector<std::string> sidecar =
      warned_of(pod("image: mine", kOnAny + "initContainers: [{restartPolicy: Always, " + init + "}], ") + kFour);
  ASSERT_EQ(sidecar.size(), 1U);
  EXPECT_TRUE(sidecar[0].starts_with("spec.initContainers[0]: container s: vLLM")) << sidecar[0];
  EXPECT_TRUE(warned_of(pod("image: mine", kOnAny + "initContainers: [{" + init + "}], ") + kFour).empty())
      << "it has ended before the others start";
}

TEST(MemoryProblem, LeavesRoomForTheContext) {
  ServerContainer server;
  server.name = "c";
  server.image = "vllm/vllm-openai";
  const std::vector<std::pair<int, std::string>> cases{
      {2, "0.45"}, {3, "0.30"}, {4, "0.22"}, {10, "0.09"}, {48, "0.01"}};
  for (const auto& [replicas, most] : cases)
    EXPECT_TRUE(memory_problem(server, replicas, "node n1")->message.ends_with("to at most " + most)) << replicas;
}

// --- KAI's fraction pods beside Nodes, kai-config and RuntimeClasses: what can never be placed among them.

constexpr const char* kNode =
    "---\n{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {nvidia.com/gpu.memory: '40960'}}, status: "
    "{allocatable: {nvidia.com/gpu: '2'}}}\n";
constexpr const char* kConfig =
    "---\n{apiVersion: kai.scheduler/v1, kind: Config, metadata: {name: kai-config}, spec: {admission: {gpuSharing: ";

std::string fraction_pod(const std::string& annotations, const std::string& spec = "") {
  return "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: t, annotations: {" + annotations +
         "}}, spec: {schedulerName: kai-scheduler, containers: [{name: c, image: i}]" + spec + "}}\n";
}

// The codes of the Pods' documents.
Codes codes_of_pods(const std::string& text, const PodRules& rules = {}) {
  Codes out;
  for (const LintedDocument& document : lint_together(text, rules))
    if (document.kind == "Pod") std::ranges::copy(codes(document, true), std::back_inserter(out));
  return out;
}

TEST(LintKai, ComparesAPodWithTheObjectsBesideIt) {
  const std::string config = kConfig;
  const struct {
    const char* name;
    std::string text;
    Codes codes;
  } rows[] = {
      {"alone", fraction_pod("gpu-memory: '80000'"), {}},
      {"it fits", fraction_pod("gpu-memory: '40900'") + kNode, {}},
      {"too much memory", fraction_pod("gpu-memory: '80000'") + kNode, {"KAICannotPlace"}},
      {"too many devices",
       fraction_pod("gpu-fraction: '0.5', gpu-fraction-num-devices: '3'") + kNode,
       {"KAICannotPlace"}},
      {"a node without the label",
       fraction_pod("gpu-memory: '2000'") +
           "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {nvidia.com/gpu: '2'}}}\n",
       {"KAICannotPlace"}},
      {"sharing off", fraction_pod("gpu-fraction: '0.5'") + config + "false}}}\n", {"KAISharingDisabled"}},
      {"a fraction in the mode of other annotations",
       fraction_pod("gpu-fraction: '0.5'") + config + "false}, global: {gpuSharingMode: NvFractions}}}\n",
       {"FractionOfOlderMode"}},
      {"sharing on", fraction_pod("gpu-fraction: '0.5'") + config + "true}}}\n", {}},
      {"a missing RuntimeClass",
       fraction_pod("gpu-fraction: '0.5'") + config +
           "true}}}\n---\n{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: other}, handler: x}\n",
       {"KAICannotPlace"}},
      {"an unscheduled scaling pod",
       fraction_pod("gpu-fraction: '0.5'") + kNode +
           "---\n{apiVersion: v1, kind: Pod, metadata: {name: s, namespace: kai-scale-adjust}, spec: {containers: "
           "[{name: c, image: i}]}}\n",
       {"KAICannotPlace"}},
      {"a taint that takes the reservation",
       fraction_pod("gpu-fraction: '0.5'", ", tolerations: [{key: m, operator: Exists}]") +
           "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: [{key: m, effect: NoExecute}]}}\n",
       {"KAIReservationWithoutToleration"}},
      {"a bound pod", fraction_pod("gpu-memory: '80000'", ", nodeName: n1") + kNode, {}},
      {"another scheduler's Config",
       fraction_pod("gpu-fraction: '0.5'") + "---\n{apiVersion: a/v1, kind: Config, metadata: {name: x}}\n",
       {}},
  };
  for (const auto& row : rows) EXPECT_EQ(codes_of_pods(row.text), row.codes) << row.name;
}

// KAI's webhook looks at the pods of the scheduler that kai-config names, and at no others.
TEST(LintKai, ChecksThePodsOfTheSchedulerThatTheConfigNames) {
  const std::string config =
      "---\n{apiVersion: kai.scheduler/v1, kind: Config, metadata: {name: kai-config}, spec: {admission: {gpuSharing: "
      "true}, global: {schedulerName: my-kai}}}\n";
  const auto of = [](const char* scheduler) {
    std::string text = fraction_pod("gpu-fraction: '7'");
    return text.replace(text.find("kai-scheduler"), std::string_view("kai-scheduler").size(), scheduler);
  };
  EXPECT_EQ(codes_of_pods(of("my-kai")), Codes{"AnnotationIgnored"});
  EXPECT_EQ(codes_of_pods(of("my-kai") + config), Codes{"GPUFractionInvalid"});
  EXPECT_EQ(codes_of_pods(config + "---\n" + of("my-kai")), Codes{"GPUFractionInvalid"});
  EXPECT_EQ(codes_of_pods(of("kai-scheduler") + config), Codes{"AnnotationIgnored"});
  EXPECT_EQ(codes_of_pods(of("kai-scheduler") + kConfig + "true}}}\n"), Codes{"GPUFractionInvalid"});
}

TEST(LintKai, TakesTheFlagForMoreThanTheConfig) {
  const std::string text = fraction_pod("gpu-fraction: '0.5'") + kConfig + "false}}}\n";
  EXPECT_EQ(codes_of_pods(text, {.kai_gpu_sharing = true}), Codes{});
  EXPECT_EQ(codes_of_pods(text, {.kai_gpu_sharing = false}), Codes{"KAISharingDisabled"});
}

}  // namespace
}  // namespace gso::lint_pods_test
