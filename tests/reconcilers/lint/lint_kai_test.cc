// KAI's fraction pods beside Nodes, kai-config and RuntimeClasses: what can never be placed among them.
#include <gtest/gtest.h>

#include <string>

#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_kai_test {
namespace {

using namespace lint_test;

constexpr const char* kNode =
    "---\n{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {nvidia.com/gpu.memory: '40960'}}, status: "
    "{allocatable: {nvidia.com/gpu: '2'}}}\n";
constexpr const char* kConfig =
    "---\n{apiVersion: kai.scheduler/v1, kind: Config, metadata: {name: kai-config}, spec: {admission: {gpuSharing: ";

std::string pod(const std::string& annotations, const std::string& spec = "") {
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
      {"alone", pod("gpu-memory: '80000'"), {}},
      {"it fits", pod("gpu-memory: '40900'") + kNode, {}},
      {"too much memory", pod("gpu-memory: '80000'") + kNode, {"KAICannotPlace"}},
      {"too many devices", pod("gpu-fraction: '0.5', gpu-fraction-num-devices: '3'") + kNode, {"KAICannotPlace"}},
      {"a node without the label",
       pod("gpu-memory: '2000'") +
           "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {nvidia.com/gpu: '2'}}}\n",
       {"KAICannotPlace"}},
      {"sharing off", pod("gpu-fraction: '0.5'") + config + "false}}}\n", {"KAISharingDisabled"}},
      {"a fraction in the mode of other annotations",
       pod("gpu-fraction: '0.5'") + config + "false}, global: {gpuSharingMode: NvFractions}}}\n",
       {"FractionOfOlderMode"}},
      {"sharing on", pod("gpu-fraction: '0.5'") + config + "true}}}\n", {}},
      {"a missing RuntimeClass",
       pod("gpu-fraction: '0.5'") + config +
           "true}}}\n---\n{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: other}, handler: x}\n",
       {"KAICannotPlace"}},
      {"an unscheduled scaling pod",
       pod("gpu-fraction: '0.5'") + kNode +
           "---\n{apiVersion: v1, kind: Pod, metadata: {name: s, namespace: kai-scale-adjust}, spec: {containers: "
           "[{name: c, image: i}]}}\n",
       {"KAICannotPlace"}},
      {"a taint that takes the reservation",
       pod("gpu-fraction: '0.5'", ", tolerations: [{key: m, operator: Exists}]") +
           "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: [{key: m, effect: NoExecute}]}}\n",
       {"KAIReservationWithoutToleration"}},
      {"a bound pod", pod("gpu-memory: '80000'", ", nodeName: n1") + kNode, {}},
      {"another scheduler's Config",
       pod("gpu-fraction: '0.5'") + "---\n{apiVersion: a/v1, kind: Config, metadata: {name: x}}\n",
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
    std::string text = pod("gpu-fraction: '7'");
    return text.replace(text.find("kai-scheduler"), std::string_view("kai-scheduler").size(), scheduler);
  };
  EXPECT_EQ(codes_of_pods(of("my-kai")), Codes{"AnnotationIgnored"});
  EXPECT_EQ(codes_of_pods(of("my-kai") + config), Codes{"GPUFractionInvalid"});
  EXPECT_EQ(codes_of_pods(config + "---\n" + of("my-kai")), Codes{"GPUFractionInvalid"});
  EXPECT_EQ(codes_of_pods(of("kai-scheduler") + config), Codes{"AnnotationIgnored"});
  EXPECT_EQ(codes_of_pods(of("kai-scheduler") + kConfig + "true}}}\n"), Codes{"GPUFractionInvalid"});
}

TEST(LintKai, TakesTheFlagForMoreThanTheConfig) {
  const std::string text = pod("gpu-fraction: '0.5'") + kConfig + "false}}}\n";
  EXPECT_EQ(codes_of_pods(text, {.kai_gpu_sharing = true}), Codes{});
  EXPECT_EQ(codes_of_pods(text, {.kai_gpu_sharing = false}), Codes{"KAISharingDisabled"});
}

}  // namespace
}  // namespace gso::lint_kai_test
