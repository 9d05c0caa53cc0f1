// The small grammars of the simulated API server: quantities, selectors, JSON paths, CEL, durations of tables.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/cel.h"
#include "tests/sim/apiserver/json_path.h"
#include "tests/sim/apiserver/names.h"
#include "tests/sim/apiserver/quantity.h"
#include "tests/sim/apiserver/selectors.h"
#include "tests/sim/apiserver/table.h"
#include "tests/sim/apiserver/yaml.h"

namespace gso::sim::apiserver_test_parts {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

TEST(Quantity, takes_its_canonical_form_or_is_refused) {
  const std::pair<const char*, const char*> cases[] = {{"0", "0"},           {"1", "1"},
                                                       {"1000m", "1"},       {"1500m", "1500m"},
                                                       {"2000", "2k"},       {"1024Mi", "1Gi"},
                                                       {"1536Mi", "1536Mi"}, {"1.5Gi", "1536Mi"},
                                                       {"0.5", "500m"},      {"1e1", "10"},
                                                       {"1048576Ki", "1Gi"}, {"4M", "4M"},
                                                       {"-3", "-3"},         {"0.0000000001", "1n"},
                                                       {"007", "007"},       {"", ""},
                                                       {"four", ""},         {"1 Gi", ""},
                                                       {"1.2.3", ""},        {"Gi", ""}};
  for (const auto& [text, canonical] : cases) EXPECT_EQ(canonical_quantity(text).value_or(""), canonical) << text;
}

TEST(LabelSelector, chooses_by_the_grammar_of_the_query_string) {
  const json labels = {{"a", "1"}, {"gpu", "yes"}, {"empty", ""}};
  const std::pair<const char*, bool> cases[] = {{"", true},
                                                {"a=1", true},
                                                {"a==1", true},
                                                {"a!=1", false},
                                                {"b!=1", true},
                                                {"a", true},
                                                {"!a", false},
                                                {"!b", true},
                                                {"a in (1,2)", true},
                                                {"a notin (1,2)", false},
                                                {"b notin (x)", true},
                                                {"a>0", true},
                                                {"a<1", false},
                                                {"gpu=yes,a=1", true},
                                                {"gpu=yes,a=2", false},
                                                {"empty=", true},
                                                {"empty in ()", true}};
  for (const auto& [text, matches] : cases) {
    const auto selector = LabelSelector::parse(text);
    ASSERT_TRUE(selector) << text << ": " << selector.error();
    EXPECT_EQ(selector->matches(labels), matches) << text;
  }
  for (const char* text : {"a=1,", "=1", "a in 1", "a in (1", "a b", "-a", "a=x y", "a=-"})
    EXPECT_FALSE(LabelSelector::parse(text)) << text;
}

TEST(JsonPath, finds_what_printer_columns_name) {
  const json object = {
      {"spec", {{"size", 3}, {"a.b", "dotted"}}},
      {"status",
       {{"conditions", {{{"type", "Ready"}, {"status", "True"}}, {{"type", "Other"}, {"status", "False"}}}}}}};
  EXPECT_EQ(json_path_value(object, ".spec.size"), 3);
  EXPECT_EQ(json_path_value(object, ".spec['a.b']"), "dotted");
  EXPECT_EQ(json_path_value(object, ".spec.a\\.b"), "dotted");
  EXPECT_EQ(json_path_value(object, ".status.conditions[?(@.type==\"Ready\")].status"), "True");
  EXPECT_EQ(json_path_value(object, ".status.conditions[*].type"), "Ready Other");
  EXPECT_EQ(json_path_value(object, ".status.conditions[1].type"), "Other");
  EXPECT_EQ(json_path_value(object, ".status.missing.type"), nullptr);
  EXPECT_EQ(json_path_value(object, ".status.conditions[?(@.type==\"Ready\""), nullptr);
}

TEST(Cel, evaluates_the_rules_that_crds_have) {
  const json self = {{"size", 3},           {"name", "abc"},    {"list", {1, 2, 3}},
                     {"map", {{"k", "v"}}}, {"percent", "10%"}, {"soak", "90s"}};
  const json old = {{"size", 2}, {"name", "abc"}};
  const std::pair<const char*, CelResult> cases[] = {
      {"self.size == 3", CelResult::holds},
      {"self.size >= 1 && self.size <= 2", CelResult::violated},
      {"has(self.missing) || self.size > 2", CelResult::holds},
      {"self.missing == 1", CelResult::violated},
      {"self.missing == 1 || true", CelResult::holds},
      {"!has(self.missing) ? self.name.startsWith('ab') : false", CelResult::holds},
      {"self.name == oldSelf.name", CelResult::holds},
      {"self.size == oldSelf.size", CelResult::violated},
      {"self.list.all(x, x > 0) && self.list.exists(x, x == 2)", CelResult::holds},
      {"self.list.filter(x, x > 1).size() == 2 && size(self.map) == 1", CelResult::holds},
      {"self.map.all(k, self.map[k] != '')", CelResult::holds},
      {"self.size in [1, 2]", CelResult::violated},
      {"'k' in self.map", CelResult::holds},
      {"type(self.percent) == int ? self.percent >= 1 : self.percent.matches('^[0-9]+%$')", CelResult::holds},
      {"duration(self.soak) < duration('2m')", CelResult::holds},
      {"self.size + 1 == 4 && -self.size == 0 - 3 && 7 % 2 == 1", CelResult::holds},
      {"self.size / 0 == 1", CelResult::violated},
      {"self.size.unheardOf()", CelResult::not_evaluated},
      {"self.size ==", CelResult::not_evaluated}};
  for (const auto& [rule, result] : cases) EXPECT_EQ(evaluate_cel(rule, self, &old), result) << rule;
  EXPECT_EQ(evaluate_cel("self.size == oldSelf.size", self, nullptr), CelResult::not_evaluated);
}

TEST(Names, follow_their_grammars) {
  EXPECT_FALSE(dns_subdomain_problem("a-b.c9"));
  for (const char* bad : {"", "A", "a_", "-a", "a.", "a..b"}) EXPECT_TRUE(dns_subdomain_problem(bad)) << bad;
  EXPECT_FALSE(label_key_problem("nvidia.com/gpu.present"));
  for (const std::string& bad : {std::string(), std::string("/a"), std::string("a/"), std::string("a/b/c"),
                                 std::string("A_/x"), std::string(64, 'x')})
    EXPECT_TRUE(label_key_problem(bad)) << bad;
  EXPECT_FALSE(label_value_problem(""));
  EXPECT_TRUE(label_value_problem(std::string(64, 'x')));
  EXPECT_TRUE(label_value_problem("a b"));
}

TEST(Table, says_how_old_things_are_as_kubectl_does) {
  const std::pair<k8s::Duration, const char*> cases[] = {
      {0s, "0s"}, {119s, "119s"},      {2min, "2m"}, {2min + 5s, "2m5s"}, {10min + 3s, "10m"},
      {3h, "3h"}, {3h + 7min, "3h7m"}, {9h, "9h"},   {49h, "2d1h"},       {24h * 9, "9d"}};
  for (const auto& [duration, text] : cases) EXPECT_EQ(human_duration(duration), text);
}

TEST(Yaml, reads_what_server_side_apply_sends) {
  EXPECT_EQ(yaml_to_json("a: 1\nb: {c: \"1\", d: [x, true, null, 1.5]}\n"),
            json::parse(R"({"a":1,"b":{"c":"1","d":["x",true,null,1.5]}})"));
  EXPECT_TRUE(yaml_to_json("a: [").is_discarded());
  EXPECT_EQ(duplicate_fields(R"({"a":1,"b":{"k":1,"k":2},"l":[{"x":1,"x":2}],"a":2})"),
            (std::vector<std::string>{"b.k", "l[0].x", "a"}));
}

}  // namespace
}  // namespace gso::sim::apiserver_test_parts
