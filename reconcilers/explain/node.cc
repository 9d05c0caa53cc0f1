// Turns an assessment into sentences.
#include "reconcilers/explain/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/checks/catalogue.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/budgets.h"

namespace gso {

namespace {

constexpr PolicyWord<Proof> kProofWords[] = {{"not known", Proof::none},
                                             {"recorded on the node when it was verified", Proof::annotation},
                                             {"baseline", Proof::baseline},
                                             {"its pods were created before the key's text was restored", Proof::pods}};
// Where neither a label nor a default key names one.
constexpr PolicyWord<EffectiveKey::Source> kFallbackWords[] = {
    {"the plugin's fallback `named`: the key called `default`", EffectiveKey::Source::fallback_named},
    {"the plugin's fallback `single`: the only key of the ConfigMap", EffectiveKey::Source::fallback_single},
    {"the plugin's fallback `empty`: no sharing", EffectiveKey::Source::fallback_empty}};
constexpr PolicyWord<ChangeCause> kCauseWords[] = {{"none", ChangeCause::none},
                                                   {"profile edited", ChangeCause::edited},
                                                   {"label names another key", ChangeCause::relabelled},
                                                   {"policy selects another key", ChangeCause::policy},
                                                   {"DaemonSet template changed", ChangeCause::new_template},
                                                   {"node joined", ChangeCause::joined},
                                                   {"no longer needed", ChangeCause::ended}};
constexpr PolicyWord<Transition> kTransitionWords[] = {
    {"the profile stays the same", Transition::none},     {"restarts the plugin", Transition::plugin_only},
    {"restarts the plugin and GFD", Transition::reshare}, {"starts the MPS daemon", Transition::enter_mps},
    {"restarts the MPS daemon", Transition::change_mps},  {"stops the MPS daemon", Transition::leave_mps}};

std::string provider_of(const PluginInstallation& installation) {
  std::string_view kind = "DaemonSets without an owner";
  if (installation.provider == Provider::gpu_operator) kind = "GPU Operator";
  if (installation.provider == Provider::device_plugin_chart) kind = "device plugin's chart";
  return installation.owner.empty() ? std::string(kind) : fmt::format("{} ({})", kind, installation.owner);
}

// nos, with its device plugin if that is found.
std::string provider_of_nos(const Discovery& discovery, const Node& node) {
  for (const PluginInstallation& installation : discovery.of_nos) {
    const Operand* plugin = installation.find(Component::plugin, node);
    if (plugin != nullptr) return fmt::format("nos (DaemonSet {})", k8s::to_string(plugin->key));
  }
  return "nos";
}

// Who chose the key.
std::string source_of(const Node& node, const NodeAssessment& a, const PluginInstallation& installation) {
  using enum EffectiveKey::Source;
  const std::string name = config_label(installation, node);
  const auto value = node.meta.labels.get(name);
  if (a.source == label) {
    const std::string text = fmt::format("label {}={}", name, shown_value(value.value_or(a.key.view())));
    if (!a.label_by.empty()) return fmt::format("{}, written by policy {}", text, a.label_by.view());
    if (a.label && !value) return fmt::format("policy {}, which will write {}", a.policy.view(), text);
    return text + ", not written by the operator";
  }
  if (a.source == default_key) return fmt::format("the plugin's default; the node has no label {}", name);
  if (a.source != error) return std::string(word_of(kFallbackWords, a.source));
  if (a.blocked_by != nullptr && a.blocked_by->code == kConfigMapMissing)
    return fmt::format("none (ConfigMap {} does not exist)", installation.id());
  return value ? fmt::format("none (label {}={} names no key of the ConfigMap)", name, shown_value(*value))
               : "none (no label, and the default key is missing)";
}

void add_strategy(const NodeAssessment& a, NodeExplanation& out) {
  if (a.profile == nullptr) return;
  out.strategy = a.profile->valid ? to_string(a.profile->profile().strategy()) : "invalid";
  const SharingSection* section = a.profile->valid ? a.profile->profile().active() : nullptr;
  if (section == nullptr) return;
  for (const ReplicatedResource& resource : section->resources) {
    out.strategy += fmt::format(", {} x {}", shown_value(resource.name), resource.replicas);
    out.replicas[resource.name] = resource.replicas;
  }
  if (section->rename_by_default) out.strategy += ", renamed to .shared";
}

std::string loaded_of(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  // The record has what the node ran before the change.
  const bool replaced = a.change != nullptr && a.change->failed && !a.change->pods.empty() && !a.matches() &&
                        pods_to_go(index, node, a).empty();
  if (replaced)
    return fmt::format("not known: its pods were started with {}, and that change has failed", a.change->to);
  if (a.loaded.revision.empty()) return std::string(word_of(kProofWords, Proof::none));
  if (a.loaded.revision == kInvalidRevision && a.loaded.proof == Proof::pods)
    return "not known: the key had several texts around the time at which its containers started";
  std::string_view revision = a.loaded.revision.view();
  // Only a node that left its change unproven has it in its annotation.
  if (a.loaded.revision == kInvalidRevision)
    revision = a.loaded.proof == Proof::annotation ? "a text that is no longer known" : "an invalid profile";
  if (a.at_install == AtInstall::drifted && a.loaded.proof == Proof::baseline && !a.matches())
    return fmt::format("not known: the baseline is {}, which the node did not show", revision);
  return fmt::format("{} ({})", revision, word_of(kProofWords, a.loaded.proof));
}

void add_rows(const Node& node, const NodeAssessment& a, NodeExplanation& out) {
  if (a.expectation == nullptr) return;
  const NodeExpectation& expected = *a.expectation;
  for (const auto& [label, value] : expected.labels)
    out.rows.push_back({label, value, std::string(node.meta.labels.get(label).value_or("(none)"))});
  const auto shown = [&](const std::string& resource) {
    const std::int64_t has = amount_of(node.capacity, resource);
    const std::int64_t offers = amount_of(node.allocatable, resource);
    return has == offers ? std::to_string(has) : fmt::format("{} ({} allocatable)", has, offers);
  };
  for (const auto& [resource, count] : expected.capacity)
    out.rows.push_back({resource, std::to_string(count), shown(resource)});
  for (const auto& [resource, replicas] : expected.divisible) {
    const std::string is = shown(resource);
    const std::int64_t has = amount_of(node.capacity, resource);
    const bool fits = has > 0 && has % replicas == 0;
    out.rows.push_back({resource, fits ? is : fmt::format("a multiple of {}", replicas), is});
  }
}

// What a restart of its pods does to the node's GPUs; empty: nothing.
std::string loss_note(const Node& node, const NodeAssessment& a) {
  const bool serves = node.ready && serves_gpus(node);
  if (!a.would_break.empty()) {
    const bool lost = node.ready && !serves && !a.in_change();
    return fmt::format("the node {}: {}",
                       lost ? "has lost its GPUs (none is allocatable), and its pods cannot start"
                            : "will lose its GPUs at the next restart",
                       a.would_break.view());
  }
  // With a label that a policy has not written yet, the pods still load another key.
  if (a.profile == nullptr || a.profile->valid || a.label || !serves || a.in_change()) return {};
  return fmt::format("the node will lose its GPUs at the next restart: key {} is invalid", shown_value(a.key.view()));
}

// The node holds a slot of a full budget that other nodes wait for, and is not in a change.
bool holds_awaited_slot(const Pass& pass, const std::string& node) {
  const SlotHold hold = slot_hold(pass.s.world, pass.index, node);
  if (hold == SlotHold::none || hold == SlotHold::in_change || !pass.index.record) return false;
  return std::ranges::any_of(pass.index.profile_rollouts, [&](const auto& entry) {
    const auto& [key, rollout] = entry;
    return std::ranges::any_of(rollout.groups, [&](const auto& group) {
      const auto& [product, waiting] = group;
      const bool others = std::ranges::any_of(waiting.pending, [&](const auto& waits) { return waits.second != node; });
      return others && holders_of_full_budgets(pass, key, rollout, product).contains(node);
    });
  });
}

void add_notes(ReadingPass& pass, const FleetIndex::Impl& index, const Node& node, const NodeAssessment* a,
               NodeExplanation& out) {
  const auto note = [&]<class... T>(fmt::format_string<T...> text, T&&... arguments) {
    out.notes.push_back(fmt::format(text, std::forward<T>(arguments)...));
  };
  if (!node.ready)
    note("Node is NotReady: {}; uses 1 slot of maxUnavailable",
         a != nullptr && a->in_change() ? "its change waits for it" : "skipped until Ready");
  if (node.unschedulable) {
    const std::string cordon = cordon_text(node, a);
    std::string text = !is_cordoned_by_operator(node) ? "Cordoned by someone else, who must uncordon it"
                       : cordon.empty()               ? "Cordoned by the operator; uncordoned when the change finishes"
                                                      : "C" + cordon.substr(1);
    if (node.ready && is_managed(a)) {  // A NotReady node has its own line.
      text += "; holds 1 slot of the budget (maxUnavailable)";
      if (holds_awaited_slot(pass.pass(), node.meta.name)) text += ", which other nodes wait for";
    }
    out.notes.push_back(std::move(text));
  }
  if (a == nullptr) return;
  if (node.meta.annotations.contains(kDevicesAnnotation))
    note("the annotation {} states the GPUs of the node: what is expected follows from it", kDevicesAnnotation);
  if (is_partitioned_by_nos(node))
    note("{} assigns the node to nos: the operator {} and then no longer changes the node", nos_label(node),
         a->is_unreadable() ? "waits until the node's change is removed" : "finishes the change in progress");
  if (a->is_held()) note("{}: the operator does not change the node", describe_holder(a->holder, node));
  if (a->change) {
    const std::vector<std::string> left = pods_to_go(index, node, *a);
    note("{} {} {}; {}", a->change->failed ? "the change to" : "a change to", a->change->to,
         a->change->failed ? "has failed" : "is in progress",
         left.empty() ? "all its old pods are gone" : fmt::format("not replaced yet: {}", fmt::join(left, ", ")));
  }
  // A node that waits for the end of this stop says so in its state.
  if (a->phase != Phase::pending && policy_is_gone(pass.world(), index, a->policy.view())) {
    if (const std::string gone = gone_policy_text(pass, a->policy.view()); !gone.empty())
      note(
          "{}: edits are not rolled out to the node; gpu-sharing-operator rollout status policy/{} names what ends "
          "that",
          gone, a->policy.view());
  }
  if (!a->losers.empty()) {
    std::vector<std::string_view> names;
    for (const Interned& loser : a->losers) names.push_back(loser.view());
    note("overridden policies that also select the node: {}", fmt::join(names, ", "));
  }
  const bool is_known = out.shown.state != kUnknown && out.shown.state != kNodesWouldBreak;
  if (std::string loss = loss_note(node, *a); !loss.empty() && is_known) out.notes.push_back(std::move(loss));
  if (a->phase == Phase::pending)
    note("Change: {}; {}", word_of(kCauseWords, a->cause), word_of(kTransitionWords, a->transition));
  for (const auto& [label, owned] : owned_labels(node))
    note("the operator owns label {}; {}", label,
         owned.before ? "its value before was " + shown_value(*owned.before) : "it did not exist before");
}

void add_operands(const FleetIndex::Impl& index, const NodeAssessment& a, NodeExplanation& out) {
  const PluginInstallation& installation = index.installation_of(a);
  const NodePods pods = sort_pods(installation, index.pods_of(out.node));
  for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
    for (const Pod* pod : pods.of(component)) {
      std::string state = shown_value(pod->phase.view()) + (is_serving(*pod) ? ", ready" : ", not ready");
      for (const ContainerStatus* container : pod->all_containers())
        for (const std::string_view text : {container->waiting_reason.view(), container->last_message()})
          if (!text.empty()) state += fmt::format("; {}: {}", shown_value(container->name.view()), shown_value(text));
      out.operands.push_back(
          fmt::format("{}: {} {}", to_string(component), shown_value(k8s::to_string(pod->meta.key())), state));
      out.pods.push_back(
          {std::string(pod->meta.ns.view()), pod->meta.name, std::string(to_string(component)), is_serving(*pod), {}});
    }
  }
  if (pods.plugin.empty() && out.shown.state != kUnknown) out.operands.emplace(out.operands.begin(), "plugin: no pod");
}

// A retry of a failed node fails again before its cause is fixed: a look at the cause comes first.
Command after_the_cause(const World& world, const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a,
                        Command retry) {
  if (a.phase != Phase::failed || retry.does != Command::Does::retries) return retry;
  const std::string config_map = k8s::to_string(index.installation_of(a).config_map_key());
  const bool returns = world.policies_served && has_earlier_text(world, index, config_map, std::string(a.key.view()));
  const std::string_view back = returns ? "; or to go back: gpu-sharing-operator rollout undo --dry-run" : "";
  if (Command cause = writer_log_command(index, node, a); !cause.empty()) {
    cause.comment =
        fmt::format("why the node does not show its profile; once the cause is fixed: {}{}", retry.text(), back);
    return cause;
  }
  // The pod that the change waited for has become Ready too late.
  if (!a.pods_ready || !a.change) return retry;
  if (const auto to_go = pods_to_go(index, node, a); !to_go.empty())
    retry.comment =
        fmt::format("the pods of the node are Ready by now: goes on to replace {}{}", fmt::join(to_go, ", "), back);
  return retry;
}

// What can be decided about a node in a rollout, and the command to begin with. The retry of a deferred node would only
// wait again for the pods that still block it.
void add_choices(ReadingPass& pass, const Node& node, const NodeAssessment* a, NodeExplanation& out) {
  if (a == nullptr) return;
  Cure choices = pod_choices(pass, node, *a);
  out.options = std::move(choices.options);
  // The headline names the pods then, and the choices are all that can be done.
  const auto is_said = [](const Finding& f) { return f.why.code == kWaitingForWorkloads; };
  if (!out.options.empty()) std::erase_if(out.findings, is_said);
  const bool pends = a->phase == Phase::pending;
  const bool watches = out.next.does == Command::Does::watches;
  if (!watches && !(pends && out.next.does == Command::Does::retries)) return;
  // What `rollout status` would say to type, for a node that waits for a person.
  const RolloutView* rollout = watches && pends ? pass.rollout_of(*a) : nullptr;
  Command command = choices.command.empty() && rollout != nullptr ? stop_command(*rollout) : std::move(choices.command);
  if (!command.empty()) out.next = std::move(command);
}

std::map<std::string, std::int64_t> amounts(const ResourceCounts& counts) {
  std::map<std::string, std::int64_t> out;
  for (const auto& [resource, count] : counts) out[std::string(resource.view())] = count;
  return out;
}

void add_consumers(const Snapshot& snapshot, NodeExplanation& out) {
  const auto listed = snapshot.consumers.find(out.node);
  if (listed == snapshot.consumers.end()) return;
  for (const Pod& pod : listed->second.pods) {
    std::string asks;
    for (const auto& [resource, count] : pod.gpu_requests)
      asks += fmt::format("{}{}={}", asks.empty() ? "" : ",", shown_value(resource.view()), count);
    if (asks.empty()) asks = asked_of_kai(pod.meta.annotations);
    if (asks.empty()) asks = "without a request";
    out.consumers.push_back(fmt::format("{}: {}", shown_value(k8s::to_string(pod.meta.key())), asks));
    out.pods.push_back({std::string(pod.meta.ns.view()), pod.meta.name, "", pod.ready, amounts(pod.gpu_requests)});
  }
  std::ranges::sort(out.consumers);
}

void add_shared_gpus(const Snapshot& snapshot, const FleetIndex::Impl& index, NodeExplanation& out) {
  out.shared_gpus = shared_gpus(snapshot, index, out.node);
  for (const SharedGpu& gpu : out.shared_gpus) {
    if (gpu.fraction <= 1 + 1e-6) continue;  // Sums of decimal fractions are not exact.
    out.findings.push_back(found(
        Severity::warning, node_ref(out.node), "FractionsAboveOne",
        fmt::format("KAI's fractions on one GPU add up to more than 1: {}. Unless an isolator limits their memory, "
                    "allocations can fail there: delete one of the pods, and KAI places the next one anew",
                    to_string(gpu))));
  }
}

void add_setup_findings(const std::vector<Diagnostic>& setup, NodeExplanation& out) {
  for (const Diagnostic& d : setup) {
    std::string message = d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message);
    if (d.message == out.shown.message) out.of_headline.insert(name_nodes_in(shown_message(message), {out.node}));
    out.findings.push_back(found(d.severity, node_ref(out.node), d.code, std::move(message)));
  }
}

