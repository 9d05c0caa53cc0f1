// A simulated API server, and one with a GPU node, the plugin's DaemonSet and ConfigMap, and (unless left out) our
// CRDs.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "k8sclient/api/client.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"

namespace gso {

// The fault applies to each request for that resource.
sim::FaultRule always(sim::Fault fault, const std::string& resource);

class SimulatedServer : public testing::Test {
 protected:
  // How long the garbage collector takes to notice that an owner is gone.
  explicit SimulatedServer(Duration collector_delay = std::chrono::milliseconds(100));

  // A device plugin with a config-manager sidecar, as the GPU Operator deploys it.
  static constexpr const char* kPlugin = R"({"apiVersion":"apps/v1","kind":"DaemonSet",
    "metadata":{"name":"nvidia-device-plugin-daemonset"},"spec":{
      "selector":{"matchLabels":{"app":"plugin"}},
      "template":{"metadata":{"labels":{"app":"plugin"}},"spec":{
        "containers":[
          {"name":"nvidia-device-plugin","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","env":[{"name":"MPS_ROOT","value":"/run/nvidia/mps"}]},
          {"name":"config-manager","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","command":["config-manager"],
           "env":[{"name":"DEFAULT_CONFIG","value":"any"},{"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"}],
           "volumeMounts":[{"name":"plugin-config","mountPath":"/available-configs"}]}],
        "volumes":[{"name":"plugin-config","configMap":{"name":"mps-config"}}]}}}})";

  // The body of a patch is a merge patch.
  k8s::HttpResponse send(k8s::Method method, const std::string& path, const std::string& body = "");
  void post(const std::string& path, const std::string& body);
  void add_namespace(const std::string& name);
  void merge(const std::string& path, const std::string& body);
  void remove(const std::string& path);
  // The object, or the Status of a refusal.
  nlohmann::json get(const std::string& path);
  void install_crds();

  Sim sim;
  sim::ApiServer server;
  sim::InProcessTransport transport{server, {}};
  k8s::ApiClient client{&transport, &sim.clock, {}};
};

class OurClusterWithoutCrds : public SimulatedServer {
 protected:
  OurClusterWithoutCrds();
};

class OurCluster : public OurClusterWithoutCrds {
 protected:
  OurCluster() { install_crds(); }
};

}  // namespace gso
