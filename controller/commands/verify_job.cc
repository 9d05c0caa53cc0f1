// `verify`: what is asked of a node, the Job that asks it, and what its answers prove. Pure.
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "controller/commands/commands.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/mps.h"

namespace gso {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostByDefault = 16;
constexpr std::int64_t kMostGpusAsked = 16;
constexpr std::string_view kContainer = "client";

// --- What is asked, and whether the node can be asked now.

std::int64_t replicas_in_use(const ClusterView& view, const std::string& node, const std::string& resource) {
  std::int64_t out = 0;
  const auto listed = view.consumers.find(node);
  if (listed == view.consumers.end()) return out;
  for (const Pod& pod : listed->second.pods)
    for (const auto& [requested, count] : pod.gpu_requests) out += requested == resource ? count : 0;
  return out;
}

// Those that keep pods without GPUs off the node: NVIDIA's, and those that the device plugin's DaemonSet names. Others
// keep everybody off, and a toleration of everything (no key) says nothing about GPUs.
std::vector<Taint> gpu_taints(const Node& node, const Operand* plugin) {
  std::vector<Taint> out;
  for (const Taint& taint : node.taints) {
    const bool named = plugin != nullptr && std::ranges::any_of(plugin->tolerations, [&](const Toleration& toleration) {
                         return toleration.key == taint.key;
                       });
    const bool of_cluster = taint.key.view().starts_with("node.kubernetes.io/");
    if (taint.key.view().starts_with("nvidia.com/") || (named && !of_cluster)) out.push_back(taint);
  }
  return out;
}

// Why nothing can be proven on the node now; empty: it can.
std::string obstacle_of(const Node& node, const NodeAssessment* a, const ClientShare& share) {
  std::string why;
  if (a != nullptr && a->change != nullptr)
    why = fmt::format("is in a change ({}), so what gives pods their GPUs restarts: verify it afterwards",
                      to_string(a->phase));
  else if (share.strategy == Strategy::none)
    why = "shares no GPU by a valid profile of the device plugin, so there is nothing to verify";
  else if (a->loaded.revision != a->target)
    why = fmt::format("does not run its target yet ({}): verify it afterwards", to_string(a->phase));
  else if (!node.ready)
    why = "is NotReady, and starts no pod";
  else if (node.unschedulable)
    why = "is cordoned, so no new pod is placed there: verify it once it is uncordoned";
  else if (share.strategy == Strategy::mps && !share.knows_memory())
    why = fmt::format(
        "does not show the memory of each GPU (label {} is missing, or the GPUs are of several models), so no limit "
        "can "
        "be compared: state them in its annotation {} (docs/labels.md)",
        kGpuMemory, kDevicesAnnotation);
  const std::string& name = node.meta.name;
  return why.empty() ? why : fmt::format("node {} {}: gpu-sharing-operator explain node {}", name, why, name);
}

}  // namespace

k8s::Result<VerifyJob> plan_verification(const VerifyOptions& asked, const ClusterView& view, const FleetIndex& index) {
  const auto refuse = [](std::string why) { return k8s::fail(k8s::Reason::invalid, std::move(why)); };
  const Node* node = view.world.nodes.find(asked.node);
  if (node == nullptr) {
    std::vector<std::string> names;
    for (const auto& [key, each] : view.world.nodes.all()) names.push_back(shown_value(key.name));
    return refuse(fmt::format("node {} not found{}", asked.node, did_you_mean(asked.node, names)));
  }
  const NodeAssessment* a = index.assessment(asked.node);
  VerifyJob out{.asked = asked, .share = client_share(*node, a)};
  if (std::string why = obstacle_of(*node, a, out.share); !why.empty()) return refuse(std::move(why));
  const std::int64_t offered = amount_of(node->allocatable, out.share.resource);
  if (offered == 0)
    return refuse(fmt::format("node {0} offers no {1} now: gpu-sharing-operator explain node {0}", asked.node,
                              out.share.resource));
  if (asked.pods > offered)
    return refuse(fmt::format("node {} has {} {}: --pods {} would never run at the same time", asked.node, offered,
                              out.share.resource, asked.pods));
  const std::int64_t free = offered - replicas_in_use(view, asked.node, out.share.resource);
  if (asked.pods == 0 && free <= 0)
    return refuse(fmt::format("none of the {} {} of node {} is free: --pods N waits for N of them until --timeout",
                              offered, out.share.resource, asked.node));
  if (asked.pods == 0) out.asked.pods = std::min(free, kMostByDefault);
  const std::optional<std::vector<Device>> stated = facts_of(*node).devices;
  const std::int64_t measured = measured_gpus(*node, a->profile->profile());
  out.gpus = std::clamp<std::int64_t>(stated ? std::ssize(*stated) : measured, 1, kMostGpusAsked);
  const PluginInstallation& installation = index.impl().installation_of(*a);
  out.tolerated = gpu_taints(*node, installation.find(Component::plugin, *node));
  const NodePods operands = sort_pods(installation, index.impl().pods_of(asked.node));
  for (const Pod* daemon : operands.of(Component::mps))
    out.daemon_log =
        fmt::format("kubectl logs {} --namespace {} --all-containers", daemon->meta.name, daemon->meta.ns.view());
  return out;
}

