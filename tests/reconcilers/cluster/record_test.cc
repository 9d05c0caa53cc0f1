// The record: texts of what was verified are kept for an undo, within bounds, and read back as written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "reconcilers/cluster/record.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"

namespace gso::test::record_test {
namespace {

const k8s::WallTime kTime = *k8s::parse_rfc3339("2026-01-02T03:04:05Z");

bool is_never_too_old(const RecordedRemediation& /*attempt*/) {
  return false;
}

TEST(Record, KeepsTheTextsOfTheLastTwoVerifiedRevisions) {
  FleetRecord record;
  record.note_verified("ns/map/key", "v1-a", "text a");
  record.note_verified("ns/map/key", "v1-b", "text b");
  EXPECT_EQ(record.verified["ns/map/key"], "v1-b");
  EXPECT_EQ(record.previous["ns/map/key"], "v1-a");
  EXPECT_EQ(record.texts, (std::map<std::string, std::string>{{"v1-a", "text a"}, {"v1-b", "text b"}}));
  record.note_verified("ns/map/key", "v1-c", "text c");
  EXPECT_EQ(record.previous["ns/map/key"], "v1-b");
  EXPECT_FALSE(record.texts.contains("v1-a"));
}

TEST(Record, KnowsWhichProductsHaveShownTheVerifiedRevision) {
  FleetRecord record;
  record.note_verified("ns/map/key", "v1-a", "text", {"A100"});
  EXPECT_TRUE(record.has_shown("ns/map", "key", "v1-a", "A100"));
  EXPECT_FALSE(record.has_shown("ns/map", "key", "v1-a", "T4"));
  record.note_verified("ns/map/key", "v1-a", "text", {"T4"});
  EXPECT_TRUE(record.has_shown("ns/map", "key", "v1-a", "A100"));
  EXPECT_TRUE(record.has_shown("ns/map", "key", "v1-a", "T4"));
  record.note_verified("ns/map/key", "v1-b", "text", {"T4"});
  EXPECT_FALSE(record.has_shown("ns/map", "key", "v1-a", "T4")) << "another revision was verified since";
  EXPECT_FALSE(record.has_shown("ns/map", "key", "v1-b", "A100"));
  EXPECT_TRUE(record.has_shown("ns/map", "key", "v1-b", "T4"));
}

TEST(Record, OfAnEarlierReleaseNamesNoProductAndNoFailedMachine) {
  FleetRecord record;
  record.note_verified("ns/map/key", "v1-a", "text", {"A100"});
  record.failures.push_back({{"p", "ns/map", "key", "v1-x", "", ""}, {{"n1", machine_id("uid")}}, false});
  nlohmann::json head = nlohmann::json::parse(print_head({record}));
  const auto now = parse_head(head.dump());
  ASSERT_TRUE(now) << now.error().message;
  EXPECT_EQ(now->record, record);
  head.erase("verifiedOn");
  head["failures"][0]["nodes"] = {"n1"};
  const auto before = parse_head(head.dump());
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_FALSE(before->record.has_shown("ns/map", "key", "v1-a", "A100"));
  EXPECT_EQ(before->record.failures[0].nodes, (std::map<std::string, MachineId>{{"n1", MachineId{}}}));
}

TEST(Record, KnowsAKeyThatNodesHaveShownThoughItIsNotVerified) {
  FleetRecord record;
  EXPECT_FALSE(record.knows_key("ns/map", "key"));
  record.note_shown("ns/map/key", "v1-a", "text a");
  EXPECT_TRUE(record.knows_key("ns/map", "key"));
  EXPECT_TRUE(record.last_verified("ns/map", "key").empty());
  record.note_verified("ns/map/key", "v1-b", "text b");
  EXPECT_EQ(record.texts, (std::map<std::string, std::string>{{"v1-a", "text a"}, {"v1-b", "text b"}}));
}

TEST(Record, TheSameRevisionAgainChangesNothing) {
  FleetRecord record;
  record.note_verified("id", "v1-a", "text");
  const FleetRecord before = record;
  record.note_verified("id", "v1-a", "text");
  EXPECT_EQ(record, before);
}

TEST(Record, ATextBeyondTheBoundsIsLeftOutAndTheRevisionIsKept) {
  FleetRecord record;
  record.note_verified("id", "v1-long", std::string(FleetRecord::kMaxText + 1, 'x'));
  EXPECT_EQ(record.verified["id"], "v1-long");
  EXPECT_TRUE(record.texts.empty());
  for (std::size_t i = 0; i < 40; ++i)
    record.note_verified("id" + std::to_string(i), "v1-" + std::to_string(i), std::string(FleetRecord::kMaxText, 'x'));
  std::size_t size = 0;
  for (const auto& [revision, text] : record.texts) size += text.size();
  EXPECT_EQ(size, FleetRecord::kMaxTexts);
}

TEST(Record, AFullRecordKeepsANewTextInPlaceOfThoseOfFormerRevisions) {
  FleetRecord record;
  const std::string text(FleetRecord::kMaxText, 'x');
  for (const char* id : {"a", "b", "c", "d"}) {
    record.note_verified(id, std::string("v1-old-") + id, text);
    record.note_verified(id, std::string("v1-new-") + id, text);
  }
  record.note_verified("e", "v1-new-e", text);
  EXPECT_EQ(record.texts.count("v1-new-e"), 1U);
  EXPECT_EQ(record.texts.count("v1-new-a"), 1U) << "it is the one that nodes run";
  EXPECT_EQ(record.texts.size(), 8U);
}

MachineRecord machine(std::string_view revision, std::int64_t devices) {
  MachineRecord out;
  out.devices = devices;
  if (revision.empty()) return out;
  out.config_map = k8s::Interned("ns/map");
  out.key = k8s::Interned("key");
  out.revision = k8s::Interned(revision);
  return out;
}

SharingPolicy policy(const std::string& name, const std::string& spec) {
  const auto read = project_sharing_policy(fmt::format(
      R"({{"metadata":{{"name":"{}","uid":"uid-{}","creationTimestamp":"2026-01-01T00:00:00Z"}},"spec":{}}})", name,
      name, spec));
  EXPECT_TRUE(read.has_value());
  return recorded_spec(*read);
}

FleetRecord full_record() {
  FleetRecord record;
  record.recorded_at = kTime;
  record.note_verified("ns/map/key", "v1-a", "a: \"quoted\"\n");
  record.note_verified("ns/map/key", "v1-b", "b\n");
  record.good[{"p", "ns/map"}] = {"gso-p-1", "v1-b", "gso-p-0"};
  record.failures.push_back({{"p", "ns/map", "gso-p-2", "v1-c", "1", ""}, {{"n1", MachineId{7}}}, true});
  record.failing.push_back({{"p", "ns/map", "key", "v1-d", "1", "t"}, {{MachineId{7}, "n1"}, {MachineId{8}, "n1"}}});
  MachineRecord drifted = machine("v1-a", 4);
  drifted.drift = drifted.unproven = drifted.measured = true;
  record.machines.set(machine_id("one"), drifted);
  record.machines.set(machine_id("two"), machine("", 8));
  record.without_baseline = {"tenant"};
  record.templates = {{"uid-of-a-daemonset", 3}};
  record.canaries.push_back(
      {"p", "ns/map", "key", "v1-c", "A100", "t", {{"n1", machine_id("one")}}, {"n1"}, record.recorded_at, false});
  record.policies["p"] = {
      policy("p", R"({"priority":3,"rollout":{"paused":true},"unknown":{"kept":1}})"), record.recorded_at, {"uid-q"}};
  record.crds_gone_since = record.recorded_at;
  record.timers = {{{Timer::drifting, "00000000000000ff", "v1-b"}, record.recorded_at},
                   {{Timer::daemonset_stalls, "ns/map", "p/key/2"}, record.recorded_at}};
  record.history["ns/map/key"] = {{"v1-a", record.recorded_at, {}}, {"v1-b", record.recorded_at, record.recorded_at}};
  record.paused_config_maps = {{"ns/map", "uid-of-a-configmap"}};
  record.rollouts.push_back(
      {"p", "ns/map", "key", "v1-b", true, false, true, false, false, "7", {{"ns/plugin", "h2"}}});
  EXPECT_TRUE(record.note_remediation({MachineId{7}, "plugin", "uid-7", 2, record.recorded_at}, is_never_too_old));
  return record;
}

TEST(Record, IsReadAsItWasWritten) {
  const FleetRecord record = full_record();
  const std::string text = print_head({record});
  const auto read = parse_head(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->record, record);
  EXPECT_EQ(print_head(*read), text) << "equal records give equal text";
  EXPECT_NE(text.find("\"unknown\":{\"kept\":1}"), std::string::npos) << "of a newer release";
}

TEST(Record, AWrongFieldIsNamed) {
  auto json = nlohmann::json::parse(print_head({full_record()}));
  json["texts"]["v1-a"] = 7;
  const auto read = parse_head(json.dump());
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("texts must map strings to strings"), std::string::npos) << read.error().message;
}

// Another release has other timers, and has the same form for those that both have.
TEST(Record, TimersOfAnotherReleaseAreReadAsFarAsTheyAreKnown) {
  auto json = nlohmann::json::parse(print_head({full_record()}));
  json["timers"] = {{"drifting/00000000000000ff/v1-b", "2026-01-02T03:04:05Z"},
                    {"daemonset-stalls/ns/map/p/key/2", "2026-01-02T03:04:05Z"},
                    {"of-another-release/x/y", "2026-01-02T03:04:05Z"}};
  const auto read = parse_head(json.dump());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->record.timers, (Timers{{{Timer::drifting, "00000000000000ff", "v1-b"}, kTime},
                                         {{Timer::daemonset_stalls, "ns/map", "p/key/2"}, kTime}}));
  json["timers"]["drifting/00000000000000ff/v1-b"] = "yesterday";
  EXPECT_FALSE(parse_head(json.dump()));
}

