// Findings that follow from another finding: one cause is one problem, which names its consequences.
#include "reconcilers/explain/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

bool is_about_node(const Finding& finding) {
  return finding.object.kind == "Node";
}

using Names = std::set<std::string>;

// The names of the nodes that have such a finding, of that severity or of any.
Names nodes_with(const std::vector<Finding>& findings, std::string_view reason, std::optional<Severity> severity = {}) {
  Names out;
  for (const Finding& finding : findings) {
    const bool is_meant = finding.why.code == reason && finding.severity == severity.value_or(finding.severity);
    if (is_meant && is_about_node(finding)) out.insert(finding.object.name);
  }
  return out;
}

// Findings for one of these reasons about one of these nodes go, because they follow from another one. Returns the
// nodes that had some.
Names drop_consequences(std::vector<Finding>& findings, const Names& nodes,
                        std::initializer_list<std::string_view> reasons) {
  Names out;
  std::erase_if(findings, [&](const Finding& finding) {
    const bool follows = is_about_node(finding) && nodes.contains(finding.object.name) &&
                         std::ranges::find(reasons, finding.why.code) != reasons.end();
    if (follows) out.insert(finding.object.name);
    return follows;
  });
  return out;
}

bool is_of_default_key(std::string_view code) {
  return code == kDefaultKeyNotFound || code == kDefaultMissing;
}

// A default key that does not exist is reported for the nodes (DefaultKeyNotFound, DefaultMissing), and again as
// ConfigInvalid for a ConfigMap that is right: one problem is enough, and the cause is in the plugin's setting.
void drop_blamed_config_maps(std::vector<Finding>& findings) {
  Names found;
  for (const Finding& finding : findings) found.insert(fmt::format("{} {}", finding.why.code, finding.why.message));
  std::erase_if(findings, [&](const Finding& finding) {
    return is_of_default_key(finding.cause) && finding.object.kind == "ConfigMap" &&
           found.contains(fmt::format("{} {}", finding.cause, finding.why.message));
  });
}

// A ConfigMap that does not exist is reported for the DaemonSets that mount it or the ClusterPolicy that names it, and
// as ConfigInvalid for its nodes: the second becomes an object of the first problem, for the GPUs that it costs.
void join_missing_config_maps(const World& world, const FleetIndex& index, std::vector<Finding>& findings) {
  const OperandSetup setup = operand_setup(world, index.impl().discovery);
  for (const WantedConfigMap& wanted : setup.config_maps) {
    const auto missing = std::ranges::find_if(findings, [&](const Finding& finding) {
      return finding.why.code == kConfigMapMissing && finding.object == wanted.wanted_by;
    });
    if (wanted.found != nullptr || missing == findings.end()) continue;
    const Finding problem = *missing;
    for (Finding& finding : findings) {
      if (finding.why.code != kConfigInvalid || finding.object != config_map_ref(wanted.key)) continue;
      finding.severity = problem.severity;
      finding.why = problem.why;
    }
  }
}

// What follows from a kubelet that does not report: nothing else about what the node shows is known to be wrong.
void drop_consequences_of_not_ready(std::vector<Finding>& findings) {
  const Names differ =
      drop_consequences(findings, nodes_with(findings, kNodeNotReady),
                        {kNodesNotReady, kDrift, kPreexistingDrift, kUnproven, kEditNotLive, kLabelsMissing});
  for (Finding& finding : findings)
    if (finding.why.code == kNodeNotReady && differ.contains(finding.object.name))
      finding.why.message = not_ready_text(true);
}

// The finding that says why the node cannot serve: that its pods do not run because of MPS on MIG, whatever it ran
// before; or, of a node that runs its target, an error of a check that would block it. Many equal nodes have one about
// their plugin's DaemonSet.
Finding* cause_of_outage(const FleetIndex& index, const NodeAssessment& a, const std::string& node,
                         std::vector<Finding>& findings) {
  const auto mig = std::ranges::find_if(findings, [&](const Finding& finding) {
    return finding.why.code == kMigEnabled && is_about_node(finding) && finding.object.name == node;
  });
  if (mig != findings.end() && !a.pods_ready) return &*mig;
  if (a.phase != Phase::up_to_date || a.setup == nullptr) return nullptr;
  const PluginInstallation& installation = index.impl().installation_of(a);
  for (const Diagnostic& d : *a.setup) {
    const Check* check = d.severity == Severity::error ? find_check(d.code) : nullptr;
    if (check == nullptr || check->blocks.empty()) continue;
    for (Finding& finding : findings) {
      if (finding.why.code != d.code) continue;
      const ObjectRef& object = finding.object;
      if (is_about_node(finding) && object.name == node) return &finding;
      const bool of_plugin =
          object.kind == "DaemonSet" && std::ranges::any_of(installation.operands, [&](const Operand& operand) {
            return operand.key == ObjectKey{object.ns, object.name};
          });
      if (of_plugin) return &finding;
    }
  }
  return nullptr;
}

