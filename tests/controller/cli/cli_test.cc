// The command line as a whole: what it says to wrong arguments, and what reaches the terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "controller/cli/cli.h"
#include "controller/commands/shared/print.h"

namespace gso::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome call(const std::vector<std::string>& arguments, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_cli(arguments, in, out, err);
  return {code, out.str(), err.str()};
}

TEST(CommandLine, AMisspeltWordIsNamedWithTheRightOne) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"stauts"}, "unknown command 'stauts'; did you mean 'status'?"},
      {{"rollout", "stat"}, "gpu-sharing-operator rollout: unknown command 'stat'; did you mean 'status'?"},
      {{"rollout", "pasue"}, "gpu-sharing-operator rollout: unknown command 'pasue'; did you mean 'pause'?"},
      {{"lint", "--hlep"}, "gpu-sharing-operator lint: unknown flag --hlep; did you mean '--help'?"},
      {{"lint", "-x"}, "gpu-sharing-operator lint: unknown flag -x."},
      {{"-n", "x", "status"},
       "gpu-sharing-operator: unknown flag -n; write it after the command: gpu-sharing-operator COMMAND -n"},
      {{"explain", "--namspace=x"}, "unknown flag --namspace; did you mean '--namespace'?"},
      {{"plan", "--olny", "node.labels"}, "unknown flag --olny; did you mean '--only'?"},
      {{"version", "-o", "json"}, "gpu-sharing-operator version: unknown flag -o."},
  };
  for (const auto& [arguments, expected] : table) {
    const Outcome found = call(arguments);
    EXPECT_EQ(found.code, 2) << arguments.back();
    EXPECT_THAT(found.err, HasSubstr(expected));
    EXPECT_EQ(found.out, "");
  }
}

TEST(CommandLine, WrongArgumentsAreAnsweredInWordsForPeople) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"explain", "pod", "x", "y"},
       "gpu-sharing-operator explain: too many arguments: NODE|NAMESPACE/POD takes at most 2, not 3. Run: "
       "gpu-sharing-operator explain --help\n"},
      {{"explain"},
       "gpu-sharing-operator explain: missing: NODE|NAMESPACE/POD. Run: gpu-sharing-operator explain --help\n"},
      {{"expect"}, "gpu-sharing-operator expect: missing: --config FILE. Run: gpu-sharing-operator expect --help\n"},
      {{"status", "a", "b"},
       "gpu-sharing-operator status: unexpected arguments 'a', 'b'. Run: gpu-sharing-operator status --help\n"},
      {{"check", "a"}, "gpu-sharing-operator check: unexpected argument 'a'. Run: gpu-sharing-operator check --help\n"},
      {{"status", "-o", "foo"},
       "gpu-sharing-operator status: --output: 'foo' is not one of text, wide, json, yaml. Run: gpu-sharing-operator "
       "status --help\n"},
      {{"status", "--watch=maybe"},
       "gpu-sharing-operator status: --watch: 'maybe' is not a value for it. Run: gpu-sharing-operator status "
       "--help\n"},
      {{"rollout", "status", "--timeout"},
       "gpu-sharing-operator rollout status: --timeout needs a value: --timeout DURATION. Run: gpu-sharing-operator "
       "rollout status --help\n"},
  };
  for (const auto& [arguments, expected] : table) {
    const Outcome found = call(arguments);
    EXPECT_EQ(found.code, 2) << arguments.front();
    EXPECT_EQ(found.err, expected);
    EXPECT_EQ(found.out, "");
  }
}

TEST(CommandLine, ThePluginHasItsOwnNameInHelpAndUsageErrors) {
  const auto plugin = [](const std::vector<std::string>& arguments) {
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    const int code = run_cli(arguments, in, out, err, "/usr/local/bin/kubectl-gpu_sharing");
    return Outcome{code, out.str(), err.str()};
  };
  EXPECT_THAT(plugin({"stauts"}).err, HasSubstr("kubectl gpu-sharing: unknown command 'stauts'"));
  EXPECT_THAT(plugin({"status", "x"}).err, HasSubstr("Run: kubectl gpu-sharing status --help"));
  EXPECT_THAT(plugin({"status", "--help"}).out, HasSubstr("Usage: kubectl gpu-sharing status"));
}

