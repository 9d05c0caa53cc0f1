// The simulated API server alone, over loopback HTTP on real time: for kubectl and for trying things by hand.
//
//   sim_server [--port N] [--kubeconfig FILE]      prints its URL, serves until SIGINT, SIGTERM
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdio>
#include <fstream>

#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/http_frontend.h"

int main(int argc, char** argv) {
  CLI::App app("Simulated Kubernetes API server");
  std::uint16_t port = 0;
  std::string kubeconfig;
  app.add_option("--port", port, "TCP port on 127.0.0.1; 0 takes a free one");
  app.add_option("--kubeconfig", kubeconfig, "Writes a kubeconfig for it to this file");
  CLI11_PARSE(app, argc, argv);
  boost::asio::io_context io(1);
  const auto clock = k8s::make_real_clock(io.get_executor());
  gso::sim::ApiServer server(io.get_executor(), *clock);
  gso::sim::HttpFrontend frontend(io.get_executor(), server, port);
  if (!kubeconfig.empty()) std::ofstream(kubeconfig) << frontend.kubeconfig();
  std::printf("%s\n", frontend.url().c_str());
  std::fflush(stdout);
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code&, int) {
    frontend.stop();
    io.stop();
  });
  io.run();
  return 0;
}
