#include "tests/sim/fleet/test_cluster.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdlib>
#include <utility>

#include "k8sclient/value/object.h"
#include "tests/sim/apiserver/local_request.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

k8s::ObjectKey key_of(const json& object) {
  return {object["metadata"].value("namespace", ""), object["metadata"].value("name", "")};
}

std::int64_t quantity_in(const std::optional<json>& node, const char* field, const std::string& resource) {
  if (!node) return -1;
  const json amounts = node->value("status", json::object()).value(field, json::object());
  return amounts.contains(resource) ? std::strtoll(amounts[resource].get<std::string>().c_str(), nullptr, 10) : -1;
}

}  // namespace

TestCluster::TestCluster(FleetOptions options)
    : clock(io, *k8s::parse_rfc3339("2026-03-01T00:00:00Z")),
      server(io.get_executor(), clock),
      transport(server, {.user = "fleet", .user_agent = "gso-fleet"}),
      client(&transport, &clock, {}),
      fleet(&client, &clock, std::move(options)) {
  create(kCustomResourceDefinitions, open_definition("nvidia.com", "clusterpolicies", "ClusterPolicy", "v1", false));
  boost::asio::co_spawn(io, fleet.run(), [this](const std::exception_ptr&) { fleet_ended_ = true; });
}

TestCluster::~TestCluster() {
  fleet.stop();
  EXPECT_TRUE(clock.run_until([this] { return fleet_ended_; }, std::chrono::minutes(1))) << "the fleet does not stop";
}

k8s::HttpResponse TestCluster::send(k8s::Method method, const std::string& path, const std::string& body,
                                    const std::string& content_type) {
  k8s::HttpResponse response =
      server.handle(local_request(method, path, body, content_type), {.user = "kubectl", .user_agent = "kubectl"});
  EXPECT_LT(response.status, 300) << path << ": " << response.body;
  return response;
}

void TestCluster::create(const k8s::Gvr& gvr, const json& object) {
  send(k8s::Method::post, k8s::collection_path(gvr, key_of(object).ns), object.dump(), "application/json");
}

void TestCluster::patch(const k8s::Gvr& gvr, const k8s::ObjectKey& key, const json& body) {
  send(k8s::Method::patch, k8s::object_path(gvr, key), body.dump(), "application/merge-patch+json");
}

void TestCluster::remove(const k8s::Gvr& gvr, const k8s::ObjectKey& key) {
  send(k8s::Method::del, k8s::object_path(gvr, key), "", "");
}

void TestCluster::install(const PluginInstall& install, const std::map<std::string, std::string>& profiles) {
  create(kNamespaces, {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", install.ns}}}});
  create(kConfigMaps, config_map(install.ns, install.config_map, profiles));
  create(kClusterPolicies, cluster_policy(install));
}

void TestCluster::edit_key(const std::string& key, const std::optional<std::string>& text) {
  json body;
  body["data"][key] = text ? json(*text) : json();
  patch(kConfigMaps, {"gpu-operator", "mps-config"}, body);
}

void TestCluster::label(const std::string& node, const std::string& key, const std::optional<std::string>& value) {
  json body;
  body["metadata"]["labels"][key] = value ? json(*value) : json();
  patch(kNodes, {"", node}, body);
}

void TestCluster::delete_pods(const std::string& node, const std::string& daemonset) {
  const json found = pod(node, daemonset);
  ASSERT_FALSE(found.is_null()) << daemonset << " has no pod on " << node;
  remove(kPods, key_of(found));
}

std::string TestCluster::label_of(const std::string& node, const std::string& key) const {
  const auto object = server.get(kNodes, {"", node});
  return object ? (*object)["metadata"].value("labels", json::object()).value(key, "") : "";
}

std::int64_t TestCluster::allocatable(const std::string& node, const std::string& resource) const {
  return quantity_in(server.get(kNodes, {"", node}), "allocatable", resource);
}

std::int64_t TestCluster::capacity(const std::string& node, const std::string& resource) const {
  return quantity_in(server.get(kNodes, {"", node}), "capacity", resource);
}

json TestCluster::pod(const std::string& node, const std::string& daemonset) const {
  for (const json& candidate : server.list(kPods)) {
    if (candidate["spec"].value("nodeName", "") != node || candidate["metadata"].contains("deletionTimestamp"))
      continue;
    for (const json& owner : candidate["metadata"].value("ownerReferences", json::array()))
      if (owner.value("name", "") == daemonset) return candidate;
  }
  return {};
}

json TestCluster::container(const std::string& node, const std::string& daemonset, const std::string& name) const {
  const json found = pod(node, daemonset);
  if (found.is_null()) return {};
  const json status = found.value("status", json::object());
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json& container : status.value(list, json::array()))
      if (container.value("name", "") == name) return container;
  }
  return {};
}

}  // namespace gso::sim
