// Sending one action, what its answer means, and what may be sent when.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/writes/executor.h"
#include "k8sclient/api/object_json.h"
#include "k8sclient/backoff.h"
#include "k8sclient/value/overloaded.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"
#include "reconcilers/rollout/stops.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

using Json = nlohmann::json;

std::string remedy(const PlannedAction& planned, const k8s::Error& error) {
  if (error.reason != k8s::Reason::forbidden) return "the request itself must change";
  const Verb verb = verb_of(planned.action);
  const ObjectRef target = target_of(planned.action);
  std::string text = fmt::format("grant the verb {} on {}", verb.verb, verb.resource);
  const bool evicts = std::holds_alternative<EvictPod>(planned.action);
  if (!target.ns.empty()) text += fmt::format(" in namespace {}", target.ns);
  const bool reservation = planned.reconciler == kReservationGc;
  const bool restarts = std::holds_alternative<RestartDaemonSet>(planned.action);
  const char* value = evicts                             ? "eviction.enabled"
                      : restarts                         ? "daemonSetRestart.enabled"
                      : planned.why.code == kRejectedPod ? "rejectedPods.namespaces"
                      : reservation                      ? "kai.reservationNamespaces"
                                                         : "operandNamespaces";
  if (evicts || !target.ns.empty()) text += fmt::format(" (chart value {})", value);
  return text;
}

std::string restart_body(const RestartDaemonSet& restart) {
  const Json annotations{{kRestartedForAnnotation, restart.restarted_for}};
  Json body{{"metadata", {{"resourceVersion", restart.resource_version}}}};
  body["spec"]["template"]["metadata"]["annotations"] = annotations;
  return body.dump();
}

// What a budget that refuses says, without what the message about the pod that is not evicted says already.
std::string budget_answer(const k8s::Error& error) {
  std::string out;
  for (const k8s::Cause& cause : error.causes)
    if (cause.reason == k8s::kBudgetCause && !cause.message.empty()) out += (out.empty() ? "" : "; ") + cause.message;
  if (!out.empty()) return out;
  return error.http_status == 500 ? "several PodDisruptionBudgets select it, and the API server evicts no such pod"
                                  : error.message;
}

// Nothing was done, and not for the object's sake: the client's lanes slow down all writes (RequestLane), so this one
// need not wait longer each time.
constexpr Duration kOverloadWait = std::chrono::seconds(1);
bool is_overload(const k8s::Error& error) {
  return error.reason == k8s::Reason::too_many_requests || (error.http_status == 503 && error.retry_after);
}

std::string phase_of_status(const std::string& status_json) {
  return text_at(parse_status(status_json), "phase");
}

// The action without what differs from pass to pass: who is refused does not ask again for that.
Action without_moment(Action action) {
  auto* patch = std::get_if<PatchNode>(&action);
  if (patch == nullptr) return action;
  patch->resource_version.reset();
  const auto change = patch->set_annotations.find(std::string(kChangeAnnotation));
  if (change == patch->set_annotations.end()) return action;
  k8s::Result<NodeChange> written = parse_change(change->second);
  if (!written) return action;
  written->begun = written->listed = {};
  change->second = print_change(*written);
  return action;
}

// A merge patch that the server refuses if the object has another version; without one it is the patch as it is.
std::string with_version(std::string patch, const std::string& version) {
  if (version.empty() || patch == "{}") return patch;
  return fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},{})", version, std::string_view(patch).substr(1));
}

}  // namespace

