// The checks, one after the other; only the leader is waited for.
#include "controller/commands/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/print.h"
#include "controller/commands/shared/session.h"
#include "controller/config/options.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/operator_lease.h"
#include "controller/reading/reads.h"
#include "k8sclient/api/client.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
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

// A leader that lives renews its Lease in this time: only a longer wait is worth a line.
constexpr Duration kUsual = std::chrono::seconds(3);

// Prints each check when it is done. A failed one decides the exit status.
struct Findings {
  std::ostream* out = nullptr;
  bool fine = true;
  std::optional<k8s::Error> unreachable;

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

// A wait for a leader, which is announced once: at once if nothing shows that one is alive.
struct LeaderWait {
  k8s::ObjectKey lease;
  k8s::MonoTime begun;
  Duration timeout;
  bool announced = false;

  // Until when, for a Lease that can be alive until `expires`.
  [[nodiscard]] k8s::MonoTime end(k8s::MonoTime expires) const {
    return std::max(begun + timeout, std::min(expires, begun + kLongest));
  }
  void announce(const std::string& why, bool looks_alive, k8s::MonoTime now, k8s::MonoTime expires, std::ostream& err) {
    if (announced || (looks_alive && now < begun + kUsual)) return;
    announced = true;
    const Duration left = std::chrono::ceil<std::chrono::seconds>(end(expires) - now);
    print_line(err, "{}: {}. Waiting up to {} for an operator that renews Lease {}", kCheckCommand, why,
               k8s::format_go_duration(left), k8s::to_string(lease));
    err << std::flush;
  }
};

asio::awaitable<void> check_leader(k8s::Reader* client, k8s::Clock* clock, k8s::ObjectKey key, Duration timeout,
                                   Findings* found, std::ostream* err) {
  LeaderWait wait{key, clock->monotonic(), timeout};
  LeaseRenewals renewals;
  std::string why;
  for (;;) {
    const k8s::CallOptions call;
    const k8s::Result<std::string> lease = co_await client->get(resources::leases, key, call);
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
      found->add(true, fmt::format("Leader: {}", renewals.last().holder));
      co_return;
    }
    const k8s::MonoTime now = clock->monotonic();
    if (now >= wait.end(renewals.expires())) break;
    wait.announce(why, lease && looks_fresh(renewals.last(), clock->now()), now, renewals.expires(), *err);
    co_await clock->sleep_for(kCheckPoll);
  }
  const Duration waited = std::chrono::floor<std::chrono::seconds>(clock->monotonic() - wait.begun);
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
  std::vector<Attempt> out{{.verbs = {"patch"}, .gvr = resources::sharing_policies, .ns = "", .subresource = "status"},
                           {.verbs = {"patch"}, .gvr = resources::sharing_rollouts, .ns = "", .subresource = "status"},
                           {.verbs = {"create"}, .gvr = resources::events, .ns = "", .subresource = ""},
                           {.verbs = {"update"},
                            .gvr = resources::leases,
                            .ns = settings.operator_namespace,
                            .subresource = "",
                            .name = options.lease_name}};
  if (settings.rollouts == PolicyMode::observe) return out;
  const bool partitions = options.partitioning_mode == PartitioningMode::enforce && !partitioned_nodes(world).empty();
  out.push_back({.verbs = {"patch"}, .gvr = resources::nodes, .ns = "", .subresource = ""});
  out.push_back({.verbs = {"create"}, .gvr = resources::sharing_rollouts, .ns = "", .subresource = ""});
  out.push_back(
      {.verbs = {"patch"}, .gvr = resources::config_maps, .ns = settings.operator_namespace, .subresource = ""});
  FleetIndex index;
  index.refresh(world, settings);
  std::set<std::string> namespaces;
  for (const PluginInstallation& installation : index.installations()) namespaces.insert(installation.ns);
  for (const std::string& ns : namespaces) {
    out.push_back({.verbs = {"delete"}, .gvr = resources::pods, .ns = ns, .subresource = ""});
    out.push_back({.verbs = {"patch"}, .gvr = resources::config_maps, .ns = ns, .subresource = ""});
  }
  if (!partitions) return out;
  for (const PluginInstallation& installation : discover(world).of_nos) {
    out.push_back({.verbs = {"patch"},
                   .gvr = resources::config_maps,
                   .ns = installation.ns,
                   .subresource = "",
                   .name = installation.config_map});
  }
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
    const k8s::WriteOptions options;
    const k8s::Result<std::string> answer =
        co_await client->create(resources::self_subject_access_reviews, no_namespace, review, options);
    if (!answer) {
      found->add(false, "cannot check write permissions: " + answer.error().message);
      co_return;
    }
    const auto json = nlohmann::json::parse(*answer, nullptr, false);
    if (flag_at(object_at(json, "status"), "allowed")) {
      ++allowed;
    } else {
      found->add(false, fmt::format("permission to {}", in_words(attempt)));
    }
  }
  if (allowed == wanted.size())
    found->add(true, fmt::format("all {} write permissions that rollouts need are granted", allowed));
}