// Makes the messages printable, and finds what to do about each finding.
void complete_findings(const World& world, const FleetIndex::Impl& index, NodeExplanation& out) {
  for (Finding& finding : out.findings) {
    finding.why.message = name_nodes_in(shown_message(finding.why.message), {out.node});
    out.remedies[finding.why.code] =
        name_nodes_in(std::string(remedy_here(world, index, finding.why.code, finding.object)), {out.node});
  }
}

// What ends the obstacle of the node, whose policy `out` has.
std::string remedy_of_obstacle(const NodeAssessment& a, const NodeExplanation& out) {
  if (!out.policy_is_gone || out.obstacle.code != "PolicyKeyNotFound")
    return name_nodes_in(
        std::string(remedy_of(a.blocked_by == nullptr ? std::string_view(a.obstacle.code) : a.blocked_by->code)),
        {out.node});
  return fmt::format(
      "SharingPolicy {} was deleted and its last spec still applies: create it again with a key that exists, or add "
      "the key to the ConfigMap",
      out.policy);
}

// Of a node whose standalone MPS daemon keeps the driver from being replaced.
Command end_of_pin(const Snapshot& snapshot, const Discovery& discovery, const Node& node) {
  const Operand* daemon = find_operand(discovery.standalone, Component::mps, node);
  if (daemon == nullptr || daemon->node_selector.empty())
    return upgrade_chart_command(snapshot.world, snapshot.settings, "--set standaloneMps.followDriverUpgrades=Auto");
  const auto& [label, value] = *daemon->node_selector.begin();
  return changing(fmt::format("kubectl label node {} {}-", node.meta.name, label),
                  fmt::format("once its GPU clients have ended; after the upgrade: kubectl label node {} {}={}",
                              node.meta.name, label, value));
}

