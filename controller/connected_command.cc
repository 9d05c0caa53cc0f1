// See connected_command.h.
#include "controller/connected_command.h"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "controller/version.h"
#include "k8sclient/curl_transport.h"
#include "k8sclient/load_connection.h"
#include "reconcilers/labels.h"

namespace gso {

namespace asio = boost::asio;

int run_connected(std::string_view command, const Options& options, std::ostream& err, const SessionBody& body) {
  asio::io_context io(1);
  const std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  const k8s::ConnectionRequest request{options.kubeconfig, options.context};
  k8s::Result<k8s::Connection> connection = k8s::load_connection(request, k8s::process_environment(), clock.get());
  if (!connection) {
    err << command << ": " << connection.error().message << "\n";
    return 2;
  }
  connection->user_agent = "gpu-sharing-operator/" + version();
  Session session;
  session.io = &io;
  session.clock = clock.get();
  session.server = connection->server;
  session.namespace_name = connection->namespace_name;
  const std::unique_ptr<k8s::Transport> transport =
      k8s::make_curl_transport(io.get_executor(), *std::move(connection), clock.get());
  session.transport = transport.get();
  k8s::ClientOptions client_options;
  client_options.max_retries = 1;
  // What people ask for is theirs, not the operator's.
  client_options.field_manager = std::string(kFieldManager) + "-cli";
  k8s::ApiClient client(transport.get(), clock.get(), client_options);
  session.client = &client;
  int exit_status = 0;
  asio::co_spawn(io, body(std::move(session)), [&](const std::exception_ptr& error, int status) {
    if (error != nullptr) std::rethrow_exception(error);
    exit_status = status;
    io.stop();
  });
  io.run();
  return exit_status;
}

int run_on_cluster(const std::string& command, const Options& options, std::ostream& err, const ClusterTask& task) {
  return run_connected("gpu-sharing-operator " + command, options, err,
                       [&task](const Session& session) { return task(session.client, session.clock); });
}

}  // namespace gso
