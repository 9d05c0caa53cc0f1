// Lists into a World, and what follows from a list of all pods.
#include "controller/reading/cluster_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "controller/config/logging.h"
#include "controller/config/options.h"
#include "controller/kai/kai_lookups.h"
#include "controller/reading/node_consumers.h"
#include "controller/reading/reads.h"
#include "controller/runtime/task_group.h"
#include "controller/watches/dynamic_watches.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/registry.h"

namespace gso {

namespace asio = boost::asio;

namespace {

// What a look goes into, and what it says of what is missing.
struct Look {
  k8s::Reader* client = nullptr;
  std::vector<std::string>* incomplete = nullptr;
  DiscoveryOnce* discovery = nullptr;
};

// Lists one scope into a store, and keeps what is there.
template <class T>
asio::awaitable<k8s::Result<void>> list_into(Look look, k8s::Gvr gvr, k8s::ListOptions options,
                                             k8s::Result<T> (*project)(std::string_view), k8s::Store<T>* store) {
  k8s::Result<ListedObjects<T>> listed = co_await list_objects<T>(look.client, gvr, options, project);
  if (!listed) co_return std::unexpected(listed.error());
  for (T& object : listed->objects) store->apply(std::move(object));
  if (!listed->unreadable.empty()) append_unique(*look.incomplete, describe_unreadable(gvr, listed->unreadable));
  co_return k8s::Result<void>{};
}

// The same for a kind that might not be served; returns true if it is served.
template <class T>
asio::awaitable<k8s::Result<bool>> list_if_served(Look look, k8s::Gvr gvr, k8s::Result<T> (*project)(std::string_view),
                                                  k8s::Store<T>* store) {
  store->mark_absent();
  const k8s::Result<bool> served = co_await look.discovery->served(gvr);
  if (!served)
    co_return std::unexpected(k8s::Error{served.error().reason, served.error().http_status,
                                         fmt::format("{}: {}", gvr.resource, served.error().message)});
  if (!*served) co_return false;
  const k8s::ListOptions everything;
  const k8s::Result<void> listed = co_await list_into<T>(look, gvr, everything, project, store);
  if (!listed) co_return std::unexpected(listed.error());
  co_return true;
}

asio::awaitable<k8s::Result<void>> list_scope(const Look& look, const WatchScope& scope, World* world) {
  k8s::ListOptions options;
  select(scope, options);
  asio::awaitable<k8s::Result<void>> listing;
  each_operand_kind(*world, [&](const k8s::Gvr& gvr, auto& store, auto project) {
    if (gvr == resource_of(scope.kind)) listing = list_into(look, gvr, options, project, &store);
  });
  return listing;
}

// Only pods that say one of these words are of interest: operands, consumers, KAI's and its scaling pods.
bool speaks_of_gpus(std::string_view json, std::string_view scaling) {
  static constexpr std::array<std::string_view, 4> kWords{"nvidia", "gpu-", "runai", "\"resourceClaims\""};
  const auto has = [&](std::string_view word) { return json.find(word) != std::string_view::npos; };
  return std::ranges::any_of(kWords, has) || has(scaling);
}

// Its CPUs and memory count there (SlicePod). Kept in doubt: a text that only looks like a node's name harms nothing.
bool is_bound_to(std::string_view json, const std::vector<std::string>& nodes) {
  constexpr std::string_view kField = R"("nodeName":")";
  if (nodes.empty()) return false;
  for (auto at = json.find(kField); at != std::string_view::npos; at = json.find(kField, at + 1)) {
    const std::string_view name = json.substr(at + kField.size());
    if (std::ranges::binary_search(nodes, name.substr(0, name.find('"')))) return true;
  }
  return false;
}

// `scaling`: the namespace of KAI's scaling pods. `partitioned`: nodes whose pods are all wanted, sorted.
asio::awaitable<k8s::Result<void>> list_pods(k8s::Reader* client, std::string scaling,
                                             std::vector<std::string> partitioned, ClusterPods* pods) {
  k8s::ItemFunction sink([pods, &scaling, &partitioned](std::optional<std::string_view> json) -> k8s::Result<void> {
    if (!json) {
      pods->clear();
      return {};
    }
    if (!speaks_of_gpus(*json, scaling) && !is_bound_to(*json, partitioned)) return {};
    return pods->add(*json);
  });
  const k8s::ListOptions everywhere;
  const k8s::Result<std::string> listed = co_await client->list(resources::pods, everywhere, &sink);
  if (!listed) co_return unlisted(listed.error(), resources::pods);
  co_return k8s::Result<void>{};
}

// The binder's Deployment and the schemas of KAI's CRDs: what the collection of reservations rests on. The first thing
// that cannot be read is said.
asio::awaitable<k8s::Result<void>> read_binder(Look look, KaiSettings settings, KaiWorld* kai) {
  const KaiView view = view_kai(*kai, settings);
  kai->deployments.mark_absent();
  kai->schemas.mark_absent();
  k8s::ListOptions binder;
  binder.ns = view.ns;
  binder.field_selector = k8s::FieldSelector::equals("metadata.name", std::string(kai::kBinder));
  k8s::Result<void> listed =
      co_await list_into<Deployment>(look, resources::deployments, binder, &project_deployment, &kai->deployments);
  if (!listed) co_return listed;
  static constexpr std::array<std::string_view, 2> kCrds{kai::kConfigCrd, kai::kBindRequestCrd};
  for (std::size_t i = 0; i < kCrds.size(); ++i) {
    const std::string_view name = kCrds[i];
    k8s::ListOptions crd;
    crd.field_selector = k8s::FieldSelector::equals("metadata.name", std::string(name));
    listed = co_await list_into<KaiSchema>(look, resources::custom_resource_definitions, crd, &project_kai_schema,
                                           &kai->schemas);
    if (!listed) co_return listed;
  }
  kai->schemas_known = true;
  co_return k8s::Result<void>{};
}

// KAI's kinds beside kai-config. What is missing holds its planners.
asio::awaitable<k8s::Result<void>> read_kai(Look look, KaiSettings settings, KaiWorld* kai) {
  const k8s::Result<bool> served =
      co_await list_if_served<BindRequest>(look, resources::bind_requests, &project_bind_request, &kai->bind_requests);
  if (!served) co_return std::unexpected(served.error());
  kai->bind_requests_served = *served;
  if (!kai->configs_served && !kai->bind_requests_served) co_return k8s::Result<void>{};
  co_return co_await read_binder(look, settings, kai);
}

KaiWants wants_of(const ClusterView& view, const PlannerSettings& settings) {
  FleetIndex index;
  const Timers timers;
  const Snapshot snapshot{view.world, view.now, timers, view.consumers, settings};
  const ReconcilerFilter filter{.synced = everything_synced};
  return plan_all(snapshot, index, filter).kai_wanted;
}

// The answers belong to the moment of the one look, like everything that was listed for it.
void count_as_one_look(LookupResults& lookups, WallTime now) {
  const k8s::MonoTime at = one_look(now);
  for (auto& [group, answer] : lookups.groups) answer.at = at;
  for (auto& [pod, answer] : lookups.pods) answer.at = at;
  for (auto& [config_map, answer] : lookups.config_maps) answer.at = at;
  if (lookups.waiting) lookups.waiting->at = at;
  if (lookups.binder_lease) lookups.binder_lease->at = at;
}

// What KAI's planners want to know besides. What one answer leads to is asked in the next round.
asio::awaitable<void> look_up(k8s::Reader* client, k8s::Clock* clock, PlannerSettings settings, ClusterView* view) {
  constexpr int kMostRounds = 4;
  constexpr std::chrono::seconds kPatience(30);
  KaiReader checks(client, clock, &view->world, &settings.kai, Logger::silent());
  TaskGroup tasks(clock);
  LookupQueue::Parts parts;
  parts.reads = &checks;
  parts.clock = clock;
  parts.world = &view->world;
  parts.settings = &settings.kai;
  parts.log = Logger::silent();
  parts.tasks = &tasks;
  parts.executor = co_await asio::this_coro::executor;
  parts.wake = [](k8s::Duration) {};
  LookupQueue lookups(std::move(parts));
  for (int round = 0; round < kMostRounds; ++round) {
    const KaiWants wants = wants_of(*view, settings);
    if (wants.empty()) break;
    lookups.want(wants);
    const k8s::MonoTime deadline = clock->monotonic() + kPatience;
    const bool ended = co_await tasks.join_until(deadline);
    count_as_one_look(view->world.kai.lookups, view->now);
    if (!ended) break;
  }
  lookups.stop();
  tasks.cancel();
  co_await tasks.join();
}

// Whether a kind is served. Adds the error to `incomplete` if the kind cannot be read.
Served note(const k8s::Result<bool>& served, std::vector<std::string>* incomplete) {
  if (!served) append_unique(*incomplete, served.error().message);
  return !served ? Served::unknown : *served ? Served::yes : Served::no;
}

// Four lists at once keep the API server's share of one person small (client-go's discovery uses as many).
constexpr std::size_t kListsAtOnce = 4;

// Whether what was read so far makes all further readings useless.
using IsUseless = std::function<bool()>;

// Returns when all that were begun have ended.
asio::awaitable<void> read_side_by_side(k8s::Clock* clock, std::vector<asio::awaitable<void>> readings,
                                        IsUseless useless) {
  TaskGroup tasks(clock);
  co_await run_side_by_side(&tasks, std::move(readings), kListsAtOnce, std::move(useless));
}

// Nothing is concluded without this list, and the server fails: it would answer the others no better. What a person is
// not allowed to read is another matter: some commands show the rest.
bool ends_reading(const k8s::Result<void>& listed) {
  return !listed && listed.error().reason != k8s::Reason::forbidden;
}

template <class T>
asio::awaitable<void> keep(asio::awaitable<T> reading, T* result) {
  *result = co_await std::move(reading);
}

// Of each kind that may be missing: whether it is served.
using OptionalKinds = std::map<k8s::Gvr, k8s::Result<bool>>;

// read_kai_config() and read_kai() list them, one after the other.
bool is_of_kai(const k8s::Gvr& gvr) {
  return gvr == resources::kai_configs || gvr == resources::bind_requests;
}

// Lists everything that does not depend on what another list shows. Errors: of the kinds without which nothing is
// known.
asio::awaitable<k8s::Result<void>> list_kinds(Look look, World* world, OptionalKinds* kinds) {
  const k8s::ListOptions everything;
  k8s::Result<void> nodes;
  k8s::Result<void> daemonsets;
  std::vector<asio::awaitable<void>> readings;
  readings.push_back(keep(list_into<Node>(look, resources::nodes, everything, &project_node, &world->nodes), &nodes));
  readings.push_back(
      keep(list_into<DaemonSet>(look, resources::daemon_sets, everything, &project_daemonset, &world->daemonsets),
           &daemonsets));
  each_cluster_kind(*world, [&](const k8s::Gvr& gvr, auto& store, auto project) {
    if (gvr == resources::nodes || is_of_kai(gvr)) return;
    readings.push_back(keep(list_if_served(look, gvr, project, &store), &(*kinds)[gvr]));
  });
  const IsUseless useless = [&] { return ends_reading(nodes) || ends_reading(daemonsets); };
  co_await read_side_by_side(look.client->clock(), std::move(readings), useless);
  co_return nodes ? daemonsets : nodes;
}

asio::awaitable<void> read_kai_config(Look look, KaiWorld* kai) {
  const k8s::Result<bool> served =
      co_await list_if_served<KaiConfig>(look, resources::kai_configs, &project_kai_config, &kai->configs);
  kai->configs_served = note(served, look.incomplete) == Served::yes;
  if (!kai->configs_served) co_return;
  const k8s::Result<bool> runtime_classes = co_await list_if_served<RuntimeClass>(
      look, resources::runtime_classes, &project_runtime_class, &kai->runtime_classes);
  note(runtime_classes, look.incomplete);
}

// Whether nos's gpu-partitioner runs: asked only where a node is labelled for partitioning.
asio::awaitable<void> read_partitioner(Look look, World* world) {
  PartitioningWorld& partitioning = world->partitioning;
  partitioning.leases.mark_absent();
  if (!partitioned_nodes(*world).empty()) {
    k8s::ListOptions named;
    named.field_selector = k8s::FieldSelector::equals("metadata.name", std::string(kPartitionerLease));
    const k8s::Result<void> listed =
        co_await list_into<Lease>(look, resources::leases, named, &project_lease, &partitioning.leases);
    if (!listed) {
      partitioning.incomplete = listed.error().message;
      append_unique(*look.incomplete, listed.error().message);
      co_return;
    }
  }
  partitioning.leases_known = true;
}

// The ConfigMap of the operator's chart, which names its Helm release. Without it commands about the chart are less
// exact, and nothing else depends on it: an error is not reported.
asio::awaitable<void> read_chart_config(k8s::Reader* client, std::string ns, World* world) {
  k8s::ListOptions options;
  options.ns = ns;
  options.label_selector.match_labels.emplace("app.kubernetes.io/managed-by", "Helm");
  k8s::Result<ListedObjects<ConfigMap>> listed =
      co_await list_objects<ConfigMap>(client, resources::config_maps, options, &project_configmap);
  if (!listed) co_return;
  for (ConfigMap& config_map : listed->objects)
    if (config_map.meta.annotations.contains(kChartConfigAnnotation)) world->configmaps.apply(std::move(config_map));
}

// As `kubectl auth can-i` names it.
std::string full_name(const k8s::Gvr& gvr) {
  return gvr.group.empty() ? gvr.resource : gvr.resource + "." + gvr.group;
}

// What could not be listed is said in `world` and `incomplete`.
asio::awaitable<void> list_scopes(Look look, std::vector<WatchScope> scopes, std::vector<asio::awaitable<void>> beside,
                                  World* world) {
  std::vector<k8s::Result<void>> of_scopes(scopes.size());
  std::vector<asio::awaitable<void>> readings = std::move(beside);
  for (std::size_t i = 0; i < scopes.size(); ++i)
    readings.push_back(keep(list_scope(look, scopes[i], world), &of_scopes[i]));
  const IsUseless never = [] { return false; };
  co_await read_side_by_side(look.client->clock(), std::move(readings), never);
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    if (of_scopes[i]) continue;
    append_unique(*look.incomplete, of_scopes[i].error().message);
    world->unsynced_namespaces.insert(scopes[i].ns);
    world->unread_resources[scopes[i].ns].insert(full_name(resource_of(scopes[i].kind)));
    if (of_scopes[i].error().reason == k8s::Reason::forbidden) world->refused_namespaces.insert(scopes[i].ns);
  }
}

