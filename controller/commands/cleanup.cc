// Stops the operator, acquires its Lease, removes everything it added, and deletes Lease and record.
#include "controller/commands/commands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/node_consumers.h"
#include "controller/reading/reads.h"
#include "controller/runtime/leader_election.h"
#include "controller/runtime/task_group.h"
#include "controller/writes/schedule.h"
#include "k8sclient/backoff.h"
#include "k8sclient/value/object.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr int kFailed = 1;
constexpr int kUnreadable = 2;
constexpr int kPasses = 5;  // A node that changes during cleanup is read again.
constexpr Duration kCleanupPoll = std::chrono::milliseconds(250);

// --- What is read before anything is written.

// An object that cannot be read might have something of the operator's: nothing is cleaned up around it, and neither
// the record nor the Lease goes. The operator's own kinds might not be served: there are none then.
template <class T>
asio::awaitable<k8s::Result<void>> list_all(k8s::Reader* client, k8s::Gvr gvr,
                                            k8s::Result<T> (*project)(std::string_view), k8s::Store<T>* store) {
  if (gvr.group == resources::sharing_policies.group) {
    const k8s::Result<bool> served = co_await client->served(gvr);
    if (!served) co_return std::unexpected(served.error());
    if (!*served) co_return k8s::Result<void>{};
  }
  const k8s::ListOptions everything;
  k8s::Result<ListedObjects<T>> listed = co_await list_objects<T>(client, gvr, everything, project);
  if (!listed) co_return std::unexpected(listed.error());
  if (!listed->unreadable.empty())
    co_return k8s::fail(k8s::Reason::decode, describe_unreadable(gvr, listed->unreadable));
  for (T& object : listed->objects) store->apply(std::move(object));
  co_return k8s::Result<void>{};
}

// Nodes, DaemonSets and what the operator has of its own kinds. No operand pod is needed, and a ConfigMap only to say
// what it keeps.
asio::awaitable<k8s::Result<void>> read_cleanup_objects(k8s::Reader* client, World* world) {
  k8s::Result<void> listed = co_await list_all(client, resources::nodes, &project_node, &world->nodes);
  if (listed) listed = co_await list_all(client, resources::daemon_sets, &project_daemonset, &world->daemonsets);
  if (listed)
    listed = co_await list_all(client, resources::sharing_policies, &project_sharing_policy, &world->policies);
  if (listed)
    listed = co_await list_all(client, resources::sharing_rollouts, &project_sharing_rollout, &world->rollouts);
  co_return listed;
}

// Those of these nodes whose GPUs pods use, and those where this cannot be read.
asio::awaitable<NodesInUse> nodes_in_use(k8s::Reader* client, k8s::Clock* clock, PlannerSettings settings, World* world,
                                         std::set<std::string> nodes) {
  NodesInUse out;
  for (const std::string& node : nodes) {
    const k8s::Result<NodeConsumers> consumers =
        co_await read_consumers(client, clock, world, &settings, node, k8s::CallOptions());
    const bool known = consumers && consumers->unknown.empty();
    if (!known) out.unknown.emplace(node, consumers ? consumers->unknown : consumers.error().message);
    if (known && !consumers->pods.empty()) out.used.insert(node);
  }
  co_return out;
}

// Reads these ConfigMaps into `world`. One that does not exist holds no key.
asio::awaitable<UnreadConfigMaps> read_config_maps(k8s::Reader* client, World* world, std::set<k8s::ObjectKey> keys) {
  UnreadConfigMaps unread;
  for (const k8s::ObjectKey& key : keys) {
    const k8s::Result<std::string> text = co_await client->get(resources::config_maps, key);
    if (!text && text.error().reason == k8s::Reason::not_found) continue;
    k8s::Result<ConfigMap> read = text ? project_configmap(*text) : std::unexpected(text.error());
    if (!read) unread.emplace(key, read.error().message);
    if (read) world->configmaps.apply(*std::move(read));
  }
  co_return unread;
}

// --- What is written.

