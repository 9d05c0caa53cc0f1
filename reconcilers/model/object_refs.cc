#include "reconcilers/model/object_refs.h"

#include "reconcilers/model/labels.h"

namespace gso {

ObjectRef node_ref(const std::string& name) {
  return {"v1", "Node", "", name, ""};
}
ObjectRef config_map_ref(const k8s::ObjectKey& key) {
  return {"v1", "ConfigMap", key.ns, key.name, ""};
}
ObjectRef daemonset_ref(const k8s::ObjectKey& key) {
  return {"apps/v1", "DaemonSet", key.ns, key.name, ""};
}
ObjectRef pod_ref(const k8s::ObjectMeta& meta) {
  return {"v1", "Pod", std::string(meta.ns.view()), meta.name, meta.uid};
}
ObjectRef policy_ref(const SharingPolicy& policy) {
  return {std::string(kApiVersion), "SharingPolicy", "", policy.meta.name, policy.meta.uid};
}

}  // namespace gso
