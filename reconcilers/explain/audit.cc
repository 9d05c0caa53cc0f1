// The planners' findings, and problems that no planner reports.
#include "reconcilers/explain/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <tuple>
#include <utility>

#include "reconcilers/checks/catalogue.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/explain/pod.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"

namespace gso {

namespace {

// No planner reports an invalid profile that no node uses, although a node could be labelled with it later.
void add_unused_profiles(const World& world, const FleetIndex& index, Audit& out) {
  std::set<std::pair<std::string, std::string>> used;
  for (const std::string& name : index.node_names()) {
    const NodeAssessment* a = index.assessment(name);
    used.emplace(index.impl().installation_of(*a).id(), a->key.view());
  }
  const std::set<std::string> of_nos = keys_of_nos(world);
  std::set<ObjectKey> seen;
  for (const PluginInstallation& installation : index.installations()) {
    const ConfigMap* config_map = world.configmaps.find(installation.config_map_key());
    if (config_map == nullptr || !seen.insert(installation.config_map_key()).second) continue;
    for (const auto& [key, text] : config_map->data) {
      if (text == nullptr || used.contains({installation.id(), key}) || of_nos.contains(key)) continue;
      const ParsedProfile parsed = parse_profile(*text);
      if (parsed.valid()) continue;
      out.findings.push_back(
          {Severity::warning,
           {"v1", "ConfigMap", installation.ns, installation.config_map, ""},
           {kConfigInvalid, fmt::format("key {} (no node runs it now): {}", key, parsed.first_error())},
           key});
    }
  }
}

// What takes a node's GPUs out of service. Statuses and metrics have these, but no planner reports them as findings.
void add_outage(const ReadingPass& pass, const Node& node, const NodeAssessment& a, const ShownState& shown,
                Audit& out) {
  const ObjectRef ref = node_ref(node.meta.name);
  if (a.phase == Phase::failed || shown.state == to_string(Phase::failed)) {
    const Command next = next_step(pass, node, &a, shown.state);
    const Command retry = start_command(a.policy.view());
    out.findings.push_back(found(
        Severity::error, ref, kVerificationFailed,
        fmt::format("the node did not verify its last change{}. {}Fix the cause, then {}",
                    shown.message.empty() ? std::string() : ": " + shown.message,
                    next.empty() || next == retry ? std::string() : fmt::format("Look further: `{}`. ", next.text()),
                    to_run(pass.world(), retry))));
    return;
  }
  // During a change of the operator no GPU is allocatable for some seconds: verifyTimeout decides about those nodes.
  const bool changes = a.in_change() || (shown.state == kUnknown && a.change != nullptr);
  const bool expects =
      a.expectation != nullptr && (!a.expectation->capacity.empty() || !a.expectation->divisible.empty());
  if (!node.ready || serves_gpus(node) || !expects || changes) return;
  // Something else is at work there, which ends by itself or which a finding of its own names.
  const bool explained = !a.holder.empty() || a.loads_by_itself() || a.phase == Phase::following_daemonset;
  out.findings.push_back(found(explained ? Severity::warning : Severity::error, ref, kNoneAllocatable,
                               "the node is Ready and should serve GPUs, but none is allocatable"));
}

// A Ready node that a change of the operator keeps from pods: it is cordoned for the change, or restarts its pods.
bool is_in_change_of_operator(const Node& node, const NodeAssessment* a) {
  if (a == nullptr || !node.ready) return false;
  const bool failed = a->change != nullptr && a->change->failed;
  return a->in_change() ||
         (!failed && node.unschedulable && is_cordoned_by_operator(node) && cordon_text(node, a).empty());
}

// Names a node whose GPUs cannot be used, because no other finding would. `continues`: an operator runs and may finish
// the change, as far as that is known.
Finding mid_change(const ReadingPass& pass, const Node& node, const NodeAssessment* a, bool continues) {
  const bool observes = pass.settings().rollouts == PolicyMode::observe;
  const std::string operator_runs =
      fmt::format("an operator runs{}", observes ? " with a max-mode other than Observe" : "");
  if (a != nullptr && a->is_held()) {
    return found(
        Severity::warning, node_ref(node.meta.name), kHeldMidChange,
        fmt::format("held mid-change by a person ({}): no new pod gets its GPUs until {}whoever set that removes "
                    "it: `{}`",
                    describe_holder(a->holder, node), continues ? "" : operator_runs + " and ",
                    lift_hold_command(node).line));
  }
  if (continues) {
    // A refused eviction is a finding of its own.
    const std::string pods =
        refusal_of(pass.world(), node.meta.name) ? std::string() : blocking_pods_of(pass.world(), node.meta.name);
    return found(Severity::info, node_ref(node.meta.name), kInChange,
                 fmt::format("in change by the operator{}: its GPUs can be used again when the change ends",
                             pods.empty() ? "" : fmt::format(" ({})", pods)));
  }
  const bool cordoned = node.unschedulable && is_cordoned_by_operator(node);
  return found(Severity::warning, node_ref(node.meta.name), kLeftMidChange,
               fmt::format("left mid-change by the operator: {} {}",
                           cordoned ? "the node stays cordoned until" : "the change continues once", operator_runs));
}

// `hami`: the device plugins of HAMi.
void add_node(ReadingPass& pass, const Node& node, const FleetIndex& index, const std::vector<Operand>& hami,
              Audit& out) {
  ++out.nodes;
  const NodeAssessment* a = index.assessment(node.meta.name);
  const ObjectRef ref = node_ref(node.meta.name);
  const ShownState shown = shown_state(pass, node);
  // Without the node's name, so that equal findings of many nodes are printed once.
  if (!node.ready)
    out.findings.push_back(found(Severity::warning, ref, kNodeNotReady, std::string(not_ready_text(false))));
  if (auto cordon = cordon_finding(node, a, "NODE")) out.findings.push_back(*std::move(cordon));
  if (a == nullptr) {
    const bool of_nos = is_partitioned_by_nos(node);
    const bool of_others = of_nos || hami_plugin_on(hami, node) != nullptr;
    const bool served = offers_gpus(node);
    ++out.plugins[of_nos ? "nos" : of_others ? "HAMi" : served ? "unknown" : "none"];
    const std::int64_t uncut = uncut_gpus(node);
    const std::string more =
        !served     ? ": no pod can get its GPUs"
        : uncut > 0 ? fmt::format(". {} without slices: a pod that asks for one gets it cut", counted(uncut, "GPU"))
                    : "";
    const Severity severity = !served ? Severity::error : of_others ? Severity::info : Severity::warning;
    out.findings.push_back(found(severity, ref, shown.state, shown.message + more));
    return;
  }
  const Operand* plugin = index.impl().installation_of(*a).find(Component::plugin, node);
  ++out.plugins[plugin == nullptr ? "unknown" : plugin->version.to_string()];
  ++out.profiles[shown.state == kUnknown ? "unknown" : shown_profile(a->profile_ref.view())];
  if (shown.state == kUnproven) out.findings.push_back(found(Severity::warning, ref, shown.state, shown.message));
  // What its profile should serve could not be read.
  if (pass.world().unsynced_namespaces.contains(index.impl().installation_of(*a).ns)) return;
  const bool waits = a->in_change() || a->phase == Phase::pending;
  if (const auto refused = waits ? refusal_of(pass.world(), node.meta.name) : std::nullopt)
    out.findings.push_back({Severity::warning, ref, *refused});
  add_outage(pass, node, *a, shown, out);
}

// "3 GPU pods cannot run: NotSelected 2, RequestRefused 1". `one`, `several`: the verb.
std::string pods_text(const std::map<std::string, std::int64_t>& counts, std::string_view one, std::string_view several,
                      std::size_t beyond) {
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, std::int64_t>::second);
  std::int64_t pods = 0;
  std::vector<std::string> causes;
  for (const auto& [code, count] : sorted) {
    pods += count;
    causes.push_back(fmt::format("{} {}", code, count));
  }
  return fmt::format("{} {}: {}{}", counted(pods, "GPU pod"), pods == 1 ? one : several, fmt::join(causes, ", "),
                     beyond == 0 ? "" : fmt::format(" (and {} more pods were not checked)", beyond));
}

// What keeps a pod from running, or lets it wait.
struct PodVerdict {
  std::string code;  // Empty: nothing, as far as that shows.
  bool waits = false;
};

PodVerdict verdict_of(const Snapshot& snapshot, const FleetIndex& index, const Plan& plan, std::string_view json) {
  const k8s::Result<PodExplanation> pod = explain_pod(snapshot, index, json, plan);
  const PodCause* why = pod ? pod->deciding() : nullptr;
  // One whose containers are being created starts in a moment.
  if (why == nullptr || why->severity == Severity::info || pod->lacks_nodes()) return {};
  return {why->reason.code, pod->only_waits()};
}

// Each namespace has its turn: the pods of one hide none of another.
std::vector<const UnstartedPods::Unstarted*> by_turns(const UnstartedPods& pods) {
  std::map<std::string_view, std::size_t> of_namespace;
  std::multimap<std::size_t, const UnstartedPods::Unstarted*> turns;
  for (const UnstartedPods::Unstarted& each : pods.pods) turns.emplace(of_namespace[each.pod.meta.ns.view()]++, &each);
  std::vector<const UnstartedPods::Unstarted*> out;
  for (const auto& [turn, each] : turns) out.push_back(each);
  return out;
}

// All pods that cannot run are one problem, and all that wait another one.
void add_pods(const Snapshot& snapshot, const FleetIndex& index, const Plan& plan, const UnstartedPods& pods,
              Audit& out) {
  if (pods.pods.empty()) return;
  // What holds for one pod of a workload holds for the others that have no node either. Each is compared with all
  // nodes.
  constexpr std::size_t kMostWorkloads = 200;
  std::map<std::string, PodVerdict> by_workload;
  std::size_t beyond = pods.beyond;
  std::vector<ObjectRef> cannot_run;
  std::vector<ObjectRef> waiting;
  for (const UnstartedPods::Unstarted* each : by_turns(pods)) {
    const auto& [pod, json] = *each;
    const k8s::OwnerReference* owner = pod.node_name.empty() ? pod.meta.controller() : nullptr;
    const std::string workload = owner == nullptr ? k8s::to_string(pod.meta.key()) : std::string(owner->uid.view());
    if (by_workload.size() >= kMostWorkloads && !by_workload.contains(workload)) {
      ++beyond;
      continue;
    }
    const auto [verdict, is_new] = by_workload.try_emplace(workload);
    if (is_new) verdict->second = verdict_of(snapshot, index, plan, json);
    const auto& [code, waits] = verdict->second;
    if (code.empty()) continue;
    (waits ? waiting : cannot_run).push_back(pod_ref(pod.meta));
    ++(waits ? out.waiting : out.cannot_run)[code];
  }
  std::erase_if(out.findings, [&](const Finding& finding) {
    return out.cannot_run.contains(finding.why.code) &&
           std::ranges::find(cannot_run, finding.object) != cannot_run.end();
  });
  const auto add = [&](const std::vector<ObjectRef>& all, Severity severity, std::string_view code, std::string text) {
    for (const ObjectRef& pod : all) out.findings.push_back(found(severity, pod, code, text));
  };
  add(cannot_run, Severity::error, kPodsCannotRun, pods_text(out.cannot_run, "cannot run", "cannot run", beyond));
  add(waiting, Severity::info, kPodsWait, pods_text(out.waiting, "waits", "wait", beyond));
}

// The first object of that kind; null: the problem has none.
const ObjectRef* object_of(const AuditProblem& problem, std::string_view kind) {
  const auto at = std::ranges::find(problem.objects, kind, &ObjectRef::kind);
  return at == problem.objects.end() ? nullptr : &*at;
}

// The first thing to type. `of_rollouts`: the messages of the findings about rollouts.
Command command_of(const World& world, const FleetIndex& index, const std::set<std::string>& of_rollouts,
                   const AuditProblem& problem) {
  const std::string& code = problem.reason.code;
  // Also where no SharingRollout exists yet, and the problem is one of its policy.
  if (world.policies_served && of_rollouts.contains(problem.reason.message)) return rollout_status_command();
  // Not all policies that have problems exist, and without the CRDs none does.
  if (const ObjectRef* policy = object_of(problem, "SharingPolicy")) {
    if (!world.policies_served) return install_crds_command();
    if (world.policies.find(policy->name) == nullptr) return {"kubectl get sharingpolicies"};
  }
  const ObjectRef* node = object_of(problem, "Node");
  if (const NodeAssessment* a = node == nullptr ? nullptr : index.assessment(node->name)) {
    // Corrects the setting of the default key.
    Command setting;
    if (code == kDefaultKeyNotFound || code == kDefaultMissing) setting = default_key_command(world, index.impl(), *a);
    if (code == kNodesWouldBreak) setting = announced_default_command(index.impl(), *a);
    if (!setting.empty()) return setting;
    if (code == kDefaultInvalid)
      return correct_key_command(world, index.impl(), index.impl().installation_of(*a).config_map_key());
  }
  const bool of_config_map = code == kConfigInvalid || code == kConfigMapMissing;
  if (const ObjectRef* config_map = of_config_map ? object_of(problem, "ConfigMap") : nullptr)
    return correct_key_command(world, index.impl(), {config_map->ns, config_map->name});
  const ObjectRef& first = problem.objects.front();
  if (code == kMpsByLabelUnsupported)
    for (const PluginInstallation& installation : index.installations())
      if (const Operand* plugin = first_plugin(installation); plugin != nullptr && daemonset_ref(plugin->key) == first)
        return {fmt::format("kubectl get nodes --label-columns {}", plugin->node_label)};
  if (code == kNodesWouldShrink)
    for (const std::string& name : index.impl().nodes_in(Bucket::would_shrink))
      if (const NodeAssessment& a = *index.assessment(name); index.impl().installation_of(a).owner == first.name)
        return announced_default_command(index.impl(), a);
  if (code == kNodeNotReady) return describe_node_command(first.name);
  if (first.kind == "Node") return explain_command(first.name);
  if (code == kPodsCannotRun || code == kPodsWait) return explain_command(first.ns + "/" + first.name);
  if (code == kCrdsGone) return install_crds_command();
  if (first.kind == "SharingRollout") return rollout_status_command();
  if (first.kind.empty() || first.name.empty()) return {};
  return {fmt::format("kubectl describe {} {}{}", kubectl_name(first.kind), first.name,
                      first.ns.empty() ? std::string() : " --namespace " + first.ns)};
}

// Equal findings of many nodes are one problem, so that their texts name no node before.
void complete(const World& world, const FleetIndex& index, const std::set<std::string>& of_rollouts,
              AuditProblem& problem) {
  problem.cure.command = command_of(world, index, of_rollouts, problem);
  std::vector<std::string> nodes;
  std::set<std::string_view> remedies;  // By object, whose policies can differ.
  for (const ObjectRef& object : problem.objects) {
    if (object.kind == "Node") nodes.push_back(object.name);
    remedies.insert(remedy_here(world, index.impl(), problem.reason.code, object));
  }
  const std::string_view remedy = remedies.size() == 1 ? *remedies.begin() : remedy_of(problem.reason.code);
  if (!remedy.empty()) problem.cure.options = {name_nodes_in(std::string(remedy), nodes)};
  problem.reason.message = name_nodes_in(std::move(problem.reason.message), nodes);
}

}  // namespace

