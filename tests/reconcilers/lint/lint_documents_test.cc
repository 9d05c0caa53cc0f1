// Documents of all kinds through lint: kind detection, places, Pods and policies, JSON and text.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/yaml_node.h"
#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_documents_test {
namespace {

using namespace lint_test;

const std::string kGood = "version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 4}]}}\n";

// k8s.io/apimachinery/pkg/util/validation, IsConfigMapKey.
TEST(LintDocuments, AKeyThatNoConfigMapCanHaveIsAnError) {
  const auto of_key = [](const std::string& key) {
    return codes_of("kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\ndata: {'" + key + "': '" +
                    "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}'}\n");
  };
  const std::string longest(253, 'x');
  for (const std::string& key : {std::string("a/b"), std::string("a b"), std::string("."), std::string(".."),
                                 std::string("..x"), longest + "x", std::string("é")})
    EXPECT_EQ(of_key(key), Codes{"KeyRefused"}) << key;
  EXPECT_EQ(of_key("a.b-c_D"), Codes{});
  for (const std::string& taken : {std::string(".x"), longest}) EXPECT_EQ(of_key(taken), Codes{"KeyNoLabelValue"});
}

// As for the plugin, and for the value of a ConfigMap's key.
TEST(LintDocuments, AnEmptyDocumentBeforeAProfileIsTheOneThatCounts) {
  const auto documents = lint("---\n---\n" + kGood);
  EXPECT_EQ(told(documents), (Codes{"#0 Profile: warning FurtherDocumentIgnored 3:1", "#1 Profile"}));
  ASSERT_TRUE(documents[0].profile);
  EXPECT_EQ(documents[0].profile->strategy(), Strategy::none);
  EXPECT_EQ(lint("---\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\n").size(), 1u) << "a manifest";
}

TEST(LintDocuments, AnErrorNeverPointsBehindTheEndOfTheText) {
  EXPECT_EQ(told(lint("foo: [")), Codes{"#0 Profile: error SyntaxError 1:7"});
  EXPECT_FALSE(first_message("foo: [").contains("line 2"));
}

// The verdict is the plugin's, and each thing is said once.
TEST(LintDocuments, TextBehindAnEmptyFirstDocumentIsIgnored) {
  for (const auto& [text, place] : std::vector<std::pair<std::string, std::string>>{{"---\n---\n@", "3:1"},
                                                                                    {"---\n--- @", "2:5"},
                                                                                    {"---\n---\nfoo: [", "3:7"},
                                                                                    {"---\n# c\n---\n]\n", "4:1"},
                                                                                    {"---\n---\n  a: b: c", "3:7"}}) {
    const auto documents = lint(text);
    EXPECT_EQ(told(documents), Codes{"#0 Profile: warning FurtherTextIgnored " + place}) << text;
    EXPECT_TRUE(documents[0].profile) << text;
  }
}

TEST(LintDocuments, WhatFollowsAProfileWithoutASeparatorIsIgnoredText) {
  for (const std::string text : {" version: v1\nsharing:\n  mps: {}\n", "version: v1\n...\nsharing:\n  mps: {}\n",
                                 "---\n version: v1\nsharing:\n  mps: {}\n"}) {
    EXPECT_EQ(codes_of(text), Codes{"FurtherTextIgnored"}) << text;
    EXPECT_TRUE(lint(text)[0].valid()) << text;
  }
}

TEST(LintDocuments, AnEmptyTextIsOneValidProfile) {
  for (const std::string text : {"", "\n \n", "# nothing\n", "---\n", "null\n", "{}"}) {
    const auto documents = lint(text);
    ASSERT_EQ(documents.size(), 1u) << text;
    EXPECT_EQ(documents[0].kind + documents[0].source, "Profilef.yaml#0");
    EXPECT_TRUE(documents[0].valid()) << text;
  }
}

TEST(LintDocuments, EveryDocumentOfAFileIsReadAndEmptyOnesAreNot) {
  EXPECT_EQ(told(lint("---\n" + kGood + "---\n---\n# only a comment\n---\nversion: v2\n")),
            (Codes{"#0 Profile: warning FurtherDocumentIgnored 8:1", "#1 Profile: error UnknownVersion 8:10"}));
}

TEST(LintDocuments, ABrokenDocumentDoesNotHideTheOthers) {
  EXPECT_EQ(told(lint(kGood + "---\nversion: [v1\n---\nversion: v3\n---\na: b: c\n---\n" + kGood)),
            (Codes{"#0 Profile: warning FurtherTextIgnored 4:13", "#1 Profile: error SyntaxError 4:13",
                   "#2 Profile: error UnknownVersion 6:10", "#3 Profile: error SyntaxError 8:5", "#4 Profile"}));
}

TEST(LintDocuments, EveryKeyOfAConfigMapIsAProfile) {
  EXPECT_EQ(
      told(lint("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: profiles}\ndata:\n  good: |\n    version: v1\n"
                "  bad: |-\n    version: v1\n    sharing:\n      timeSlicing: {}\n  empty: \"\"\n"
                "  'no-label-': ''\n  number: 4\n")),
      (Codes{"#0 ConfigMap profiles: warning KeyNoLabelValue 12:3", "#0 Profile profiles.bad: error NoResources 3:16",
             "#0 Profile profiles.empty", "#0 Profile profiles.good", "#0 Profile profiles.no-label-",
             "#0 Profile profiles.number: error WrongType 13:11"}));
}

TEST(LintDocuments, APolicysKeyIsLookedForInTheConfigMapsThatStandBeside) {
  const std::string map =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: 'sharing: {}', b: ''}\n---\n";
  const auto found = [](const std::string& beside, const std::string& key) {
    return told(lint_together(beside +
                              "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\nspec:\n"
                              "  profile:\n    configMapKey: " +
                              key + "\n"))
        .back();
  };
  EXPECT_EQ(found(map, "b"), "#1 SharingPolicy p");
  EXPECT_EQ(found(map, "c"), "#1 SharingPolicy p: error ConfigInvalid 11:19");
  EXPECT_EQ(found("", "c"), "#0 SharingPolicy p");
  EXPECT_EQ(found("kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: "
                  "{ca: x}}\n---\n",
                  "c"),
            "#1 SharingPolicy p")
      << "a ConfigMap of something else says nothing about it";
}

