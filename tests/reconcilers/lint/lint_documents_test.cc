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
    Codes out;
    for (const LintedDocument& document :
         lint("kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\ndata: {'" + key + "': '" +
              "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}'}\n")) {
      const Codes found = codes(document);
      out.insert(out.end(), found.begin(), found.end());
    }
    return out;
  };
  for (const std::string& key : {std::string("a/b"), std::string("a b"), std::string("."), std::string(".."),
                                 std::string("..x"), std::string(254, 'x'), std::string("é")}) {
    EXPECT_EQ(of_key(key), Codes{"KeyRefused"}) << key;
  }
  EXPECT_EQ(of_key("a.b-c_D"), Codes{});
  EXPECT_EQ(of_key(".x"), Codes{"KeyNoLabelValue"}) << "the API server takes it";
  EXPECT_EQ(of_key(std::string(253, 'x')), Codes{"KeyNoLabelValue"});
}

// As for the plugin, and for the value of a ConfigMap's key.
TEST(LintDocuments, AnEmptyDocumentBeforeAProfileIsTheOneThatCounts) {
  const auto documents = lint("---\n---\n" + kGood);
  ASSERT_EQ(documents.size(), 2u);
  ASSERT_TRUE(documents[0].profile && documents[0].valid());
  EXPECT_EQ(documents[0].profile->strategy(), Strategy::none);
  ASSERT_EQ(documents[0].diagnostics.size(), 1u);
  EXPECT_EQ(documents[0].diagnostics[0].code, "FurtherDocumentIgnored");
  // In front of a manifest it is nothing.
  EXPECT_EQ(lint("---\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\n").size(), 1u);
}

TEST(LintDocuments, AnErrorNeverPointsBehindTheEndOfTheText) {
  const auto documents = lint("foo: [");
  ASSERT_EQ(documents.size(), 1u);
  ASSERT_EQ(documents[0].diagnostics.size(), 1u);
  EXPECT_EQ(documents[0].diagnostics[0].at.line, 1);
  EXPECT_EQ(documents[0].diagnostics[0].message.find("line 2"), std::string::npos)
      << documents[0].diagnostics[0].message;
}

// The verdict is the plugin's, and each thing is said once.
TEST(LintDocuments, TextBehindAnEmptyFirstDocumentIsIgnored) {
  for (const auto& [text, line, column] :
       std::vector<std::tuple<std::string, int, int>>{{"---\n---\n@", 3, 1},
                                                      {"---\n--- @", 2, 5},
                                                      {"---\n---\nfoo: [", 3, 7},
                                                      {"---\n# c\n---\n]\n", 4, 1},
                                                      {"---\n---\n  a: b: c", 3, 7}}) {
    SCOPED_TRACE(text);
    const auto documents = lint(text);
    ASSERT_EQ(documents.size(), 1u);
    EXPECT_TRUE(documents[0].valid() && documents[0].profile);
    ASSERT_EQ(codes(documents[0]), Codes{"FurtherTextIgnored"});
    EXPECT_EQ(documents[0].diagnostics[0].at.line, line);
    EXPECT_EQ(documents[0].diagnostics[0].at.column, column);
  }
}

TEST(LintDocuments, WhatFollowsAProfileWithoutASeparatorIsIgnoredText) {
  for (const std::string text : {" version: v1\nsharing:\n  mps: {}\n", "version: v1\n...\nsharing:\n  mps: {}\n",
                                 "---\n version: v1\nsharing:\n  mps: {}\n"}) {
    SCOPED_TRACE(text);
    const auto documents = lint(text);
    ASSERT_EQ(documents.size(), 1u);
    EXPECT_TRUE(documents[0].valid());
    ASSERT_EQ(documents[0].diagnostics.size(), 1u);
    EXPECT_EQ(documents[0].diagnostics[0].code, "FurtherTextIgnored");
  }
}

TEST(LintDocuments, AnEmptyTextIsOneValidProfile) {
  for (const std::string text : {"", "\n \n", "# nothing\n", "---\n", "null\n", "{}"}) {
    const auto documents = lint(text);
    ASSERT_EQ(documents.size(), 1u) << text;
    EXPECT_EQ(documents[0].kind, "Profile");
    EXPECT_EQ(documents[0].source, "f.yaml#0");
    EXPECT_TRUE(documents[0].valid()) << text;
  }
}