// It is about the node, or about what takes replicas of it.
bool concerns(const Finding& finding, const Node& node, const NodeAssessment* a, const FleetIndex::Impl& index) {
  if (finding.object.kind == "Node") return finding.object.name == node.meta.name;
  return finding.why.code == kNodesWouldShrink && a != nullptr && a->would_shrink &&
         finding.object.name == index.installation_of(*a).owner;
}

}  // namespace

std::optional<NodeExplanation> explain_node(const Snapshot& snapshot, FleetIndex& index,
                                            const std::vector<Finding>& findings, std::string_view name) {
  const Node* node = snapshot.world.nodes.find(name);
  if (node == nullptr) return std::nullopt;
  const NodeAssessment* a = index.assessment(name);
  NodeExplanation out;
  out.node = name;
  out.capacity = amounts(node->capacity);
  out.allocatable = amounts(node->allocatable);
  ReadingPass pass(snapshot, index);
  out.shown = shown_state(pass, *node);
  const bool unknown = out.shown.state == kUnknown;
  out.slices = slice_bars(*node);
  if (a == nullptr && is_partitioned_by_nos(*node)) out.provider = provider_of_nos(index.impl().discovery, *node);
  if (a != nullptr) {
    const PluginInstallation& installation = index.impl().installation_of(*a);
    const Operand* plugin = installation.find(Component::plugin, *node);
    out.provider = provider_of(installation);
    if (plugin != nullptr) out.plugin = fmt::format("{} {}", k8s::to_string(plugin->key), plugin->version.to_string());
    out.policy = a->policy.view();
    out.policy_is_gone = policy_is_gone(snapshot.world, index.impl(), out.policy);
    out.profile = shown_profile(a->profile_ref.view());
    const bool unread = unknown && a->source == EffectiveKey::Source::error;
    if (a->phase != Phase::unmanaged && !unread) out.source = source_of(*node, *a, installation);
    add_strategy(*a, out);
    out.client = client_share(*node, a);
    out.loaded = loaded_of(index.impl(), *node, *a);
    out.target = a->target.view();
    if (a->is_blocked() && !unknown) {
      out.obstacle.code = a->blocked_by == nullptr ? std::string_view() : a->blocked_by->code;
      out.obstacle.message = remedy_of_obstacle(*a, out);
    }
    add_rows(*node, *a, out);
    add_operands(index.impl(), *a, out);
    if (a->setup != nullptr && !unknown) add_setup_findings(*a->setup, out);
  }
  add_notes(pass, index.impl(), *node, a, out);
  add_consumers(snapshot, out);
  add_shared_gpus(snapshot, index.impl(), out);
  for (const Finding& finding : findings)
    if (concerns(finding, *node, a, index.impl()) && std::ranges::find(out.findings, finding) == out.findings.end())
      out.findings.push_back(finding);
  if (auto ignored = ignored_hold(*node)) out.findings.push_back(*std::move(ignored));
  // The operator's own cordon is part of the state and the notes.
  if (!is_cordoned_by_operator(*node)) {
    if (auto cordon = cordon_finding(*node, a, name)) out.findings.push_back(*std::move(cordon));
  }
  complete_findings(snapshot.world, index.impl(), out);
  const bool of_nos = a == nullptr && is_partitioned_by_nos(*node);
  out.next =
      of_nos ? slices_command(snapshot.world, index.impl(), out.findings, [&](const Node& of) { return &of == node; })
             : next_step(pass, *node, a, out.shown.state);
  add_choices(pass, *node, a, out);
  if (a != nullptr) out.next = after_the_cause(snapshot.world, index.impl(), *node, *a, std::move(out.next));
  if (out.remedies.contains(std::string(kDriverPinned))) out.next = end_of_pin(snapshot, index.impl().discovery, *node);
  out.next = command_here(snapshot.world, std::move(out.next));
  if (out.shown.state == kHeld && a != nullptr) out.obstacle.message = hold_remedy(*node, *a);
  return out;
}