// A value of a wrong type at any place gives an error or a record; never an exception, and never a lost policy.
TEST(Record, AnOddValueAnywhereIsAnErrorOrARecord) {
  const auto whole = nlohmann::json::parse(print_head({full_record()}));
  const auto values = whole.flatten();
  for (const auto& [path, value] : values.items()) {
    for (const nlohmann::json& odd : {nlohmann::json(5), nlohmann::json("x"), nlohmann::json::array({3}),
                                      nlohmann::json(nullptr), nlohmann::json(true), nlohmann::json(1e300)}) {
      auto changed = whole;
      changed[nlohmann::json::json_pointer(path)] = odd;
      const auto read = parse_head(changed.dump());
      EXPECT_TRUE(!read || read->record.policies.contains("p")) << path;
    }
  }
}

TEST(Record, AnAttemptOfARemediationReplacesTheOneBeforeAndThoseThatAreTooOld) {
  FleetRecord record;
  const auto note = [&](std::uint64_t machine, std::int64_t attempts, k8s::WallTime at, auto is_too_old) {
    (void)record.note_remediation({MachineId{machine}, "plugin", "uid", attempts, at}, is_too_old);
  };
  note(7, 1, kTime, is_never_too_old);
  note(7, 2, kTime + std::chrono::minutes(5), is_never_too_old);
  note(8, 1, kTime, is_never_too_old);
  ASSERT_EQ(record.remediations.size(), 2U);
  EXPECT_EQ(record.remediation(MachineId{7}, "plugin")->attempts, 2);
  EXPECT_EQ(record.remediation(MachineId{7}, "gfd"), nullptr);
  note(9, 1, kTime, [&](const RecordedRemediation& known) { return known.at == kTime; });
  EXPECT_EQ(record.remediation(MachineId{8}, "plugin"), nullptr);
  EXPECT_EQ(record.remediations.size(), 2U);
}

