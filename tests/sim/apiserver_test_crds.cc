// Kinds by CustomResourceDefinition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/apiserver_testing.h"

namespace gso::sim::apiserver_test_crds {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr const char* kWidgets = "/apis/example.com/v1/widgets";

json definition() {
  return json::parse(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
    "spec": {
      "group": "example.com", "scope": "Cluster",
      "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
      "versions": [{
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "schema": {"openAPIV3Schema": {
          "type": "object", "required": ["spec"],
          "properties": {
            "spec": {
              "type": "object",
              "x-kubernetes-validations": [
                {"rule": "self.colour == oldSelf.colour", "message": "the colour cannot change"},
                {"rule": "self.size <= 5 || self.colour == 'red'", "message": "only red ones are large"}],
              "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "colour": {"type": "string", "enum": ["red", "green"], "default": "green"},
                "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                          "items": {"type": "object", "required": ["name"],
                                    "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "count": {"type": "integer"}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}]}})");
}

json widget(json spec) {
  return {
      {"apiVersion", "example.com/v1"}, {"kind", "Widget"}, {"metadata", {{"name", "w"}}}, {"spec", std::move(spec)}};
}

struct Crds : testing::Test {
  Api api;
  void SetUp() override { ASSERT_EQ(api.post(kDefinitions, definition()).status, 201); }
};

TEST_F(Crds, a_definition_is_established_and_serves_its_kind) {
  const json crd = api.get(std::string(kDefinitions) + "/widgets.example.com").body;
  EXPECT_EQ(crd["status"]["conditions"][1]["type"], "Established");
  EXPECT_EQ(api.get(kWidgets).body["kind"], "WidgetList");
  EXPECT_EQ(api.get("/apis/example.com/v1").body["resources"][0]["shortNames"][0], "wd");
  EXPECT_EQ(api.get("/apis/example.com/v2/widgets").status, 404);
}

TEST_F(Crds, unknown_fields_go_and_defaults_come) {
  const Answer made =
      api.post(kWidgets, widget({{"odd", 1}, {"free", {{"odd", 1}}}, {"parts", {{{"name", "a"}, {"odd", 1}}}}}));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["spec"], json::parse(R"({"size":3,"colour":"green","free":{"odd":1},"parts":[{"name":"a"}]})"));
}

TEST_F(Crds, values_are_checked) {
  const std::pair<json, const char*> cases[] = {
      {{{"size", 0}}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"},
      {{{"size", "x"}}, "spec.size in body must be of type integer: \"string\""},
      {{{"colour", "blue"}}, "Unsupported value: \"blue\": supported values: \"red\", \"green\""},
      {{{"parts", {{{"count", 1}}}}}, "spec.parts[0].name: Required value"},
      {{{"parts", {{{"name", "A1"}}}}}, "should match '^[a-z]+$'"},
      {{{"parts", {{{"name", "a"}}, {{"name", "a"}}}}}, "spec.parts[1]: Duplicate value: {\"name\":\"a\"}"},
      {{{"size", 9}}, "only red ones are large"}};
  for (const auto& [spec, message] : cases) {
    const Answer refused = api.post(kWidgets, widget(spec));
    EXPECT_EQ(refused.status, 422) << spec;
    EXPECT_THAT(refused.message(), HasSubstr(message)) << spec;
  }
  json without = widget(json::object());
  without.erase("spec");
  EXPECT_THAT(api.post(kWidgets, without).message(), HasSubstr("spec: Required value"));
}

TEST_F(Crds, a_transition_rule_compares_with_the_stored_object) {
  (void)api.post(kWidgets, widget({{"colour", "red"}}));
  EXPECT_EQ(api.merge(std::string(kWidgets) + "/w", {{"spec", {{"size", 9}}}}).status, 200);
  const Answer refused = api.merge(std::string(kWidgets) + "/w", {{"spec", {{"colour", "green"}, {"size", 1}}}});
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(), HasSubstr("the colour cannot change"));
}

TEST_F(Crds, generation_counts_the_spec_and_status_is_apart) {
  const std::string path = std::string(kWidgets) + "/w";
  (void)api.post(kWidgets, widget(json::object()));
  (void)api.merge(path + "/status", {{"status", {{"phase", "Good"}}}, {"spec", {{"size", 5}}}});
  (void)api.merge(path, {{"metadata", {{"labels", {{"a", "b"}}}}}, {"status", {{"phase", "Bad"}}}});
  json now = api.get(path).body;
  EXPECT_EQ(now["metadata"]["generation"], 1);
  EXPECT_EQ(now["status"]["phase"], "Good");
  EXPECT_EQ(now["spec"]["size"], 3);
  (void)api.merge(path, {{"spec", {{"size", 4}}}});
  EXPECT_EQ(api.get(path).body["metadata"]["generation"], 2);
  now["metadata"].erase("resourceVersion");
  EXPECT_EQ(api.put(path, now).status, 422);
}

TEST_F(Crds, apply_merges_lists_by_their_keys) {
  const std::string path = std::string(kWidgets) + "/w?fieldManager=";
  (void)api.apply(path + "one", widget({{"parts", {{{"name", "a"}, {"count", 1}}}}}));
  const Answer both = api.apply(path + "two", widget({{"parts", {{{"name", "b"}, {"count", 2}}}}}));
  ASSERT_EQ(both.status, 200) << both.text;
  EXPECT_EQ(both.body["spec"]["parts"].size(), 2U);
  const Answer taken = api.apply(path + "two", widget({{"parts", {{{"name", "a"}, {"count", 5}}}}}));
  EXPECT_EQ(taken.message(), "Apply failed with 1 conflict: conflict with \"one\": .spec.parts[name=\"a\"].count");
  EXPECT_EQ(api.apply(path + "one", widget(json::object())).body["spec"]["parts"].size(), 1U);
}

TEST_F(Crds, the_end_of_a_definition_ends_its_objects_and_watches) {
  (void)api.post(kWidgets, widget(json::object()));
  auto watch = api.watch(std::string(kWidgets) + "?watch=1");
  EXPECT_EQ(api.remove(std::string(kDefinitions) + "/widgets.example.com").status, 200);
  EXPECT_EQ(api.get(kWidgets).status, 404);
  EXPECT_TRUE(watch->ended());
  ASSERT_EQ(api.post(kDefinitions, definition()).status, 201);
  EXPECT_TRUE(api.get(kWidgets).body["items"].empty());
}

TEST_F(Crds, tables_show_printer_columns) {
  (void)api.post(kWidgets, widget({{"size", 4}}));
  const Answer table = api.get(kWidgets, "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_EQ(table.body["columnDefinitions"][1]["name"], "Size");
  EXPECT_EQ(table.body["rows"][0]["cells"], json({"w", 4}));
}

}  // namespace
}  // namespace gso::sim::apiserver_test_crds
