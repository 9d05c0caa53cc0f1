#include "reconcilers/rollout/record_writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <set>
#include <utility>

#include "k8sclient/value/selectors.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

namespace {

constexpr std::size_t kLongestKey = 253;  // Of a ConfigMap.

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
void add_node(FleetRecord& record, const Pass& pass, const Node& node, const NodeAssessment& now) {
  const std::int64_t measured = gpus_to_remember(node, now);
  MachineRecord entry;
  entry.measured = measured > 0;
  entry.devices = entry.measured ? measured : now.counted_devices;
  enter_loaded(pass, now, entry);
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
  const std::vector<const SharingPolicy*> no_policies;
  ExpectationCache expectations;
  PreflightCache setups;
  const AssessContext context{pass.s.world,
                              pass.s.settings,
                              pass.index.discovery.installations,
                              no_policies,
                              pass.index.record_or_null(),
                              pass.index.profiles,
                              expectations,
                              pass.index.discovery.strays,
                              pass.index.discovery.standalone,
                              setups};
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::unrecorded)) {
    if (!in(pass.index.installation_of(a).ns)) continue;
    // A policy can want another key, whose label the operator has still to write: until then the pods run the key of
    // the present label, or the default.
    const NodeAssessment now = a.label ? assess_node(context, node, pass.index.pods_of(name), {}).value_or(a) : a;
    add_node(record, pass, node, now);
    const std::string id = fmt::format("{}/{}", pass.index.installation_of(now).id(), now.key.view());
    ShownKey& key = keys.try_emplace(id, std::string(now.target.view())).first->second;
    key.by_all = key.by_all && now.matches();
    key.proven = key.proven && now.fresh_pods;
    key.products.emplace(now.product.view());
  }
  for (const auto& [id, key] : keys)
    if (key.by_all) record.note(id, key, text_of_key(pass, id, key.revision));
  for (const PluginInstallation& installation : pass.index.discovery.installations) {
    if (!in(installation.ns)) continue;
    for (const Operand& operand : installation.operands)
      if (!operand.newest_hash.empty()) record.templates.try_emplace(operand.uid, operand.newest_number);
  }
}

