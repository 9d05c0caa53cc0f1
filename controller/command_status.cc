// One-shot lists into a World, its assessments, and the table.
#include "controller/command_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "controller/dynamic_watches.h"
#include "controller/version.h"
#include "k8sclient/curl_transport.h"
#include "k8sclient/load_connection.h"
#include "reconcilers/assess.h"
#include "reconcilers/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMessageWidth = 60;

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

std::string state_of(const NodeAssessment& assessment) {
  if (assessment.held) return "Held";
  if (assessment.situation == Situation::blocked) return fmt::format("Blocked({})", assessment.reason);
  return std::string(to_string(assessment.situation));
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

std::string shortened(const std::string& text) {
  return text.size() <= kMessageWidth ? text : text.substr(0, kMessageWidth - 3) + "...";
}

using Row = std::vector<std::string>;

void print_table(const std::vector<Row>& rows, std::ostream& out) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}", row[i], widths[i] + 3);
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

const char* severity_text(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::info:
      break;
  }
  return "info";
}

std::string or_dash(std::string_view text) {
  return text.empty() ? "-" : std::string(text);
}

asio::awaitable<void> read_and_end(k8s::ApiClient* client, PlannerSettings settings, World* world,
                                   std::vector<std::string>* incomplete, k8s::Result<void>* result) {
  *result = co_await read_world(client, settings, world, incomplete);
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
                  std::ostream& out, const std::vector<Finding>& kai) {
  bool trouble = false;
  Json document{
      {"nodes", Json::array()}, {"rollouts", Json::array()}, {"kai", Json::array()}, {"incomplete", incomplete}};
  for (const Finding& finding : kai) {
    document["kai"].push_back(
        {{"severity", severity_text(finding.severity)}, {"reason", finding.reason}, {"message", finding.message}});
  }
  std::vector<Row> rows{{"NODE", "STATE", "POLICY", "PROFILE", "REVISION", "TARGET", "ALLOCATABLE", "MESSAGE"}};
  for (const std::string& name : index.node_names()) {
    const Node* node = world.nodes.find(name);
    const NodeAssessment* assessment = index.assessment(name);
    if (node == nullptr || assessment == nullptr) continue;
    const std::string state = state_of(*assessment);
    trouble = trouble || state == "Failed" || state.starts_with("Blocked");
    std::string message(node->meta.annotations.get(kMessageAnnotation).value_or(""));
    if (message.empty()) message = assessment->message;
    document["nodes"].push_back({{"name", name},
                                 {"state", state},
                                 {"policy", assessment->policy.view()},
                                 {"profile", assessment->profile_ref.view()},
                                 {"revision", assessment->loaded.revision.view()},
                                 {"target", assessment->target.view()},
                                 {"allocatable", gpus_of(*node)},
                                 {"message", message}});
    rows.push_back({name, state, or_dash(assessment->policy.view()), or_dash(assessment->profile_ref.view()),
                    or_dash(assessment->loaded.revision.view()), or_dash(assessment->target.view()), gpus_of(*node),
                    shortened(message)});
  }
  std::vector<Row> rollouts{{"ROLLOUT", "PHASE", "POLICY", "KEY", "TO"}};
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
    out << "No GPU node is selected by a device plugin.\n";
  } else {
    print_table(rows, out);
  }
  if (rollouts.size() > 1) {
    out << "\n";
    print_table(rollouts, out);
  }
  for (const Finding& finding : kai) out << "\nkai-config: " << finding.message << " (" << finding.reason << ")\n";
  for (const std::string& missing : incomplete) out << "incomplete: " << missing << "\n";
  return trouble;
}

int run_status(const StatusOptions& status, const Options& options, std::ostream& out, std::ostream& err) {
  asio::io_context io(1);
  const std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  const auto fail = [&](const k8s::Error& error) {
    err << "gpu-sharing-operator status: " << error.message << "\n";
    return 2;
  };
  const k8s::ConnectionRequest request{options.kubeconfig, options.context};
  k8s::Result<k8s::Connection> connection = k8s::load_connection(request, k8s::process_environment(), clock.get());
  if (!connection) return fail(connection.error());
  connection->user_agent = "gpu-sharing-operator/" + version();
  const std::unique_ptr<k8s::Transport> transport =
      k8s::make_curl_transport(io.get_executor(), *std::move(connection), clock.get());
  k8s::ClientOptions client_options;
  client_options.max_retries = 1;  // Somebody is waiting.
  k8s::ApiClient client(transport.get(), clock.get(), client_options);
  World world;
  std::vector<std::string> incomplete;
  k8s::Result<void> result;
  const PlannerSettings settings = options.planner_settings();
  asio::co_spawn(io, read_and_end(&client, settings, &world, &incomplete, &result),
                 [&io](const std::exception_ptr& error) {
                   if (error != nullptr) std::rethrow_exception(error);
                   io.stop();
                 });
  io.run();
  if (!result) return fail(result.error());
  FleetIndex index;
  index.note_everything_changed();
  index.refresh(world, settings);
  const std::vector<Finding> kai = kai_findings(world, index, settings, clock->now());
  return print_status(world, index, incomplete, status.json, out, kai) ? 1 : 0;
}

}  // namespace gso
