#include "reconcilers/cluster/attempts_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "reconcilers/cluster/machine_text.h"
#include "reconcilers/cluster/record_fields.h"

namespace gso {

using namespace record_json;

namespace {

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

}  // namespace

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

}  // namespace gso