TEST(CommandLine, TheValueOfAFlagIsNoFlag) {
  EXPECT_THAT(call({"plan", "--assume-observed-for", "-5m", "x"}).err, HasSubstr("'-5m' is not a duration"));
  EXPECT_THAT(call({"expect", "--config", "--", "--devices", "x"}).err, Not(HasSubstr("unknown flag")));
}

// kubectl takes 0 for "no limit".
TEST(CommandLine, ATimeoutThatWaitsForNobodyIsRefused) {
  for (const char* timeout : {"0", "0s", "999ms"}) {
    const Outcome found = call({"rollout", "status", "--wait", "--timeout", timeout});
    EXPECT_EQ(found.code, 2);
    EXPECT_THAT(found.err, HasSubstr("--timeout is at least 1s; without --timeout it waits forever"));
  }
}

TEST(CommandLine, WithoutACommandTheHelpIsPrinted) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"rollout"}, {"help"}, {"help", "lint"}, {"lint", "--help"}}) {
    const Outcome found = call(arguments);
    EXPECT_EQ(found.code, 0);
    EXPECT_THAT(found.out, HasSubstr("Usage: gpu-sharing-operator"));
    EXPECT_EQ(found.err, "");
  }
  const std::string help = call({"help", "explain"}).out + call({"help", "lint"}).out;
  for (const char* inside : {" TEXT", "REQUIRED", "(1x)", "{text"}) EXPECT_THAT(help, Not(HasSubstr(inside)));
  EXPECT_THAT(help, HasSubstr("NODE|NAMESPACE/POD"));
}

// For bills of materials and scanners: libcurl is always inside, with the version that cmake/libraries/build.sh pins.
// Lines of an option's names are as long as these are.
TEST(CommandLine, HelpFitsATerminalOfEightyColumns) {
  std::vector<std::vector<std::string>> commands{{}};
  const std::string top = call({"--help"}).out;
  std::istringstream lines(top.substr(top.find("\nSubcommands:\n")));
  for (std::string line; std::getline(lines, line);)
    if (line.size() > 3 && line.starts_with("  ") && line[2] != ' ')
      commands.push_back({line.substr(2, line.find(' ', 2) - 2)});
  ASSERT_GT(commands.size(), 10U);
  for (const char* verb : {"status", "start", "pause", "undo", "diff", "history"})
    commands.push_back({"rollout", verb});
  for (std::vector<std::string> command : commands) {
    command.emplace_back("--help");
    std::istringstream help(call(command).out);
    for (std::string line; std::getline(help, line);) {
      const bool names = line.starts_with("  -") || line.starts_with("Usage: ");
      EXPECT_TRUE(names || line.size() <= 80) << command.front() << ": " << line;
    }
  }
  EXPECT_THAT(call({"status", "--help"}).out, HasSubstr("\nExit status: 0 fine")) << "a sentence of its own";
  EXPECT_THAT(call({"expect", "--help"}).out, HasSubstr("\n  memoryMiB    ")) << "a table of the author's";
}

TEST(CommandLine, VersionNamesTheLibrariesInsideWhenItIsAsked) {
  const std::string plain = call({"version"}).out;
  const std::string listed = call({"version", "--libraries"}).out;
  EXPECT_THAT(plain, testing::MatchesRegex("gpu-sharing-operator [0-9.]+\n"));
  EXPECT_THAT(listed, testing::StartsWith(plain + "curl 8.14.1"));
}

// A disk that is full, or a reader that has gone.
class FullBuffer final : public std::streambuf {
 protected:
  int_type overflow(int_type) override { return traits_type::eof(); }
};

TEST(CommandLine, WhatCannotBeWrittenIsNoSuccess) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"version"},
                                                    {"lint", "-o", "json", "-"},
                                                    {"lint", "--codes"},
                                                    {"help"},
                                                    {"completion", "bash"}}) {
    std::istringstream in("version: v1\n");
    FullBuffer full;
    std::ostream out(&full);
    std::ostringstream err;
    EXPECT_EQ(run_cli(arguments, in, out, err), 2) << arguments.front();
    EXPECT_THAT(err.str(), HasSubstr("cannot be written to stdout"));
  }
}