boost::asio::awaitable<k8s::Result<std::string>> Executor::send(RunPtr run, Planned planned, bool* sent) {
  k8s::WriteOptions options;
  options.deadline = std::min(parts_.clock->monotonic() + options_.write_timeout, parts_.gate.end_by());
  const ActionTraits& traits = traits_of(planned->action);
  options.metadata_only = !traits.is_known_from_answer;  // The expectations need the version of others only.
  options.kind = traits.kind;
  options.max_retries = 0;  // What is refused is planned again; meanwhile its place is another node's.
  const bool once = is_reservation_deletion(*planned);
  int attempts = 0;
  options.before_send = [this, planned, sent, once, attempts]() mutable -> k8s::Result<void> {
    if (once && attempts++ > 0)
      return k8s::fail(k8s::Reason::unavailable, "not deleted yet; it is checked again before the next attempt");
    if (crashed_) return k8s::fail(k8s::Reason::cancelled, "stopped");
    k8s::Result<void> allowed = parts_.gate.check();
    if (!allowed) return allowed;
    if (!std::exchange(*sent, true)) count_unanswered(1);
    if (parts_.hooks.before_write) parts_.hooks.before_write(*planned);
    return allowed;
  };
  const Action& action = planned->action;
  const bool pod = std::holds_alternative<DeletePod>(action) || std::holds_alternative<EvictPod>(action);
  if (pod) co_return co_await send_pod(planned, options);
  co_return co_await send_object(run, planned, options);
}

boost::asio::awaitable<k8s::Result<std::string>> Executor::send_pod(Planned planned, k8s::WriteOptions options) {
  const Action& action = planned->action;
  k8s::DeleteOptions preconditions;
  k8s::Result<void> answer;
  if (const auto* remove = std::get_if<DeletePod>(&action)) {
    preconditions.uid = remove->uid;
    preconditions.resource_version = remove->resource_version.value_or("");
    preconditions.grace_period_seconds = remove->grace_period_seconds;
    answer = co_await parts_.client->remove(resources::pods, remove->pod, preconditions, options);
  } else {
    const auto& evict = std::get<EvictPod>(action);
    const std::string_view owner = ProtectedNamespaces(*parts_.world, *parts_.settings).owner_of(evict.pod.ns);
    if (!owner.empty()) {
      co_return k8s::fail(k8s::Reason::invalid, fmt::format("pod {} is not evicted: its namespace belongs to {}",
                                                            k8s::to_string(evict.pod), owner));
    }
    preconditions.uid = evict.uid;
    answer = co_await parts_.client->evict(evict.pod, preconditions, options);
  }
  if (!answer) co_return std::unexpected(answer.error());
  co_return std::string();
}

boost::asio::awaitable<k8s::Result<std::string>> Executor::send_object(RunPtr run, Planned planned,
                                                                       k8s::WriteOptions options) {
  const Action& action = planned->action;
  k8s::Writer* client = parts_.client;
  const ObjectRef target = target_of(action);
  const k8s::Gvr resource = resource_of(target);
  const ObjectKey key = target.key();
  k8s::Result<std::string> answer = std::string();
  if (const auto* write = std::get_if<WriteConfigMap>(&action)) {
    const std::string body = apply_body(*write, basis_of(run, action));
    // The operator owns every key that is sent: all keys of the state ConfigMap, and in the plugin's ConfigMap the keys
    // named here.
    options.force = true;
    options.metadata_only = false;  // What an apply leaves behind is in its answer alone: the audit log shows it.
    answer = co_await client->apply(resource, key, body, options);
  } else if (const auto* create = std::get_if<CreateObject>(&action)) {
    answer = co_await client->create(resource, target.ns, create->json, options);
  } else if (const auto* remove = std::get_if<DeleteObject>(&action)) {
    k8s::DeleteOptions preconditions;
    preconditions.uid = remove->object.uid;
    preconditions.resource_version = remove->resource_version;
    preconditions.propagation_policy = "Background";
    const k8s::Result<void> removed = co_await client->remove(resource, key, preconditions, options);
    if (!removed) answer = std::unexpected(removed.error());
  } else {
    if (std::holds_alternative<PatchStatus>(action)) options.subresource = "status";
    const std::string patch = patch_of(action, basis_of(run, action));
    answer = co_await client->merge_patch(resource, key, patch, options);
  }
  co_return answer;
}

