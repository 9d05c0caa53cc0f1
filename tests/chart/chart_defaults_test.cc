// The chart against the binary and the CRDs: names and defaults of settings are written in three places, and must
// agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "controller/config/options.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "tests/chart/source_files.h"

namespace gso::chart_defaults_test {
namespace {

using nlohmann::json;

json read_yaml(const std::filesystem::path& path) {
  const k8s::Result<std::string> text = yaml_to_json(read(path));
  EXPECT_TRUE(text.has_value()) << path;
  return text ? json::parse(*text) : json();
}

const std::filesystem::path kChart = "charts/gpu-sharing-operator";

std::map<std::string, OptionSpec> options_by_name() {
  std::map<std::string, OptionSpec> specs;
  for (const OptionSpec& spec : option_specs()) specs.emplace(spec.name, spec);
  return specs;
}

// Settings that the chart writes itself, or that have no meaning in a pod.
const std::set<std::string> kNotInValues{
    "kubeconfig", "context", "insecure-skip-tls-verify", "namespace", "identity", "metrics-bind-address",
    "health-probe-bind-address",
    // Have values of their own: operandNamespaces, modes.rollouts, modes.reservations, modes.partitioning,
    // rejectedPods.namespaces, podMutation.nosUser, metrics.secure.
    "operand-namespaces", "max-mode", "kai-reservations", "partitioning-mode", "remove-rejected-pods", "mps-user",
    "metrics-secure", "tls-cert-file", "tls-private-key-file", "client-ca-file",
    // admissionWebhook.
    "webhook-bind-address", "webhook-cert-file", "webhook-private-key-file", "webhook-client-ca",
    "webhook-refuse-pods"};

std::string as_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The option's spelling of `value`, or why it is refused.
std::string spelled_by(const OptionSpec& spec, const json& value) {
  Options options;
  const std::string wrong = spec.set(options, as_text(value));
  return wrong.empty() ? spec.get(options) : wrong;
}

// The schema of a value, after `$ref: #/definitions/x`.
const json& resolve(const json& schema, const json& root) {
  if (!schema.contains("$ref")) return schema;
  return root.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
}

TEST(ChartDefaults, ValuesOfTheConfigurationAreTheDefaultsOfTheFlags) {
  const json config = read_yaml(kChart / "values.yaml")["config"];
  const auto specs = options_by_name();
  ASSERT_FALSE(config.empty());
  for (const auto& [name, value] : config.items()) {
    ASSERT_TRUE(specs.contains(name)) << name << " is no setting of the operator";
    EXPECT_EQ(spelled_by(specs.at(name), value), specs.at(name).get(Options{})) << name;
  }
}

TEST(ChartDefaults, TheSchemaOfTheConfigurationKnowsEverySetting) {
  const json schema = json::parse(read(kChart / "values.schema.json"));
  const json& config = schema["properties"]["config"];
  EXPECT_EQ(config["additionalProperties"], false);
  std::set<std::string> wanted;
  for (const OptionSpec& spec : option_specs())
    if (!kNotInValues.contains(spec.name)) wanted.insert(spec.name);
  std::set<std::string> known;
  for (const auto& property : config["properties"].items()) known.insert(property.key());
  EXPECT_EQ(known, wanted);
}

TEST(ChartDefaults, TheSchemaAllowsWhatTheFlagsAllow) {
  const json schema = json::parse(read(kChart / "values.schema.json"));
  const auto specs = options_by_name();
  for (const auto& [name, property] : schema["properties"]["config"]["properties"].items()) {
    const OptionSpec& spec = specs.at(name);
    const json& rule = resolve(property, schema);
    Options options;
    for (const json& value : rule.value("enum", json::array())) {
      EXPECT_EQ(spec.set(options, as_text(value)), "") << name;
      EXPECT_NE(("|" + spec.type + "|").find("|" + as_text(value) + "|"), std::string::npos) << name;
    }
    if (rule.contains("enum")) {
      EXPECT_EQ(std::count(spec.type.begin(), spec.type.end(), '|') + 1, static_cast<long>(rule["enum"].size()))
          << name;
    }
    if (rule.contains("minimum") && rule.contains("maximum")) {
      const long least = rule["minimum"];
      const long most = rule["maximum"];
      for (const long value : {least, most}) EXPECT_EQ(spec.set(options, std::to_string(value)), "") << name;
      for (const long value : {least - 1, most + 1}) EXPECT_NE(spec.set(options, std::to_string(value)), "") << name;
    }
  }
}

void keywords_of(const json& schema, std::set<std::string>& out) {
  if (schema.is_object()) {
    for (const auto& [key, value] : schema.items()) {
      out.insert(key);
      keywords_of(value, out);
    }
  }
  if (!schema.is_array()) return;
  for (const json& item : schema) keywords_of(item, out);
}

// Of a value that fits none of several schemas helm reports each of them, in part by the names of other values.
TEST(ChartDefaults, NoValueHasAChoiceOfSchemas) {
  std::set<std::string> keywords;
  keywords_of(json::parse(read(kChart / "values.schema.json")), keywords);
  for (const char* keyword : {"anyOf", "oneOf", "allOf", "if"}) EXPECT_FALSE(keywords.contains(keyword)) << keyword;
}

// The chart refuses a duration that the operator would refuse at its start, and no other one.
TEST(ChartDefaults, TheRangesOfDurationsAreThoseOfTheFlags) {
  const json ranges = read_yaml(kChart / "files/durations.yaml");
  std::size_t durations = 0;
  for (const OptionSpec& spec : option_specs()) {
    if (spec.type != "DURATION") continue;
    ASSERT_TRUE(ranges.contains(spec.name)) << spec.name;
    ++durations;
    const json& range = ranges[spec.name];
    Options options;
    EXPECT_EQ(spelled_by(spec, range["default"]), spec.get(options)) << spec.name;
    for (const char* bound : {"least", "most"}) EXPECT_EQ(spec.set(options, range[bound]), "") << spec.name;
    EXPECT_NE(spec.set(options, range["most"].get<std::string>() + "1ms"), "") << spec.name;
    const k8s::Duration least = k8s::parse_go_duration(range["least"].get<std::string>()).value_or(k8s::Duration{-1});
    if (least > k8s::Duration::zero()) {
      const std::string below = k8s::format_go_duration(least - std::chrono::milliseconds(1));
      EXPECT_NE(spec.set(options, below), "") << spec.name;
      EXPECT_EQ(spec.set(options, "0s").empty(), range.value("zero", false)) << spec.name;
    }
  }
  EXPECT_EQ(durations, ranges.size());
}

TEST(ChartDefaults, TheDeploymentPassesOnlyFlagsThatExist) {
  const std::string text = read(kChart / "templates/deployment.yaml");
  const auto specs = options_by_name();
  const std::regex flag(R"(- --([a-z-]+)=)");
  int flags = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), flag); match != std::sregex_iterator(); ++match, ++flags) {
    const std::string name = (*match)[1];
    EXPECT_TRUE(name == "config" || specs.contains(name)) << name;
    // What the chart passes as a flag would win over the values, so the values must not offer it.
    EXPECT_TRUE(name == "config" || kNotInValues.contains(name)) << name;
  }
  EXPECT_GT(flags, 3);
}

