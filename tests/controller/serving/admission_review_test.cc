// AdmissionReviews as the API server sends them, and the answers that it understands.
#include "controller/serving/admission_review.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/controller/sim_time.h"

namespace gso::admission_review_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kBad =
    "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 1\n";

Json config_map(const std::string& name, const std::string& text) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", "gpu-operator"}}},
          {"data", {{"any", text}}}};
}

Json review_of(const Json& object, const Json& before = {}) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "u-1"},
            {"operation", before.is_null() ? "CREATE" : "UPDATE"},
            {"dryRun", false},
            {"object", object},
            {"oldObject", before}}}};
}

class AdmissionReviewTest : public testing::Test {
 protected:
  AdmissionReviewTest() {
    parts.holds_profiles = [](const k8s::ObjectKey& key) {
      return key == k8s::ObjectKey{"gpu-operator", "mps-config"};
    };
    parts.pod_rules = [] { return PodRules(); };
    parts.metrics = std::make_shared<Metrics>();
  }

  Json answer(const Json& review) {
    const HttpAnswer got = answer_review(review.dump(), parts);
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.content_type, "application/json");
    Json out = Json::parse(got.body, nullptr, false);
    EXPECT_EQ(out["apiVersion"], "admission.k8s.io/v1");
    EXPECT_EQ(out["kind"], "AdmissionReview");
    EXPECT_EQ(out["response"]["uid"], "u-1");
    return out["response"];
  }
  // The text of the answer to these bytes.
  std::string said(const std::string& review, bool beginning = false) {
    return answer_review(review, parts, beginning).body;
  }
  double counted(const std::string& kind, const std::string& result) {
    return parts.metrics->value("gpusharing_admission_reviews_total", {{"kind", kind}, {"result", result}});
  }

  AdmissionParts parts;
};

TEST_F(AdmissionReviewTest, WarnsOfAKeyInUseThatIsDeletedWithItsConfigMap) {
  parts.key_users = [](const k8s::ObjectKey& config_map) {
    return [ours = config_map.name == "mps-config"](const std::string& key) {
      return ours && key == "any" ? "node n1" : std::string();
    };
  };
  Json review = review_of(Json(), config_map("mps-config", kBad));
  review["request"]["operation"] = "DELETE";
  const Json response = answer(review);
  EXPECT_EQ(response["allowed"], true);
  ASSERT_EQ(response["warnings"].size(), 1U);
  EXPECT_THAT(response["warnings"][0].get<std::string>(), HasSubstr("the key is removed and still used by node n1"));
  EXPECT_EQ(counted("ConfigMap", "warned"), 1);
  review["request"]["oldObject"] = config_map("other", kBad);
  EXPECT_FALSE(answer(review).contains("warnings")) << "no plugin reads that one";
  review["request"].erase("oldObject");
  EXPECT_EQ(answer_review(review.dump(), parts).status, 400);
}

TEST_F(AdmissionReviewTest, ReadsWhoUsesItsKeysOnceAndOnlyIfOneIsRemoved) {
  int reads = 0;
  parts.key_users = [&reads](const k8s::ObjectKey&) {
    ++reads;
    return [](const std::string&) { return std::string("node n1"); };
  };
  const Json one = config_map("mps-config", "version: v1\n");
  Json three = one;
  three["data"]["b"] = three["data"]["c"] = "version: v1\n";
  EXPECT_FALSE(answer(review_of(three, one)).contains("warnings"));
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(answer(review_of(one, three))["warnings"].size(), 2U);
  EXPECT_EQ(reads, 1);
}

TEST_F(AdmissionReviewTest, RefusesAsTheApiServerRefusesAnInvalidObject) {
  const Json response = answer(review_of(config_map("mps-config", kBad)));
  EXPECT_EQ(response["allowed"], false);
  const Json& status = response["status"];
  EXPECT_EQ(status["code"], 422);
  EXPECT_EQ(status["reason"], "Invalid");
  EXPECT_EQ(status["status"], "Failure");
  EXPECT_EQ(status["details"]["kind"], "ConfigMap");
  EXPECT_EQ(status["details"]["name"], "mps-config");
  ASSERT_EQ(status["details"]["causes"].size(), 1U);
  const Json& cause = status["details"]["causes"][0];
  EXPECT_EQ(cause["reason"], "FieldValueInvalid");
  EXPECT_EQ(cause["field"], "data[any]");
  EXPECT_THAT(cause["message"].get<std::string>(), StartsWith("configmap/mps-config[any], line 6 of the value"));
  EXPECT_THAT(status["message"].get<std::string>(), HasSubstr(cause["message"].get<std::string>()))
      << "`kubectl apply` shows only the message";
  EXPECT_EQ(counted("ConfigMap", "refused"), 1);
}

