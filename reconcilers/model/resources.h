// The resources that the operator reads and writes, in the versions of their APIs that it knows.
#pragma once

#include "k8sclient/value/object.h"

namespace gso::resources {

inline const k8s::Gvr nodes{"", "v1", "nodes"};
inline const k8s::Gvr pods{"", "v1", "pods"};
inline const k8s::Gvr namespaces{"", "v1", "namespaces"};
inline const k8s::Gvr config_maps{"", "v1", "configmaps"};
inline const k8s::Gvr core_events{"", "v1", "events"};
inline const k8s::Gvr events{"events.k8s.io", "v1", "events"};
inline const k8s::Gvr daemon_sets{"apps", "v1", "daemonsets"};
inline const k8s::Gvr deployments{"apps", "v1", "deployments"};
inline const k8s::Gvr replica_sets{"apps", "v1", "replicasets"};
inline const k8s::Gvr stateful_sets{"apps", "v1", "statefulsets"};
inline const k8s::Gvr controller_revisions{"apps", "v1", "controllerrevisions"};
inline const k8s::Gvr jobs{"batch", "v1", "jobs"};
inline const k8s::Gvr pod_disruption_budgets{"policy", "v1", "poddisruptionbudgets"};
inline const k8s::Gvr leases{"coordination.k8s.io", "v1", "leases"};
inline const k8s::Gvr runtime_classes{"node.k8s.io", "v1", "runtimeclasses"};
inline const k8s::Gvr custom_resource_definitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
inline const k8s::Gvr device_classes{"resource.k8s.io", "v1", "deviceclasses"};
inline const k8s::Gvr resource_slices{"resource.k8s.io", "v1", "resourceslices"};
inline const k8s::Gvr resource_claims{"resource.k8s.io", "v1", "resourceclaims"};
inline const k8s::Gvr self_subject_access_reviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews"};
inline const k8s::Gvr cluster_policies{"nvidia.com", "v1", "clusterpolicies"};
inline const k8s::Gvr gpu_clusters{"nvidia.com", "v1alpha1", "gpuclusters"};
inline const k8s::Gvr sharing_policies{"gpusharing.dev", "v1alpha1", "sharingpolicies"};
inline const k8s::Gvr sharing_rollouts{"gpusharing.dev", "v1alpha1", "sharingrollouts"};
inline const k8s::Gvr kai_configs{"kai.scheduler", "v1", "configs"};
inline const k8s::Gvr bind_requests{"scheduling.run.ai", "v1alpha2", "bindrequests"};

}  // namespace gso::resources