struct DefaultPair {
  const char* in_crd;  // Below spec.
  const char* flag;
};

class CrdDefaults : public testing::TestWithParam<DefaultPair> {};

TEST_P(CrdDefaults, AreTheDefaultsOfTheFlags) {
  const json crd = read_yaml("crds/gpusharing.dev_sharingpolicies.yaml");
  const json* schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
  std::string path = GetParam().in_crd;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    schema = &schema->at("properties").at(path.substr(0, dot));
    path = dot == std::string::npos ? "" : path.substr(dot + 1);
  }
  ASSERT_TRUE(schema->contains("default"));
  const OptionSpec spec = options_by_name().at(GetParam().flag);
  EXPECT_EQ(spelled_by(spec, (*schema)["default"]), spec.get(Options{}));
}

INSTANTIATE_TEST_SUITE_P(Policy, CrdDefaults,
                         testing::Values(DefaultPair{"mode", "mode"},
                                         DefaultPair{"rollout.maxUnavailable", "max-unavailable"},
                                         DefaultPair{"rollout.maxUnavailablePerGroup", "max-unavailable-per-group"},
                                         DefaultPair{"rollout.canary.nodesPerGroup", "canary-nodes-per-group"},
                                         DefaultPair{"rollout.canary.soak", "canary-soak"},
                                         DefaultPair{"rollout.workloads", "workloads"},
                                         DefaultPair{"rollout.idleTimeout", "idle-timeout"},
                                         DefaultPair{"rollout.verifyTimeout", "verify-timeout"},
                                         DefaultPair{"rollout.maxFailures", "max-failures"}),
                         [](const auto& param) {
                           std::string name = param.param.flag;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ChartDefaults, ModesOfTheChartAreThoseOfTheFlags) {
  const json modes = read_yaml(kChart / "values.yaml")["modes"];
  EXPECT_EQ(modes["rollouts"], options_by_name().at("max-mode").get(Options{}));
  EXPECT_EQ(modes["reservations"], options_by_name().at("kai-reservations").get(Options{}));
  EXPECT_EQ(modes["labels"], "Enforce") << "which leaves config.label-mode as it is";
}

TEST(ChartDefaults, TheChartInstallsTheProjectsCrds) {
  std::set<std::string> ours;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "crds"))
    ours.insert(entry.path().filename().string());
  std::set<std::string> charts;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / kChart / "files/crds"))
    charts.insert(entry.path().filename().string());
  EXPECT_EQ(charts, ours);
  for (const std::string& name : ours)
    EXPECT_EQ(read(kChart / "files/crds" / name), read(std::filesystem::path("crds") / name));
}