// Namespaces whose nodes have no baseline now: those that cannot be read, and those of the claimants of contested
// nodes: a person decides who governs these.
std::set<std::string> without_baseline(const Pass& pass) {
  std::set<std::string> out = pass.s.world.unsynced_namespaces;
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::contested)) {
    const std::string_view claimants = a.claimants.view();  // "a/b, c/d"
    for (const auto& one : std::views::split(claimants, std::string_view(", "))) {
      const std::string claimant(one.begin(), one.end());
      out.insert(claimant.substr(0, claimant.find('/')));
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

void enter_loaded(const Pass& pass, const NodeAssessment& a, MachineRecord& entry) {
  if (a.loaded.proof != Proof::annotation) return;
  const std::string_view profile = a.loaded.profile.view();  // "<configmap>/<key>"
  const std::size_t slash = profile.rfind('/');
  if (slash == std::string_view::npos) return;
  const std::string_view config_map = profile.substr(0, slash);
  const std::string_view key = profile.substr(slash + 1);
  // Whoever can write Nodes can write a text that would make the record too large.
  if (!k8s::is_dns_subdomain(config_map) || key.size() > kLongestKey) return;
  entry.config_map = k8s::Interned(fmt::format("{}/{}", pass.index.installation_of(a).ns, config_map));
  entry.key = k8s::Interned(key);
  entry.revision = a.loaded.revision;
  entry.drift = entry.unproven = false;
}

std::string text_of_key(Pass& pass, std::string_view id, std::string_view revision) {
  const std::size_t first = id.find('/');
  const std::size_t last = id.rfind('/');
  const ConfigMap* config_map = pass.s.world.configmaps.find(
      ObjectKey{std::string(id.substr(0, first)), std::string(id.substr(first + 1, last - first - 1))});
  const auto text = key_text(config_map, id.substr(last + 1));
  if (!text) return {};
  // Or the text has that revision only because the DaemonSets override an error in it.
  const bool has_it =
      pass.index.profiles.compile(*text)->revision == revision || pass.index.profiles.text_of(revision) == *text;
  return has_it ? *text : std::string();
}

void write_record(Pass& pass, const FleetRecord& next, std::string_view reason, const std::string& message) {
  const FleetRecord* present = pass.index.record_or_null();
  for (WriteConfigMap& write : record_writes(next, pass.s.world, pass.s.settings, present))
    pass.add(std::move(write), reason, message);
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

namespace {

// Until when creation times prove nothing about a text that has just come: the latest one of the pods of the
// installation that lies in the future.
std::optional<WallTime> doubtful_time(const Pass& pass, const PluginInstallation& installation) {
  std::optional<WallTime> latest;
  for (const auto& [key, pod] : pass.s.world.operand_pods.all()) {
    if (key.ns != installation.ns || !is_from_the_future(*pod, pass.s.now)) continue;
    latest = std::max<WallTime>(latest.value_or(pass.s.now), pod->meta.creation_timestamp);
  }
  return latest;
}

// The one text that the nodes of a key have to run; empty: none, or not only one.
std::string_view present_text(const ProfileRollout& profile_rollout) {
  return profile_rollout.targets.size() == 1 ? std::string_view(profile_rollout.targets.begin()->first)
                                             : std::string_view();
}

std::string id_of(std::string_view config_map, std::string_view key) {
  return fmt::format("{}/{}", config_map, key);
}

}  // namespace

std::map<std::string, std::vector<RecordedText>> present_history(const Pass& pass) {
  std::map<std::string, std::vector<RecordedText>> out;
  if (pass.index.record) out = pass.index.record->history;
  std::set<std::string> used;
  struct NewText {
    std::string id;
    std::string config_map;
    RecordedText text;
  };
  std::vector<NewText> added;
  std::map<std::string, int> changed;  // Keys with a new text, by ConfigMap.
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const std::string id = id_of(key.config_map, key.key);
    used.insert(id);
    const PluginInstallation& installation = pass.index.discovery.installations[profile_rollout.installation];
    const ConfigMap* config_map = pass.s.world.configmaps.find(installation.config_map_key());
    const std::string_view text = present_text(profile_rollout);
    // Several policies can have rollouts of one key.
    const bool is_added = std::ranges::find(added, id, &NewText::id) != added.end();
    if (config_map == nullptr || text.empty() || is_added || is_last(out[id], text)) continue;
    const WallTime since = data_known_since(pass.s.world, *config_map).value_or(pass.s.now);
    ++changed[key.config_map];
    added.push_back(
        {id,
         key.config_map,
         {std::string(text), std::chrono::floor<std::chrono::seconds>(since), doubtful_time(pass, installation)}});
  }
  for (NewText& next : added) {
    std::vector<RecordedText>& texts = out[next.id];
    // When each of several keys has got its text is unknown: until when the text before it was there, too, and pods
    // that came meanwhile can have read either.
    if (changed.at(next.config_map) > 1 && !texts.empty())
      add_text(texts, {std::string(kUnknownText), texts.back().since, {}});
    add_text(texts, std::move(next.text));
  }
  std::erase_if(out, [&](const auto& entry) { return entry.second.empty() || !used.contains(entry.first); });
  return out;
}

bool has_new_text(const Pass& pass) {
  return std::ranges::any_of(pass.index.profile_rollouts, [&](const auto& entry) {
    const auto& [key, profile_rollout] = entry;
    const std::string_view text = present_text(profile_rollout);
    const auto known = pass.index.record->history.find(id_of(key.config_map, key.key));
    return !text.empty() && known != pass.index.record->history.end() && !is_last(known->second, text);
  });
}

namespace {

// What the record knows about keys, and which of them can still be needed. Each edit of an inline profile makes a new
// key, so that all of them would grow for years.
class KnownKeys {
 public:
  explicit KnownKeys(const Pass& pass) : pass_(pass) {
    for (const auto& [key, rollout] : pass.index.profile_rollouts) used_.insert(id_of(key.config_map, key.key));
  }

  void forget_in(FleetRecord& record) {
    std::erase_if(record.good, [this](const auto& entry) { return is_over(entry); });
    note_good(record);
    const auto forget = [this](auto& by_key) {
      std::erase_if(by_key, [this](const auto& entry) { return is_over(entry.first); });
    };
    forget(record.verified);
    forget(record.verified_on);
    forget(record.previous);
    record.forget_texts();
  }

  [[nodiscard]] bool has_more(const FleetRecord& record) {
    note_good(record);
    const auto any_over = [this](const auto& by_key) {
      return std::ranges::any_of(by_key, [this](const auto& entry) { return is_over(entry.first); });
    };
    return any_over(record.verified) || any_over(record.previous) ||
           std::ranges::any_of(record.good, [this](const auto& entry) { return is_over(entry); });
  }

 private:
  using GoodKey = decltype(FleetRecord::good)::value_type;

  // A policy can return to these.
  void note_good(const FleetRecord& record) {
    for (const auto& entry : record.good) {
      if (is_over(entry)) continue;
      used_.insert(id_of(entry.first.second, entry.second.key));
      used_.insert(id_of(entry.first.second, entry.second.before));
    }
  }

  [[nodiscard]] bool is_over(const GoodKey& entry) const {
    const auto& [of, good] = entry;
    return !is_known_policy(pass_, of.first) && !is_present(of.second, good.key) && !is_present(of.second, good.before);
  }

  [[nodiscard]] bool is_over(const std::string& id) const {
    const std::size_t end = id.rfind('/');
    return end != std::string::npos && !is_present(id.substr(0, end), id.substr(end + 1));
  }

  // Only a namespace in view says which keys are gone. Without DaemonSets it is out of view: the plugin might be
  // installed again. A ConfigMap that pods mount and that is missing comes back with its keys.
  [[nodiscard]] bool is_present(const std::string& config_map, const std::string& key) const {
    if (used_.contains(id_of(config_map, key)) || pass_.index.loaded.contains(id_of(config_map, key))) return true;
    const std::size_t end = config_map.find('/');
    if (end == std::string::npos) return false;
    const std::string ns = config_map.substr(0, end);
    const auto some_installation = [&](auto&& matches) {
      return std::ranges::any_of(pass_.index.discovery.installations, matches);
    };
    const bool in_view = some_installation([&](const PluginInstallation& one) { return one.ns == ns; });
    if (!in_view) return true;
    const ConfigMap* found = pass_.s.world.configmaps.find(ObjectKey{ns, config_map.substr(end + 1)});
    const bool has_key = found == nullptr
                             ? some_installation([&](const PluginInstallation& one) { return one.has_id(config_map); })
                             : found->data.contains(key);
    return has_key || is_on_unserved_node(config_map, key);
  }

  // What other nodes have loaded is in the index.
  [[nodiscard]] bool is_on_unserved_node(const std::string& config_map, const std::string& key) const {
    const std::string id = id_of(config_map, key);
    return std::ranges::any_of(pass_.s.world.nodes.all(), [&](const auto& stored) {
      const NodeAssessment* a = pass_.index.find(stored.first.name);
      if (a != nullptr && a->phase != Phase::unmanaged) return false;
      const k8s::ObjectMeta& node = stored.second->meta;
      const auto shown = node.annotations.get(kProfileAnnotation);
      if (shown) return id.ends_with(fmt::format("/{}", *shown));
      const MachineRecord* entry = pass_.index.record->machines.find(machine_id(node.uid.str()));
      return entry != nullptr && entry->config_map.view() == config_map && entry->key.view() == key;
    });
  }

  const Pass& pass_;
  std::set<std::string> used_;  // Of nodes, and those that a policy can return to.
};

// Those of DaemonSets that are gone. A DaemonSet outside the operand namespaces can be in one again later; if the
// operator does not keep all of these (kMost of discovery.h), any one might still exist.
void forget_templates(const World& world, std::map<std::string, std::int64_t>& templates) {
  if (world.foreign_daemonsets_beyond > 0) return;
  std::set<std::string> present;
  for (const DaemonSet* daemonset : all_daemonsets(world)) present.insert(daemonset->meta.uid.str());
  std::erase_if(templates, [&](const auto& entry) { return !present.contains(entry.first); });
}

// What a view does not show might exist all the same if the view has gaps or does not deliver.
bool sees_everything(const World& world) {
  return world.unsynced_namespaces.empty() && world.stale_views.empty();
}

}  // namespace

void NextRecord::forget() {
  if (!next_ && sees_everything(pass_.s.world) && KnownKeys(pass_).has_more(before_))
    change("Forgotten", "keys that their ConfigMap does not have and no node uses");
}

FleetRecord& NextRecord::change(std::string_view reason, const std::string& message) {
  if (!next_) {
    next_ = before_;
    if (sees_everything(pass_.s.world)) {
      KnownKeys(pass_).forget_in(*next_);
      forget_templates(pass_.s.world, next_->templates);
    }
  }
  reason_ = reason;
  message_ += (message_.empty() ? "" : "; ") + message;
  return *next_;
}

}  // namespace gso
