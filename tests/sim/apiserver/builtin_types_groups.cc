// The types of the other groups, and of metadata.
// Facts of the Kubernetes API v1.36 (k8s.io/api and apimachinery: names, types, omitempty, merge keys; OpenAPI: list
// types and keys). One type a line: NAME FIELD:TYPE…, continued on indented lines. After a type: * pointer, ?
// omitempty, ~ omitzero, + required, @k1,k2 list of type map with its keys, @= list of type set, %key strategic merge
// by that key
// (% alone: merged as a set), & retainKeys, ! atomic (after the name: wherever the type is used).
#include "tests/sim/apiserver/builtin_types.h"

namespace gso::sim {

const char* const kGroupTypes = R"(
apiextensions.CustomResourceColumnDefinition name:string+ type:string+ format:string? description:string?
  priority:int32? jsonPath:string+
apiextensions.CustomResourceConversion strategy:string+ webhook:apiextensions.WebhookConversion*?
apiextensions.CustomResourceDefinition kind:string? apiVersion:string? metadata:meta.ObjectMeta?
  spec:apiextensions.CustomResourceDefinitionSpec+ status:apiextensions.CustomResourceDefinitionStatus?
apiextensions.CustomResourceDefinitionCondition type:string+ status:string+ lastTransitionTime:time? reason:string?
  message:string? observedGeneration:int64?
apiextensions.CustomResourceDefinitionNames plural:string+ singular:string? shortNames:[]string? kind:string+
  listKind:string? categories:[]string?
apiextensions.CustomResourceDefinitionSpec group:string+ names:apiextensions.CustomResourceDefinitionNames+
  scope:string+ versions:[]apiextensions.CustomResourceDefinitionVersion+
  conversion:apiextensions.CustomResourceConversion*? preserveUnknownFields:bool?
apiextensions.CustomResourceDefinitionStatus conditions:[]apiextensions.CustomResourceDefinitionCondition@type
  acceptedNames:apiextensions.CustomResourceDefinitionNames storedVersions:[]string observedGeneration:int64?
apiextensions.CustomResourceDefinitionVersion name:string+ served:bool+ storage:bool+ deprecated:bool?
  deprecationWarning:string*? schema:apiextensions.CustomResourceValidation*?
  subresources:apiextensions.CustomResourceSubresources*?
  additionalPrinterColumns:[]apiextensions.CustomResourceColumnDefinition?
  selectableFields:[]apiextensions.SelectableField?
apiextensions.CustomResourceSubresourceScale specReplicasPath:string+ statusReplicasPath:string+
  labelSelectorPath:string*?
apiextensions.CustomResourceSubresourceStatus
apiextensions.CustomResourceSubresources status:apiextensions.CustomResourceSubresourceStatus*?
  scale:apiextensions.CustomResourceSubresourceScale*?
apiextensions.CustomResourceValidation openAPIV3Schema:any*?
apiextensions.SelectableField jsonPath:string+
apiextensions.ServiceReference namespace:string+ name:string+ path:string*? port:int32*?
apiextensions.WebhookClientConfig url:string*? service:apiextensions.ServiceReference*? caBundle:bytes?
apiextensions.WebhookConversion clientConfig:apiextensions.WebhookClientConfig*? conversionReviewVersions:[]string+
apps.ControllerRevision kind:string? apiVersion:string? metadata:meta.ObjectMeta? data:any? revision:int64+
apps.DaemonSet kind:string? apiVersion:string? metadata:meta.ObjectMeta? spec:apps.DaemonSetSpec?
  status:apps.DaemonSetStatus?
apps.DaemonSetCondition type:string+ status:string+ lastTransitionTime:time? reason:string? message:string?
apps.DaemonSetSpec selector:meta.LabelSelector*!+ template:core.PodTemplateSpec+
  updateStrategy:apps.DaemonSetUpdateStrategy? minReadySeconds:int32? revisionHistoryLimit:int32*?
apps.DaemonSetStatus currentNumberScheduled:int32+ numberMisscheduled:int32+ desiredNumberScheduled:int32+
  numberReady:int32+ observedGeneration:int64? updatedNumberScheduled:int32? numberAvailable:int32?
  numberUnavailable:int32? collisionCount:int32*? conditions:[]apps.DaemonSetCondition?@type%type
apps.DaemonSetUpdateStrategy type:string? rollingUpdate:apps.RollingUpdateDaemonSet*?
apps.Deployment kind:string? apiVersion:string? metadata:meta.ObjectMeta? spec:apps.DeploymentSpec?
  status:apps.DeploymentStatus?
apps.DeploymentCondition type:string+ status:string+ lastUpdateTime:time? lastTransitionTime:time? reason:string?
  message:string?
apps.DeploymentSpec replicas:int32*? selector:meta.LabelSelector*!+ template:core.PodTemplateSpec+
  strategy:apps.DeploymentStrategy?& minReadySeconds:int32? revisionHistoryLimit:int32*? paused:bool?
  progressDeadlineSeconds:int32*?
apps.DeploymentStatus observedGeneration:int64? replicas:int32? updatedReplicas:int32? readyReplicas:int32?
  availableReplicas:int32? unavailableReplicas:int32? terminatingReplicas:int32*?
  conditions:[]apps.DeploymentCondition?@type%type collisionCount:int32*?
apps.DeploymentStrategy type:string? rollingUpdate:apps.RollingUpdateDeployment*?
apps.ReplicaSet kind:string? apiVersion:string? metadata:meta.ObjectMeta? spec:apps.ReplicaSetSpec?
  status:apps.ReplicaSetStatus?
apps.ReplicaSetCondition type:string+ status:string+ lastTransitionTime:time? reason:string? message:string?
apps.ReplicaSetSpec replicas:int32*? minReadySeconds:int32? selector:meta.LabelSelector*!+
  template:core.PodTemplateSpec?
apps.ReplicaSetStatus replicas:int32+ fullyLabeledReplicas:int32? readyReplicas:int32? availableReplicas:int32?
  terminatingReplicas:int32*? observedGeneration:int64? conditions:[]apps.ReplicaSetCondition?@type%type
apps.RollingUpdateDaemonSet maxUnavailable:intorstring*? maxSurge:intorstring*?
apps.RollingUpdateDeployment maxUnavailable:intorstring*? maxSurge:intorstring*?
authorization.FieldSelectorAttributes rawSelector:string? requirements:[]meta.FieldSelectorRequirement?
authorization.LabelSelectorAttributes rawSelector:string? requirements:[]meta.LabelSelectorRequirement?
authorization.NonResourceAttributes path:string? verb:string?
authorization.ResourceAttributes namespace:string? verb:string? group:string? version:string? resource:string?
  subresource:string? name:string? fieldSelector:authorization.FieldSelectorAttributes*?
  labelSelector:authorization.LabelSelectorAttributes*?
authorization.SelfSubjectAccessReview kind:string? apiVersion:string? metadata:meta.ObjectMeta?
  spec:authorization.SelfSubjectAccessReviewSpec+ status:authorization.SubjectAccessReviewStatus?
authorization.SelfSubjectAccessReviewSpec resourceAttributes:authorization.ResourceAttributes*?
  nonResourceAttributes:authorization.NonResourceAttributes*?
authorization.SubjectAccessReviewStatus allowed:bool+ denied:bool? reason:string? evaluationError:string?
coordination.Lease kind:string? apiVersion:string? metadata:meta.ObjectMeta? spec:coordination.LeaseSpec?
coordination.LeaseSpec holderIdentity:string*? leaseDurationSeconds:int32*? acquireTime:micro*? renewTime:micro*?
  leaseTransitions:int32*? strategy:string*? preferredHolder:string*?
events.Event kind:string? apiVersion:string? metadata:meta.ObjectMeta eventTime:micro+ series:events.EventSeries*?
  reportingController:string? reportingInstance:string? action:string? reason:string?
  regarding:core.ObjectReference?! related:core.ObjectReference*?! note:string? type:string?
  deprecatedSource:core.EventSource? deprecatedFirstTimestamp:time? deprecatedLastTimestamp:time?
  deprecatedCount:int32?
events.EventSeries count:int32+ lastObservedTime:micro+
meta.Condition type:string+ status:string+ observedGeneration:int64? lastTransitionTime:time+ reason:string+
  message:string+
meta.DeleteOptions kind:string? apiVersion:string? gracePeriodSeconds:int64*? preconditions:meta.Preconditions*?
  orphanDependents:bool*? propagationPolicy:string*? dryRun:[]string?
  ignoreStoreReadErrorWithClusterBreakingPotential:bool*?
meta.FieldSelectorRequirement key:string+ operator:string+ values:[]string?
meta.LabelSelector! matchLabels:{}string? matchExpressions:[]meta.LabelSelectorRequirement?
meta.LabelSelectorRequirement key:string+ operator:string+ values:[]string?
meta.ManagedFieldsEntry manager:string? operation:string? apiVersion:string? time:time*? fieldsType:string?
  fieldsV1:any*? subresource:string?
meta.ObjectMeta name:string? generateName:string? namespace:string? selfLink:string? uid:string?
  resourceVersion:string? generation:int64? creationTimestamp:time?~ deletionTimestamp:time*?
  deletionGracePeriodSeconds:int64*? labels:{}string? annotations:{}string?
  ownerReferences:[]meta.OwnerReference?@uid%uid finalizers:[]string?@=% managedFields:[]meta.ManagedFieldsEntry?
meta.OwnerReference! apiVersion:string+ kind:string+ name:string+ uid:string+ controller:bool*?
  blockOwnerDeletion:bool*?
meta.Preconditions uid:string*? resourceVersion:string*?
node.Overhead podFixed:{}quantity?
node.RuntimeClass kind:string? apiVersion:string? metadata:meta.ObjectMeta? handler:string+ overhead:node.Overhead*?
  scheduling:node.Scheduling*?
node.Scheduling nodeSelector:{}string?! tolerations:[]core.Toleration?
policy.Eviction kind:string? apiVersion:string? metadata:meta.ObjectMeta? deleteOptions:meta.DeleteOptions*?
policy.PodDisruptionBudget kind:string? apiVersion:string? metadata:meta.ObjectMeta?
  spec:policy.PodDisruptionBudgetSpec? status:policy.PodDisruptionBudgetStatus?
policy.PodDisruptionBudgetSpec minAvailable:intorstring*? selector:meta.LabelSelector*?!
  maxUnavailable:intorstring*? unhealthyPodEvictionPolicy:string*?
policy.PodDisruptionBudgetStatus observedGeneration:int64? disruptedPods:{}time? disruptionsAllowed:int32
  currentHealthy:int32 desiredHealthy:int32 expectedPods:int32 conditions:[]meta.Condition?@type%type
rbac.AggregationRule clusterRoleSelectors:[]meta.LabelSelector?
rbac.ClusterRole kind:string? apiVersion:string? metadata:meta.ObjectMeta? rules:[]rbac.PolicyRule
  aggregationRule:rbac.AggregationRule*?
rbac.ClusterRoleBinding kind:string? apiVersion:string? metadata:meta.ObjectMeta? subjects:[]rbac.Subject?
  roleRef:rbac.RoleRef!+
rbac.PolicyRule verbs:[]string+ apiGroups:[]string? resources:[]string? resourceNames:[]string?
  nonResourceURLs:[]string?
rbac.Role kind:string? apiVersion:string? metadata:meta.ObjectMeta? rules:[]rbac.PolicyRule
rbac.RoleBinding kind:string? apiVersion:string? metadata:meta.ObjectMeta? subjects:[]rbac.Subject?
  roleRef:rbac.RoleRef!+
rbac.RoleRef! apiGroup:string kind:string+ name:string+
rbac.Subject! kind:string+ apiGroup:string? name:string+ namespace:string?
scheduling.PriorityClass kind:string? apiVersion:string? metadata:meta.ObjectMeta? value:int32 globalDefault:bool?
  description:string? preemptionPolicy:string*?
)";

}  // namespace gso::sim
