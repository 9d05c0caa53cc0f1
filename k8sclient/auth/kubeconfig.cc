#include "k8sclient/auth/kubeconfig.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/json_access.h"

namespace k8s {

namespace {

using Json = nlohmann::json;

template <class Map>
std::string names(const Map& map) {
  return map.empty() ? "none" : fmt::format("{}", fmt::join(std::views::keys(map), ", "));
}

// Relative paths are relative to the file that they stand in.
std::string resolved(const std::string& path, const std::string& file) {
  if (path.empty() || path.front() == '/') return path;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? path : file.substr(0, slash + 1) + path;
}

std::unexpected<Error> wrong_in(const std::string& file, std::string_view what) {
  return fail(Reason::invalid, fmt::format("kubeconfig {}: {}", file, what));
}

// A certificate or key.
struct Pem {
  std::string text;
  std::string file;  // That the transport reads again; empty: the text stands in the kubeconfig, or there is none.
};

// The base64 field, else the file. Empty when neither is given.
Result<Pem> pem(const std::string& data, const std::string& path, const std::string& file, std::string_view field,
                std::string_view entry) {
  if (!data.empty()) {
    auto decoded = base64_decode(data);
    if (!decoded) return wrong_in(file, fmt::format("{}-data of {} is not valid base64", field, entry));
    return Pem{*std::move(decoded), ""};
  }
  if (path.empty()) return Pem{};
  Result<std::string> text = read_file(resolved(path, file));
  if (!text) return wrong_in(file, fmt::format("{} of {}: {}", field, entry, text.error().message));
  return Pem{*std::move(text), resolved(path, file)};
}

Result<void> fill_cluster(const KubeCluster& cluster, const std::string& name, Connection* out) {
  const std::string entry = fmt::format("cluster \"{}\"", name);
  if (!cluster.server.starts_with("https://") && !cluster.server.starts_with("http://")) {
    return wrong_in(cluster.file, fmt::format("server of {} is \"{}\", it must begin with https:// or http://", entry,
                                              cluster.server));
  }
  Result<Pem> ca = pem(cluster.certificate_authority_data, cluster.certificate_authority, cluster.file,
                       "certificate-authority", entry);
  if (!ca) return std::unexpected(ca.error());
  if (!ca->text.empty() && cluster.insecure_skip_tls_verify)
    return wrong_in(cluster.file, entry + " has both a certificate-authority and insecure-skip-tls-verify; remove one");
  out->server = cluster.server.substr(0, cluster.server.find_last_not_of('/') + 1);
  out->ca_pem = std::move(ca->text);
  out->ca_file = std::move(ca->file);
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

Result<ExecConfig> checked_exec(const KubeExec& exec, const KubeUser& user, std::string_view entry,
                                Interaction interaction) {
  const auto wrong = [&](std::string_view what) {
    return wrong_in(user.file, fmt::format("exec of {}: {}", entry, what));
  };
  ExecConfig out = exec.config;
  const bool v1 = out.api_version == "client.authentication.k8s.io/v1";
  if (!v1 && out.api_version != "client.authentication.k8s.io/v1beta1") {
    return wrong(
        fmt::format("apiVersion \"{}\" is not supported, use client.authentication.k8s.io/v1 or "
                    "client.authentication.k8s.io/v1beta1",
                    out.api_version));
  }
  if (out.command.empty()) return wrong("command is missing");
  const std::string mode = exec.interactive_mode.empty() && !v1 ? "IfAvailable" : exec.interactive_mode;
  if (mode != "Never" && mode != "IfAvailable" && mode != "Always")
    return wrong(fmt::format("interactiveMode \"{}\" is not one of Never, IfAvailable, Always", mode));
  if (mode == "Always" && interaction.input < 0)
    return wrong("interactiveMode is Always, but there is no terminal here to read answers from");
  for (const auto& [name, value] : out.env)
    if (name.empty()) return wrong("an entry of env has no name");
  if (out.command.contains('/')) out.command = resolved(out.command, user.file);  // A bare name is looked up in PATH.
  // Never a keyboard with Never. What a plugin writes to stderr is shown in every mode, as kubectl does.
  out.interaction = interaction;
  if (mode == "Never") out.interaction.input = -1;
  if (out.interaction.possible()) out.time_limit = kInteractiveTimeLimit;
  return out;
}

Result<void> fill_certificate(const KubeUser& user, const std::string& entry, Connection* out) {
  Result<Pem> cert = pem(user.client_certificate_data, user.client_certificate, user.file, "client-certificate", entry);
  if (!cert) return std::unexpected(cert.error());
  Result<Pem> key = pem(user.client_key_data, user.client_key, user.file, "client-key", entry);
  if (!key) return std::unexpected(key.error());
  if (cert->text.empty() != key->text.empty()) {
    return wrong_in(user.file, entry + (cert->text.empty() ? " has client-key without client-certificate"
                                                           : " has client-certificate without client-key"));
  }
  out->client_cert_pem = std::move(cert->text);
  out->client_key_pem = std::move(key->text);
  out->client_cert_file = std::move(cert->file);
  out->client_key_file = std::move(key->file);
  return {};
}

Result<void> fill_user(const KubeUser& user, const std::string& name, const KubeCluster& cluster, Clock* clock,
                       Interaction interaction, Connection* out) {
  const std::string entry = fmt::format("user \"{}\"", name);
  if (!user.refused.empty()) {
    const bool provider = user.refused == "auth-provider";
    return wrong_in(user.file, fmt::format("{}: {} removed from Kubernetes; use {}an exec plugin", entry,
                                           provider ? "auth-provider was" : "username and password were",
                                           provider ? "" : "a token, a client certificate or "));
  }
  if (Result<void> filled = fill_certificate(user, entry, out); !filled) return filled;
  auto headers = impersonation_headers(user.impersonation);
  if (!headers) return wrong_in(user.file, fmt::format("{}: {}", entry, headers.error().message));
  out->headers = *std::move(headers);
  if (!user.token_file.empty()) {
    const std::string path = resolved(user.token_file, user.file);
    if (user.token.empty()) {
      Result<std::string> readable = read_file(path);
      if (!readable) return wrong_in(user.file, fmt::format("tokenFile of {}: {}", entry, readable.error().message));
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
    if (!text) return fail(Reason::invalid, "kubeconfig: " + text.error().message);
    Result<Kubeconfig> one = parse_kubeconfig(*text, file);
    if (!one) return one;
    merged.files.push_back(file);
    if (merged.current_context.empty()) merged.current_context = one->current_context;
    merged.clusters.merge(one->clusters);
    merged.users.merge(one->users);
    merged.contexts.merge(one->contexts);
  }
  if (merged.files.empty())
    return fail(Reason::invalid, fmt::format("no kubeconfig was found; looked for {}", fmt::join(files, ", ")));
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
  const KubeContext& wanted = chosen->second;
  const auto missing = [&](std::string_view kind, std::string_view entry, const std::string& there_are) {
    return fail(Reason::invalid, fmt::format("{}: context \"{}\" names {} \"{}\", which does not exist; there are: {}",
                                             where, name, kind, entry, there_are));
  };
  const auto cluster = config.clusters.find(wanted.cluster);
  if (cluster == config.clusters.end()) return missing("cluster", wanted.cluster, names(config.clusters));
  const auto user = config.users.find(wanted.user);
  if (user == config.users.end() && !wanted.user.empty()) return missing("user", wanted.user, names(config.users));
  Connection connection;
  connection.identity = fmt::format("user \"{}\" of context \"{}\" ({})", wanted.user, name, where);
  if (!wanted.ns.empty()) connection.namespace_name = wanted.ns;
  Result<void> filled = fill_cluster(cluster->second, cluster->first, &connection);
  if (filled && user != config.users.end())
    filled = fill_user(user->second, user->first, cluster->second, clock, interaction, &connection);
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
  exec.config.api_version = text_at(node, "apiVersion");
  exec.config.command = text_at(node, "command");
  exec.config.install_hint = text_at(node, "installHint");
  exec.interactive_mode = text_at(node, "interactiveMode");
  exec.provide_cluster_info = flag_at(node, "provideClusterInfo");
  exec.config.args = texts_at(node, "args");
  for (const YAML::Node& entry : list_at(node, "env")) {
    must_be_map(entry, "an entry of env");
    exec.config.env.emplace_back(text_at(entry, "name"), text_at(entry, "value"));
  }
  return exec;
}

Impersonation read_impersonation(const YAML::Node& user) {
  Impersonation out{.user = text_at(user, "as"), .uid = text_at(user, "as-uid"), .groups = texts_at(user, "as-groups")};
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
  for (const char* field : {"username", "password", "auth-provider"})
    if (given(node[field])) user.refused = field;
  return user;
}

KubeContext read_context(const YAML::Node& node) {
  return {.cluster = text_at(node, "cluster"), .user = text_at(node, "user"), .ns = text_at(node, "namespace")};
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
  if (!kind.empty() && kind != "Config")
    throw Wrong{root["kind"].Mark(), fmt::format("kind is {}, a kubeconfig has kind Config", kind)};
  config.current_context = text_at(root, "current-context");
  read_entries(root, "clusters", "cluster", file, read_cluster, config.clusters);
  read_entries(root, "users", "user", file, read_user, config.users);
  read_entries(root, "contexts", "context", file, read_context, config.contexts);
  return config;
}

std::unexpected<Error> at_mark(const std::string& file, const YAML::Mark& mark, std::string_view message) {
  if (mark.is_null()) return wrong_in(file, message);
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
