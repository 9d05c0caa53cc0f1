// The commands lint, expect and plan: files, folders, stdin, exit status.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "controller/commands/commands.h"

namespace gso::lint_command_test {
namespace {

namespace fs = std::filesystem;

class Commands : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / (std::string("gso-") + test->name() + "-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }

  int lint(LintOptions options, const std::string& input = "") {
    std::istringstream in(input);
    out_.str("");
    err_.str("");
    return run_lint(options, in, out_, err_);
  }

  int expect(ExpectOptions options, bool as_json = true, const std::string& input = "") {
    std::istringstream in(input);
    out_.str("");
    err_.str("");
    options.json = as_json;
    return run_expect(options, in, out_, err_);
  }

  int plan(const std::vector<std::string>& files, const std::string& input = "") {
    std::istringstream in(input);
    out_.str("");
    err_.str("");
    PlanOptions options;
    options.files = files;
    return run_plan(options, Options(), in, out_, err_);
  }

  nlohmann::json json() { return nlohmann::json::parse(out_.str()); }

  fs::path folder_;
  std::ostringstream out_;
  std::ostringstream err_;
};

const std::string kGood = "sharing: {mps: {renameByDefault: true, resources: [{name: gpu, replicas: 4}]}}\n";
const std::string kBad = "sharing: {mps: {resources: [{name: gpu, replicas: 1}]}}\n";
const std::string kDevices = R"([{"name":"Tesla T4","memoryMiB":15360,"computeCapability":[7,5]}])";

TEST_F(Commands, LintExitsWithTheWorstThatItFound) {
  const std::string good = write("good.yaml", kGood);
  const std::string bad = write("bad.yaml", kBad);
  EXPECT_EQ(lint({.files = {good}}), 0);
  EXPECT_EQ(out_.str(), "1 document: 0 with errors, 0 with warnings\n");
  EXPECT_EQ(lint({.files = {good, bad}}), 1);
  EXPECT_EQ(lint({.files = {bad, (folder_ / "absent.yaml").string()}}), 2);
  EXPECT_NE(err_.str().find("absent.yaml"), std::string::npos);
  EXPECT_TRUE(err_.str().starts_with("gpu-sharing-operator lint: ")) << err_.str();
  EXPECT_NE(out_.str().find("ReplicasBelowMinimum"), std::string::npos);  // What can be read is read.
  EXPECT_EQ(lint({}), 2);
}

TEST_F(Commands, LintReadsFoldersInTheOrderOfNames) {
  write("b/two.yml", kBad);
  write("a.json", "{\"version\": \"v1\"}");
  write("notes.txt", "not: [read");
  EXPECT_EQ(lint({.files = {folder_.string()}, .json = true}), 1);
  const auto documents = json()["documents"];
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_TRUE(documents[0]["source"].get<std::string>().ends_with("a.json#0"));
  EXPECT_TRUE(documents[1]["source"].get<std::string>().ends_with("b/two.yml#0"));
  fs::create_directories(folder_ / "empty");
  EXPECT_EQ(lint({.files = {(folder_ / "empty").string()}}), 2);
}

TEST_F(Commands, LintReadsStdin) {
  EXPECT_EQ(lint({.files = {"-"}, .json = true}, "kind: List\napiVersion: v1\nitems: []\n"), 0);
  EXPECT_EQ(json()["documents"][0]["kind"], "List");
  EXPECT_EQ(lint({.files = {"-"}, .json = true}, kBad), 1);
  EXPECT_EQ(json()["documents"][0]["source"], "-#0");
}

// An empty file is what somebody wrote; nothing at all from a pipe is a command that failed.
TEST_F(Commands, NothingFromStdinIsUnreadableAndAnEmptyFileIsNoSharing) {
  const std::string empty = write("empty.yaml", "");
  const std::string devices = write("d.json", kDevices);
  for (const std::string input : {"", "\n \n"}) {
    EXPECT_EQ(lint({.files = {"-"}}, input), 2);
    EXPECT_NE(err_.str().find("stdin is empty"), std::string::npos);
    EXPECT_EQ(expect({.config = "-", .devices = devices}, true, input), 2);
    EXPECT_EQ(expect({.config = empty, .devices = "-"}, true, input), 2);
    EXPECT_EQ(plan({"-"}, input), 2);
  }
  EXPECT_EQ(lint({.files = {empty}, .json = true}), 0);
  EXPECT_EQ(json()["documents"][0]["diagnostics"][0]["code"], "NothingWritten");
  EXPECT_EQ(expect({.config = empty, .devices = devices}), 0);
  EXPECT_EQ(json()["allocatable"], (nlohmann::json{{"nvidia.com/gpu", "1"}}));
  EXPECT_NE(err_.str().find("a profile without sharing"), std::string::npos);
  EXPECT_EQ(lint({.files = {"-"}}, "# no sharing\n"), 0);
}

TEST_F(Commands, PlanNeedsAManifest) {
  const std::string comments = write("c.yaml", "---\n# nothing\n");
  EXPECT_EQ(plan({comments, write("e.yaml", "")}), 2);
  EXPECT_NE(err_.str().find("no manifest found in "), std::string::npos) << err_.str();
  EXPECT_EQ(plan({comments, write("l.yaml", "kind: List\napiVersion: v1\nitems: []\n")}), 0) << err_.str();
}

// Objects of several files are checked together.
TEST_F(Commands, LintChecksProfilesAgainstTheNodesAndOperandsBesideThem) {
  const std::string policy = write("policy.yaml",
                                   "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: cluster-policy}\n"
                                   "spec: {devicePlugin: {config: {name: mps-config, default: any}}}\n");
  const std::string plugin = write(
      "plugin.yaml",
      "apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: plugin\n  namespace: gpu-operator\n  ownerReferences: "
      "[{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: cluster-policy, uid: ClusterPolicy//cluster-policy, "
      "controller: true}]\n"
      "spec: {selector: {matchLabels: {app: p}}, template: {metadata: {labels: {app: p}}, spec: {containers: [{name: "
      "nvidia-device-plugin, image: 'p:v0.20.0'}, {name: config-manager, image: c, env: "
      "[{name: CONFIG_FILE_SRCDIR, value: /c}, {name: DEFAULT_CONFIG, value: any}], volumeMounts: [{name: v, "
      "mountPath: "
      "/c}]}], volumes: [{name: v, configMap: {name: mps-config}}]}}}\n");
  const std::string map = write("map.yaml",
                                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config, namespace: "
                                "gpu-operator}\ndata: {any: 'sharing: {mps: {resources: [{name: gpu, replicas: "
                                "4}]}}'}\n");
  const std::string node = write("node.yaml",
                                 "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels: "
                                 "{nvidia.com/gpu.count: '1'}\n");
  EXPECT_EQ(lint({.files = {policy, plugin, map, node}, .json = true}), 1);
  std::vector<std::string> found;
  const nlohmann::json answer = json();
  for (const auto& document : answer["documents"]) {
    for (const auto& d : document["diagnostics"]) {
      if (d["severity"] == "error") {
        found.push_back(document["kind"].get<std::string>() + " " + d["code"].get<std::string>());
        EXPECT_EQ(d["line"], 4);
      }
    }
  }
  EXPECT_EQ(found, (std::vector<std::string>{"Node MPSDaemonMissing", "Node MPSRootMissing"}));
  // For people, with the line of the object's name.
  EXPECT_EQ(lint({.files = {policy, plugin, map, node}}), 1);
  EXPECT_NE(out_.str().find("node.yaml:4:9"), std::string::npos) << out_.str();
  // In a namespace where the pods do not look.
  const std::string wrong = write("wrong.yaml",
                                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config}\ndata: {any: "
                                  "''}\n");
  EXPECT_EQ(lint({.files = {policy, plugin, wrong, node}}), 1);
  EXPECT_NE(out_.str().find("ConfigMapInWrongNamespace"), std::string::npos) << out_.str();
  // A ClusterPolicy and its ConfigMap alone, as they stand in Git.
  EXPECT_EQ(lint({.files = {policy, map}}), 0) << out_.str();
  const std::string other = write("other.yaml",
                                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config}\ndata: "
                                  "{other: ''}\n");
  EXPECT_EQ(lint({.files = {policy, other}}), 1);
  EXPECT_NE(out_.str().find("DefaultKeyNotFound"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("policy.yaml:4:59"), std::string::npos)
      << "the place of spec.devicePlugin.config.default: " << out_.str();
  // The same as values of the GPU Operator's chart, before it is installed.
  const std::string values = write("values.yaml", "devicePlugin:\n  config: {name: mps-config, default: ayn}\n");
  EXPECT_EQ(lint({.files = {values, map}}), 1);
  EXPECT_NE(out_.str().find("values.yaml:2:"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("did you mean \"any\"?"), std::string::npos) << out_.str();
  // Of two ConfigMaps of that name, the one that has the key is meant.
  const std::string right = write("right.yaml", "devicePlugin:\n  config: {name: mps-config, default: any}\n");
  EXPECT_EQ(lint({.files = {right, map, other}}), 0) << out_.str();
  EXPECT_EQ(lint({.files = {values}}), 0) << out_.str();
}

TEST_F(Commands, ExpectSaysWhatTheNodeShows) {
  const std::string config = write("c.yaml", kGood);
  const std::string devices = write("d.json", kDevices);
  ASSERT_EQ(expect({.config = config, .devices = devices}), 0);
  const auto answer = json();
  EXPECT_EQ(answer["labels"]["nvidia.com/gpu.replicas"], "4");
  EXPECT_EQ(answer["allocatable"], (nlohmann::json{{"nvidia.com/gpu", "0"}, {"nvidia.com/gpu.shared", "4"}}));
  EXPECT_EQ(answer["error"], nullptr);
  EXPECT_EQ(answer["mps"][0]["pinnedMemoryMiB"], nlohmann::json::array({3840}));
  EXPECT_EQ(answer["mps"][0]["activeThreadPercentage"], 25);
  EXPECT_EQ(answer["mps"][0]["pinnedMemoryShown"], nlohmann::json::array({"3G"}));
  EXPECT_EQ(answer["mps"][0]["activeThreadPercentageShown"], "25.0");
  ASSERT_EQ(expect({.config = config, .devices = devices}, false), 0);
  EXPECT_NE(
      out_.str().find("25 % of the threads (get_default_active_thread_percentage prints 25.0)\n  at most 3840 MiB "
                      "of GPU 0 (get_default_device_pinned_mem_limit prints 3G)\n"),
      std::string::npos)
      << out_.str();
}

TEST_F(Commands, ExpectHasNothingAgainstMpsWhereNoGpuIs) {
  const std::string devices = write("none.json", "[]");
  for (const std::string entry : {"{name: gpu, replicas: 500}", "{name: other, replicas: 4}"}) {
    const std::string config = write("c.yaml", "sharing: {mps: {resources: [" + entry + "]}}\n");
    EXPECT_EQ(expect({.config = config, .devices = devices}), 0) << entry;
    EXPECT_EQ(json()["error"], nullptr) << entry;
  }
}

TEST_F(Commands, ExpectTakesAConfigMapAndANode) {
  const std::string map =
      write("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  only: |\n    " + kGood);
  const std::string node =
      write("n.yaml",
            "kind: Node\nmetadata:\n  labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: '2', "
            "nvidia.com/gpu.compute.major: '7', nvidia.com/gpu.compute.minor: '5'}\n");
  ASSERT_EQ(expect({.config = map, .node = node}), 0) << err_.str();
  EXPECT_EQ(json()["allocatable"]["nvidia.com/gpu.shared"], "8");
  const std::string two =
      write("two.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '', b: ''}\n");
  EXPECT_EQ(expect({.config = two, .node = node}), 2);
  EXPECT_NE(err_.str().find("the ConfigMap has 2 keys; choose one with --key. Keys: a, b"), std::string::npos);
}

TEST_F(Commands, ExpectNamesAnObjectThatIsNoProfile) {
  const std::string devices = write("d.json", kDevices);
  for (const std::string kind : {"Pod", "Node", "List", "Configmap", "SharingPolicy"}) {
    const std::string file = write("other.yaml", "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: x}\n");
    EXPECT_EQ(expect({.config = file, .devices = devices}), 2) << kind;
    EXPECT_EQ(out_.str(), "") << kind;
    EXPECT_EQ(err_.str(),
              file + ":2:7: found an object of kind " + kind +
                  "; --config needs a profile of the device plugin (version: v1), or a ConfigMap that holds "
                  "profiles\n");
  }
}

// As an editor shows them: the value of a literal block is indented, and only that.
TEST_F(Commands, ExpectCountsTheLinesOfAKeyInItsFile) {
  const std::string devices = write("d.json", kDevices);
  const std::string map =
      write("map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any: |\n    version: v1\n"
            "    sharing:\n      mps:\n        resources:\n        - {name: gpu, replicas: 1}\n"
            "  misspelt: |\n    version: v1\n    sharings: {}\n  quoted: \"version: v1\\nversions: "
            "v2\\n\"\n  number: 4\n");
  EXPECT_EQ(expect({.config = map, .key = "any", .devices = devices}), 1);
  EXPECT_EQ(json()["error"].get<std::string>().find(map + ": line 10: sharing.mps.resources[0].replicas: "), 0U)
      << out_.str();
  EXPECT_EQ(expect({.config = map, .key = "misspelt", .devices = devices}), 0);
  EXPECT_EQ(json()["warnings"][0].get<std::string>().find(map + ": line 13: sharings: "), 0U) << out_.str();
  EXPECT_EQ(expect({.config = map, .key = "quoted", .devices = devices}), 0);
  EXPECT_EQ(json()["warnings"][0].get<std::string>().find(map + ", value of key quoted: line 2: versions: "), 0U)
      << out_.str();
  EXPECT_EQ(expect({.config = map, .key = "number", .devices = devices}), 2);
  EXPECT_EQ(err_.str(), map + ":15:11: the value of key number is no string\n");
}

TEST_F(Commands, ExpectNamesAnObjectWithoutAKind) {
  const std::string file = write("map.yaml", "Kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\ndata: {any: ''}\n");
  EXPECT_EQ(expect({.config = file, .devices = write("d.json", kDevices)}), 2);
  EXPECT_EQ(err_.str(), file + ":1:1: the object has no kind; write its kind\n");
}

TEST_F(Commands, LintPointsAtAValueThatIsNoString) {
  const std::string map =
      write("map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any: |\n    version: v1\n"
            "  number: 42\nbinaryData:\n  odd: '%'\n");
  EXPECT_EQ(lint({.files = {map}}), 1);
  EXPECT_NE(out_.str().find(map + ":7:11: error: data.number: "), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("\n    7 |   number: 42\n      |           ^\n"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find(map + ":9:8: error: binaryData.odd: "), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("\n    9 |   odd: '%'\n      |        ^\n"), std::string::npos) << out_.str();
}

TEST_F(Commands, LintCountsAConfigMapAndTheValuesOfAChartAsOneDocument) {
  const std::string profiles =
      "    any: |\n      sharing: {mps: {resources: [{name: gpu, replicas: 1}]}}\n    none: |\n      version: v1\n";
  EXPECT_EQ(lint({.files = {"-"}}, "config:\n  map:\n" + profiles), 1);
  EXPECT_TRUE(out_.str().ends_with("\n1 document (2 profiles): 1 with errors, 0 with warnings\n")) << out_.str();
  EXPECT_EQ(lint({.files = {"-"}}, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n" + profiles), 1);
  EXPECT_TRUE(out_.str().ends_with("\n1 document (2 profiles): 1 with errors, 0 with warnings\n")) << out_.str();
  EXPECT_EQ(lint({.files = {"-"}},
                 "config: {map: {any: 'sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}'}}\n---\nversion: v1\n"),
            0);
  EXPECT_TRUE(out_.str().ends_with("\n2 documents (1 profile): 0 with errors, 0 with warnings\n")) << out_.str();
}

TEST_F(Commands, LintNamesTheKindsThatItDoesNotCheck) {
  EXPECT_EQ(lint({.files = {"-"}},
                 "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\n---\napiVersion: v1\nkind: LimitRange\n"
                 "metadata: {name: l}\n---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: m}\n"),
            0);
  EXPECT_EQ(out_.str(),
            "3 documents: 0 with errors, 0 with warnings; 3 of kinds that lint does not check (LimitRange, "
            "ResourceQuota)\n");
}

TEST_F(Commands, LintFindsTheFilesOfAFolderInAnyCase) {
  write("many/A.YAML", kBad);
  write("many/b.Yml", kBad);
  write("many/c.YML", kBad);
  write("many/D.JSON", "{\"version\": \"v2\"}");
  write("many/e.TXT", kBad);
  EXPECT_EQ(lint({.files = {(folder_ / "many").string()}, .json = true}), 1);
  EXPECT_EQ(json()["documents"].size(), 4U) << out_.str();
}

TEST_F(Commands, ExpectExitsWithOneWhereAComponentWould) {
  const std::string devices = write("d.json", kDevices);
  ASSERT_EQ(expect({.config = write("bad.yaml", kBad), .devices = devices}), 1);
  EXPECT_TRUE(json()["labels"].empty());  // GFD exits too.
  const std::string beyond = write("beyond.yaml", "sharing: {mps: {resources: [{name: gpu, replicas: 50}]}}\n");
  ASSERT_EQ(expect({.config = beyond, .devices = devices}), 1);
  EXPECT_EQ(json()["labels"]["nvidia.com/gpu.replicas"], "50");  // GFD does not.
  EXPECT_EQ(json()["allocatable"]["nvidia.com/gpu"], "0");
}

TEST_F(Commands, ExpectRefusesWrongUsage) {
  const std::string config = write("c.yaml", kGood);
  const std::string devices = write("d.json", kDevices);
  EXPECT_EQ(expect({.config = config}), 2);
  EXPECT_EQ(expect({.config = config, .devices = devices, .node = devices}), 2);
  EXPECT_EQ(expect({.config = config, .devices = write("x.json", "{\"name\": 1")}), 2);
  EXPECT_EQ(expect({.config = config, .devices = write("y.json", "[{\"memoryMiB\": 1}]")}), 2);
  EXPECT_EQ(expect({.config = folder_.string(), .devices = devices}), 2);
}

}  // namespace
}  // namespace gso::lint_command_test