TEST(LintDocuments, WhatNosWroteForItsNodesIsNotHeldAgainstTheOfficialPluginsRules) {
  const std::string map =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: a}\ndata: {n1-17: 'sharing: {mps: {resources: "
      "[{name: nvidia.com/gpu, replicas: 1, memoryGB: 10, devices: [\"0\"]}]}}', any: 'version: v2'}\n";
  const auto node = [](const std::string& name, const std::string& labels) {
    return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {" + labels + "}}\n";
  };
  const auto daemonset = [](const std::string& selector, const std::string& default_key) {
    return "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d" + default_key + ", namespace: a, uid: u" +
           default_key +
           "}\nspec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {nodeSelector: "
           "{" +
           selector +
           "}, containers: [{name: nvidia-device-plugin-ctr, image: 'x:v0.17.1'}, {name: m, image: x, env: "
           "[{name: CONFIG_FILE_SRCDIR, value: /c}, {name: DEFAULT_CONFIG, value: '" +
           default_key +
           "'}], volumeMounts: [{name: v, mountPath: /c}]}], volumes: [{name: v, configMap: {name: c}}]}}}\n";
  };
  const std::string chosen = "nvidia.com/device-plugin.config: n1-17";
  const std::string of_nos = "nos.nebuly.com/gpu-partitioning: mps";
  const auto invalid = [&](const std::string& beside) {
    std::vector<ClusterObject> objects;
    std::vector<LintedDocument> documents = lint_text("f.yaml", map + beside, {}, &objects);
    lint_nos(objects, documents);
    Codes out;
    for (const LintedDocument& document : documents)
      if (!document.valid()) out.push_back(document.key);
    return out;
  };
  EXPECT_EQ(invalid(""), (Codes{"any", "n1-17"}));
  EXPECT_EQ(invalid(node("n1", chosen)), (Codes{"any", "n1-17"}));
  EXPECT_EQ(invalid(node("n1", chosen + ", " + of_nos)), Codes{"any"});
  // A node of the official plugin reads it as well, with its label or without one.
  EXPECT_EQ(invalid(node("n1", chosen + ", " + of_nos) + node("n2", chosen)), (Codes{"any", "n1-17"}));
  EXPECT_EQ(invalid(node("n1", chosen + ", " + of_nos) + daemonset("a: b", "n1-17")), (Codes{"any", "n1-17"}));
  EXPECT_EQ(invalid(daemonset(of_nos, "")), Codes{});
  EXPECT_EQ(invalid(daemonset(of_nos, "") + daemonset("a: b", "x")), (Codes{"any", "n1-17"}));
}

