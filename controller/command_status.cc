// One-shot lists into a World, its assessments, and the table.
#include "controller/command_status.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "controller/connected_command.h"
#include "controller/dynamic_watches.h"
#include "reconcilers/assess.h"
#include "reconcilers/facts.h"
#include "reconcilers/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

constexpr std::string_view kCommand = "gpu-sharing-operator status";

// Lists one scope into a store. `into` keeps what is there; objects that cannot be read are skipped.
template <class T>
asio::awaitable<k8s::Result<void>> list_into(k8s::ApiClient* client, k8s::Gvr gvr, k8s::ListOptions options,
                                             k8s::Result<T> (*project)(std::string_view), k8s::Store<T>* store) {
  k8s::ItemFunction sink([=](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) return {};
    k8s::Result<T> object = project(*json);
    if (object) store->apply(*std::move(object));
    return {};
  });
  const k8s::Result<std::string> listed = co_await client->list(gvr, options, &sink);
  if (!listed) co_return std::unexpected(listed.error());
  co_return k8s::Result<void>{};
}

// The same for a kind that may not be served. True when it is.
template <class T>
asio::awaitable<k8s::Result<bool>> list_if_served(k8s::ApiClient* client, k8s::Gvr gvr,
                                                  k8s::Result<T> (*project)(std::string_view), k8s::Store<T>* store) {
  store->mark_absent();
  const k8s::Result<bool> served = co_await client->served(gvr);
  if (!served || !*served) co_return served;
  const k8s::ListOptions everything;
  const k8s::Result<void> listed = co_await list_into<T>(client, gvr, everything, project, store);
  if (!listed) co_return std::unexpected(listed.error());
  co_return true;
}

asio::awaitable<k8s::Result<void>> list_scope(k8s::ApiClient* client, WatchScope scope, World* world) {
  k8s::ListOptions options;
  options.ns = scope.ns;
  for (const auto& [key, value] : scope.labels) options.label_selector.match_labels.emplace(key, value);
  if (!scope.name.empty()) options.field_selector = k8s::FieldSelector::equals("metadata.name", scope.name);
  const k8s::Gvr pods{"", "v1", "pods"};
  const k8s::Gvr configmaps{"", "v1", "configmaps"};
  const k8s::Gvr revisions{"apps", "v1", "controllerrevisions"};
  k8s::Result<void> listed;
  if (scope.kind == WatchScope::Kind::pods) {
    listed = co_await list_into<Pod>(client, pods, options, &project_pod, &world->operand_pods);
  } else if (scope.kind == WatchScope::Kind::configmaps) {
    listed = co_await list_into<ConfigMap>(client, configmaps, options, &project_configmap, &world->configmaps);
  } else {
    listed = co_await list_into<ControllerRevision>(client, revisions, options, &project_controller_revision,
                                                    &world->revisions);
  }
  co_return listed;
}

// What the table says of one node.
struct NodeLine {
  std::string state;
  std::string message;
};

NodeLine line_of(const Node& node, const NodeAssessment* assessment) {
  if (assessment == nullptr) return {"NoPlugin", "no device plugin DaemonSet selects the node"};
  const NodeAssessment& a = *assessment;
  NodeLine line{std::string(to_string(a.situation)), a.message};
  if (a.held) {
    line.state = "Held";
  } else if (a.situation == Situation::blocked) {
    line.state = fmt::format("Blocked({})", a.reason);
  } else if (a.situation == Situation::current && !a.matches) {
    line = {std::string(a.drift_at_install ? kPreexistingDrift : kDrift), shown_difference(a)};
  } else if (a.situation == Situation::current && a.drift_at_install) {
    line = {std::string(kUnproven),
            "its pods are older than the last change of the profile: what they loaded is not known"};
  }
  const std::string_view written = node.meta.annotations.get(kMessageAnnotation).value_or("");
  if (!written.empty()) line.message = written;
  if (line.message.empty()) line.message = a.would_break;
  return line;
}