TEST(LintDocuments, EveryDocumentOfAFileIsReadAndEmptyOnesAreNot) {
  const auto documents = lint("---\n" + kGood + "---\n---\n# only a comment\n---\nversion: v2\n");
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_TRUE(documents[0].valid());
  EXPECT_EQ(codes(documents[0]), Codes{"FurtherDocumentIgnored"});  // By the plugin.
  EXPECT_EQ(documents[0].diagnostics[0].at.line, 8);
  EXPECT_EQ(codes(documents[1]), Codes{"UnknownVersion"});
  EXPECT_EQ(documents[1].source, "f.yaml#1");
  EXPECT_EQ(documents[1].diagnostics[0].at.line, 8);
}

TEST(LintDocuments, ABrokenDocumentDoesNotHideTheOthers) {
  const auto documents = lint(kGood + "---\nversion: [v1\n---\nversion: v3\n---\na: b: c\n---\n" + kGood);
  ASSERT_EQ(documents.size(), 5u);
  EXPECT_EQ(codes(documents[1]), Codes{"SyntaxError"});
  EXPECT_EQ(codes(documents[2]), Codes{"UnknownVersion"});
  EXPECT_EQ(documents[2].diagnostics[0].at.line, 6);
  EXPECT_TRUE(documents[0].valid());
  EXPECT_EQ(codes(documents[0]), Codes{"FurtherTextIgnored"});
  EXPECT_EQ(codes(documents[3]), Codes{"SyntaxError"});
  EXPECT_EQ(documents[3].diagnostics[0].at.line, 8);
  EXPECT_TRUE(documents[4].valid());
  EXPECT_EQ(documents[4].source, "f.yaml#4");
}

TEST(LintDocuments, EveryKeyOfAConfigMapIsAProfile) {
  const auto documents = lint(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: profiles}\ndata:\n  good: |\n    version: v1\n  bad: |-\n    "
      "version: v1\n    sharing:\n"
      "      timeSlicing: {}\n  empty: \"\"\n  'no-label-': ''\n  number: 4\n");
  ASSERT_EQ(documents.size(), 6u);
  EXPECT_EQ(documents[0].kind, "ConfigMap");
  EXPECT_EQ(codes(documents[0]), Codes{"KeyNoLabelValue"});
  for (const LintedDocument& document : documents) {
    EXPECT_EQ(document.name, "profiles");
    EXPECT_EQ(document.source, "f.yaml#0");
  }
  EXPECT_EQ(documents[1].key, "bad");
  EXPECT_EQ(codes(documents[1]), Codes{"NoResources"});
  EXPECT_EQ(documents[1].diagnostics[0].at.line, 3);  // In the value.
  EXPECT_TRUE(documents[2].valid());
  EXPECT_EQ(documents[5].key, "number");
  EXPECT_EQ(codes(documents[5]), Codes{"WrongType"});
}

TEST(LintDocuments, APolicysKeyIsLookedForInTheConfigMapsThatStandBeside) {
  const std::string map =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: 'sharing: {}', b: ''}\n---\n";
  const auto found = [&](const std::string& text) {
    std::vector<ClusterObject> objects;
    std::vector<LintedDocument> documents = lint_text("f.yaml", text, {}, &objects);
    lint_cluster(objects, documents);
    std::vector<std::string> out;
    for (const LintedDocument& document : documents)
      for (const Diagnostic& d : document.diagnostics)
        out.push_back(fmt::format("{}:{}:{} {}", document.kind, d.at.line, d.at.column, d.code));
    return out;
  };
  const auto policy = [](const std::string& key) {
    return "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\nspec:\n  profile:\n    "
           "configMapKey: " +
           key + "\n";
  };
  EXPECT_EQ(found(map + policy("b")), std::vector<std::string>{});
  EXPECT_EQ(found(map + policy("c")), std::vector<std::string>{"SharingPolicy:11:19 ConfigInvalid"});
  EXPECT_EQ(found(policy("c")), std::vector<std::string>{});
  // A ConfigMap of something else says nothing about it.
  EXPECT_EQ(found("kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: "
                  "{ca: x}}\n---\n" +
                  policy("c")),
            std::vector<std::string>{});
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