TEST_F(AdmissionReviewTest, AllowsAConfigMapThatNoPluginReadsAndWarnsOfDoubts) {
  EXPECT_EQ(answer(review_of(config_map("other", kBad))), (Json{{"uid", "u-1"}, {"allowed", true}}));
  EXPECT_EQ(counted("ConfigMap", "allowed"), 1);
  const Json response = answer(review_of(config_map("mps-config", "version: v1\nnonsense: 1\n")));
  EXPECT_EQ(response["allowed"], true);
  ASSERT_EQ(response["warnings"].size(), 1U);
  EXPECT_THAT(response["warnings"][0].get<std::string>(), HasSubstr("nonsense"));
  EXPECT_EQ(counted("ConfigMap", "warned"), 1);
}

// What kubectl shows of a long warning ends with the command for the rest, which has to find it: in the file.
TEST_F(AdmissionReviewTest, ADryRunGetsTheSameAnswerWithTheFileOfItsAuthor) {
  const auto both = [this](const std::string& text) {
    Json review = review_of(config_map("mps-config", text));
    const Json before = answer(review);
    review["request"]["dryRun"] = true;
    return std::pair(before, answer(review));
  };
  const auto [refused, refused_dry] = both(kBad);
  EXPECT_EQ(refused_dry, refused);
  const auto [warned, warned_dry] = both("version: v1\n" + std::string(300, 'x') + ": 1\n");
  EXPECT_THAT(warned["warnings"][0].get<std::string>(), HasSubstr("(all of it: kubectl get configmap mps-config "));
  EXPECT_THAT(warned_dry["warnings"][0].get<std::string>(), HasSubstr("(all of it: gpu-sharing-operator lint FILE)"));
}

TEST_F(AdmissionReviewTest, WhatCannotBeReadIsNoAnswer) {
  const Json good = review_of(config_map("mps-config", kBad));
  const auto changed = [&](const Json& merged) {
    Json out = good;
    out.merge_patch(merged);
    return out.dump();
  };
  const std::string texts[] = {"",
                               "{",
                               "null",
                               "[]",
                               good.dump().substr(0, 100),
                               changed({{"request", {{"uid", nullptr}}}}),
                               changed({{"request", {{"object", nullptr}}}}),
                               changed({{"request", "text"}}),
                               changed({{"apiVersion", "admission.k8s.io/v1beta1"}}),
                               changed({{"kind", "Status"}}),
                               std::string(1'000'000, '['),
                               R"({"a":)" + std::string(300, '[') + std::string(300, ']') + "}"};
  for (const std::string& text : texts) EXPECT_EQ(answer_review(text, parts).status, 400) << text.substr(0, 200);
  EXPECT_EQ(counted("", "unreadable"), std::ssize(texts));
}