// That a node does not show its profile, or has no allocatable GPU, is a consequence where a finding says why it cannot
// serve.
void drop_explained_outages(const FleetIndex& index, std::vector<Finding>& findings) {
  constexpr std::string_view kConsequence = "; none of the node's GPUs is allocatable";
  const Names serve_nothing = nodes_with(findings, kNoneAllocatable);
  Names explained = serve_nothing;
  for (const std::string_view drift : {kDrift, kPreexistingDrift}) explained.merge(nodes_with(findings, drift));
  std::set<Finding*> causes;
  std::erase_if(explained, [&](const std::string& node) {
    const NodeAssessment* a = index.assessment(node);
    Finding* cause = a == nullptr ? nullptr : cause_of_outage(index, *a, node, findings);
    if (cause != nullptr && is_about_node(*cause)) causes.insert(cause);
    return cause == nullptr;
  });
  for (Finding* cause : causes) {
    cause->severity = Severity::error;  // As the outage that it stands for.
    const Check* check = find_check(cause->why.code);
    const bool says_it = check != nullptr && check->says_no_gpus;
    if (!says_it && serve_nothing.contains(cause->object.name)) cause->why.message += kConsequence;
  }
  (void)drop_consequences(findings, explained, {kNoneAllocatable, kDrift, kPreexistingDrift});
}

// A node that failed keeps the operator's cordon until it is retried, and the failure says what to do. One that was
// left in mode Observe is left mid-change: once is enough.
void drop_second_reports(const World& world, bool changes_continue, std::vector<Finding>& findings) {
  Names failed = nodes_with(findings, kVerificationFailed);
  std::erase_if(failed, [&](const std::string& name) {
    const Node* node = world.nodes.find(name);
    return node == nullptr || !is_cordon_of_failure(*node);
  });
  (void)drop_consequences(findings, failed, {kCordoned});
  Names left = nodes_with(findings, kLeftMidChange);
  if (!changes_continue) left.merge(nodes_with(findings, kHeldMidChange));
  (void)drop_consequences(findings, left, {kObserve});
}

// New pods that do not start are the problem of a node in a change: it does not end by itself.
void drop_changes_with_failing_pods(std::vector<Finding>& findings) {
  Names failing;
  for (Finding& finding : findings) {
    if (!is_about_node(finding) || !cannot_start(finding.why.code)) continue;
    finding.severity = Severity::error;
    failing.insert(finding.object.name);
  }
  (void)drop_consequences(findings, failing, {kInChange});
}

}  // namespace

std::string_view not_ready_text(bool differs) {
  return differs ? "the node is NotReady: no new pod gets its GPUs, what its profile should show is not there or not "
                   "known, and it uses 1 slot of maxUnavailable"
                 : "the node is NotReady: no new pod gets its GPUs, and it uses 1 slot of maxUnavailable";
}

void keep_root_causes(const World& world, const FleetIndex& index, bool changes_continue,
                      std::vector<Finding>& findings) {
  drop_blamed_config_maps(findings);
  join_missing_config_maps(world, index, findings);
  drop_consequences_of_not_ready(findings);
  drop_explained_outages(index, findings);
  // A node without any allocatable GPU does not show its profile either: that it has none is the problem.
  (void)drop_consequences(findings, nodes_with(findings, kNoneAllocatable, Severity::error),
                          {kDrift, kPreexistingDrift});
  drop_second_reports(world, changes_continue, findings);
  drop_changes_with_failing_pods(findings);
  // Every invalid key has a finding of its own here, with the error: it is printed once.
  for (Finding& finding : findings)
    if (!finding.brief.empty()) finding.why.message = finding.brief;
}

}  // namespace gso
