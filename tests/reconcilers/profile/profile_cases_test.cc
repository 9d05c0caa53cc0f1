// The parser on whole documents: our own case files and mutated text.
//
// A case file says in comments at its top what is expected: "# ok", or one line "# error Code line" or
// "# warning Code line" for each diagnostic (infos are free).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/profile/yaml_node.h"
#include "tests/reconcilers/source_files.h"

namespace gso::profile_cases_test {
namespace {

using testing::read_file;
using testing::source_dir;

using Complaint = std::tuple<std::string, std::string, int>;  // Severity, code, line.

std::multiset<Complaint> complaints(const ParsedProfile& parsed) {
  std::multiset<Complaint> out;
  for (const Diagnostic& d : parsed.diagnostics)
    if (d.severity != Diagnostic::Severity::info) out.emplace(to_string(d.severity), d.code, d.at.line);
  return out;
}

std::multiset<Complaint> expected_complaints(const std::string& text) {
  std::multiset<Complaint> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("# ");) {
    std::istringstream words(line.substr(2));
    std::string severity;
    std::string code;
    int at = 0;
    if (words >> severity >> code >> at && (severity == "error" || severity == "warning"))
      out.emplace(severity, code, at);
  }
  return out;
}

std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "tests/reconcilers/testdata/profiles"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(ProfileCases, EveryCaseFileGivesTheDiagnosticsThatItNames) {
  const auto files = case_files();
  ASSERT_GT(files.size(), 50u);
  for (const auto& file : files) {
    const std::string text = read_file(file);
    const ParsedProfile parsed = parse_profile(text);
    EXPECT_EQ(complaints(parsed), expected_complaints(text)) << file.filename() << ": " << parsed.first_error();
    for (const Diagnostic& d : parsed.diagnostics) {
      EXPECT_FALSE(d.message.empty() || d.code.empty()) << file.filename();
      EXPECT_TRUE(d.at.line == 0 || d.at.column > 0) << file.filename();
    }
  }
}

// The normalised form as a document of its own.
std::string document_of(const Profile& profile) {
  auto normalized = normalized_json(profile);
  auto& sharing = normalized["sharing"];
  if (sharing["timeSlicing"].empty()) sharing.erase("timeSlicing");
  return normalized.dump();
}

TEST(ProfileCases, NormalisingTwiceChangesNothing) {
  int compared = 0;
  for (const auto& file : case_files()) {
    const ParsedProfile once = parse_profile(read_file(file));
    if (!once.accepted) continue;
    const ParsedProfile twice = parse_profile(document_of(once.profile));
    ASSERT_TRUE(twice.accepted) << file.filename() << ": " << twice.first_error();
    EXPECT_EQ(normalized_json(twice.profile), normalized_json(once.profile)) << file.filename();
    Profile only_sharing = once.profile;
    only_sharing.settings.clear();
    only_sharing.mig_strategy = "none";
    EXPECT_EQ(revision_of(twice.profile), revision_of(only_sharing)) << file.filename();
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

// Inserts, deletes, replaces and moves pieces of YAML.
std::string mutate(std::string text, std::mt19937& random, const std::vector<std::string>& corpus) {
  using namespace std::string_view_literals;
  static constexpr std::string_view kPieces[] = {
      ":",      ": ",   "- ",           "[",  "]",    "{",  "}",  ",",    "#",         "&a ", "*a",   "!!int ",
      "!x[y] ", "|\n",  ">\n",          "\n", "\r\n", "\t", "  ", "'",    "\"",        "?",   "<<: ", "---\n",
      "...\n",  "\xff", "\xef\xbb\xbf", "\\", ".inf", "0x", "~",  "null", "%YAML 1\n", "\0"sv};
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound == 0 ? 0 : bound - 1)(random);
  };
  for (std::size_t step = 0, steps = 1 + below(4); step < steps; ++step) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(below(9), text.size() - at);
    switch (below(4)) {
      case 0:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.replace(at, length, kPieces[below(std::size(kPieces))]);
        break;
      default: {
        const std::string& other = corpus[below(corpus.size())];
        text.insert(at, other.substr(below(other.size() + 1), below(60)));
      }
    }
  }
  return text;
}

TEST(ProfileCases, MutatedTextNeverCrashesAndIsReadTheSameTwice) {
  std::vector<std::string> corpus;
  for (const auto& file : case_files()) corpus.push_back(read_file(file));
  std::mt19937 random(20240607);
  int accepted = 0;
  constexpr int kRounds = 6000;
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = mutate(corpus[static_cast<std::size_t>(round) % corpus.size()], random, corpus);
    const ParsedProfile parsed = parse_profile(text);
    accepted += parsed.accepted ? 1 : 0;
    ASSERT_TRUE(parsed.accepted || !parsed.valid()) << text;
    ASSERT_EQ(parsed.valid(), parsed.first_error().empty()) << text;
    if (parsed.accepted) {
      const ParsedProfile again = parse_profile(document_of(parsed.profile));
      ASSERT_TRUE(again.accepted) << text;
      ASSERT_EQ(normalized_json(again.profile), normalized_json(parsed.profile)) << text;
    }
    if (round % 10 == 0) {
      ASSERT_FALSE(lint_text("mutated", text, {}).empty());
      ASSERT_FALSE(lint_json(lint_text("mutated", text, {})).empty());
    }
  }
  EXPECT_GT(accepted, kRounds / 20);  // The mutations leave enough standing to reach the deeper half of the parser.
}

