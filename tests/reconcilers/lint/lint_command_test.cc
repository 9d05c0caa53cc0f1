// The commands lint, expect and plan: files, folders, stdin, exit status.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "controller/commands/commands.h"
#include "tests/reconcilers/checks/preflight_manifests.h"

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

  int lint(LintOptions options, const std::string& input = "") { return run(run_lint, options, input); }
  int expect(ExpectOptions options, const std::string& input = "") { return run(run_expect, options, input); }
  int plan(const std::vector<std::string>& files, const std::string& input = "") {
    PlanOptions options;
    options.files = files;
    return run([](auto& given, auto&... streams) { return run_plan(given, Options(), streams...); }, options, input);
  }

  nlohmann::json json() { return nlohmann::json::parse(out_.str()); }

  fs::path folder_;
  std::ostringstream out_;
  std::ostringstream err_;

 private:
  int run(auto command, auto& options, const std::string& input) {
    std::istringstream in(input);
    out_.str("");
    err_.str("");
    return command(options, in, out_, err_);
  }
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
  EXPECT_TRUE(err_.str().contains("absent.yaml"));
  EXPECT_TRUE(err_.str().starts_with("gpu-sharing-operator lint: ")) << err_.str();
  EXPECT_TRUE(out_.str().contains("ReplicasBelowMinimum"));  // What can be read is read.
  EXPECT_EQ(lint({}), 2);
}

TEST_F(Commands, LintReadsFoldersInTheOrderOfNames) {
  for (const char* name : {"b/two.yml", "a.JSON", "c.YML", "d.Yaml", "notes.txt"}) write(name, kBad);
  EXPECT_EQ(lint({.files = {folder_.string()}, .json = true}), 1);
  std::vector<std::string> sources;
  const nlohmann::json answer = json();
  for (const auto& document : answer["documents"])
    sources.push_back(document["source"].get<std::string>().substr(folder_.string().size()));
  EXPECT_EQ(sources, (std::vector<std::string>{"/a.JSON#0", "/b/two.yml#0", "/c.YML#0", "/d.Yaml#0"}));
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
    EXPECT_TRUE(err_.str().contains("stdin is empty"));
    EXPECT_EQ(expect({.config = "-", .devices = devices, .json = true}, input), 2);
    EXPECT_EQ(expect({.config = empty, .devices = "-", .json = true}, input), 2);
    EXPECT_EQ(plan({"-"}, input), 2);
  }
  EXPECT_EQ(lint({.files = {empty}, .json = true}), 0);
  EXPECT_EQ(json()["documents"][0]["diagnostics"][0]["code"], "NothingWritten");
  EXPECT_EQ(expect({.config = empty, .devices = devices, .json = true}), 0);
  EXPECT_EQ(json()["allocatable"], (nlohmann::json{{"nvidia.com/gpu", "1"}}));
  EXPECT_TRUE(err_.str().contains("a profile without sharing"));
  EXPECT_EQ(lint({.files = {"-"}}, "# no sharing\n"), 0);
}

TEST_F(Commands, PlanNeedsAManifest) {
  const std::string comments = write("c.yaml", "---\n# nothing\n");
  EXPECT_EQ(plan({comments, write("e.yaml", "")}), 2);
  EXPECT_TRUE(err_.str().contains("no manifest found in ")) << err_.str();
  EXPECT_EQ(plan({comments, write("l.yaml", "kind: List\napiVersion: v1\nitems: []\n")}), 0) << err_.str();
}

