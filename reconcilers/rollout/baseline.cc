#include "reconcilers/rollout/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/rollout/next_record.h"

namespace gso {

namespace {

constexpr std::size_t kLongestKey = 253;  // Of a ConfigMap.

// What nodes run when they are first seen. A policy can want another key, whose label the operator has still to write:
// until then the pods run the key of the present label, or the default.
class PresentState {
 public:
  explicit PresentState(const Pass& pass)
      : pass_(pass),
        context_{pass.s.world,
                 pass.s.settings,
                 pass.index.discovery.installations,
                 no_policies_,
                 pass.index.record_or_null(),
                 pass.index.profiles,
                 expectations_,
                 pass.index.discovery.strays,
                 pass.index.discovery.standalone,
                 setups_} {}
  PresentState(const PresentState&) = delete;
  PresentState& operator=(const PresentState&) = delete;

  // `a`: the node's assessment, which is against what its policy wants.
  [[nodiscard]] NodeAssessment of(const Node& node, const NodeAssessment& a) {
    if (!a.label) return a;
    const std::vector<const Pod*> pods = pass_.index.pods_of(node.meta.name);
    return assess_node(context_, node, pods, {}, &a).value_or(a);
  }

 private:
  const Pass& pass_;
  const std::vector<const SharingPolicy*> no_policies_;
  ExpectationCache expectations_;
  PreflightCache setups_;
  AssessContext context_;
};

// A machine that has just joined is still starting: what it does not show yet is not recorded as drift that is kept. It
// is assessed like a node that joins later. Pods that are Ready and older than the text have started: they run an older
// text.
bool still_starts(const Pass& pass, const Node& node, const NodeAssessment& now) {
  if (pass.s.new_machines == NewMachines::record) return false;
  const NodeAssessment& governed = *pass.index.find(node.meta.name);
  const RolloutSpec& rollout = pass.index.policy(pass.s.world, governed.policy.view()).rollout;
  const bool runs_older_text = now.pods_ready && !now.fresh_pods;
  return !now.matches() && !runs_older_text && pass.s.now - node.meta.creation_timestamp < rollout.verify_timeout;
}

// `now`: what the node runs.
void add_node(FleetRecord& record, LoadedEntries& loaded, const Pass& pass, const Node& node,
              const NodeAssessment& now) {
  const std::int64_t measured = gpus_to_remember(node, now);
  MachineRecord entry;
  entry.measured = measured > 0;
  entry.devices = entry.measured ? measured : now.counted_devices;
  loaded.enter(now, entry);
  if (now.loaded.proof != Proof::annotation && !still_starts(pass, node, now)) {
    const bool valid = now.profile && now.profile->valid;
    entry.config_map = k8s::Interned(pass.index.installation_of(now).id());
    entry.key = now.key;
    entry.revision = valid ? now.target : k8s::Interned(kInvalidRevision);
    entry.drift = !now.matches() && !(now.verified.surplus && entry.measured);
    entry.unproven = !now.fresh_pods;
  }
  record.machines.set(machine_id(node.meta.uid.str()), entry);
}

std::string describe(const FleetRecord& record) {
  std::int64_t nodes = 0;
  std::int64_t drifting = 0;
  std::int64_t unproven = 0;
  record.machines.for_each([&](MachineId, const MachineRecord& entry) {
    nodes += entry.revision.empty() ? 0 : 1;
    drifting += entry.drift ? 1 : 0;
    unproven += entry.unproven ? 1 : 0;
  });
  return fmt::format("{} recorded, {} with drift, {} unproven", counted(nodes, "node"), drifting, unproven);
}

// Adds the nodes of the namespaces that `in` accepts. A key counts as verified when every node with this key shows it
// with pods that have read it. If it is not proven that the pods have read it, an undo can still restore it.
template <class In>
void add_baseline_entries(Pass& pass, FleetRecord& record, In in) {
  std::map<std::string, ShownKey> keys;
  LoadedEntries loaded(pass);
  PresentState present(pass);
  for (const std::string& name : pass.index.nodes_in(Bucket::unrecorded)) {
    const NodeAssessment& a = *pass.index.find(name);
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr || !in(pass.index.installation_of(a).ns)) continue;
    const NodeAssessment now = present.of(*node, a);
    add_node(record, loaded, pass, *node, now);
    const std::string id = fmt::format("{}/{}", pass.index.installation_of(now).id(), now.key.view());
    ShownKey& key = keys.try_emplace(id, std::string(now.target.view())).first->second;
    key.by_all = key.by_all && now.matches();
    key.proven = key.proven && now.fresh_pods;
    key.products.emplace(now.product.view());
  }
  for (const auto& [id, key] : keys) {
    if (key.by_all) record.note(id, key, text_of_key(pass, id, key.revision));
  }
  for (const PluginInstallation& installation : pass.index.discovery.installations) {
    if (!in(installation.ns)) continue;
    for (const Operand& operand : installation.operands) {
      if (!operand.newest_hash.empty()) record.templates.try_emplace(operand.uid, operand.newest_number);
    }
  }
}

// Namespaces whose nodes have no baseline now: those that cannot be read, and those of the claimants of contested
// nodes: a person decides who governs these.
std::set<std::string> without_baseline(const Pass& pass) {
  std::set<std::string> out = pass.s.world.unsynced_namespaces;
  for (const std::string& name : pass.index.nodes_in(Bucket::contested)) {
    std::string_view rest = pass.index.find(name)->claimants.view();  // "a/b, c/d"
    while (!rest.empty()) {
      out.emplace(rest.substr(0, rest.find('/')));
      const auto comma = rest.find(", ");
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
    }
  }
  return out;
}

// The baseline of namespaces that had none before and can have one now.
void complete_baseline(Pass& pass) {
  FleetRecord next = *pass.index.record;
  const std::set<std::string> open = without_baseline(pass);
  const auto can_have_one = [&](const std::string& ns) { return !open.contains(ns); };
  std::erase_if(next.without_baseline, can_have_one);
  const std::set<std::string>& before = pass.index.record->without_baseline;
  add_baseline_entries(pass, next, [&](const std::string& ns) { return before.contains(ns) && can_have_one(ns); });
  write_record(pass, next, "Baseline", "baseline of namespaces that had none before");
}

}  // namespace