TEST(ChartDefaults, TheChartsVersionIsTheBinarys) {
  const json chart = read_yaml(kChart / "Chart.yaml");
  EXPECT_EQ(chart["version"], GSO_CHART_TEST_VERSION);
  EXPECT_EQ(chart["appVersion"], GSO_CHART_TEST_VERSION);
}

// What Artifact Hub shows is written by hand, too.
TEST(ChartDefaults, AnnotationsForArtifactHubNameThisReleaseAndItsKinds) {
  const json annotations = read_yaml(kChart / "Chart.yaml")["annotations"];
  const auto list = [&](const char* name) {
    const k8s::Result<std::string> text = yaml_to_json(annotations.value(name, ""));
    EXPECT_TRUE(text.has_value()) << name;
    return text ? json::parse(*text) : json::array();
  };
  const json images = list("artifacthub.io/images");
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0]["image"], std::string("gpu-sharing-operator:") + GSO_CHART_TEST_VERSION);
  std::set<std::string> kinds;
  std::set<std::string> named;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "crds")) {
    const json crd = read_yaml(std::filesystem::path("crds") / entry.path().filename());
    kinds.insert(crd["spec"]["names"]["kind"].get<std::string>() + " " + crd["metadata"]["name"].get<std::string>());
  }
  const json crds = list("artifacthub.io/crds");
  for (const json& crd : crds) named.insert(crd["kind"].get<std::string>() + " " + crd["name"].get<std::string>());
  EXPECT_EQ(named, kinds);
  const json examples = list("artifacthub.io/crdsExamples");
  ASSERT_FALSE(examples.empty());
  for (const json& example : examples) {
    const auto policy = project_sharing_policy(example.dump());
    ASSERT_TRUE(policy.has_value()) << policy.error().message;
    EXPECT_TRUE(policy->config_map_key || policy->inline_profile) << "an example that says nothing";
  }
}

}  // namespace
}  // namespace gso::chart_defaults_test