std::string gpus_of(const Node& node) {
  std::string out;
  for (const auto& [resource, count] : node.allocatable) {
    std::string_view name = resource.view();
    if (name.starts_with("nvidia.com/")) name.remove_prefix(11);
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, count);
  }
  return out.empty() ? "-" : out;
}

TerminalWidth width_of_terminal() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string or_dash(std::string_view text) {
  return text.empty() ? "-" : std::string(text);
}

asio::awaitable<int> show_status(Session session, StatusOptions status, PlannerSettings settings, std::ostream* out,
                                 std::ostream* err) {
  World world;
  std::vector<std::string> incomplete;
  const k8s::Result<void> read = co_await read_world(session.client, settings, &world, &incomplete);
  if (!read) {
    *err << kCommand << ": " << read.error().message << "\n";
    co_return 2;
  }
  FleetIndex index;
  index.note_everything_changed();
  index.refresh(world, settings);
  const std::vector<Finding> kai = kai_findings(world, index, settings, session.clock->now());
  const bool trouble = print_status(world, index, incomplete, status.json, width_of_terminal(), *out, kai);
  co_return trouble ? 1 : 0;
}

}  // namespace

asio::awaitable<k8s::Result<void>> read_world(k8s::ApiClient* client, PlannerSettings settings, World* world,
                                              std::vector<std::string>* incomplete) {
  const k8s::Gvr nodes{"", "v1", "nodes"};
  const k8s::Gvr daemonsets{"apps", "v1", "daemonsets"};
  const k8s::Gvr clusterpolicies{"nvidia.com", "v1", "clusterpolicies"};
  const k8s::Gvr policies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
  const k8s::Gvr rollouts{"gpusharing.dev", "v1alpha1", "sharingrollouts"};
  world->nodes.mark_absent();
  world->daemonsets.mark_absent();
  world->operand_pods.mark_absent();
  world->configmaps.mark_absent();
  world->revisions.mark_absent();
  const k8s::ListOptions everything;
  k8s::Result<void> listed = co_await list_into<Node>(client, nodes, everything, &project_node, &world->nodes);
  if (!listed) co_return listed;
  listed = co_await list_into<DaemonSet>(client, daemonsets, everything, &project_daemonset, &world->daemonsets);
  if (!listed) co_return listed;
  const auto note = [&](const k8s::Result<bool>& served, const char* kind) {
    if (!served) incomplete->push_back(fmt::format("{}: {}", kind, served.error().message));
    return served && *served;
  };
  const k8s::Result<bool> cluster_policies =
      co_await list_if_served<ClusterPolicy>(client, clusterpolicies, &project_clusterpolicy, &world->clusterpolicies);
  note(cluster_policies, "clusterpolicies");
  world->clusterpolicies_forbidden = !cluster_policies;
  const k8s::Result<bool> our_policies =
      co_await list_if_served<SharingPolicy>(client, policies, &project_sharing_policy, &world->policies);
  const k8s::Result<bool> our_rollouts =
      co_await list_if_served<SharingRollout>(client, rollouts, &project_sharing_rollout, &world->rollouts);
  const bool policies_served = note(our_policies, "sharingpolicies");
  world->policies_served = note(our_rollouts, "sharingrollouts") && policies_served;
  const k8s::Gvr configs{"kai.scheduler", "v1", "configs"};
  const k8s::Gvr classes{"node.k8s.io", "v1", "runtimeclasses"};
  const k8s::Result<bool> kai =
      co_await list_if_served<KaiConfig>(client, configs, &project_kai_config, &world->kai.configs);
  world->kai.configs_served = note(kai, "configs.kai.scheduler");
  if (world->kai.configs_served) {
    const k8s::Result<bool> runtime_classes =
        co_await list_if_served<RuntimeClass>(client, classes, &project_runtime_class, &world->kai.runtime_classes);
    note(runtime_classes, "runtimeclasses");
  }
  const std::vector<WatchScope> scopes = wanted_scopes(*world, settings);
  for (const WatchScope& scope : scopes) {
    listed = co_await list_scope(client, scope, world);
    if (!listed) {
      incomplete->push_back(fmt::format("{}: {}", to_string(scope), listed.error().message));
      world->unsynced_namespaces.insert(scope.ns);
    }
  }
  co_return k8s::Result<void>{};
}