// As the API server writes a review: what it is about comes before the objects.
std::string written_by_the_api_server(const std::string& kind, const std::string& name, const std::string& object,
                                      const std::string& before = "null") {
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"",)"
         R"("version":"v1","kind":")" +
         kind + R"("},"name":")" + name + R"(","namespace":"gpu-operator","operation":"CREATE","object":)" + object +
         R"(,"oldObject":)" + before + R"(,"dryRun":false}})";
}
std::string pod_with_args(std::size_t count) {
  std::string args;
  for (std::size_t i = 0; i < count; ++i) args += i == 0 ? R"("")" : R"(,"")";
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"big"},"spec":{"containers":[{"name":"c","image":"i","args":[)" +
         args + "]}]}}";
}

TEST_F(AdmissionReviewTest, ObjectsThatAreNotJudgedAreAllowedUnread) {
  const std::string unreadable = R"({"metadata":)" + std::string(300, '[') + std::string(300, ']') + "}";
  for (const char* kind : {"Secret", "ConfigMap"}) {
    const HttpAnswer got = answer_review(written_by_the_api_server(kind, "other", unreadable), parts);
    EXPECT_EQ(got.status, 200) << kind;
    EXPECT_EQ(Json::parse(got.body)["response"], (Json{{"uid", "u-1"}, {"allowed", true}})) << kind;
  }
  EXPECT_EQ(answer_review(written_by_the_api_server("ConfigMap", "mps-config", unreadable), parts).status, 400);
}

TEST_F(AdmissionReviewTest, WhatIsTooLargeToCheckIsAllowedWithAWarning) {
  const std::string text(300'000, 'x');
  const std::string config = config_map("mps-config", text).dump();
  const std::string small = config_map("mps-config", "version: v1").dump();
  const std::string reviews[] = {
      written_by_the_api_server("Pod", "big", pod_with_args(700'000)),
      written_by_the_api_server("Pod", "big", pod_with_args(9'000)),
      written_by_the_api_server("ConfigMap", "mps-config", config),
      written_by_the_api_server("ConfigMap", "mps-config", small, config),
  };
  for (const std::string& review : reviews) {
    const HttpAnswer got = answer_review(review, parts);
    ASSERT_EQ(got.status, 200) << review.substr(0, 300);
    const Json response = Json::parse(got.body)["response"];
    EXPECT_EQ(response["allowed"], true);
    ASSERT_EQ(response["warnings"].size(), 1U) << review.substr(0, 300);
    EXPECT_THAT(response["warnings"][0].get<std::string>(), HasSubstr(" is too large to check: "));
  }
  EXPECT_EQ(counted("Pod", "too_large"), 2);
  EXPECT_EQ(counted("ConfigMap", "too_large"), 2);
  EXPECT_THAT(answer_review(written_by_the_api_server("Pod", "big", pod_with_args(5'000)), parts).body,
              testing::Not(HasSubstr("too large")));
}

// Whoever sends many reviews must not take the time in which the Lease is renewed.
TEST_F(AdmissionReviewTest, BeyondTheShareOfTimeOfTheirKindObjectsAreAllowedUnchecked) {
  Sim sim;
  parts.clock = &sim.clock;
  const std::string review = review_of(config_map("mps-config", kBad)).dump();
  parts.time->workloads.take(sim.clock.monotonic(), 100'000);
  EXPECT_THAT(said(written_by_the_api_server("Pod", "big", pod_with_args(5'000))), HasSubstr("was not checked"));
  EXPECT_THAT(said(review), HasSubstr(R"("allowed":false)")) << "Pods take no time from the checks of profiles";
  parts.time->config_maps.take(sim.clock.monotonic(), 400.1);
  EXPECT_THAT(said(review),
              testing::AllOf(HasSubstr(R"("allowed":true)"), HasSubstr("was not checked: the webhook has too many")));
  EXPECT_EQ(counted("ConfigMap", "busy"), 1);
  sim.clock.run_for(std::chrono::milliseconds(3));
  EXPECT_THAT(said(review), HasSubstr(R"("allowed":false)"));
}

// The server keeps no more of a very long one.
TEST_F(AdmissionReviewTest, TheBeginningOfAReviewIsEnoughToAllowIt) {
  const std::string pod = pod_with_args(10'000);
  const std::string of_pod = written_by_the_api_server("Pod", "big", pod).substr(0, 5'000);
  const std::string of_secret = written_by_the_api_server("Secret", "big", pod).substr(0, 5'000);
  EXPECT_THAT(said(of_pod, true),
              testing::AllOf(HasSubstr(R"("allowed":true)"), HasSubstr("pod/big is too large to check")));
  EXPECT_THAT(said(of_secret, true),
              testing::AllOf(HasSubstr(R"("allowed":true)"), testing::Not(HasSubstr("warnings"))));
  EXPECT_EQ(answer_review(of_pod, parts).status, 400);
  EXPECT_EQ(answer_review(R"({"a":")" + std::string(5'000, 'x'), parts, true).status, 400);
}

TEST_F(AdmissionReviewTest, MembersOfOtherTypesAreAllowedUnseenAndBracketsInTextsAreNoLevels) {
  const Json brackets = config_map("mps-config", "version: v1\n# " + std::string(500, '[') + "\\\"\n");
  EXPECT_EQ(answer(review_of(brackets))["allowed"], true);
  for (const Json& object : {Json(4), Json("text"), Json::array(), Json{{"kind", 4}}, Json{{"kind", "Secret"}}})
    EXPECT_EQ(answer(review_of(object))["allowed"], true) << object;
  Json odd = config_map("mps-config", kBad);
  odd["data"] = Json::array({1, 2});
  (void)answer(review_of(odd, config_map("mps-config", kBad)));
  odd["metadata"] = "text";
  (void)answer(review_of(odd, "text"));
  EXPECT_EQ(counted("other", "allowed"), 5);
}

}  // namespace
}  // namespace gso::admission_review_test