TEST(CommandLine, NothingHostileReachesTheTerminal) {
  const std::string hostile = "\x1b]0;pwned\x07\x1b[31m";
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"lint", "-"}, "version: \"v\\e]0;pwned\\a\\e[31m2\"\n"},
      {{"lint", hostile}, ""},
      {{"plan", "-"}, "kind: Node\nmetadata: {name: \"\\e]0;pwned\\a\", labels: 1}\n"},
      {{"audit", "-f", "-"}, "kind: Node\nmetadata: {name: \"\\e[31m\", labels: {nvidia.com/gpu.count: \"1\"}}\n"},
      {{"explain", "-f", "-", hostile}, "kind: Node\nmetadata: {name: n}\n"},
      {{"expect", "--config", hostile, "--devices", "x"}, ""},
      {{hostile}, ""},
      {{"lint", "--" + hostile}, ""},
  };
  for (const auto& [arguments, input] : table) {
    const Outcome found = call(arguments, input);
    EXPECT_THAT(found.out + found.err, Not(HasSubstr("\x1b"))) << arguments.front();
    EXPECT_THAT(found.out + found.err, Not(HasSubstr("\x07"))) << arguments.front();
  }
}

// A text in a manifest that has a line of ours: what each command says about it stays on its own line.
TEST(CommandLine, MessagesAreBrokenBetweenWordsOnATerminal) {
  std::ostringstream terminal;
  {
    PrintableStream messages(terminal, 20);
    messages << "one two three \x1b four five\nRun: kubectl get pods --namespace a\nno end";
  }
  EXPECT_EQ(terminal.str(), "one two three \\x1b\n  four five\nRun:\n  kubectl get pods --namespace a\nno end");
}

TEST(CommandLine, NoTextOfAClusterForgesALine) {
  const std::string forged = "x\\nerror FORGED: run this\\ty";
  const std::string node = "kind: Node\nmetadata: {name: n, labels: {nvidia.com/gpu.count: \"1\", \"a\": \"" + forged +
                           "\"}, annotations: {gpusharing.dev/hold: \"" + forged + "\", gpusharing.dev/change: \"" +
                           forged + "\"}}\n";
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"lint", "-"}, "version: \"" + forged + "\"\n"},
      {{"lint", "-"}, "\"" + forged + "\": 4\n"},
      {{"plan", "-"}, "kind: Node\nmetadata: {name: \"" + forged + "\", labels: 1}\n"},
      {{"plan", "-"}, "kind: \"" + forged + "\"\nmetadata: {name: n}\n"},
      {{"plan", "-"}, node},
      {{"audit", "-f", "-"},
       "kind: Node\nmetadata: {name: \"" + forged + "\", labels: {nvidia.com/gpu.count: \"1\"}}\n"},
      {{"audit", "-f", "-"}, node},
      {{"explain", "n", "-f", "-"}, node},
  };
  for (const auto& [arguments, input] : table) {
    const Outcome found = call(arguments, input);
    EXPECT_THAT("\n" + found.out + "\n" + found.err, Not(HasSubstr("\nerror FORGED"))) << arguments.front() << input;
    EXPECT_THAT(found.out + found.err, Not(HasSubstr("\t"))) << arguments.front() << input;
  }
}

TEST(CommandLine, PlanOfAProfileNamesTheCommandThatChecksIt) {
  const Outcome found = call({"plan", "-"}, "version: v1\nsharing: {}\n");
  EXPECT_EQ(found.code, 2);
  EXPECT_THAT(found.err, HasSubstr("1:1: kind is missing; write the object's kind (`lint` checks a profile"));
}

TEST(CommandLine, PlanRefusesCommentsInJsonAsLintDoes) {
  const std::string text =
      "{\"apiVersion\": \"v1\",\n // a node\n \"kind\":\"Node\", \"metadata\": {\"name\": \"a\"}}\n";
  const std::string_view expected = "JSON has no comments; remove the comment that begins here with `//`";
  const Outcome planned = call({"plan", "-"}, text);
  EXPECT_EQ(planned.code, 2);
  EXPECT_THAT(planned.err, HasSubstr(fmt::format("-:2:2: {}", expected)));
  EXPECT_THAT(call({"lint", "-"}, text).out, HasSubstr(fmt::format("-:2:2: error: {}", expected)));
}

