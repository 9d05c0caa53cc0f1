#include "k8sclient/auth/kubeconfig.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/auth/credentials.h"
#include "k8sclient/auth/file_read.h"
#include "k8sclient/value/base64.h"
#include "k8sclient/value/json_access.h"

namespace k8s {
namespace {

using Json = nlohmann::json;

template <class Map>
std::string names(const Map& map) {
  std::vector<std::string_view> keys;
  for (const auto& [name, value] : map) keys.push_back(name);
  return keys.empty() ? std::string("none") : fmt::format("{}", fmt::join(keys, ", "));
}

// Relative paths are relative to the file that they stand in.
std::string resolved(const std::string& path, const std::string& file) {
  if (path.empty() || path.front() == '/') return path;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? path : file.substr(0, slash + 1) + path;
}

// A certificate or key: the base64 field, else the file. Empty when neither is given.
Result<std::string> pem(const std::string& data, const std::string& path, const std::string& file,
                        std::string_view field, std::string_view entry) {
  if (!data.empty()) {
    auto decoded = base64_decode(data);
    if (!decoded) {
      return fail(Reason::invalid, fmt::format("kubeconfig {}: {}-data of {} is not valid base64", file, field, entry));
    }
    return *std::move(decoded);
  }
  if (path.empty()) return std::string();
  Result<std::string> text = read_file(resolved(path, file));
  if (!text) {
    return fail(Reason::invalid, fmt::format("kubeconfig {}: {} of {}: {}", file, field, entry, text.error().message));
  }
  return text;
}

// The path that pem() reads, empty where it does not.
std::string pem_file(const std::string& data, const std::string& path, const std::string& file) {
  return data.empty() ? resolved(path, file) : std::string();
}

Result<void> fill_cluster(const KubeCluster& cluster, const std::string& name, Connection* out) {
  const std::string entry = fmt::format("cluster \"{}\"", name);
  if (!cluster.server.starts_with("https://") && !cluster.server.starts_with("http://")) {
    return fail(Reason::invalid, fmt::format("kubeconfig {}: server of {} is \"{}\", it must begin with https:// or "
                                             "http://",
                                             cluster.file, entry, cluster.server));
  }
  Result<std::string> ca = pem(cluster.certificate_authority_data, cluster.certificate_authority, cluster.file,
                               "certificate-authority", entry);
  if (!ca) return std::unexpected(ca.error());
  if (!ca->empty() && cluster.insecure_skip_tls_verify) {
    return fail(Reason::invalid, fmt::format("kubeconfig {}: {} has both a certificate-authority and "
                                             "insecure-skip-tls-verify; remove one",
                                             cluster.file, entry));
  }
  out->server = cluster.server;
  while (out->server.ends_with('/')) out->server.pop_back();
  out->ca_pem = *std::move(ca);
  out->ca_file = pem_file(cluster.certificate_authority_data, cluster.certificate_authority, cluster.file);
  out->insecure_skip_tls_verify = cluster.insecure_skip_tls_verify;
  out->tls_server_name = cluster.tls_server_name;
  out->proxy_url = cluster.proxy_url;
  return {};
}

// ExecCredential.spec.cluster.
std::string cluster_json(const KubeCluster& cluster, const Connection& connection) {
  Json out{{"server", connection.server}};
  if (!connection.tls_server_name.empty()) out["tls-server-name"] = connection.tls_server_name;
  if (connection.insecure_skip_tls_verify) out["insecure-skip-tls-verify"] = true;
  if (!connection.ca_pem.empty()) out["certificate-authority-data"] = base64_encode(connection.ca_pem);
  if (!connection.proxy_url.empty()) out["proxy-url"] = connection.proxy_url;
  if (!cluster.exec_extension_json.empty()) out["config"] = Json::parse(cluster.exec_extension_json, nullptr, false);
  return dump(out);
}

// What a plugin of this interactiveMode gets of the person's terminal: never a keyboard with Never. What it writes to
// stderr is shown in every mode, as kubectl does.
Interaction interaction_in(std::string_view mode, Interaction offered) {
  if (mode == "Never") offered.input = -1;
  return offered;
}

Result<ExecConfig> checked_exec(const KubeExec& exec, const KubeUser& user, std::string_view entry,
                                Interaction interaction) {
  const auto wrong = [&](const std::string& what) {
    return fail(Reason::invalid, fmt::format("kubeconfig {}: exec of {}: {}", user.file, entry, what));
  };
  const bool v1 = exec.api_version == "client.authentication.k8s.io/v1";
  if (!v1 && exec.api_version != "client.authentication.k8s.io/v1beta1") {
    return wrong(
        fmt::format("apiVersion \"{}\" is not supported, use client.authentication.k8s.io/v1 or "
                    "client.authentication.k8s.io/v1beta1",
                    exec.api_version));
  }
  if (exec.command.empty()) return wrong("command is missing");
  const std::string mode = exec.interactive_mode.empty() && !v1 ? "IfAvailable" : exec.interactive_mode;
  if (mode != "Never" && mode != "IfAvailable" && mode != "Always") {
    return wrong(fmt::format("interactiveMode \"{}\" is not one of Never, IfAvailable, Always", mode));
  }
  if (mode == "Always" && interaction.input < 0) {
    return wrong("interactiveMode is Always, but there is no terminal here to read answers from");
  }
  for (const auto& [name, value] : exec.env) {
    if (name.empty()) return wrong("an entry of env has no name");
  }
  ExecConfig out;
  out.api_version = exec.api_version;
  const bool bare_name = exec.command.find('/') == std::string::npos;
  out.command = bare_name ? exec.command : resolved(exec.command, user.file);
  out.args = exec.args;
  out.env = exec.env;
  out.install_hint = exec.install_hint;
  out.interaction = interaction_in(mode, interaction);
  if (out.interaction.possible()) out.time_limit = kInteractiveTimeLimit;
  return out;
}

std::string refusal(const std::string& field) {
  if (field == "auth-provider") return "auth-provider was removed from Kubernetes; use an exec plugin";
  return "username and password were removed from Kubernetes; use a token, a client certificate or an exec plugin";
}

Result<void> fill_certificate(const KubeUser& user, const std::string& entry, Connection* out) {
  Result<std::string> cert =
      pem(user.client_certificate_data, user.client_certificate, user.file, "client-certificate", entry);
  if (!cert) return std::unexpected(cert.error());
  Result<std::string> key = pem(user.client_key_data, user.client_key, user.file, "client-key", entry);
  if (!key) return std::unexpected(key.error());
  if (cert->empty() != key->empty()) {
    return fail(Reason::invalid, fmt::format("kubeconfig {}: {} has {} without {}", user.file, entry,
                                             cert->empty() ? "client-key" : "client-certificate",
                                             cert->empty() ? "client-certificate" : "client-key"));
  }
  out->client_cert_pem = *std::move(cert);
  out->client_key_pem = *std::move(key);
  out->client_cert_file = pem_file(user.client_certificate_data, user.client_certificate, user.file);
  out->client_key_file = pem_file(user.client_key_data, user.client_key, user.file);
  return {};
}

Result<void> fill_user(const KubeUser& user, const std::string& name, const KubeCluster& cluster, Clock* clock,
                       Interaction interaction, Connection* out) {
  const std::string entry = fmt::format("user \"{}\"", name);
  const auto wrong = [&](const std::string& what) {
    return fail(Reason::invalid, fmt::format("kubeconfig {}: {}: {}", user.file, entry, what));
  };
  if (!user.refused.empty()) return wrong(refusal(user.refused));
  if (Result<void> filled = fill_certificate(user, entry, out); !filled) return filled;
  auto headers = impersonation_headers(user.impersonation);
  if (!headers) return wrong(headers.error().message);
  out->headers = *std::move(headers);
  if (!user.token_file.empty()) {
    const std::string path = resolved(user.token_file, user.file);
    if (user.token.empty()) {
      Result<std::string> readable = read_file(path);
      if (!readable) {
        return fail(Reason::invalid,
                    fmt::format("kubeconfig {}: tokenFile of {}: {}", user.file, entry, readable.error().message));
      }
    }
    out->credentials = make_token_file(path, clock, user.token);
  } else if (!user.token.empty()) {
    out->credentials = make_static_token(user.token);
  } else if (user.exec) {
    Result<ExecConfig> exec = checked_exec(*user.exec, user, entry, interaction);
    if (!exec) return std::unexpected(exec.error());
    if (user.exec->provide_cluster_info) exec->cluster_json = cluster_json(cluster, *out);
    out->credentials = make_exec_credential(*std::move(exec), clock);
  }
  return {};
}

}  // namespace

Result<Kubeconfig> load_kubeconfig(std::vector<std::string> files, MissingFile missing) {
  Kubeconfig merged;
  for (const std::string& file : files) {
    Result<std::string> text = read_file(file);
    if (!text && text.error().reason == Reason::not_found && missing == MissingFile::skip) continue;
    if (!text) return fail(Reason::invalid, fmt::format("kubeconfig: {}", text.error().message));
    Result<Kubeconfig> one = parse_kubeconfig(*text, file);
    if (!one) return one;
    merged.files.push_back(file);
    if (merged.current_context.empty()) merged.current_context = one->current_context;
    merged.clusters.merge(one->clusters);
    merged.users.merge(one->users);
    merged.contexts.merge(one->contexts);
  }
  if (merged.files.empty()) {
    return fail(Reason::invalid, fmt::format("no kubeconfig was found; looked for {}", fmt::join(files, ", ")));
  }
  return merged;
}

Result<Connection> connection_from(const Kubeconfig& config, std::string_view context, Clock* clock,
                                   Interaction interaction) {
  const std::string where = fmt::format("kubeconfig {}", fmt::join(config.files, ", "));
  const std::string_view name = context.empty() ? std::string_view(config.current_context) : context;
  if (name.empty()) {
    return fail(Reason::invalid, fmt::format("{} has no current-context; choose one of its contexts: {}", where,
                                             names(config.contexts)));
  }
  const auto chosen = config.contexts.find(name);
  if (chosen == config.contexts.end()) {
    return fail(Reason::invalid,
                fmt::format("{}: context \"{}\" does not exist; there are: {}", where, name, names(config.contexts)));
  }
  const auto cluster = config.clusters.find(chosen->second.cluster);
  if (cluster == config.clusters.end()) {
    return fail(Reason::invalid, fmt::format("{}: context \"{}\" names cluster \"{}\", which does not exist; there "
                                             "are: {}",
                                             where, name, chosen->second.cluster, names(config.clusters)));
  }
  const auto user = config.users.find(chosen->second.user);
  if (user == config.users.end() && !chosen->second.user.empty()) {
    return fail(Reason::invalid, fmt::format("{}: context \"{}\" names user \"{}\", which does not exist; there are: "
                                             "{}",
                                             where, name, chosen->second.user, names(config.users)));
  }
  Connection connection;
  connection.identity = fmt::format("user \"{}\" of context \"{}\" ({})", chosen->second.user, name, where);
  if (!chosen->second.ns.empty()) connection.namespace_name = chosen->second.ns;
  if (Result<void> filled = fill_cluster(cluster->second, cluster->first, &connection); !filled) {
    return std::unexpected(filled.error());
  }
  if (user == config.users.end()) return connection;
  Result<void> filled = fill_user(user->second, user->first, cluster->second, clock, interaction, &connection);
  if (!filled) return std::unexpected(filled.error());
  return connection;
}

}  // namespace k8s
