// A text in a manifest is somebody else's: it forges no line of the report, and no message has it whole.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reconcilers/lint/lint.h"

namespace gso::lint_hostile_test {
namespace {

using nlohmann::json;

constexpr std::size_t kLong = 20'000;
constexpr std::size_t kMostShown = 256;

std::string hostile() {
  return "x\nf.yaml:1:1: error: FORGED\t" + std::string(kLong, 'A');
}

// Objects whose every text somebody can have written. Most of them are wrong already, so that messages quote them.
std::vector<json> samples() {
  const char* const kPod = R"({"apiVersion":"v1","kind":"Pod",
    "metadata":{"name":"p","labels":{"kai.scheduler/queue":"q","run.ai/gpu-fractions":"1"},
      "annotations":{"gpu-fraction":"2","gpu-memory":"x","gpu-fraction-container-name":"nope","mps":"yes",
        "gpu-fraction-num-devices":"a","nvidia.com/container.c.gpu-compute.mode":"x","gpu-fractoin":"0.5"}},
    "spec":{"schedulerName":"kai-scheduler","nodeSelector":{"nvidia.com/gpu.sharing-strategy":"mps"},
      "volumes":[{"name":"v","hostPath":{"path":"/tmp/nvidia-mps"}}],
      "containers":[{"name":"c","image":"i","env":[{"name":"CUDA_MPS_PIPE_DIRECTORY","value":"/elsewhere"}],
        "volumeMounts":[{"name":"v","mountPath":"/mps"}],
        "resources":{"limits":{"nvidia.com/gpu":"500m","nvidia.com/gpu-4gb":"2"},"requests":{"nvidia.com/gpu":"2"}}}]}})";
  const char* const kPolicy = R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"N"},
    "spec":{"mode":"Autoo","nodeSelector":{"matchLabels":{"a b":"c d"},"matchExpressions":[{"key":"k","operator":"in",
      "values":["v"]}]},"profile":{"inline":{"strategy":"mpss","resource":"nvidia.com/x","replicas":4}},
      "rollout":{"windows":[{"cron":"* *","timeZone":"Nowhere","duration":"1h"}],"canary":{"soak":"1x"}}}})";
  const char* const kProfile = R"({"version":"v2","flags":{"migStrategy":"singel","plugin":{"deviceListStrategy":"a,b"},
    "gfd":{"sleepInterval":"1x"}},"sharing":{"mps":{"resources":[{"name":"gpu/x","replicas":"four","devices":"some",
    "rename":"r"}]},"timeSlicingg":{}}})";
  const json profile = json::parse(kProfile);
  const json config_map{{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", {{"name", "c"}}},
                        {"data", {{"a/b", profile.dump()}, {"any", profile.dump()}}}};
  return {json::parse(kPod),
          json::parse(kPolicy),
          profile,
          config_map,
          json::parse(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n","labels":{
            "nvidia.com/device-plugin.confg":"any"},"annotations":{"gpusharing.dev/hodl":"true"}}})"),
          json::parse(R"({"apiVersion":"v1","kind":"Configmap","metadata":{"name":"c"}})")};
}

// The object once for each of its texts and names of fields: with the hostile text in that place.
void spoil(const json& whole, const json::json_pointer& at, std::vector<json>& out) {
  const json& here = whole.at(at);
  if (here.is_primitive()) {
    out.push_back(whole);
    out.back()[at] = hostile();
  }
  if (here.is_array())
    for (std::size_t i = 0; i < here.size(); ++i) spoil(whole, at / i, out);
  if (!here.is_object()) return;
  for (const auto& [name, value] : here.items()) {
    out.push_back(whole);
    json& parent = out.back()[at];
    parent[hostile()] = value;
    parent.erase(name);
    spoil(whole, at / name, out);
  }
}