TEST(CommandLine, WhatExplainCannotFindIsNamedWithTheFormsThatItTakes) {
  const std::string nodes = "{kind: Node, metadata: {name: gpu-02}}\n---\n{kind: Node, metadata: {name: gpu-01}}\n";
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"explain", "a/b/c", "-f", "-"},
       "'a/b/c' names neither a node nor a pod: give NODE, NAMESPACE/POD, node NAME, or pod [NAMESPACE/]NAME\n"},
      {{"explain", "gpu-01", "-f", "-", "other.yaml"},
       "'gpu-01 other.yaml' names neither a node nor a pod: give NODE, NAMESPACE/POD, node NAME, or pod "
       "[NAMESPACE/]NAME; each file needs an -f of its own\n"},
      {{"explain", "gpu-03", "-f", "-"},
       "node gpu-03 not found; a pod is named NAMESPACE/POD; nodes: gpu-01, gpu-02; did you mean 'gpu-01'?\n"},
      {{"explain", "team/train", "-f", "-"}, "pod team/train not found in -; a pod is named NAMESPACE/POD\n"},
  };
  for (const auto& [arguments, expected] : table) {
    const Outcome found = call(arguments, nodes);
    EXPECT_EQ(found.code, 2) << arguments[1];
    EXPECT_EQ(found.err, "gpu-sharing-operator explain: " + expected);
  }
}

// --- What the offline commands read.

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("gso-cli-{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST_F(Files, ErrorsOfTheLoaderHaveALineAColumnAndWhatStandsThere) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"apiVersion: v1\nkind: Node\nmetadata:\n  name: n\n",
       ":4:9: Node: metadata.name must be a string, found the boolean false (in YAML yes, no, on, off, y and n are "
       "booleans): put it in quotes"},
      {"kind: Node\nmetadata: {name: a}\nstatus:\n  capacity:\n    nvidia.com/gpu: many\n",
       ":5:21: Node a: status.capacity must be a quantity such as 8 or 2k, found \"many\""},
      {"kind: Node\nmetadata:\n  labels: {a: b}\n", ":3:3: Node: metadata.name must be a non-empty string"},
      {"kind: Node\nmetadata: {name: a, labels: {x: 'y', z: 4}}\n",
       ":2:41: Node a: metadata.labels must be a string, found the number 4: put it in quotes"},
      {"kind: List\napiVersion: v1\nitems: {}\n", ":3:8: items of a List must be a list, found a mapping"},
      {"kind: List\napiVersion: v1\nitems:\n- 5\n", ":4:3: items must be objects, found the number 5"},
      {"kind: true\n", ":1:7: kind must be a string, found the boolean true"},
      {"{\"kind\": \"Node\",\n \"metadata\": {\"name\": 7}}\n",
       ":2:23: Node: metadata.name must be a string, found the number 7"},
      {"kind: Node\nmetadata: {name: [\n", ":2:19: "},
      {"kind: SharingPolicy\nmetadata: {name: p}\nspec:\n  rollout:\n    maxUnavailable: -5\n",
       ":5:21: SharingPolicy p: spec.rollout.maxUnavailable must be a count of at least 1, or a percentage from 1% to "
       "100%, found the number -5"},
      {"kind: SharingPolicy\nmetadata: {name: p}\nspec:\n  rollout:\n    maxUnavailablePerGroup: '120%'\n",
       ":5:29: SharingPolicy p: spec.rollout.maxUnavailablePerGroup must be a count of at least 1, or a percentage "
       "from 1% to 100%, found \"120%\""},
      {"kind: SharingPolicy\nmetadata: {name: p}\nspec:\n  rollout:\n    canary: {nodesPerGroup: -1}\n",
       ":5:29: SharingPolicy p: spec.rollout.canary.nodesPerGroup must be a whole number from 0 to 1000, found the "
       "number -1"},
      {"kind: SharingPolicy\nmetadata: {name: p}\nspec:\n  rollout:\n    maxFailures: -1\n",
       ":5:18: SharingPolicy p: spec.rollout.maxFailures must be a whole number from 1 to 10000, found the number -1"},
      {"kind: SharingPolicy\nmetadata: {name: p}\nspec:\n  revisionHistoryLimit: -1\n",
       ":4:25: SharingPolicy p: spec.revisionHistoryLimit must be a whole number from 0 to 1000, found the number -1"},
  };
  for (const auto& [text, expected] : table) {
    const std::string file = write("bad.yaml", text);
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"plan", file}, {"audit", "-f", file}, {"explain", "a", "-f", file}}) {
      const Outcome found = call(arguments);
      EXPECT_EQ(found.code, 2) << found.out;
      EXPECT_THAT(found.err, HasSubstr(file + expected)) << text;
    }
  }
}

