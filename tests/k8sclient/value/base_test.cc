// The base values: times, durations, string maps, interned strings, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/interned.h"
#include "k8sclient/value/object.h"
#include "k8sclient/value/time.h"

namespace k8s::base_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(Uid, IsTheTextItWasMadeOfAndTakesNoPlaceInThePoolWhenItIsAUuid) {
  const std::size_t pooled = Interned::pool_bytes();
  const std::string uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
  const Uid known = uuid;
  EXPECT_EQ(known.str(), uuid);
  EXPECT_EQ(known, uuid);
  EXPECT_FALSE(known.empty());
  EXPECT_EQ(Interned::pool_bytes(), pooled);
  EXPECT_NE(known, Uid("1f8fad5b-d9cb-469f-a165-70867728950e"));
  for (const std::string other : {"", "uid-1", "00000000-0000-0000-0000-000000000000",
                                  "0F8FAD5B-D9CB-469F-A165-70867728950E", "0f8fad5bd9cb469fa16570867728950e",
                                  "0f8fad5b-d9cb-469f-a165-70867728950g", "0f8fad5b-d9cb-469fa-165-70867728950e"}) {
    EXPECT_EQ(Uid(other).str(), other);
    EXPECT_EQ(Uid(other).empty(), other.empty()) << other;
    EXPECT_NE(Uid(other), known) << other;
  }
}

TEST(HttpDate, IsReadAsServersWriteItAndNothingElseIs) {
  const auto time = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT");
  ASSERT_TRUE(time);
  EXPECT_EQ(format_time(*time), "1994-11-06T08:49:37Z");
  for (const char* text : {"", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z",
                           "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT",
                           "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 28:49:37 GMT"})
    EXPECT_FALSE(parse_http_date(text)) << text;
}

