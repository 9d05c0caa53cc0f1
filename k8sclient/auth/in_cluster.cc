#include "k8sclient/auth/in_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/auth/credentials.h"
#include "k8sclient/auth/file_read.h"
#include "k8sclient/auth/kubeconfig.h"

namespace k8s {

namespace {

constexpr const char* kHost = "KUBERNETES_SERVICE_HOST";
constexpr const char* kPort = "KUBERNETES_SERVICE_PORT";
constexpr const char* kFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

bool runs_in_cluster(const Environment& environment) {
  return !environment(kHost).value_or("").empty() && !environment(kPort).value_or("").empty();
}

Result<Connection> in_cluster_connection(const Environment& environment, Clock* clock, const std::string& root) {
  if (!runs_in_cluster(environment)) {
    return fail(Reason::invalid, fmt::format("not running in a pod: {} and {} are not both set", kHost, kPort));
  }
  const std::string folder = root + kFolder;
  const std::string host = *environment(kHost);
  const bool ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  Connection connection;
  connection.identity = "the pod's ServiceAccount";
  connection.server = fmt::format("https://{}{}{}:{}", ipv6 ? "[" : "", host, ipv6 ? "]" : "", *environment(kPort));
  Result<std::string> ca = read_file(folder + "/ca.crt");
  if (!ca) return fail(Reason::invalid, "in-cluster configuration: " + ca.error().message);
  connection.ca_pem = *std::move(ca);
  connection.ca_file = folder + "/ca.crt";
  const Result<std::string> token = read_file(folder + "/token");
  if (!token) return fail(Reason::invalid, "in-cluster configuration: " + token.error().message);
  Result<std::string> ns = read_file(folder + "/namespace");
  if (ns) {
    while (!ns->empty() && static_cast<unsigned char>(ns->back()) <= ' ') ns->pop_back();
    if (!ns->empty()) connection.namespace_name = *std::move(ns);
  }
  connection.credentials = make_token_file(folder + "/token", clock);
  return connection;
}

namespace {

std::vector<std::string> split_paths(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::string_view path = list.substr(0, list.find(':'));
    list.remove_prefix(std::min(list.size(), path.size() + 1));
    if (!path.empty()) out.emplace_back(path);
  }
  return out;
}

Result<Connection> from_files(std::vector<std::string> files, MissingFile missing, const ConnectionRequest& request,
                              Clock* clock) {
  const Result<Kubeconfig> config = load_kubeconfig(std::move(files), missing);
  if (!config) return std::unexpected(config.error());
  return connection_from(*config, request.context, clock, request.interaction);
}

}  // namespace

Result<Connection> load_connection(const ConnectionRequest& request, const Environment& environment, Clock* clock) {
  if (!request.kubeconfig.empty()) {
    return from_files({request.kubeconfig}, MissingFile::error, request, clock);
  }
  std::vector<std::string> listed = split_paths(environment("KUBECONFIG").value_or(""));
  if (!listed.empty()) return from_files(std::move(listed), MissingFile::skip, request, clock);
  if (request.context.empty() && runs_in_cluster(environment)) return in_cluster_connection(environment, clock);
  const std::string home = environment("HOME").value_or("");
  if (home.empty()) {
    return fail(Reason::invalid,
                "no cluster is configured: give --kubeconfig, set KUBECONFIG, or run in a pod (HOME is not set "
                "either)");
  }
  Result<Connection> connection = from_files({home + "/.kube/config"}, MissingFile::error, request, clock);
  if (connection) return connection;
  Error error = connection.error();
  error.message += " (tried because neither --kubeconfig nor KUBECONFIG is given and this is not a pod)";
  return std::unexpected(std::move(error));
}

}  // namespace k8s