TEST(Record, ThousandsOfStuckPodsDoNotMakeTheRecordTooLarge) {
  FleetRecord record;
  for (std::uint64_t i = 0; i < 3000; ++i)
    (void)record.note_remediation({MachineId{i}, "plugin", "uid", 1, kTime}, is_never_too_old);
  EXPECT_EQ(record.remediations.size(), FleetRecord::kMostRemediations);
}

TEST(Record, OneOfAnotherVersionIsLeftAlone) {
  auto json = nlohmann::json::parse(print_head({full_record()}));
  json["v"] = 2;
  EXPECT_FALSE(parse_head(json.dump()));
}

TEST(Record, AnAbortIsLiftedByAnotherRetryAndAPauseIsNot) {
  const FleetRecord record = full_record();
  EXPECT_TRUE(record.switches("p", "ns/map", "key", "v1-b", "7")->aborted);
  EXPECT_FALSE(record.switches("p", "ns/map", "key", "v1-b", "8")->aborted);
  EXPECT_TRUE(record.switches("p", "ns/map", "key", "v1-b", "8")->paused);
  EXPECT_FALSE(record.switches("p", "ns/map", "key", "v1-x", "7"));
}

// --- In ConfigMaps.

class StoredRecords : public testing::Test {
 protected:
  void apply(const WriteConfigMap& write) {
    ConfigMap out;
    if (const ConfigMap* present = world.configmaps.find(write.config_map)) out = *present;
    out.meta.ns = k8s::Interned(write.config_map.ns);
    out.meta.name = write.config_map.name;
    out.meta.resource_version = std::to_string(++version);
    for (const auto& [key, text] : write.set) {
      out.data[key] = std::make_shared<const std::string>(text);
      largest = std::max(largest, text.size());
    }
    world.configmaps.apply(std::move(out));
  }
  // The number of passes until no write remains.
  int write(const FleetRecord& record) {
    for (int pass = 0; pass < 10; ++pass) {
      const auto writes = record_writes(record, world, settings, nullptr);
      if (writes.empty()) return pass;
      for (const WriteConfigMap& write : writes) apply(write);
    }
    return -1;
  }
  // nullopt: there is none.
  std::optional<FleetRecord> read() {
    store.read(world, settings);
    return store.record() ? std::optional(*store.record()) : std::nullopt;
  }
  static FleetRecord fleet(int nodes) {
    FleetRecord record;
    record.recorded_at = kTime;
    for (int i = 0; i < nodes; ++i) {
      MachineRecord entry = machine(i % 2 == 0 ? "v1-aaaaaaaaaaaaaaaa" : "v1-bbbbbbbbbbbbbbbb", 8);
      entry.unproven = true;
      record.machines.set(machine_id(fmt::format("5f0c7d1e-{:04x}-4bd2-9f7a-{:012x}", i % 65536, i * 7919LL)), entry);
    }
    return record;
  }