TEST_F(Files, EveryWrongObjectOfADumpIsNamed) {
  const std::string dump =
      "kind: List\nitems:\n- {kind: Node, metadata: {name: 1}}\n- {kind: Node, metadata: {name: "
      "a}}\n- {kind: Node, metadata: {name: 2}}\n";
  const std::vector<std::string> commands[] = {{"plan", "-"}, {"audit", "-f", "-"}, {"explain", "a", "-f", "-"}};
  for (const std::vector<std::string>& command : commands) {
    const Outcome found = call(command, dump);
    EXPECT_EQ(found.code, 2) << command.front();
    EXPECT_THAT(found.err, HasSubstr("-:3:33: ")) << command.front();
    EXPECT_THAT(found.err, HasSubstr("\n-:5:33: ")) << command.front();
  }
}

TEST_F(Files, AFolderHasTheKeysOfAMountedConfigMapToo) {
  write("keys/t4", "version: v1\n");
  write("keys/a100", "version: v2\n");
  write("keys/broken", "sharing:\n  mps: [\n");
  write("keys/LICENSE", "Apache License\n");
  write("keys/..2026_01_01/t4", "version: v3\n");
  write("keys/.git/HEAD", "version: v3\n");
  const Outcome found = call({"lint", "-o", "json", (folder_ / "keys").string()});
  std::vector<std::string> names;
  const auto answer = nlohmann::json::parse(found.out);
  for (const auto& document : answer["documents"]) {
    const std::string source = document["source"];
    names.push_back(source.substr(source.rfind('/') + 1));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a100#0", "broken#0", "t4#0"}));
  EXPECT_EQ(call({"plan", write("plan/nodes.yaml", "kind: Node\nmetadata: {name: a}\n")}).code, 0);
  EXPECT_EQ(call({"plan", (folder_ / "plan").string()}).code, 0);
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_EQ(call({"plan", (folder_ / "empty").string()}).code, 2);
}

TEST_F(Files, LintAnswersInSarif) {
  const std::string file = write("a b.yaml", "version: v2\n");
  const Outcome found = call({"lint", "-o", "sarif", file});
  EXPECT_EQ(found.code, 1);
  const auto run = nlohmann::json::parse(found.out)["runs"][0];
  ASSERT_EQ(run["results"].size(), 1U);
  const auto& result = run["results"][0];
  EXPECT_EQ(result["ruleId"], "UnknownVersion");
  EXPECT_EQ(result["level"], "error");
  const auto& place = result["locations"][0]["physicalLocation"];
  EXPECT_TRUE(place["artifactLocation"]["uri"].get<std::string>().ends_with("/a%20b.yaml"));
  EXPECT_EQ(place["region"], (nlohmann::json{{"startLine", 1}, {"startColumn", 10}}));
  const auto& rule = run["tool"]["driver"]["rules"][0];
  EXPECT_EQ(rule["id"], "UnknownVersion");
  // GitHub's code scanning refuses a rule without a short description.
  for (const char* field : {"shortDescription", "fullDescription", "help"})
    EXPECT_NE(rule[field]["text"].get<std::string>(), "");
}

TEST_F(Files, TheSameOfManyNodesIsSaidOnce) {
  std::string text;
  for (int i = 0; i < 9; ++i)
    text += fmt::format(
        "kind: Node\napiVersion: v1\nmetadata: {{name: n{}, labels: {{nvidia.com/device-plugin-config: a}}}}\n---\n",
        i);
  const Outcome found = call({"lint", "-"}, text);
  EXPECT_EQ(found.out.find("did you mean"), found.out.rfind("did you mean")) << found.out;
  EXPECT_THAT(found.out, HasSubstr("LabelMisspelt also holds for 8 more nodes: n1, n2, n3, n4, n5 and 3 more"));
  text.clear();
  for (const char* name : {"a", "[b]"})
    text += fmt::format(
        "kind: Node\napiVersion: v1\nmetadata: {{name: {}, labels: {{nvidia.com/device-plugin-config: a}}}}\n---\n",
        name);
  EXPECT_THAT(call({"lint", "-"}, text).out, HasSubstr("LabelMisspelt also holds for 1 more node: -#1\n"))
      << "whose name is no string";
}

TEST_F(Files, ExpectChoosesAKeyAndNamesWhatItIgnores) {
  const std::string devices = write("d.json", R"([{"name":"Tesla T4","memoryMB":15360}])");
  const std::string map =
      write("m.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: 'sharing: {mps: {resources: [{name: "
            "gpu, replicas: 20}]}}'\nbinaryData:\n  b: "
            "c2hhcmluZzoge21wczoge3JlbmFtZUJ5RGVmYXVsdHM6IHRydWUsIHJlc291cmNlczogW3tuYW1lOiBncHU"
            "sIHJlcGxpY2FzOiA0fV19fQo=\n");
  EXPECT_THAT(call({"expect", "--config", map, "--devices", devices}).err,
              HasSubstr("choose one with --key. Keys: a, b"));
  EXPECT_THAT(call({"expect", "--config", map, "--key", "c", "--devices", devices}).err, HasSubstr("has no key c"));
  const Outcome many = call({"expect", "--config", map, "--key", "a", "--devices", devices, "-o", "json"});
  EXPECT_EQ(many.code, 0) << "the compute capability is not known: " << many.out;
  EXPECT_EQ(nlohmann::json::parse(many.out)["allocatable"]["nvidia.com/gpu"], "20");
  const Outcome binary = call({"expect", "--config", map, "--key", "b", "--devices", devices, "-o", "json"});
  const auto warnings = nlohmann::json::parse(binary.out)["warnings"];
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0].get<std::string>(),
              HasSubstr("devices[0].memoryMB: unknown field, which is ignored; did you mean \"memoryMiB\"?"));
  EXPECT_THAT(warnings[1].get<std::string>(), HasSubstr("did you mean \"renameByDefault\"?"));
  const std::string node =
      write("n.yaml",
            "kind: Node\nmetadata: {name: node-a, labels: {nvidia.com/gpu.count: '-1', nvidia.com/gpu.product: T4}}\n");
  EXPECT_THAT(call({"expect", "--config", map, "--key", "b", "--node", node}).err,
              HasSubstr("label nvidia.com/gpu.count of the node is \"-1\"; it must be a whole number from 1 to 1024"));
}

// Port 1 of this machine refuses connections: a dead API server, or a wrong kubeconfig.
TEST(Cli, AServerThatCannotBeReachedIsOneLineAtOnce) {
  const std::string kubeconfig = testing::TempDir() + "unreachable.kubeconfig";
  std::ofstream(kubeconfig)
      << "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: k, cluster: {server: "
         "'http://127.0.0.1:1'}}], users: [{name: u, user: {}}], contexts: [{name: c, context: "
         "{cluster: k, user: u}}]}\n";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"status"},
                                                  {"audit"},
                                                  {"rollout", "pause"},
                                                  {"explain", "gpu-1"},
                                                  {"plan", "--from-cluster"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--kubeconfig", kubeconfig});
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(run_cli(arguments, in, out, err), 2) << command.front();
    EXPECT_EQ(out.str(), "");
    EXPECT_THAT(err.str(), testing::HasSubstr("the API server http://127.0.0.1:1 cannot be reached: "));
    EXPECT_EQ(std::ranges::count(err.str(), '\n'), 1) << err.str();
  }
}

}  // namespace
}  // namespace gso::cli_test