asio::awaitable<k8s::Result<void>> fill_world(Look look, PlannerSettings settings, World* world,
                                              SharingKinds* sharing_kinds) {
  std::vector<std::string>* incomplete = look.incomplete;
  world->nodes.mark_absent();
  world->daemonsets.mark_absent();
  world->operand_pods.mark_absent();
  world->configmaps.mark_absent();
  world->revisions.mark_absent();
  OptionalKinds read;
  k8s::Result<void> listed = co_await list_kinds(look, world, &read);
  if (!listed) co_return listed;
  // In this order, whatever list has ended first.
  std::map<k8s::Gvr, Served> served;
  each_cluster_kind(*world, [&](const k8s::Gvr& gvr, auto&, auto) {
    if (read.contains(gvr)) served[gvr] = note(read.at(gvr), incomplete);
  });
  world->clusterpolicies_forbidden = served[resources::cluster_policies] == Served::unknown;
  const SharingKinds kinds{served[resources::sharing_policies], served[resources::sharing_rollouts]};
  // What cannot be read is not absent: its store stays unsynced (cluster/record_store.h), and the kind counts as
  // served.
  if (kinds.policies == Served::unknown) world->policies = k8s::Store<SharingPolicy>();
  if (kinds.rollouts == Served::unknown) world->rollouts = k8s::Store<SharingRollout>();
  world->policies_served = kinds.policies != Served::no && kinds.rollouts != Served::no;
  if (sharing_kinds != nullptr) *sharing_kinds = kinds;
  co_await read_kai_config(look, &world->kai);
  const std::vector<WatchScope> of_record = record_scopes(settings);
  std::vector<asio::awaitable<void>> beside;
  beside.push_back(read_chart_config(look.client, settings.operator_namespace, world));
  co_await list_scopes(look, of_record, std::move(beside), world);
  // What the operator says of itself there: whose DaemonSets it believes.
  keep_trusted_daemonsets(*world, settings_of_operator(*world, settings));
  std::vector<WatchScope> scopes = wanted_scopes(*world, settings);
  std::erase_if(scopes, [&](const WatchScope& scope) {
    return scope.kind == WatchScope::Kind::daemonsets || std::ranges::find(of_record, scope) != of_record.end();
  });
  std::vector<asio::awaitable<void>> nothing_else;
  co_await list_scopes(look, std::move(scopes), std::move(nothing_else), world);
  co_return k8s::Result<void>{};
}

