// `rollout undo`. The operator reverts an inline profile by itself. For others the rollout is paused, or before it is
// there its policy, and the last verified text is printed; it is written to the ConfigMap only on request, and never if
// a GitOps tool manages it.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/print.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/report/report.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr int kForbiddenByOwner = 1;

bool has_inline_profile(const World& world, const SharingRollout& rollout) {
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  return policy != nullptr && policy->inline_profile &&
         inline_profile_key(policy->meta.name, *policy->inline_profile) == rollout.key;
}

// --- What follows once a text is restored.

// What starts no node until a person, a calendar or another profile ends that; open: nothing of the kind.
GateState lasting_stop(const RolloutView& rollout) {
  GateState ended = ended_by(rollout);
  if (!ended.is_open()) return ended;
  const GateState& gate = rollout.gate();
  return outlasts_retry(gate.gate) ? gate : GateState();
}

void print_stop(const RolloutView& rollout, const GateState& stop, std::int64_t count, std::ostream& out) {
  Command command = stop_command(rollout);
  if (command.empty()) command = start_command(rollout.key.policy);
  const bool one = count == 1;
  print_line(out, "{} of policy {} {} not start ({}): {}. To start {}: {}", counted(count, "node"), rollout.key.policy,
             one ? "does" : "do", stop.reason(), stop.message, one ? "it" : "them", command.text());
}

// Which nodes change to the text by themselves and how to prevent that, or what they wait for. `call.world` has the
// text. Nothing is printed if no node needs it.
void print_what_follows(const RolloutCall& call, const Undo& undo, std::ostream& out) {
  FleetIndex index;
  index.refresh(call.world, call.settings);
  ReadingPass pass(call.world, index, call.settings, call.clock->now());
  for (const auto& [key, rollout_nodes] : index.impl().profile_rollouts) {
    if (key.config_map != undo.config_map || key.key != undo.key) continue;
    const std::int64_t count = rollout_nodes.tally.of(Phase::pending) + rollout_nodes.tally.moving();
    const RolloutView* rollout = count > 0 ? pass.rollout(key) : nullptr;
    if (rollout == nullptr) continue;
    if (const GateState stop = lasting_stop(*rollout); !stop.is_open()) {
      print_stop(*rollout, stop, count, out);
      continue;
    }
    const bool was_paused = undo.rollout != nullptr && undo.rollout->paused && undo.rollout->policy == key.policy;
    print_line(out,
               "{} of policy {} then {} to it without a resume{}. To prevent that: gpu-sharing-operator rollout "
               "pause policy/{}",
               counted(count, "node"), key.policy, count == 1 ? "changes" : "change",
               was_paused ? fmt::format("; the pause of {} does not stop that", undo.rollout->meta.name) : "",
               key.policy);
  }
}

// --- The undo itself.

asio::awaitable<int> write_back(RolloutCall* call, Undo undo) {
  const k8s::ObjectKey key = config_map_key(undo.config_map);
  const k8s::Result<std::string> found = co_await call->client->get(resources::config_maps, key);
  if (!found) co_return call->refuse(found.error().message);
  const GitOpsOwner owner = gitops_owner(project_configmap(*found).value_or(ConfigMap()));
  if (!owner.tool.empty()) {
    *call->err << fmt::format(
        "gpu-sharing-operator rollout: ConfigMap {} was not written: {} ({}) manages it and would overwrite the "
        "change. Put the text below into its source\n",
        undo.config_map, owner.tool, owner.mark);
    *call->out << undo.text;
    co_return kForbiddenByOwner;
  }
  const OrderedJson config_map = OrderedJson::parse(*found, nullptr, false);
  if (flag_at(config_map, "immutable"))
    co_return call->refuse(fmt::format("ConfigMap {} is immutable", undo.config_map));
  const std::string version = text_at(object_at(config_map, "metadata"), "resourceVersion");
  const OrderedJson body{{"metadata", {{"resourceVersion", version}}}, {"data", {{undo.key, undo.text}}}};
  const std::string text = body.dump();
  const k8s::Result<std::string> written = co_await call->client->merge_patch(resources::config_maps, key, text);
  if (!written) co_return call->refuse(written.error().message);
  *call->out << fmt::format(
      "ConfigMap {} key {}: restored {} ({}){}\n", undo.config_map, undo.key, undo.to.revision, undo.to.why,
      undo.is_last_verified ? "; a rollout to the revision that was verified last skips the canary" : "");
  const GivenText given{.config_map = key, .keys = {{undo.key, undo.text}}};
  const k8s::Result<void> applied = apply_given(call->world, call->settings, given, call->clock->now());
  if (applied) print_what_follows(*call, undo, *call->out);
  *call->out << "next: gpu-sharing-operator rollout status\n";
  co_return 0;
}

asio::awaitable<int> undo_inline(RolloutCall* call, std::string name, std::string policy) {
  const std::string text = OrderedJson{{"metadata", {{"annotations", {{kUndoAnnotation, "true"}}}}}}.dump();
  const bool done = co_await patch_sharing_object(call, resources::sharing_rollouts, name, text);
  if (!done) co_return 2;
  *call->out << fmt::format(
      "{}: undone. The nodes of policy {} return to the last verified profile. Retry: rollout start policy/{}. To keep "
      "the old profile, change spec.profile\n",
      name, policy, policy);
  co_return 0;
}

