// gso-sim: a simulated API server over loopback HTTP with a GPU fleet, in one process. Writes a kubeconfig, prints one
// line when it is ready, and runs until SIGTERM or SIGINT.
#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/http_frontend.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/topology.h"

namespace {

namespace asio = boost::asio;

struct Settings {
  std::string kubeconfig;
  std::string topology = "demo";
  double time_scale = 1.0;
  bool install = false;
};

int fail(const std::string& why) {
  std::fprintf(stderr, "gso-sim: %s\n", why.c_str());
  return 2;
}

asio::awaitable<void> create_namespace(k8s::ApiClient* client, std::string name) {
  const nlohmann::json ns{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
  auto made = co_await client->create(gso::sim::kNamespaces, "", ns.dump());
  if (!made) std::fprintf(stderr, "gso-sim: %s\n", made.error().message.c_str());
}

// ClusterPolicy's definition; with --install also what an administrator applies to get the fleet sharing, and the
// operator's namespace, for its Lease and its record.
asio::awaitable<void> prepare(k8s::ApiClient* client, k8s::Clock* clock, Settings settings) {
  using namespace gso::sim;
  const std::string definition = open_definition("nvidia.com", "clusterpolicies", "ClusterPolicy", "v1", false).dump();
  auto defined = co_await client->create(kCustomResourceDefinitions, "", definition);
  if (!defined) std::fprintf(stderr, "gso-sim: %s\n", defined.error().message.c_str());
  if (!settings.install) co_return;
  const PluginInstall install;
  co_await create_namespace(client, install.ns);
  co_await create_namespace(client, "gpu-sharing-operator");
  const nlohmann::json map = config_map(install.ns, install.config_map, demo_profiles(install.default_key));
  auto stored = co_await client->create(kConfigMaps, install.ns, map.dump());
  if (!stored) std::fprintf(stderr, "gso-sim: %s\n", stored.error().message.c_str());
  // Objects have times in whole seconds: a pod that starts in the second of the edit does not prove that it has read
  // the text.
  co_await clock->sleep_for(std::chrono::seconds(2));
  auto policy = co_await client->create(kClusterPolicies, "", cluster_policy(install).dump());
  if (!policy) std::fprintf(stderr, "gso-sim: %s\n", policy.error().message.c_str());
  for (const nlohmann::json& daemonset : standalone_daemonsets(install, "edge")) {
    auto applied = co_await client->create(kDaemonSets, install.ns, daemonset.dump());
    if (!applied) std::fprintf(stderr, "gso-sim: %s\n", applied.error().message.c_str());
  }
}

int serve(const Settings& settings) {
  auto nodes = gso::sim::topology(settings.topology);
  if (!nodes)
    return fail("there is no topology '" + settings.topology + "'; there are: " + std::string(gso::sim::kTopologies));
  asio::io_context io(1);
  const auto clock = k8s::make_real_clock(io.get_executor());
  gso::sim::ApiServer server(io.get_executor(), *clock);
  gso::sim::HttpFrontend frontend(io.get_executor(), server);
  gso::sim::InProcessTransport transport(server, {.user = "fleet", .user_agent = "gso-sim"});
  k8s::ApiClient client(&transport, clock.get(), {});
  gso::sim::FleetOptions options;
  options.nodes = *nodes;
  options.timing.scale = settings.time_scale;
  gso::sim::Fleet fleet(&client, clock.get(), std::move(options));

  std::ofstream file(settings.kubeconfig);
  file << frontend.kubeconfig();
  file.close();
  if (!file) return fail("cannot write the kubeconfig to '" + settings.kubeconfig + "'");

  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (error) return;
    fleet.stop();
  });
  asio::co_spawn(io, prepare(&client, clock.get(), settings), asio::detached);
  asio::co_spawn(io, fleet.run(), [&](const std::exception_ptr&) {
    signals.cancel();
    frontend.stop();
    io.stop();
  });
  std::printf("gso-sim: %zu nodes of topology %s at %s, kubeconfig %s\n", nodes->size(), settings.topology.c_str(),
              frontend.url().c_str(), settings.kubeconfig.c_str());
  std::fflush(stdout);
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A simulated Kubernetes API server with a GPU fleet, over loopback HTTP.");
  Settings settings;
  app.add_option("--kubeconfig", settings.kubeconfig, "File to write, for kubectl and the operator")->required();
  app.add_option("--topology", settings.topology, "Which nodes: " + std::string(gso::sim::kTopologies))
      ->capture_default_str();
  app.add_option("--time-scale", settings.time_scale, "Factor on every delay of the fleet")
      ->check(CLI::Range(0.0001, 1000.0))
      ->capture_default_str();
  app.add_flag("--install", settings.install,
               "Also apply a ConfigMap mps-config and a ClusterPolicy, as an administrator would, and create the "
               "operator's namespace");
  CLI11_PARSE(app, argc, argv);
  try {
    return serve(settings);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