using OrderedJson = nlohmann::ordered_json;

namespace {

OrderedJson counts_json(const SliceCounts& slices) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [gigabytes, count] : slices) out[std::to_string(gigabytes)] = count;
  return out;
}

}  // namespace

OrderedJson slices_json(const std::vector<GpuBar>& bars) {
  OrderedJson out = OrderedJson::array();
  for (const GpuBar& bar : bars) {
    out.push_back({{"gpu", bar.gpu},
                   {"memoryMiB", bar.memory_mib},
                   {"used", counts_json(bar.slices.used)},
                   {"free", counts_json(bar.slices.free)}});
  }
  return out;
}

OrderedJson explanation_json(const NodeExplanation& e) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& row : e.rows)
    rows.push_back({{"what", row.what}, {"expected", row.expected}, {"observed", row.observed}, {"fits", row.fits()}});
  OrderedJson findings = OrderedJson::array();
  for (const Finding& finding : e.findings) {
    findings.push_back(to_json(finding));
    const auto remedy = e.remedies.find(finding.why.code);
    findings.back()["remedy"] = remedy == e.remedies.end() ? std::string_view() : remedy->second;
  }
  OrderedJson pods = OrderedJson::array();
  for (const auto& pod : e.pods) {
    pods.push_back({{"namespace", pod.ns},
                    {"name", pod.name},
                    {"component", pod.component},
                    {"ready", pod.ready},
                    {"requests", pod.requests}});
  }
  return {{"version", kExplanationVersion},
          {"replicas", e.replicas},
          {"capacity", e.capacity},
          {"allocatable", e.allocatable},
          {"pods", std::move(pods)},
          {"node", e.node},
          {"state", e.shown.state},
          {"message", e.shown.message},
          {"check", e.obstacle.code},
          {"remedy", e.obstacle.message},
          {"provider", e.provider},
          {"plugin", e.plugin},
          {"policy", e.policy},
          {"profile", e.profile},
          {"source", e.source},
          {"strategy", e.strategy},
          {"client", to_json(e.client)},
          {"loaded", e.loaded},
          {"target", e.target},
          {"shows", std::move(rows)},
          {"slices", slices_json(e.slices)},
          {"sharedGPUs", shared_gpus_json(e.shared_gpus)},
          {"notes", e.notes},
          {"operands", e.operands},
          {"consumers", e.consumers},
          {"findings", std::move(findings)},
          {"options", e.options},
          {"next", e.next.text()}};
}

}  // namespace gso
