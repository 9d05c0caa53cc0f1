// Exec credential plugins: a program that prints an ExecCredential (client.authentication.k8s.io/v1 and v1beta1).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/auth/connection.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

// How long a plugin has that can talk to a person: device codes usually expire after 15 minutes.
inline constexpr Duration kInteractiveTimeLimit = std::chrono::minutes(15);

// A kubeconfig user's `exec`, checked.
struct ExecConfig {
  std::string api_version;  // "client.authentication.k8s.io/v1" or ".../v1beta1".
  std::string command;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;  // Shown when the command is not found.
  std::string cluster_json;  // ExecCredential.spec.cluster when provideClusterInfo is set, else empty.
  Interaction interaction;   // What the plugin gets of a person's terminal. With `input`, spec.interactive is true.
  Duration time_limit = std::chrono::seconds(60);
};

// What a plugin printed.
struct ExecStatus {
  std::string token;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::optional<WallTime> expires;
};

// Decodes a plugin's output. Errors (`decode`) never quote it: it holds a secret.
[[nodiscard]] Result<ExecStatus> decode_exec_credential(std::string_view json, std::string_view api_version);

// Runs the plugin at the first token(), before its expirationTimestamp, and after a 401; concurrent calls share one
// run, which outlives a caller that gives up, and ends with the source. The run before the expiry begins early enough
// for a plugin as slow as its time limit (a quarter of the credential's life at most): until it has ended, tokens are
// given out as before. After a failed run the plugin is not run again for a second, after each further one for twice as
// long, up to a minute: calls that need it meanwhile fail with the last error. Without a shell; without an interaction
// standard input is /dev/null. A failure names the command, its exit code and what it wrote to stderr, if that is
// captured. `clock` must outlive the source.
[[nodiscard]] std::shared_ptr<CredentialSource> make_exec_credential(ExecConfig config, Clock* clock);

}  // namespace k8s