  World world;
  PlannerSettings settings;
  RecordStore store;
  int version = 0;
  std::size_t largest = 0;
};

TEST_F(StoredRecords, ASmallFleetFitsIntoTheHeadAndIsWrittenAtOnce) {
  const FleetRecord record = fleet(200);
  EXPECT_EQ(write(record), 1);
  EXPECT_EQ(world.configmaps.size(), 1U);
  EXPECT_TRUE(store.read(world, settings));
  EXPECT_EQ(store.record(), record);
  EXPECT_FALSE(store.read(world, settings)) << "nothing has changed";
}

// Node names do not matter: an entry has a hash of the Node's uid.
TEST_F(StoredRecords, FiftyThousandNodesFitIntoConfigMapsOfHalfAMebibyte) {
  const FleetRecord record = fleet(50'000);
  EXPECT_EQ(record.machines.size(), 50'000U) << "no two uids have one hash";
  EXPECT_EQ(write(record), 3) << "begun, shards, complete";
  EXPECT_EQ(world.configmaps.size(), 1 + MachineRecords::kShards);
  EXPECT_LT(largest, 512U << 10U);
  EXPECT_EQ(read(), record) << store.problem();
}

TEST_F(StoredRecords, OnlyTheShardThatChangesIsWritten) {
  FleetRecord record = fleet(5'000);
  write(record);
  record.machines.set(machine_id("another"), machine("", 4));
  const auto writes = record_writes(record, world, settings, nullptr);
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_EQ(writes[0].config_map, shard_key(state_key(settings), MachineRecords::shard_of(machine_id("another"))));
  record.verified["ns/map/key"] = "v1-c";
  EXPECT_EQ(record_writes(record, world, settings, nullptr).size(), 2U) << "and the head";
}

TEST_F(StoredRecords, WhileABaselineIsWrittenThereIsNoRecordYet) {
  const FleetRecord record = fleet(5'000);
  for (const WriteConfigMap& head : record_writes(record, world, settings, nullptr)) apply(head);
  EXPECT_FALSE(read());
  EXPECT_TRUE(store.begun());
  EXPECT_EQ(store.problem(), "");
}

TEST_F(StoredRecords, AFleetThatGrowsIsTakenIntoShardsAndIsReadableInBetween) {
  FleetRecord record = fleet(900);
  write(record);
  const FleetRecord grown = fleet(1'500);
  const auto shards = record_writes(grown, world, settings, nullptr);
  EXPECT_EQ(shards.size(), MachineRecords::kShards);
  for (const WriteConfigMap& write : shards) apply(write);
  EXPECT_EQ(read(), record) << "the head says where the machines are";
  EXPECT_EQ(write(grown), 1);
  EXPECT_EQ(read(), grown);
}

TEST_F(StoredRecords, AShardThatIsMissingOrUnreadableIsNamedAndNothingIsReadWithoutIt) {
  write(fleet(5'000));
  const k8s::ObjectKey third = shard_key(state_key(settings), 3);
  ConfigMap kept = *world.configmaps.find(third);
  world.configmaps.erase(third);
  EXPECT_FALSE(read());
  EXPECT_EQ(store.problem_in(), third);
  EXPECT_NE(store.problem().find("missing"), std::string::npos) << store.problem();
  apply({third, {{std::string(kShardKey), "{half"}}, {}});
  EXPECT_FALSE(read());
  EXPECT_NE(store.problem().find("kubectl delete configmap"), std::string::npos) << store.problem();
  kept.meta.resource_version = "restored";
  world.configmaps.apply(std::move(kept));
  EXPECT_TRUE(read()) << store.problem();
}

TEST_F(StoredRecords, ShardsWithoutTheirHeadAreNoNewFleet) {
  write(fleet(5'000));
  world.configmaps.erase(state_key(settings));
  EXPECT_FALSE(read());
  EXPECT_EQ(store.problem_in(), state_key(settings));
  for (const k8s::ObjectKey& key : state_keys(state_key(settings))) world.configmaps.erase(key);
  store.read(world, settings);
  EXPECT_EQ(store.problem(), "") << "the whole record is lost: a new baseline";
}

}  // namespace
}  // namespace gso::test::record_test