struct CleanupRun {
  k8s::ApiClient* client = nullptr;
  k8s::Clock* clock = nullptr;
  CleanupOptions cleanup;
  Options options;
  PlannerSettings settings;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  LeaderElector* elector = nullptr;
  std::optional<k8s::MonoTime> answer_lost_at{};  // Of the last write that the API server can still execute.
  bool wrote = false;  // A write was begun: from then on an error is that of a change, not of a look.
  std::size_t done = 0;
  std::vector<std::string> kept{};
  std::vector<std::string> removed{};  // Record and Lease.
  bool lease_was_there = false;        // Else it is the one that this run has created.
  std::size_t policies = 0;            // They stay, as the rollouts.
  std::size_t rollouts = 0;
  // Says why. False.
  bool fail(std::string_view why) const {
    (void)refuse(*err, "gpu-sharing-operator cleanup", why);
    return false;
  }
};

// Whoever deletes the DaemonSet of standalone MPS daemons ends all of them at once, under their clients.
asio::awaitable<bool> may_end_daemons(CleanupRun* run) {
  const std::string& name = run->cleanup.standalone_mps;
  const std::size_t slash = std::min(name.find('/'), name.size());
  const k8s::ObjectKey key{name.substr(0, slash), name.substr(std::min(slash + 1, name.size()))};
  if (name.empty()) co_return true;
  World world;
  const k8s::Result<void> read = co_await read_cleanup_objects(run->client, &world);
  if (!read) co_return run->fail(read.error().message);
  const std::set<std::string> nodes = nodes_that_lose_daemons(world, key);
  const PlannerSettings settings = run->settings;
  NodesInUse in_use = co_await nodes_in_use(run->client, run->clock, settings, &world, nodes);
  for (const auto& [node, why] : in_use.unknown) in_use.used.insert(fmt::format("{} (unknown: {})", node, why));
  if (in_use.used.empty()) co_return true;
  const std::vector<std::string> used(in_use.used.begin(), in_use.used.end());
  co_return run->fail(fmt::format(
      "nothing has been changed: with DaemonSet {} all its MPS daemons end at once, and pods use the GPUs of {}: {}. "
      "Wait until these pods have ended, with the nodes cordoned, or accept that they break: kubectl annotate "
      "--overwrite daemonset --namespace {} {} {}={}. Then uninstall again",
      name, counted(used.size(), "node"), first_names(used), key.ns, key.name, kEndDaemonsAnnotation,
      world.daemonsets.find(key)->meta.generation));
}

// True when it is scaled to 0, or was never there.
asio::awaitable<bool> stop_deployment(CleanupRun* run) {
  if (run->cleanup.stop_deployment.empty() || run->cleanup.dry_run) co_return true;
  const k8s::ObjectKey key{run->settings.operator_namespace, run->cleanup.stop_deployment};
  k8s::WriteOptions options;
  options.subresource = "scale";
  const std::string body = R"({"spec":{"replicas":0}})";
  const k8s::Result<std::string> scaled = co_await run->client->merge_patch(resources::deployments, key, body, options);
  if (!scaled && scaled.error().reason != k8s::Reason::not_found) co_return run->fail(scaled.error().message);
  *run->out << fmt::format("Deployment {}: {}\n", k8s::to_string(key), scaled ? "scaled to 0" : "not found");
  co_return true;
}

asio::awaitable<bool> wait_for_lease(CleanupRun* run) {
  const k8s::MonoTime end = run->clock->monotonic() + run->cleanup.timeout;
  while (!run->elector->may_write()) {
    if (run->clock->monotonic() >= end) {
      const std::optional<k8s::Error>& problem = run->elector->problem();
      const std::string& holder = run->elector->observed().holder;
      co_return run->fail(problem
                              ? fmt::format("could not acquire the Lease: {}", problem->message)
                              : fmt::format("{} holds the lease {}/{} after {}: stop the operator first",
                                            holder.empty() ? "somebody" : holder, run->settings.operator_namespace,
                                            run->options.lease_name, k8s::format_go_duration(run->cleanup.timeout)));
    }
    co_await run->clock->sleep_for(kCleanupPoll);
  }
  co_return true;
}

// Of a write under the lease.
void note_lost_answer(CleanupRun* run, const k8s::Error& error) {
  if (k8s::outcome_unknown(error)) run->answer_lost_at = run->clock->monotonic();
}

// No attempt begins without the lease, and none outlives it: an operator that takes the lease over writes at once (S4).
k8s::WriteOptions under_lease(CleanupRun* run) {
  k8s::WriteOptions options;
  options.deadline = run->elector->takeover_after();
  options.before_send = [run]() -> k8s::Result<void> {
    if (run->elector->may_write()) return {};
    return k8s::fail(k8s::Reason::cancelled, "the lease was lost");
  };
  return options;
}

