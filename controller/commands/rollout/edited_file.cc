// A file into the world; and of a SharingPolicy, field by field, what its nodes would do.
#include "controller/commands/rollout/edited_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/commands/shared/print.h"
#include "k8sclient/value/time.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/project.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/yaml_node.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/status/status.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

std::vector<FieldChange> policy_field_changes(const SharingPolicy& before, const SharingPolicy& after) {
  std::vector<FieldChange> out;
  const auto compare = [&out](std::string_view field, std::string old, std::string now) {
    if (old != now) out.push_back({std::string(field), std::move(old), std::move(now)});
  };
  for (const PolicyField& field : policy_fields())
    if (field.shown != nullptr) compare(field.path, field.shown(before), field.shown(after));
  const auto retry = [](const SharingPolicy& policy) {
    return retry_of(policy).empty() ? std::string("unset") : std::string(retry_of(policy));
  };
  compare("the annotation gpusharing.dev/retry", retry(before), retry(after));
  return out;
}

OrderedJson fields_json(const std::vector<FieldChange>& fields) {
  return json_list(fields, [](const FieldChange& field) -> OrderedJson {
    return {{"field", field.field}, {"before", field.before}, {"after", field.after}};
  });
}

std::string added_stops(const SharingPolicy& before, const SharingPolicy& after, const PlannerSettings& settings) {
  std::string out;
  const PolicyMode mode = settings.mode_of(after);
  if (mode > settings.mode_of(before)) out = fmt::format("mode {}", word_of(kPolicyModeWords, mode));
  if (after.rollout.paused && !before.rollout.paused) out += out.empty() ? "paused" : ", paused";
  return out;
}

