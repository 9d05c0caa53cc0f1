// The checks, one after the other; only the leader is waited for.
#include "controller/commands/commands.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/operator_lease.h"
#include "controller/reading/reads.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/rollout/gates.h"

namespace gso {
namespace {

namespace asio = boost::asio;
constexpr std::string_view kCheckCommand = "gpu-sharing-operator check";
constexpr Duration kCheckPoll = std::chrono::milliseconds(500);
// A leader renews every two seconds, unless it is configured otherwise: a Lease that lasts longer than this is not
// waited for, except as --timeout says.
constexpr Duration kLongest = std::chrono::minutes(1);

// Prints each check when it is done. A failed one decides the exit status.
struct Findings {
  std::ostream* out = nullptr;
  bool fine = true;

  void add(bool good, std::string_view text) {
    print(good ? "ok      " : "MISSING ", text);
    fine = fine && good;
  }
  // What is no fault, and can have been forgotten.
  void note(std::string_view text) const { print("note    ", text); }

 private:
  void print(std::string_view mark, std::string_view text) const {
    *out << wrapped_prose(one_line(fmt::format("{}{}", mark, text)) + "\n", screen_of_stdout().columns) << std::flush;
  }
};

asio::awaitable<void> check_leader(k8s::Reader* client, k8s::Clock* clock, k8s::ObjectKey key, Duration timeout,
                                   Findings* found, std::ostream* err) {
  // A leader that lives renews its Lease in this time: only a longer wait is worth a line.
  constexpr Duration kUsual = std::chrono::seconds(3);
  const k8s::MonoTime begun = clock->monotonic();
  bool announced = false;
  LeaseRenewals renewals;
  std::string why;
  for (;;) {
    const k8s::Result<std::string> lease = co_await client->get(resources::leases, key);
    const bool refused = !lease && lease.error().reason == k8s::Reason::forbidden;
    if (refused) {  // Waiting does not grant a missing permission.
      found->add(false, explain_error(lease.error(), "get", resources::leases, key.ns));
      co_return;
    }
    if (lease) renewals.see(*lease, clock->monotonic());
    why = lease ? renewals.why() : lease.error().message;
    if (!lease && lease.error().reason == k8s::Reason::not_found)
      why = fmt::format("Lease {} does not exist: no operator has run here", k8s::to_string(key));
    if (renewals.renewed()) {
      found->add(true, fmt::format("Leader: {}", renewals.last()->holder));
      co_return;
    }
    const k8s::MonoTime now = clock->monotonic();
    const k8s::MonoTime end = std::max(begun + timeout, std::min(renewals.expires(), begun + kLongest));
    if (now >= end) break;
    const bool looks_alive = lease && looks_fresh(renewals.last(), clock->now());
    if (!announced && (!looks_alive || now >= begun + kUsual)) {
      announced = true;
      print_line(*err, "{}: {}. Waiting up to {} for an operator that renews Lease {}", kCheckCommand, why,
                 k8s::format_go_duration(std::chrono::ceil<std::chrono::seconds>(end - now)), k8s::to_string(key));
      *err << std::flush;
    }
    co_await clock->sleep_for(kCheckPoll);
  }
  const Duration waited = std::chrono::floor<std::chrono::seconds>(clock->monotonic() - begun);
  found->add(false, fmt::format("no leader within {}: {}. Run: kubectl get deployments,pods --namespace {}",
                                k8s::format_go_duration(std::max(timeout, waited)), why, key.ns));
}

// Both; or neither, where that is intended: the operator does without them, but not with one.
std::pair<bool, std::string> sharing_kinds(const SharingKinds& kinds, std::size_t policies, bool without) {
  if (kinds.policies == Served::unknown || kinds.rollouts == Served::unknown)
    return {
        false,
        "the SharingPolicy/SharingRollout CRDs cannot be read, so it is unknown whether they or the state ConfigMap "
        "hold the record"};
  if (kinds.policies == Served::yes && kinds.rollouts == Served::yes)
    return {true, fmt::format("the SharingPolicy/SharingRollout CRDs are installed; policies: {}", policies)};
  if (kinds.policies == Served::no && kinds.rollouts == Served::no) {
    const std::string_view what =
        "the SharingPolicy/SharingRollout CRDs are not installed in this cluster; the record is kept in the state "
        "ConfigMap";
    if (without) return {true, std::string(what)};
    return {false,
            fmt::format("{}. SharingPolicies cannot be created or changed, and `rollout` does not work. "
                        "Install the CRDs: `{}`, or upgrade the Helm release with crds.install=true. If they are "
                        "left out on purpose, run this with --without-crds",
                        what, kInstallCrds)};
  }
  const bool rollouts = kinds.rollouts == Served::no;
  return {false,
          fmt::format(
              "CRD {}.gpusharing.dev is not installed, but {}.gpusharing.dev is. The operator works as if neither were "
              "installed: without SharingPolicies, with its record in the state ConfigMap. Install the CRD again: "
              "`{}`, or upgrade the Helm release with the chart that it was installed from",
              rollouts ? "sharingrollouts" : "sharingpolicies", rollouts ? "sharingpolicies" : "sharingrollouts",
              kInstallCrds)};
}

// What the operator writes in the course of a rollout: as the chart grants it. The Lease is granted by name.
std::vector<Attempt> writes_of(const World& world, const PlannerSettings& settings, const Options& options) {
  std::vector<Attempt> out;
  const auto add = [&out](const char* verb, const k8s::Gvr& gvr, const std::string& ns = "",
                          const std::string& subresource = "", const std::string& name = "") {
    out.push_back({.verbs = {verb}, .gvr = gvr, .ns = ns, .subresource = subresource, .name = name});
  };
  add("patch", resources::sharing_policies, "", "status");
  add("patch", resources::sharing_rollouts, "", "status");
  add("create", resources::events);
  add("update", resources::leases, settings.operator_namespace, "", options.lease_name);
  if (settings.rollouts == PolicyMode::observe) return out;
  const bool partitions = options.partitioning_mode == PartitioningMode::enforce && !partitioned_nodes(world).empty();
  add("patch", resources::nodes);
  add("create", resources::sharing_rollouts);
  add("patch", resources::config_maps, settings.operator_namespace);
  FleetIndex index;
  index.refresh(world, settings);
  std::set<std::string> namespaces;
  for (const PluginInstallation& installation : index.installations()) namespaces.insert(installation.ns);
  for (const std::string& ns : namespaces) {
    add("delete", resources::pods, ns);
    add("patch", resources::config_maps, ns);
  }
  if (!partitions) return out;
  for (const PluginInstallation& installation : discover(world).of_nos)
    add("patch", resources::config_maps, installation.ns, "", installation.config_map);
  return out;
}

std::string review_of(const Attempt& attempt) {
  nlohmann::json wanted{
      {"verb", attempt.verbs.front()}, {"group", attempt.gvr.group}, {"resource", attempt.gvr.resource}};
  if (!attempt.ns.empty()) wanted["namespace"] = attempt.ns;
  if (!attempt.subresource.empty()) wanted["subresource"] = attempt.subresource;
  if (!attempt.name.empty()) wanted["name"] = attempt.name;
  return nlohmann::json{{"apiVersion", "authorization.k8s.io/v1"},
                        {"kind", "SelfSubjectAccessReview"},
                        {"spec", {{"resourceAttributes", wanted}}}}
      .dump();
}

std::string in_words(const Attempt& attempt) {
  return fmt::format("{} {}{}{}{}{}", attempt.verbs.front(), attempt.gvr.resource,
                     attempt.subresource.empty() ? "" : "/", attempt.subresource,
                     attempt.name.empty() ? "" : " " + attempt.name,
                     attempt.ns.empty() ? "" : " in namespace " + attempt.ns);
}

void note_pauses(const World& world, const PlannerSettings& settings, const Findings& found) {
  FleetIndex index;
  index.refresh(world, settings);
  for (const Finding& pause : idle_pause_findings(world, index.impl())) {
    const std::string name = k8s::to_string(k8s::ObjectKey{pause.object.ns, pause.object.name});
    found.note(fmt::format("{} {}: {}", pause.object.kind, name, pause.why.message));
  }
}

asio::awaitable<void> check_writes(k8s::Writer* client, std::vector<Attempt> wanted, Findings* found) {
  std::size_t allowed = 0;
  for (const Attempt& attempt : wanted) {
    const std::string review = review_of(attempt);
    const std::string no_namespace;
    const k8s::Result<std::string> answer =
        co_await client->create(resources::self_subject_access_reviews, no_namespace, review);
    if (!answer) {
      found->add(false, "cannot check write permissions: " + answer.error().message);
      co_return;
    }
    const auto json = nlohmann::json::parse(*answer, nullptr, false);
    if (flag_at(object_at(json, "status"), "allowed"))
      ++allowed;
    else
      found->add(false, fmt::format("permission to {}", in_words(attempt)));
  }
  if (allowed == wanted.size())
    found->add(true, fmt::format("all {} write permissions that rollouts need are granted", allowed));
}

}  // namespace

asio::awaitable<int> check_on_cluster(k8s::ApiClient* client, k8s::Clock* clock, Options options, CheckOptions check,
                                      std::ostream* out, std::ostream* err) {
  World world;
  std::vector<std::string> incomplete;
  PlannerSettings settings = options.planner_settings();
  SharingKinds kinds;
  const k8s::Result<void> read = co_await read_world(client, settings, &world, &incomplete, &kinds);
  if (!read) co_return refuse(*err, kCheckCommand, read.error().message);
  settings = settings_of_operator(world, settings);
  Findings found{.out = out};
  found.add(true, fmt::format("{} nodes and {} daemonsets can be read", world.nodes.size(),
                              world.daemonsets.size() + world.foreign_daemonsets.size()));
  for (const std::string& missing : incomplete) found.add(false, missing);
  const auto [complete, text] = sharing_kinds(kinds, world.policies.size(), check.without_crds);
  found.add(complete, text);
  note_pauses(world, settings, found);
  if (check.writes) {
    const std::vector<Attempt> wanted = writes_of(world, settings, options);
    co_await check_writes(client, wanted, &found);
  }
  const k8s::ObjectKey lease{settings.operator_namespace, options.lease_name};
  co_await check_leader(client, clock, lease, check.timeout, &found, err);
  co_return found.fine ? 0 : 1;
}

Subcommand make_check_command() {
  const auto given = std::make_shared<CheckOptions>();
  const auto describe = [given](CLI::App& app, OptionFlags& settings) {
    app.add_option("--timeout", given->timeout_text, "How long to wait for a leader")
        ->type_name("DURATION")
        ->default_str(k8s::format_go_duration(CheckOptions().timeout));
    app.add_flag(
        "--writes", given->writes,
        "Also whether this account is allowed to send the operator's writes: for the operator's own, as `helm test`");
    app.add_flag("--without-crds", given->without_crds, "The CRDs are left out on purpose: their absence is intended");
    add_connection(app, settings);
    settings.add_to(&app, [](const OptionSpec& spec) { return spec.name == "lease-name" || spec.name == "max-mode"; });
    app.footer(
        "Waits up to --timeout for a leader, and while a Lease has not expired, up to a minute.\n"
        "Exit status: 0 nothing is missing; 1 something is; 2 wrong usage, or the cluster cannot be read.");
  };
  const auto check = [given](const Options&) {
    return read_any_duration("--timeout", given->timeout_text, "30s", given->timeout);
  };
  return {.name = "check",
          .summary = "Whether the installed operator works: rights, the CRDs, a leader",
          .describe = describe,
          .check = check,
          .run =
              [given](const Invocation& i) {
                return run_on_cluster("check", i.options, i.err, [&](k8s::ApiClient* client, k8s::Clock* clock) {
                  return check_on_cluster(client, clock, i.options, *given, &i.out, &i.err);
                });
              },
          .names_unknown_variables = true};
}

}  // namespace gso
