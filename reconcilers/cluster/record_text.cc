#include "reconcilers/cluster/record_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "reconcilers/cluster/machine_text.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/cluster/text_history.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

// --- What the record knows of attempts <-> JSON: revisions that failed, the last good ones, switches that people have
// set on SharingRollouts, and canaries.

using namespace record_json;

// Nodes by name, each with its machine.
Json print_nodes(const std::map<std::string, MachineId>& nodes) {
  Json out = Json::object();
  for (const auto& [name, machine] : nodes) out[name] = print_machine(machine);
  return out;
}

bool read_nodes(const Json& root, std::map<std::string, MachineId>& out) {
  std::map<std::string, std::string> nodes;
  if (!read_map(root, "nodes", nodes)) return false;
  return std::ranges::all_of(nodes, [&](const auto& node) { return read_machine_id(node.second, out[node.first]); });
}

// Of a failure. An earlier release wrote the names alone.
bool read_failed_nodes(const Json& root, std::map<std::string, MachineId>& out) {
  const Json* nodes = member_at(root, "nodes");
  if (nodes == nullptr || !nodes->is_array()) return read_nodes(root, out);
  std::set<std::string> names;
  if (!read_names(root, "nodes", names)) return false;
  for (const std::string& name : names) out[name] = MachineId{};
  return true;
}

Json print_attempt(const RecordedAttempt& attempt) {
  Json out = print_subject(attempt);
  out["retry"] = attempt.retry;
  if (!attempt.templates.empty()) out["templates"] = attempt.templates;
  return out;
}

bool read_attempt(const Json& json, RecordedAttempt& out) {
  if (!read_subject(json, out) || !read_text(json, "retry", out.retry)) return false;
  return !json.contains("templates") || read_text(json, "templates", out.templates);
}

Json print_failure(const FleetRecord::Failure& failure) {
  Json out = print_attempt(failure);
  out["nodes"] = print_nodes(failure.nodes);
  out["rolledBack"] = failure.rolled_back;
  return out;
}

bool read_failure(const Json& json, FleetRecord& out) {
  FleetRecord::Failure read;
  const bool readable = read_attempt(json, read) && read_failed_nodes(json, read.nodes) &&
                        read_flag(json, "rolledBack", read.rolled_back);
  if (!readable) return false;
  out.failures.push_back(std::move(read));
  return true;
}

Json print_failing(const RecordedFailures& failing) {
  Json out = print_attempt(failing);
  out["machines"] = Json::object();
  for (const auto& [machine, name] : failing.machines) out["machines"][print_machine(machine)] = name;
  return out;
}

bool read_failing(const Json& json, FleetRecord& out) {
  RecordedFailures read;
  std::map<std::string, std::string> machines;
  if (!read_attempt(json, read) || !read_map(json, "machines", machines)) return false;
  for (auto& [text, name] : machines) {
    MachineId machine{};
    if (!read_machine_id(text, machine)) return false;
    read.machines.emplace(machine, std::move(name));
  }
  out.failing.push_back(std::move(read));
  return true;
}

bool read_good(const Json& json, FleetRecord& out) {
  RecordedAttempt subject;
  FleetRecord::Good read;
  if (!read_subject(json, subject) || !read_text(json, "before", read.before)) return false;
  read.key = subject.key;
  read.revision = subject.revision;
  out.good[{subject.policy, subject.config_map}] = std::move(read);
  return true;
}

Json print_switches(const RecordedSwitches& rollout) {
  Json out = print_subject(rollout);
  out["retry"] = rollout.retry;
  out["paused"] = rollout.paused;
  out["approved"] = rollout.approved;
  out["aborted"] = rollout.aborted;
  out["undone"] = rollout.undone;
  out["left"] = rollout.left;
  if (!rollout.templates.empty()) out["templates"] = rollout.templates;
  return out;
}

bool read_switches(const Json& json, FleetRecord& out) {
  RecordedSwitches read;
  if (!read_subject(json, read) || !read_text(json, "retry", read.retry) || !read_flag(json, "paused", read.paused) ||
      !read_flag(json, "approved", read.approved) || !read_flag(json, "aborted", read.aborted) ||
      !read_flag(json, "undone", read.undone) || !read_flag(json, "left", read.left) ||
      !read_map(json, "templates", read.templates)) {
    return false;
  }
  out.rollouts.push_back(std::move(read));
  return true;
}

Json print_canary(const RecordedCanary& canary) {
  Json out = print_subject(canary);
  out["product"] = canary.product;
  out["templates"] = canary.templates;
  out["passed"] = canary.passed;
  out["nodes"] = print_nodes(canary.nodes);
  if (!canary.begun.empty()) out["begun"] = canary.begun;
  if (canary.soaking_since) out["soakingSince"] = k8s::format_time(*canary.soaking_since);
  return out;
}

