// The parts of the Manager and their connections: watches and answers to the loop, election to the gate, everything to
// logs and metrics.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "controller/config/options.h"
#include "controller/runtime/manager.h"
#include "controller/runtime/operator_pages.h"
#include "controller/serving/process_metrics.h"
#include "k8sclient/watch/watcher.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/model/resources.h"

namespace gso {
namespace {

// --- How the operator talks to the API server: pages, places for writes, the metrics of client-go, and the log of
// outages.

// The HTTP method of a client verb, as client-go's rest_client_requests_total has it.
std::string method_of(std::string_view verb) {
  if (verb == "LIST" || verb == "WATCH" || verb == "GET") return "GET";
  if (verb == "APPLY") return "PATCH";
  return std::string(verb);
}

// Every request is counted in `runtime.metrics` under the names that client-go uses, its status goes to `outages`, and
// its date to `clock`. Both must outlive the client.
k8s::ClientOptions client_options(const Runtime& runtime, const Options& options, OutageLog* outages,
                                  k8s::ServerClock* clock) {
  k8s::ClientOptions out;
  out.field_manager = std::string(kFieldManager);
  out.page_limit = static_cast<int>(options.page_size);
  out.max_page_bytes = std::min(out.max_page_bytes, largest_answer());
  out.max_object_bytes = std::min(out.max_object_bytes, largest_answer());
  out.most_writes = static_cast<int>(options.max_in_flight);
  out.seed = runtime.seed;
  out.reads_only = options.dry_run;
  out.on_request = [metrics = runtime.metrics, host = runtime.host, outages, clock](const k8s::RequestRecord& record) {
    const std::string code = record.status == 0 ? "<error>" : std::to_string(record.status);
    metrics->add("rest_client_requests_total", {{"code", code}, {"method", method_of(record.verb)}, {"host", host}});
    metrics->observe("rest_client_request_duration_seconds", {{"verb", std::string(record.verb)}, {"host", host}},
                     in_seconds(record.took));
    if (record.retry) {
      metrics->add("rest_client_request_retries_total",
                   {{"code", code}, {"verb", std::string(record.verb)}, {"host", host}});
    }
    outages->answered(record.status);
    if (record.status < 500) clock->answered(record.date);  // Others may be a proxy's.
    if (record.status == 429) metrics->add("gpusharing_throttled_total");
  };
  return out;
}

k8s::WatcherOptions watcher_options(const Runtime& runtime, const Options& options) {
  k8s::WatcherOptions out;
  out.watch_list = options.watch_list;
  out.max_line = std::min(out.max_line, largest_answer());
  out.seed = runtime.seed;
  return out;
}

const std::string kWatchFailed = "Watch failed";
const std::string kTooLarge = "An object is too large, and is kept as it was";
const std::string kLeaseFailed = "Lease could not be acquired or renewed";
constexpr std::size_t kLongList = 200;

PlannerSettings settings_of(const Options& options) {
  PlannerSettings out = options.planner_settings();
  out.options_text = print_operator_options(options);
  return out;
}

}  // namespace

Manager::Manager(Runtime runtime, Options options, boost::asio::any_io_executor executor)
    : runtime_(std::move(runtime)),
      options_(std::move(options)),
      executor_(std::move(executor)),
      server_clock_(runtime_.clock, [this](Duration ahead) { report_clock(ahead); }),
      clock_(&server_clock_),
      log_(runtime_.log),
      metrics_(runtime_.metrics),
      view_(runtime_.view),
      settings_(settings_of(options_)),
      outages_(clock_, log_),
      client_(runtime_.transport, clock_, client_options(runtime_, options_, &outages_, &server_clock_)),
      expectations_(&client_, clock_, &world_),
      cluster_(
          &client_, clock_, &world_, watcher_options(runtime_, options_),
          {.complete = [this](const std::string& resource, std::size_t objects) { view_complete(resource, objects); },
           .failed = [this](const std::string& resource, const k8s::Error& error) { watch_failed(resource, error); }}),
      services_(clock_),
      workers_(clock_),
      search_({.client = &client_,
               .clock = clock_,
               .world = &world_,
               .settings = &settings_,
               .soon = options_.discovery_period,
               .changed =
                   [this] {
                     if (!search_.error()) outages_.worked(kWatchFailed, "daemonsets");
                     loop_->note_searched();
                   },
               .failed = [this](const k8s::Error& error) { watch_failed("daemonsets", error); }}),
      dynamic_(watch_resources(), watch_reports([this] { loop_->note_scopes_changed(); })),
      kai_watches_(watch_resources(), watch_reports([this] { loop_->note_change(); })),
      partitioning_watches_(watch_resources(), watch_reports([this] { loop_->note_change(); })),
      kai_reader_(&client_, clock_, &world_, &settings_.kai, log_),
      lookup_queue_({.reads = &kai_reader_,
                     .clock = clock_,
                     .world = &world_,
                     .settings = &settings_.kai,
                     .log = log_,
                     .tasks = &services_,
                     .executor = executor_,
                     .wake = [this](Duration after) { loop_->wake(after); }}),
      consumers_({.client = &client_,
                  .clock = clock_,
                  .world = &world_,
                  .index = &index_,
                  .settings = &settings_,
                  .log = log_,
                  .executor = executor_,
                  .wake = [this](Duration after) { loop_->wake(after); }}) {
  expectations_.on_contradiction([this](const k8s::Error&) { loop_->note_back_in_time(); });
  const auto failed = [this](const std::string& what) { task_failed(what); };
  services_.on_failure(failed);
  workers_.on_failure(failed);
  make_elector();
  make_writers();
  make_loop();
  pages_ = std::make_unique<OperatorPages>(OperatorPages::Parts{.loop = loop_.get(),
                                                                .client = &client_,
                                                                .leader = [this] { return leader(); },
                                                                .lease_name = options_.lease_name,
                                                                .hides_tenants = !options_.metrics_secure});
  OperatorPages::declare_zeros(*metrics_);
  metrics_->on_render([this](Metrics& metrics) { pages_->fill(metrics); });
}

Manager::~Manager() {
  metrics_->forget_fills();
}

WatchResources Manager::watch_resources() {
  return {&client_, &world_, watcher_options(runtime_, options_), &services_, executor_};
}

WatchReports Manager::watch_reports(std::function<void()> complete) {
  return {std::move(complete),
          [this](const std::string& scope, const k8s::Error& error) { watch_failed(scope, error); }};
}

void Manager::make_elector() {
  if (!options_.leader_elect || options_.dry_run) return;
  LeaderElectionOptions election;
  election.lease = {settings_.operator_namespace, options_.lease_name};
  election.identity = options_.identity;
  election.lease_duration = options_.lease_duration;
  election.renew_deadline = options_.renew_deadline;
  election.retry_period = options_.retry_period;
  election.seed = runtime_.seed;
  election.only_observes = settings_.rollouts == PolicyMode::observe;
  LeaderElectionEvents events;
  events.started_leading = [this] {
    log_->info("Became leader", {{"identity", options_.identity}});
    view_->leading = true;
    record_leader();
    if (elector_->follows_observer()) loop_->note_only_observed();
    loop_->note_leads();
  };
  events.stopped_leading = [this] { stopped_leading(); };
  events.new_leader = [this](const std::string& identity) {
    if (identity != options_.identity) log_->info("New leader elected", {{"identity", identity}});
  };
  const std::string subject = fmt::format("Lease {}/{}", election.lease.ns, election.lease.name);
  events.failed = [this, subject](const k8s::Error& error) { outages_.failed(kLeaseFailed, subject, error); };
  events.recovered = [this, subject] { outages_.worked(kLeaseFailed, subject); };
  events.written = [this] { ++view_->lease_writes; };
  events.went_back = [this] { loop_->note_back_in_time(); };
  elector_ = std::make_unique<LeaderElector>(&client_, clock_, std::move(election), std::move(events));
}

// As client-go's election does, so that `kubectl describe lease` shows who led when.
void Manager::record_leader() {
  recorder_->record(
      {.regarding = {"coordination.k8s.io/v1", "Lease", settings_.operator_namespace, options_.lease_name, ""},
       .warning = false,
       .why = {"LeaderElection", options_.identity + " became leader"},
       .verb = "LeaderElection"});
}

// So that a standby acts at once when the leader has released the Lease: up to 2.2 retry periods pass until it is read
// the next time. It only wakes the elector: what counts is what the elector reads then.
void Manager::watch_lease() {
  const k8s::ObjectKey lease{settings_.operator_namespace, options_.lease_name};
  leases_.add_listener([this, lease](const k8s::ObjectKey& key, const auto&, const auto& after) {
    const std::string holder = after == nullptr ? std::string() : after->holder;
    const bool taken = elector_->leading() && holder != options_.identity;
    // Some servers do not know the selector.
    if (key == lease && (holder.empty() || taken)) elector_->look_now();
  });
  lease_watch_ = std::make_shared<ScopedWatch>();
  lease_watch_->fill(&leases_, &lease_counts_, &project_lease);
  k8s::WatcherOptions options = watcher_options(runtime_, options_);
  options.ns = lease.ns;
  options.field_selector = k8s::FieldSelector::equals("metadata.name", lease.name);
  const std::string subject = fmt::format("Lease {}/{}", lease.ns, lease.name);
  options.complete = [this, subject, lease] {
    outages_.worked(kWatchFailed, subject);
    // No listener hears of one that was gone before the first list.
    const Lease* seen = leases_.find(lease);
    if (seen == nullptr || seen->holder.empty()) elector_->look_now();
  };
  // Without the watch the Lease is read every few seconds.
  options.failed = [this, subject](const k8s::Error& error) { outages_.failed(kWatchFailed, subject, error); };
  lease_watch_->open(&client_, resources::leases, std::move(options));
  ScopedWatch::start(lease_watch_, &services_, executor_);
}

void Manager::make_writers() {
  WriteGate gate;
  gate.check = [this] { return may_write(); };
  gate.end_by = [this] { return elector_ != nullptr ? elector_->takeover_after() : MonoTime::never(); };

  EventRecorderHooks hooks;
  hooks.counted = [this](const char* result) {
    metrics_->add("gpusharing_events_total", {{"result", result}});
    if (std::string_view(result) == "sent") ++view_->event_writes;
  };
  hooks.failed = [this](const k8s::Error& error) { outages_.failed("Event was not sent", "events", error); };
  hooks.before_send = [this] { return may_report(); };
  EventRecorderOptions recording{.reporting_instance = runtime_.instance, .seed = runtime_.seed};
  recorder_ = std::make_unique<EventRecorder>(&client_, clock_, std::move(recording), std::move(hooks));

  ExecutorOptions execution;
  execution.status_interval = options_.status_interval;
  execution.dry_run = options_.dry_run;
  execution.state_config_map = {settings_.operator_namespace, settings_.state_config_map};
  execution.state_in_memory = settings_.rollouts == PolicyMode::observe;
  Executor::Parts parts;
  parts.client = &client_;
  parts.places = [this](k8s::WriteKind kind) { return client_.writes(kind).limit(); };
  parts.clock = clock_;
  parts.world = &world_;
  parts.settings = &settings_;
  parts.expectations = &expectations_;
  parts.log = log_;
  parts.metrics = metrics_;
  parts.gate = std::move(gate);
  parts.still_due = [this](std::vector<PlannedAction> deletions) {
    return kai_reader_.still_due(std::move(deletions));
  };
  parts.hooks = runtime_.hooks;
  parts.view = view_;
  parts.ended_late = [this](const Execution& result) { loop_->note_late(result); };
  plan_executor_ = std::make_unique<Executor>(std::move(parts), std::move(execution));
}

void Manager::make_loop() {
  FleetLoop::Parts parts;
  parts.clock = clock_;
  parts.world = &world_;
  parts.index = &index_;
  parts.settings = &settings_;
  parts.options = &options_;
  parts.cluster = &cluster_;
  parts.search = &search_;
  parts.dynamic = &dynamic_;
  parts.kai = &kai_watches_;
  parts.partitioning = &partitioning_watches_;
  parts.lookups = &lookup_queue_;
  parts.consumers = &consumers_;
  parts.expectations = &expectations_;
  parts.executor = plan_executor_.get();
  parts.recorder = recorder_.get();
  parts.spawn = [this](boost::asio::awaitable<void> task) { services_.spawn(executor_, std::move(task)); };
  parts.leading = [this] { return leading(); };
  parts.clock_in_doubt = [this] { return server_clock_.in_doubt(); };
  parts.on_fatal = [this](k8s::Error error) { become_fatal(std::move(error)); };
  parts.log = log_;
  parts.metrics = metrics_;
  parts.view = view_;
  loop_ = std::make_unique<FleetLoop>(std::move(parts));
}

void Manager::view_complete(const std::string& resource, std::size_t objects) {
  // A missing API is detected again every minute: report it once.
  const LogLevel level = reported_synced_.insert(resource).second ? LogLevel::info : LogLevel::debug;
  outages_.worked(kWatchFailed, resource);
  log_->log(level, "Synced", {{"resource", resource}, {"objects", objects}});
  // A long list leaves freed buffers behind; give them back, the next one is far away.
  if (objects >= kLongList) malloc_trim(0);
  loop_->note_change();
}

void Manager::watch_failed(const std::string& resource, const k8s::Error& error) {
  const std::string kind = resource.substr(0, resource.find(' '));
  metrics_->add("gpusharing_watch_failures_total",
                {{"resource", kind}, {"reason", std::string(k8s::to_string(error.reason))}});
  // A skipped object is no failure of its watch, which nothing would end either.
  outages_.failed(error.reason == k8s::Reason::too_large ? kTooLarge : kWatchFailed, resource, error);
  if (k8s::has_cause(error, k8s::kBackInTimeCause)) loop_->note_back_in_time();
  loop_->note_change();
}

}  // namespace gso