TEST(Rfc3339, reads_what_kubernetes_writes_and_every_offset) {
  const struct {
    const char* text;
    const char* canonical;
  } cases[] = {
      {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"},
      {"2026-01-02t03:04:05z", "2026-01-02T03:04:05.000000Z"},
      {"2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123000Z"},
      {"2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500000Z"},
      {"2026-01-02T03:04:05+02:30", "2026-01-02T00:34:05.000000Z"},
      {"2026-01-01T00:00:00-01:00", "2026-01-01T01:00:00.000000Z"},
      {"2024-02-29T23:59:60Z", "2024-03-01T00:00:00.000000Z"},
      {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
  };
  for (const auto& c : cases) {
    const auto time = parse_rfc3339(c.text);
    ASSERT_TRUE(time) << c.text;
    EXPECT_EQ(format_micro_time(*time), c.canonical) << c.text;
  }
}

TEST(Rfc3339, refuses_what_is_not_a_time) {
  for (const char* text :
       {"", "2026", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "2026-02-29T03:04:05Z",
        "2026-01-02T24:04:05Z", "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z", "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05Zx", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05+0200", "2026-01-02T03:04:05+24:00",
        "+026-01-02T03:04:05Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

TEST(Rfc3339, writes_whole_seconds_for_time_and_six_digits_for_micro_time) {
  const WallTime time = *parse_rfc3339("2026-01-02T03:04:05.678Z");
  EXPECT_EQ(format_time(time), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_micro_time(time), "2026-01-02T03:04:05.678000Z");
  EXPECT_EQ(parse_rfc3339(format_micro_time(time)), time);
}

TEST(GoDuration, reads_and_writes_as_go_does) {
  const struct {
    const char* text;
    Duration value;
    const char* canonical;
  } cases[] = {
      {"0", 0s, "0s"},
      {"10s", 10s, "10s"},
      {"1h30m", 90min, "1h30m0s"},
      {"90m", 90min, "1h30m0s"},
      {"500ms", 500ms, "500ms"},
      {"1.5s", 1500ms, "1.5s"},
      {"-2m", -2min, "-2m0s"},
      {"+1h", 1h, "1h0m0s"},
      {"250us", 250us, "250µs"},
      {"250µs", 250us, "250µs"},
      {"7ns", 7ns, "7ns"},
      {"1h0m0.25s", 1h + 250ms, "1h0m0.25s"},
      {"2.25h", 135min, "2h15m0s"},
      {"-12us3.25ms7ns", -3'262'007ns, "-3.262007ms"},
      {"999.999999ms", 999'999'999ns, "999.999999ms"},
      {"1.001us", 1'001ns, "1.001µs"},
      {"59.999999999s", 59'999'999'999ns, "59.999999999s"},
      {"2562047h47m16.854775807s", Duration::max(), "2562047h47m16.854775807s"},
      {"-2562047h47m16.854775808s", Duration::min(), "-2562047h47m16.854775808s"},
      {"0.5000000000000000000000000000001s", 500ms, "500ms"},
  };
  for (const auto& c : cases) {
    const auto value = parse_go_duration(c.text);
    ASSERT_TRUE(value) << c.text;
    EXPECT_EQ(*value, c.value) << c.text;
    EXPECT_EQ(format_go_duration(c.value), c.canonical);
    EXPECT_EQ(parse_go_duration(c.canonical), c.value) << c.canonical;
  }
}

TEST(GoDuration, refuses_what_go_refuses) {
  EXPECT_EQ(parse_go_duration("0." + std::string(6000, '0') + "s"), 0s);
  EXPECT_FALSE(parse_go_duration(std::string(6000, '9') + "s"));
  for (const char* text : {"", "10", "s", "1d", "1h30", "--1s", ".s", "1.", "1..5s", "1 s", "60S", "10000000h", "-",
                           "2562047h47m16.854775808s", "-2562047h47m16.854775809s"}) {
    EXPECT_FALSE(parse_go_duration(text)) << text;
  }
}

std::vector<std::string> entries_of(const StringMap& map) {
  std::vector<std::string> out;
  for (const auto& [key, value] : map) out.push_back(std::string(key.view()) + "=" + std::string(value.view()));
  return out;
}

TEST(StringMap, keeps_keys_sorted_replaces_and_erases) {
  StringMap map{{"b", "2"}, {"a", "1"}, {"b", "3"}};
  map.set("c", "");
  map.erase("missing");
  EXPECT_THAT(entries_of(map), ElementsAre("a=1", "b=3", "c="));
  EXPECT_EQ(map.get("c"), "");
  EXPECT_EQ(map.get("d"), std::nullopt);
  map.erase("a");
  EXPECT_EQ(map, (StringMap{{"c", ""}, {"b", "3"}}));
  EXPECT_NE(map, (StringMap{{"c", ""}, {"b", "4"}}));
}

// As Node Feature Discovery labels machines, beside other labels.
StringMap labels_of_machine(StringMap out = {{"a", "1"}, {"f", "2"}, {"g", "3"}}) {
  for (char c = 'a'; c <= 'z'; ++c) out.set("feature/" + std::string(1, c), "true");
  return out;
}

TEST(StringMap, entries_that_are_shared_read_as_before) {
  const StringMap own = labels_of_machine();
  StringMap map = own;
  map.share("feature/");
  EXPECT_EQ(map, own);
  EXPECT_EQ(own, map);
  EXPECT_EQ(entries_of(map), entries_of(own));
  EXPECT_EQ(map.size(), 29U);
  for (const auto& [key, value] : own) EXPECT_EQ(map.get(key.view()), value.view()) << key.view();
  for (const char* missing : {"", "b", "feature/", "feature/aa", "feature/zz", "fz", "h"})
    EXPECT_FALSE(map.contains(missing)) << missing;
  EXPECT_EQ(map.own_bytes(), 3 * sizeof(StringMap::Entry));
  const StringMap copy = map;
  map = StringMap();
  EXPECT_EQ(copy, own);
}

TEST(StringMap, entries_are_kept_once_for_all_maps_that_share_them_and_freed_with_the_last) {
  const std::size_t texts = Interned::pool_bytes();
  {
    StringMap a = labels_of_machine();
    a.share("feature/");
    StringMap b = labels_of_machine();
    b.set("a", "another machine");
    b.share("feature/");
    EXPECT_EQ(a.get("feature/k")->data(), b.get("feature/k")->data());
    EXPECT_EQ(&*std::next(a.begin(), 2), &*std::next(b.begin(), 2));
    EXPECT_NE(a, b);
    StringMap other = labels_of_machine();
    other.set("feature/k", "false");
    other.share("feature/");
    EXPECT_EQ(other.get("feature/k"), "false");
    EXPECT_EQ(a.get("feature/k"), "true");
    EXPECT_NE(a, other);
  }
  EXPECT_EQ(Interned::pool_bytes(), texts);
}

TEST(StringMap, a_change_among_the_shared_entries_is_seen_in_its_own_map_alone) {
  StringMap first = labels_of_machine();
  first.share("feature/");
  StringMap second = first;
  StringMap expected = labels_of_machine();
  for (StringMap* map : {&second, &expected}) {
    map->erase("feature/k");
    map->set("feature/kk", "new");
    map->set("feature/z", "false");
    map->set("b", "4");
  }
  EXPECT_EQ(entries_of(second), entries_of(expected));
  EXPECT_EQ(second, expected);
  EXPECT_EQ(first, labels_of_machine());
  second.share("feature/");
  EXPECT_EQ(second, expected);
  // Beside the shared entries, and without losing them.
  first.erase("f");
  first.set("h", "5");
  EXPECT_EQ(first.own_bytes() / sizeof(StringMap::Entry), std::size_t{3}) << "a, g and h";
}

TEST(StringMap, few_entries_or_none_are_not_shared) {
  StringMap map{{"feature/a", "1"}, {"g", "2"}};
  map.share("feature/");
  map.share("nothing/");
  EXPECT_EQ(map.own_bytes() >= 2 * sizeof(StringMap::Entry), true);
  EXPECT_EQ(entries_of(map), (std::vector<std::string>{"feature/a=1", "g=2"}));
  StringMap all = labels_of_machine({});
  const StringMap own = all;
  all.share("feature/");
  EXPECT_EQ(all, own);
  EXPECT_EQ(all.own_bytes(), 0U);
  EXPECT_FALSE(all.empty());
  EXPECT_EQ(entries_of(all), entries_of(own));
}

TEST(Interned, equal_texts_share_one_entry_that_its_last_user_frees) {
  const std::size_t bytes = Interned::pool_bytes();
  {
    Interned a("a text of the test");
    Interned b("a text of the test");
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.view().data(), b.view().data());
    EXPECT_EQ(Interned::pool_bytes(), bytes + 18);
    Interned moved = std::move(a);
    b = Interned("another");
    EXPECT_EQ(moved.view(), "a text of the test");
    moved = moved;  // NOLINT: on purpose
    b = moved;
    EXPECT_EQ(Interned::pool_bytes(), bytes + 18) << "\"another\" lost its last user";
  }
  EXPECT_EQ(Interned::pool_bytes(), bytes);
}

// A label is two of them, and 50,000 nodes have seventy labels each.
static_assert(sizeof(Interned) == 4);
static_assert(sizeof(StringMap::Entry) == 8);

TEST(Interned, texts_stay_what_they_are_while_others_come_and_go) {
  std::vector<Interned> kept;
  for (int i = 0; i < 3000; ++i) {
    kept.emplace_back("kept " + std::to_string(i));
    const Interned gone("gone " + std::to_string(i));  // Its number is given to the next text.
    EXPECT_EQ(gone.view(), "gone " + std::to_string(i));
  }
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(kept[static_cast<std::size_t>(i)].view(), "kept " + std::to_string(i));
  kept.erase(kept.begin(), kept.begin() + 1500);
  const Interned after("after them");
  EXPECT_EQ(kept.front().view(), "kept 1500");
  EXPECT_EQ(after.view(), "after them");
}

// Their length, first and last bytes are the same.
TEST(Interned, texts_that_look_alike_take_each_others_place_and_stay_what_they_are) {
  const std::string one = "aaaaaaaa1bbbbbbbb";
  const std::string other = "aaaaaaaa2bbbbbbbb";
  const std::size_t bytes = Interned::pool_bytes();
  for (int i = 0; i < 3; ++i) {
    const Interned a(one);
    const Interned b(other);
    EXPECT_EQ(a.view(), one);
    EXPECT_EQ(b.view(), other);
    EXPECT_EQ(Interned(one), a);
    EXPECT_EQ(Interned(other), b);
  }
  EXPECT_EQ(Interned::pool_bytes(), bytes);
  EXPECT_EQ(Interned(other).view(), other) << "after its entry was freed";
  EXPECT_EQ(Interned("a").view(), "a");
  EXPECT_EQ(Interned(std::string_view("a\0", 2)).view().size(), 2U) << "not the entry of a shorter text";
}

TEST(Interned, the_empty_text_takes_no_entry_and_order_is_that_of_the_texts) {
  const std::size_t bytes = Interned::pool_bytes();
  EXPECT_TRUE(Interned("").empty());
  EXPECT_EQ(Interned(""), Interned());
  EXPECT_EQ(Interned::pool_bytes(), bytes);
  EXPECT_LT(Interned("a"), Interned("b"));
  EXPECT_LT(Interned(), Interned("a"));
}

TEST(ErrorReasons, say_whether_the_same_request_may_succeed_later) {
  using enum Reason;
  for (const Reason reason :
       {conflict, expired, unauthorized, too_many_requests, timeout, unavailable, transport, decode}) {
    EXPECT_TRUE(retryable(reason)) << to_string(reason);
  }
  for (const Reason reason : {not_found, already_exists, invalid, forbidden, cancelled})
    EXPECT_FALSE(retryable(reason)) << to_string(reason);
}

// What is unknown keeps a node taken, and the Lease at a stop.
TEST(ErrorReasons, say_whether_the_server_might_have_done_it) {
  const std::string budgets =
      "evict pods ns/p: This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
      "support. (HTTP 500)";
  struct Case {
    const char* what;
    Error error;
    bool unknown;
    bool budget = false;
  };
  Error not_sent{Reason::timeout, 0, "patch nodes n: the deadline passed before it was sent"};
  Error no_connection{Reason::transport, 0, "connection refused"};
  not_sent.never_sent = no_connection.never_sent = true;
  Error budget{Reason::too_many_requests, 429, "Cannot evict pod"};
  budget.causes.push_back({"DisruptionBudget", "", "b needs 2"});
  const Case cases[] = {
      {"no answer in time", {Reason::timeout, 0, "no answer"}, true, false},
      {"reset", {Reason::transport, 0, "connection reset"}, true, false},
      {"half an answer", {Reason::decode, 200, "truncated"}, true, false},
      {"500", {Reason::unavailable, 500, "etcdserver: request timed out"}, true, false},
      {"504", {Reason::timeout, 504, "gateway"}, true, false},
      {"its deadline passed in line", not_sent, false, false},
      {"no connection", no_connection, false, false},
      {"429", {Reason::too_many_requests, 429, "slow down"}, false, false},
      {"409", {Reason::conflict, 409, "modified"}, false, false},
      {"422", {Reason::invalid, 422, "no"}, false, false},
      {"cancelled", {Reason::cancelled, 0, "shutting down"}, false, false},
      {"a budget", budget, false, true},
      {"several budgets", {Reason::unavailable, 500, budgets}, false, true},
      {"those words in another answer", {Reason::unavailable, 503, budgets}, true, false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(outcome_unknown(c.error), c.unknown) << c.what;
    EXPECT_EQ(refused_by_budget(c.error), c.budget) << c.what;
  }
}

TEST(ObjectKeys, print_with_and_without_namespace) {
  EXPECT_EQ(to_string(ObjectKey{"ns", "a"}), "ns/a");
  EXPECT_EQ(to_string(ObjectKey{"", "a"}), "a");
}

TEST(Utf8, invalid_bytes_become_the_replacement_character) {
  EXPECT_EQ(replace_invalid_utf8("a\xff"
                                 "b"),
            "a\ufffd"
            "b");
  EXPECT_EQ(replace_invalid_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(replace_invalid_utf8("\u00e9\u2028\U0001f600"), "\u00e9\u2028\U0001f600");
}

TEST(Base64, decodes_what_kubeconfigs_hold_and_refuses_the_rest) {
  EXPECT_EQ(base64_decode("aGVsbG8="), "hello");
  EXPECT_EQ(base64_decode("aGVs\nbG8h\n"), "hello!");
  EXPECT_EQ(base64_decode("aA=="), "h");
  EXPECT_EQ(base64_decode(""), "");
  for (const char* text : {"a", "aGVsbG8", "aGVsbG8*", "a===", "====", "aG=sbG8=", "aGVs bG8="})
    EXPECT_FALSE(base64_decode(text)) << text;
  const std::string bytes("\0\xff\x10 any", 7);
  EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
}

}  // namespace
}  // namespace k8s::base_test
