// Reading the world once, `history` and `start`.
#include "controller/commands/rollout/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "controller/commands/rollout/verbs.h"
#include "controller/commands/rollout/view.h"
#include "controller/commands/shared/print_line.h"
#include "controller/commands/shared/screen.h"
#include "controller/commands/shared/session.h"
#include "controller/config/operator_options.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/forbidden_hint.h"
#include "controller/reading/input_file.h"
#include "k8sclient/api/client.h"
#include "reconcilers/explain/stop_command.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/stops.h"
#include "reconcilers/standalone/daemon_nodes.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

int RolloutCall::refuse(std::string_view why) const {
  print_line(*err, "gpu-sharing-operator {}: {}", command_of(options.verb), why);
  return 2;
}

asio::awaitable<bool> patch_sharing_object(RolloutCall* call, std::string resource, std::string name,
                                           std::string body) {
  const k8s::Gvr gvr{std::string(kGroup), "v1alpha1", resource};
  const k8s::ObjectKey key{"", name};
  const k8s::WriteOptions options;
  const k8s::Result<std::string> patched = co_await call->client->merge_patch(gvr, key, body, options);
  if (!patched) (void)call->refuse(explain_error(patched.error(), "patch", gvr, ""));
  co_return patched.has_value();
}

namespace {

constexpr const char* kRollouts = "sharingrollouts";
constexpr const char* kPolicies = "sharingpolicies";

int show_history(RolloutCall& call) {
  std::vector<RolloutFacts> shown = all_rollouts(call.world);
  if (!call.options.name.empty()) {
    const RolloutChoice choice{call.options.name, true};
    auto chosen = choose(call.world, choice, [](const RolloutFacts&) { return true; }, "is recorded");
    if (!chosen) return call.refuse(chosen.error().message);
    shown = *std::move(chosen);
  }
  if (call.options.json) {
    Json document{{"version", kRolloutJsonVersion}, {"rollouts", Json::array()}};
    for (const RolloutFacts& facts : shown) document["rollouts"].push_back(rollout_json(facts));
    *call.out << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else if (!call.options.name.empty() && !policy_of(call.options.name)) {
    print_rollout_record(shown.front(), screen_of_stdout().columns, *call.out);
  } else {
    print_rollout_history(shown, screen_of_stdout().columns, *call.out);
  }
  return 0;
}

// --- start

// What a new start concerns, for people: nodes that are deferred; what failed and is what nodes should run still.
void print_retried(RolloutCall& call, const std::string& policy) {
  FleetIndex index;
  index.note_everything_changed();
  index.refresh(call.world, call.settings);
  for (const std::string& name : index.impl().nodes_in(Bucket::deferred)) {
    const auto deferral = deferral_of(*call.world.nodes.find(name));
    if (!deferral || index.assessment(name)->policy != policy) continue;
    print_line(*call.out, "  node {}: was deferred until {}", name, k8s::format_time(deferral->until));
  }
  for (const DaemonNode& node : read_daemon_nodes(call.world, index.impl())) {
    if (node.policy->meta.name != policy || !(node.has_failed() || node.mark.deferred)) continue;
    print_line(
        *call.out, "  node {}: its standalone MPS daemon {}", node.name(),
        node.has_failed() ? "failed" : "was deferred until " + k8s::format_time(*node.mark.deferred->deferred_until));
  }
  const auto& record = index.impl().record;
  if (!record) return;
  for (const FleetRecord::Failure& failure : record->failures) {
    const auto profile_rollout =
        index.impl().profile_rollouts.find(RolloutKey{policy, failure.config_map, failure.key});
    const bool present = profile_rollout != index.impl().profile_rollouts.end() &&
                         target_of(profile_rollout->second) == failure.revision;
    // Its nodes have the previous inline profile again, so that no rollout targets the failed revision.
    const bool inline_again = failure.rolled_back;
    if (failure.policy != policy || !(present || inline_again)) continue;
    std::string nodes;
    for (const auto& [node, machine] : failure.nodes) nodes += (nodes.empty() ? " on " : ", ") + node;
    print_line(*call.out, "  {} of {} key {}, which {}{}", failure.revision, failure.config_map, failure.key,
               failure.nodes.empty() ? "was rolled back" : "failed", nodes);
  }
}

// When the operator recorded what the fleet ran: the drift that is adopted is that of then.
std::optional<std::string> baseline_of(RolloutCall& call) {
  FleetIndex index;
  index.note_everything_changed();
  index.refresh(call.world, call.settings);
  const auto& record = index.impl().record;
  if (!record) return std::nullopt;
  return k8s::format_time(record->recorded_at);
}

// What the operator would see after the start.
void retry_in_world(RolloutCall& call, const std::string& name, const std::string& retry,
                    const std::optional<std::string>& baseline) {
  SharingPolicy policy = *call.world.policies.find(name);
  policy.meta.annotations.set(kRetryAnnotation, retry);
  if (baseline) policy.meta.annotations.set(kAdoptAnnotation, *baseline);
  call.world.policies.apply(std::move(policy));
}

// Why the nodes of the policy wait although they are tried again: a switch that `start` does not touch.
void print_what_holds(RolloutCall& call, const std::string& policy) {
  FleetIndex index;
  index.note_everything_changed();
  index.refresh(call.world, call.settings);
  const Timers timers;
  const std::map<std::string, NodeConsumers> consumers;
  const Snapshot snapshot{call.world, call.clock->now(), timers, consumers, call.settings};
  RolloutViews views(snapshot, index.impl());
  for (const auto& [key, profile_rollout] : index.impl().profile_rollouts) {
    const bool has_work = profile_rollout.tally.settled < profile_rollout.tally.total;
    RolloutView* rollout = key.policy == policy && has_work ? views.find(key) : nullptr;
    if (rollout == nullptr) continue;
    const Gate gate = rollout->gate().gate;
    const bool holds =
        gate == Gate::observe || gate == Gate::paused || gate == Gate::approval || gate == Gate::outside_window;
    if (!holds) continue;
    print_line(*call.out, "  key {} waits ({}): {}", key.key.empty() ? "(none)" : key.key, rollout->gate().reason(),
               rollout->gate().message);
    if (const std::string command = stop_command(*rollout); !command.empty())
      print_line(*call.out, "  next: {}", command);
  }
}

// An aborted or undone rollout stays so: its object goes, and the operator begins a new one. The number of those that
// were deleted; nullopt: one could not be deleted, which is reported.
asio::awaitable<std::optional<int>> delete_stopped(RolloutCall* call, std::string policy) {
  int deleted = 0;
  const k8s::Gvr gvr{std::string(kGroup), "v1alpha1", kRollouts};
  const std::vector<RolloutFacts> rollouts = all_rollouts(call->world);
  for (const RolloutFacts& facts : rollouts) {
    const SharingRollout& rollout = *facts.rollout;
    if (rollout.policy != policy || (!rollout.aborted && !facts.undone())) continue;
    k8s::DeleteOptions preconditions;
    preconditions.uid = rollout.meta.uid;
    const k8s::ObjectKey key{"", rollout.meta.name};
    const k8s::WriteOptions options;
    const k8s::Result<void> removed = co_await call->client->remove(gvr, key, preconditions, options);
    if (!removed && removed.error().reason != k8s::Reason::not_found) {
      (void)call->refuse(removed.error().message);
      co_return std::nullopt;
    }
    ++deleted;
    *call->out << fmt::format("Deleted the {} rollout record {}\n", rollout.aborted ? "aborted" : "undone",
                              rollout.meta.name);
    if (rollout.paused)
      *call->out << fmt::format("  {0} is still paused: gpu-sharing-operator rollout resume {0}\n", rollout.meta.name);
  }
  co_return deleted;
}

asio::awaitable<bool> ask_for_attempt(RolloutCall* call, std::string policy, WallTime now,
                                      std::optional<std::string> baseline) {
  Json body;
  body["metadata"]["annotations"][std::string(kRetryAnnotation)] = k8s::format_micro_time(now);
  if (baseline) body["metadata"]["annotations"][std::string(kAdoptAnnotation)] = *baseline;
  const std::string text = body.dump();
  co_return co_await patch_sharing_object(call, kPolicies, policy, text);
}

asio::awaitable<int> start(RolloutCall* call) {
  const std::string name = call->options.name.empty() ? std::string(kDefaultPolicy)
                                                      : policy_of(call->options.name).value_or(call->options.name);
  const SharingPolicy* policy = call->world.policies.find(name);
  if (policy == nullptr) co_return call->refuse(missing_policy(call->world, name));
  const std::optional<std::string> baseline = call->options.adopt ? baseline_of(*call) : std::nullopt;
  if (call->options.adopt && !baseline) {
    co_return call->refuse("--adopt: no baseline is recorded yet, or the record cannot be read, so no drift is known");
  }
  const WallTime asked = call->clock->now();
  if (call->options.dry_run) {
    retry_in_world(*call, name, k8s::format_micro_time(asked), baseline);
    const std::optional<GivenText> no_text;
    const int code = co_await preview(call, no_text, name);
    if (!call->options.json) print_what_holds(*call, name);
    co_return code;
  }
  // The policy first: the record forgets an abort by its annotation. A rollout that is deleted before that would be
  // made again as it was.
  bool done = co_await ask_for_attempt(call, name, asked, baseline);
  if (!done) co_return 2;
  const std::optional<int> deleted = co_await delete_stopped(call, name);
  if (!deleted) co_return 2;
  // An operator that saw such a stop for the first time together with the annotation takes it for one that came after
  // it. None is there any more: another value ends it.
  if (*deleted > 0) {
    const WallTime later = std::max<WallTime>(call->clock->now(), asked + std::chrono::milliseconds(1));
    const std::optional<std::string> adopted_already;
    done = co_await ask_for_attempt(call, name, later, adopted_already);
    if (!done) co_return 2;
  }
  *call->out << fmt::format(
      "Retrying failed and deferred nodes of policy {}{}\n", name,
      call->options.adopt ? ", and rolling out nodes that had drifted before the operator was installed" : "");
  print_retried(*call, name);
  print_what_holds(*call, name);
  co_return 0;
}

}  // namespace

asio::awaitable<int> rollout_command(k8s::ApiClient* client, k8s::Clock* clock, RolloutOptions rollout,
                                     PlannerSettings settings, std::string input, std::ostream* out,
                                     std::ostream* err) {
  RolloutCall call;
  call.client = client;
  call.clock = clock;
  call.options = rollout;
  call.settings = settings;
  call.input = input;
  call.out = out;
  call.err = err;
  using Verb = RolloutOptions::Verb;
  const k8s::Result<void> read =
      co_await read_world(client, settings, &call.world, &call.incomplete, &call.sharing_kinds);
  if (!read) co_return call.refuse(read.error().message);
  call.settings = settings_of_operator(call.world, settings);
  const k8s::ObjectKey lease{settings.operator_namespace, rollout.lease_name};
  call.no_operator = co_await find_no_operator(client, clock, lease, &call.incomplete);
  for (const std::string& missing : call.incomplete) print_line(*err, "incomplete: {}", missing);
  const bool says_so_itself = rollout.verb == Verb::status && call.world.policies_served;
  if (call.no_operator && !says_so_itself) print_line(*err, "{}", call.no_operator->text());
  int code = 2;
  if (rollout.verb == Verb::diff) {
    code = co_await rollout_diff(&call);
  } else if (call.sharing_kinds.policies == Served::unknown || call.sharing_kinds.rollouts == Served::unknown) {
    // It is unknown whether SharingRollouts or ConfigMaps hold the switches, so none is set.
    co_return call.refuse("the SharingPolicies and SharingRollouts cannot be read (see `incomplete`)");
  } else if (!call.world.policies_served) {
    const bool pauses = rollout.verb == Verb::pause || rollout.verb == Verb::resume;
    if (rollout.verb == Verb::status) co_return show_status_without_crds(call);
    if (!pauses)
      co_return call.refuse(fmt::format(
          "the SharingPolicy/SharingRollout CRDs are not installed in this cluster: only `rollout pause`, `resume` and "
          "`diff` work without them. A rollout in progress continues from the operator's record: `gpu-sharing-operator "
          "status` shows its nodes. Install them: {}",
          kInstallCrds));
    code = co_await pause_config_maps(&call, rollout.verb == Verb::pause);
  } else if (rollout.verb == Verb::status) {
    code = show_status(call);  // Also of a policy that is gone and still stops its nodes.
  } else if (const std::string unknown = unknown_policy(call.world, rollout.name); !unknown.empty()) {
    co_return call.refuse(unknown);
  } else if (rollout.verb == Verb::history) {
    code = show_history(call);
  } else if (rollout.verb == Verb::start) {
    code = co_await start(&call);
  } else if (rollout.verb == Verb::undo) {
    code = co_await rollout_undo(&call);
  } else {
    code = co_await set_switch(&call);
  }
  co_return code;
}

int run_rollout(const RolloutOptions& rollout, const Options& options, std::istream& in, std::ostream& out,
                std::ostream& err) {
  std::string input;
  if (!rollout.file.empty()) {
    k8s::Result<std::string> text = read_input(rollout.file, in);
    if (!text) {
      print_line(err, "gpu-sharing-operator {}: {}", command_of(rollout.verb), text.error().message);
      return 2;
    }
    input = *std::move(text);
  }
  const PlannerSettings settings = options.planner_settings();
  RolloutOptions asked = rollout;
  asked.lease_name = options.lease_name;
  return change_cluster(command_of(rollout.verb), options, err, [&](k8s::ApiClient* client, k8s::Clock* clock) {
    return rollout_command(client, clock, asked, settings, input, &out, &err);
  });
}

}  // namespace gso