// A person has ended their stops, and an operator replaces them when it sees that.
void leave_out_retried_rollouts(World& world) {
  std::vector<k8s::ObjectKey> retried;
  for (const auto& [key, rollout] : world.rollouts.all()) {
    const SharingPolicy* policy = world.policies.find(rollout->policy);
    if (policy != nullptr && is_retried(*rollout, *policy)) retried.push_back(rollout->meta.key());
  }
  for (const k8s::ObjectKey& key : retried) world.rollouts.erase(key);
}

}  // namespace

asio::awaitable<k8s::Result<void>> read_world(k8s::Reader* client, PlannerSettings settings, World* world,
                                              std::vector<std::string>* incomplete, SharingKinds* sharing_kinds) {
  DiscoveryOnce discovery(client);
  const Look look{client, incomplete, &discovery};
  k8s::Result<void> read = co_await fill_world(look, settings, world, sharing_kinds);
  leave_out_retried_rollouts(*world);
  co_return read;
}

std::string coverage_gap(const World& world, const PlannerSettings& settings) {
  std::set<std::string> namespaces = world.unsynced_namespaces;
  namespaces.erase(settings.operator_namespace);
  std::string out;
  if (!namespaces.empty())
    out = fmt::format(
        "Nodes not checked: ConfigMaps, pods or controller revisions of the device plugin in {} cannot be read. Grant "
        "list on them",
        fmt::join(namespaces, ", "));
  const std::string unread = unread_decisions(world, settings);
  return out.empty() || unread.empty() ? out + unread : out + ". " + unread;
}