bool read_canary(const Json& json, FleetRecord& out) {
  RecordedCanary read;
  if (!read_subject(json, read) || !read_text(json, "product", read.product) ||
      !read_text(json, "templates", read.templates) || !read_flag(json, "passed", read.passed) ||
      !read_nodes(json, read.nodes) || !read_names(json, "begun", read.begun) ||
      !read_time(json, "soakingSince", read.soaking_since)) {
    return false;
  }
  out.canaries.push_back(std::move(read));
  return true;
}

// Sets the fields failures, good, canaries and rollouts, each if it is not empty.
void print_attempts(const FleetRecord& record, Json& root) {
  for (const FleetRecord::Failure& failure : record.failures) root["failures"].push_back(print_failure(failure));
  for (const RecordedFailures& failing : record.failing) root["failing"].push_back(print_failing(failing));
  for (const auto& [where, good] : record.good) {
    root["good"].push_back({{"policy", where.first},
                            {"configMap", where.second},
                            {"key", good.key},
                            {"revision", good.revision},
                            {"before", good.before}});
  }
  for (const RecordedCanary& canary : record.canaries) root["canaries"].push_back(print_canary(canary));
  for (const RecordedSwitches& rollout : record.rollouts) root["rollouts"].push_back(print_switches(rollout));
}

// The first error in these fields; empty: none.
std::string read_attempts(const Json& root, FleetRecord& out) {
  constexpr std::string_view kSubject = "must be a list of entries with policy, configMap, key, revision";
  if (!read_list(root, "failures", [&](const Json& entry) { return read_failure(entry, out); }))
    return fmt::format("failures {}, retry, nodes and rolledBack", kSubject);
  if (!read_list(root, "failing", [&](const Json& entry) { return read_failing(entry, out); }))
    return fmt::format("failing {}, retry and machines", kSubject);
  if (!read_list(root, "good", [&](const Json& entry) { return read_good(entry, out); }))
    return fmt::format("good {} and before", kSubject);
  if (!read_list(root, "canaries", [&](const Json& entry) { return read_canary(entry, out); }))
    return fmt::format("canaries {}, product, templates, nodes, soakingSince and passed", kSubject);
  if (!read_list(root, "rollouts", [&](const Json& entry) { return read_switches(entry, out); }))
    return fmt::format("rollouts {}, retry, their switches and templates", kSubject);
  return {};
}

constexpr int kVersion = 1;

bool read_products(const Json& root, std::map<std::string, std::set<std::string>>& out) {
  const Json* member = member_at(root, "verifiedOn");
  if (member == nullptr) return true;
  if (!member->is_object()) return false;
  for (const auto& [id, products] : member->items()) {
    if (!products.is_array() || !read_names(*member, id.c_str(), out[id])) return false;
  }
  return true;
}

// --- Remediation.

Json print_remediation(const RecordedRemediation& remediation) {
  return {{"machine", print_machine(remediation.machine)},
          {"component", remediation.component},
          {"pod", remediation.pod},
          {"attempts", remediation.attempts},
          {"at", k8s::format_time(remediation.at)}};
}

bool read_remediation(const Json& json, FleetRecord& out) {
  RecordedRemediation read;
  std::string machine;
  std::optional<k8s::WallTime> at;
  const Json* attempts = member_at(json, "attempts");
  if (!read_text(json, "machine", machine) || !read_machine_id(machine, read.machine) ||
      !read_text(json, "component", read.component) || !read_text(json, "pod", read.pod) || attempts == nullptr ||
      !is_number(*attempts) || !read_time(json, "at", at) || !at) {
    return false;
  }
  read.attempts = std::max<std::int64_t>(0, attempts->get<std::int64_t>());
  read.at = *at;
  out.remediations.push_back(std::move(read));
  return true;
}

// --- Policies.

bool read_forgetting(const Json& root, std::optional<FleetRecord::Forgetting>& out) {
  const Json* member = member_at(root, "forgetting");
  if (member == nullptr) return true;
  FleetRecord::Forgetting read;
  std::optional<k8s::WallTime> seen;
  if (!member->is_object() || !read_text(*member, "value", read.value) || !read_time(*member, "seen", seen) || !seen)
    return false;
  read.seen = *seen;
  out = std::move(read);
  return true;
}

