// Reads one kubeconfig file's YAML into typed values. yaml-cpp throws: it is caught here and nowhere else.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "k8sclient/auth/kubeconfig.h"
#include "k8sclient/value/json_access.h"

namespace k8s {
namespace {

using Json = nlohmann::json;

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