namespace {

// The policy's documents as `lint` says them, and whether and by whom it is refused.
void note_errors(const RolloutCall& call, EditedFile& file) {
  file.policy->documents = lint_text(call.options.file, call.input, PodRules());
  std::string& refused_by = file.policy->refused_by;
  for (const LintedDocument& document : file.policy->documents) {
    std::size_t errors = 0;
    for (const Diagnostic& found : document.diagnostics) {
      if (found.severity != Severity::error) continue;
      ++errors;
      if (file.invalid.empty())
        file.invalid = found.path.empty() ? found.message : fmt::format("{}: {}", found.path, found.message);
    }
    // What the API server refuses never reaches the operator.
    if (errors > document.left_to_operator)
      refused_by = "the API server";
    else if (errors > 0 && refused_by.empty())
      refused_by = "the operator";
  }
}

std::map<std::string, std::string> governing_policies(const FleetIndex& index) {
  std::map<std::string, std::string> out;
  for (const std::string& name : index.node_names())
    out.emplace(name, std::string(index.assessment(name)->policy.view()));
  return out;
}

// What the API server keeps of the present object, if there is one.
void keep_identity(const SharingPolicy* present, k8s::WallTime now, SharingPolicy& next) {
  if (present == nullptr) {
    next.meta.uid = "new";
    next.meta.creation_timestamp = now;
    return;
  }
  k8s::ObjectMeta meta = present->meta;
  for (const auto& [key, value] : next.meta.annotations) meta.annotations.set(key.view(), value.view());
  next.meta = std::move(meta);
  next.finalizers = present->finalizers;
  next.status_json = present->status_json;
}

// "25% = 2 of 8 nodes"; "2 of 8 nodes".
std::string budget_text(const IntOrPercent& most, std::int64_t nodes) {
  const std::string of = fmt::format("of {}", counted(nodes, "node"));
  return most.percent ? fmt::format("{} = {} {}", most.to_string(), most.of(nodes), of)
                      : fmt::format("{} {}", most.to_string(), of);
}

// The sizes of its groups: nodes of one GPU product with one profile.
std::vector<std::int64_t> group_sizes(const FleetIndex::Impl& index, std::string_view policy) {
  std::vector<std::int64_t> out;
  for (const auto& [key, rollout] : index.profile_rollouts) {
    if (key.policy != policy) continue;
    for (const auto& [product, group] : rollout.groups)
      if (group.tally.total > 0) out.push_back(group.tally.total);
  }
  return out;
}

std::string group_budgets_text(const IntOrPercent& most, const std::vector<std::int64_t>& groups) {
  std::string out;
  for (const std::int64_t nodes : std::set<std::int64_t>(groups.begin(), groups.end()))
    out += (out.empty() ? "" : ", ") + budget_text(most, nodes);
  return out.empty() ? most.to_string() : out;
}

std::string waves_of(const RolloutSpec& rollout, std::int64_t governed, const std::vector<std::int64_t>& groups,
                     const PlannerSettings& settings, std::int64_t cluster) {
  if (rollout.mechanism == Mechanism::daemonset_restart)
    return "the DaemonSets replace the pods at their own pace (spec.rollout.mechanism: DaemonSetRestart)";
  const std::string canary =
      rollout.canary_nodes_per_group > 0
          ? fmt::format("first a canary of {} of each GPU product, which must show the profile for {}; then ",
                        counted(rollout.canary_nodes_per_group, "node"), k8s::format_go_duration(rollout.canary_soak))
          : std::string();
  std::int64_t in_groups = 0;
  for (const std::int64_t nodes : groups) in_groups += std::min(nodes, rollout.max_unavailable_per_group.of(nodes));
  std::int64_t most = std::min(rollout.max_unavailable.of(governed), settings.cluster_max_unavailable.of(cluster));
  if (!groups.empty()) most = std::min(most, in_groups);
  return fmt::format(
      "{}at most {} at once (maxUnavailable {}; maxUnavailablePerGroup {}; --cluster-max-unavailable {})", canary,
      counted(most, "node"), budget_text(rollout.max_unavailable, governed),
      group_budgets_text(rollout.max_unavailable_per_group, groups),
      budget_text(settings.cluster_max_unavailable, cluster));
}

void add_evictions(const RolloutCall& call, const std::vector<NodeDifference>& nodes,
                   const std::map<std::string, NodeConsumers>& consumers, k8s::WallTime now, FleetIndex& index,
                   const SharingPolicy& policy, PolicyPreview& preview) {
  const Snapshot snapshot{call.world, now, kNoTimers, consumers, call.settings};
  ReadingPass pass(snapshot, index);
  if (policy.rollout.workloads == WorkloadMode::interrupt)
    preview.workloads =
        "none is waited for or evicted: a change breaks the pods that use the node's GPUs (spec.rollout.workloads: "
        "Interrupt)";
  bool some_wait = false;
  for (const NodeDifference& d : nodes) {
    if (d.policy != preview.policy || d.blocked_by_pods.empty()) continue;
    if (d.workloads != WorkloadMode::evict) {
      some_wait = true;
      continue;
    }
    const EvictionOutlook outlook =
        eviction_outlook(pass.pass(), d.node, *index.assessment(d.node), policy.rollout.evict_bare_pods);
    preview.evicted.push_back({d.node, d.blocked_by_pods, outlook.frees ? std::string() : outlook.why});
  }
  if (some_wait)
    preview.workloads = fmt::format(
        "none is evicted: each node waits up to {} until its pods have ended "
        "(spec.rollout.workloads: WaitForIdle; spec.rollout.idleTimeout)",
        k8s::format_go_duration(policy.rollout.idle_timeout));
}

void print_nodes(const PolicyPreview::NodesOf& nodes, std::string_view does, std::ostream& out) {
  for (const auto& [policy, names] : nodes)
    print_line(out, "  {} {} policy {}: {}", counted(names.size(), "node"), does, policy, first_names(names));
}

// What is under way and stands still because of the file.
void print_stopped(const PolicyPreview& preview, const FirstStarts& order, std::ostream& out) {
  if (preview.new_stops.empty()) return;
  std::vector<std::string> waiting;
  for (const auto& [node, why] : order.waits) waiting.push_back(node);
  if (!waiting.empty() && order.nodes.empty())
    print_line(out, "Would stop ({}): {} that {} to start: {}", preview.new_stops, counted(waiting.size(), "node"),
               waiting.size() == 1 ? "waits" : "wait", first_names(waiting));
  if (!preview.in_change.empty())
    print_line(out, "Would stop ({}): {} in a change, except where pods are being replaced already: {}",
               preview.new_stops, counted(preview.in_change.size(), "node"), first_names(preview.in_change));
}

k8s::Result<EditedFile> apply_policy(RolloutCall& call, const std::string& json, k8s::WallTime now) {
  EditedFile file;
  PolicyPreview& out = file.policy.emplace();
  note_errors(call, file);
  out.policy = text_at(object_at(OrderedJson::parse(json, nullptr, false), "metadata"), "name");
  file.invalid_keys = {out.policy.empty() ? std::string("SharingPolicy") : "SharingPolicy " + out.policy};
  const SharingPolicy* present = call.world.policies.find(out.policy);
  out.is_new = present == nullptr;
  if (!file.invalid.empty()) return file;
  k8s::Result<SharingPolicy> read = project_sharing_policy(json);
  if (!read) return std::unexpected(read.error());
  SharingPolicy next = *std::move(read);
  FleetIndex index;
  index.refresh(call.world, call.settings);
  const std::map<std::string, std::string> before = governing_policies(index);
  keep_identity(present, now, next);
  if (present != nullptr) {
    out.fields = policy_field_changes(*present, next);
    out.new_stops = added_stops(*present, next, call.settings);
  }
  call.world.policies.apply(std::move(next));
  index.note_everything_changed();
  index.refresh(call.world, call.settings);
  const SharingPolicy& policy = *call.world.policies.find(out.policy);
  for (const auto& [name, governs] : governing_policies(index)) {
    const bool has = governs == out.policy;
    const std::string& had = before.at(name);
    out.selected += policy_selects(policy, *call.world.nodes.find(name)) ? 1 : 0;
    out.governed += has ? 1 : 0;
    if (has && had != governs) out.joins[had].push_back(name);
    if (!has && had == out.policy) out.leaves[governs].push_back(name);
  }
  out.overlap = other_governors_text(call.world, index.impl(), policy);
  return file;
}

// --- A profile or a ConfigMap.

k8s::Result<std::vector<GivenText>> read_config_map(const World& world, const std::string& json) {
  const k8s::Result<ConfigMap> read = project_configmap(json);
  if (!read) return std::unexpected(read.error());
  const std::string& name = read->meta.name;
  const std::string ns(read->meta.ns.view());
  GivenText text;
  text.whole = true;
  for (const auto& [key, present] : world.configmaps.all())
    if (key.name == name && (ns.empty() || key.ns == ns)) text.config_map = key;
  if (text.config_map.name.empty()) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("no device plugin mounts a ConfigMap {}{}{}", ns, ns.empty() ? "" : "/", name));
  }
  for (const auto& [key, value] : read->data) text.keys[key] = value ? *value : std::string();
  return std::vector<GivenText>{std::move(text)};
}