asio::awaitable<k8s::Result<std::string>> send(CleanupRun* run, PlannedAction planned) {
  const ObjectRef target = target_of(planned.action);
  const k8s::ObjectKey key{target.ns, target.name};
  k8s::WriteOptions options = under_lease(run);
  std::string body;
  if (const auto* node = std::get_if<PatchNode>(&planned.action)) body = merge_patch_of(*node);
  if (const auto* patch = std::get_if<PatchFinalizers>(&planned.action)) {
    const OrderedJson json{
        {"metadata", {{"resourceVersion", patch->resource_version}, {"finalizers", patch->finalizers}}}};
    body = json.dump();
  }
  if (const auto* patch = std::get_if<PatchStatus>(&planned.action)) {
    options.subresource = "status";
    const OrderedJson json{{"metadata", {{"uid", patch->object.uid}}},
                           {"status", OrderedJson::parse(patch->status_json)}};
    body = dump(json);
  }
  run->wrote = true;
  const k8s::Gvr gvr = resource_of(target);
  k8s::Result<std::string> answer = co_await run->client->merge_patch(gvr, key, body, options);
  if (!answer) note_lost_answer(run, answer.error());
  co_return answer;
}

// What a write would do, for a dry run; of anything but a Node, what it is for.
std::string would_do(const PlannedAction& planned) {
  const auto* patch = std::get_if<PatchNode>(&planned.action);
  if (patch == nullptr) return planned.why.message;
  std::vector<std::string> parts;
  if (patch->unschedulable) parts.emplace_back("would uncordon");
  for (const auto& [key, value] : patch->set) parts.push_back(fmt::format("would set label {}={}", key, value));
  for (const std::string& key : patch->remove) parts.push_back(fmt::format("would remove label {}", key));
  for (const std::string& key : patch->remove_annotations)
    parts.push_back(fmt::format("would remove annotation {}", key));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Reads the cluster once and writes. True if nothing was left to do, false if the cluster must be read again.
asio::awaitable<k8s::Result<bool>> clean_once(CleanupRun* run) {
  World world;
  const k8s::Result<void> read = co_await read_cleanup_objects(run->client, &world);
  if (!read) co_return std::unexpected(read.error());
  run->policies = world.policies.size();
  run->rollouts = world.rollouts.size();
  FleetIndex index;
  index.refresh(world, run->settings);
  const std::set<std::string> candidates = nodes_to_revert(world, index);
  const PlannerSettings settings = run->settings;
  const NodesInUse in_use = co_await nodes_in_use(run->client, run->clock, settings, &world, candidates);
  const std::set<k8s::ObjectKey> config_maps = config_maps_of_retained_keys(world, index);
  const UnreadConfigMaps unread = co_await read_config_maps(run->client, &world, config_maps);
  const Cleanup plan = plan_cleanup(world, index, in_use, unread, run->clock->now());
  // What was kept on the first reading has lost its mark by the second.
  run->kept.insert(run->kept.end(), plan.kept.begin(), plan.kept.end());
  for (const PlannedAction& planned : plan.actions) {
    const ObjectRef target = target_of(planned.action);
    if (!run->cleanup.dry_run) {
      const k8s::Result<std::string> sent = co_await send(run, planned);
      const bool gone = !sent && sent.error().reason == k8s::Reason::not_found;
      const bool changed = !sent && sent.error().reason == k8s::Reason::conflict;
      if (changed || gone) continue;  // Read again.
      if (!sent) co_return std::unexpected(sent.error());
    }
    ++run->done;
    if (!run->cleanup.json) {
      const std::string what = run->cleanup.dry_run ? would_do(planned) : planned.why.message;
      print_line(*run->out, "{} {}: {}", target.kind, target.name, what);
    }
  }
  co_return plan.actions.empty() || run->cleanup.dry_run;
}

asio::awaitable<int> clean(CleanupRun* run) {
  for (int pass = 0; pass < kPasses; ++pass) {
    const k8s::Result<bool> quiet = co_await clean_once(run);
    if (!quiet) (void)run->fail(quiet.error().message);
    if (!quiet) co_return run->wrote || pass > 0 ? kFailed : kUnreadable;
    if (*quiet) co_return 0;
  }
  (void)run->fail(
      "nodes keep changing: another client writes the labels or annotations that "
      "cleanup removes. Stop that client and run cleanup again");
  co_return kFailed;
}

// Of the record and the Lease. Under a dry run it is only looked for.
asio::awaitable<bool> remove(CleanupRun* run, k8s::Gvr gvr, std::string name) {
  const k8s::ObjectKey key{run->settings.operator_namespace, name};
  const std::string what = fmt::format("{} {}", gvr.resource == "leases" ? "Lease" : "ConfigMap", k8s::to_string(key));
  k8s::Result<void> removed;
  const k8s::Result<std::string> there = co_await run->client->get(gvr, key);
  if (!there) removed = k8s::Result<void>(std::unexpected(there.error()));
  if (there && !run->cleanup.dry_run) {
    // What was read, and no object of that name that somebody creates or takes over meanwhile.
    const OrderedJson metadata = object_at(OrderedJson::parse(*there, nullptr, false), "metadata");
    k8s::DeleteOptions preconditions;
    preconditions.uid = text_at(metadata, "uid");
    preconditions.resource_version = text_at(metadata, "resourceVersion");
    const k8s::WriteOptions options = under_lease(run);
    removed = co_await run->client->remove(gvr, key, preconditions, options);
    if (!removed) note_lost_answer(run, removed.error());
  }
  const bool is_own = gvr == resources::leases && !run->lease_was_there;
  if (removed && !is_own) run->removed.push_back(what);
  if (removed || removed.error().reason == k8s::Reason::not_found) co_return true;
  co_return run->fail(removed.error().message);
}

// The record with its shards: an uninstall on purpose holds nothing.
asio::awaitable<bool> remove_record(CleanupRun* run) {
  const std::vector<k8s::ObjectKey> keys = state_keys(state_key(run->settings));
  bool all = true;
  for (const k8s::ObjectKey& key : keys) {
    const bool removed = co_await remove(run, resources::config_maps, key.name);
    all = all && removed;
  }
  co_return all;
}

// Before this run takes it: an election creates the Lease where there is none.
asio::awaitable<bool> has_lease(CleanupRun* run) {
  const k8s::ObjectKey key{run->settings.operator_namespace, run->options.lease_name};
  const k8s::Result<std::string> there = co_await run->client->get(resources::leases, key);
  co_return there.has_value() || there.error().reason != k8s::Reason::not_found;
}

void report(const CleanupRun& run) {
  const std::set<std::string> kept(run.kept.begin(), run.kept.end());
  if (run.cleanup.json) {
    const OrderedJson document{
        {"changed", run.done}, {"kept", kept}, {"removed", run.removed}, {"dryRun", run.cleanup.dry_run}};
    print_document(document, OutputForm::json, *run.out);
    return;
  }
  for (const std::string& text : run.removed)
    print_line(*run.out, "{}: {}", text, run.cleanup.dry_run ? "would be removed" : "removed");
  for (const std::string& text : kept) print_line(*run.out, "kept: {}", text);
  if (run.policies + run.rollouts > 0) {
    print_line(
        *run.out,
        "SharingPolicies ({}) and SharingRollouts ({}) stay, with their CRDs: an operator that is installed again "
        "applies them. To delete them all: kubectl delete crd sharingpolicies.gpusharing.dev "
        "sharingrollouts.gpusharing.dev",
        run.policies, run.rollouts);
  }
  *run.out << fmt::format("{} {}{}\n", counted(run.done, "object"),
                          run.cleanup.dry_run ? "would be changed" : "changed",
                          run.removed.empty() ? "" : fmt::format(", {} removed", run.removed.size()));
}

// While holding the Lease: remove everything, then the record and the Lease, so that no operator can start in between.
asio::awaitable<int> clean_with_lease(CleanupRun* run) {
  const bool held = co_await wait_for_lease(run);
  if (!held) co_return kFailed;
  int code = co_await clean(run);
  if (code != 0) co_return code;
  const bool record = co_await remove_record(run);
  co_return record ? 0 : kFailed;
}

// After a failure: so that an operator, or the next run, need not wait. It writes as soon as it has the Lease, so the
// Lease of a run whose last write can still land is left to expire (S4).
asio::awaitable<void> release_unless_a_write_can_land(CleanupRun* run, const LeaderElectionOptions& election) {
  if (!run->elector->can_land_still(run->answer_lost_at)) {
    co_await run->elector->release();
    co_return;
  }
  (void)run->fail(
      fmt::format("Lease {} is not released: the API server can still execute the write that it "
                  "has not answered. An operator, or cleanup run again, takes over after {}",
                  k8s::to_string(election.lease), k8s::format_go_duration(election.lease_duration)));
}

}  // namespace