// What is said of the DeviceClass, of the slice and of the Node.
Codes double_offers(const std::string& resource, const std::string& slice, const std::string& node = "") {
  return told(lint_together(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: c}\nspec: {extendedResourceName: " +
      resource +
      "}\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: "
      "gpu.nvidia.com, " +
      slice + ", pool: {name: n1}}\n" + node));
}

TEST(LintDocuments, ADoubleOfferIsSeenByWhatTheNodeServes) {
  const auto node = [](const std::string& resource) {
    return "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {" + resource +
           ": '8'}, allocatable: {" + resource + ": '8'}}\n";
  };
  const std::string on_n1 = "nodeName: n1, devices: [{name: gpu-0}]";
  const std::string gpu = "nvidia.com/gpu";
  EXPECT_EQ(double_offers(gpu, on_n1), (Codes{"#0 DeviceClass c: warning DRADoubleOffer 3:18", "#1 ResourceSlice s"}));
  EXPECT_EQ(double_offers("example.com/gpu", on_n1), (Codes{"#0 DeviceClass c", "#1 ResourceSlice s"}));
  const struct {
    std::string resource, slice, served;
    bool offered_twice;
  } rows[] = {
      {gpu, on_n1, gpu, true},
      {gpu, "allNodes: true, devices: [{name: gpu-0}]", gpu, true},
      {gpu, "nodeName: n1, devices: []", gpu, false},
      {"''", on_n1, gpu, false},
      {"nvidia.com/gpu.shared", on_n1, "nvidia.com/gpu.shared", true},
      {"nvidia.com/gpu.shared", on_n1, gpu, false},
      {"nvidia.com/mig-1g.5gb", on_n1, "nvidia.com/mig-1g.5gb", true},
  };
  for (const auto& row : rows) {
    const std::string of_node = row.offered_twice ? "#2 Node n1: error DRADoubleOffer 13:18" : "#2 Node n1";
    EXPECT_EQ(double_offers(row.resource, row.slice, node(row.served)),
              (Codes{"#0 DeviceClass c", "#1 ResourceSlice s", of_node}))
        << row.resource;
  }
}

TEST(LintDocuments, TheOperatorsOwnRecordIsNotReadAsAProfile) {
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gpu-sharing-operator-state}\ndata:\n"
                     "  baseline.json: '{\"version\": \"v1\", \"sharing\": {\"x\": 1}}'\n---\napiVersion: v1\n"
                     "kind: ConfigMap\nmetadata: {name: gpu-sharing-operator-state-0}\ndata:\n"
                     "  nodes.json: '{\"version\": \"v1\"}'\n"),
            (Codes{"NotChecked", "NotChecked"}));
}

// The kubelet makes files of binaryData's keys too.
TEST(LintDocuments, AKeyOfBinaryDataIsAProfile) {
  const auto documents = lint(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\nbinaryData:\n  bad: dmVyc2lvbjogdjIK\n  good: |\n"
      "    dmVyc2lv\n    bjogdjEK\n  odd: '%'\n  number: 4\n");
  EXPECT_EQ(told(documents),
            (Codes{"#0 Profile p.bad: error UnknownVersion 1:10", "#0 Profile p.good",
                   "#0 Profile p.number: error WrongType 10:11", "#0 Profile p.odd: error BinaryDataInvalid 9:8"}));
  EXPECT_EQ(documents[2].diagnostics[0].path, "binaryData.number");
  // Of a List, where it looks like a profile; and twice is once too often.
  const auto listed = lint(
      "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data: {k: "
      "''}\n  binaryData: {k: c2hhcmluZzoge21wczoge319Cg==, '-': ''}\n");
  ASSERT_EQ(listed.size(), 4u);
  EXPECT_EQ(codes(listed[0]), (Codes{"KeyNoLabelValue", "KeyTwice"}));
  EXPECT_EQ(listed[3].key, "k");
  EXPECT_EQ(codes(listed[3]), Codes{"NoResources"});
}