std::vector<Finding> kai_findings(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                  k8s::WallTime now) {
  const std::map<std::string, k8s::WallTime> observed;
  const std::map<std::string, NodeConsumers> consumers;
  const Snapshot snapshot{world, now, observed, consumers, settings};
  for (const Reconciler& reconciler : reconcilers()) {
    if (reconciler.name == kKaiConfig) return reconciler.plan(snapshot, index).findings;
  }
  return {};
}

bool print_status(const World& world, FleetIndex& index, const std::vector<std::string>& incomplete, bool json,
                  TerminalWidth width, std::ostream& out, const std::vector<Finding>& kai) {
  bool trouble = false;
  Json document{
      {"nodes", Json::array()}, {"rollouts", Json::array()}, {"kai", Json::array()}, {"incomplete", incomplete}};
  for (const Finding& finding : kai) {
    document["kai"].push_back(
        {{"severity", to_string(finding.severity)}, {"reason", finding.reason}, {"message", finding.message}});
  }
  std::vector<TextRow> rows{{"NODE", "STATE", "POLICY", "PROFILE", "REVISION", "TARGET", "ALLOCATABLE", "MESSAGE"}};
  std::map<std::string_view, const Node*> nodes;
  for (const auto& [key, node] : world.nodes.all()) {
    if (has_gpus(*node) || index.assessment(key.name) != nullptr) nodes.emplace(key.name, node.get());
  }
  const NodeAssessment none{};
  for (const auto& [name, node] : nodes) {
    const NodeAssessment* known = index.assessment(name);
    const NodeAssessment& a = known == nullptr ? none : *known;
    const NodeLine line = line_of(*node, known);
    trouble = trouble || line.state == "Failed" || line.state.starts_with("Blocked");
    document["nodes"].push_back({{"name", name},
                                 {"state", line.state},
                                 {"policy", a.policy.view()},
                                 {"profile", a.profile_ref.view()},
                                 {"revision", a.loaded.revision.view()},
                                 {"target", a.target.view()},
                                 {"allocatable", gpus_of(*node)},
                                 {"message", line.message}});
    rows.push_back({std::string(name), line.state, or_dash(a.policy.view()), or_dash(a.profile_ref.view()),
                    or_dash(a.loaded.revision.view()), or_dash(a.target.view()), gpus_of(*node), line.message});
  }
  std::vector<TextRow> rollouts{{"ROLLOUT", "PHASE", "POLICY", "KEY", "TO"}};
  for (const auto& [key, rollout] : world.rollouts.all()) {
    document["rollouts"].push_back({{"name", key.name},
                                    {"phase", rollout->phase},
                                    {"policy", rollout->policy},
                                    {"key", rollout->key},
                                    {"toRevision", rollout->to_revision}});
    rollouts.push_back({key.name, or_dash(rollout->phase), rollout->policy, rollout->key, rollout->to_revision});
  }
  std::sort(rollouts.begin() + 1, rollouts.end());
  std::sort(document["rollouts"].begin(), document["rollouts"].end(),
            [](const Json& a, const Json& b) { return a["name"] < b["name"]; });
  if (json) {
    out << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return trouble;
  }
  if (rows.size() == 1) {
    out << "No node has GPUs.\n";
  } else {
    print_table(rows, out, width);
  }
  if (rollouts.size() > 1) {
    out << "\n";
    print_table(rollouts, out, width);
  }
  for (const Finding& finding : kai) out << "\nkai-config: " << finding.message << " (" << finding.reason << ")\n";
  for (const std::string& missing : incomplete) out << "incomplete: " << missing << "\n";
  return trouble;
}

int run_status(const StatusOptions& status, const Options& options, std::ostream& out, std::ostream& err) {
  return run_connected(kCommand, options, err, [&](Session session) {
    return show_status(std::move(session), status, options.planner_settings(), &out, &err);
  });
}

}  // namespace gso
