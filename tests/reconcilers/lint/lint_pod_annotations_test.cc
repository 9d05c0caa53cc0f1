// Annotations by which a pod asks KAI for a share of a GPU, and an MPS daemon's clients for what they lack.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_pod_annotations_test {
namespace {

using namespace lint_test;

std::string pod(const std::string& annotations, const std::string& limits = "",
                const std::string& scheduler = "kai-scheduler") {
  return "kind: Pod\napiVersion: v1\nmetadata: {name: p, annotations: {" + annotations +
         "}}\nspec:\n  schedulerName: " + scheduler + "\n  containers: [{name: main, image: i, resources: {limits: {" +
         limits + "}}}]\n";
}

TEST(LintDocuments, PodsAreCheckedAsKaisAdmissionDoes) {
  struct Case {
    std::string annotations;
    std::string limits;
    Codes codes;
  };
  const std::vector<Case> cases{
      {"gpu-fraction: '0.25'", "", {}},
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
      {"gpu-fraction: '0.5', gpu-fraction-container-name: main", "", {}},
      {"gpu-fraction-container-name: side", "nvidia.com/gpu: 1", {"AnnotationIgnored"}},
      {"mps: 'true'", "", {"MPSWithoutFraction"}},
      {"mps: 'True', gpu-fraction: '0.5'", "", {"AnnotationIgnored"}},
      {"gpusharing.dev/mps-client: true", "", {"AnnotationNoString"}},
      {"gpusharing.dev/mps-client: 'True'", "", {"AnnotationIgnored"}},
      {"gpusharing.dev/mps-pipe-directory: /run/nvidia-mps", "", {}},
      {"gpusharing.dev/mps-pipe-directory: '/a.b/c-d/_e'", "", {}},
      {"gpusharing.dev/mps-pipe-directory: run/nvidia-mps", "", {"AnnotationIgnored"}},
      {"gpusharing.dev/mps-pipe-directory: '/tmp/../etc'", "", {"AnnotationIgnored"}},
      {"gpusharing.dev/mps-pipe-directory: '/tmp//x'", "", {"AnnotationIgnored"}},
      {"gpusharing.dev/mps-pipe-directory: '/tmp/'", "", {"AnnotationIgnored"}},
      {"gpusharing.dev/mps-pipe-directory: '/'", "", {"AnnotationIgnored"}},
      {"gpusharing.dev/mps-pipe-directory: '/a b'", "", {"AnnotationIgnored"}},
      {"", "nvidia.com/gpu: 2", {}}};
  for (const Case& c : cases) EXPECT_EQ(codes(lint(pod(c.annotations, c.limits))[0]), c.codes) << c.annotations;
  EXPECT_EQ(codes(lint(pod("gpu-fraction: '7'", "", "default-scheduler"))[0]), Codes{"AnnotationIgnored"});
  EXPECT_EQ(codes(lint(pod("gpu-fraction: '0.5'"), {.kai_gpu_sharing = false})[0]), Codes{"KAISharingDisabled"});
  EXPECT_EQ(codes(lint(pod("", "nvidia.com/gpu: 1"), {.kai_gpu_sharing = false})[0]), Codes{});
}

TEST(LintDocuments, AClientOfAnMpsDaemonIsToldWhatItLacksUnlessTheClusterAddsIt) {
  const std::string client = "mps: 'true', gpu-fraction: '0.5'";
  const Codes lacking{"NoPipeDirectory", "NoHostIPC", "NoDaemonSelector"};
  EXPECT_EQ(codes(lint(pod(client, ""))[0], true), lacking);
  EXPECT_EQ(codes(lint(pod(client + ", gpusharing.dev/mps-client: 'false'", ""))[0], true), lacking);
  EXPECT_EQ(codes(lint(pod(client + ", gpusharing.dev/mps-client: 'true'", ""))[0], true), Codes{});
}

}  // namespace
}  // namespace gso::lint_pod_annotations_test
