// What is needed to reach one API server: its address and credentials, and where they come from. A kubeconfig is read
// by kubeconfig.h; curl_transport.h consumes the connection.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

// Supplies the bearer token; never logs it. Implementations re-read files every minute and run exec plugins.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // Empty string: no Authorization header. Many requests may ask at the same time. Where a token must be waited for,
  // the caller's `deadline` ends its wait with `timeout`; what yields the token goes on for the callers after it.
  virtual boost::asio::awaitable<Result<std::string>> token(MonoTime deadline) = 0;
  // PEM client certificate and key that the credential supplies (exec plugins may), or empty. Read after token().
  [[nodiscard]] virtual std::string client_cert_pem() const { return {}; }
  [[nodiscard]] virtual std::string client_key_pem() const { return {}; }
  // The server said 401: the next token() must not come from a cache.
  virtual void invalidate() = 0;
};

struct Connection {
  std::string server;  // "https://host:port[/prefix]" or "http://host:port[/prefix]".
  std::string ca_pem;  // Empty: the system's roots.
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;  // SNI, and the name that the certificate must carry. Empty: the server's host.
  std::string proxy_url;        // "http://", "https://" or "socks5://". Empty: HTTPS_PROXY and friends decide.
  std::string client_cert_pem;
  std::string client_key_pem;
  // Where these texts came from; empty for those that stood in the configuration. The transport re-reads the files.
  std::string ca_file;
  std::string client_cert_file;
  std::string client_key_file;
  std::string namespace_name = "default";
  std::string user_agent;
  std::vector<std::pair<std::string, std::string>> headers;  // Sent with every request.
  std::string identity;  // Whose credentials they are, for people: 'user "x" of context "y" (kubeconfig …)'.
  std::shared_ptr<CredentialSource> credentials;  // May be null: no Authorization header.
};

// --- Acting as another user: the `as` fields of a kubeconfig user, as headers of every request.

struct Impersonation {
  std::string user;                                                          // as
  std::string uid;                                                           // as-uid
  std::vector<std::string> groups;                                           // as-groups
  std::vector<std::pair<std::string, std::vector<std::string>>> extra = {};  // as-user-extra
};

// Impersonate-User, -Uid, -Group and -Extra-KEY, as client-go writes them; none for an empty Impersonation. Errors
// (`invalid`): uid, groups or extra without a user, and control characters, which would begin another header.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> impersonation_headers(
    const Impersonation& impersonation);

// --- Bearer tokens: a fixed one, and one in a file that is re-read while it is used. Exec plugins: exec_credential.h.

// A token that never changes.
[[nodiscard]] std::shared_ptr<CredentialSource> make_static_token(std::string token);

// How long a token read from a file is used: client-go's period.
inline constexpr Duration kTokenFilePeriod = std::chrono::minutes(1);

// A token in a file (a ServiceAccount's projected token, kubeconfig's tokenFile), read at the first use, then once a
// minute and after every 401. When the file cannot be read the last token is used on, until the server refuses it;
// `fallback` is the token before the first successful read, empty for none. `clock` must outlive the source.
[[nodiscard]] std::shared_ptr<CredentialSource> make_token_file(std::string path, Clock* clock,
                                                                std::string fallback = {});

// --- Reads small configuration files: kubeconfigs, certificates, tokens.

// No kubeconfig, certificate bundle or token is larger.
inline constexpr std::size_t kLargestConfigFile = 4U * 1024 * 1024;

// The whole file. Errors (`not_found` when it does not exist, else `invalid`) name the path and the cause; a
// directory, and a file over kLargestConfigFile, are errors too. Blocks: for local files only.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

// --- The terminal of the person who runs a command, for credential plugins that ask something or print a device code.
// A program without a person (the operator, shell completion) passes a default Interaction: plugins cannot ask then.

struct Interaction {
  int input = -1;     // Descriptor of a terminal that plugins read answers from; -1: they read nothing.
  int messages = -1;  // Descriptor of a terminal that gets what plugins write to stderr; -1: it is captured.
  [[nodiscard]] bool possible() const { return input >= 0 || messages >= 0; }
};

// Standard input and standard error of this process, each if it is a terminal.
[[nodiscard]] Interaction terminal_of_process();

// --- The connection of a program that runs in a pod: the ServiceAccount's files and two environment variables.

// A variable's value, or nullopt when it is not set. process_environment() is the real one.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] Environment process_environment();

// True when KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are set.
[[nodiscard]] bool runs_in_cluster(const Environment& environment);

// The token is re-read every minute and on 401; CA and namespace are read now. `root` stands before
// /var/run/secrets/kubernetes.io/serviceaccount (tests). Errors: `invalid`, naming the variable or file.
[[nodiscard]] Result<Connection> in_cluster_connection(const Environment& environment, Clock* clock,
                                                       const std::string& root = {});

// --- Where the connection comes from, when the user does not say it all.

struct ConnectionRequest {
  std::string kubeconfig;  // --kubeconfig; empty when not given.
  std::string context;     // --context; empty: the current one. Names a kubeconfig's context, so in-cluster is out.
  Interaction interaction = {};  // For credential plugins. None: nobody is there to answer.
};

// The first that applies, as controller-runtime and kubectl do: --kubeconfig; the files of KUBECONFIG (colon
// separated, merged); the pod's ServiceAccount; $HOME/.kube/config. Errors: `invalid`, saying what was tried.
[[nodiscard]] Result<Connection> load_connection(const ConnectionRequest& request, const Environment& environment,
                                                 Clock* clock);

}  // namespace k8s