// --- The Job.

namespace {

// Prints a line for each answer, and then one every few seconds for as long as it is left to run: that is how the
// command sees that all ran at the same time. It never ends by itself with an error, because a Job ends its other pods
// then. What hangs is given up.
constexpr std::string_view kScript = R"sh(set -f
say() { printf 'gso-verify %.400s\n' "$*"; }
limit=
if command -v timeout >/dev/null 2>&1; then limit='timeout 20'; fi
trap 'exit 0' TERM INT
PATH=$PATH:/usr/local/nvidia/bin
say start "$(date +%s)"
ask() { what=$1; shift; answer=$(echo "$*" | $limit nvidia-cuda-mps-control 2>&1); say "$what" $? $answer; }
if [ "$GPUS" -gt 0 ]; then
  say pipe "$CUDA_MPS_PIPE_DIRECTORY"
  if command -v nvidia-cuda-mps-control >/dev/null 2>&1; then
    say tool
    ask threads get_default_active_thread_percentage
    gpu=0
    while [ "$gpu" -lt "$GPUS" ]; do
      ask "memory $gpu" get_default_device_pinned_mem_limit "$gpu"
      gpu=$((gpu + 1))
    done
  fi
fi
program=
for each in /cuda-samples/vectorAdd /cuda-samples/sample; do
  if [ -x "$each" ]; then program=$each; break; fi
done
say program $program
say answered
while :; do
  at=$(date +%s)
  if [ -n "$program" ]; then
    answer=$($limit "$program" 2>&1)
    say cuda "$at" $? $(echo "$answer" | tail -n 1)
  else
    say runs "$at"
  fi
  sleep 2 & wait $!
done
)sh";

}  // namespace