// Of the policies that would start nodes with the key's present text, those that an undo must pause as well: the pause
// of a rollout does not hold the revision that comes next, and before its rollout is there only the policy can be
// paused.
std::vector<AboutToStart> policies_to_pause(RolloutCall& call, const Undo& undo) {
  const std::optional<std::string> policy = policy_of(call.options.name);
  ReadingPass pass(call.world, call.index, call.settings, call.clock->now());
  std::vector<AboutToStart> out = about_to_start(pass, [&](const RolloutKey& key) {
    return key.config_map == undo.config_map && key.key == undo.key && (!policy || key.policy == *policy);
  });
  std::erase_if(out, &AboutToStart::paused);
  return out;
}

asio::awaitable<bool> pause_policies(RolloutCall* call, std::vector<AboutToStart> policies) {
  bool all = true;
  for (const AboutToStart& one : policies) {
    const std::string body = OrderedJson{{"spec", {{"rollout", {{"paused", true}}}}}}.dump();
    const bool paused = co_await patch_sharing_object(call, resources::sharing_policies, one.policy, body);
    all = all && paused;
    *call->err << (paused ? fmt::format("policy {0}: paused: no further node starts\n  to resume it, once the text is "
                                        "restored: gpu-sharing-operator rollout resume policy/{0}\n",
                                        one.policy)
                          : fmt::format("policy {0} is not paused{1}; to stop it: gpu-sharing-operator rollout pause "
                                        "policy/{0}\n",
                                        one.policy, one.start.empty() ? "" : ": " + one.start));
  }
  co_return all;
}

// What is not under way, or is paused, stays as it is.
asio::awaitable<bool> pause(RolloutCall* call, Undo undo) {
  const std::vector<AboutToStart> policies = policies_to_pause(*call, undo);
  bool all = co_await pause_policies(call, policies);
  if (!undo.under_way) co_return all;
  const std::string name = undo.rollout->meta.name;
  const std::string body = OrderedJson{{"spec", {{"paused", true}}}}.dump();
  const bool paused = co_await patch_sharing_object(call, resources::sharing_rollouts, name, body);
  if (paused)
    *call->err << fmt::format(
        "{}: paused: no further node starts, nodes with a deleted pod finish, nodes that only wait are uncordoned\n",
        name);
  // A rollout to the restored text is another one.
  const SharingPolicy* policy = call->world.policies.find(undo.rollout->policy);
  const bool policy_is_paused = policy == nullptr || policy->rollout.paused ||
                                std::ranges::find(policies, policy->meta.name, &AboutToStart::policy) != policies.end();
  if (paused && !policy_is_paused)
    *call->err << fmt::format(
        "  once the text is restored, nodes change to it without a resume. To prevent that: gpu-sharing-operator "
        "rollout pause policy/{}\n",
        policy->meta.name);
  all = all && paused;
  co_return all;
}

// "pauses the rollout and policy default, and "; empty: nothing that could be paused is about to start.
std::string what_is_paused(RolloutCall& call, const Undo& undo) {
  std::vector<std::string> out;
  if (undo.under_way) out.emplace_back("the rollout");
  for (const AboutToStart& one : policies_to_pause(call, undo)) out.push_back("policy " + one.policy);
  return out.empty() ? std::string() : fmt::format("pauses {} and ", fmt::join(out, " and "));
}

// The policy names this key, whose text has been verified: it is the choice of the key that would have to go back.
bool is_choice_of_key(const World& world, const FleetRecord* record, const SharingRollout& rollout) {
  const SharingPolicy* policy = world.policies.find(rollout.policy);
  if (policy == nullptr || policy->config_map_key != rollout.key || record == nullptr) return false;
  const auto verified = record->verified.find(rollout.config_map + "/" + rollout.key);
  return verified != record->verified.end() && verified->second == rollout.to_revision;
}

std::string key_before(const World& world, const SharingRollout& rollout) {
  for (const RolloutFacts& facts : all_rollouts(world)) {
    const SharingRollout& other = *facts.rollout;
    const bool same =
        other.policy == rollout.policy && other.config_map == rollout.config_map && other.key != rollout.key;
    if (same && facts.phase == "Completed") return other.key;
  }
  return {};
}

asio::awaitable<int> undo_choice_of_key(RolloutCall* call, Undo undo) {
  bool stopped = true;
  if (!call->options.dry_run) stopped = co_await pause(call, undo);
  if (!stopped) co_return 2;
  const std::string before = key_before(call->world, *undo.rollout);
  *call->out << fmt::format(
      "policy {} selects key {}, and the text of that key is the verified one. To go back, set "
      "spec.profile.configMapKey{}\n",
      undo.rollout->policy, undo.key, before.empty() ? "" : " to " + before);
  co_return 0;
}

