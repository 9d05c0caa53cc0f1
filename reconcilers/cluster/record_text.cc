#include "reconcilers/cluster/record_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "k8sclient/value/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/stored_fields.h"

namespace gso {
namespace stored {

template <>
struct Stored<MachineId> {
  static std::optional<MachineId> key(std::string_view text) {
    std::uint64_t number = 0;
    const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    if (code != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
    return MachineId{number};
  }
  static std::string name(MachineId machine) { return print_machine(machine); }
  static Wrong read(Element value, MachineId& out) {
    std::string_view text;
    const auto machine = value.get(text) == simdjson::SUCCESS ? key(text) : std::nullopt;
    if (!machine) return " must be the id of a machine";
    out = *machine;
    return {};
  }
  static Json print(MachineId machine) { return print_machine(machine); }
};

}  // namespace stored

// Not an anonymous namespace, because specializations of Stored<> have these tables as arguments.
namespace record_fields {

using Json = nlohmann::json;
using simdjson::dom::element;
using stored::field;
using stored::Field;
using stored::When;
using stored::Wrong;

inline constexpr int kVersion = 1;

// A whole number from -1 to 10^9: every number of a machine's entry is one, whatever a person has written there.
inline std::optional<std::int64_t> number_in(element value) {
  std::int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS || number < -1 || number > 1'000'000'000) return std::nullopt;
  return number;
}

// --- The entries of the lists.

// Policy, ConfigMap, key and revision, which several have in common, and then their own fields.
template <class Entry, std::size_t N>
constexpr std::array<Field<Entry>, N + 4> with_subject(const Field<Entry> (&own)[N]) {
  std::array<Field<Entry>, N + 4> out{
      field<Entry, &Entry::policy>("policy", When::needed), field<Entry, &Entry::config_map>("configMap", When::needed),
      field<Entry, &Entry::key>("key", When::needed), field<Entry, &Entry::revision>("revision", When::needed)};
  std::ranges::copy(own, out.begin() + 4);
  return out;
}

using Failure = FleetRecord::Failure;

// Nodes by name, each with its machine. An earlier release wrote the names alone.
constexpr Field<Failure> failed_nodes() {
  Field<Failure> out = field<Failure, &Failure::nodes>("nodes");
  out.read = [](element value, Failure& failure) -> Wrong {
    if (!value.is_array()) return stored::Stored<std::map<std::string, MachineId>>::read(value, failure.nodes);
    std::set<std::string> names;
    if (Wrong wrong = stored::Stored<std::set<std::string>>::read(value, names); !wrong.empty()) return wrong;
    for (const std::string& name : names) failure.nodes[name] = MachineId{};
    return {};
  };
  return out;
}

inline constexpr auto kFailure =
    with_subject<Failure>({field<Failure, &Failure::retry>("retry", When::needed),
                           field<Failure, &Failure::templates>("templates", When::if_set), failed_nodes(),
                           field<Failure, &Failure::rolled_back>("rolledBack")});

inline constexpr auto kFailing =
    with_subject<RecordedFailures>({field<RecordedFailures, &RecordedFailures::retry>("retry", When::needed),
                                    field<RecordedFailures, &RecordedFailures::templates>("templates", When::if_set),
                                    field<RecordedFailures, &RecordedFailures::machines>("machines")});

inline constexpr auto kSwitches =
    with_subject<RecordedSwitches>({field<RecordedSwitches, &RecordedSwitches::retry>("retry", When::needed),
                                    field<RecordedSwitches, &RecordedSwitches::paused>("paused"),
                                    field<RecordedSwitches, &RecordedSwitches::approved>("approved"),
                                    field<RecordedSwitches, &RecordedSwitches::aborted>("aborted"),
                                    field<RecordedSwitches, &RecordedSwitches::undone>("undone"),
                                    field<RecordedSwitches, &RecordedSwitches::left>("left"),
                                    field<RecordedSwitches, &RecordedSwitches::templates>("templates", When::if_set)});

inline constexpr auto kCanary = with_subject<RecordedCanary>(
    {field<RecordedCanary, &RecordedCanary::product>("product", When::needed),
     field<RecordedCanary, &RecordedCanary::templates>("templates", When::needed),
     field<RecordedCanary, &RecordedCanary::passed>("passed"), field<RecordedCanary, &RecordedCanary::nodes>("nodes"),
     field<RecordedCanary, &RecordedCanary::begun>("begun", When::if_set),
     field<RecordedCanary, &RecordedCanary::soaking_since>("soakingSince", When::if_set)});

// Of FleetRecord::good, which is keyed by policy and ConfigMap.
struct GoodEntry {
  std::string policy;
  std::string config_map;
  std::string key;
  std::string revision;
  std::string before;
};
inline constexpr auto kGood = with_subject<GoodEntry>({field<GoodEntry, &GoodEntry::before>("before", When::needed)});

constexpr Field<RecordedRemediation> attempts() {
  Field<RecordedRemediation> out = field<RecordedRemediation, &RecordedRemediation::attempts>("attempts", When::needed);
  out.read = [](element value, RecordedRemediation& remediation) -> Wrong {
    const auto number = number_in(value);
    if (!number) return " must be a number";
    remediation.attempts = std::max<std::int64_t>(0, *number);
    return {};
  };
  return out;
}
inline constexpr Field<RecordedRemediation> kRemediation[] = {
    field<RecordedRemediation, &RecordedRemediation::machine>("machine", When::needed),
    field<RecordedRemediation, &RecordedRemediation::component>("component", When::needed),
    field<RecordedRemediation, &RecordedRemediation::pod>("pod", When::needed), attempts(),
    field<RecordedRemediation, &RecordedRemediation::at>("at", When::needed)};

inline constexpr Field<RecordedText> kText[] = {
    field<RecordedText, &RecordedText::revision>("revision", When::needed),
    field<RecordedText, &RecordedText::since>("since", When::needed),
    field<RecordedText, &RecordedText::doubtful_until>("doubtfulUntil", When::if_set)};

using Forgetting = FleetRecord::Forgetting;
inline constexpr Field<Forgetting> kForgetting[] = {field<Forgetting, &Forgetting::value>("value", When::needed),
                                                    field<Forgetting, &Forgetting::seen>("seen", When::needed)};

// A RecordedPolicy as it is stored.
struct PolicyEntry {
  std::string uid;
  std::string created;
  std::map<std::string, std::string> annotations;
  std::string spec;
  std::optional<k8s::WallTime> gone_since;
  std::vector<std::string> beside;
};
constexpr Field<PolicyEntry> beside() {
  Field<PolicyEntry> out = field<PolicyEntry, &PolicyEntry::beside>("beside");
  out.print = [](const PolicyEntry& entry) {
    return entry.gone_since ? std::optional<Json>(entry.beside) : std::nullopt;
  };
  return out;
}
inline constexpr Field<PolicyEntry> kPolicy[] = {
    field<PolicyEntry, &PolicyEntry::uid>("uid", When::needed),
    field<PolicyEntry, &PolicyEntry::created>("created", When::needed),
    field<PolicyEntry, &PolicyEntry::annotations>("annotations"),
    stored::object_field<PolicyEntry, &PolicyEntry::spec>("spec", When::needed),
    field<PolicyEntry, &PolicyEntry::gone_since>("goneSince", When::if_set),
    beside()};

}  // namespace record_fields

using namespace record_fields;

namespace stored {

template <>
struct Stored<FleetRecord::Failure> : EntryOf<FleetRecord::Failure, kFailure> {};
template <>
struct Stored<RecordedFailures> : EntryOf<RecordedFailures, kFailing> {};
template <>
struct Stored<RecordedSwitches> : EntryOf<RecordedSwitches, kSwitches> {};
template <>
struct Stored<RecordedCanary> : EntryOf<RecordedCanary, kCanary> {};
template <>
struct Stored<GoodEntry> : EntryOf<GoodEntry, kGood> {};
template <>
struct Stored<RecordedRemediation> : EntryOf<RecordedRemediation, kRemediation> {};
template <>
struct Stored<RecordedText> : EntryOf<RecordedText, kText> {};
template <>
struct Stored<FleetRecord::Forgetting> : EntryOf<FleetRecord::Forgetting, kForgetting> {};
template <>
struct Stored<PolicyEntry> : EntryOf<PolicyEntry, kPolicy> {};

template <>
struct Stored<decltype(FleetRecord::good)> {
  static Wrong read(Element value, decltype(FleetRecord::good)& out) {
    std::vector<GoodEntry> entries;
    Wrong wrong = Stored<std::vector<GoodEntry>>::read(value, entries);
    for (GoodEntry& entry : entries) out[{entry.policy, entry.config_map}] = {entry.key, entry.revision, entry.before};
    return wrong;
  }
  static Json print(const decltype(FleetRecord::good)& good) {
    Json out = Json::array();
    for (const auto& [of, last] : good)
      out.push_back(Stored<GoodEntry>::print({of.first, of.second, last.key, last.revision, last.before}));
    return out;
  }
};

// "timer/subject/scope", as to_string(TimerKey) prints it. A timer that only another release has is dropped: what it
// measures begins again.
template <>
struct Stored<Timers> {
  static Wrong read(Element value, Timers& out) {
    std::map<std::string, k8s::WallTime> read;
    Wrong wrong = Stored<decltype(read)>::read(value, read);
    for (const auto& [text, since] : read)
      if (const auto key = parse_timer_key(text)) out[*key] = since;
    return wrong;
  }
  static Json print(const Timers& timers) {
    Json out = Json::object();
    for (const auto& [key, since] : timers) out[to_string(key)] = k8s::format_time(since);
    return out;
  }
};

}  // namespace stored

namespace {

// --- The machines. Both the head and the shards contain such a part: "profiles": [[configMap, key, revision], …],
// "machines": {"<id>": [profile, devices, flags], …} where profile is an index into the list, or -1.

constexpr std::int64_t kDriftFlag = 1;
constexpr std::int64_t kUnprovenFlag = 2;
constexpr std::int64_t kMeasuredFlag = 4;

// Names each profile once. Walk: for_each() of the machines.
template <class Walk>
void print_machines(Walk walk, Json& root) {
  std::map<std::tuple<k8s::Interned, k8s::Interned, k8s::Interned>, std::int64_t> known;
  Json& profiles = root["profiles"] = Json::array();
  Json& machines = root["machines"] = Json::object();
  walk([&](MachineId machine, const MachineRecord& entry) {
    std::int64_t profile = -1;
    if (!entry.revision.empty()) {
      const auto [it, added] = known.try_emplace({entry.config_map, entry.key, entry.revision}, std::ssize(profiles));
      if (added) profiles.push_back({entry.config_map.view(), entry.key.view(), entry.revision.view()});
      profile = it->second;
    }
    const std::int64_t flags =
        (entry.drift ? kDriftFlag : 0) + (entry.unproven ? kUnprovenFlag : 0) + (entry.measured ? kMeasuredFlag : 0);
    machines[print_machine(machine)] = {profile, entry.devices, flags};
  });
}

bool read_profiles(simdjson::dom::object root, std::vector<MachineRecord>& out) {
  std::vector<std::vector<std::string>> profiles;
  element value;
  if (root.at_key("profiles").get(value) != simdjson::SUCCESS) return false;
  if (!stored::Stored<decltype(profiles)>::read(value, profiles).empty()) return false;
  for (const auto& profile : profiles) {
    if (profile.size() != 3) return false;
    MachineRecord& read = out.emplace_back();
    read.config_map = k8s::Interned(profile[0]);
    read.key = k8s::Interned(profile[1]);
    read.revision = k8s::Interned(profile[2]);
  }
  return true;
}

bool read_machine(element value, const std::vector<MachineRecord>& profiles, MachineRecord& out) {
  simdjson::dom::array entry;
  std::vector<std::int64_t> numbers;
  if (value.get(entry) != simdjson::SUCCESS) return false;
  for (const element part : entry) {
    const auto number = number_in(part);
    if (!number) return false;
    numbers.push_back(*number);
  }
  if (numbers.size() != 3 || numbers[0] >= std::ssize(profiles)) return false;
  if (numbers[0] >= 0) out = profiles[static_cast<std::size_t>(numbers[0])];
  out.devices = std::max<std::int64_t>(0, numbers[1]);
  out.drift = (numbers[2] & kDriftFlag) != 0;
  out.unproven = (numbers[2] & kUnprovenFlag) != 0;
  out.measured = (numbers[2] & kMeasuredFlag) != 0;
  return true;
}

// Calls `take` for each machine of the part. The error; empty: none. Some machines might have been taken before it.
template <class Take>
std::string read_machines(simdjson::dom::object root, Take take) {
  std::vector<MachineRecord> profiles;
  if (!read_profiles(root, profiles)) return "profiles must be a list of [configMap, key, revision]";
  constexpr const char* kWrong = "machines must map ids to [profile, devices, flags]";
  simdjson::dom::object machines;
  if (root.at_key("machines").get(machines) != simdjson::SUCCESS) return kWrong;
  for (const auto [id, value] : machines) {
    const auto machine = stored::Stored<MachineId>::key(id);
    MachineRecord read;
    if (!machine || !read_machine(value, profiles, read)) return kWrong;
    take(*machine, read);
  }
  return {};
}

// --- The head.

// The last texts of each key, at least one. Of more than are kept, the oldest become one (add_text()).
constexpr Field<FleetRecord> history() {
  constexpr auto kMember = &FleetRecord::history;
  Field<FleetRecord> out =
      field<FleetRecord, kMember>("history", When::if_set, "must map keys to lists of entries with revision and since");
  out.read = [](element value, FleetRecord& record) -> Wrong {
    decltype(record.history) read;
    if (Wrong wrong = stored::Stored<decltype(read)>::read(value, read); !wrong.empty()) return wrong;
    for (auto& [id, texts] : read) {
      if (texts.empty() || std::ranges::any_of(texts, &std::string::empty, &RecordedText::revision)) return " is empty";
      for (RecordedText& text : texts) add_text(record.history[id], std::move(text));
    }
    return {};
  };
  return out;
}

template <auto kMember>
constexpr Field<FleetRecord> of_record(std::string_view name, When when, std::string_view wrong) {
  return field<FleetRecord, kMember>(name, when, wrong);
}

constexpr Field<FleetRecord> kRecord[] = {
    of_record<&FleetRecord::recorded_at>("recordedAt", When::needed, "must be a time such as 2026-01-02T03:04:05Z"),
    of_record<&FleetRecord::without_baseline>("withoutBaseline", When::if_set, "must be a list of names"),
    of_record<&FleetRecord::operand_namespaces>("operandNamespaces", When::if_set, "must be a list of names"),
    of_record<&FleetRecord::node_labels>("nodeLabels", When::if_set, "must be a list of names"),
    of_record<&FleetRecord::templates>("templates", When::if_set, "must map uids of DaemonSets to numbers"),
    of_record<&FleetRecord::verified>("verified", When::always, "must map strings to strings"),
    of_record<&FleetRecord::previous>("previous", When::if_set, "must map strings to strings"),
    of_record<&FleetRecord::texts>("texts", When::if_set, "must map strings to strings"),
    of_record<&FleetRecord::verified_on>("verifiedOn", When::if_set, "must map strings to lists of products"),
    of_record<&FleetRecord::forgetting>("forgetting", When::if_set, "must have a value and the time seen"),
    of_record<&FleetRecord::timers>("timers", When::if_set, "must map timers to RFC 3339 times"),
    history(),
    of_record<&FleetRecord::failures>("failures", When::if_set,
                                      "must be a list of entries with policy, configMap, key, revision, retry, nodes "
                                      "and rolledBack"),
    of_record<&FleetRecord::failing>(
        "failing", When::if_set, "must be a list of entries with policy, configMap, key, revision, retry and machines"),
    of_record<&FleetRecord::good>("good", When::if_set,
                                  "must be a list of entries with policy, configMap, key, revision and before"),
    of_record<&FleetRecord::canaries>("canaries", When::if_set,
                                      "must be a list of entries with policy, configMap, key, revision, product, "
                                      "templates, nodes, soakingSince and passed"),
    of_record<&FleetRecord::rollouts>("rollouts", When::if_set,
                                      "must be a list of entries with policy, configMap, key, revision, retry, their "
                                      "switches and templates"),
    of_record<&FleetRecord::remediations>("remediations", When::if_set,
                                          "must be a list of entries with machine, component, pod, attempts and at"),
    of_record<&FleetRecord::paused_config_maps>("pausedConfigMaps", When::if_set, "must map names to uids"),
    of_record<&FleetRecord::crds_gone_since>("crdsGoneSince", When::if_set, "must be a time")};

Json print_policy(const RecordedPolicy& recorded) {
  const SharingPolicy& policy = recorded.policy;
  PolicyEntry entry{policy.meta.uid.str(),
                    k8s::format_time(policy.meta.creation_timestamp),
                    {},
                    policy.spec_json,
                    recorded.gone_since,
                    recorded.beside};
  for (const auto& each : policy.meta.annotations) entry.annotations[std::string(each.key.view())] = each.value.view();
  if (entry.spec.empty()) entry.spec = "{}";
  return stored::Stored<PolicyEntry>::print(entry);
}

// Reads the spec with the projection of live objects: a spec that it rejects was never in effect.
k8s::Result<RecordedPolicy> read_policy(std::string_view name, element value) {
  PolicyEntry entry;
  if (!stored::Stored<PolicyEntry>::read(value, entry).empty())
    return k8s::fail(k8s::Reason::decode, fmt::format("policy {} must have uid, created and spec", name));
  const Json object = {
      {"metadata",
       {{"name", name}, {"uid", entry.uid}, {"creationTimestamp", entry.created}, {"annotations", entry.annotations}}},
      {"spec", Json::parse(entry.spec, nullptr, false)}};
  auto policy = project_sharing_policy(k8s::dump(object));
  if (!policy) return k8s::fail(k8s::Reason::decode, fmt::format("policy {}: {}", name, policy.error().message));
  return RecordedPolicy{recorded_spec(*policy), entry.gone_since, std::move(entry.beside)};
}

std::string read_policies(simdjson::dom::object root, FleetRecord& out) {
  simdjson::dom::object policies;
  if (root.at_key("policies").get(policies) != simdjson::SUCCESS) return "policies must map names to policies";
  for (const auto [name, value] : policies) {
    auto policy = read_policy(name, value);
    if (!policy) return policy.error().message;
    out.policies.emplace(name, *std::move(policy));
  }
  return {};
}

// The first error in the head's fields; empty: none.
std::string read_head(simdjson::dom::object root, RecordHead& head) {
  element begun;
  if (root.at_key("begun").get(begun) == simdjson::SUCCESS && begun.get(head.begun) != simdjson::SUCCESS)
    return "begun must be true or false";
  std::int64_t shards = 0;
  if (root.at_key("shards").get(shards) != simdjson::SUCCESS) shards = -1;
  if (shards != 0 && shards != MachineRecords::kShards)
    return fmt::format("shards must be 0 or {}", MachineRecords::kShards);
  head.sharded = shards != 0;
  std::string wrong;
  if (!head.sharded && !head.begun)
    wrong = read_machines(root, [&](MachineId id, const auto& entry) { head.record.machines.set(id, entry); });
  if (wrong.empty()) wrong = stored::read_fields<FleetRecord>(root, kRecord, head.record);
  return wrong.empty() ? read_policies(root, head.record) : wrong;
}

// "baseline.json: …" if the text is no object, or of a version that this release does not support; empty: it is.
std::string wrong_version(const std::optional<simdjson::dom::object>& root, std::string_view file) {
  if (!root) return fmt::format("{}: must be a JSON object", file);
  const std::string problem = stored::version_problem(*root, kVersion, "supports");
  return problem.empty() ? problem : fmt::format("{}: {}", file, problem);
}

}  // namespace

std::string print_head(const RecordHead& head) {
  const FleetRecord& record = head.record;
  Json root = {{"v", kVersion}, {"shards", head.sharded ? MachineRecords::kShards : 0}, {"policies", Json::object()}};
  if (head.begun) root["begun"] = true;
  if (!head.sharded && !head.begun) print_machines([&](const auto& visit) { record.machines.for_each(visit); }, root);
  stored::print_fields<FleetRecord>(record, kRecord, root);
  for (const auto& [name, policy] : record.policies) root["policies"][name] = print_policy(policy);
  return k8s::dump(root);
}

std::string print_shard(const MachineRecords::Shard& shard, std::size_t index, k8s::WallTime recorded_at) {
  Json root = {{"v", kVersion}, {"recordedAt", k8s::format_time(recorded_at)}, {"shard", index}};
  const auto walk = [&](const auto& visit) {
    for (const auto& [machine, entry] : shard) visit(machine, entry);
  };
  print_machines(walk, root);
  return k8s::dump(root);
}

k8s::Result<RecordHead> parse_head(std::string_view text) {
  simdjson::dom::parser parser;
  const auto root = stored::open(text, parser);
  if (std::string wrong = wrong_version(root, kRecordKey); !wrong.empty())
    return k8s::fail(k8s::Reason::decode, std::move(wrong));
  RecordHead out;
  if (const std::string wrong = read_head(*root, out); !wrong.empty())
    return k8s::fail(k8s::Reason::decode, fmt::format("{}: {}", kRecordKey, wrong));
  return out;
}

k8s::Result<std::shared_ptr<const MachineRecords::Shard>> parse_shard(std::string_view text, std::size_t index,
                                                                      k8s::WallTime recorded_at) {
  simdjson::dom::parser parser;
  const auto root = stored::open(text, parser);
  const auto bad = [](std::string what) { return k8s::fail(k8s::Reason::decode, std::move(what)); };
  if (std::string wrong = wrong_version(root, kShardKey); !wrong.empty()) return bad(std::move(wrong));
  std::string_view of;
  std::int64_t shard = 0;
  if (root->at_key("recordedAt").get(of) != simdjson::SUCCESS) of = {};
  if (root->at_key("shard").get(shard) != simdjson::SUCCESS) shard = -1;
  if (shard != static_cast<std::int64_t>(index) || of != k8s::format_time(recorded_at)) {
    return bad(
        fmt::format("{}: this is shard {} of the baseline recorded at {}; expected shard {} of the one recorded at {}",
                    kShardKey, shard, of, index, k8s::format_time(recorded_at)));
  }
  auto out = std::make_shared<MachineRecords::Shard>();
  const std::string wrong =
      read_machines(*root, [&](MachineId id, const MachineRecord& entry) { out->emplace_back(id, entry); });
  if (!wrong.empty()) return bad(fmt::format("{}: {}", kShardKey, wrong));
  // Printed ids sort like their numbers; a person could have written one twice, in two ways.
  const auto id_of = [](const auto& entry) { return entry.first; };
  std::ranges::stable_sort(*out, {}, id_of);
  const auto twice = std::ranges::unique(*out, {}, id_of);
  out->erase(twice.begin(), twice.end());
  out->shrink_to_fit();
  return std::shared_ptr<const MachineRecords::Shard>(std::move(out));
}

}  // namespace gso