TEST(LintDocuments, ANodeWhoseGpusDraOffersTooIsNamedWhereItStands) {
  const std::string text =
      "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\nstatus: {allocatable: {nvidia.com/gpu: '8'}}\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.nvidia.com}\nspec: "
      "{extendedResourceName: nvidia.com/gpu}\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: "
      "{name: s}\nspec: {driver: gpu.nvidia.com, nodeName: n1, pool: {name: n1}, devices: [{name: gpu-0}]}\n";
  std::vector<ClusterObject> objects;
  std::vector<LintedDocument> documents = lint_text("f.yaml", text, {}, &objects);
  lint_cluster(objects, documents);
  ASSERT_EQ(documents.size(), 3u);
  ASSERT_EQ(codes(documents[0], true), Codes{"DRADoubleOffer"});
  EXPECT_EQ(documents[0].diagnostics[0].at.line, 4);
  EXPECT_EQ(codes(documents[1], true), Codes{});
  EXPECT_EQ(codes(documents[2], true), Codes{});
}

// What is said of the DeviceClass and of the Node.
std::pair<Codes, Codes> double_offers(const std::string& resource, const std::string& slice, const std::string& node) {
  const std::string text =
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.nvidia.com}\nspec: "
      "{extendedResourceName: " +
      resource + "}\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: " +
      "gpu.nvidia.com, " + slice + ", pool: {name: n1}, devices: [{name: gpu-0}]}\n" + node;
  std::vector<ClusterObject> objects;
  std::vector<LintedDocument> documents = lint_text("f.yaml", text, {}, &objects);
  lint_cluster(objects, documents);
  return {codes(documents[0]), documents.size() > 2 ? codes(documents[2]) : Codes{}};
}

TEST(LintDocuments, ADoubleOfferIsSeenByWhatTheNodeServes) {
  const auto node = [](const std::string& resource) {
    return "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {" + resource +
           ": '8'}, allocatable: {" + resource + ": '8'}}\n";
  };
  const Codes offered{"DRADoubleOffer"};
  const std::string on_n1 = "nodeName: n1";
  EXPECT_EQ(double_offers("nvidia.com/gpu", on_n1, ""), std::pair(offered, Codes{})) << "without the Node";
  EXPECT_EQ(double_offers("example.com/gpu", on_n1, ""), std::pair(Codes{}, Codes{}));
  EXPECT_EQ(double_offers("nvidia.com/gpu", on_n1, node("nvidia.com/gpu")), std::pair(Codes{}, offered));
  EXPECT_EQ(double_offers("nvidia.com/gpu", "allNodes: true", node("nvidia.com/gpu")), std::pair(Codes{}, offered));
  EXPECT_EQ(double_offers("nvidia.com/gpu.shared", on_n1, node("nvidia.com/gpu.shared")), std::pair(Codes{}, offered));
  EXPECT_EQ(double_offers("nvidia.com/gpu.shared", on_n1, node("nvidia.com/gpu")), std::pair(Codes{}, Codes{}));
  EXPECT_EQ(double_offers("nvidia.com/mig-1g.5gb", on_n1, node("nvidia.com/mig-1g.5gb")), std::pair(Codes{}, offered));
}

TEST(LintDocuments, TheOperatorsOwnRecordIsNotReadAsAProfile) {
  const auto documents = lint(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gpu-sharing-operator-state}\ndata:\n  baseline.json: "
      "'{\"version\": \"v1\", \"sharing\": {\"x\": 1}}'\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
      "gpu-sharing-operator-state-0}\ndata:\n  nodes.json: '{\"version\": \"v1\"}'\n");
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(codes(documents[0], true), Codes{"NotChecked"});
  EXPECT_EQ(codes(documents[1], true), Codes{"NotChecked"});
}