Json print_policy(const RecordedPolicy& recorded) {
  const SharingPolicy& policy = recorded.policy;
  Json annotations = Json::object();
  for (const auto& entry : policy.meta.annotations) annotations[std::string(entry.key.view())] = entry.value.view();
  Json spec = Json::parse(policy.spec_json, nullptr, false);
  if (!spec.is_object()) spec = Json::object();
  Json out = {{"uid", policy.meta.uid.str()},
              {"created", k8s::format_time(policy.meta.creation_timestamp)},
              {"annotations", std::move(annotations)},
              {"spec", std::move(spec)}};
  if (recorded.gone_since) {
    out["goneSince"] = k8s::format_time(*recorded.gone_since);
    out["beside"] = recorded.beside;
  }
  return out;
}

// Reads the spec with the projection of live objects: a spec that it rejects was never in effect.
k8s::Result<RecordedPolicy> read_policy(const std::string& name, const Json& json) {
  RecordedPolicy out;
  const Json* spec = member_at(json, "spec");
  std::string uid;
  std::string created;
  std::map<std::string, std::string> annotations;
  if (spec == nullptr || !spec->is_object() || !read_text(json, "uid", uid) || !read_text(json, "created", created) ||
      !read_map(json, "annotations", annotations) || !read_time(json, "goneSince", out.gone_since) ||
      !read_names(json, "beside", out.beside)) {
    return k8s::fail(k8s::Reason::decode, fmt::format("policy {} must have uid, created and spec", name));
  }
  const Json object = {
      {"metadata", {{"name", name}, {"uid", uid}, {"creationTimestamp", created}, {"annotations", annotations}}},
      {"spec", *spec}};
  auto policy = project_sharing_policy(dump(object));
  if (!policy) return k8s::fail(k8s::Reason::decode, fmt::format("policy {}: {}", name, policy.error().message));
  out.policy = recorded_spec(*policy);
  return out;
}

// The first error in the head's fields; empty: none.
std::string read_fields(const Json& root, RecordHead& head) {
  FleetRecord& out = head.record;
  std::optional<k8s::WallTime> recorded_at;
  if (!read_time(root, "recordedAt", recorded_at) || !recorded_at)
    return "recordedAt must be a time such as 2026-01-02T03:04:05Z";
  out.recorded_at = *recorded_at;
  if (!read_flag(root, "begun", head.begun)) return "begun must be true or false";
  const Json* shards = member_at(root, "shards");
  if (shards == nullptr || !shards->is_number_integer() || (*shards != 0 && *shards != MachineRecords::kShards))
    return fmt::format("shards must be 0 or {}", MachineRecords::kShards);
  head.sharded = *shards != 0;
  std::string wrong;
  const bool inlined = !head.sharded && !head.begun;
  if (inlined && !read_machines(root, wrong, [&](MachineId id, const auto& entry) { out.machines.set(id, entry); }))
    return wrong;
  if (!read_names(root, "withoutBaseline", out.without_baseline)) return "withoutBaseline must be a list of names";
  if (!read_names(root, "operandNamespaces", out.operand_namespaces))
    return "operandNamespaces must be a list of names";
  if (!read_names(root, "nodeLabels", out.node_labels)) return "nodeLabels must be a list of names";
  if (!read_map(root, "templates", out.templates)) return "templates must map uids of DaemonSets to numbers";
  for (const auto& [name, into] :
       {std::pair("verified", &out.verified), std::pair("previous", &out.previous), std::pair("texts", &out.texts)}) {
    if (!read_map(root, name, *into)) return fmt::format("{} must map strings to strings", name);
  }
  if (!read_products(root, out.verified_on)) return "verifiedOn must map strings to lists of products";
  if (!read_forgetting(root, out.forgetting)) return "forgetting must have a value and the time seen";
  if (std::string wrong_time = read_times(root, out); !wrong_time.empty()) return wrong_time;
  if (std::string wrong_attempt = read_attempts(root, out); !wrong_attempt.empty()) return wrong_attempt;
  if (!read_list(root, "remediations", [&](const Json& entry) { return read_remediation(entry, out); }))
    return "remediations must be a list of entries with machine, component, pod, attempts and at";
  if (!read_map(root, "pausedConfigMaps", out.paused_config_maps)) return "pausedConfigMaps must map names to uids";
  if (!read_time(root, "crdsGoneSince", out.crds_gone_since)) return "crdsGoneSince must be a time";
  const Json* policies = member_at(root, "policies");
  if (policies == nullptr || !policies->is_object()) return "policies must map names to policies";
  for (const auto& [name, json] : policies->items()) {
    auto policy = read_policy(name, json);
    if (!policy) return policy.error().message;
    out.policies.emplace(name, *std::move(policy));
  }
  return {};
}

