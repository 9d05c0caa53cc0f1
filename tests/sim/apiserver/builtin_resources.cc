// The list of built-in resources.
#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/builtin_kinds.h"
#include "tests/sim/apiserver/names.h"
#include "tests/sim/apiserver/resource.h"
#include "tests/sim/apiserver/table.h"

namespace gso::sim {
namespace {

using nlohmann::json;

struct Entry {
  const char* group;
  const char* version;
  const char* plural;
  const char* kind;
  const char* schema;
  bool namespaced;
  bool has_status;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  std::vector<std::string> subresources;
  std::vector<std::string> selectable;
  Strategy strategy;
};

std::vector<Entry> entries() {
  const std::vector<std::string> event_fields = {"involvedObject.kind",
                                                 "involvedObject.namespace",
                                                 "involvedObject.name",
                                                 "involvedObject.uid",
                                                 "involvedObject.apiVersion",
                                                 "involvedObject.resourceVersion",
                                                 "involvedObject.fieldPath",
                                                 "reason",
                                                 "reportingComponent",
                                                 "source",
                                                 "type",
                                                 "regarding.kind",
                                                 "regarding.namespace",
                                                 "regarding.name",
                                                 "regarding.uid",
                                                 "reportingController"};
  const std::vector<std::string> pod_fields = {
      "spec.nodeName",    "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
      "spec.hostNetwork", "status.phase",       "status.podIP",       "status.nominatedNodeName"};
  return {
      {"", "v1", "configmaps", "ConfigMap", "core.ConfigMap", true, false, {"cm"}, {}, {}, {}, config_map_strategy()},
      {"", "v1", "events", "Event", "core.Event", true, false, {"ev"}, {}, {}, event_fields, event_strategy(false)},
      {"",
       "v1",
       "namespaces",
       "Namespace",
       "core.Namespace",
       false,
       true,
       {"ns"},
       {},
       {"finalize"},
       {"status.phase"},
       namespace_strategy()},
      {"", "v1", "nodes", "Node", "core.Node", false, true, {"no"}, {}, {}, {"spec.unschedulable"}, node_strategy()},
      {"",
       "v1",
       "pods",
       "Pod",
       "core.Pod",
       true,
       true,
       {"po"},
       {"all"},
       {"binding", "eviction"},
       pod_fields,
       pod_strategy()},
      {"", "v1", "secrets", "Secret", "core.Secret", true, false, {}, {}, {}, {"type"}, secret_strategy()},
      {"", "v1", "serviceaccounts", "ServiceAccount", "core.ServiceAccount", true, false, {"sa"}, {}, {}, {}, {}},
      {"", "v1", "services", "Service", "core.Service", true, true, {"svc"}, {"all"}, {}, {}, {}},
      {"apps",
       "v1",
       "controllerrevisions",
       "ControllerRevision",
       "apps.ControllerRevision",
       true,
       false,
       {},
       {},
       {},
       {},
       controller_revision_strategy()},
      {"apps",
       "v1",
       "daemonsets",
       "DaemonSet",
       "apps.DaemonSet",
       true,
       true,
       {"ds"},
       {"all"},
       {},
       {},
       daemon_set_strategy()},
      {"apps",
       "v1",
       "deployments",
       "Deployment",
       "apps.Deployment",
       true,
       true,
       {"deploy"},
       {"all"},
       {},
       {},
       deployment_strategy()},
      {"apps",
       "v1",
       "replicasets",
       "ReplicaSet",
       "apps.ReplicaSet",
       true,
       true,
       {"rs"},
       {"all"},
       {},
       {},
       deployment_strategy()},
      {"events.k8s.io",
       "v1",
       "events",
       "Event",
       "events.Event",
       true,
       false,
       {"ev"},
       {},
       {},
       event_fields,
       event_strategy(true)},
      {"coordination.k8s.io",
       "v1",
       "leases",
       "Lease",
       "coordination.Lease",
       true,
       false,
       {},
       {},
       {},
       {},
       lease_strategy()},
      {"policy",
       "v1",
       "poddisruptionbudgets",
       "PodDisruptionBudget",
       "policy.PodDisruptionBudget",
       true,
       true,
       {"pdb"},
       {},
       {},
       {},
       disruption_budget_strategy()},
      {"rbac.authorization.k8s.io",
       "v1",
       "clusterrolebindings",
       "ClusterRoleBinding",
       "rbac.ClusterRoleBinding",
       false,
       false,
       {},
       {},
       {},
       {},
       rbac_strategy()},
      {"rbac.authorization.k8s.io",
       "v1",
       "clusterroles",
       "ClusterRole",
       "rbac.ClusterRole",
       false,
       false,
       {},
       {},
       {},
       {},
       rbac_strategy()},
      {"rbac.authorization.k8s.io",
       "v1",
       "rolebindings",
       "RoleBinding",
       "rbac.RoleBinding",
       true,
       false,
       {},
       {},
       {},
       {},
       rbac_strategy()},
      {"rbac.authorization.k8s.io", "v1", "roles", "Role", "rbac.Role", true, false, {}, {}, {}, {}, rbac_strategy()},
      {"scheduling.k8s.io",
       "v1",
       "priorityclasses",
       "PriorityClass",
       "scheduling.PriorityClass",
       false,
       false,
       {"pc"},
       {},
       {},
       {},
       {}},
      {"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "node.RuntimeClass", false, false, {}, {}, {}, {}, {}},
      {"apiextensions.k8s.io",
       "v1",
       "customresourcedefinitions",
       "CustomResourceDefinition",
       "apiextensions.CustomResourceDefinition",
       false,
       true,
       {"crd", "crds"},
       {"api-extensions"},
       {},
       {},
       custom_resource_definition_strategy()},
  };
}

void rename(json& object, const char* from, const char* to) {
  auto it = object.find(from);
  if (it == object.end()) return;
  json value = std::move(*it);
  object.erase(it);
  object[to] = std::move(value);
}

// events.k8s.io/v1 and its spelling in core/v1, where both are stored.
constexpr std::pair<const char*, const char*> kEventNames[] = {{"regarding", "involvedObject"},
                                                               {"note", "message"},
                                                               {"deprecatedSource", "source"},
                                                               {"deprecatedFirstTimestamp", "firstTimestamp"},
                                                               {"deprecatedLastTimestamp", "lastTimestamp"},
                                                               {"deprecatedCount", "count"},
                                                               {"reportingController", "reportingComponent"}};

void add_event_conversion(Resource& resource) {
  resource.to_storage = [](json& event) {
    for (const auto& [new_name, old_name] : kEventNames) rename(event, new_name, old_name);
    event["apiVersion"] = "v1";
    (void)normalize(*builtin_schema("core.Event"), event);
  };
  resource.from_storage = [](json& event) {
    for (const auto& [new_name, old_name] : kEventNames) rename(event, old_name, new_name);
    event["apiVersion"] = "events.k8s.io/v1";
    (void)normalize(*builtin_schema("events.Event"), event);
  };
}

ResourcePtr review(const char* plural, const char* kind, const char* schema) {
  auto resource = std::make_shared<Resource>();
  resource->group = "authorization.k8s.io";
  resource->version = "v1";
  resource->plural = plural;
  resource->kind = kind;
  resource->singular = lower(kind);
  resource->namespaced = false;
  resource->create_only = true;
  resource->schema = builtin_schema(schema);
  resource->storage_version = resource->api_version();
  return resource;
}

}  // namespace

std::vector<ResourcePtr> builtin_resources() {
  std::vector<ResourcePtr> all;
  for (Entry& entry : entries()) {
    auto resource = std::make_shared<Resource>();
    resource->group = entry.group;
    resource->version = entry.version;
    resource->plural = entry.plural;
    resource->kind = entry.kind;
    resource->singular = lower(entry.kind);
    resource->list_kind = resource->kind + "List";
    resource->namespaced = entry.namespaced;
    resource->has_status = entry.has_status;
    resource->short_names = entry.short_names;
    resource->categories = entry.categories;
    resource->subresources = entry.subresources;
    resource->selectable = entry.selectable;
    resource->schema = builtin_schema(entry.schema);
    resource->strategy = std::move(entry.strategy);
    resource->bucket = resource->group.empty() ? resource->plural : resource->plural + "." + resource->group;
    resource->storage_version = resource->api_version();
    resource->columns = builtin_columns(resource->kind);
    if (resource->group == "events.k8s.io") {
      resource->bucket = "events";
      resource->storage_version = "v1";
      add_event_conversion(*resource);
    }
    all.push_back(std::move(resource));
  }
  all.push_back(review("selfsubjectaccessreviews", "SelfSubjectAccessReview", "authorization.SelfSubjectAccessReview"));
  return all;
}

}  // namespace gso::sim