void expect_harmless(const std::string& text, const std::string& where) {
  const std::vector<LintedDocument> documents = lint_text("f.yaml", text, PodRules());
  const SourceLines lines(text);
  const std::string too_much(kMostShown + 1, 'A');
  for (const LintedDocument& document : documents) {
    const std::string report = lint_report(document, lines);
    ASSERT_EQ(report.find("\nf.yaml:1:1: error: FORGED"), std::string::npos) << where << report.substr(0, 2000);
    ASSERT_EQ(report.find(too_much), std::string::npos) << where << report.substr(0, 2000);
  }
  const json printed = json::parse(lint_json(documents));  // A temporary would end before the loop begins.
  for (const json& document : printed["documents"]) {
    for (const json& d : document["diagnostics"]) {
      const auto message = d["message"].get<std::string>();
      ASSERT_EQ(message.find_first_of("\n\t"), std::string::npos) << where << message.substr(0, 2000);
      ASSERT_EQ(message.find(too_much), std::string::npos) << where << message.substr(0, 2000);
    }
  }
}

TEST(LintHostile, NoTextForgesALineOrIsShownWhole) {
  for (const json& sample : samples()) {
    std::vector<json> spoilt;
    spoil(sample, json::json_pointer(), spoilt);
    ASSERT_GT(spoilt.size(), 5U);
    for (std::size_t i = 0; i < spoilt.size(); ++i) {
      const std::string where = sample.dump().substr(0, 60) + " #" + std::to_string(i) + ": ";
      ASSERT_NO_FATAL_FAILURE(expect_harmless(spoilt[i].dump(), where));
    }
  }
}

// --- The webhook lints pods on the one thread that renews the Lease: a pod four times as large takes about four times
// as long, not sixteen times.

struct Shape {
  const char* name;
  std::string (*pod)(int count);
};

std::string pod_of(const std::string& metadata, const std::string& spec) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p")" + metadata + R"(},"spec":{)" + spec + "}}";
}

// Parts of a list or of a mapping: "{0}" in `part` is the number of the part.
std::string repeated(int count, const char* part) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + fmt::format(fmt::runtime(part), i);
  return out;
}

const Shape kShapes[] = {
    {"volumes and mounts",
     [](int count) {
       return pod_of("", R"("volumes":[)" + repeated(count, R"({{"name":"v{0}","emptyDir":{{}}}})") +
                             R"(],"containers":[{"name":"c","image":"i","volumeMounts":[)" +
                             repeated(count, R"({{"name":"v{0}","mountPath":"/m{0}"}})") + "]}]");
     }},
    {"labels that are no strings",
     [](int count) {
       return pod_of(R"(,"labels":{)" + repeated(count, R"("l{0}":1)") + "}",
                     R"("containers":[{"name":"c","image":"i"}])");
     }},
    {"limits and requests",
     [](int count) {
       const std::string amounts = repeated(count, R"("nvidia.com/r{0}":"1")");
       return pod_of("", R"("containers":[{"name":"c","image":"i","resources":{"limits":{)" + amounts +
                             R"(},"requests":{)" + amounts + "}}}]");
     }},
    {"containers and settings of them",
     [](int count) {
       return pod_of(
           R"(,"annotations":{)" + repeated(count, R"("nvidia.com/container.c{0}.gpu-memory.limit":"1Gi")") + "}",
           R"("containers":[)" + repeated(count, R"({{"name":"c{0}","image":"i"}})") + "]");
     }},
};

// Processor time, the least of three tries: other programs on the machine do not count.
std::clock_t effort(const std::string& text) {
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begun = std::clock();
    EXPECT_EQ(lint_text("p", text, {}).size(), 1U);
    least = std::min(least, std::clock() - begun);
  }
  return least;
}

TEST(LargePod, IsLintedInTimeThatGrowsAsItsSize) {
  for (const Shape& shape : kShapes) {
    // Under a limit of processor time the clock moves in ticks of some milliseconds.
    const std::clock_t small = std::max<std::clock_t>(effort(shape.pod(2000)), CLOCKS_PER_SEC / 100);
    EXPECT_LT(effort(shape.pod(8000)), 9 * small) << shape.name;
  }
}

}  // namespace
}  // namespace gso::lint_hostile_test
