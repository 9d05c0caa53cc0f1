// Single values: how YAML 1.1 and Go read them, and what a misspelt name means.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/profile.h"

namespace gso::profile_values_test {
namespace {

std::optional<std::int64_t> replicas(const std::string& text) {
  const ParsedProfile parsed = parse_profile(
      fmt::format("sharing:\n  timeSlicing:\n    resources:\n    - name: gpu\n      replicas: {}\n", text));
  return parsed.accepted ? std::optional(parsed.profile.plugin_replicas("nvidia.com/gpu")) : std::nullopt;
}

TEST(ProfileValues, ReplicasTakeEveryFormThatUpstreamTakes) {
  const std::pair<std::int64_t, std::vector<const char*>> accepted[] = {
      {2, {"2", "20e-1"}},
      {3, {"0B11"}},
      {4, {"+4", "4.0", "4."}},
      {5, {"0b101", "!!int \"5\"", "5 # five", "&five 5", "!!float 5"}},
      {7, {"0_7"}},
      {8, {"010", "08"}},
      {10, {"1e1", "1__0"}},
      {15, {"0o17", "0O17"}},
      {31, {"0x1F", "0X_1f"}},
      {1000, {"1_000"}},
      {1'000'000'000'000'000'000, {"1e18"}},
      {INT64_MAX, {"9223372036854775807"}}};
  for (const auto& [value, texts] : accepted)
    for (const char* text : texts) EXPECT_EQ(replicas(text), value) << text;
}

TEST(ProfileValues, ReplicasRefuseWhatUpstreamRefuses) {
  const char* const refused[] = {"1",          "0",     "-0",   "-4",         "-0x10",   "",        "~",   "null",
                                 "4.5",        "\"4\"", "'4'",  "true",       "yes",     "four",    "[4]", "{a: 4}",
                                 ".inf",       "-.INF", ".nan", "1e-1",       "1e19",    "1e400",   "0x",  "0xg",
                                 "0b2",        "0o8",   "4:30", "2001-01-01", "!!str 4", "!mine 4", "! 4", "!!int 4.0",
                                 "!!int four", "_4",    "4,0",  "1 000"};
  for (const char* text : refused) EXPECT_EQ(replicas(text), std::nullopt) << text;
  for (const char* text : {"9223372036854775808", "18446744073709551615"})
    EXPECT_EQ(replicas(text), std::nullopt) << text;
}

TEST(ProfileValues, BooleansAreThoseOfYaml11) {
  const auto renamed = [](const std::string& text) -> std::optional<bool> {
    const ParsedProfile parsed = parse_profile(fmt::format(
        "sharing: {{timeSlicing: {{renameByDefault: {}, resources: [{{name: gpu, replicas: 2}}]}}}}", text));
    return parsed.accepted ? std::optional(parsed.profile.time_slicing->rename_by_default) : std::nullopt;
  };
  for (const std::string text :
       {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y", "!!bool \"on\""}) {
    EXPECT_EQ(renamed(text), true) << text;
  }
  for (const std::string text :
       {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N", "null", "~", "", "NULL"}) {
    EXPECT_EQ(renamed(text), false) << text;
  }
  for (const std::string text : {"tRue", "yEs", "\"true\"", "1", "0", "maybe", "[]", "!!bool maybe"})
    EXPECT_EQ(renamed(text), std::nullopt) << text;
}

TEST(ProfileValues, FailRequestsIsAbsentWhenNullOrUnset) {
  const auto fail = [](const std::string& line) {
    return parse_profile(fmt::format("sharing:\n  mps:\n    {}\n    resources: [{{name: gpu, replicas: 2}}]\n", line))
        .profile.mps->fail_requests_greater_than_one;
  };
  EXPECT_EQ(fail("# nothing"), std::nullopt);
  EXPECT_EQ(fail("failRequestsGreaterThanOne:"), std::nullopt);
  EXPECT_EQ(fail("failRequestsGreaterThanOne: no"), false);
  EXPECT_EQ(fail("failRequestsGreaterThanOne: yes"), true);
}

TEST(ProfileValues, GoIntegersKnowBasesSignsAndLimits) {
  EXPECT_EQ(parse_go_int("-9223372036854775808", 10), INT64_MIN);
  EXPECT_EQ(parse_go_int("0", 0), 0);
  for (const char* text : {"-9223372036854775809", "9223372036854775808", "1_0"})
    EXPECT_EQ(parse_go_int(text, 10), std::nullopt) << text;
  for (const char* text : {"", "-", "+-4"}) EXPECT_EQ(parse_go_int(text, 0), std::nullopt) << text;
  EXPECT_EQ(parse_go_uint("18446744073709551615", 10), UINT64_MAX);
  for (const char* text : {"18446744073709551616", "+4"}) EXPECT_EQ(parse_go_uint(text, 10), std::nullopt) << text;
}

TEST(ProfileValues, GoFloatsAreReadAsStrconvReadsThem) {
  EXPECT_EQ(parse_go_float(".5"), 0.5);
  EXPECT_EQ(parse_go_float("5."), 5);
  EXPECT_EQ(parse_go_float("0x1p-1"), 0.5);
  EXPECT_EQ(parse_go_float("0x1.8p1"), 3);
  EXPECT_EQ(parse_go_float("1e-400"), 0);
  EXPECT_EQ(parse_go_float("-1e-400"), 0);
  EXPECT_EQ(parse_go_float("Infinity"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_go_float("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*parse_go_float("nAn")));
  for (const std::string text : {"",    ".",    "e5", "1e", "1e+", "0x1",  "0x1.8", "1e400", "+nan",   "infinit",
                                 "0,5", "0.5f", " 1", "1 ", "1_0", "_1.5", "+-1",   "-nan",  "nan(1)", "0xinf"}) {
    EXPECT_EQ(parse_go_float(text), std::nullopt) << text;
  }
}

TEST(ProfileValues, NumbersAreWrittenAsJsonNeedsThem) {
  const std::pair<double, const char*> cases[] = {{4, "4"},
                                                  {-0.0, "-0"},
                                                  {0.1, "0.1"},
                                                  {4.5, "4.5"},
                                                  {1e18, "1000000000000000000"},
                                                  {9223372036854775808.0, "9223372036854775808"},
                                                  {1e20, "100000000000000000000"},
                                                  {1e21, "1e+21"},
                                                  {1.5e300, "1.5e+300"},
                                                  {1e-6, "0.000001"},
                                                  {1e-7, "1e-07"},
                                                  {123456.789, "123456.789"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(json_number(value), text);
}

TEST(ProfileValues, UuidsAreValidatedAsUpstreamDoes) {
  for (const char* yes : {"0bd2a5a5-3b4f-4f9e-9d1c-7d5f0e3a1b2c", "0BD2A5A53B4F4F9E9D1C7D5F0E3A1B2C",
                          "URN:uuid:0bd2a5a5-3b4f-4f9e-9d1c-7d5f0e3a1b2c", "{0bd2a5a5-3b4f-4f9e-9d1c-7d5f0e3a1b2c}"})
    EXPECT_TRUE(is_uuid(yes)) << yes;
  for (const char* no : {"0bd2a5a5-3b4f-4f9e-9d1c-7d5f0e3a1b2", "0bd2a5a5+3b4f-4f9e-9d1c-7d5f0e3a1b2c"})
    EXPECT_FALSE(is_uuid(no)) << no;
}

TEST(ProfileValues, KeysFoldAsEncodingJsonFoldsThem) {
  EXPECT_TRUE(equal_fold("SHARING", "sharing"));
  EXPECT_FALSE(equal_fold("sharin", "sharing"));
  EXPECT_FALSE(equal_fold("sharings", "sharing"));
}

TEST(ProfileValues, AMisspeltResourceIsAnsweredWithTheOneThatIsMeant) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"nvidia.com/gpus", "so this entry has no effect; did you mean \"nvidia.com/gpu\"?"},
      {"nvidia.com/gpu-shared", "so this entry has no effect; did you mean \"nvidia.com/gpu\"?"},
      {"nvidia.com/vgpu",
       "so this entry has no effect: the plugin knows nvidia.com/gpu and, under migStrategy mixed, "
       "nvidia.com/mig-<profile>"}};
  for (const auto& [name, advice] : cases) {
    const ParsedProfile parsed =
        parse_profile(fmt::format("sharing: {{timeSlicing: {{resources: [{{name: {}, replicas: 4}}]}}}}\n", name));
    ASSERT_EQ(parsed.diagnostics.size(), 1u) << name;
    EXPECT_EQ(parsed.diagnostics[0].code, "NameMatchesNothing");
    EXPECT_TRUE(parsed.diagnostics[0].message.ends_with(advice)) << parsed.diagnostics[0].message;
  }
}

// The operator, audit and explain print errors alone, and not lint's warning about the field that is ignored.
TEST(ProfileValues, TheErrorForAMissingFieldNamesItsMisspelling) {
  const std::string replicas = "an entry needs \"replicas\", an integer of 2 or more";
  const struct {
    std::string section, code, message;
  } cases[] = {
      {"resources: [{name: nvidia.com/gpu, replica: 4}]", "ReplicasMissing",
       replicas + "; write \"replicas\" for \"replica\""},
      {"resources: [{name: nvidia.com/gpu, Replicas: 4}]", "ReplicasMissing",
       replicas + "; write \"replicas\" for \"Replicas\""},
      {"resources: [{name: nvidia.com/gpu, count: 4}]", "ReplicasMissing", replicas},
      {"resources: [{nmae: nvidia.com/gpu, replicas: 4}]", "NameMissing",
       "an entry needs a \"name\", for example nvidia.com/gpu; write \"name\" for \"nmae\""},
      {"resource: [{name: nvidia.com/gpu, replicas: 4}]", "NoResources",
       "at least one resource is required; write \"resources\" for \"resource\""},
      {"resources: []", "NoResources",
       "at least one resource is required, for example {name: nvidia.com/gpu, replicas: 4}; to disable sharing, "
       "remove the whole section"}};
  for (const auto& [section, code, message] : cases) {
    SCOPED_TRACE(section);
    const ParsedProfile parsed = parse_profile(fmt::format("sharing: {{timeSlicing: {{{}}}}}\n", section));
    const auto found = std::ranges::find(parsed.diagnostics, code, &Diagnostic::code);
    ASSERT_NE(found, parsed.diagnostics.end());
    EXPECT_EQ(found->message, message);
  }
}

TEST(ProfileValues, MisspeltFieldsGetTheNearestOrTheRightPlace) {
  const std::vector<std::pair<std::string, std::string>> cases{{"timeSlices", "did you mean \"timeSlicing\"?"},
                                                               {"time-slicing", "did you mean \"timeSlicing\"?"},
                                                               {"msp", "did you mean \"mps\"?"},
                                                               {"replicas", "it belongs under an entry of"},
                                                               {"resources", "it belongs under sharing.timeSlicing or"},
                                                               {"strategy", "the strategy is the name of a section"},
                                                               {"maxClients", "known fields: timeSlicing, mps"}};
  for (const auto& [key, advice] : cases) {
    EXPECT_TRUE(field_advice(key, kSharingFields).starts_with(advice))
        << key << ": " << field_advice(key, kSharingFields);
  }
}

// --- How far two words are apart, as far as advice needs to know.

TEST(Edits, AreCountedAlikeInFullAndUpToABound) {
  std::mt19937 random(7);  // NOLINT: the same words in every run.
  const auto word = [&random] {
    std::string out;
    for (auto letters = random() % 9; letters > 0; --letters) out += "abAB-_"[random() % 6];
    return out;
  };
  for (int i = 0; i < 20000; ++i) {
    const std::string left = word();
    const std::string right = word();
    const std::size_t distance = edit_distance(left, right);
    for (std::size_t most = 0; most < 5; ++most)
      ASSERT_EQ(within_edits(left, right, most), distance <= most) << left << " " << right << " " << most;
  }
}

TEST(Edits, OfLongWordsAndOfNoneAreCountedToo) {
  const std::string longest(200, 'x');
  EXPECT_TRUE(within_edits(longest, longest + "y", 0)) << "only the first 64 characters count";
  EXPECT_FALSE(within_edits(longest, "", 63));
  EXPECT_TRUE(within_edits("", "", 0));
  EXPECT_TRUE(within_edits("gpu.fraction", "gpu-fraction", 0, "-_."));
  EXPECT_FALSE(within_edits("gpu.fraction", "gpu-fraction", 0));
}

// --- Which resource a misspelt name means.

TEST(ResourceName, AMisspeltNameMeansTheResourceThatAPluginOffers) {
  for (const char* gpu :
       {"nvidia.com/gpus", "nvidia.com/GPU", "nvida.com/gpu", "nvidia.con/gpu", "nvidia/gpu", "NVIDIA/gpus"})
    EXPECT_EQ(meant_resource(gpu), "nvidia.com/gpu") << gpu;
  for (const char* shared : {"nvidia.com/gpu-shared", "nvidia.com/gpu.share", "nvidia.com/gpus.shared"})
    EXPECT_EQ(meant_resource(shared), "nvidia.com/gpu.shared") << shared;
  for (const char* right : {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/gpu-10gb"})
    EXPECT_EQ(meant_resource(right), "") << right;
  // Of other plugins: vGPU and passthrough of KubeVirt, HAMi's memory and cores.
  for (const char* other : {"nvidia.com/vgpu", "nvidia.com/pgpu", "nvidia.com/gpumem", "nvidia.com/gpucores",
                            "amd.com/gpu", "nvidia/vgpu", "gpu.intel.com/i915", "cpu"})
    EXPECT_EQ(meant_resource(other), "") << other;
}

}  // namespace
}  // namespace gso::profile_values_test