namespace {

// A node that the operator has verified or changes, or a policy whose status it writes. A cleanup removes the first
// and sets the conditions to Unknown.
bool shows_an_operator(const World& world) {
  const auto has_mark = [](const auto& entry) {
    const auto& annotations = entry.second->meta.annotations;
    return annotations.contains(kRevisionAnnotation) || annotations.contains(kChangeAnnotation);
  };
  const auto is_reported = [](const auto& entry) {
    const auto status = condition_in(parse_status(entry.second->status_json), "Progressing");
    const std::string holds = text_at(status, "status");
    return holds == "True" || holds == "False";
  };
  return std::ranges::any_of(world.nodes.all(), has_mark) || std::ranges::any_of(world.policies.all(), is_reported);
}

}  // namespace

std::function<bool(const k8s::Gvr& resource)> was_read(const World& world) {
  return [&world](const k8s::Gvr& resource) {
    const bool can_be_unread = resource == resources::sharing_policies || resource == resources::sharing_rollouts;
    return !can_be_unread || store_synced(world, resource);
  };
}

void note_record_elsewhere(const std::optional<NoOperator>& none, const PlannerSettings& settings, World* world,
                           std::vector<std::string>* incomplete) {
  const k8s::ObjectKey record{settings.operator_namespace, settings.state_config_map};
  if (!none || none->was_running || world->configmaps.find(record) != nullptr || !shows_an_operator(*world)) return;
  append_unique(*incomplete,
                fmt::format("the operator's record was not found: ConfigMap {} does not exist, but nodes or policies "
                            "show that an operator has recorded them. Name its namespace with --namespace",
                            k8s::to_string(record)));
  world->unsynced_namespaces.insert(settings.operator_namespace);
}

