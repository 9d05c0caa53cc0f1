// A simulated API server with one GPU node, the plugin's DaemonSet and ConfigMap, and (unless left out) our CRDs: for
// tests of commands.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "k8sclient/api/client.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"

namespace gso {

class OurClusterWithoutCrds : public testing::Test {
 protected:
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

  OurClusterWithoutCrds();

  k8s::HttpResponse send(k8s::Method method, const std::string& path, const std::string& body, const std::string& type);
  void post(const std::string& path, const std::string& body);
  void merge(const std::string& path, const std::string& body);
  // The object, or the Status of a refusal.
  nlohmann::json get(const std::string& path);

  Sim sim;
  sim::ApiServer server{sim.io.get_executor(), sim.clock};
  sim::InProcessTransport transport{server, {}};
  k8s::ApiClient client{&transport, &sim.clock, {}};
};

class OurCluster : public OurClusterWithoutCrds {
 protected:
  OurCluster();
};

}  // namespace gso