// A node label names the key, which might not exist yet.
bool is_asked_for(const World& world, const PluginInstallation& installation, const std::string& key) {
  return std::ranges::any_of(installation.operands, [&](const Operand& operand) {
    if (operand.node_label.empty()) return false;
    return std::ranges::any_of(
        world.nodes.all(), [&](const auto& entry) { return entry.second->meta.labels.get(operand.node_label) == key; });
  });
}

// A profile: for the key that is named, or the one that is the only, or the plugin's default. A key that neither the
// ConfigMap nor a node label has is a typing error.
k8s::Result<std::vector<GivenText>> read_profile(const RolloutCall& call,
                                                 const std::vector<PluginInstallation>& installations) {
  std::vector<GivenText> out;
  std::string missing;
  for (const PluginInstallation& installation : installations) {
    const ConfigMap* config_map = call.world.configmaps.find(installation.config_map_key());
    if (config_map == nullptr) continue;
    std::string key = call.options.key;
    if (key.empty() && config_map->data.size() == 1) key = config_map->data.begin()->first;
    for (const Operand& operand : installation.operands)
      if (key.empty()) key = operand.default_key;
    if (key.empty())
      return k8s::fail(k8s::Reason::invalid,
                       fmt::format("the key of {} that this profile belongs to is unknown; name the key with --key",
                                   installation.id()));
    if (!config_map->data.contains(key) && !is_asked_for(call.world, installation, key)) {
      const std::vector<std::string> keys = keys_of(*config_map);
      missing =
          fmt::format("ConfigMap {} has no key {}{}, and no node label names it. Keys: {}", installation.id(), key,
                      key_advice(key, keys), keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", ")));
      continue;
    }
    GivenText text;
    text.config_map = installation.config_map_key();
    text.keys[key] = call.input;
    const bool known =
        std::ranges::any_of(out, [&](const GivenText& other) { return other.config_map == text.config_map; });
    if (!known) out.push_back(std::move(text));
  }
  if (out.empty())
    return k8s::fail(k8s::Reason::invalid, missing.empty() ? "no device plugin mounts a ConfigMap" : missing);
  return out;
}

// Those with content. One that cannot be read counts as well.
int documents_in(const std::string& text) {
  YamlStream stream(text);
  int out = 0;
  while (const std::optional<YamlDocument> document = stream.next()) {
    const YamlNode* root = document->root;
    const bool is_empty = root == nullptr || (root->kind == YamlNode::Kind::scalar && root->value.empty());
    out += is_empty ? 0 : 1;
  }
  return out + (stream.error() ? 1 : 0);
}