std::string manifest_of(const VerifyJob& job) {
  constexpr std::int64_t kBeyondTimeout = 30;
  const Json on_node{{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({job.asked.node})}};
  Json terms = Json::array({{{"matchFields", Json::array({on_node})}}});
  Json tolerations = Json::array();
  for (const Taint& taint : job.tolerated)
    tolerations.push_back({{"key", taint.key.view()}, {"operator", "Exists"}, {"effect", taint.effect.view()}});
  const std::int64_t questions = job.share.strategy == Strategy::mps ? job.gpus : 0;
  Json container{
      {"name", kContainer},
      {"image", job.asked.image},
      {"command", Json::array({"/bin/sh", "-c", kScript})},
      // What the container toolkit mounts: the CUDA driver, and nvidia-cuda-mps-control with it.
      {"env", Json::array({{{"name", "NVIDIA_DRIVER_CAPABILITIES"}, {"value", "compute,utility"}},
                           {{"name", "GPUS"}, {"value", std::to_string(questions)}}})},
      {"resources", {{"requests", {{"cpu", "10m"}, {"memory", "64Mi"}}}, {"limits", {{job.share.resource, 1}}}}},
      {"securityContext", {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", Json::array({"ALL"})}}}}}};
  Json pod{{"restartPolicy", "Never"},
           {"terminationGracePeriodSeconds", 5},
           {"automountServiceAccountToken", false},
           {"affinity",
            {{"nodeAffinity",
              {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", std::move(terms)}}}}}}},
           {"tolerations", std::move(tolerations)},
           {"securityContext", {{"seccompProfile", {{"type", "RuntimeDefault"}}}}},
           {"containers", Json::array({std::move(container)})}};
  if (!job.asked.runtime_class.empty()) pod["runtimeClassName"] = job.asked.runtime_class;
  const Json labels{{"app.kubernetes.io/name", "gpu-sharing-verify"}};
  const std::int64_t timeout = std::chrono::ceil<std::chrono::seconds>(job.asked.timeout).count();
  const Json out{{"apiVersion", "batch/v1"},
                 {"kind", "Job"},
                 {"metadata", {{"name", job.name}, {"namespace", job.asked.ns}, {"labels", labels}}},
                 {"spec",
                  {{"parallelism", job.asked.pods},
                   {"completions", job.asked.pods},
                   {"backoffLimit", 0},
                   {"activeDeadlineSeconds", timeout + kBeyondTimeout},
                   {"ttlSecondsAfterFinished", kBeyondTimeout},
                   {"template", {{"metadata", {{"labels", labels}}}, {"spec", std::move(pod)}}}}}};
  return dump(out);
}

// --- What its pods say.

namespace {

std::string with_message(std::string text, const Json& object) {
  const std::string message = text_at(object, "message");
  return message.empty() ? text : fmt::format("{}: {}", text, shown_value(message));
}

void add_container(const Json& status, VerifyClient& out) {
  const Json state = object_at(status, "state");
  out.runs = member_at(state, "running") != nullptr;
  if (const Json* waiting = member_at(state, "waiting"); waiting != nullptr) {
    const std::string reason = text_at(*waiting, "reason");
    out.problem = with_message("its container waits: " + shown_value(reason), *waiting);
    out.ended = cannot_start(reason);
  }
  if (const Json* over = member_at(state, "terminated"); over != nullptr) {
    out.problem = with_message(fmt::format("its container has ended: {} (exit code {})",
                                           shown_value(text_at(*over, "reason")), number_at(*over, "exitCode")),
                               *over);
    out.ended = true;
  }
}

// The first word, which is taken from the rest.
std::string_view take_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  return word;
}

std::optional<VerifyClient::Answer> take_answer(std::string_view& rest) {
  const std::optional<std::int64_t> status = whole_number(take_word(rest));
  if (!status) return std::nullopt;
  return VerifyClient::Answer{*status, std::string(rest)};
}

void read_answer(std::string_view word, std::string_view rest, VerifyClient& out) {
  const auto time = [](std::string_view text) { return whole_number(text).value_or(0); };
  if (word == "start") {
    out.started = time(rest);
  } else if (word == "pipe") {
    out.pipe_directory = rest;
  } else if (word == "tool") {
    out.has_tool = true;
  } else if (word == "threads") {
    out.threads = take_answer(rest);
  } else if (word == "memory") {
    const bool next = whole_number(take_word(rest)) == std::ssize(out.memory);
    const auto answer = take_answer(rest);
    if (next && answer && std::ssize(out.memory) < kMostGpusAsked) out.memory.push_back(*answer);
  } else if (word == "program") {
    out.program = rest;
  } else if (word == "answered") {
    out.answered = true;
  } else if (word == "runs") {
    out.seen = std::max(out.seen, time(rest));
  } else if (word == "cuda") {
    const std::int64_t at = time(take_word(rest));
    const auto answer = take_answer(rest);
    if (answer && (!out.newest || out.newest->status == 0)) out.newest = answer;
    if (answer) out.seen = std::max(out.seen, at);
  }
}

}  // namespace

k8s::Result<VerifyClient> project_verify_client(std::string_view json) {
  const Json pod = Json::parse(json, nullptr, false);
  const Json metadata = object_at(pod, "metadata");
  const Json status = object_at(pod, "status");
  VerifyClient out;
  out.name = text_at(metadata, "name");
  for (const Json& owner : list_at(metadata, "ownerReferences"))
    if (flag_at(owner, "controller")) out.owner = text_at(owner, "uid");
  const Json scheduled = condition_in(status, "PodScheduled");
  if (text_at(scheduled, "status") == "False") out.problem = with_message("no place for it on the node", scheduled);
  for (const Json& container : list_at(status, "containerStatuses"))
    if (text_at(container, "name") == kContainer) add_container(container, out);
  if (text_at(status, "phase") == "Failed" && !text_at(status, "reason").empty()) {
    out.problem = with_message(shown_value(text_at(status, "reason")), status);
    out.ended = true;
  }
  if (member_at(metadata, "deletionTimestamp") != nullptr) {
    if (out.problem.empty()) out.problem = "somebody has deleted it";
    out.ended = true;
  }
  out.runs = out.runs && !out.ended;
  return out;
}

void read_answers(std::string_view log, VerifyClient& client) {
  constexpr std::string_view kMark = "gso-verify ";
  while (!log.empty()) {
    std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (!line.starts_with(kMark)) continue;
    line.remove_prefix(kMark.size());
    const std::string_view word = take_word(line);
    read_answer(word, line, client);
  }
}

// --- What that proves.

std::string_view to_string(VerifyVerdict verdict) {
  constexpr std::string_view kNames[] = {"NoDaemon", "ClientFails", "LimitDiffers", "Pending", "Proven"};
  return kNames[static_cast<std::size_t>(verdict)];
}

namespace {

using Judged = std::pair<VerifyVerdict, std::string>;

std::string said(const VerifyClient::Answer& answer) {
  return fmt::format("exit status {}: {}", answer.status, shown_value(answer.text));
}

// What an MPS client has read; nullopt: all of it is as it should be.
std::optional<Judged> judge_limits(const VerifyJob& job, const VerifyClient& client) {
  using enum VerifyVerdict;
  if (client.pipe_directory.empty())
    return Judged{no_daemon,
                  "its container has no CUDA_MPS_PIPE_DIRECTORY: the device plugin connects it to no MPS daemon"};
  if (!client.has_tool)
    return Judged{
        client_fails,
        "its container has no nvidia-cuda-mps-control, which NVIDIA's container toolkit adds to containers with "
        "a GPU: --runtime-class nvidia, where that is not the default runtime"};
  if (!client.threads || client.threads->status != 0)
    return Judged{no_daemon, "the MPS daemon does not answer: " + (client.threads ? said(*client.threads) : "nothing")};
  std::vector<std::string> wrong;
  if (const std::string wanted = mps_threads_shown(job.share.threads); client.threads->text != wanted)
    wrong.push_back(fmt::format("threads: {} instead of {}", shown_value(client.threads->text), wanted));
  for (std::int64_t gpu = 0; gpu < job.gpus; ++gpu) {
    const auto at = static_cast<std::size_t>(gpu);
    if (at >= client.memory.size() || client.memory[at].status != 0)
      return Judged{no_daemon, fmt::format("the MPS daemon does not report the memory limit of GPU {}: {}", gpu,
                                           at < client.memory.size() ? said(client.memory[at]) : "nothing")};
    const std::int64_t mib = job.share.memory_mib[std::min(at, job.share.memory_mib.size() - 1)];
    const std::string& text = client.memory[at].text;
    // In whole GiB, or as it was set.
    if (text != mps_memory_shown(mib) && text != fmt::format("{}M", mib))
      wrong.push_back(fmt::format("memory of GPU {}: {} instead of {}", gpu,
                                  text.empty() ? "no limit" : shown_value(text), mps_memory_shown(mib)));
  }
  if (wrong.empty()) return std::nullopt;
  return Judged{limit_differs, fmt::format("{}", fmt::join(wrong, "; "))};
}

// `all_since`: when the last of all clients started; none ran beside all others before.
Judged judge_client(const VerifyJob& job, const VerifyClient& client, std::int64_t all_since) {
  using enum VerifyVerdict;
  const bool mps = job.share.strategy == Strategy::mps;
  if (!client.answered)
    return {client.ended ? client_fails : pending,
            client.problem.empty() ? "its container has not answered yet" : client.problem};
  const std::optional<Judged> limits = mps ? judge_limits(job, client) : std::nullopt;
  if (limits && limits->first != limit_differs) return *limits;
  if (client.newest && client.newest->status != 0)
    return {client_fails, fmt::format("{} failed, {}", shown_value(client.program), said(*client.newest))};
  if (limits) return *limits;
  if (!mps && client.program.empty())
    return {client_fails,
            "the image has no /cuda-samples/vectorAdd, so nothing ran on the GPU: choose another --image"};
  // The clock counts whole seconds.
  if (client.seen > all_since) return {proven, ""};
  return {client.ended ? client_fails : pending,
          client.ended ? client.problem : "it has answered, but has not run beside all the others yet"};
}

std::string message_of(const VerifyJob& job, const VerifyReport& report) {
  using enum VerifyVerdict;
  const std::int64_t all = job.asked.pods;
  const auto of_verdict = std::ranges::find(report.rows, report.verdict, &VerifyReport::Row::verdict);
  const std::string first =
      of_verdict == report.rows.end() ? "" : fmt::format(": {}: {}", of_verdict->client.name, of_verdict->text);
  const std::int64_t same = std::ranges::count(report.rows, report.verdict, &VerifyReport::Row::verdict);
  if (report.verdict == pending && std::ssize(report.rows) < all)
    return fmt::format("the Job has created {} of {} so far",
                       report.rows.empty() ? "none" : std::to_string(report.rows.size()), counted(all, "pod"));
  if (report.verdict == pending) {
    const std::int64_t answered =
        std::ranges::count_if(report.rows, [](const auto& row) { return row.client.runs && row.client.answered; });
    return fmt::format("{} of {} run and have answered{}", answered, counted(all, "client"), first);
  }
  if (report.verdict != proven) return fmt::format("{} of {}{}", same, counted(all, "client"), first);
  if (job.share.strategy != Strategy::mps)
    return fmt::format(
        "{} ran a CUDA program at the same time; time-slicing limits no memory, so each can take all of its GPU's",
        counted(all, "client"));
  const bool cuda = std::ranges::all_of(report.rows, [](const auto& row) { return !row.client.program.empty(); });
  return fmt::format("{} ran at the same time, and each has read its limits from the MPS daemon{}",
                     counted(all, "client"), cuda ? "" : " (the image has no CUDA program, so none ran)");
}

// What says more. The pods are gone by then, their Events are not.
std::string next_command(const VerifyJob& job, const VerifyReport& report) {
  if (report.verdict == VerifyVerdict::proven) return {};
  const auto row = std::ranges::find(report.rows, report.verdict, &VerifyReport::Row::verdict);
  const bool misses_pods = std::ssize(report.rows) < job.asked.pods;
  if (row == report.rows.end() || misses_pods || !row->client.answered)
    return fmt::format("kubectl get events --namespace {} --field-selector involvedObject.name={}", job.asked.ns,
                       row == report.rows.end() || misses_pods ? job.name : row->client.name);
  const bool of_daemon = report.verdict == VerifyVerdict::no_daemon || report.verdict == VerifyVerdict::limit_differs;
  return of_daemon && !job.daemon_log.empty() ? job.daemon_log : "gpu-sharing-operator explain node " + job.asked.node;
}

}  // namespace

VerifyReport judge_clients(const VerifyJob& job, std::vector<VerifyClient> clients) {
  using enum VerifyVerdict;
  VerifyReport out;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  const bool complete = std::ssize(clients) >= job.asked.pods;
  std::int64_t all_since = complete ? 0 : kNever;
  for (const VerifyClient& client : clients)
    all_since = std::max(all_since, client.started > 0 ? client.started : kNever);
  out.verdict = complete ? proven : pending;
  // Who has not answered comes first: that is what the others wait for.
  std::ranges::sort(clients, {}, [](const VerifyClient& client) { return std::tie(client.answered, client.name); });
  for (VerifyClient& client : clients) {
    auto [verdict, text] = judge_client(job, client, all_since);
    out.verdict = std::min(out.verdict, verdict);
    out.rows.push_back({std::move(client), verdict, std::move(text)});
  }
  const bool any_ended = std::ranges::any_of(out.rows, [](const auto& row) { return row.client.ended; });
  const bool any_waits = std::ranges::find(out.rows, pending, &VerifyReport::Row::verdict) != out.rows.end();
  out.is_final = any_ended || (complete && !any_waits);
  out.message = message_of(job, out);
  out.next = next_command(job, out);
  return out;
}

}  // namespace gso