// The kubelet makes files of binaryData's keys too.
TEST(LintDocuments, AKeyOfBinaryDataIsAProfile) {
  const auto documents = lint(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: profiles}\nbinaryData:\n  bad: dmVyc2lvbjogdjIK\n  good: |\n"
      "    dmVyc2lv\n    bjogdjEK\n  odd: '%'\n  number: 4\n");
  ASSERT_EQ(documents.size(), 4u);
  EXPECT_EQ(documents[0].key, "bad");
  EXPECT_EQ(codes(documents[0]), Codes{"UnknownVersion"});
  EXPECT_EQ(documents[1].key, "good");
  EXPECT_TRUE(documents[1].valid());
  ASSERT_EQ(codes(documents[2]), Codes{"WrongType"});
  EXPECT_EQ(documents[2].diagnostics[0].path, "binaryData.number");
  ASSERT_EQ(codes(documents[3]), Codes{"BinaryDataInvalid"});
  EXPECT_EQ(documents[3].diagnostics[0].at.line, 9);
  // Of a List, where it looks like a profile; and twice is once too often.
  const auto listed = lint(
      "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data: {k: "
      "''}\n"
      "  binaryData: {k: c2hhcmluZzoge21wczoge319Cg==, '-': ''}\n");
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
    const auto documents = lint(head + value + "\"}}\n");
    ASSERT_EQ(documents.size(), 1u) << value;
    EXPECT_EQ(codes(lint("\xef\xbb\xbf" + head + value + "\"}}\n")[0]), expected) << value;
    EXPECT_EQ(documents[0].key, "a") << value;
    EXPECT_EQ(codes(documents[0]), expected) << value;
  }
  // A profile in JSON is read as the plugin reads it: as YAML, which has no surrogates.
  EXPECT_EQ(codes(lint(R"({"version": "\ud83d\ude00"})")[0]), Codes{"SyntaxError"});
}

TEST(LintDocuments, OfALListOnlyConfigMapsWithProfilesAreChecked) {
  const auto documents = lint(
      "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}, "
      "data: {ca.crt: "
      "'-----BEGIN CERTIFICATE-----'}}\n"
      "- kind: ConfigMap\n  apiVersion: v1\n  metadata: {name: mps-config}\n  data:\n    any: |\n      sharing: {mps: "
      "{resources: []}}\n"
      "- {kind: Service, apiVersion: v1, metadata: {name: d}}\n");
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_TRUE(documents[0].valid());
  EXPECT_EQ(codes(documents[0]), Codes{});
  EXPECT_EQ(documents[1].key, "any");
  EXPECT_EQ(documents[1].source, "f.yaml#1");
  EXPECT_EQ(codes(documents[1]), Codes{"NoResources"});
  EXPECT_EQ(codes(documents[2], true), Codes{"NotChecked"});
}

TEST(LintDocuments, JsonHasTheContractsFieldsInTheirOrder) {
  const std::string text =
      lint_json(lint("version: v1\nsharing:\n  mps:\n    renameByDefault: true\n    resources:\n    - name: gpu\n      "
                     "replicas: 4\n"));
  EXPECT_EQ(text, R"({
 "documents": [
  {
   "source": "f.yaml#0",
   "kind": "Profile",
   "name": "",
   "key": "",
   "valid": true,
   "diagnostics": [],
   "normalized": {
    "sharing": {
     "timeSlicing": {},
     "mps": {
      "renameByDefault": true,
      "failRequestsGreaterThanOne": true,
      "resources": [
       {
        "name": "nvidia.com/gpu",
        "rename": "nvidia.com/gpu.shared",
        "devices": "all",
        "replicas": 4
       }
      ]
     }
    }
   }
  }
 ]
}
)");
  const auto broken = nlohmann::json::parse(lint_json(lint("version: v4\n")))["documents"][0];
  EXPECT_EQ(broken["valid"], false);
  EXPECT_FALSE(broken.contains("normalized"));
  EXPECT_EQ(broken["diagnostics"][0]["line"], 1);
  EXPECT_EQ(broken["diagnostics"][0]["column"], 10);
  EXPECT_EQ(broken["diagnostics"][0]["path"], "version");
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
    return text + "#" + std::string(bytes - text.size() - 2, 'x') + "\n";
  };
  const auto fits = lint(filled(kGood, kMost));
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_TRUE(fits[0].valid());
  EXPECT_TRUE(fits[0].profile.has_value());
  const auto exceeds = lint(filled(kGood, kMost + 1));
  ASSERT_EQ(exceeds.size(), 1u);
  EXPECT_EQ(codes(exceeds[0]), Codes{"TooLarge"});
  EXPECT_EQ(exceeds[0].diagnostics.back().message, "the text has 1048577 bytes; at most 1048576 are allowed");
  EXPECT_FALSE(exceeds[0].profile.has_value());
  const std::string pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n";
  for (const LintedDocument& document : lint(filled(pod, 2 * kMost))) EXPECT_TRUE(document.valid()) << document.kind;
}

}  // namespace
}  // namespace gso::lint_documents_test
