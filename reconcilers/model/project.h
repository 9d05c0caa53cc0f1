// JSON text of one object -> projected value. Reads only the fields that the value keeps (simdjson on demand, no DOM).
// Defined in project_*.cc, by the kinds that are read alike.
//
// Guarantees: never throws; a missing field takes its default; a field of the wrong type, invalid JSON or a missing
// metadata.name is an Error{decode} that names the field. Unknown fields are ignored.
#pragma once

#include <string_view>

#include "k8sclient/value/error.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/partitioning_world.h"
#include "reconcilers/model/policy.h"

namespace gso {

k8s::Result<Node> project_node(std::string_view object);  // Also from protobuf (k8sclient/value/protobuf_object.h).
k8s::Result<ConfigMap> project_configmap(std::string_view json);
k8s::Result<DaemonSet> project_daemonset(std::string_view json);
k8s::Result<ControllerRevision> project_controller_revision(std::string_view json);
k8s::Result<Pod> project_pod(std::string_view json);
// For pods of the plugin, GFD and MPS: every node has several, so fields that only consumers need are left out.
k8s::Result<Pod> project_operand_pod(std::string_view json);
// Pods of partitioned nodes, and pods without a node.
k8s::Result<SlicePod> project_slice_pod(std::string_view json);
k8s::Result<PartitionerLease> project_partitioner_lease(std::string_view json);
k8s::Result<ClusterPolicy> project_clusterpolicy(std::string_view json);
k8s::Result<GpuCluster> project_gpu_cluster(std::string_view json);
k8s::Result<DeviceClass> project_device_class(std::string_view json);
k8s::Result<ResourceSlice> project_resource_slice(std::string_view json);
k8s::Result<SharingPolicy> project_sharing_policy(std::string_view json);
k8s::Result<SharingRollout> project_sharing_rollout(std::string_view json);

}  // namespace gso
