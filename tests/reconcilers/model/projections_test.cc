// What planners get to see of an object's JSON, where a rule is behind it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "k8sclient/watch/store.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/partitioning_world.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso::projections_test {
namespace {

template <typename Object>
Object read(k8s::Result<Object> projected) {
  EXPECT_TRUE(projected.has_value()) << (projected ? "" : projected.error().message);
  return projected ? *std::move(projected) : Object();
}

TEST(Projections, InitContainersThatHaveSucceededAreNotKept) {
  const auto pod = read(project_pod(R"({"kind":"Pod","metadata":{"name":"p","namespace":"n"},"status":{
    "initContainerStatuses":[
      {"name":"toolkit-validation","ready":true,"restartCount":0,"state":{"terminated":{"exitCode":0}}},
      {"name":"config-manager-init","ready":false,"restartCount":3,
       "state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"message":"no key"}}}],
    "containerStatuses":[{"name":"plugin","ready":true,"restartCount":0,"state":{"running":{}}}]}})"));
  ASSERT_EQ(pod.init_containers.size(), 1U);
  EXPECT_EQ(pod.init_containers[0].name, "config-manager-init");
  EXPECT_EQ(pod.init_containers[0].waiting_reason, "CrashLoopBackOff");
  EXPECT_EQ(pod.init_containers[0].last_message(), "no key");
  ASSERT_EQ(pod.containers.size(), 1U);
  EXPECT_TRUE(pod.containers[0].running);
}

TEST(Projections, OfInitContainersThatHaveFinishedOnlyTheReportOfAStandaloneMpsDaemonIsKept) {
  const auto kept = [](const std::string& name, const std::string& message, const std::string& code) {
    const auto pod = read(project_operand_pod(
        R"({"kind":"Pod","metadata":{"name":"p","namespace":"n"},"status":{"initContainerStatuses":[{"name":")" + name +
        R"(","ready":true,"state":{"terminated":{"exitCode":)" + code + R"(,"message":")" + message + R"("}}}]}})"));
    return pod.init_containers.empty() ? "" : std::string(pod.init_containers[0].last_message());
  };
  EXPECT_EQ(kept("standalone-mps-check", "pipeDirectory=/tmp/nvidia-mps gpus=2", "0"),
            "pipeDirectory=/tmp/nvidia-mps gpus=2");
  EXPECT_EQ(kept("standalone-mps-check", "pipeDirectory=/" + std::string(1000, 'a'), "0").size(), 256U);
  EXPECT_EQ(kept("standalone-mps-check", "Unable to get init container status", "0"), "");
  EXPECT_EQ(kept("toolkit-validation", "pipeDirectory=/tmp/nvidia-mps gpus=2", "0"), "");
}

TEST(Projections, HowAContainerEndedAndHowItEndedBeforeAreTwoThings) {
  const auto pod =
      read(project_pod(R"({"kind":"Pod","metadata":{"name":"p","namespace":"n"},"status":{"containerStatuses":[
    {"name":"ended","state":{"terminated":{"exitCode":137,"reason":"Error"}},
     "lastState":{"terminated":{"exitCode":1,"reason":"OOMKilled","message":"before"}}},
    {"name":"waits","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":2}}},
    {"name":"runs","state":{"running":{}},"lastState":{}}]}})"));
  const ContainerStatus& ended = pod.containers[0];
  ASSERT_TRUE(ended.terminated && ended.last_terminated);
  EXPECT_EQ(ended.terminated->exit_code, 137);
  EXPECT_EQ(ended.terminated->reason, "Error");
  EXPECT_EQ(ended.last_terminated->exit_code, 1);
  EXPECT_EQ(ended.last_terminated->reason, "OOMKilled");
  EXPECT_EQ(ended.last_exit_code(), 137) << "the newest";
  EXPECT_EQ(ended.last_message(), "before") << "the newest that there is";
  EXPECT_FALSE(pod.containers[1].terminated);
  EXPECT_EQ(pod.containers[1].last_exit_code(), 2);
  EXPECT_EQ(pod.containers[2].last_exit_code(), 0);
  ContainerStatus same = ended;
  EXPECT_EQ(same, ended) << "by value";
  same.terminated = {};
  EXPECT_NE(same, ended);
}