void add_dropped_keys(const World& world, const FleetIndex& index, const GivenText& text,
                      std::vector<DroppedKey>& out) {
  const ConfigMap* present = world.configmaps.find(text.config_map);
  if (!text.whole || present == nullptr) return;
  std::map<std::string, std::vector<std::string>, std::less<>> users;  // By key.
  for (const std::string& name : index.node_names()) {
    const NodeAssessment* a = index.assessment(name);
    if (index.installations()[a->installation].config_map_key() == text.config_map)
      users[std::string(a->key.view())].push_back(name);
  }
  for (const auto& [key, value] : present->data) {
    const auto used = users.find(key);
    if (text.keys.contains(key) || present->our_keys.contains(key) || used == users.end()) continue;
    out.push_back({k8s::to_string(text.config_map), key, used->second});
  }
}

k8s::Result<EditedFile> apply_text(RolloutCall& call, const k8s::Result<std::string>& json, k8s::WallTime now) {
  if (!json) return std::unexpected(json.error());
  const OrderedJson document = OrderedJson::parse(*json, nullptr, false);
  if (!document.is_object())
    return k8s::fail(k8s::Reason::invalid, "the input is no ConfigMap, SharingPolicy, ClusterPolicy or profile");
  const std::string kind = text_at(document, "kind");
  if (!kind.empty() && kind != "ConfigMap")
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("kind {} is no ConfigMap, SharingPolicy, ClusterPolicy or profile", kind));
  FleetIndex index;
  index.refresh(call.world, call.settings);
  const k8s::Result<std::vector<GivenText>> maps =
      kind.empty() ? read_profile(call, index.installations()) : read_config_map(call.world, *json);
  if (!maps) return std::unexpected(maps.error());
  EditedFile out;
  for (const GivenText& map : *maps) {
    add_dropped_keys(call.world, index, map, out.dropped);
    for (const auto& [key, text] : map.keys) {
      out.profiles.insert(map.config_map.name + "/" + key);
      const ParsedProfile parsed = parse_profile(text);
      if (parsed.valid()) continue;
      out.invalid += fmt::format("{}key {}: {}", out.invalid.empty() ? "" : "; ", key, parsed.first_error());
      out.invalid_keys.push_back("key " + key);
    }
  }
  for (const GivenText& map : *maps) {
    const k8s::Result<void> applied = apply_given(call.world, call.settings, map, now);
    if (!applied) return std::unexpected(applied.error());
  }
  return out;
}

}  // namespace

k8s::Result<EditedFile> apply_file(RolloutCall& call, k8s::WallTime now) {
  const std::string file = call.options.file == "-" ? "the input" : call.options.file;
  if (const int documents = documents_in(call.input); documents > 1) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("{} has {} documents, and diff compares one: give each a file "
                                                       "of its own",
                                                       file, documents));
  }
  const k8s::Result<std::string> json = yaml_to_json(call.input);
  if (!call.options.cluster_policy_patch.empty()) return apply_cluster_policy(call, json);
  const std::string kind = json ? text_at(OrderedJson::parse(*json, nullptr, false), "kind") : std::string();
  if (kind != "SharingPolicy" && kind != "ClusterPolicy") return apply_text(call, json, now);
  if (call.options.key.empty())
    return kind == "ClusterPolicy" ? apply_cluster_policy(call, json) : apply_policy(call, *json, now);
  return k8s::fail(
      k8s::Reason::invalid,
      fmt::format("--key goes with a profile, and {} is a {}: leave --key out, and write {}", file, kind,
                  kind == "ClusterPolicy" ? "spec.devicePlugin.config.default" : "spec.profile.configMapKey"));
}

bool is_same_change(const NodeDifference& d, const std::vector<NodeDifference>& others) {
  return std::ranges::any_of(others, [&](const NodeDifference& other) {
    return other.node == d.node && other.policy == d.policy && other.profile == d.profile && other.to == d.to &&
           other.blocked.code == d.blocked.code && other.leaves == d.leaves;
  });
}

void compare_changes(const std::vector<NodeDifference>& without, const std::vector<NodeDifference>& with,
                     PolicyPreview& preview) {
  const auto changes = [](const NodeDifference& d) { return d.blocked.code.empty() && !d.leaves; };
  for (const NodeDifference& d : with) {
    if (d.policy != preview.policy || !changes(d)) continue;
    ++preview.changing;
    if (is_same_change(d, without)) ++preview.as_now;
    if (d.in_progress) preview.in_change.push_back(d.node);
  }
  for (const NodeDifference& d : without) {
    const bool goes_on =
        std::ranges::any_of(with, [&](const NodeDifference& other) { return other.node == d.node && changes(other); });
    if (changes(d) && !goes_on) preview.no_longer.push_back(d.node);
  }
}

