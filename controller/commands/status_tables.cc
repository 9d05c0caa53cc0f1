// The tables of `status`, and their JSON.
#include "controller/commands/status.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "controller/commands/rollout/rollout.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/rollout/budgets.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

// "gpu" of "nvidia.com/gpu".
std::string_view short_name(std::string_view resource) {
  constexpr std::string_view kVendor = "nvidia.com/";
  return resource.starts_with(kVendor) ? resource.substr(kVendor.size()) : resource;
}

std::string gpus_of(const Node& node) {
  std::vector<std::string> out;
  for (const auto& [resource, count] : node.allocatable)
    out.push_back(fmt::format("{}={}", short_name(resource.view()), count));
  return out.empty() ? "-" : fmt::format("{}", fmt::join(out, ","));
}

std::string_view source_word(EffectiveKey::Source source) {
  switch (source) {
    case EffectiveKey::Source::label:
      return "label";
    case EffectiveKey::Source::default_key:
      return "default";
    case EffectiveKey::Source::fallback_named:
    case EffectiveKey::Source::fallback_single:
    case EffectiveKey::Source::fallback_empty:
      return "fallback";
    case EffectiveKey::Source::error:
      break;
  }
  return "none";
}

// What the profile replicates; empty without one.
std::vector<ReplicatedResource> replicated_by(const NodeAssessment& a) {
  const SharingSection* section = a.profile == nullptr ? nullptr : a.profile->profile().active();
  return section == nullptr ? std::vector<ReplicatedResource>() : section->resources;
}

// "x4", "gpu x4, mig-1g.5gb x2"
std::string replicas_of(const NodeAssessment& a) {
  std::vector<std::string> out;
  for (const ReplicatedResource& resource : replicated_by(a))
    out.push_back(fmt::format("{} x{}", short_name(resource.name), resource.replicas));
  return fmt::format("{}", fmt::join(out, ","));
}

// Resource to amount, for programs.
OrderedJson amounts_of(const ResourceCounts& counts) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [resource, count] : counts) out[std::string(resource.view())] = count;
  return out;
}

OrderedJson replica_counts_of(const NodeAssessment& a) {
  OrderedJson out = OrderedJson::object();
  for (const ReplicatedResource& resource : replicated_by(a)) out[resource.name] = resource.replicas;
  return out;
}

// The messages of the rows. Nodes that wait for a slot of the same budgets wait for the same, which is a long text: the
// first row has it, and the others name that row.
std::vector<std::string> messages_of(const std::vector<NodeRow>& nodes) {
  std::map<std::string, std::string> said;  // Message to the node whose row has it.
  std::vector<std::string> out;
  for (const NodeRow& node : nodes) {
    const std::string& message = node.shown.message;
    const auto first = node.shown.waits_for_slot ? said.emplace(message, node.name).first : said.end();
    const bool is_said = node.shown.waits_for_slot && first->second != node.name;
    out.push_back(is_said ? fmt::format("{} (see {})", kNoSlot, first->second) : message);
  }
  return out;
}

std::string mode_of(const DaemonProgress& daemon) {
  return daemon.watches_host ? "observe" : "run";
}

std::string strategy_of(const NodeAssessment& a) {
  return a.profile == nullptr ? std::string() : std::string(to_string(a.profile->profile().strategy()));
}

}  // namespace

std::vector<NodeRow> rows_of(const FleetLook& look, const StatusView& view) {
  std::vector<NodeRow> out;
  ReadingPass pass(look.world, look.index, look.settings, look.now);
  for (const auto& [key, node] : look.world.nodes.all()) {
    const NodeAssessment* a = look.index.assessment(key.name);
    if (a == nullptr && !has_gpus(*node)) continue;
    ShownState shown = shown_state(pass, *node);
    if (const std::string cordon = cordon_text(*node, a); !cordon.empty())
      shown.message += (shown.message.empty() ? "" : "; ") + cordon;
    if (!view.only.shows(shown.state, a == nullptr ? "" : a->policy.view(), node->meta.labels)) continue;
    const bool gone = a != nullptr && policy_is_gone(look.world, look.index.impl(), a->policy.view());
    out.push_back({key.name, std::move(shown), gpus_of(*node), node.get(), a, slice_bars(*node), gone});
  }
  std::ranges::sort(out, [&](const NodeRow& a, const NodeRow& b) {
    const int first = view.in_change_first ? a.rank() : 0;
    const int second = view.in_change_first ? b.rank() : 0;
    return std::tie(first, a.name) < std::tie(second, b.name);
  });
  return out;
}

OrderedJson node_json(const NodeRow& row) {
  const NodeAssessment none{};
  const NodeAssessment& a = row.assessment == nullptr ? none : *row.assessment;
  return {{"name", row.name},
          {"state", row.shown.state},
          {"policy", a.policy.view()},
          {"profile", shown_profile(a.profile_ref.view())},
          {"revision", a.loaded.revision.view()},
          {"target", a.target.view()},
          {"allocatable", amounts_of(row.node->allocatable)},
          {"capacity", amounts_of(row.node->capacity)},
          {"message", row.shown.message},
          {"source", source_word(a.source)},
          {"strategy", strategy_of(a)},
          {"replicas", replica_counts_of(a)},
          {"client", to_json(client_share(*row.node, row.assessment))},
          {"product", a.product.view()},
          {"slices", slices_json(row.slices)}};
}

