// What a restart may bring in, judged on every write of the API server, by the content of the ConfigMap and the pods
// that are stored there: S5, no restart into a profile with an error; S8, no roll to replicas of GPUs that KAI shares.
// The first violation is kept.
#pragma once

#include <map>
#include <string>

#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/fleet/plugin_config.h"
#include "tests/sim/fleet/topology.h"

namespace gso::sim {

class RestartRules {
 public:
  // Judges this user's writes, by what the plugin of `install` reads: on each node the key that its label names, else
  // the default one.
  RestartRules(std::string user, PluginInstall install) : user_(std::move(user)), install_(std::move(install)) {}
  RestartRules(const RestartRules&) = delete;
  RestartRules& operator=(const RestartRules&) = delete;

  // Once. The server must not outlive this object.
  void attach(ApiServer* server);

  // "S5: …", "S8: …", or empty.
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  void on_write(const AuditEntry& entry);
  void judge(const std::string& node, bool begins, const std::string& what);
  void violated(const std::string& what);
  // What the plugin makes of the text that a pod on this node would load now.
  [[nodiscard]] std::expected<PluginConfig, std::string> loads(const nlohmann::json& node) const;
  // What of KAI is on the node: reservations, fraction pods, BindRequests; empty: nothing.
  [[nodiscard]] std::string kai_use(const std::string& node) const;

  ApiServer* server_ = nullptr;
  std::string user_;
  PluginInstall install_;
  std::string violation_;
};

}  // namespace gso::sim