// Programs write JSON with escapes and characters that YAML reads otherwise.
TEST(LintDocuments, AManifestInJsonIsReadAsJson) {
  const std::string head = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":")";
  const std::vector<std::pair<std::string, Codes>> cases{
      {R"(# \ud83d\ude00\nversion: v2\n)", {"UnknownVersion"}},
      {R"(# \ud83d\nversion: v2\n)", {"UnknownVersion"}},                 // Half a pair.
      {"# \x7f \u0085 \u2028 \ufeff\\nversion: v2\\n", {"SyntaxError"}},  // DEL is for the plugin's library to refuse.
      {"version: \u2028v1\\n", {"SyntaxError"}},
      {R"(# a \"quote\" and \\ud83d\nversion: v2\n)", {"UnknownVersion"}}};
  for (const auto& [value, expected] : cases) {
    for (const std::string mark : {"", "\xef\xbb\xbf"}) {
      const auto documents = lint(mark + head + value + "\"}}\n");
      ASSERT_EQ(documents.size(), 1u) << value;
      EXPECT_EQ(documents[0].key, "a") << value;
      EXPECT_EQ(codes(documents[0]), expected) << value;
    }
  }
  // A profile in JSON is read as the plugin reads it: as YAML, which has no surrogates.
  EXPECT_EQ(codes_of(R"({"version": "\ud83d\ude00"})"), Codes{"SyntaxError"});
}

TEST(LintDocuments, OfALListOnlyConfigMapsWithProfilesAreChecked) {
  EXPECT_EQ(
      told(lint("kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca."
                "crt}, data: {ca.crt: '-----BEGIN CERTIFICATE-----'}}\n- kind: ConfigMap\n  apiVersion: v1\n"
                "  metadata: {name: c}\n  data:\n    any: |\n      sharing: {mps: {resources: []}}\n"
                "- {kind: Service, apiVersion: v1, metadata: {name: d}}\n")),
      (Codes{"#0 ConfigMap kube-root-ca.crt", "#1 Profile c.any: error NoResources 1:28",
             "#2 Service d: info NotChecked 11:3"}));
}

TEST(LintDocuments, JsonHasTheContractsFieldsInTheirOrder) {
  const std::string text =
      lint_json(lint("version: v1\nsharing:\n  mps:\n    renameByDefault: true\n    resources:\n    - name: gpu\n      "
                     "replicas: 4\n"));
  EXPECT_TRUE(text.starts_with("{\n \"documents\": [\n  {\n   \"source\": \"f.yaml#0\",\n")) << text;
  EXPECT_EQ(
      nlohmann::ordered_json::parse(text).dump(),
      R"({"documents":[{"source":"f.yaml#0","kind":"Profile","name":"","key":"","valid":true,"diagnostics":[],)"
      R"("normalized":{"sharing":{"timeSlicing":{},"mps":{"renameByDefault":true,"failRequestsGreaterThanOne":true,)"
      R"("resources":[{"name":"nvidia.com/gpu","rename":"nvidia.com/gpu.shared","devices":"all","replicas":4}]}}}}]})");
  const auto broken = nlohmann::json::parse(lint_json(lint("version: v4\n")))["documents"][0];
  EXPECT_EQ(broken["valid"], false);
  EXPECT_FALSE(broken.contains("normalized"));
  const auto& error = broken["diagnostics"][0];
  EXPECT_EQ(nlohmann::json({error["line"], error["column"], error["path"]}), (nlohmann::json{1, 10, "version"}));
}