asio::awaitable<k8s::Result<void>> read_cluster(k8s::Reader* client, k8s::Clock* clock, PlannerSettings settings,
                                                ClusterView* view) {
  DiscoveryOnce discovery(client);
  const Look look{client, &view->incomplete, &discovery};
  k8s::Result<void> read = co_await fill_world(look, settings, &view->world, &view->sharing_kinds);
  if (!read) co_return read;
  KaiWorld& kai = view->world.kai;
  read = co_await read_kai(look, settings.kai, &kai);
  if (!read) {
    kai.incomplete = read.error().message;
    append_unique(view->incomplete, read.error().message);
  }
  co_await read_partitioner(look, &view->world);
  ClusterPods pods;
  const std::string scaling = view_kai(kai, settings.kai).scaling;
  const std::vector<std::string> partitioned = partitioned_nodes(view->world);
  const k8s::Result<void> listed = co_await list_pods(client, scaling, partitioned, &pods);
  if (view->now == k8s::WallTime()) view->now = clock->now();
  if (!listed) {
    kai.incomplete = listed.error().message;
    kai.use_known = false;
    append_unique(view->incomplete, listed.error().message);
    co_return k8s::Result<void>{};
  }
  view->unstarted = pods.take_unstarted();
  ClaimsOfPods claims = pods.take_claims();
  pods.place(view->world, view->consumers, view->now);
  const std::string unread = co_await leave_out_other_claims(client, &view->world, std::move(claims), &view->consumers);
  if (!unread.empty()) append_unique(view->incomplete, unread);
  co_await look_up(client, clock, settings, view);
  co_return k8s::Result<void>{};
}

}  // namespace gso
