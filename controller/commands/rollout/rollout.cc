// Reading the world once, and choosing the verb.
#include "controller/commands/rollout/rollout.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "controller/commands/rollout/verbs.h"
#include "controller/commands/rollout/view.h"
#include "controller/commands/shared/print_line.h"
#include "controller/commands/shared/session.h"
#include "controller/config/operator_options.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/forbidden_hint.h"
#include "controller/reading/input_file.h"
#include "k8sclient/api/client.h"
#include "reconcilers/cluster/unread_decisions.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

namespace asio = boost::asio;

int RolloutCall::refuse(std::string_view why) const {
  print_line(*err, "gpu-sharing-operator {}: {}", command_of(options.verb), why);
  return 2;
}

std::string without_crds_text() {
  return fmt::format(
      "the SharingPolicy/SharingRollout CRDs are not installed in this cluster: install them with `{}`; without them "
      "the annotation {}=true of a device plugin's ConfigMap pauses what it serves, and `gpu-sharing-operator status` "
      "shows the nodes",
      kInstallCrds, kPausedAnnotation);
}

asio::awaitable<bool> patch_sharing_object(RolloutCall* call, k8s::Gvr resource, std::string name, std::string body) {
  const k8s::ObjectKey key{"", name};
  const k8s::WriteOptions options;
  const k8s::Result<std::string> patched = co_await call->client->merge_patch(resource, key, body, options);
  if (!patched) (void)call->refuse(explain_error(patched.error(), "patch", resource, ""));
  co_return patched.has_value();
}

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
  OperatorPresence found = co_await find_operator(client, clock, lease, &call.incomplete);
  call.no_operator = std::move(found.none);
  call.operator_lease = std::move(found.running);
  // A verb that writes says itself what it needs of the record.
  if (rollout.verb == Verb::status) note_record_elsewhere(call.no_operator, settings, &call.world, &call.incomplete);
  for (const std::string& missing : call.incomplete) print_line(*err, "incomplete: {}", missing);
  const bool unread = sharing_objects_unread(call.world);
  const bool says_so_itself = rollout.verb == Verb::status && call.world.policies_served && !unread;
  if (call.no_operator && !says_so_itself) print_line(*err, "{}", call.no_operator->text());
  int code = 2;
  if (rollout.verb == Verb::diff) {
    code = co_await rollout_diff(&call);
  } else if (unread) {
    // It is unknown whether SharingRollouts or ConfigMaps hold the switches, so none is set.
    co_return call.refuse("the SharingPolicies and SharingRollouts cannot be read (see `incomplete`)");
  } else if (!call.world.policies_served) {
    co_return call.refuse(without_crds_text());
  } else if (rollout.verb == Verb::status) {
    code = show_status(call);  // Also of a policy that is gone and still stops its nodes.
  } else if (const std::string unknown = unknown_policy(call.world, rollout.name); !unknown.empty()) {
    co_return call.refuse(unknown);
  } else if (rollout.verb == Verb::history) {
    code = show_history(call);
  } else if (rollout.verb == Verb::start) {
    code = co_await rollout_start(&call);
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
