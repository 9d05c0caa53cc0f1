// gso-fleet: attaches a GPU fleet to an API server, the real one or a simulated one, until SIGTERM or SIGINT. With
// --print-manifests it prints what an administrator applies to get the fleet to share its GPUs, for kubectl.
#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "k8sclient/api/client.h"
#include "k8sclient/auth/kubeconfig.h"
#include "k8sclient/clock.h"
#include "k8sclient/transport/curl_transport.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/fleet/topology.h"

namespace {

namespace asio = boost::asio;

struct Settings {
  std::string kubeconfig;
  std::string topology = "demo";
  double time_scale = 1.0;
  bool print_manifests = false;
  std::string gpu_operator_namespace = "gpu-operator";
};

int fail(const std::string& why) {
  std::fprintf(stderr, "gso-fleet: %s\n", why.c_str());
  return 2;
}

// The GPU Operator's ClusterPolicy (and a definition that takes any), the profiles, the standalone plugin's DaemonSets;
// for a topology of nos, what it installs.
int print_manifests(const Settings& settings) {
  using nlohmann::json;
  if (settings.topology.starts_with("nos:")) {
    const json list{{"apiVersion", "v1"}, {"kind", "List"}, {"items", gso::sim::nos_manifests({}, {})}};
    std::puts(list.dump(1).c_str());
    return 0;
  }
  const gso::sim::PluginInstall install;
  json items = json::array();
  items.push_back({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", install.ns}}}});
  items.push_back(gso::sim::open_definition("nvidia.com", "clusterpolicies", "ClusterPolicy", "v1", false));
  items.push_back(gso::sim::config_map(install.ns, install.config_map, gso::sim::demo_profiles(install.default_key)));
  items.push_back(gso::sim::cluster_policy(install));
  for (json& daemonset : gso::sim::standalone_daemonsets(install, "edge")) items.push_back(std::move(daemonset));
  const json list{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
  std::puts(list.dump(1).c_str());
  return 0;
}

int attach(const Settings& settings) {
  if (settings.kubeconfig.empty()) return fail("--kubeconfig is needed, to know where the server is");
  asio::io_context io(1);
  const auto clock = k8s::make_real_clock(io.get_executor());
  const auto config = k8s::load_kubeconfig({settings.kubeconfig}, k8s::MissingFile::error);
  if (!config) return fail(config.error().message);
  auto connection = k8s::connection_from(*config, "", clock.get());
  if (!connection) return fail(connection.error().message);
  connection->user_agent = "gso-fleet";
  const auto transport = k8s::make_curl_transport(io.get_executor(), *connection, clock.get());
  k8s::ClientOptions client_options;
  client_options.field_manager = "kubelet";
  k8s::ApiClient client(transport.get(), clock.get(), client_options);
  auto nodes = gso::sim::topology(settings.topology);
  if (!nodes)
    return fail("there is no topology '" + settings.topology + "'; there are: " + std::string(gso::sim::kTopologies));
  gso::sim::Fleet fleet(&client, clock.get(),
                        {.nodes = *nodes,
                         .timing = {.scale = settings.time_scale},
                         .act_as_controllers = false,
                         .gpu_operator_namespace = settings.gpu_operator_namespace});
  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&fleet](const boost::system::error_code& error, int) {
    if (!error) fleet.stop();
  });
  // Kept-alive connections would hold run() open.
  asio::co_spawn(io, fleet.run(), [&io](const std::exception_ptr&) { io.stop(); });
  std::printf("gso-fleet: %zu nodes of topology %s attached to %s\n", nodes->size(), settings.topology.c_str(),
              connection->server.c_str());
  std::fflush(stdout);
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Attaches an emulated GPU fleet to a Kubernetes API server.");
  Settings settings;
  app.add_option("--kubeconfig", settings.kubeconfig, "File that says where the server is");
  app.add_option("--topology", settings.topology, "Which nodes: " + std::string(gso::sim::kTopologies))
      ->capture_default_str();
  app.add_option("--time-scale", settings.time_scale, "Factor on every delay of the fleet")
      ->check(CLI::Range(0.0001, 1000.0))
      ->capture_default_str();
  app.add_option("--gpu-operator-namespace", settings.gpu_operator_namespace,
                 "Where the GPU Operator lives; empty: there is none")
      ->capture_default_str();
  app.add_flag("--print-manifests", settings.print_manifests,
               "Print what makes the fleet share its GPUs, as a List for kubectl apply, and end");
  CLI11_PARSE(app, argc, argv);
  return settings.print_manifests ? print_manifests(settings) : attach(settings);
}
