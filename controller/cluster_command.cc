// Connection, io_context and client of one command.
#include "controller/cluster_command.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <ostream>

#include "controller/version.h"
#include "k8sclient/curl_transport.h"
#include "k8sclient/load_connection.h"
#include "reconcilers/labels.h"

namespace gso {

namespace asio = boost::asio;

int run_on_cluster(const std::string& command, const Options& options, std::ostream& err, const ClusterTask& task) {
  asio::io_context io(1);
  const std::unique_ptr<k8s::Clock> clock = k8s::make_real_clock(io.get_executor());
  const k8s::ConnectionRequest request{options.kubeconfig, options.context};
  k8s::Result<k8s::Connection> connection = k8s::load_connection(request, k8s::process_environment(), clock.get());
  if (!connection) {
    err << "gpu-sharing-operator " << command << ": " << connection.error().message << "\n";
    return 2;
  }
  connection->user_agent = "gpu-sharing-operator/" + version();
  const std::unique_ptr<k8s::Transport> transport =
      k8s::make_curl_transport(io.get_executor(), *std::move(connection), clock.get());
  k8s::ClientOptions client_options;
  client_options.max_retries = 1;  // Somebody is waiting.
  client_options.field_manager =
      std::string(kFieldManager) + "-cli";  // What people ask for is theirs, not the operator's.
  k8s::ApiClient client(transport.get(), clock.get(), client_options);
  int status = 2;
  asio::co_spawn(io, task(&client, clock.get()), [&io, &status](const std::exception_ptr& error, int result) {
    if (error != nullptr) std::rethrow_exception(error);
    status = result;
    io.stop();
  });
  io.run();
  return status;
}

}  // namespace gso