TEST(LintDocuments, TextShowsTheLineAndACaret) {
  const std::string text =
      "# \u00fc\nversion: \"v1\"\nsharing: {mps: {\u00fc: 1, resources: [{name: gpu, replicas: 1}]}}\n";
  EXPECT_EQ(lint_report(lint(text)[0], SourceLines(text)),
            "f.yaml:3:17: warning: sharing.mps.\u00fc: \"\u00fc\" is ignored: unknown field; known fields: "
            "renameByDefault, failRequestsGreaterThanOne, resources [UnknownField]\n"
            "    3 | sharing: {mps: {\u00fc: 1, resources: [{name: gpu, replicas: 1}]}}\n"
            "      |                 ^\n"
            "f.yaml:3:57: error: sharing.mps.resources[0].replicas: replicas is 1; it must be 2 or more (to "
            "disable sharing, remove the sharing section) [ReplicasBelowMinimum]\n"
            "    3 | sharing: {mps: {\u00fc: 1, resources: [{name: gpu, replicas: 1}]}}\n"
            "      |                                                         ^\n");
}

// The two lines under a diagnostic of a text: the source line, and the caret.
std::string shown(const std::string& text) {
  const std::string report = lint_report(lint(text)[0], SourceLines(text));
  return report.substr(std::min(report.find('\n') + 1, report.size()));
}

TEST(LintDocuments, TheCaretStandsUnderTheCharacter) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"version:\tv2\n", "    1 | version:\tv2\n      |         \t^\n"},
      {"\"v\": [\u00e4\u65e5\U0001f600, {version: 1}, *a]\n",  // Of two to four bytes.
       "    1 | \"v\": [\u00e4\u65e5\U0001f600, {version: 1}, *a]\n      |                          ^\n"},
      {"{flags: {migStrategy: none}, version: v2}\r\n",
       "    1 | {flags: {migStrategy: none}, version: v2}\n      |                                       ^\n"},
      {"\ufeffversion: v2\n", "    1 | version: v2\n      |          ^\n"},
      {"version:\r  v2\r", "    2 |   v2\n      |   ^\n"},
      // Latin-1: bytes that are no UTF-8, one of them with the low bits of a tab.
      {"a: \xe9\n: [\n", "    1 | a: \xe9\n      |     ^\n"}};
  for (const auto& [text, expected] : table) EXPECT_EQ(shown(text), expected);
}

TEST(LintDocuments, TextPlacesAValueOfAConfigMapInTheFile) {
  const std::string text =
      "kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\ndata:\n  a: |\n    # first\n    version: v2\n  b: "
      "\"version: v3\"\n";
  const auto documents = lint(text);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(lint_report(documents[0], SourceLines(text)),
            "f.yaml:7:14: error: version: version is \"v2\"; the only supported version is v1 [UnknownVersion]\n"
            "    7 |     version: v2\n"
            "      |              ^\n");
  EXPECT_EQ(
      lint_report(documents[1], SourceLines(text)),
      "f.yaml[b], line 1 of the value, column 10: error: version: version is \"v3\"; the only supported version is v1 "
      "[UnknownVersion]\n"
      "    1 | version: v3\n"
      "      |          ^\n");
}

// A ConfigMap is its only way to the plugin, and holds 1 MiB at most.
TEST(LintDocuments, AFileWithAProfileThatNoConfigMapHoldsIsAnError) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  const auto filled = [](const std::string& text, std::size_t bytes) {
    return lint(text + "#" + std::string(bytes - text.size() - 2, 'x') + "\n");
  };
  const auto fits = filled(kGood, kMost);
  EXPECT_EQ(codes(fits.at(0)), Codes{});
  EXPECT_TRUE(fits[0].profile);
  const auto exceeds = filled(kGood, kMost + 1);
  EXPECT_EQ(codes(exceeds.at(0)), Codes{"TooLarge"});
  EXPECT_EQ(exceeds[0].diagnostics.back().message, "the text has 1048577 bytes; at most 1048576 are allowed");
  EXPECT_FALSE(exceeds[0].profile);
  const std::string pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n";
  for (const LintedDocument& document : filled(pod, 2 * kMost)) EXPECT_TRUE(document.valid()) << document.kind;
}

// --- What is no YAML, or no profile, because of how it is written: where lint points, and what it says.