void Executor::note_bases(Pass& pass, const std::vector<PlannedAction>& actions) const {
  const World& world = *parts_.world;
  for (const PlannedAction& planned : actions) {
    const ObjectRef target = target_of(planned.action);
    const ObjectKey key = target.key();
    Basis basis;
    const auto take = [&basis](const auto& object) {
      if (object != nullptr) basis.meta = {object, &object->meta};
    };
    const auto take_status = [&](const auto& object) {
      take(object);
      if (object != nullptr) basis.status = {object, &object->status_json};
    };
    if (target.kind == "ConfigMap") take(basis.config_map = world.configmaps.get(key));
    if (std::holds_alternative<PatchStatus>(planned.action)) {
      if (target.kind == "SharingPolicy") take_status(world.policies.get(key));
      if (target.kind == "SharingRollout") take_status(world.rollouts.get(key));
    }
    if (basis.meta != nullptr) pass.bases.insert_or_assign(BasisKey{target.kind, key}, std::move(basis));
  }
}

// The merge patch of an action that is one.
std::string Executor::patch_of(const Action& action, const Basis* basis) {
  const std::string version = basis == nullptr ? std::string() : basis->version();
  return std::visit(
      k8s::Overloaded{
          [](const PatchNode& node) { return merge_patch_of(node); },
          [&](const PatchConfigMap& keys) { return with_version(merge_patch_of(keys), version); },
          [&](const PatchStatus& status) {
            const std::string changes = merge_patch_between(basis == nullptr ? "" : *basis->status, status.status_json);
            return with_version(R"({"status":)" + changes + "}", version);
          },
          [](const PatchFinalizers& change) {
            return Json{{"metadata", {{"resourceVersion", change.resource_version}, {"finalizers", change.finalizers}}}}
                .dump();
          },
          [](const RestartDaemonSet& restart) { return restart_body(restart); },
          [](const auto&) { return std::string(); },
      },
      action);
}

const Executor::Basis* Executor::basis_of(const RunPtr& run, const Action& action) {
  const ObjectRef target = target_of(action);
  const auto found = run->pass->bases.find(BasisKey{target.kind, target.key()});
  return found == run->pass->bases.end() ? nullptr : &found->second;
}