std::vector<LiveLine> node_lines(const std::vector<NodeRow>& nodes, bool wide, TerminalWidth width) {
  const NodeAssessment none{};
  // Revisions are hashes: where each node runs its target, they say nothing to a person.
  const bool revisions =
      wide || std::ranges::any_of(nodes, [](const NodeRow& node) {
        return node.assessment != nullptr && node.assessment->loaded.revision != node.assessment->target;
      });
  std::vector<TextRow> rows{{"NODE", "STATE", "POLICY", "PROFILE", "REVISION", "TARGET", "ALLOCATABLE", "CHOSEN-BY",
                             "STRATEGY", "REPLICAS", "PRODUCT", "CLIENT", "MESSAGE"}};
  const std::vector<std::string> messages = messages_of(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeRow& node = nodes[i];
    const NodeAssessment& a = node.assessment == nullptr ? none : *node.assessment;
    rows.push_back({node.name, node.shown.state, or_dash(a.policy.view()) + (node.policy_is_gone ? " (deleted)" : ""),
                    or_dash(shown_profile(a.profile_ref.view())),
                    node.assessment == nullptr ? "-" : or_dash(shown_loaded_revision(*node.node, a)),
                    or_dash(shown_revision(a.target.view())), node.allocatable, std::string(source_word(a.source)),
                    or_dash(strategy_of(a)), or_dash(replicas_of(a)), or_dash(a.product.view()),
                    wide && a.profile != nullptr ? or_dash(client_share(*node.node, &a).limits()) : "-", messages[i]});
  }
  if (!revisions) remove_columns(rows, {"REVISION", "TARGET"});
  if (!wide) remove_columns(rows, {"CHOSEN-BY", "STRATEGY", "REPLICAS", "PRODUCT", "CLIENT"});
  if (!wide) drop_columns(rows, width, {"TARGET", "REVISION", "PROFILE", "POLICY"});
  const std::vector<std::string> texts = table_lines(std::move(rows), wide ? 0 : width);
  std::vector<LiveLine> out;
  append_text(out, texts.front() + "\n");
  for (std::size_t i = 0; i < nodes.size(); ++i) append_text(out, texts[i + 1] + "\n", nodes[i].name);
  return out;
}

void print_slices(const std::vector<NodeRow>& nodes, TerminalWidth width, std::ostream& out) {
  std::vector<TextRow> rows{{"NODE", "GPU", "SLICES (# USED, - FREE)", "MEMORY", "USED", "FREE"}};
  for (const NodeRow& node : nodes) {
    for (const GpuBar& bar : node.slices) {
      rows.push_back({node.name, std::to_string(bar.gpu), bar.bar, memory_of(bar), describe(bar.slices.used),
                      describe(bar.slices.free)});
    }
  }
  if (rows.size() == 1) return;
  out << "\n";
  print_table(rows, out, width);
}

void print_state_notes(const std::vector<NodeRow>& nodes, bool assumed, std::string_view operator_lease,
                       std::ostream& out) {
  std::set<std::string> seen;
  for (const NodeRow& node : nodes) {
    const std::string note = state_note(node.shown.state, assumed, operator_lease);
    if (!note.empty() && seen.insert(note).second) out << "\n" << note << "\n";
  }
}

void print_daemons(const std::vector<DaemonProgress>& daemons, TerminalWidth width, std::ostream& out) {
  if (daemons.empty()) return;
  std::vector<TextRow> rows{{"STANDALONE-MPS", "MODE", "TEMPLATE", "PROGRESS"}};
  for (const DaemonProgress& daemon : daemons) {
    std::string progress =
        fmt::format("{} {}/{}", progress_bar(daemon.updated, daemon.total), daemon.updated, daemon.total);
    for (const auto& [what, nodes] :
         {std::pair("in progress", &daemon.in_progress), std::pair("deferred", &daemon.deferred),
          std::pair("not ready", &daemon.not_ready), std::pair("pinning the driver", &daemon.pinning)}) {
      if (!nodes->empty()) progress += fmt::format(", {}: {}", what, first_names(*nodes));
    }
    rows.push_back({daemon.daemonset, mode_of(daemon), or_dash(daemon.revision), std::move(progress)});
  }
  out << "\n";
  print_table(rows, out, width);
}

OrderedJson daemons_json(const std::vector<DaemonProgress>& daemons) {
  return json_list(daemons, [](const DaemonProgress& daemon) -> OrderedJson {
    return {{"daemonSet", daemon.daemonset}, {"mode", mode_of(daemon)},      {"template", daemon.revision},
            {"updated", daemon.updated},     {"total", daemon.total},        {"inProgress", daemon.in_progress},
            {"deferred", daemon.deferred},   {"notReady", daemon.not_ready}, {"pinsDriver", daemon.pinning}};
  });
}

}  // namespace gso
