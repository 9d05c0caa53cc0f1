// JSON from the cluster is read by json_access.h, which never throws; nlohmann's own accessors are banned where such
// JSON is read.
#include "reconcilers/model/json_access.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

namespace gso::test::json_access_test {
namespace {

using Json = nlohmann::json;

TEST(JsonAccess, AMissingMemberOrOneOfAnotherTypeReadsAsEmpty) {
  const Json odd[] = {Json(), Json(5), Json("x"), Json::array({1}), {{"a", 5}}, {{"a", nullptr}}, {{"b", "y"}}};
  for (const Json& json : odd) {
    EXPECT_EQ(text_at(json, "a"), "");
    EXPECT_EQ(text_at(json, "a", "else"), "else");
    EXPECT_FALSE(flag_at(json, "a"));
    EXPECT_TRUE(object_at(json, "a").empty());
    EXPECT_TRUE(list_at(json, "a").empty());
  }
  EXPECT_EQ(number_at(Json{{"a", "5"}}, "a"), 0);
}

TEST(JsonAccess, AMemberOfTheRightTypeIsReadAsItIs) {
  const Json json{{"text", "t"}, {"number", 7}, {"flag", true}, {"object", {{"x", 1}}}, {"list", {1, 2}}};
  EXPECT_EQ(text_at(json, "text"), "t");
  EXPECT_EQ(number_at(json, "number"), 7);
  EXPECT_TRUE(flag_at(json, "flag"));
  EXPECT_EQ(object_at(json, "object").size(), 1U);
  EXPECT_EQ(list_at(json, "list").size(), 2U);
}

TEST(JsonAccess, AccessorsThatThrowAreNotUsed) {
  // Not JSON: a map by constant names, and the value of a metric.
  const std::set<std::string> others = {"reconcilers/profile/profile_checks.cc",
                                        "controller/serving/process_metrics.cc"};
  const std::regex banned(R"re((\.|->)(value|at)\(\s*(")|_json_pointer)re");
  const char* root = std::getenv("GSO_SOURCE_DIR");
  const std::filesystem::path source(root != nullptr ? root : ".");
  std::size_t read = 0;
  for (const char* room : {"reconcilers", "controller"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source / room)) {
      const std::string name = std::filesystem::relative(entry.path(), source).string();
      if (!(name.ends_with(".cc") || name.ends_with(".h")) || others.contains(name)) continue;
      ++read;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);)
        EXPECT_FALSE(std::regex_search(line, banned)) << name << ": use reconcilers/model/json_access.h: " << line;
    }
  }
  EXPECT_GT(read, 100U) << "GSO_SOURCE_DIR names the source";
}

}  // namespace
}  // namespace gso::test::json_access_test
