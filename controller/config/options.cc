// The table of settings.
#include "controller/config/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "controller/config/option_flags.h"
#include "controller/runtime/leader_election.h"
#include "reconcilers/model/policy.h"

namespace gso {
namespace {

using namespace std::chrono_literals;

template <class E, std::size_t N>
OptionNames<E> names_of(const PolicyWord<E> (&words)[N]) {
  OptionNames<E> out;
  for (const PolicyWord<E>& word : words) out.emplace_back(std::string(word.text), word.value);
  return out;
}

void add_connection(OptionGroup out) {
  out.text("kubeconfig", "FILE", "Path of the kubeconfig. Default: $KUBECONFIG, else in-cluster, else ~/.kube/config",
           &Options::kubeconfig);
  out.text("context", "NAME", "Context of the kubeconfig. Default: its current-context", &Options::context);
  out.text("namespace", "NAME",
           "Namespace of the Lease and the state ConfigMap. Default: the pod's, else gpu-sharing-operator",
           &Options::namespace_);
}

void add_election(OptionGroup out) {
  out.boolean("leader-elect", "Write only while holding a Lease, so that replicas can stand by",
              &Options::leader_elect);
  out.text("lease-name", "NAME", "Name of the Lease", &Options::lease_name);
  out.text("identity", "NAME",
           "Holder identity, unique per process. Default: pod or host name, then pod uid or a random UUID",
           &Options::identity);
  out.duration("lease-duration", "How long others wait after a renewal, more than renew-deadline",
               &Options::lease_duration, {1s, 1h});
  out.duration("renew-deadline", "How long the leader writes after its last renewal; more than 1.2 times retry-period",
               &Options::renew_deadline, {100ms, 1h});
  out.duration("retry-period", "Time between two attempts to acquire or renew", &Options::retry_period, {100ms, 1h});
  out.boolean("exit-on-lease-loss", "Exit when the lease is lost, instead of standing by",
              &Options::exit_on_lease_loss);
}

void add_webhook(OptionGroup out) {
  out.text("webhook-bind-address", "HOST:PORT", "Address of the validating webhook, over TLS; 0 switches it off",
           &Options::webhook_bind_address);
  out.text("webhook-cert-file", "FILE",
           "Certificate chain (PEM) of the webhook, read again when it changes; the webhook needs it",
           &Options::webhook_cert_file);
  out.text("webhook-private-key-file", "FILE", "Private key (PEM) of webhook-cert-file",
           &Options::webhook_private_key_file);
  out.text("webhook-client-ca", "FILE",
           "Authorities (PEM) of client certificates: the webhook answers only clients that send one. "
           "Default: it answers every client",
           &Options::webhook_client_ca);
  out.boolean("webhook-refuse-pods", "The webhook refuses Pods with errors, instead of warning about them",
              &Options::webhook_refuse_pods);
}

void add_serving(OptionGroup out) {
  out.text("metrics-bind-address", "HOST:PORT", "Address of /metrics; 0 switches it off",
           &Options::metrics_bind_address);
  out.text("health-probe-bind-address", "HOST:PORT", "Address of /healthz, /livez and /readyz; 0 switches them off",
           &Options::health_probe_bind_address);
  out.text("debug-bind-address", "HOST:PORT",
           "Address of /debug, on loopback, such as 127.0.0.1:8082; 0 switches it off", &Options::debug_bind_address);
  out.boolean("metrics-secure",
              "Serve /metrics over TLS, only to clients that are allowed to get the non-resource URL /metrics",
              &Options::metrics_secure);
  out.text("tls-cert-file", "FILE",
           "Certificate chain (PEM) of the TLS server, read again when it changes; metrics-secure needs it",
           &Options::tls_cert_file);
  out.text("tls-private-key-file", "FILE", "Private key (PEM) of tls-cert-file", &Options::tls_private_key_file);
  out.text("client-ca-file", "FILE",
           "Certificate authorities (PEM) of clients of the TLS server. Default: clients send a token",
           &Options::client_ca_file);
  add_webhook(out);
  out.choice<LogFormat>("log-format", "Form of the log lines on stderr",
                        {{"json", LogFormat::json}, {"text", LogFormat::text}}, &Options::log_format);
  out.choice<LogLevel>("log-level", "Least severity that is logged",
                       {{"trace", LogLevel::trace},
                        {"debug", LogLevel::debug},
                        {"info", LogLevel::info},
                        {"warn", LogLevel::warning},
                        {"error", LogLevel::error},
                        {"off", LogLevel::off}},
                       &Options::log_level);
}

void add_running(OptionGroup out) {
  out.boolean("watch-list", "Stream initial lists (WatchList) where the server offers it", &Options::watch_list);
  out.integer("page-size", "Objects in one page of a list", &Options::page_size, 1, 10'000);
  out.integer(
      "max-in-flight",
      "Concurrent writes at most. The operator lowers the number by itself while the API server is slow or refuses "
      "requests",
      &Options::max_in_flight, 1, 64);
  out.boolean("dry-run", "Plan and log, write nothing (not even the Lease)", &Options::dry_run);
  out.boolean("insecure-skip-tls-verify",
              "Use a kubeconfig that says not to verify the API server's certificate; whoever answers in its "
              "place gets the operator's token",
              &Options::insecure_skip_tls_verify);
  out.duration("batch-window", "Events that arrive within this time share one planning pass", &Options::batch_window,
               {0s, 1min});
  out.duration("status-interval", "Minimum time between two status writes of one object whose phase is unchanged",
               &Options::status_interval, {0s, 1h});
  out.duration("resync-period", "A planning pass even when nothing happened, 0 for none", &Options::resync_period,
               {1s, 24h, true});
  out.duration("discovery-period", "How often to check whether missing APIs are served now", &Options::discovery_period,
               {1s, 24h});
  out.duration("shutdown-timeout", "How long a shutdown waits for writes that are not answered yet",
               &Options::shutdown_timeout, {0s, 10min});
  out.duration("assume-observed-for", "Treat conditions seen at startup as already this old",
               &Options::assume_observed_for, {0s, 8760h});
}

void add_planning(OptionGroup out) {
  out.duration("settle-period", "How long inputs must be unchanged before a rollout starts", &Options::settle,
               {0s, 24h});
  out.duration("configmap-propagation",
               "How long kubelets can take to project a new ConfigMap key into running pods; a label selects "
               "the key only afterwards",
               &Options::projection, {0s, 1h});
  out.duration("clock-difference",
               "By how much the clocks of two API servers can differ; a pod that was created so soon after an "
               "edit has not certainly read it",
               &Options::clock_difference, {0s, 1min});
  out.duration("node-status-lag", "How long a restarted node must show its new state; more than kubelet's 10s",
               &Options::status_lag, {0s, 10min});
  out.share("cluster-max-unavailable", "Most GPU nodes out of service at once, over all policies",
            &Options::cluster_max_unavailable);
  out.integer("revision-history-limit", "Finished SharingRollouts that are kept per policy",
              &Options::revision_history_limit, 0, 1000);
  out.choice<PlannerSettings::LabelMode>(
      "label-mode", "auto writes sharing labels that no other component owns, and verifies the labels that NFD owns",
      {{"auto", PlannerSettings::LabelMode::automatic},
       {"enforce", PlannerSettings::LabelMode::enforce},
       {"verify", PlannerSettings::LabelMode::verify}},
      &Options::label_mode);
  out.choice<PolicyMode>(
      "max-mode",
      "Upper limit for the mode of every policy; Observe writes no Pod and no ConfigMap, and no Node except its labels",
      names_of(kPolicyModeWords), &Options::rollouts);
  out.namespaces("operand-namespaces",
                 "Namespaces whose DaemonSets can be a device plugin's, beside those of the ClusterPolicy and of the "
                 "record; a device plugin elsewhere is only reported",
                 &Options::operand_namespaces);
  out.namespaces("remove-rejected-pods",
                 "Remove pods that a node refused (UnexpectedAdmissionError) while it was restarted, in these "
                 "namespaces; empty: nowhere",
                 &Options::remove_rejected_pods);
  out.boolean("adopt-drift", "Also roll out nodes that had drifted before the operator was installed",
              &Options::adopt_drift);
  out.boolean("mps-signal-fixed",
              "New MPS pods name a process that their sidecar can signal (the chart sets it with "
              "fixes.mpsSignal), so that node labels can select MPS profiles from plugin v0.20.0 on",
              &Options::mps_signal_fixed);
}

void add_kai(OptionGroup out) {
  out.choice<KaiGcMode>(
      "kai-reservations",
      "Enforce deletes stale reservation pods, Observe reports which it would delete, Off ignores them",
      {{"Enforce", KaiGcMode::enforce}, {"Observe", KaiGcMode::observe}, {"Off", KaiGcMode::off}},
      within(&Options::kai, &KaiSettings::gc_mode));
  out.duration("kai-grace",
               "Minimum age of a reservation, and how long it must have been orphaned, before it is deleted; "
               "KAI's own timeouts can extend it",
               within(&Options::kai, &KaiSettings::grace), {1min, 168h});
  out.duration("kai-recheck-interval", "How often orphaned reservations are checked again",
               within(&Options::kai, &KaiSettings::sweep), {5s, 24h});
  out.choice<MpsReadyMode>(
      "mps-ready",
      "Whether nodes with a standalone MPS daemon get the label nvidia.mps/enabled; Auto: where KAI is served",
      {{"Auto", MpsReadyMode::automatic}, {"On", MpsReadyMode::on}, {"Off", MpsReadyMode::off}},
      within(&Options::kai, &KaiSettings::mps_ready));
  out.boolean("kai-gc-without-crds",
              "Also look for reservations in clusters where KAI was removed together with its CRDs",
              within(&Options::kai, &KaiSettings::look_for_leftovers));
  out.duration("kai-node-interval", "Least time between two deletions of reservations on one node",
               within(&Options::kai, &KaiSettings::node_interval), {0s, 24h});
}

void add_partitioning(OptionGroup out) {
  out.choice<PartitioningMode>(
      "partitioning-mode",
      "Enforce gives nodes labelled nos.nebuly.com/gpu-partitioning=mps the slices that pending pods ask for, Observe "
      "reports what it would change, Off ignores them",
      {{"Enforce", PartitioningMode::enforce}, {"Observe", PartitioningMode::observe}, {"Off", PartitioningMode::off}},
      &Options::partitioning_mode);
  out.duration("partitioning-batch-timeout",
               "Longest time that a pending pod waits for others, so that they are placed together",
               within(&Options::partitioning, &PartitioningSettings::batch_timeout), {0s, 1h});
  out.duration("partitioning-batch-idle", "How long no further pod must arrive before pending pods are placed",
               within(&Options::partitioning, &PartitioningSettings::batch_idle), {0s, 1h});
  out.duration(
      "partitioning-confirm-timeout",
      "How long the operator waits for a node to report the slices of a new key, before the label is set back to "
      "the previous key; nos's plugin can wait 5m after a crash",
      within(&Options::partitioning, &PartitioningSettings::confirm_timeout), {1min, 24h});
  out.integer("partitioning-reserved-mib", "MiB of each GPU for the driver and the MPS server, which no slice gets",
              within(&Options::partitioning, &PartitioningSettings::reserved_mib), 0, 512);
  out.integer(
      "mps-user",
      "User of nos's MPS servers, which serve no other one: no slice is cut for a pod that runs as another user. "
      "mps.userID of the chart of nos's device plugin",
      within(&Options::partitioning, &PartitioningSettings::mps_user), 0, 2'147'483'647);
  out.boolean("partitioning-consolidate",
              "Prefer nodes that are in use, so that others become empty; otherwise idle nodes come first",
              within(&Options::partitioning, &PartitioningSettings::consolidate));
  out.duration("partitioning-remove-idle-after", "Remove free slices that no pod has used for this long, 0 for never",
               within(&Options::partitioning, &PartitioningSettings::remove_idle_after), {1min, 720h, true});
}

void add_policy(OptionGroup out) {
  out.choice<PolicyMode>("mode", "Enforce rolls out, Approve waits for approval of each rollout, Observe only reports",
                         names_of(kPolicyModeWords), &Options::mode);
  out.share("max-unavailable", "Most nodes of a policy out of service at once",
            within(&Options::rollout, &RolloutSpec::max_unavailable));
  out.share("max-unavailable-per-group", "The same per group (product and profile)",
            within(&Options::rollout, &RolloutSpec::max_unavailable_per_group));
  out.integer("canary-nodes-per-group", "Nodes per group that go first; 0 means no canary",
              within(&Options::rollout, &RolloutSpec::canary_nodes_per_group), 0, 1000);
  out.duration("canary-soak", "Time between a verified canary and the first wave",
               within(&Options::rollout, &RolloutSpec::canary_soak), {0s, 168h});
  out.choice<WorkloadMode>("workloads", "What to do with running pods that the change would break",
                           names_of(kWorkloadModeWords), within(&Options::rollout, &RolloutSpec::workloads));
  out.duration("idle-timeout", "How long a node waits for its workloads to end",
               within(&Options::rollout, &RolloutSpec::idle_timeout), {1s, 720h});
  out.duration("verify-timeout", "How long the operator waits for a restarted node to show the new state",
               within(&Options::rollout, &RolloutSpec::verify_timeout), {1s, 24h});
  out.integer("max-failures", "Failed nodes after the canary that stop a rollout",
              within(&Options::rollout, &RolloutSpec::max_failures), 1, 10'000);
  out.choice<OnFailure>("on-failure", "What a stopped rollout does", names_of(kOnFailureWords),
                        within(&Options::rollout, &RolloutSpec::on_failure));
}

}  // namespace

std::string OptionSpec::environment() const {
  std::string out = "GSO_" + name;
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return out;
}

const std::vector<OptionSpec>& option_specs() {
  static const std::vector<OptionSpec> kSpecs = [] {
    std::vector<OptionSpec> out;
    add_connection({"Connection", &out});
    add_election({"Leader election", &out});
    add_serving({"Serving and logs", &out});
    add_running({"Watching and writing", &out});
    const auto first_planned_by = static_cast<std::ptrdiff_t>(out.size());
    add_planning({"Planning, cluster-wide", &out});
    add_kai({"KAI-Scheduler", &out});
    add_partitioning({"Slices for pending pods", &out});
    add_policy({"Planning, what the SharingPolicy 'default' starts with", &out});
    std::for_each(out.begin() + first_planned_by, out.end(), [](OptionSpec& spec) { spec.planned_by = true; });
    return out;
  }();
  return kSpecs;
}

const OptionSpec* find_option(std::string_view name) {
  const auto found = std::ranges::find(option_specs(), name, &OptionSpec::name);
  return found == option_specs().end() ? nullptr : &*found;
}

PlannerSettings Options::planner_settings() const {
  const PlannerSettings& planned = *this;
  PlannerSettings out = planned;
  if (!namespace_.empty()) out.operator_namespace = namespace_;
  return out;
}

namespace {

bool is_loopback_or_off(std::string_view address) {
  if (address.empty() || address == "0") return true;
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || host == "127.0.0.1";
}

// The TLS server's settings belong together: one without the other would have no effect.
k8s::Result<void> validate_tls(const Options& options) {
  const auto wrong = [](const char* why) { return k8s::fail(k8s::Reason::invalid, why); };
  if (options.tls_cert_file.empty() != options.tls_private_key_file.empty())
    return wrong("tls-cert-file and tls-private-key-file must be set together");
  if (options.webhook_cert_file.empty() != options.webhook_private_key_file.empty())
    return wrong("webhook-cert-file and webhook-private-key-file must be set together");
  const bool serves_webhook = !options.webhook_bind_address.empty() && options.webhook_bind_address != "0";
  if (serves_webhook && options.webhook_cert_file.empty()) {
    return wrong(
        "webhook-bind-address needs webhook-cert-file and webhook-private-key-file: the API server asks a webhook only "
        "over TLS");
  }
  if (!serves_webhook && !options.webhook_client_ca.empty())
    return wrong("webhook-client-ca has no effect without webhook-bind-address");
  if (!options.metrics_secure) {
    const bool unused = !options.tls_cert_file.empty() || !options.client_ca_file.empty();
    return unused ? wrong("tls-cert-file and client-ca-file have no effect without metrics-secure=true")
                  : k8s::Result<void>{};
  }
  if (options.tls_cert_file.empty()) return wrong("metrics-secure needs tls-cert-file and tls-private-key-file");
  if (options.metrics_bind_address == options.health_probe_bind_address &&
      !options.metrics_bind_address.ends_with(":0") && options.metrics_bind_address != "0") {
    return wrong(
        "metrics-secure needs a metrics-bind-address other than health-probe-bind-address: kubelet sends "
        "probes without credentials");
  }
  return {};
}

}  // namespace

k8s::Result<void> validate(const Options& options) {
  k8s::Result<void> tls = validate_tls(options);
  if (!tls) return tls;
  if (!is_loopback_or_off(options.debug_bind_address)) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("debug-bind-address '{}' is not a loopback address; use 127.0.0.1:PORT, "
                                 "localhost:PORT or [::1]:PORT and reach it with `kubectl port-forward`",
                                 options.debug_bind_address));
  }
  if (options.rollout.verify_timeout <= options.status_lag) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("verify-timeout {} must be greater than node-status-lag {}: no node could be verified",
                                 k8s::format_go_duration(options.rollout.verify_timeout),
                                 k8s::format_go_duration(options.status_lag)));
  }
  if (!options.leader_elect || options.dry_run) return {};
  LeaderElectionOptions election;
  election.lease = {"namespace", options.lease_name};
  election.identity = "identity";
  election.lease_duration = options.lease_duration;
  election.renew_deadline = options.renew_deadline;
  election.retry_period = options.retry_period;
  return validate(election);
}

}  // namespace gso