// Objects of several files are checked together.
TEST_F(Commands, LintChecksProfilesAgainstTheNodesAndOperandsBesideThem) {
  // An installation in one file for each object, without --mps-root.
  std::vector<std::string> files;
  const std::string end = "---\n";
  for (std::string all = preflight_test::manifests({preflight_test::kNoRoot}) + end; !all.empty();
       all.erase(0, all.find(end) + end.size()))
    files.push_back(write(std::to_string(files.size()) + ".yaml", all.substr(0, all.find(end))));
  ASSERT_EQ(files.size(), 6U);
  const std::string &policy = files[0], &map = files[1], &plugin = files[2], &node = files[5];
  EXPECT_EQ(lint({.files = {policy, plugin, map, node}}), 1);
  for (const char* code : {"MPSDaemonMissing", "MPSRootMissing"})
    EXPECT_TRUE(std::regex_search(out_.str(), std::regex(std::string("5.yaml:4:9: error: .*") + code))) << out_.str();
  EXPECT_TRUE(out_.str().ends_with("\n4 documents (2 profiles): 1 with errors, 0 with warnings\n")) << out_.str();
  // In a namespace where the pods do not look.
  const std::string wrong = write("wrong.yaml",
                                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config}\ndata: {any: "
                                  "''}\n");
  EXPECT_EQ(lint({.files = {policy, plugin, wrong, node}}), 1);
  EXPECT_TRUE(out_.str().contains("ConfigMapInWrongNamespace")) << out_.str();
  // A ClusterPolicy and its ConfigMap alone, as they stand in Git.
  EXPECT_EQ(lint({.files = {policy, map}}), 0) << out_.str();
  const std::string other = write("other.yaml",
                                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config}\ndata: "
                                  "{other: ''}\n");
  EXPECT_EQ(lint({.files = {policy, other}}), 1);
  EXPECT_TRUE(out_.str().contains("DefaultKeyNotFound")) << out_.str();
  EXPECT_TRUE(out_.str().contains("0.yaml:4:59")) << "the place of spec.devicePlugin.config.default: " << out_.str();
  // The same as values of the GPU Operator's chart, before it is installed.
  const std::string values = write("values.yaml", "devicePlugin:\n  config: {name: mps-config, default: ayn}\n");
  EXPECT_EQ(lint({.files = {values, map}}), 1);
  EXPECT_TRUE(out_.str().contains("values.yaml:2:")) << out_.str();
  EXPECT_TRUE(out_.str().contains("did you mean \"any\"?")) << out_.str();
  // Of two ConfigMaps of that name, the one that has the key is meant.
  const std::string right = write("right.yaml", "devicePlugin:\n  config: {name: mps-config, default: any}\n");
  EXPECT_EQ(lint({.files = {right, map, other}}), 0) << out_.str();
  EXPECT_EQ(lint({.files = {values}}), 0) << out_.str();
}

TEST_F(Commands, ExpectSaysWhatTheNodeShows) {
  const std::string config = write("c.yaml", kGood);
  const std::string devices = write("d.json", kDevices);
  ASSERT_EQ(expect({.config = config, .devices = devices, .json = true}), 0);
  const auto answer = json();
  EXPECT_EQ(answer["labels"]["nvidia.com/gpu.replicas"], "4");
  EXPECT_EQ(answer["allocatable"], (nlohmann::json{{"nvidia.com/gpu", "0"}, {"nvidia.com/gpu.shared", "4"}}));
  EXPECT_EQ(answer["error"], nullptr);
  const auto& mps = answer["mps"][0];
  EXPECT_EQ(mps["pinnedMemoryMiB"], nlohmann::json::array({3840}));
  EXPECT_EQ(mps["activeThreadPercentage"], 25);
  EXPECT_EQ(mps["pinnedMemoryShown"], nlohmann::json::array({"3G"}));
  EXPECT_EQ(mps["activeThreadPercentageShown"], "25.0");
  ASSERT_EQ(expect({.config = config, .devices = devices}), 0);
  EXPECT_TRUE(out_.str().contains(
      "25 % of the threads (get_default_active_thread_percentage prints 25.0)\n  at most 3840 MiB of GPU 0 "
      "(get_default_device_pinned_mem_limit prints 3G)\n"))
      << out_.str();
}