std::int64_t Audit::count(Severity severity) const {
  return std::ranges::count(problems, severity, &AuditProblem::severity);
}

std::int64_t Audit::objects(Severity severity) const {
  return std::ranges::count(findings, severity, &Finding::severity);
}

namespace {

// Charges the GPUs that no pod can get to what keeps them from pods, each once.
NodeGpus charged(const ReadingPass& pass, const Node& node, const NodeAssessment* a) {
  NodeGpus out{gpus_of(pass.world(), pass.settings(), pass.index(), node, a), &node, a};
  const bool failed = a != nullptr && a->change != nullptr && a->change->failed;
  out.of_its_change = is_in_change_of_operator(node, a) || (failed && is_cordoned_by_operator(node));
  const bool by_somebody = !cordon_text(node, a).empty() && !is_cordoned_by_operator(node);
  if (out.of_its_change && !by_somebody) out.lost += std::exchange(out.cordoned, 0);
  if (a != nullptr && !a->matches()) out.pods = operand_problems(pass.world(), pass.index(), node, *a);
  return out;
}

// Nodes serve what they loaded before the profile became invalid, which is no reason to wait.
void warn_of_restarts(std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    const bool in_use = finding.severity == Severity::error && finding.object.kind == "ConfigMap";
    if (in_use && finding.why.code == kConfigInvalid)
      finding.why.message +=
          ". Nodes that still serve GPUs lose them at the next restart of their pods, as by a reboot";
  }
}

}  // namespace