// HAMi's list of a machine's GPUs changes with their health, and only that it is there says anything.
TEST(Projections, OfHamisMarkOnANodeOnlyItsPresenceIsKept) {
  const auto node = read(project_node(R"({"kind":"Node","metadata":{"name":"n","annotations":{
    "hami.io/node-nvidia-register":"GPU-0,10,32768,100,NVIDIA-V100,0,true:",
    "hami.io/node-handshake":"Requesting_2026.01.02 00:00:00"}}})"));
  EXPECT_EQ(node.meta.annotations.size(), 1U);
  EXPECT_EQ(node.meta.annotations.get("hami.io/node-nvidia-register"), "");
}

// The expected sums are those of k8s.io/component-helpers, resource.PodRequests.
TEST(Projections, RequestsOfSidecarsAreSummedAndThoseOfInitStepsAreNot) {
  struct Row {
    std::string_view init;
    std::string_view main;
    std::int64_t total;
    std::string_view why;
  };
  constexpr Row kRows[] = {
      {"", "2 1", 3, "containers add up"},
      {"2", "2", 2, "an init step ends before the containers start"},
      {"5", "2", 5, "the largest step counts"},
      {"2s", "2", 4, "a sidecar runs beside the containers"},
      {"1s 3", "1", 4, "a step runs beside the sidecars before it"},
      {"3 1s", "1", 3, "and not beside those after it"},
      {"1s 2s", "1", 4, "sidecars add up"},
  };
  const auto containers = [](std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') continue;
      const bool sidecar = i + 1 < text.size() && text[i + 1] == 's';
      out += fmt::format(R"({}{{"name":"c","resources":{{"limits":{{"nvidia.com/gpu":"{}"}}}}{}}})",
                         out.empty() ? "" : ",", text[i], sidecar ? R"(,"restartPolicy":"Always")" : "");
    }
    return out;
  };
  for (const Row& row : kRows) {
    const auto pod = read(project_pod(
        fmt::format(R"({{"kind":"Pod","metadata":{{"name":"p"}},"spec":{{"containers":[{}],"initContainers":[{}]}}}})",
                    containers(row.main), containers(row.init))));
    const auto total = pod.gpu_requests.find(Interned("nvidia.com/gpu"));
    ASSERT_NE(total, pod.gpu_requests.end()) << row.why;
    EXPECT_EQ(total->second, row.total) << row.why;
  }
}

TEST(Projections, VariablesThatRepeatEachOtherDoNotGrowWithoutBounds) {
  std::string variables = R"({"name":"V0","value":"xxxxxxxxxxxxxxxx"})";
  for (int i = 1; i < 60; ++i) variables += fmt::format(R"(,{{"name":"V{0}","value":"$(V{1}) $(V{1}) "}})", i, i - 1);
  variables += R"(,{"name":"ROOT","value":"/run/nvidia"},{"name":"CUDA_MPS_PIPE_DIRECTORY","value":"$(ROOT)/$(V59) "})";
  const auto pod = read(project_pod(fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","env":[{}]}}]}}}})", variables)));
}

// N texts that differ, made from a pattern.
std::string many(const std::string& pattern, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + fmt::format(fmt::runtime(pattern), i);
  return out;
}