TEST(ProfileCases, LimitsAreErrorsWithAPosition) {
  std::string laugh = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'h'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    laugh += std::string(1, c) + ": &" + c + " [*" + before + ",*" + before + ",*" + before + ",*" + before + "]\n";
  }
  const std::tuple<std::string, std::string, int> cases[] = {{"v:\n " + std::string(5000, '['), "TooDeep", 2},
                                                             {std::string((1 << 20) + 1, 'x'), "TooLarge", 1},
                                                             {laugh, "TooManyAliases", 1}};
  for (const auto& [text, code, line] : cases) {
    const ParsedProfile parsed = parse_profile(text);
    ASSERT_EQ(parsed.diagnostics.size(), 1u) << code;
    EXPECT_EQ(parsed.diagnostics[0].code, code);
    EXPECT_GE(parsed.diagnostics[0].at.line, line) << code;
    EXPECT_FALSE(parsed.accepted) << code;
  }
}

// A file is judged as the value of a key is, however odd its beginning.
TEST(ProfileCases, LintOfAFileAndTheParserAgree) {
  for (const std::string text :
       {"{}: v1\n", "{}x\n\n@\n", "[]{}\n", "{} # c\nversion: v1\n", "{}: [\n\a", "# c\n{ }: *x\nsharing: [\n",
        "!!map\n{}: v1\n@", "--- {}: v1\n", "{\n}: v1\n", "{}:v1\n@", "&x\n&x\nsharing:\n", "{}!!str[a\n",
        "{}!!str\"a\"\n", "\xef\xbb\xbf{}: 1\n", "\xef\xbb\xbf\xef\xbb\xbfversion: v1\nsharing: []\n"}) {
    const ParsedProfile parsed = parse_profile(text);
    const auto linted = lint_text("file", text, {});
    EXPECT_EQ(linted[0].valid(), parsed.valid()) << text;
    EXPECT_EQ(linted[0].profile.has_value(), parsed.accepted) << text;
  }
}

// What the plugin's library reads in a way of its own, and no profile has.
TEST(ProfileCases, UnsupportedYamlIsRefusedWhereItIs) {
  const std::string mark = "\xef\xbb\xbf";
  const std::tuple<std::string, Position, std::string> cases[] = {
      {std::string("\xff\xfev\0:\0\n\0", 8), {1, 1}, "UTF-16; save it as UTF-8"},
      {std::string("v\0:\0 \0b\0", 8), {1, 1}, "UTF-16; save it as UTF-8"},
      {std::string("\0v\0:\0 \0b", 8), {1, 1}, "UTF-16; save it as UTF-8"},
      {mark + mark + "version: v1\n", {1, 1}, "byte order mark"},
      {"version: v1\n" + mark + "flags: {}\n", {2, 1}, "byte order mark"},
      {"version: v1\nflags:\n  mpsRoot: a" + mark + "b\n", {3, 13}, "byte order mark"},
      {"version: v1\nx: [a:,b]\n", {2, 6}, "put the whole text in quotes"},
      {"version: v1\nx: [what?]\n", {2, 5}, "put \"what?\" in quotes"},
      {"version: v1\nx: [!a, b]\n", {2, 5}, "a tag inside [] and {}"},
      {"// a profile\n{\"version\": \"v1\"}\n", {1, 1}, "JSON has no comments"},
      {"{\"version\": \"v1\", // the only one\n \"flags\": {}}\n", {1, 19}, "JSON has no comments"}};
  for (const auto& [text, at, says] : cases) {
    SCOPED_TRACE(text);
    const ParsedProfile parsed = parse_profile(text);
    EXPECT_FALSE(parsed.accepted);
    ASSERT_EQ(parsed.diagnostics.size(), 1u);
    EXPECT_EQ(parsed.diagnostics[0].code, "UnsupportedYAML");
    EXPECT_EQ(parsed.diagnostics[0].at, at);
    EXPECT_TRUE(parsed.diagnostics[0].message.contains(says)) << parsed.diagnostics[0].message;
  }
  EXPECT_TRUE(parse_profile(mark + "version: v1\n").valid());
  EXPECT_TRUE(parse_profile("version: v1\n# why?\nflags: {mpsRoot: \"a?\", nvidiaDevRoot: 'b:'}\n").valid());
}

// Of a document that is complete nothing behind it is read but the next token, as upstream reads it.
TEST(ProfileCases, WhatFollowsACompleteDocumentIsIgnoredOrRefused) {
  const std::vector<std::pair<std::string, bool>> cases{
      {"{}:v1", true},  {"{}version: v1", false}, {"{}@", false},    {"{}\"a\n", false},   {"{}? a", false},
      {"{}- a", false}, {"{}: v1", false},        {"[]: v1", false}, {"--- {}: a", false}, {"a: {}: b", false}};
  for (const auto& [text, accepted] : cases) EXPECT_EQ(parse_profile(text).accepted, accepted) << text;
}

TEST(ProfileCases, AFloodOfDiagnosticsIsCutButKeepsTheVerdict) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "unknown" + std::to_string(i) + ": 1\n";
  const ParsedProfile warned = parse_profile(text);
  EXPECT_TRUE(warned.valid());
  EXPECT_LT(warned.diagnostics.size(), 150u);
  EXPECT_EQ(warned.diagnostics.back().code, "MoreNotShown");
  EXPECT_FALSE(parse_profile(text + "version: v2\n").valid());
}

}  // namespace
}  // namespace gso::profile_cases_test