asio::awaitable<int> cleanup_command(k8s::ApiClient* client, k8s::Clock* clock, CleanupOptions cleanup, Options options,
                                     std::ostream* out, std::ostream* err) {
  CleanupRun run{client, clock, cleanup, options, options.planner_settings(), out, err};
  int code = 0;
  const bool may_end = co_await may_end_daemons(&run);
  if (!may_end) co_return kFailed;
  run.lease_was_there = co_await has_lease(&run);
  if (cleanup.dry_run) {
    code = co_await clean(&run);
    if (code != 0) co_return code;
    const bool record = co_await remove_record(&run);
    const bool lease = co_await remove(&run, resources::leases, options.lease_name);
    report(run);
    co_return record&& lease ? 0 : kFailed;
  }
  const bool stopped = co_await stop_deployment(&run);
  if (!stopped) co_return kFailed;
  LeaderElectionOptions election;
  election.lease = {run.settings.operator_namespace, options.lease_name};
  election.identity = fmt::format("cleanup_{:08x}", k8s::random_seed() >> 32U);
  election.retry_period = std::chrono::seconds(1);
  LeaderElectionEvents events;
  LeaderElector elector(client, clock, election, events);
  run.elector = &elector;
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  TaskGroup tasks(clock);
  tasks.spawn(executor, elector.run());
  code = co_await clean_with_lease(&run);
  elector.stop();
  if (code == 0) {
    // Delete the Lease while holding it, so that no other replica acquires it in between.
    co_await tasks.join();
    const bool removed = co_await remove(&run, resources::leases, options.lease_name);
    if (!removed) code = kFailed;
  } else {
    co_await release_unless_a_write_can_land(&run, election);
    co_await tasks.join();
  }
  if (code == 0) report(run);
  co_return code;
}

