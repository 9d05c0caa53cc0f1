#include "k8sclient/auth/load_connection.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/auth/kubeconfig.h"

namespace k8s {
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
