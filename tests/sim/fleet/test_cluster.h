// A simulated cluster in one process for tests: API server, virtual time, and a fleet; with kubectl's verbs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "k8sclient/api/client.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/fleet/fleet.h"
#include "tests/sim/fleet/topology.h"
#include "tests/sim/sim_clock.h"

namespace gso::sim {

class TestCluster {
 public:
  explicit TestCluster(FleetOptions options);
  ~TestCluster();

  // kubectl create, patch --type merge, delete. Fail the test when the server refuses.
  void create(const k8s::Gvr& gvr, const nlohmann::json& object);
  void patch(const k8s::Gvr& gvr, const k8s::ObjectKey& key, const nlohmann::json& body);
  void remove(const k8s::Gvr& gvr, const k8s::ObjectKey& key);
  // Namespace, ConfigMap and ClusterPolicy of a GPU Operator installation with these profiles.
  void install(const PluginInstall& install, const std::map<std::string, std::string>& profiles);
  void edit_key(const std::string& key, const std::optional<std::string>& text);
  void label(const std::string& node, const std::string& key, const std::optional<std::string>& value);
  // Deletes the pods that a DaemonSet has on a node.
  void delete_pods(const std::string& node, const std::string& daemonset);

  [[nodiscard]] std::string label_of(const std::string& node, const std::string& key) const;
  // -1 when the node does not show the resource.
  [[nodiscard]] std::int64_t allocatable(const std::string& node, const std::string& resource) const;
  [[nodiscard]] std::int64_t capacity(const std::string& node, const std::string& resource) const;
  // The pod of a DaemonSet on a node that is not going away; null when there is none.
  [[nodiscard]] nlohmann::json pod(const std::string& node, const std::string& daemonset) const;
  // The status of a container of that pod; null when there is none.
  [[nodiscard]] nlohmann::json container(const std::string& node, const std::string& daemonset,
                                         const std::string& name) const;

  // Time passes until `holds`, at most `limit`.
  bool eventually(const std::function<bool()>& holds, k8s::Duration limit = std::chrono::minutes(10)) {
    return clock.run_until(holds, limit);
  }
  void pass(k8s::Duration duration) { clock.run_for(duration); }

  boost::asio::io_context io{1};
  SimClock clock;
  ApiServer server;
  InProcessTransport transport;
  k8s::ApiClient client;
  Fleet fleet;

 private:
  k8s::HttpResponse send(k8s::Method method, const std::string& path, const std::string& body,
                         const std::string& content_type);
  bool fleet_ended_ = false;
};

inline constexpr const char* kPluginSet = "nvidia-device-plugin-daemonset";
inline constexpr const char* kMpsSet = "nvidia-device-plugin-mps-control-daemon";
inline constexpr const char* kDiscoverySet = "gpu-feature-discovery";

}  // namespace gso::sim
