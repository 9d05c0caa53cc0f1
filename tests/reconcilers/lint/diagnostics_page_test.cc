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
const char* const kOtherWords[] = {
    "Always",   "Application", "Approve",      "ClusterFirst", "Config",       "ConfigMap",  "CronJob", "DaemonSet",
    "Default",  "Deployment",  "DeviceClass",  "DoesNotExist", "Enforce",      "Equal",      "Evict",   "Exists",
    "False",    "File",        "GPUs",         "HelmRelease",  "IfNotPresent", "Interrupt",  "Job",     "Karpenter",
    "Kind",     "List",        "MPSSidecar",   "Never",        "NoExecute",    "NoSchedule", "Node",    "NodeByNode",
    "None",     "NotIn",       "Null",         "Observe",      "Off",          "OnFailure",  "Path",    "Pause",
    "Pod",      "PodTemplate", "Policy",       "Prefix",       "Profile",      "ReplicaSet", "Retain",  "Revert",
    "Rollback", "Root",        "RuntimeClass", "SGLang",       "StatefulSet",  "Strategy",   "True",    "WaitForIdle",
    "Yes"};
const char* const kLongOtherWords[] = {
    "ClusterFirstWithHostNet", "ClusterPolicy",         "ControllerRevision", "DaemonSetRestart", "DirectoryOrCreate",
    "PreferNoSchedule",        "ReplicationController", "ResourceSlice",      "SharingPolicy",    "SharingRollout"};

Codes codes_in_the_code() {
  static const std::regex kLiteral("\"([A-Z][A-Za-z]+[a-z][A-Za-z]*)\"");
  Codes out;
  for (const char* folder : {"reconcilers/checks", "reconcilers/profile", "reconcilers/lint"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / folder))
      out.merge(matches(read_file(entry.path()), kLiteral));
  }
  out.merge(matches(read_file(source_dir() / "reconcilers/kai/pod_annotations.cc"), kLiteral));
  for (const char* word : kOtherWords) out.erase(word);
  for (const char* word : kLongOtherWords) out.erase(word);
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
  for (const std::string_view code :  // The last three are what partitioning says of pods as well.
       {kSelectorOnSharingLabel, kSelectorOnGpuCount, kSharedSuffixIgnored, kPartitionedByNos, kSeveralSlices,
        kSliceOfAnotherUser, kSliceWithoutHostIPC})
    used.emplace(code);
  ASSERT_GT(used.size(), 80u);
  for (const std::string& code : used)
    EXPECT_NE(find_code(code), nullptr) << code << " is not listed (or is no code: then it belongs to kOtherWords)";
  for (const std::string& code : listed) EXPECT_TRUE(used.contains(code)) << code << " is listed, and nothing says it";
}

}  // namespace
}  // namespace gso::diagnostics_page_test