// An object of 1.5 MB that a tenant may write, full of what the projections read: what is kept of it is small, and so
// is the time it takes.
TEST(Projections, OfAnObjectThatATenantFillsLittleIsKept) {
  constexpr int kMany = 20'000;
  const std::string meta = R"("metadata":{"name":"p","namespace":"team","uid":"u","labels":{)" +
                           many(R"("l{0}":"v{0}")", kMany) + R"(,"runai-gpu-group":"g"},"annotations":{)" +
                           many(R"("gpu-{0}":"a{0}")", kMany) + R"(},"ownerReferences":[)" +
                           many(R"({{"kind":"K","name":"n{0}","uid":"u{0}"}})", kMany) + "]}";
  const std::string limits = many(R"("nvidia.com/gpu-{0}gb":"1000")", kMany);
  const std::string containers = R"([{"name":"c","image":"i","resources":{"limits":{)" + limits +
                                 R"(}},"env":[{"name":"A","value":")" + std::string(4000, 'x') + "\"}," +
                                 many(R"j({{"name":"V{0}","value":"$(A)"}})j", kMany) + R"(],"volumeMounts":[)" +
                                 many(R"({{"name":"v{0}","mountPath":"/m{0}"}})", kMany) + "]}]";
  const std::string terms =
      many(R"({{"matchExpressions":[{{"key":"k{0}","operator":"In","values":["x{0}"]}}]}})", kMany);
  const std::string spec =
      R"("spec":{"containers":)" + containers + R"(,"volumes":[)" +
      many(R"({{"name":"v{0}","hostPath":{{"path":"/h{0}"}}}})", kMany) + R"(],"tolerations":[)" +
      many(R"({{"key":"t{0}","operator":"Exists"}})", kMany) + R"(],"nodeSelector":{)" +
      many(R"("s{0}":"v{0}")", kMany) +
      R"(},"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)" +
      terms + "]}}}}";
  const std::string json = R"({"kind":"Pod",)" + meta + "," + spec + R"(,"status":{"phase":"Pending"}})";
  ASSERT_GT(json.size(), 1'500'000U);
  constexpr std::size_t kMost = 128U << 10U;
  const std::size_t before = k8s::Interned::pool_bytes();
  const auto pod = read(project_pod(json));
  EXPECT_LE(k8s::Interned::pool_bytes() - before, kMost);
  EXPECT_LE(pod.meta.owners.size() + pod.gpu_requests.size() + pod.host_paths.size(), 200U);
  const auto for_kai = read(project_kai_pod(json));
  EXPECT_LE(k8s::Interned::pool_bytes() - before, kMost);
  EXPECT_EQ(for_kai.meta.labels.get("runai-gpu-group"), "g") << "whatever stands before it";
  EXPECT_LE(for_kai.tolerations.size(), 16U);
  EXPECT_LE(memory_of(for_kai), 32U << 10U);
  const auto for_slices = read(project_slice_pod(json));
  EXPECT_LE(k8s::Interned::pool_bytes() - before, kMost);
  EXPECT_LE(for_slices.slices.size(), 1000U);
  EXPECT_LE(for_slices.affinity_terms.size() + for_slices.tolerations.size() + for_slices.requests.size(), 200U);
}

TEST(Projections, TheValuesOfAllTermsOfAPodsAffinityAreBoundedTogether) {
  constexpr int kMany = 60;
  const std::string expression =
      R"({"key":"k","operator":"In","values":[)" + many(R"("a-value-of-a-node-{0}")", kMany) + "]}";
  std::string expressions = expression;
  for (int i = 1; i < kMany; ++i) expressions += "," + expression;
  std::string terms;
  for (int i = 0; i < kMany; ++i)
    terms += fmt::format(R"({}{{"matchExpressions":[{}]}})", terms.empty() ? "" : ",", expressions);
  const auto pod = read(project_slice_pod(
      R"({"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","resources":{"limits":)"
      R"({"nvidia.com/gpu-1gb":"1"}}}],"affinity":{"nodeAffinity":)"
      R"({"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)" +
      terms + "]}}}}}"));
  EXPECT_FALSE(pod.affinity_terms.empty());
  EXPECT_LE(memory_of(pod), 256U << 10U);
}

TEST(Projections, OfAPodOfKaiOnlyTheAnnotationsThatAreReadAreKeptAndNoLongerThanAName) {
  std::string annotations = R"("gpu-fraction":"0.5","gpusharing.dev/other":"x","gpusharing.dev/do-not-disrupt":"true")";
  for (int i = 0; i < 60; ++i) annotations += fmt::format(R"(,"gpu-{}":"{}")", i, std::string(4000, 'x'));
  annotations += fmt::format(R"(,"run.ai/reserve_for_gpu_index":"GPU-{}")", std::string(4000, 'x'));
  const auto pod = read(project_kai_pod(fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"n","annotations":{{{}}}}},"spec":{{"schedulerName":"{}"}}}})",
      annotations, std::string(4000, 's'))));
  EXPECT_EQ(pod.meta.annotations.size(), 2U);
  EXPECT_EQ(pod.meta.annotations.get("gpusharing.dev/do-not-disrupt"), "true");
  EXPECT_EQ(pod.meta.annotations.get("run.ai/reserve_for_gpu_index")->size(), 253U);
  EXPECT_EQ(pod.scheduler_name.view().size(), 253U);
}

