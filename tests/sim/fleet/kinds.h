// The resources that the emulator reads and writes.
#pragma once

#include "k8sclient/value/object.h"

namespace gso::sim {

inline const k8s::Gvr kNodes{"", "v1", "nodes"};
inline const k8s::Gvr kPods{"", "v1", "pods"};
inline const k8s::Gvr kConfigMaps{"", "v1", "configmaps"};
inline const k8s::Gvr kNamespaces{"", "v1", "namespaces"};
inline const k8s::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
inline const k8s::Gvr kDaemonSets{"apps", "v1", "daemonsets"};
inline const k8s::Gvr kControllerRevisions{"apps", "v1", "controllerrevisions"};
inline const k8s::Gvr kCustomResourceDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
inline const k8s::Gvr kClusterPolicies{"nvidia.com", "v1", "clusterpolicies"};
inline const k8s::Gvr kNodeFeatures{"nfd.k8s-sigs.io", "v1alpha1", "nodefeatures"};
inline const k8s::Gvr kResourceSlices{"resource.k8s.io", "v1", "resourceslices"};
inline const k8s::Gvr kDeviceClasses{"resource.k8s.io", "v1", "deviceclasses"};

inline constexpr const char* kConfigLabel = "nvidia.com/device-plugin.config";
inline constexpr const char* kFeatureLabels = "nfd.node.kubernetes.io/feature-labels";

}  // namespace gso::sim
