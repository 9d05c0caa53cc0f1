// Inference servers that reserve a fraction of the whole GPU, beside the MPS profile that gives them a slice of it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/checks/inference_memory.h"
#include "reconcilers/lint/lint.h"

namespace gso {
namespace {

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
std::vector<std::string> told(const std::string& text) {
  std::vector<ClusterObject> objects;
  std::vector<LintedDocument> documents = lint_text("f.yaml", text, {}, &objects);
  lint_memory(objects, documents);
  std::vector<std::string> out;
  for (const LintedDocument& document : documents) {
    for (const Diagnostic& d : document.diagnostics) {
      if (d.code == "MemoryFractionAboveSlice") out.push_back(d.path + ": " + d.message);
    }
  }
  return out;
}

const std::string kOnAny = "nodeSelector: {nvidia.com/device-plugin.config: any}, ";

TEST(LintMemory, NamesTheNumberThatFits) {
  const std::vector<std::string> found =
      told(pod("image: vllm/vllm-openai, args: [--model, m, --gpu-memory-utilization=0.9]", kOnAny) + kFour);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0],
            "spec.containers[0].args: container server: vLLM reserves a fraction of the whole GPU "
            "(--gpu-memory-utilization is 0.9), and key any of ConfigMap mps-config shares each GPU by MPS among 4 "
            "clients, which get 1/4 of its memory each: the server would run out of memory at start; set "
            "--gpu-memory-utilization to at most 0.22");
}

TEST(LintMemory, KnowsTheServersTheirFlagsAndTheirDefaults) {
  struct Row {
    std::string container;
    bool told;
    std::string part;
  };
  const std::vector<Row> rows{
      {"image: vllm/vllm-openai, args: [--gpu-memory-utilization, '0.22']", false, ""},
      {"image: vllm/vllm-openai, args: [--gpu-memory-utilization, '0.23']", true, "is 0.23"},
      {"image: vllm/vllm-openai, args: [--model, m]", true, "is not set, and its default is 0.9"},
      {"image: vllm/vllm-openai, command: [sleep, infinity]", false, ""},
      {"image: mine, command: [sh, -c, 'exec vllm serve m --gpu_memory_utilization 0.5']", true, "is 0.5"},
      {"image: mine, command: [python3, -m, vllm.entrypoints.openai.api_server]", true, "default is 0.9"},
      {"image: lmsysorg/sglang, command: [python3, -m, sglang.launch_server, --mem-fraction-static, '0.8']", true,
       "SGLang"},
      {"image: mine, command: [python3, -m, sglang.launch_server]", true, "--mem-fraction-static is not set"},
      {"image: mine, command: [sglang, --mem-fraction-static, '0.2']", false, ""},
      {"image: mine, command: [trtllm-serve, m, --kv_cache_free_gpu_memory_fraction, '0.9']", true, "TensorRT-LLM"},
      {"image: nvcr.io/nvidia/tensorrt-llm/release", true, "free_gpu_memory_fraction is not set"},
      {"image: mine, command: [train]", false, ""},
      {"image: mine", false, ""}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.container);
    const std::vector<std::string> found = told(pod(row.container, kOnAny) + kFour);
    ASSERT_EQ(found.size(), row.told ? 1U : 0U);
    if (row.told) {
      EXPECT_NE(found[0].find(row.part), std::string::npos) << found[0];
    }
  }
}

TEST(LintMemory, GoesByTheProfilesThatThePodCanMeet) {
  const std::string server = "image: vllm/vllm-openai, args: [--gpu-memory-utilization=0.15]";
  EXPECT_EQ(told(pod(server, kOnAny) + kFour).size(), 0U);
  // It may run where ten share a GPU.
  const std::vector<std::string> anywhere = told(pod(server) + kFour);
  ASSERT_EQ(anywhere.size(), 1U);
  EXPECT_NE(anywhere[0].find("key many of ConfigMap mps-config"), std::string::npos);
  EXPECT_NE(anywhere[0].find("at most 0.09"), std::string::npos);
  EXPECT_EQ(told(pod(server, "nodeSelector: {nvidia.com/device-plugin.config: slices}, ") + kFour).size(), 0U);
  EXPECT_EQ(told(pod(server, "", "nvidia.com/gpu.shared") + kFour).size(), 0U) << "nobody offers that name";
  EXPECT_EQ(told(pod(server)).size(), 0U);
  const std::string inline_profile =
      "---\n{apiVersion: gpusharing.dev/v1alpha1, kind: SharingPolicy, metadata: {name: p8}, spec: {profile: {inline: "
      "{strategy: mps, replicas: 8, renameByDefault: true}}}}\n";
  EXPECT_EQ(told(pod(server, "", "nvidia.com/gpu.shared") + inline_profile).size(), 1U);
}

TEST(FittingFraction, LeavesRoomForTheContext) {
  EXPECT_DOUBLE_EQ(fitting_fraction(2), 0.45);
  EXPECT_DOUBLE_EQ(fitting_fraction(3), 0.30);
  EXPECT_DOUBLE_EQ(fitting_fraction(4), 0.22);
  EXPECT_DOUBLE_EQ(fitting_fraction(10), 0.09);
  EXPECT_DOUBLE_EQ(fitting_fraction(48), 0.01);
}

}  // namespace
}  // namespace gso