Audit audit(const Snapshot& snapshot, FleetIndex& index, bool operator_runs, const UnstartedPods& pods) {
  Audit out;
  const Plan plan = plan_all(snapshot, index, {.synced = everything_synced});
  out.findings = all_findings(snapshot, index, plan);
  const std::vector<Operand> hami = hami_plugins(snapshot.world);
  GpusByNode gpus;
  ReadingPass pass(snapshot, index);
  const bool changes_continue = operator_runs && snapshot.settings.rollouts != PolicyMode::observe;
  for (const auto& [key, node] : snapshot.world.nodes.all()) {
    const NodeAssessment* a = index.assessment(key.name);
    if (a == nullptr && !has_gpus(*node)) continue;
    add_node(pass, *node, index, hami, out);
    const NodeGpus& count = gpus.emplace(key.name, charged(pass, *node, a)).first->second;
    if (count.lost + count.cordoned > 0 && is_in_change_of_operator(*node, a))
      out.findings.push_back(mid_change(pass, *node, a, changes_continue));
    out.gpus.total += count.total;
    out.gpus.lost += count.lost + count.cordoned;
    out.gpus.mig_slices += count.mig_slices;
    if (count.unknown) out.uncounted.push_back(key.name);
  }
  std::ranges::sort(out.uncounted);
  std::ranges::move(neighbours(snapshot.world, index), std::back_inserter(out.findings));
  const auto others = static_cast<std::ptrdiff_t>(out.findings.size());
  add_waiting_rollouts(pass, out.findings);
  std::set<std::string> of_rollouts;
  for (const Finding& finding : out.findings | std::views::drop(others))
    of_rollouts.insert(shown_message(finding.why.message));
  add_unused_profiles(snapshot.world, index, out);
  keep_root_causes(snapshot.world, index, changes_continue, out.findings);
  warn_of_restarts(out.findings);
  std::ranges::move(findings_of_settings(snapshot.world, index.impl()), std::back_inserter(out.findings));
  add_pods(snapshot, index, plan, pods, out);
  for (Finding& finding : out.findings) finding.why.message = shown_message(finding.why.message);
  std::ranges::sort(out.findings, [](const Finding& a, const Finding& b) {
    return std::tie(a.severity, a.why.code, a.object.kind, a.object.ns, a.object.name, a.why.message) <
           std::tie(b.severity, b.why.code, b.object.kind, b.object.ns, b.object.name, b.why.message);
  });
  out.problems = merge_findings(index.impl(), out.findings, gpus);
  for (AuditProblem& problem : out.problems) complete(snapshot.world, index, of_rollouts, problem);
  return out;
}

}  // namespace gso
