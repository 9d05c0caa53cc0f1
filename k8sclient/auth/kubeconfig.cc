#include "k8sclient/auth/kubeconfig.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/auth/connection.h"
#include "k8sclient/value/encoding.h"
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

// --- Reads one kubeconfig file's YAML into typed values. yaml-cpp throws: it is caught here and nowhere else.

namespace {

// Thrown inside this file only, to leave the nested readers.
struct Wrong {
  YAML::Mark mark;
  std::string message;
};

std::string_view kind_of(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  return node.IsScalar() ? "a scalar" : "nothing";
}

bool given(const YAML::Node& node) {
  return node.IsDefined() && !node.IsNull();
}

std::string text_at(const YAML::Node& map, const char* key) {
  const YAML::Node node = map[key];
  if (!given(node)) return {};
  if (!node.IsScalar()) throw Wrong{node.Mark(), fmt::format("{} must be a string, it is {}", key, kind_of(node))};
  return node.Scalar();
}

bool flag_at(const YAML::Node& map, const char* key) {
  const std::string text = text_at(map, key);
  if (text.empty() || text == "false") return false;
  if (text != "true") throw Wrong{map[key].Mark(), fmt::format("{} must be true or false, it is \"{}\"", key, text)};
  return true;
}

// The list under `key`; an undefined node counts as empty.
YAML::Node list_at(const YAML::Node& map, const char* key) {
  const YAML::Node node = map[key];
  if (!given(node)) return YAML::Node(YAML::NodeType::Sequence);
  if (!node.IsSequence()) throw Wrong{node.Mark(), fmt::format("{} must be a list, it is {}", key, kind_of(node))};
  return node;
}

std::vector<std::string> texts_at(const YAML::Node& map, const char* key) {
  std::vector<std::string> out;
  for (const YAML::Node& text : list_at(map, key)) {
    if (!text.IsScalar()) throw Wrong{text.Mark(), fmt::format("{} must hold strings", key)};
    out.push_back(text.Scalar());
  }
  return out;
}

const YAML::Node& must_be_map(const YAML::Node& node, std::string_view what) {
  if (!node.IsMap()) throw Wrong{node.Mark(), fmt::format("{} must be a mapping, it is {}", what, kind_of(node))};
  return node;
}

constexpr int kDeepestExtension = 100;
constexpr int kMostExtensionValues = 10'000;

// Plain scalars by YAML's core schema, quoted ones as strings. `left`: values that may still come. Aliases make trees
// of any size from a small text, and endless ones.
Json to_json(const YAML::Node& node, int depth, int* left) {
  if (!given(node)) return nullptr;
  if (depth > kDeepestExtension || --*left < 0) {
    throw Wrong{node.Mark(), fmt::format("an extension must have at most {} levels and {} values (an anchor that "
                                         "contains itself has no end)",
                                         kDeepestExtension, kMostExtensionValues)};
  }
  if (node.IsMap()) {
    Json out = Json::object();
    for (const auto& entry : node) out[entry.first.Scalar()] = to_json(entry.second, depth + 1, left);
    return out;
  }
  if (node.IsSequence()) {
    Json out = Json::array();
    for (const auto& item : node) out.push_back(to_json(item, depth + 1, left));
    return out;
  }
  if (node.Tag() != "!") {
    Json plain = Json::parse(node.Scalar(), nullptr, false);
    if (plain.is_number() || plain.is_boolean() || plain.is_null()) return plain;
  }
  return node.Scalar();
}

KubeCluster read_cluster(const YAML::Node& node) {
  KubeCluster cluster;
  cluster.server = text_at(node, "server");
  cluster.tls_server_name = text_at(node, "tls-server-name");
  cluster.insecure_skip_tls_verify = flag_at(node, "insecure-skip-tls-verify");
  cluster.certificate_authority = text_at(node, "certificate-authority");
  cluster.certificate_authority_data = text_at(node, "certificate-authority-data");
  cluster.proxy_url = text_at(node, "proxy-url");
  for (const YAML::Node& extension : list_at(node, "extensions")) {
    must_be_map(extension, "an extension");
    if (text_at(extension, "name") != "client.authentication.k8s.io/exec") continue;
    int left = kMostExtensionValues;
    cluster.exec_extension_json = dump(to_json(extension["extension"], 0, &left));
  }
  return cluster;
}

KubeExec read_exec(const YAML::Node& node) {
  must_be_map(node, "exec");
  KubeExec exec;
  exec.api_version = text_at(node, "apiVersion");
  exec.command = text_at(node, "command");
  exec.install_hint = text_at(node, "installHint");
  exec.interactive_mode = text_at(node, "interactiveMode");
  exec.provide_cluster_info = flag_at(node, "provideClusterInfo");
  exec.args = texts_at(node, "args");
  for (const YAML::Node& entry : list_at(node, "env")) {
    must_be_map(entry, "an entry of env");
    exec.env.emplace_back(text_at(entry, "name"), text_at(entry, "value"));
  }
  return exec;
}

Impersonation read_impersonation(const YAML::Node& user) {
  Impersonation out;
  out.user = text_at(user, "as");
  out.uid = text_at(user, "as-uid");
  out.groups = texts_at(user, "as-groups");
  const YAML::Node extra = user["as-user-extra"];
  if (!given(extra)) return out;
  for (const auto& entry : must_be_map(extra, "as-user-extra")) {
    const std::string key = entry.first.Scalar();
    out.extra.emplace_back(key, texts_at(extra, key.c_str()));
  }
  return out;
}

KubeUser read_user(const YAML::Node& node) {
  KubeUser user;
  user.client_certificate = text_at(node, "client-certificate");
  user.client_certificate_data = text_at(node, "client-certificate-data");
  user.client_key = text_at(node, "client-key");
  user.client_key_data = text_at(node, "client-key-data");
  user.token = text_at(node, "token");
  user.token_file = text_at(node, "tokenFile");
  if (given(node["exec"])) user.exec = read_exec(node["exec"]);
  user.impersonation = read_impersonation(node);
  for (const char* field : {"username", "password", "auth-provider"}) {
    if (given(node[field])) user.refused = field;
  }
  return user;
}

KubeContext read_context(const YAML::Node& node) {
  KubeContext context;
  context.cluster = text_at(node, "cluster");
  context.user = text_at(node, "user");
  context.ns = text_at(node, "namespace");
  return context;
}

// `clusters`, `users` and `contexts` are lists of {name, <singular>: {…}}.
template <class T>
void read_entries(const YAML::Node& root, const char* plural, const char* singular, const std::string& file,
                  T (*read)(const YAML::Node&), std::map<std::string, T, std::less<>>& into) {
  for (const YAML::Node& entry : list_at(root, plural)) {
    must_be_map(entry, fmt::format("an entry of {}", plural));
    const std::string name = text_at(entry, "name");
    if (name.empty()) throw Wrong{entry.Mark(), fmt::format("an entry of {} has no name", plural)};
    const YAML::Node body = entry[singular];
    T value{};
    if (given(body)) value = read(must_be_map(body, fmt::format("{} of \"{}\"", singular, name)));
    value.file = file;
    into.try_emplace(name, std::move(value));
  }
}

Kubeconfig read_root(const YAML::Node& root, const std::string& file) {
  Kubeconfig config;
  config.files.push_back(file);
  if (!given(root)) return config;  // An empty file is a valid kubeconfig.
  must_be_map(root, "a kubeconfig");
  const std::string kind = text_at(root, "kind");
  if (!kind.empty() && kind != "Config") {
    throw Wrong{root["kind"].Mark(), fmt::format("kind is {}, a kubeconfig has kind Config", kind)};
  }
  config.current_context = text_at(root, "current-context");
  read_entries(root, "clusters", "cluster", file, read_cluster, config.clusters);
  read_entries(root, "users", "user", file, read_user, config.users);
  read_entries(root, "contexts", "context", file, read_context, config.contexts);
  return config;
}

std::unexpected<Error> at_mark(const std::string& file, const YAML::Mark& mark, std::string_view message) {
  if (mark.is_null()) return fail(Reason::invalid, fmt::format("kubeconfig {}: {}", file, message));
  return fail(Reason::invalid,
              fmt::format("kubeconfig {}, line {}, column {}: {}", file, mark.line + 1, mark.column + 1, message));
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& file) {
  try {
    return read_root(YAML::Load(std::string(text)), file);
  } catch (const Wrong& wrong) {
    return at_mark(file, wrong.mark, wrong.message);
  } catch (const YAML::Exception& error) {
    return at_mark(file, error.mark, error.msg);
  }
}

}  // namespace k8s