void print_text(const RolloutCall& call, const Undo& undo) {
  if (call.options.json) {
    const OrderedJson document{{"version", kRolloutJsonVersion},
                               {"rollout", undo.rollout == nullptr ? "" : undo.rollout->meta.name},
                               {"configMap", undo.config_map},
                               {"key", undo.key},
                               {"revision", undo.to.revision},
                               {"why", undo.to.why},
                               {"text", undo.text}};
    print_document(document, OutputForm::json, *call.out);
    return;
  }
  *call.out << fmt::format(
      "# Write this as key {} of ConfigMap {} ({}, {}), or run again with --write-configmap:\n{}{}", undo.key,
      undo.config_map, undo.to.revision, undo.to.why, undo.text, undo.text.ends_with('\n') ? "" : "\n");
}

// What else the key could go back to. `out` is stderr where the text itself goes to stdout: that is put into a file.
void print_others(const Undo& undo, std::ostream& out) {
  for (const auto& [revision, why] : undo.others)
    out << fmt::format("instead: gpu-sharing-operator rollout undo --to-revision {0}  # goes to {0} ({1})\n", revision,
                       why);
}

// The command without --dry-run, for whoever likes what it would do.
void print_how_to_undo(const RolloutCall& call, bool is_inline, std::string_view pauses) {
  std::string again = "gpu-sharing-operator rollout undo";
  if (!call.options.name.empty()) again += " " + call.options.name;
  if (!call.options.to_revision.empty()) again += " --to-revision " + call.options.to_revision;
  if (!is_inline) *call.out << "next: " << again << " --write-configmap  # writes it into the ConfigMap\n";
  if (!is_inline) again += fmt::format("  # {}prints the text, for a ConfigMap from Git", pauses);
  *call.out << "next: " << again << "\n";
}

asio::awaitable<int> preview_undo(RolloutCall* call, Undo undo, std::string text) {
  if (text.empty()) co_return call->refuse("the text to go back to is not on record, so its effect cannot be shown");
  if (!call->options.json) {
    *call->out << fmt::format("Would restore {} ({}) as key {} of ConfigMap {}\n",
                              undo.to.revision.empty() ? "the text before" : undo.to.revision,
                              undo.to.why.empty() ? "completed before it" : undo.to.why, undo.key, undo.config_map);
  }
  const std::optional<GivenText> given =
      GivenText{.config_map = config_map_key(undo.config_map), .keys = {{undo.key, text}}};
  const std::string all_policies;
  co_return co_await preview(call, given, all_policies);
}

}  // namespace

asio::awaitable<int> rollout_undo(RolloutCall* call) {
  const FleetRecord* record = call->index.impl().record_or_null();
  const bool asked = !call->options.to_revision.empty();
  if (record == nullptr && !asked && call->world.unsynced_namespaces.contains(call->settings.operator_namespace))
    co_return call->refuse("the operator's record cannot be read (see `incomplete`): what was verified is not known");
  const k8s::Result<Undo> chosen =
      choose_undo(call->world, call->index, record, call->options.name, call->options.to_revision);
  if (!chosen) co_return call->refuse(chosen.error().message);
  const Undo& undo = *chosen;
  const bool is_inline = undo.rollout != nullptr && has_inline_profile(call->world, *undo.rollout);
  int code = 0;
  if (is_inline && asked) {
    co_return call->refuse(
        fmt::format("key {} holds the inline profile of policy {}: change spec.profile of the policy instead. `rollout "
                    "history {}` prints the text of that rollout",
                    undo.key, undo.rollout->policy, undo.rollout->meta.name));
  }
  const bool changes_key = !asked && undo.rollout != nullptr && is_choice_of_key(call->world, record, *undo.rollout);
  if (call->options.dry_run && !changes_key) {
    const std::string text = is_inline ? inline_text_before(call->world, *undo.rollout) : undo.text;
    const std::string pauses = what_is_paused(*call, undo);  // The preview changes what the call has read.
    code = co_await preview_undo(call, undo, text);
    if (code == 0 && !call->options.json && !is_inline) print_what_follows(*call, undo, *call->out);
    if (code == 0 && !call->options.json) print_how_to_undo(*call, is_inline, pauses);
    if (!is_inline && !asked && !call->options.json) print_others(undo, *call->out);
    co_return code;
  }
  if (is_inline) {
    const std::string name = undo.rollout->meta.name;
    co_return co_await undo_inline(call, name, undo.rollout->policy);
  }
  if (changes_key) co_return co_await undo_choice_of_key(call, undo);
  if (undo.text.empty()) {
    co_return call->refuse(
        undo.to.revision.empty()
            ? fmt::format("no verified revision is recorded for {} key {} before the present one", undo.config_map,
                          undo.key)
            : fmt::format("the text of {} is not recorded; `rollout history` lists the recorded ones",
                          undo.to.revision));
  }
  if (call->options.write_config_map) co_return co_await write_back(call, undo);
  const bool paused = co_await pause(call, undo);
  if (!paused) co_return 2;
  print_text(*call, undo);
  if (!asked) print_others(undo, *call->err);
  co_return 0;
}

}  // namespace gso