std::string Executor::apply_body(const WriteConfigMap& write, const Basis* basis) const {
  // Server-side apply removes keys that are left out, so every apply contains all keys that the operator owns and
  // keeps: those are all keys of the state ConfigMap, and in the plugin's ConfigMap those that our field manager owns
  // ("gso-…").
  Json data = Json::object();
  if (basis != nullptr) {
    const bool state = is_state(write.config_map);
    for (const auto& [key, text] : basis->config_map->data) {
      const bool kept = state || basis->config_map->our_keys.contains(key);
      if (kept && !write.remove.contains(key)) data[key] = *text;
    }
  }
  for (const auto& [key, text] : write.set) data[key] = text;
  Json body{{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", write.config_map.name}, {"namespace", write.config_map.ns}}},
            {"data", std::move(data)}};
  if (basis != nullptr) body["metadata"]["resourceVersion"] = basis->version();
  if (is_shard(options_.state_config_map, write.config_map))  // The watch finds it by that.
    body["metadata"]["labels"][std::string(kRecordLabel)] = kRecordShardValue;
  return dump(body);
}

void Executor::count(const PlannedAction& planned, const std::string& result) {
  const Verb verb = verb_of(planned.action);
  parts_.metrics->add("gpusharing_writes_total",
                      {{"verb", verb.verb}, {"kind", target_of(planned.action).kind}, {"result", result}});
  if (planned.reconciler == kReservationGc && std::holds_alternative<DeletePod>(planned.action))
    parts_.metrics->add("gpusharing_reservation_gc_total", {{"decision", result == "ok" ? "deleted" : "failed"}});
}

void Executor::note_ungated(const std::string& node) {
  if (!parts_.view) return;
  const MonoTime now = parts_.clock->monotonic();
  auto& noted = parts_.view->loaded_ungated;
  std::erase_if(noted, [&](const auto& entry) { return now - entry.second > kUngatedNamed; });
  noted[node] = now;
}

// What the answer lacks of the status: no status is written again only because of that.
void Executor::note_dropped(const PatchStatus& status, const std::string& answer) {
  const Json stored = object_at(Json::parse(answer, nullptr, false), "status");
  const Json sent = Json::parse(status.status_json, nullptr, false);
  std::set<std::string>& dropped = parts_.world->dropped_status_fields[status.object.kind];
  const bool is_first = dropped.empty();
  if (stored.empty() || (is_first && stored == sent)) return;  // As nearly always.
  const Json kept = stored.flatten();
  const Json fields = sent.flatten();
  for (const auto& [path, value] : fields.items()) {
    dropped.erase(path);
    if (!value.is_null() && !kept.contains(path)) dropped.insert(path);  // With null, a field is to go.
  }
  if (!is_first || dropped.empty()) return;
  parts_.log->warning("The API server drops fields of the status: apply the CRDs of this release",
                      {{"kind", status.object.kind},
                       {"fields", fmt::format("{}", fmt::join(dropped, ", "))},
                       {"command", std::string(kInstallCrds)}});
}

void Executor::succeed(const RunPtr& run, const PlannedAction& planned, const std::string& answer) {
  const std::string subject = subject_of(planned);
  const ObjectRef target = target_of(planned.action);
  ++run->result.succeeded;
  count(planned, "ok");
  pauses_.erase(subject);
  if (const auto* evicted = std::get_if<EvictPod>(&planned.action)) {
    run->result.evictions[planned.node][evicted->uid] = {};
    // The pod's owner reads the pod's Events, not the operator's log.
    run->result.events.push_back(
        {.regarding = target, .warning = false, .why = {kEvicted, planned.why.message}, .verb = "Evict"});
  }
  if (std::holds_alternative<PatchNode>(planned.action)) {
    failed_patches_.erase(target.name);
    parts_.metrics->add("gpusharing_node_changes_total", {{"reason", planned.why.code}});
    if (planned.why.code == kLoadedUngated) note_ungated(target.name);
  }
  const auto basis = run->pass->bases.find(BasisKey{target.kind, target.key()});
  if (basis != run->pass->bases.end()) basis->second.written = k8s::read_resource_version(answer);
  if (const auto* status = std::get_if<PatchStatus>(&planned.action)) {
    const MonoTime until = parts_.clock->monotonic() + options_.status_interval;
    pauses_[subject] = {.until = until, .phase = phase_of_status(status->status_json)};
    note_dropped(*status, answer);
  }
  const ActionTraits& traits = traits_of(planned.action);
  if (traits.deletes) {
    parts_.expectations->deleted(target, target.uid, {planned.node, nullptr});
  } else if (const std::string version = k8s::read_resource_version(answer); !version.empty()) {
    parts_.expectations->written(target, version, {planned.node, change_in(planned)});
    if (traits.is_known_from_answer) parts_.expectations->learn(target, answer);
  } else {
    parts_.expectations->unknown(target, {planned.node, change_in(planned)});
  }
  const bool status = std::holds_alternative<PatchStatus>(planned.action) || planned.why.code == kStatusChanged;
  const LogLevel level = status ? LogLevel::debug : LogLevel::info;
  parts_.log->log(level, "Applied change",
                  {{"action", subject},
                   {"reconciler", planned.reconciler},
                   {"reason", planned.why.code},
                   {"detail", planned.why.message}});
}

bool Executor::fail(const RunPtr& run, const PlannedAction& planned, const k8s::Error& error) {
  const ObjectRef target = target_of(planned.action);
  const auto* remove = std::get_if<DeletePod>(&planned.action);
  const bool deletion = traits_of(planned.action).deletes;
  // Another uid means that the planned pod is gone. Otherwise the resourceVersion precondition has failed.
  const bool gone =
      error.reason == k8s::Reason::not_found || (deletion && error.reason == k8s::Reason::conflict &&
                                                 (remove == nullptr || !remove->resource_version.has_value()));
  if ((gone && deletion) ||
      (error.reason == k8s::Reason::already_exists && std::holds_alternative<CreateObject>(planned.action))) {
    ++run->result.succeeded;
    count(planned, "ok");
    pauses_.erase(subject_of(planned));
    if (const auto* evict = std::get_if<EvictPod>(&planned.action))
      run->result.evictions[planned.node][evict->uid] = {};
    return true;
  }
  count(planned, std::string(k8s::to_string(error.reason)));
  if (error.reason == k8s::Reason::cancelled) {
    defer(run, "lease", 1, std::nullopt);
    return false;
  }
  ++run->result.failed;
  // What has lost a race only, or is refused like everything, is tried again at once.
  const bool of_node = std::holds_alternative<PatchNode>(planned.action) && error.reason != k8s::Reason::conflict;
  if (of_node && !gone && !is_overload(error)) failed_patches_[target.name] = parts_.clock->monotonic();
  if (is_reservation_deletion(planned)) {
    LookupResults::Refusal& refusal = parts_.world->kai.lookups.refusals[remove->uid];
    refusal.at = parts_.clock->monotonic();
    ++refusal.count;
  }
  if (gone) {
    // The object was deleted meanwhile; its watch will show it.
    parts_.log->info("The object to write is gone", {{"action", subject_of(planned)}});
    back_off(run, subject_of(planned), planned.node, std::nullopt);
  } else if (error.reason == k8s::Reason::forbidden || error.reason == k8s::Reason::invalid) {
    give_up(run, planned, error);
  } else {
    parts_.log->warning("Write failed", {{"action", subject_of(planned)}, {"error", error.message}});
    std::optional<Duration> wait = error.retry_after;
    const bool budget = std::holds_alternative<EvictPod>(planned.action) && k8s::refused_by_budget(error);
    if (budget) {
      wait = std::max<Duration>(wait.value_or(Duration::zero()), options_.eviction_retry);
      std::string answer = budget_answer(error);
      run->result.findings.push_back(
          {Severity::warning, target, {kPdbRefuses, "a PodDisruptionBudget prevents its eviction: " + answer}});
      run->result.evictions[planned.node][target.uid] = {std::move(answer), false};
    }
    if (is_overload(error) && !budget)
      wait_out(run, subject_of(planned), planned.node, wait.value_or(kOverloadWait));
    else
      back_off(run, subject_of(planned), planned.node, wait);
    // After a conflict nothing was written, but the view of the object is old.
    const bool maybe_written = k8s::outcome_unknown(error);
    if (maybe_written) answer_lost_at_ = parts_.clock->monotonic();
    if (maybe_written || error.reason == k8s::Reason::conflict)
      parts_.expectations->unknown(target, {planned.node, maybe_written ? change_in(planned) : nullptr});
  }
  return false;
}

void Executor::back_off(const RunPtr& run, const std::string& subject, const std::string& node,
                        std::optional<Duration> wait) {
  // A failing object is retried ever more slowly. It does not delay others.
  constexpr k8s::Backoff kBackoff{std::chrono::milliseconds(250), std::chrono::minutes(5)};
  Pause& pause = pauses_[subject];
  pause.refused.reset();  // By a server that refuses it no more.
  wait_out(run, subject, node, std::max(kBackoff.after(pause.failures++), wait.value_or(Duration::zero())));
}

void Executor::wait_out(const RunPtr& run, const std::string& subject, const std::string& node, Duration wait) {
  Pause& pause = pauses_[subject];
  pause.until = parts_.clock->monotonic() + wait;
  pause.node = node;
  pause.phase.reset();
  run->result.requeue_after = std::min(run->result.requeue_after.value_or(wait), wait);
}

void Executor::give_up(const RunPtr& run, const PlannedAction& planned, const k8s::Error& error) {
  const std::string subject = subject_of(planned);
  run->result.replan = true;                                             // So that statuses say it.
  pauses_[subject] = {.until = {}, .refused = Refused{planned, error}};  // Its backoff starts again after that.
  wait_out(run, subject, planned.node, options_.terminal_retry);
  parts_.metrics->add("controller_runtime_terminal_reconcile_errors_total", {{"controller", planned.reconciler}});
  parts_.log->error("Write was refused",
                    {{"action", subject}, {"error", error.message}, {"remedy", remedy(planned, error)}});
  report(run, planned, error);
}

std::map<std::string, std::string> Executor::refused_writes() const {
  std::map<std::string, std::string> out;
  for (const auto& [subject, pause] : pauses_) {
    if (!pause.refused || pause.refused->error.reason != k8s::Reason::forbidden) continue;
    const auto& [planned, error] = *pause.refused;
    const bool of_change = !planned.node.empty() && !std::holds_alternative<EvictPod>(planned.action);
    if (of_change) out.emplace(planned.node, fmt::format("{}; {}", error.message, remedy(planned, error)));
  }
  return out;
}

std::set<std::string> Executor::failed_patches() {
  constexpr std::size_t kMost = 16;  // More are not the nodes' fault: who tried one after the other would ask for all.
  const MonoTime now = parts_.clock->monotonic();
  std::erase_if(failed_patches_, [&](const auto& entry) { return now - entry.second >= options_.failed_lately; });
  std::set<std::string> out;
  if (failed_patches_.size() > kMost) return out;
  for (const auto& [node, at] : failed_patches_) out.insert(node);
  return out;
}

void Executor::report(const RunPtr& run, const PlannedAction& planned, const k8s::Error& error) {
  const ObjectRef target = target_of(planned.action);
  const bool forbidden = error.reason == k8s::Reason::forbidden;
  const Reason why(forbidden ? kForbidden : "Invalid", fmt::format("{}; {}", error.message, remedy(planned, error)));
  if (const auto* evict = std::get_if<EvictPod>(&planned.action); evict != nullptr && forbidden)
    run->result.evictions[planned.node][evict->uid] = {why.message, true};
  run->result.findings.push_back({Severity::error, target, why});
  run->result.events.push_back({.regarding = target,
                                .warning = true,
                                .why = why,
                                .verb = planned.why.code.empty() ? "Write" : planned.why.code});
}

// --- What may be sent when: the backoff of what failed, refusals that are remembered, and how often a status is
// written.

std::string Executor::read_of_node(const std::string& node) {
  return "get nodes " + node;
}

std::optional<Duration> Executor::not_before(const PlannedAction& planned) {
  const auto it = pauses_.find(subject_of(planned));
  if (it == pauses_.end()) return std::nullopt;
  const Pause& pause = it->second;
  const auto is_refused = [&] {
    return without_moment(pause.refused->action.action) == without_moment(planned.action);
  };
  if (pause.refused && !is_refused()) {
    pauses_.erase(it);
    return std::nullopt;
  }
  const auto* status = std::get_if<PatchStatus>(&planned.action);
  if (pause.phase && status != nullptr && *pause.phase != phase_of_status(status->status_json)) return std::nullopt;
  const Duration left = pause.until - parts_.clock->monotonic();
  return left > Duration::zero() ? std::optional(left) : std::nullopt;
}

// Pod names do not repeat: entries that are neither pending nor wanted would be kept forever. For a node that is being
// written nothing is planned, and its failures go on counting.
void Executor::forget_what_is_over(const std::vector<PlannedAction>& actions) {
  if (remembered() == 0) return;
  const MonoTime now = parts_.clock->monotonic();
  std::set<std::string> planned;
  for (const PlannedAction& action : actions) {
    planned.insert(subject_of(action));
    if (!action.node.empty()) planned.insert(read_of_node(action.node));
  }
  const NodesBeingWritten written = nodes_being_written();
  std::erase_if(pauses_, [&](const auto& entry) {
    const auto& [subject, pause] = entry;
    if (pause.refused) return !planned.contains(subject);
    return now >= pause.until && (pause.phase || (!planned.contains(subject) && !written.contains(pause.node)));
  });
}

// Repeats the findings and Events of refusals that still apply, so that they remain while no write is sent.
void Executor::report_remembered(const RunPtr& run) {
  for (const auto& [subject, pause] : pauses_) {
    const bool applies = pause.refused && parts_.clock->monotonic() < pause.until;
    if (applies) report(run, pause.refused->action, pause.refused->error);
  }
}

}  // namespace gso