asio::awaitable<void> check_all(k8s::ApiClient* client, k8s::Clock* clock, Options options, CheckOptions check,
                                Findings* found, std::ostream* err) {
  World world;
  std::vector<std::string> incomplete;
  PlannerSettings settings = options.planner_settings();
  SharingKinds kinds;
  const k8s::Result<void> read = co_await read_world(client, settings, &world, &incomplete, &kinds);
  if (!read) {
    found->unreachable = read.error();
    co_return;
  }
  settings = settings_of_operator(world, settings);
  found->add(true, fmt::format("{} nodes and {} daemonsets can be read", world.nodes.size(),
                               world.daemonsets.size() + world.foreign_daemonsets.size()));
  for (const std::string& missing : incomplete) found->add(false, missing);
  const auto [complete, text] = sharing_kinds(kinds, world.policies.size(), check.without_crds);
  found->add(complete, text);
  note_pauses(world, settings, *found);
  if (check.writes) {
    const std::vector<Attempt> wanted = writes_of(world, settings, options);
    co_await check_writes(client, wanted, found);
  }
  const k8s::ObjectKey lease{settings.operator_namespace, options.lease_name};
  co_await check_leader(client, clock, lease, check.timeout, found, err);
}

}  // namespace

asio::awaitable<int> check_on_cluster(k8s::ApiClient* client, k8s::Clock* clock, Options options, CheckOptions check,
                                      std::ostream* out, std::ostream* err) {
  Findings found;
  found.out = out;
  co_await check_all(client, clock, options, check, &found, err);
  if (found.unreachable) {
    print_line(*err, "{}: {}", kCheckCommand, found.unreachable->message);
    co_return 2;
  }
  co_return found.fine ? 0 : 1;
}

Subcommand make_check_command() {
  struct Arguments {
    CheckOptions check;
    std::string timeout;
  };
  const auto given = std::make_shared<Arguments>();
  const auto describe = [given](CLI::App& app, OptionFlags& settings) {
    app.add_option("--timeout", given->timeout, "How long to wait for a leader")
        ->type_name("DURATION")
        ->default_str(k8s::format_go_duration(CheckOptions().timeout));
    app.add_flag(
        "--writes", given->check.writes,
        "Also whether this account is allowed to send the operator's writes: for the operator's own, as `helm test`");
    app.add_flag("--without-crds", given->check.without_crds,
                 "The CRDs are left out on purpose: that they are not installed is no fault");
    add_connection(app, settings);
    settings.add_to(&app, [](const OptionSpec& spec) { return spec.name == "lease-name" || spec.name == "max-mode"; });
    app.footer(
        "Waits up to --timeout for a leader, and while a Lease has not expired, up to a minute.\n"
        "Exit status: 0 nothing is missing; 1 something is; 2 wrong usage, or the cluster cannot be read.");
  };
  const auto check = [given](const Options&) {
    return read_any_duration("--timeout", given->timeout, "30s", given->check.timeout);
  };
  return {.name = "check",
          .summary = "Whether the installed operator works: rights, the CRDs, a leader",
          .describe = describe,
          .check = check,
          .run =
              [given](const Invocation& i) {
                return run_on_cluster("check", i.options, i.err, [&](k8s::ApiClient* client, k8s::Clock* clock) {
                  return check_on_cluster(client, clock, i.options, given->check, &i.out, &i.err);
                });
              },
          .names_unknown_variables = true};
}

}  // namespace gso
