// The command `verify`: a Job is created, watched, and deleted.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/commands/commands.h"
#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/reads.h"
#include "k8sclient/backoff.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/profile/mps.h"

namespace gso {

namespace {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kVerifyCommand = "gpu-sharing-operator verify";
constexpr k8s::Duration kPollOfClients = std::chrono::seconds(2);
constexpr int kVerifyVersion = 1;  // Of the JSON document (docs/json.md).

struct VerifyRun {
  k8s::ApiClient* client = nullptr;
  k8s::Clock* clock = nullptr;
  k8s::Signal* stop = nullptr;
  VerifyJob job;
  std::string uid{};  // Of the Job; empty: its creation was not answered.
  [[nodiscard]] k8s::ObjectKey key() const { return {job.asked.ns, job.name}; }
};

// The Job's pods with what they have said so far. Errors: they cannot be read, with the missing rule.
asio::awaitable<k8s::Result<std::vector<VerifyClient>>> read_clients(const VerifyRun* run) {
  // What a container prints in an hour.
  constexpr int kMostLogBytes = 1 << 18;
  k8s::ListOptions of_job;
  of_job.ns = run->job.asked.ns;
  of_job.label_selector = *k8s::LabelSelector::parse("batch.kubernetes.io/job-name=" + run->job.name);
  k8s::Result<ListedObjects<VerifyClient>> listed =
      co_await list_objects<VerifyClient>(run->client, resources::pods, of_job, &project_verify_client);
  if (!listed) co_return std::unexpected(listed.error());
  std::vector<VerifyClient> out = std::move(listed->objects);
  std::erase_if(out, [run](const VerifyClient& client) { return client.owner != run->uid; });
  for (VerifyClient& client : out) {
    if (!client.runs && !client.ended) continue;
    const std::string path = fmt::format("/api/v1/namespaces/{}/pods/{}/log?container=client&limitBytes={}",
                                         run->job.asked.ns, client.name, kMostLogBytes);
    const k8s::Result<std::string> log = co_await run->client->get_path(path);
    if (log) read_answers(*log, client);
    if (!log && client.problem.empty()) client.problem = "its log cannot be read: " + log.error().message;
    if (!log && log.error().reason == k8s::Reason::forbidden) {
      const Attempt read{.verbs = {"get"}, .gvr = resources::pods, .ns = run->job.asked.ns, .subresource = "log"};
      co_return k8s::fail(k8s::Reason::forbidden, explain_error(log.error(), read));
    }
  }
  co_return out;
}

// Why the Job has not created all its pods, by its Events: a quota, Pod Security; empty: nothing says so.
asio::awaitable<std::string> why_uncreated(const VerifyRun* run) {
  std::vector<std::string> unread;
  const UncreatedPod found = co_await find_uncreated_pod(run->client, run->key(), &unread);
  if (!found.explanation || found.explanation->causes.empty()) co_return std::string();
  co_return fmt::format("{}. --namespace names another one, which must admit pods of the Pod Security level baseline",
                        found.explanation->causes.front().reason.message);
}

// Until all have answered and have run at the same time, or that cannot be any more.
asio::awaitable<VerifyReport> watch_clients(const VerifyRun* run) {
  const k8s::MonoTime end = run->clock->monotonic() + run->job.asked.timeout;
  VerifyReport report;
  while (true) {
    const k8s::Result<std::vector<VerifyClient>> clients = co_await read_clients(run);
    if (clients) report = judge_clients(run->job, *clients);
    if (!clients) report.message = clients.error().message;
    const bool refused = !clients && clients.error().reason == k8s::Reason::forbidden;
    if (report.is_final || refused) co_return report;
    if (clients && std::ssize(report.rows) < run->job.asked.pods) {
      const std::string why = co_await why_uncreated(run);
      if (!why.empty()) report.message += ": " + why;
      if (!why.empty()) co_return report;
    }
    const k8s::MonoTime now = run->clock->monotonic();
    if (now >= end) {
      report.message = fmt::format("after {}: {}", k8s::format_go_duration(run->job.asked.timeout), report.message);
      co_return report;
    }
    const bool stopped = co_await run->stop->wait_until(std::min(end, now + kPollOfClients));
    if (stopped) report.message = "stopped: " + report.message;
    if (stopped) co_return report;
  }
}

// With its pods. Should this fail, the cluster does it when the Job's deadline has passed.
asio::awaitable<void> remove_job(const VerifyRun* run, std::ostream* err) {
  k8s::DeleteOptions options;
  options.uid = run->uid;
  options.propagation_policy = "Background";
  const k8s::Result<void> removed = co_await run->client->remove(resources::jobs, run->key(), options);
  if (removed || removed.error().reason == k8s::Reason::not_found) co_return;
  print_line(*err, "{}: Job {} could not be deleted, and ends by itself later: {}", kVerifyCommand,
             k8s::to_string(run->key()), explain_error(removed.error(), "delete", resources::jobs, run->key().ns));
}

// --- What is printed.

// The memory limits that each client must read, by index of the GPU; empty: nothing limits it.
std::vector<std::string> wanted_memory(const VerifyJob& job) {
  std::vector<std::string> out;
  const std::vector<std::int64_t>& limits = job.share.memory_mib;
  for (std::size_t gpu = 0; !limits.empty() && std::cmp_less(gpu, job.gpus); ++gpu)
    out.push_back(mps_memory_shown(limits[std::min(gpu, limits.size() - 1)]));
  return out;
}

std::string memory_text(const VerifyClient& client) {
  std::string out;
  for (const VerifyClient::Answer& answer : client.memory) out += (out.empty() ? "" : ", ") + shown_value(answer.text);
  return out;
}

OrderedJson report_json(const VerifyJob& job, const VerifyReport& report) {
  const bool mps = job.share.strategy == Strategy::mps;
  const auto row_json = [](const VerifyReport::Row& row) -> OrderedJson {
    const VerifyClient& client = row.client;
    return {{"name", client.name},
            {"verdict", to_string(row.verdict)},
            {"message", row.text},
            {"threads", client.threads ? client.threads->text : ""},
            {"memory", json_list(client.memory, [](const auto& answer) -> OrderedJson { return answer.text; })},
            {"pipeDirectory", client.pipe_directory},
            {"program", client.program},
            {"exitStatus", client.newest ? OrderedJson(client.newest->status) : OrderedJson(nullptr)}};
  };
  return {{"version", kVerifyVersion},
          {"node", job.asked.node},
          {"verdict", to_string(report.verdict)},
          {"message", report.message},
          {"next", report.next},
          {"job", fmt::format("{}/{}", job.asked.ns, job.name)},
          {"pods", job.asked.pods},
          {"client", to_json(job.share)},
          {"expected", {{"threads", mps ? mps_threads_shown(job.share.threads) : ""}, {"memory", wanted_memory(job)}}},
          {"clients", json_list(report.rows, row_json)}};
}

void print_report(const VerifyJob& job, const VerifyReport& report, std::ostream& out) {
  if (job.asked.json) return print_document(report_json(job, report), OutputForm::json, out);
  print_line(out, "node {}: {}: {}", job.asked.node, to_string(report.verdict), shown_message(report.message));
  print_line(out, "  {}: {}", job.share.kind(), job.share.limits());
  const bool mps = job.share.strategy == Strategy::mps;
  std::vector<TextRow> rows{{"  CLIENT", "VERDICT", "THREADS", "MEMORY", "CUDA", "WHY"}};
  if (mps)
    rows.push_back({"  (expected)", "Proven", mps_threads_shown(job.share.threads),
                    fmt::format("{}", fmt::join(wanted_memory(job), ", ")), "0", ""});
  for (const VerifyReport::Row& row : report.rows)
    rows.push_back({"  " + row.client.name, std::string(to_string(row.verdict)),
                    or_dash(row.client.threads ? shown_value(row.client.threads->text) : ""),
                    or_dash(memory_text(row.client)),
                    row.client.newest ? std::to_string(row.client.newest->status) : "-", row.text});
  if (!mps) remove_columns(rows, {"THREADS", "MEMORY"});
  if (!report.rows.empty()) print_table(rows, out, screen_of_stdout().columns);
  if (!report.next.empty()) print_line(out, "next: {}", report.next);
}

}  // namespace

asio::awaitable<int> verify_on_cluster(k8s::ApiClient* client, k8s::Clock* clock, k8s::Signal* stop,
                                       VerifyOptions verify, PlannerSettings settings, std::ostream* out,
                                       std::ostream* err) {
  ClusterView view;
  const k8s::Result<void> read = co_await read_cluster(client, clock, settings, &view);
  if (!read) co_return refuse(*err, kVerifyCommand, read.error().message);
  for (const std::string& missing : view.incomplete) print_line(*err, "incomplete: {}", missing);
  FleetIndex index;
  (void)assume_baseline(view.world, index, settings, clock->now());
  k8s::Result<VerifyJob> job = plan_verification(verify, view, index);
  if (!job) co_return refuse(*err, kVerifyCommand, job.error().message);
  job->name = fmt::format("gpu-sharing-verify-{:08x}", k8s::random_seed() >> 32U);
  VerifyRun run{.client = client, .clock = clock, .stop = stop, .job = *std::move(job)};
  const k8s::Result<std::string> created = co_await client->create(resources::jobs, verify.ns, manifest_of(run.job));
  if (!created) {
    // It can exist all the same.
    if (k8s::outcome_unknown(created.error())) co_await remove_job(&run, err);
    co_return refuse(*err, kVerifyCommand, explain_error(created.error(), "create", resources::jobs, verify.ns));
  }
  run.uid = text_at(object_at(nlohmann::json::parse(*created, nullptr, false), "metadata"), "uid");
  print_line(*err, "Job {}: {} on node {}, each with 1 {}; it is deleted at the end", k8s::to_string(run.key()),
             counted(run.job.asked.pods, "pod"), verify.node, run.job.share.resource);
  *err << std::flush;
  const VerifyReport report = co_await watch_clients(&run);
  co_await remove_job(&run, err);
  print_report(run.job, report, *out);
  co_return report.verdict == VerifyVerdict::proven ? 0 : report.verdict == VerifyVerdict::pending ? 2 : 1;
}

namespace {

asio::awaitable<int> verify_in(Session session, VerifyOptions verify, PlannerSettings settings, std::ostream* out,
                               std::ostream* err) {
  if (verify.ns.empty()) verify.ns = session.namespace_name.empty() ? "default" : session.namespace_name;
  const std::unique_ptr<k8s::Signal> stop = session.clock->make_signal();
  StopSignals signals(*session.io, stop.get());
  const int code = co_await verify_on_cluster(session.client, session.clock, stop.get(), verify, settings, out, err);
  signals.cancel();
  co_return code;
}

}  // namespace

Subcommand make_verify_command() {
  const auto verify = std::make_shared<VerifyOptions>();
  const auto describe = [verify](CLI::App& app, OptionFlags& settings) {
    app.add_option("NODE", verify->node, "Whose shared GPUs are used")->required();
    app.add_option("--pods", verify->pods,
                   "How many at the same time, 1 to 64. Default: as many as replicas are free, at most 16")
        ->type_name("N")
        ->check([](const std::string& text) {
          const std::int64_t pods = whole_number(text).value_or(0);
          return pods >= 1 && pods <= kMostVerifyPods
                     ? std::string()
                     : fmt::format("{} is not a number from 1 to {}", shown_value(text), kMostVerifyPods);
        });
    app.add_option("--image", verify->image, "Image with /bin/sh, and /cuda-samples/vectorAdd for a CUDA program")
        ->type_name("IMAGE")
        ->default_str(verify->image);
    app.add_option("--runtime-class", verify->runtime_class, "RuntimeClass of the pods, where GPUs need one")
        ->type_name("NAME");
    app.add_option("-n,--namespace", verify->ns, "Namespace of the Job. Default: the context's, else default")
        ->type_name("NAME");
    app.add_option("--timeout", verify->timeout_text, "How long to wait for all answers, 1s to 1h")
        ->type_name("DURATION")
        ->default_str(k8s::format_go_duration(VerifyOptions().timeout));
    add_output(app, verify->json);
    settings.add_to(&app,
                    [](const OptionSpec& spec) { return spec.group == "Connection" && spec.name != "namespace"; });
    settings.add_request_timeout(&app);
    app.footer(
        "Creates one Job with your rights: pods that the scheduler places on the node, each with one replica of its "
        "GPUs. They ask the MPS daemon for their limits and run a CUDA program. The Job is deleted at the end, also "
        "after Ctrl-C; after kill -9 the cluster ends and removes it.\n"
        "Verdicts, with the exit status: Proven (0): all ran at the same time, and each got what it should; "
        "LimitDiffers, NoDaemon, ClientFails (1); Pending (2): fewer ran, so nothing is proven.\n"
        "2 as well: the node is in a change or cannot be verified now, the cluster cannot be read, or wrong usage.");
  };
  const auto check = [verify](const Options&) -> k8s::Result<void> {
    if (verify->node.empty()) return k8s::fail(k8s::Reason::invalid, "NODE: an empty text names no node");
    if (verify->image.empty()) return k8s::fail(k8s::Reason::invalid, "--image: an empty text names no image");
    return read_duration("--timeout", verify->timeout_text, verify->timeout);
  };
  const auto run = [verify](const Invocation& i) {
    return run_connected(kVerifyCommand, i.options, k8s::terminal_of_process(), i.err, [&](const Session& session) {
      return verify_in(session, *verify, i.options.planner_settings(), &i.out, &i.err);
    });
  };
  return {.name = "verify",
          .summary = "Prove what clients of a node's shared GPUs get, by pods that use them",
          .describe = describe,
          .check = check,
          .run = run,
          .names_unknown_variables = true};
}

}  // namespace gso