TEST(LintSyntaxErrors, AMissingColonOrSpaceIsReportedWhereItIsMissing) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"sharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas:4\n",
       "f.yaml:5:16: error: put a space after the colon: `replicas: 4` [SyntaxError]\n"
       "    5 |       replicas:4\n"
       "      |                ^\n"},
      {"flags:\n  failOnInitError: true\n  migStrategy:none\nversion: v1\n",
       "f.yaml:3:15: error: put a space after the colon: `migStrategy: none` [SyntaxError]\n"
       "    3 |   migStrategy:none\n"
       "      |               ^\n"},
      // As a manual prints it.
      {"sharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n    ...\n",
       "f.yaml:6:5: error: expected `key: value`, found `...` [SyntaxError]\n"
       "    6 |     ...\n"
       "      |     ^\n"},
      {"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: ]}}}\n",
       "f.yaml:1:62: error: a value is missing before `]` [SyntaxError]\n"
       "    1 | sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: ]}}}\n"
       "      |                                                              ^\n"}};
  for (const auto& [text, expected] : table) EXPECT_EQ(lint_report(lint(text)[0], SourceLines(text)), expected);
}

const std::string kMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any:";

TEST(LintSyntaxErrors, AProfileThatIsNotIndentedBelowItsKeyIsExplained) {
  const auto documents = lint(kMap + " |\n  version: v1\n  sharing:\n    timeSlicing: {}\n");
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[1].key, "sharing");
  ASSERT_EQ(codes(documents[1]), Codes{"WrongType"});
  EXPECT_TRUE(documents[1].diagnostics[0].message.contains("indent it deeper than the profile's key"));
}

TEST(LintSyntaxErrors, AProfileThatIsNoTextIsToldToBeginAsOne) {
  const std::string text = kMap + "\n    version: v1\n    sharing:\n      timeSlicing: {}\n";
  EXPECT_EQ(codes_of(text), Codes{"WrongType"});
  EXPECT_TRUE(first_message(text).ends_with("; begin it with \"|\"")) << first_message(text);
}

TEST(LintSyntaxErrors, AFoldedProfileIsNamedAsTheCauseOfItsError) {
  const std::string rest = "\n    version: v1\n    sharing:\n      mps: null\n";
  EXPECT_EQ(codes_of(kMap + " >-" + rest), Codes{"SyntaxError"});
  EXPECT_TRUE(first_message(kMap + " >-" + rest).contains("joins its lines: begin it with \"|\""));
  EXPECT_TRUE(lint(kMap + " |-" + rest)[0].valid());
}

// As editors write settings. What YAML makes of a comment would be reported elsewhere, or lines later.
TEST(LintSyntaxErrors, ACommentInJsonIsReportedWhereItBegins) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"// a profile\n{\n  \"version\": \"v1\"\n}\n", "1:1"},
      {"/* a profile\n*/\n{\n  \"version\": \"v1\"\n}\n", "1:1"},
      {"{ // a profile\n  \"version\": \"v1\"\n}\n", "1:3"},
      {"{\n  \"version\": \"v1\", // the only one\n  \"sharing\": {}\n}\n", "2:20"},
      {"{\n  \"version\": \"v1\" // the only one\n}\n", "2:19"},
      {"{\n  \"version\": \"v1\", // why?\n  \"sharing\": {}\n}\n", "2:20"},
      {"{\n  // none\n  \"sharing\": {\"mps\": null}\n}\n", "2:3"},
      {"a: b\n---\n{\n  \"version\": \"v1\", // the only one\n  \"sharing\": {}\n}\n", "4:20"},
      {"{\"apiVersion\": \"v1\",\n // it swallows the kind\n \"kind\":\"Node\", \"metadata\": {\"name\": \"a\"}}\n",
       "2:2"},
  };
  for (const auto& [text, at] : table) {
    const LintedDocument last = lint(text).back();
    EXPECT_TRUE(told({last})[0].ends_with(" Profile: error UnsupportedYAML " + at)) << text << told({last})[0];
    EXPECT_TRUE(
        last.diagnostics.at(0).message.starts_with("JSON has no comments; remove the comment that begins here with `/"))
        << text;
  }
}

// Two slashes in a string, or in a word of YAML, are no comment.
TEST(LintSyntaxErrors, SlashesThatBeginNoCommentAreNotBlamed) {
  for (const std::string text :
       {"{\n  \"version\": \"// v1\", \"a\": [\n", "{\n  version: // v1, a: [\n", "{\n  \"url\": http://x, a: [\n"})
    EXPECT_FALSE(first_message(text).empty() || first_message(text).contains("comment")) << first_message(text);
}

}  // namespace
}  // namespace gso::lint_documents_test
