// Everything that can be set from outside: one struct, one field per flag. The same names work as `--settle-period 10s`
// on the command line, GSO_SETTLE_PERIOD=10s in the environment and `settle-period: 10s` in the file given by --config.
// Precedence: flag, then environment, then file (options_file.cc), then the default written here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/partitioning/partitioning.h"

namespace gso {

using k8s::Duration;

enum class LogFormat { json, text };
enum class LogLevel { trace, debug, info, warning, error, off };  // "warn" in flags and logs.

// Those that planners obey have a member of PlannerSettings.
struct Options : PlannerSettings {
  // A node's status may be this old: the kubelet publishes it every 10 s.
  Options() { status_lag = std::chrono::seconds(12); }

  // --- Connection
  std::string kubeconfig;  // Path. Empty: $KUBECONFIG, else in-cluster, else ~/.kube/config.
  std::string context;     // Of the kubeconfig. Empty: its current-context.
  // Where the Lease and the state ConfigMap live. Empty: the in-cluster namespace, else "gpu-sharing-operator".
  std::string namespace_;
  std::string config;  // YAML file with these same names.
  // How long one request of a person's command may take: --request-timeout of these commands, no setting.
  Duration request_timeout = std::chrono::seconds(30);

  // --- Leader election (coordination.k8s.io/v1 Lease). lease_duration > renew_deadline > 1.2 * retry_period.
  bool leader_elect = true;
  std::string lease_name = "gpu-sharing-operator";
  std::string identity;  // Empty: pod name (or host name) + "_" + pod uid (or a random UUID).
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  bool exit_on_lease_loss = false;  // false: go on as a warm standby.

  // --- Serving. "0" switches the endpoint off; ":8080" listens on all addresses; port 0 takes a free one.
  std::string metrics_bind_address = ":8080";
  std::string health_probe_bind_address = ":8081";
  std::string debug_bind_address = "0";  // Loopback only.
  // true: /metrics over TLS, for clients that the API server knows and allows to `get` it.
  bool metrics_secure = false;
  std::string tls_cert_file;         // Needed by metrics_secure, with tls_private_key_file.
  std::string tls_private_key_file;  // Without a passphrase.
  std::string client_ca_file;        // Who certifies clients. Empty: clients send a token.

  // --- The validating webhook, always over TLS.
  std::string webhook_bind_address = "0";
  std::string webhook_cert_file;         // Needed by the webhook, with webhook_private_key_file.
  std::string webhook_private_key_file;  // Without a passphrase.
  std::string webhook_client_ca;         // Who certifies the API server. Empty: every client gets an answer.
  bool webhook_refuse_pods = false;

  // --- Logs, to stderr.
  LogFormat log_format = LogFormat::json;
  LogLevel log_level = LogLevel::info;

  // --- Watching and writing
  bool watch_list = true;                 // Stream the initial list (WatchList) where the server offers it.
  std::int64_t page_size = 100;           // Objects per page of a LIST: 1..10000. Bounds memory.
  std::int64_t max_in_flight = 32;        // Most concurrent writes: 1..64. Fewer while the API server is overloaded.
  bool dry_run = false;                   // Plan and log, write nothing (not even the Lease).
  bool insecure_skip_tls_verify = false;  // `run` honours the kubeconfig's insecure-skip-tls-verify.
  Duration status_interval = std::chrono::seconds(1);     // Least time between two statuses of one object in one phase.
  Duration batch_window = std::chrono::milliseconds(20);  // Events that arrive this close share one planning pass.
  Duration resync_period = std::chrono::minutes(10);      // A full pass even when nothing happened; 0 switches it off.
  Duration discovery_period = std::chrono::seconds(30);   // How often to check whether missing APIs are served now.
  Duration shutdown_timeout = std::chrono::seconds(15);   // For writes in flight at SIGTERM.
  // Timers seen at startup count as already this old (otherwise a restart resets every soak).
  Duration assume_observed_for{0};
  PartitioningMode partitioning_mode = PartitioningMode::enforce;  // Slices for pending pods.

  // What planners obey of them, in the namespace that was given.
  [[nodiscard]] PlannerSettings planner_settings() const;
};

// One setting, as all three sources see it. The table of these is the only list of settings there is.
struct OptionSpec {
  std::string name;         // "lease-duration": the flag without dashes, and the key in the file.
  std::string group;        // Heading in --help.
  std::string type;         // "DURATION", "BOOL", "json|text": shown in --help.
  std::string doc;          // One sentence, with unit and range.
  bool flag = false;        // A boolean: `--name` alone means true.
  bool planned_by = false;  // It changes what the operator plans: commands that judge a fleet must know it.
  std::function<std::string(Options&, const std::string&)> set;  // Returns what is wrong, or "".
  std::function<std::string(const Options&)> get;                // In the spelling that `set` takes.
  [[nodiscard]] std::string environment() const;                 // "GSO_LEASE_DURATION"
};
[[nodiscard]] const std::vector<OptionSpec>& option_specs();
// Null: there is no setting of that name.
[[nodiscard]] const OptionSpec* find_option(std::string_view name);

// Sets what `text` (YAML: one mapping of scalars) holds, except the names in `keep` (given by flag or environment).
// Errors (reason invalid) name the file, the line, the key, and for an unknown key the nearest known one.
[[nodiscard]] k8s::Result<void> apply_config_file(Options& options, std::string_view file_name, std::string_view text,
                                                  const std::vector<std::string>& keep);

// One sentence for each variable of `environment` (NAME=value) that looks like a setting and is not one, with the most
// similar setting. Those that Kubernetes sets for Services (GSO_METRICS_SERVICE_HOST, …_PORT_8080_TCP, …) are left out.
[[nodiscard]] std::vector<std::string> unknown_variables(const std::vector<std::string>& environment);

// Relations between fields, e.g. lease_duration > renew_deadline. Errors (reason invalid) name both.
[[nodiscard]] k8s::Result<void> validate(const Options& options);

// --- The options by which the running operator plans, as its state ConfigMap has them for the commands of people:
// without them `status` would name a budget or a settle period that is not the operator's.

// The planned_by options that differ from their defaults: {"settle-period":"1m0s"}. Empty: none.
[[nodiscard]] std::string print_operator_options(const Options& options);

// The settings of the operator whose state ConfigMap is in `world`, for a command that would judge by `own`: `own`
// where that ConfigMap says nothing. Namespace, name of the ConfigMap and what only a command asks for stay. Options
// that this release does not know, and values that it does not take, are left out.
[[nodiscard]] PlannerSettings settings_of_operator(const World& world, const PlannerSettings& own);

}  // namespace gso