FirstStarts add_changes(RolloutCall& call, const std::vector<NodeDifference>& nodes,
                        const std::map<std::string, NodeConsumers>& consumers, k8s::WallTime now,
                        PolicyPreview& preview) {
  const SharingPolicy* policy = call.world.policies.find(preview.policy);
  if (preview.changing == 0 || policy == nullptr) return {};
  {
    FleetIndex index;
    index.refresh(call.world, call.settings);
    preview.waves = waves_of(policy->rollout, preview.governed, group_sizes(index.impl(), preview.policy),
                             call.settings, index.impl().cluster.total);
    add_evictions(call, nodes, consumers, now, index, *policy, preview);
  }
  return first_starts(call.world, call.settings, now, consumers, preview.policy);
}

void print_selection(const PolicyPreview& preview, bool has_crds, std::ostream& out) {
  print_line(out, "SharingPolicy {} ({}) selects {}, and governs {}", preview.policy,
             preview.is_new           ? "new"
             : preview.fields.empty() ? "unchanged"
                                      : "changed",
             counted(preview.selected, "GPU node"),
             preview.governed == preview.selected && preview.governed > 0
                 ? preview.governed == 1 ? std::string("it") : "all of them"
                 : counted(preview.governed, "node"));
  for (const FieldChange& field : preview.fields)
    print_line(out, "  {} {} -> {}", field.field, shown_message(field.before), shown_message(field.after));
  if (preview.selected == 0)
    print_line(out, "  no GPU node has the labels that spec.nodeSelector asks for: `kubectl get nodes --show-labels`");
  print_nodes(preview.joins, "would leave", out);
  print_nodes(preview.leaves, "would return to", out);
  if (!preview.overlap.empty()) print_line(out, "  {}", preview.overlap);
  if (!has_crds)
    print_line(out, "  the SharingPolicy/SharingRollout CRDs are not installed in this cluster: first run `{}`",
               kInstallCrds);
  const bool all_as_now = preview.as_now > 0 && preview.as_now == preview.changing && preview.no_longer.empty();
  if (!all_as_now || !preview.joins.empty()) return;
  // An edit can still start, order or stop these nodes in another way.
  print_line(out, "No node would {} than now; {} {} changing or waiting{}",
             preview.fields.empty() ? "change in another way" : "get another profile", counted(preview.as_now, "node"),
             preview.as_now == 1 ? "is" : "are", preview.fields.empty() ? "" : ", in the order below");
}

void print_waves(const PolicyPreview& preview, const FirstStarts& order, std::ostream& out) {
  if (preview.as_now > 0 && preview.as_now < preview.changing)
    print_line(out, "{} of these {} {} or {} without the file as well", preview.as_now,
               counted(preview.changing, "node"), preview.as_now == 1 ? "changes" : "change",
               preview.as_now == 1 ? "waits" : "wait");
  if (!preview.no_longer.empty())
    print_line(out, "{} would no longer change: {}", counted(preview.no_longer.size(), "node"),
               first_names(preview.no_longer));
  print_stopped(preview, order, out);
  if (!preview.waves.empty()) print_line(out, "Waves: {}", preview.waves);
  if (!preview.workloads.empty()) print_line(out, "Pods: {}", preview.workloads);
  for (const EvictedPods& of_node : preview.evicted) {
    const bool frees = of_node.why_not.empty();
    print_line(out, "Would {} on {}, {}: {}", frees ? "evict" : "wait for pods", of_node.node,
               frees ? "as many as its change needs" : "although spec.rollout.workloads is Evict",
               frees ? first_names(of_node.pods) : of_node.why_not);
  }
}

OrderedJson preview_json(const PolicyPreview& preview, const FirstStarts& order) {
  const auto evicted_json = [](const EvictedPods& of_node) -> OrderedJson {
    return {{"node", of_node.node}, {"pods", of_node.pods}, {"whyNot", of_node.why_not}};
  };
  return {{"name", preview.policy},
          {"new", preview.is_new},
          {"fields", fields_json(preview.fields)},
          {"selected", preview.selected},
          {"governed", preview.governed},
          {"joins", preview.joins},
          {"leaves", preview.leaves},
          {"changing", preview.changing},
          {"asNow", preview.as_now},
          {"noLonger", preview.no_longer},
          {"newStops", preview.new_stops},
          {"overlap", preview.overlap},
          {"waves", preview.waves},
          {"workloads", preview.workloads},
          {"evicted", json_list(preview.evicted, evicted_json)},
          {"startFirst", order.nodes},
          {"wait", order.waits}};
}

}  // namespace gso