TEST(Projections, OfADaemonSetsLongTextsTheBeginningIsKept) {
  const std::string text(100'000, 'x');
  const auto daemonset = read(project_daemonset(
      R"({"kind":"DaemonSet","metadata":{"name":"d","namespace":"n","annotations":{"nvidia.com/a":")" + text +
      R"("}},"spec":{"template":{"spec":{"containers":[{"name":"c","args":[")" + text +
      R"("],"env":[{"name":"A","value":")" + text + R"("},{"name":"B","value":"b"}]}]}}}})"));
  const ContainerSpec& container = daemonset.containers.at(0);
  EXPECT_EQ(container.command.at(0).size(), 4096U);
  EXPECT_EQ(container.env, (std::map<std::string, std::string>{{"B", "b"}}));
  EXPECT_TRUE(container.env_elsewhere) << "the value of A is not known";
  EXPECT_EQ(daemonset.meta.annotations.get("nvidia.com/a")->size(), 4096U);
}

TEST(Projections, APodThatBecomesReadyIsNoChangeOfItsDaemonSet) {
  const auto daemonset = [](int ready, int version) {
    return *project_daemonset(fmt::format(
        R"({{"kind":"DaemonSet","metadata":{{"name":"d","namespace":"n","generation":3,"resourceVersion":"{1}"}},
        "spec":{{"template":{{"spec":{{"containers":[{{"name":"nvidia-device-plugin"}}]}}}}}},
        "status":{{"observedGeneration":3,"desiredNumberScheduled":9,"updatedNumberScheduled":{0},"numberAvailable":{0}}}}})",
        ready, version));
  };
  k8s::Store<DaemonSet> store;
  int woken = 0;
  store.add_listener([&](const auto&, const auto&, const auto&) { ++woken; });
  store.apply(daemonset(1, 1));
  store.apply(daemonset(2, 2));
  EXPECT_EQ(woken, 1) << "the first time only";
  EXPECT_EQ(store.find(ObjectKey{"n", "d"})->meta.resource_version, "2") << "a restart needs the newest one";
}

TEST(Projections, OfAPolicysLongAnnotationsTheBeginningIsKept) {
  std::string text = R"({"metadata":{"name":"p","annotations":{"gpusharing.dev/adopt-drift":"true",)"
                     R"("gpusharing.dev/retry":")";
  for (int i = 0; i < 100'000; ++i) text += "\u00e4";
  const auto policy = read(project_sharing_policy(text + R"("}},"spec":{}})"));
  EXPECT_EQ(retry_of(policy).size(), 256U);
  EXPECT_EQ(policy.meta.annotations.get("gpusharing.dev/adopt-drift"), "true");
}

TEST(Projections, NullInAPolicyIsAsIfTheFieldWereAbsent) {
  const auto policy = read(project_sharing_policy(R"({"kind":"SharingPolicy","metadata":{"name":"p"},"spec":{
    "profile":{"configMapKey":null,"inline":null},"rollout":{"cordon":null},"revisionHistoryLimit":null}})"));
  EXPECT_FALSE(policy.config_map_key.has_value());
  EXPECT_FALSE(policy.inline_profile.has_value());
  EXPECT_FALSE(policy.rollout.cordon.has_value());
  EXPECT_FALSE(policy.revision_history_limit.has_value());
}

// --- In doubt a switch that stops the operator is on.

TEST(SwitchValue, IsOffOnlyWhereItSaysSo) {
  EXPECT_FALSE(is_switched_on(std::nullopt));
  for (const char* off : {"", "false", "False", "FALSE", "0", "no", "No", "off", "OFF"})
    EXPECT_FALSE(is_switched_on(off)) << off;
  for (const char* on : {"true", "True", "TRUE", "1", "yes", "on", "treu", "10m", " ", "00", "falsee", "n"})
    EXPECT_TRUE(is_switched_on(on)) << on;
}

TEST(SwitchValue, SaysNoInAnyCase) {
  for (const char* no : {"false", "False", "0", "NO", "Off"}) EXPECT_TRUE(says_no(no)) << no;
  for (const char* other : {"", "true", "1", "never"}) EXPECT_FALSE(says_no(other)) << other;
}

}  // namespace
}  // namespace gso::projections_test
