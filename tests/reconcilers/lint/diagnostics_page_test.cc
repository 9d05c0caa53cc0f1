// The catalogue, from which docs/codes.md is generated, has the codes that are in the code, and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "reconcilers/checks/catalogue.h"
#include "reconcilers/checks/check.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/source_files.h"

namespace gso::diagnostics_page_test {
namespace {

using testing::read_file;
using testing::source_dir;
using Codes = std::set<std::string>;

Codes matches(const std::string& text, const std::regex& pattern) {
  Codes out;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) out.insert((*at)[1]);
  return out;
}

// Words in CamelCase that are no codes: kinds, and values of fields.
const Codes& other_words() {
  static const Codes kWords{"Approve",
                            "ClusterPolicy",
                            "ConfigMap",
                            "ControllerRevision",
                            "DaemonSet",
                            "DaemonSetRestart",
                            "DeviceClass",
                            "DirectoryOrCreate",
                            "ResourceSlice",
                            "Enforce",
                            "Evict",
                            "False",
                            "File",
                            "GPUs",
                            "Interrupt",
                            "Karpenter",
                            "Kind",
                            "List",
                            "MPSSidecar",
                            "Node",
                            "NodeByNode",
                            "Null",
                            "Observe",
                            "Off",
                            "Path",
                            "Pause",
                            "Pod",
                            "Policy",
                            "Prefix",
                            "Profile",
                            "Retain",
                            "Revert",
                            "Rollback",
                            "Root",
                            "SharingPolicy",
                            "True",
                            "WaitForIdle",
                            "Yes",
                            "Strategy",
                            "Config",
                            "RuntimeClass",
                            "NoExecute",
                            "Deployment",
                            "PodTemplate",
                            "SGLang",
                            "Always",
                            "Never",
                            "OnFailure",
                            "IfNotPresent",
                            "ClusterFirst",
                            "ClusterFirstWithHostNet",
                            "Default",
                            "None",
                            "Equal",
                            "NoSchedule",
                            "PreferNoSchedule",
                            "NotIn",
                            "Exists",
                            "DoesNotExist",
                            "Job",
                            "CronJob",
                            "ReplicaSet",
                            "StatefulSet",
                            "SharingRollout",
                            "HelmRelease",
                            "Application",
                            "ReplicationController"};
  return kWords;
}

Codes codes_in_the_code() {
  static const std::regex kLiteral("\"([A-Z][A-Za-z]+[a-z][A-Za-z]*)\"");
  Codes out;
  for (const char* folder : {"reconcilers/checks", "reconcilers/profile", "reconcilers/lint"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / folder)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".cc") || name.ends_with(".h")) out.merge(matches(read_file(entry.path()), kLiteral));
    }
  }
  out.merge(matches(read_file(source_dir() / "reconcilers/kai/pod_annotations.cc"), kLiteral));
  for (const std::string& word : other_words()) out.erase(word);
  return out;
}

TEST(Catalogue, ListsEveryCodeAndNoOther) {
  std::map<CodeSection::Kind, Codes> listed_as;
  for (const CodeSection& section : code_catalogue()) {
    for (const CodeRow& row : section.rows) {
      EXPECT_FALSE(row.meaning.empty() || row.remedy.empty()) << row.codes.front();
      EXPECT_EQ(row.seen.empty(), section.kind != CodeSection::Kind::reported) << row.codes.front();
      for (const std::string_view code : row.names())
        EXPECT_TRUE(listed_as[section.kind].emplace(code).second) << code << " twice";
    }
  }
  for (const std::string& code : listed_as[CodeSection::Kind::blocks])
    EXPECT_FALSE(listed_as[CodeSection::Kind::checked].contains(code)) << code << " has two meanings";
  Codes& listed = listed_as[CodeSection::Kind::checked];
  Codes used = codes_in_the_code();
  for (const Check& check : checks()) used.emplace(check.code);  // Some are named by a constant.
  used.emplace(kSelectorOnSharingLabel);
  used.emplace(kSelectorOnGpuCount);
  used.emplace(kSharedSuffixIgnored);
  used.emplace(kPartitionedByNos);
  used.emplace(kSeveralSlices);  // What partitioning says of pods as well.
  used.emplace(kSliceOfAnotherUser);
  used.emplace(kSliceWithoutHostIPC);
  ASSERT_GT(used.size(), 80u);
  for (const std::string& code : used)
    EXPECT_NE(find_code(code), nullptr) << code << " is not listed (or is no code: then it belongs to other_words)";
  for (const std::string& code : listed) EXPECT_TRUE(used.contains(code)) << code << " is listed, and nothing says it";
}

}  // namespace
}  // namespace gso::diagnostics_page_test
