// `rollout history`: the recorded rollouts beside what the nodes should run and run now.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "controller/commands/rollout/report_text.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/print.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/policy.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

bool is_newest_template(const SharingRollout& rollout, const FleetIndex& index) {
  return std::ranges::any_of(index.impl().discovery.standalone, [&](const Operand& one) {
    return daemonset_of(rollout.config_map) == k8s::to_string(one.key) && one.newest_hash == rollout.to_revision;
  });
}

// "current, 2 nodes", "1 node", "-"
std::string now_text(const HistoryEntry& entry) {
  const std::int64_t running = entry.running.value_or(0);
  std::string out = entry.current ? "current" : "";
  if (running > 0)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", counted(static_cast<std::size_t>(running), "node"));
  return out.empty() ? "-" : out;
}

OrderedJson entry_json(const HistoryEntry& entry) {
  OrderedJson out = rollout_json(entry.facts);
  out["current"] = entry.current;
  out["running"] = entry.running ? OrderedJson(*entry.running) : OrderedJson();
  out["after"] = entry.after;
  return out;
}

std::vector<HistoryEntry> history_of(const World& world, const FleetIndex& index,
                                     const std::vector<RolloutFacts>& rollouts) {
  const bool known = index.impl().record && world.unsynced_namespaces.empty();
  auto loads = known ? loaded_revisions(world, index.impl()) : std::map<RolloutKey, RevisionCounts>();
  const std::vector<RolloutFacts> all = all_rollouts(world);
  std::vector<HistoryEntry> out;
  for (const RolloutFacts& facts : rollouts) {
    const SharingRollout& rollout = *facts.rollout;
    HistoryEntry& entry = out.emplace_back(HistoryEntry{.facts = facts});
    entry.after = came_after(all, rollout);
    const bool of_template = !daemonset_of(rollout.config_map).empty();
    entry.current =
        of_template ? is_newest_template(rollout, index) : present_rollout(rollout, index.impl()) != nullptr;
    if (!known || of_template) continue;
    const RevisionCounts& of_nodes = loads[rollout_key_of(rollout)];
    const auto found = of_nodes.find(rollout.to_revision);
    entry.running = found == of_nodes.end() ? 0 : found->second;
  }
  return out;
}

}  // namespace

void print_rollout_history(const std::vector<HistoryEntry>& entries, std::size_t columns, std::ostream& out) {
  constexpr std::size_t kCounts = 9;  // "1000/1000"
  std::vector<TextRow> rows{
      {"NAME", "POLICY", "CONFIGMAP", "KEY", "REVISION", "NOW", "PHASE", "STARTED", "COMPLETED", "NODES"}};
  for (const HistoryEntry& entry : entries) {
    const RolloutFacts& facts = entry.facts;
    const SharingRollout& rollout = *facts.rollout;
    rows.push_back({rollout.meta.name, rollout.policy, rollout.config_map, or_dash(rollout.key), rollout.to_revision,
                    now_text(entry), facts.phase_text(), or_dash(facts.started_at), or_dash(facts.completed_at),
                    fmt::format("{}/{}", facts.updated, facts.total)});
  }
  if (rows.size() == 1) {
    out << "No rollout is recorded.\n";
    return;
  }
  // A revision is what `rollout undo --to-revision` takes.
  drop_columns(rows, columns, {"CONFIGMAP", "COMPLETED", "POLICY", "KEY", "STARTED", "NODES"}, kCounts);
  std::ostringstream text;
  print_table(std::move(rows), text);
  for (const HistoryEntry& entry : entries) {
    if (!entry.after.empty()) print_line(text, "{}: {}", entry.facts.rollout->meta.name, entry.after);
  }
  out << wrapped_prose(text.str(), columns);
}

namespace {

// The record of one, with the text that it rolls out, which is never broken.
void print_rollout_record(const HistoryEntry& entry, std::size_t columns, std::ostream& out) {
  const RolloutFacts& facts = entry.facts;
  print_rollout_history({entry}, columns, out);
  if (!facts.ready.message.empty()) {
    const std::string line = fmt::format("{}: {}", facts.ready.code, shown_message(facts.ready.message));
    out << wrapped_prose(one_line(line) + "\n", columns);
  }
  if (!daemonset_of(facts.rollout->config_map).empty()) return;
  out << (facts.rollout->profile.empty() ? "the text of this rollout is not recorded\n"
                                         : "\n" + facts.rollout->profile);
}

}  // namespace

int show_history(RolloutCall& call) {
  std::vector<RolloutFacts> shown = all_rollouts(call.world);
  if (!call.options.name.empty()) {
    auto chosen =
        choose(call.world, {call.options.name, true}, [](const RolloutFacts&) { return true; }, "is recorded");
    if (!chosen) return call.refuse(chosen.error().message);
    shown = *std::move(chosen);
  }
  const std::vector<HistoryEntry> entries = history_of(call.world, call.index, shown);
  if (call.options.json) {
    OrderedJson document{{"version", kRolloutJsonVersion}, {"rollouts", OrderedJson::array()}};
    for (const HistoryEntry& entry : entries) document["rollouts"].push_back(entry_json(entry));
    print_document(document, OutputForm::json, *call.out);
  } else if (!call.options.name.empty() && !policy_of(call.options.name)) {
    print_rollout_record(entries.front(), screen_of_stdout().columns, *call.out);
  } else {
    print_rollout_history(entries, screen_of_stdout().columns, *call.out);
  }
  return 0;
}

}  // namespace gso