// "baseline.json: …" if this release does not support the version; empty: it does.
std::string wrong_version(const Json& root, std::string_view file) {
  if (!root.is_object()) return fmt::format("{}: must be a JSON object", file);
  const Json* version = member_at(root, "v");
  if (version == nullptr || !version->is_number_integer()) return fmt::format("{}: v must be a number", file);
  if (*version == kVersion) return {};
  return fmt::format("{}: version {} was written by another release; this release supports version {}", file,
                     dump(*version), kVersion);
}

}  // namespace

std::string print_head(const RecordHead& head) {
  const FleetRecord& record = head.record;
  Json root = {{"v", kVersion},
               {"recordedAt", k8s::format_time(record.recorded_at)},
               {"shards", head.sharded ? MachineRecords::kShards : 0},
               {"verified", record.verified},
               {"policies", Json::object()}};
  if (head.begun) root["begun"] = true;
  if (!head.sharded && !head.begun) {
    MachinePrinter printer;
    record.machines.for_each([&](MachineId machine, const MachineRecord& entry) { printer.add(machine, entry); });
    printer.print_into(root);
  }
  if (!record.without_baseline.empty()) root["withoutBaseline"] = record.without_baseline;
  if (!record.operand_namespaces.empty()) root["operandNamespaces"] = record.operand_namespaces;
  if (!record.node_labels.empty()) root["nodeLabels"] = record.node_labels;
  if (!record.templates.empty()) root["templates"] = record.templates;
  if (!record.previous.empty()) root["previous"] = record.previous;
  if (!record.verified_on.empty()) root["verifiedOn"] = record.verified_on;
  if (!record.texts.empty()) root["texts"] = record.texts;
  print_attempts(record, root);
  for (const RecordedRemediation& remediation : record.remediations)
    root["remediations"].push_back(print_remediation(remediation));
  print_times(record, root);
  for (const auto& [name, policy] : record.policies) root["policies"][name] = print_policy(policy);
  if (record.forgetting) {
    root["forgetting"] = {{"value", record.forgetting->value}, {"seen", k8s::format_time(record.forgetting->seen)}};
  }
  if (record.crds_gone_since) root["crdsGoneSince"] = k8s::format_time(*record.crds_gone_since);
  if (!record.paused_config_maps.empty()) root["pausedConfigMaps"] = record.paused_config_maps;
  return dump(root);
}

std::string print_shard(const MachineRecords::Shard& shard, std::size_t index, k8s::WallTime recorded_at) {
  Json root = {{"v", kVersion}, {"recordedAt", k8s::format_time(recorded_at)}, {"shard", index}};
  MachinePrinter printer;
  for (const auto& [machine, entry] : shard) printer.add(machine, entry);
  printer.print_into(root);
  return dump(root);
}

k8s::Result<RecordHead> parse_head(std::string_view text) {
  const Json root = Json::parse(text, nullptr, false);
  if (std::string wrong = wrong_version(root, kRecordKey); !wrong.empty())
    return k8s::fail(k8s::Reason::decode, std::move(wrong));
  RecordHead out;
  if (const std::string wrong = read_fields(root, out); !wrong.empty())
    return k8s::fail(k8s::Reason::decode, fmt::format("{}: {}", kRecordKey, wrong));
  return out;
}

k8s::Result<std::shared_ptr<const MachineRecords::Shard>> parse_shard(std::string_view text, std::size_t index,
                                                                      k8s::WallTime recorded_at) {
  const Json root = Json::parse(text, nullptr, false);
  const auto bad = [](std::string what) { return k8s::fail(k8s::Reason::decode, std::move(what)); };
  if (std::string wrong = wrong_version(root, kShardKey); !wrong.empty()) return bad(std::move(wrong));
  const std::string of = text_at(root, "recordedAt");
  if (number_at(root, "shard") != static_cast<std::int64_t>(index) || of != k8s::format_time(recorded_at)) {
    return bad(
        fmt::format("{}: this is shard {} of the baseline recorded at {}; expected shard {} of the one recorded at {}",
                    kShardKey, number_at(root, "shard"), of, index, k8s::format_time(recorded_at)));
  }
  auto out = std::make_shared<MachineRecords::Shard>();
  std::string wrong;
  if (!read_machines(root, wrong, [&](MachineId id, const MachineRecord& entry) { out->emplace_back(id, entry); }))
    return bad(fmt::format("{}: {}", kShardKey, wrong));
  // Printed ids sort like their numbers; a person could have written one twice, in two ways.
  const auto id_of = [](const auto& entry) { return entry.first; };
  std::ranges::stable_sort(*out, {}, id_of);
  const auto twice = std::ranges::unique(*out, {}, id_of);
  out->erase(twice.begin(), twice.end());
  out->shrink_to_fit();
  return std::shared_ptr<const MachineRecords::Shard>(std::move(out));
}

}  // namespace gso
