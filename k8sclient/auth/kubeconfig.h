// kubeconfig files: found, merged and resolved as kubectl does.
//
//   Result<Kubeconfig> config = load_kubeconfig({"/home/me/.kube/config"}, MissingFile::error);
//   Result<Connection> connection = connection_from(*config, "", clock);
//
// Refused with a clear message: username/password, auth-provider, and exec plugins that must ask something
// (interactiveMode Always) where there is no terminal.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/auth/connection.h"
#include "k8sclient/auth/exec_credential.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

// Each entry remembers the file it came from: relative paths are relative to it, and messages name it.
struct KubeCluster {
  std::string file;
  std::string server;
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  std::string certificate_authority;       // A path.
  std::string certificate_authority_data;  // Base64.
  std::string proxy_url;
  std::string exec_extension_json;  // Extension client.authentication.k8s.io/exec, for exec plugins; empty: none.
};

struct KubeExec {
  ExecConfig config;  // Not checked, and without what the cluster and the person's terminal add.
  std::string interactive_mode;
  bool provide_cluster_info = false;
};

struct KubeUser {
  std::string file;
  std::string client_certificate;
  std::string client_certificate_data;
  std::string client_key;
  std::string client_key_data;
  std::string token;
  std::string token_file;
  std::optional<KubeExec> exec;
  Impersonation impersonation;
  std::string refused;  // The field that this client does not support ("username", …), or empty.
};

struct KubeContext {
  std::string file = {};
  std::string cluster;
  std::string user;
  std::string ns;
};

struct Kubeconfig {
  std::vector<std::string> files;  // That were read.
  std::string current_context;
  std::map<std::string, KubeCluster, std::less<>> clusters;
  std::map<std::string, KubeUser, std::less<>> users;
  std::map<std::string, KubeContext, std::less<>> contexts;
};

// One file's text (kubeconfig.cc). Errors: `invalid`, with file, line and what would be right. Unknown fields are
// ignored.
[[nodiscard]] Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& file);

enum class MissingFile { error, skip };
// Reads the files in order and merges them: of entries with equal names, and of current-context, the first wins.
[[nodiscard]] Result<Kubeconfig> load_kubeconfig(std::vector<std::string> files, MissingFile missing);

// What `context` (empty: current-context) describes. Certificates and keys are read and decoded now (the
// transport looks at their files again), tokens when they are used. Errors name the file, the entry and the field.
// `interaction`: what an exec plugin can use to talk to a person. `clock` must outlive the credentials.
[[nodiscard]] Result<Connection> connection_from(const Kubeconfig& config, std::string_view context, Clock* clock,
                                                 Interaction interaction = {});

}  // namespace k8s