Subcommand make_cleanup_command() {
  const auto cleanup = std::make_shared<CleanupOptions>();
  const auto describe = [cleanup](CLI::App& app, OptionFlags& settings) {
    app.add_option("--stop-deployment", cleanup->stop_deployment, "Deployment in --namespace that is scaled to 0 first")
        ->type_name("NAME");
    app.add_option(
           "--standalone-mps", cleanup->standalone_mps,
           "DaemonSet of standalone MPS daemons that is deleted next: refuse while pods use the GPUs of its nodes")
        ->type_name("NAMESPACE/NAME");
    app.add_option("--timeout", cleanup->timeout_text,
                   "How long to wait until the leader has released the Lease, 1s to 1h")
        ->type_name("DURATION")
        ->default_str(k8s::format_go_duration(CleanupOptions().timeout));
    app.add_flag("--dry-run", cleanup->dry_run, "Only print what would be changed");
    add_output(app, cleanup->json);
    settings.add_config_to(&app);
    add_connection(app, settings);
    settings.add_to(&app, [](const OptionSpec& spec) { return spec.name == "lease-name"; });
    app.footer(
        "Removes the operator's cordons, labels, annotations and finalizers, then its record and its Lease.\n"
        "No GPU pod is deleted.\n"
        "Exit status: 0 nothing is left but what the output names as kept; 1 an operator keeps the Lease, a write "
        "failed (run it again), or pods use what --standalone-mps names; 2 the cluster cannot be read, or wrong "
        "usage.");
  };
  return {.name = "cleanup",
          .summary = "Remove everything the operator added to nodes and policies (irreversible)",
          .describe = describe,
          .check =
              [cleanup](const Options&) { return read_duration("--timeout", cleanup->timeout_text, cleanup->timeout); },
          .run =
              [cleanup](const Invocation& i) {
                return run_on_cluster("cleanup", i.options, i.err, [&](k8s::ApiClient* client, k8s::Clock* clock) {
                  return cleanup_command(client, clock, *cleanup, i.options, &i.out, &i.err);
                });
              }};
}

}  // namespace gso
