// gso-sim: a simulated API server over HTTP with a GPU fleet, in one process. Prints where it is when it is ready, and
// runs until SIGTERM or SIGINT. docs/simulator.md.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "controller/config/version.h"
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
  std::string listen = "127.0.0.1:0";
  std::string kubeconfig;
  std::string topology = "demo";
  double time_scale = 1.0;
  bool install = false;
  bool libraries = false;
};

struct Endpoint {
  std::string address;
  std::uint16_t port = 0;
};

// "ADDRESS:PORT", an IPv6 address in brackets.
std::optional<Endpoint> endpoint_of(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  Endpoint out{.address = std::string(address)};
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  boost::system::error_code no_address;
  boost::asio::ip::make_address(out.address, no_address);
  if (error != std::errc() || end != port.data() + port.size() || no_address) return std::nullopt;
  return out;
}

// For the user alone, as kubectl writes it, also where the file was there.
bool write_private(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool written =
      ::fchmod(file, 0600) == 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return ::close(file) == 0 && written;
}

void print_libraries() {
  std::printf("gso-sim %s\n", gso::version().c_str());
  for (const auto& [name, version] : gso::linked_libraries())
    std::printf("%.*s %.*s\n", static_cast<int>(name.size()), name.data(), static_cast<int>(version.size()),
                version.data());
}

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
  const auto endpoint = endpoint_of(settings.listen);
  if (!endpoint)
    return fail("--listen '" + settings.listen + "' is not ADDRESS:PORT with an IP address, such as 127.0.0.1:6443");
  asio::io_context io(1);
  const auto clock = k8s::make_real_clock(io.get_executor());
  gso::sim::ApiServer server(io.get_executor(), *clock);
  gso::sim::HttpFrontend frontend(io.get_executor(), server, endpoint->port, endpoint->address);
  gso::sim::InProcessTransport transport(server, {.user = "fleet", .user_agent = "gso-sim"});
  k8s::ApiClient client(&transport, clock.get(), {});
  gso::sim::FleetOptions options;
  options.nodes = *nodes;
  options.timing.scale = settings.time_scale;
  gso::sim::Fleet fleet(&client, clock.get(), std::move(options));

  if (!settings.kubeconfig.empty() && !write_private(settings.kubeconfig, frontend.kubeconfig()))
    return fail("cannot write the kubeconfig to '" + settings.kubeconfig + "'");

  asio::signal_set signals(io, SIGTERM, SIGINT);
  const auto end = [&] {
    frontend.stop();
    io.stop();
  };
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (error) return;
    if (nodes->empty()) return end();
    fleet.stop();
  });
  asio::co_spawn(io, prepare(&client, clock.get(), settings), asio::detached);
  // Without nodes it is the API server alone, and nobody plays its controllers.
  if (!nodes->empty()) asio::co_spawn(io, fleet.run(), [&](const std::exception_ptr&) { end(); });
  std::printf("gso-sim: %zu nodes of topology %s at %s, kubeconfig %s\n", nodes->size(), settings.topology.c_str(),
              frontend.url().c_str(),
              settings.kubeconfig.empty() ? (frontend.url() + "/kubeconfig").c_str() : settings.kubeconfig.c_str());
  std::puts("gso-sim: whoever reaches it can do everything: no TLS, no authentication");
  std::fflush(stdout);
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A simulated Kubernetes API server with a GPU fleet, over HTTP: no GPU, no kubelet, no container runs.");
  Settings settings;
  int nodes = 0;
  app.add_option("--listen", settings.listen, "ADDRESS:PORT to serve on; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--kubeconfig", settings.kubeconfig,
                 "File to write, for kubectl and the operator; GET /kubeconfig answers the same");
  auto* topology = app.add_option("--topology", settings.topology, "Which nodes: " + std::string(gso::sim::kTopologies))
                       ->capture_default_str();
  app.add_option("--nodes", nodes,
                 "So many nodes with eight A100s each, in place of a topology; 0: the API server alone")
      ->check(CLI::Range(0, 20000))
      ->excludes(topology);
  app.add_option("--time-scale", settings.time_scale, "Factor on every delay of the fleet")
      ->check(CLI::Range(0.0001, 1000.0))
      ->capture_default_str();
  app.add_flag("--install", settings.install,
               "Also apply a ConfigMap mps-config and a ClusterPolicy, as an administrator would, and create the "
               "operator's namespace");
  app.add_flag("--libraries", settings.libraries, "Print the version, and those of the libraries inside, and end");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (settings.libraries) return print_libraries(), 0;
  if (app.count("--nodes") > 0) settings.topology = "uniform:" + std::to_string(nodes);
  try {
    return serve(settings);
  } catch (const std::exception& error) {
    return fail("cannot serve on " + settings.listen + ": " + error.what());
  }
}
