#include "k8sclient/auth/in_cluster.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "k8sclient/auth/credentials.h"
#include "k8sclient/auth/file_read.h"

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

}  // namespace k8s