TEST_F(Commands, ExpectHasNothingAgainstMpsWhereNoGpuIs) {
  const std::string devices = write("none.json", "[]");
  for (const std::string entry : {"{name: gpu, replicas: 500}", "{name: other, replicas: 4}"}) {
    const std::string config = write("c.yaml", "sharing: {mps: {resources: [" + entry + "]}}\n");
    EXPECT_EQ(expect({.config = config, .devices = devices, .json = true}), 0) << entry;
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
  ASSERT_EQ(expect({.config = map, .node = node, .json = true}), 0) << err_.str();
  EXPECT_EQ(json()["allocatable"]["nvidia.com/gpu.shared"], "8");
  const std::string two =
      write("two.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '', b: ''}\n");
  EXPECT_EQ(expect({.config = two, .node = node}), 2);
  EXPECT_TRUE(err_.str().contains("the ConfigMap has 2 keys; choose one with --key. Keys: a, b"));
}

TEST_F(Commands, ExpectNamesAnObjectThatIsNoProfile) {
  const std::string devices = write("d.json", kDevices);
  const auto refusal = [&](const std::string& kind) {
    const std::string file =
        write("other.yaml", "apiVersion: v1\n" + kind + "\nmetadata: {name: x}\ndata: {any: ''}\n");
    EXPECT_EQ(expect({.config = file, .devices = devices, .json = true}), 2) << kind;
    EXPECT_EQ(out_.str(), "") << kind;
    return err_.str().substr(file.size());
  };
  for (const std::string kind : {"Pod", "Node", "List", "Configmap", "SharingPolicy"})
    EXPECT_EQ(refusal("kind: " + kind), ":2:7: found an object of kind " + kind +
                                            "; --config needs a profile of the device plugin (version: v1), or a "
                                            "ConfigMap that holds profiles\n");
  EXPECT_EQ(refusal("Kind: ConfigMap"), ":1:1: the object has no kind; write its kind\n");
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
  const struct {
    const char* key;
    int status;
    std::string begins;
  } rows[] = {
      {"any", 1, ": line 10: sharing.mps.resources[0].replicas: "},
      {"misspelt", 0, ": line 13: sharings: "},
      {"quoted", 0, ", value of key quoted: line 2: versions: "},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(expect({.config = map, .key = row.key, .devices = devices, .json = true}), row.status) << row.key;
    const nlohmann::json said = row.status == 0 ? json()["warnings"][0] : json()["error"];
    EXPECT_TRUE(said.get<std::string>().starts_with(map + row.begins)) << said;
  }
  EXPECT_EQ(expect({.config = map, .key = "number", .devices = devices}), 2);
  EXPECT_EQ(err_.str(), map + ":15:11: the value of key number is no string\n");
}

TEST_F(Commands, LintPointsAtAValueThatIsNoString) {
  const std::string map =
      write("map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any: |\n    version: v1\n"
            "  number: 42\nbinaryData:\n  odd: '%'\n");
  EXPECT_EQ(lint({.files = {map}}), 1);
  for (const std::string& part :
       {map + ":7:11: error: data.number: ", std::string("\n    7 |   number: 42\n      |           ^\n"),
        map + ":9:8: error: binaryData.odd: ", std::string("\n    9 |   odd: '%'\n      |        ^\n")})
    EXPECT_TRUE(out_.str().contains(part)) << out_.str();
}

TEST_F(Commands, LintCountsAConfigMapAndTheValuesOfAChartAsOneDocument) {
  const std::string profiles =
      "    any: |\n      sharing: {mps: {resources: [{name: gpu, replicas: 1}]}}\n    none: |\n      version: v1\n";
  for (const std::string head :
       {"config:\n  map:\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"}) {
    EXPECT_EQ(lint({.files = {"-"}}, head + profiles), 1);
    EXPECT_TRUE(out_.str().ends_with("\n1 document (2 profiles): 1 with errors, 0 with warnings\n")) << out_.str();
  }
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

TEST_F(Commands, ExpectExitsWithOneWhereAComponentWould) {
  const std::string devices = write("d.json", kDevices);
  ASSERT_EQ(expect({.config = write("bad.yaml", kBad), .devices = devices, .json = true}), 1);
  EXPECT_TRUE(json()["labels"].empty());  // GFD exits too.
  const std::string beyond = write("beyond.yaml", "sharing: {mps: {resources: [{name: gpu, replicas: 50}]}}\n");
  ASSERT_EQ(expect({.config = beyond, .devices = devices, .json = true}), 1);
  EXPECT_EQ(json()["labels"]["nvidia.com/gpu.replicas"], "50");  // GFD does not.
  EXPECT_EQ(json()["allocatable"]["nvidia.com/gpu"], "0");
}

TEST_F(Commands, ExpectRefusesWrongUsage) {
  const std::string config = write("c.yaml", kGood);
  const std::string devices = write("d.json", kDevices);
  for (const ExpectOptions& wrong :
       {ExpectOptions{.config = config}, ExpectOptions{.config = config, .devices = devices, .node = devices},
        ExpectOptions{.config = config, .devices = write("x.json", "{\"name\": 1")},
        ExpectOptions{.config = config, .devices = write("y.json", "[{\"memoryMiB\": 1}]")},
        ExpectOptions{.config = folder_.string(), .devices = devices}})
    EXPECT_EQ(expect(wrong), 2);
}

}  // namespace
}  // namespace gso::lint_command_test
