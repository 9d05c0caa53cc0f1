// What refuses a request, what is a warning, and that both are lint's own lines.
#include "reconcilers/lint/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_test::admission_test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

const std::string kGood =
    "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n";
const std::string kBad =
    "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 1\n";
const std::string kWarned = "version: v1\nnonsense: 1\n";

Json config_map(const Json& data) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", "mps-config"}, {"namespace", "gpu-operator"}}},
          {"data", data}};
}

Json policy(const Json& spec, const Json& metadata = {{"name", "team"}}) {
  return {{"apiVersion", "gpusharing.dev/v1alpha1"}, {"kind", "SharingPolicy"}, {"metadata", metadata}, {"spec", spec}};
}

// Asks for a part of a GPU that KAI refuses.
Json fraction_pod(Json metadata) {
  metadata["annotations"] = {{"gpu-fraction", "1.5"}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", metadata},
          {"spec", {{"schedulerName", "kai-scheduler"}, {"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
}

AdmissionVerdict judge(const Json& object, const Json& before = {}, const AdmissionRules& rules = {}) {
  return judge_admission(object, before, rules);
}

TEST(Admission, ACauseIsTheLineThatLintPrints) {
  const AdmissionVerdict verdict = judge(config_map({{"any", kBad}}));
  ASSERT_THAT(verdict.causes, SizeIs(1));
  EXPECT_EQ(verdict.causes[0].field, "data[any]");
  const std::string text = config_map({{"any", kBad}}).dump();
  const auto linted = lint_text("configmap/mps-config", text, {});
  ASSERT_THAT(linted, SizeIs(1));
  EXPECT_THAT(lint_report(linted[0], SourceLines(text)), StartsWith(verdict.causes[0].line + "\n"));
  EXPECT_THAT(verdict.causes[0].line, StartsWith("configmap/mps-config[any], line 6 of the value, column 17: error: "
                                                 "sharing.mps.resources[0].replicas: "));
}

TEST(Admission, OnlyWhatTheRequestChangesRefusesAConfigMap) {
  struct Case {
    const char* what;
    Json data;
    Json before;
    std::size_t causes;
    std::size_t warnings;
  };
  const Case cases[] = {
      {"a good text", {{"any", kGood}}, {}, 0, 0},
      {"a bad text is created", {{"any", kBad}}, {}, 1, 0},
      {"a good text becomes bad", {{"any", kBad}}, {{"any", kGood}}, 1, 0},
      {"a bad text stays as it is", {{"any", kBad}, {"b", kGood}}, {{"any", kBad}}, 0, 1},
      {"one of two bad texts is corrected", {{"any", kGood}, {"b", kBad}}, {{"any", kBad}, {"b", kBad}}, 0, 1},
      {"two bad texts are written", {{"any", kBad}, {"b", kBad}}, {{"any", kGood}}, 2, 0},
      {"a text with a warning is written", {{"any", kWarned}}, {{"any", kGood}}, 0, 1},
      {"a text with a warning stays", {{"any", kWarned}, {"b", kGood}}, {{"any", kWarned}}, 0, 0},
      {"a bad text is removed", {{"b", kGood}}, {{"any", kBad}, {"b", kGood}}, 0, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const AdmissionVerdict verdict = judge(config_map(c.data), c.before.is_null() ? Json() : config_map(c.before));
    EXPECT_THAT(verdict.causes, SizeIs(c.causes));
    EXPECT_THAT(verdict.warnings, SizeIs(c.warnings));
  }
}

TEST(Admission, APolicyIsJudgedWhenItsSpecChanges) {
  const Json bad{{"nodeSelector", {{"matchLabels", {{"nvidia.com/gpu.replicas", "4"}}}}}};
  const AdmissionVerdict refused = judge(policy(bad));
  ASSERT_THAT(refused.causes, SizeIs(1));
  EXPECT_THAT(refused.causes[0].field, StartsWith("spec.nodeSelector"));
  EXPECT_THAT(refused.causes[0].line, StartsWith("sharingpolicy/team: error: spec.nodeSelector"));
  EXPECT_TRUE(judge(policy(bad, {{"name", "team"}, {"finalizers", Json::array()}}), policy(bad)).allowed())
      << "a finalizer can always be removed";
  EXPECT_TRUE(judge(policy({{"nodeSelector", Json::object()}}), policy(bad)).allowed());
}

TEST(Admission, APodIsWarnedAboutUnlessErrorsRefuse) {
  const Json pod = fraction_pod({{"name", "p"}, {"namespace", "team"}});
  const AdmissionVerdict warned = judge(pod);
  EXPECT_TRUE(warned.allowed());
  EXPECT_THAT(warned.warnings, SizeIs(1));
  const AdmissionVerdict refused = judge(pod, {}, {.pods = {}, .refuse_pods = true, .dry_run = false, .key_users = {}});
  ASSERT_FALSE(refused.allowed());
  EXPECT_EQ(refused.causes[0].line, warned.warnings[0]);
  EXPECT_THAT(judge(pod, pod).warnings, IsEmpty()) << "a stored pod";
}

TEST(Admission, AKeyThatIsUsedIsWarnedAboutWhenItGoes) {
  AdmissionRules rules;
  rules.key_users = [](const std::string& key) { return key == "b" ? std::string() : "node n1 and policy p"; };
  const Json before = config_map({{"any", kGood}, {"b", kGood}});
  const std::string line =
      "configmap/mps-config[any]: warning: the key is removed and still used by node n1 and policy p: pods of the "
      "plugin "
      "that start there would crash-loop. Put it back, or let them use another key first [KeyNotFound]";
  const AdmissionVerdict removed = judge(config_map({{"b", kGood}}), before, rules);
  EXPECT_TRUE(removed.allowed());
  EXPECT_THAT(removed.warnings, ElementsAre(line));
  EXPECT_THAT(judge(config_map({{"any", kGood}}), before, rules).warnings, IsEmpty()) << "nobody uses that key";
  Json binary = config_map({{"b", kGood}});
  binary["binaryData"] = {{"any", "dmVyc2lvbjogdjEK"}};
  EXPECT_THAT(judge(binary, before, rules).warnings, IsEmpty()) << "it moved to binaryData";
  EXPECT_THAT(judge_deletion(before, rules).warnings, ElementsAre(line));
  EXPECT_TRUE(judge_deletion(before, rules).allowed()) << "a namespace, or a release, can always go";
  EXPECT_THAT(judge_deletion(policy(Json::object()), rules).warnings, IsEmpty());
}

// Its pods are created by a controller, which shows their warnings to nobody.
TEST(Admission, AWorkloadIsWarnedAboutWhenItsPodsChangeAndIsNeverRefused) {
  Json pod = fraction_pod({{"labels", {{"app", "d"}}}});
  const Json deployment{
      {"apiVersion", "apps/v1"},
      {"kind", "Deployment"},
      {"metadata", {{"name", "d"}, {"namespace", "team"}}},
      {"spec", {{"replicas", 1}, {"selector", {{"matchLabels", {{"app", "d"}}}}}, {"template", pod}}}};
  pod["spec"]["restartPolicy"] = "Never";
  const Json cron_job{{"apiVersion", "batch/v1"},
                      {"kind", "CronJob"},
                      {"metadata", {{"name", "d"}, {"namespace", "team"}}},
                      {"spec", {{"schedule", "@daily"}, {"jobTemplate", {{"spec", {{"template", pod}}}}}}}};
  for (const Json& object : {deployment, cron_job}) {
    const AdmissionVerdict created =
        judge(object, {}, {.pods = {}, .refuse_pods = true, .dry_run = false, .key_users = {}});
    EXPECT_TRUE(created.allowed()) << object;
    EXPECT_THAT(created.warnings, ElementsAre(HasSubstr("template.metadata.annotations"))) << object;
    EXPECT_THAT(judge(object, object).warnings, IsEmpty()) << object;
  }
  Json scaled = deployment;
  scaled["spec"]["replicas"] = 2;
  EXPECT_THAT(judge(scaled, deployment).warnings, IsEmpty()) << "the same pods, more of them";
}

TEST(Admission, ObjectsOfOtherKindsHaveNoFindings) {
  for (const Json& object : {Json(), Json::array(), Json{{"kind", "Secret"}}, Json{{"kind", 4}}, Json("text")}) {
    EXPECT_TRUE(judge(object).allowed()) << object;
    EXPECT_THAT(judge(object).warnings, IsEmpty()) << object;
  }
}

TEST(AdmissionWarnings, NameACommandThatFindsTheObject) {
  const std::string of_file = "gpu-sharing-operator lint FILE";
  const Json pod = fraction_pod({{"generateName", "web-"}, {"namespace", "team"}});
  EXPECT_EQ(judge(pod).command, of_file) << "its name is not known yet";
  Json named = pod;
  named["metadata"]["name"] = "web-x2x4z";
  EXPECT_EQ(judge(named).command, "kubectl get pod web-x2x4z -n team -o yaml | gpu-sharing-operator lint -");
  AdmissionRules rules;
  rules.dry_run = true;
  EXPECT_EQ(judge(named, {}, rules).command, of_file) << "it is not stored";
  EXPECT_EQ(judge(config_map({{"any", kBad}, {"b", kWarned}}), config_map({{"any", kGood}})).command, of_file)
      << "refused: the former texts stay";
  EXPECT_EQ(judge(config_map({{"any", kWarned}}), config_map({{"any", kGood}})).command,
            "kubectl get configmap mps-config -n gpu-operator -o yaml | gpu-sharing-operator lint -");
}

TEST(AdmissionWarnings, AreCutToWhatKubectlShowsAndNameTheCommandForTheRest) {
  AdmissionVerdict verdict;
  verdict.command = "kubectl get configmap mps-config -n gpu-operator -o yaml | gpu-sharing-operator lint -";
  verdict.warnings = {"short", std::string(256, 'x'), std::string(257, 'x')};
  std::string umlauts;
  for (int i = 0; i < 300; ++i) umlauts += "\u00e4";
  verdict.warnings.push_back(umlauts);
  const std::vector<std::string> shown = kubectl_warnings(verdict);
  ASSERT_THAT(shown, SizeIs(4));
  EXPECT_EQ(shown[0], "short");
  EXPECT_EQ(shown[1], verdict.warnings[1]);
  EXPECT_THAT(shown[2], SizeIs(256));
  EXPECT_THAT(shown[2], HasSubstr("xxx... (all of it: " + verdict.command + ")"));
  const std::string rest = "... (all of it: " + verdict.command + ")";
  EXPECT_EQ(shown[3], umlauts.substr(0, 2 * (256 - rest.size())) + rest) << "characters, none of them cut in half";
}

TEST(AdmissionWarnings, AreAtMostSixteen) {
  AdmissionVerdict verdict;
  verdict.command = "kubectl get x";
  verdict.warnings = std::vector<std::string>(16, "w");
  EXPECT_THAT(kubectl_warnings(verdict), SizeIs(16));
  verdict.warnings.resize(100, "w");
  ASSERT_THAT(kubectl_warnings(verdict), SizeIs(16));
  EXPECT_EQ(kubectl_warnings(verdict).back(), "85 more: kubectl get x");
}

}  // namespace
}  // namespace gso::lint_test::admission_test