std::optional<LoadedEntries::Profile> LoadedEntries::read(const NodeAssessment& a) const {
  const std::string_view profile = a.loaded.profile.view();  // "<configmap>/<key>"
  const std::size_t slash = profile.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const bool is_name = is_dns1123_subdomain(profile.substr(0, slash)) && profile.size() - slash - 1 <= kLongestKey;
  if (!is_name) return std::nullopt;
  const std::string& ns = pass_.index.installation_of(a).ns;
  return Profile{k8s::Interned(fmt::format("{}/{}", ns, profile.substr(0, slash))),
                 k8s::Interned(profile.substr(slash + 1))};
}

void LoadedEntries::enter(const NodeAssessment& a, MachineRecord& entry) {
  if (a.loaded.proof != Proof::annotation) return;
  const auto [known, is_new] = profiles_.try_emplace({a.installation, a.loaded.profile});
  if (is_new) known->second = read(a);
  if (!known->second) return;
  entry.config_map = known->second->config_map;
  entry.key = known->second->key;
  entry.revision = a.loaded.revision;
  entry.drift = entry.unproven = false;
}

std::string text_of_key(Pass& pass, std::string_view id, std::string_view revision) {
  const std::size_t slash = id.rfind('/');
  const std::string_view map = id.substr(0, slash);
  const std::string key(id.substr(slash + 1));
  const ConfigMap* config_map = pass.s.world.configmaps.find(
      ObjectKey{std::string(map.substr(0, map.find('/'))), std::string(map.substr(map.find('/') + 1))});
  if (config_map == nullptr) return {};
  const auto text = config_map->data.find(key);
  const bool same = text != config_map->data.end() && text->second &&
                    pass.index.profiles.compile(*text->second)->revision == revision;
  // Or the text has that revision only because the DaemonSets override an error in it.
  const bool known =
      text != config_map->data.end() && text->second && pass.index.profiles.text_of(revision) == *text->second;
  return same || known ? *text->second : std::string();
}

void write_record(Pass& pass, const FleetRecord& next, std::string_view reason, const std::string& message) {
  const FleetRecord* present = pass.index.record_or_null();
  for (WriteConfigMap& write : record_writes(next, pass.s.world, pass.s.settings, present)) {
    pass.add(std::move(write), reason, message);
  }
}

void report_chosen_namespaces(Pass& pass) {
  std::set<std::string> chosen = pass.s.world.operand_namespaces;
  chosen.erase(pass.s.settings.operator_namespace);
  pass.finding(
      Severity::info, {"v1", "Namespace", "", pass.s.settings.operator_namespace, ""}, kOperandNamespacesUnknown,
      fmt::format("no setting, ClusterPolicy or record says where the device plugin runs: the operator believes "
                  "DaemonSets in {}, where one was found, and records that. Name the right namespaces in the "
                  "chart value operandNamespaces (--operand-namespaces)",
                  first_names({chosen.begin(), chosen.end()})));
}

bool completes_baseline(const Pass& pass) {
  return pass.index.record && !pass.index.record->without_baseline.empty() &&
         !std::ranges::includes(without_baseline(pass), pass.index.record->without_baseline);
}

void plan_baseline(Pass& pass) {
  if (!pass.index.record_problem.empty()) return;
  if (pass.index.record) {
    if (completes_baseline(pass)) complete_baseline(pass);
    return;
  }
  // A namespace that is refused leaves only its own nodes without a baseline; a namespace that is still loading delays
  // the baseline.
  const World& world = pass.s.world;
  if (!std::ranges::includes(world.refused_namespaces, world.unsynced_namespaces)) return;
  const std::set<std::string> open = without_baseline(pass);
  const bool contested = open != world.unsynced_namespaces;
  const bool somebody = std::ranges::any_of(pass.index.nodes_in(Bucket::unrecorded), [&](const std::string& name) {
    return pass.plannable(*pass.index.find(name));
  });
  if (!somebody && !contested && !pass.index.stored.begun()) return;
  FleetRecord record;
  record.recorded_at = std::chrono::floor<std::chrono::seconds>(pass.s.now);
  if (pass.index.stored.begun()) record = *pass.index.stored.begun();
  record.without_baseline = open;
  if (world.operand_namespaces_chosen) {
    record.operand_namespaces = world.operand_namespaces;
    report_chosen_namespaces(pass);
  }
  add_baseline_entries(pass, record, [&](const std::string& ns) { return !world.unsynced_namespaces.contains(ns); });
  record.history = present_history(pass);
  record.policies = update_policies(record, world, pass.ages, std::nullopt, [](const auto&) { return true; }).policies;
  write_record(pass, record, "Baseline", fmt::format("baseline: {}", describe(record)));
}

}  // namespace gso
