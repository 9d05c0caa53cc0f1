// The types of the core group.
// Facts of the Kubernetes API v1.36 (k8s.io/api and apimachinery: names, types, omitempty, merge keys; OpenAPI: list
// types and keys). One type a line: NAME FIELD:TYPE…, continued on indented lines. After a type: * pointer, ?
// omitempty, ~ omitzero, + required, @k1,k2 list of type map with its keys, @= list of type set, %key strategic merge
// by that key
// (% alone: merged as a set), & retainKeys, ! atomic (after the name: wherever the type is used).
#include "tests/sim/apiserver/builtin_types.h"

namespace gso::sim {

const char* const kCoreTypes = R"(
core.AWSElasticBlockStoreVolumeSource volumeID:string+ fsType:string? partition:int32? readOnly:bool?
core.Affinity nodeAffinity:core.NodeAffinity*? podAffinity:core.PodAffinity*? podAntiAffinity:core.PodAntiAffinity*?
core.AppArmorProfile type:string+ localhostProfile:string*?
core.AttachedVolume name:string+ devicePath:string+
core.AzureDiskVolumeSource diskName:string+ diskURI:string+ cachingMode:string*? fsType:string*? readOnly:bool*?
  kind:string*?
core.AzureFileVolumeSource secretName:string+ shareName:string+ readOnly:bool?
core.Binding kind:string? apiVersion:string? metadata:meta.ObjectMeta? target:core.ObjectReference!+
core.CSIVolumeSource driver:string+ readOnly:bool*? fsType:string*? volumeAttributes:{}string?
  nodePublishSecretRef:core.LocalObjectReference*?!
core.Capabilities add:[]string? drop:[]string?
core.CephFSVolumeSource monitors:[]string+ path:string? user:string? secretFile:string?
  secretRef:core.LocalObjectReference*?! readOnly:bool?
core.CinderVolumeSource volumeID:string+ fsType:string? readOnly:bool? secretRef:core.LocalObjectReference*?!
core.ClientIPConfig timeoutSeconds:int32*?
core.ClusterTrustBundleProjection name:string*? signerName:string*? labelSelector:meta.LabelSelector*?!
  optional:bool*? path:string+
core.ConfigMap kind:string? apiVersion:string? metadata:meta.ObjectMeta? immutable:bool*? data:{}string?
  binaryData:{}bytes?
core.ConfigMapEnvSource name:string? optional:bool*?
core.ConfigMapKeySelector! name:string? key:string+ optional:bool*?
core.ConfigMapNodeConfigSource namespace:string+ name:string+ uid:string? resourceVersion:string?
  kubeletConfigKey:string+
core.ConfigMapProjection name:string? items:[]core.KeyToPath? optional:bool*?
core.ConfigMapVolumeSource name:string? items:[]core.KeyToPath? defaultMode:int32*? optional:bool*?
core.Container name:string+ image:string? command:[]string? args:[]string? workingDir:string?
  ports:[]core.ContainerPort?@containerPort,protocol%containerPort envFrom:[]core.EnvFromSource?
  env:[]core.EnvVar?@name%name resources:core.ResourceRequirements? resizePolicy:[]core.ContainerResizePolicy?
  restartPolicy:string*? restartPolicyRules:[]core.ContainerRestartRule?
  volumeMounts:[]core.VolumeMount?@mountPath%mountPath volumeDevices:[]core.VolumeDevice?@devicePath%devicePath
  livenessProbe:core.Probe*? readinessProbe:core.Probe*? startupProbe:core.Probe*? lifecycle:core.Lifecycle*?
  terminationMessagePath:string? terminationMessagePolicy:string? imagePullPolicy:string?
  securityContext:core.SecurityContext*? stdin:bool? stdinOnce:bool? tty:bool?
core.ContainerExtendedResourceRequest containerName:string+ resourceName:string+ requestName:string+
core.ContainerImage names:[]string sizeBytes:int64?
core.ContainerPort name:string? hostPort:int32? containerPort:int32+ protocol:string? hostIP:string?
core.ContainerResizePolicy resourceName:string+ restartPolicy:string+
core.ContainerRestartRule action:string?+ exitCodes:core.ContainerRestartRuleOnExitCodes*?
core.ContainerRestartRuleOnExitCodes operator:string?+ values:[]int32?@=
core.ContainerState waiting:core.ContainerStateWaiting*? running:core.ContainerStateRunning*?
  terminated:core.ContainerStateTerminated*?
core.ContainerStateRunning startedAt:time?
core.ContainerStateTerminated exitCode:int32+ signal:int32? reason:string? message:string? startedAt:time?
  finishedAt:time? containerID:string?
core.ContainerStateWaiting reason:string? message:string?
core.ContainerStatus name:string+ state:core.ContainerState? lastState:core.ContainerState? ready:bool+
  restartCount:int32+ image:string+ imageID:string+ containerID:string? started:bool*?
  allocatedResources:{}quantity? resources:core.ResourceRequirements*?
  volumeMounts:[]core.VolumeMountStatus?@mountPath%mountPath user:core.ContainerUser*?
  allocatedResourcesStatus:[]core.ResourceStatus?@name%name stopSignal:string*?
core.ContainerUser linux:core.LinuxContainerUser*?
core.DaemonEndpoint Port:int32+
core.DownwardAPIProjection items:[]core.DownwardAPIVolumeFile?
core.DownwardAPIVolumeFile path:string+ fieldRef:core.ObjectFieldSelector*?!
  resourceFieldRef:core.ResourceFieldSelector*?! mode:int32*?
core.DownwardAPIVolumeSource items:[]core.DownwardAPIVolumeFile? defaultMode:int32*?
core.EmptyDirVolumeSource medium:string? sizeLimit:quantity*?
core.EnvFromSource prefix:string? configMapRef:core.ConfigMapEnvSource*? secretRef:core.SecretEnvSource*?
core.EnvVar name:string+ value:string? valueFrom:core.EnvVarSource*?
core.EnvVarSource fieldRef:core.ObjectFieldSelector*?! resourceFieldRef:core.ResourceFieldSelector*?!
  configMapKeyRef:core.ConfigMapKeySelector*?! secretKeyRef:core.SecretKeySelector*?!
  fileKeyRef:core.FileKeySelector*?!
core.EphemeralContainer name:string+ image:string? command:[]string? args:[]string? workingDir:string?
  ports:[]core.ContainerPort?@containerPort,protocol%containerPort envFrom:[]core.EnvFromSource?
  env:[]core.EnvVar?@name%name resources:core.ResourceRequirements? resizePolicy:[]core.ContainerResizePolicy?
  restartPolicy:string*? restartPolicyRules:[]core.ContainerRestartRule?
  volumeMounts:[]core.VolumeMount?@mountPath%mountPath volumeDevices:[]core.VolumeDevice?@devicePath%devicePath
  livenessProbe:core.Probe*? readinessProbe:core.Probe*? startupProbe:core.Probe*? lifecycle:core.Lifecycle*?
  terminationMessagePath:string? terminationMessagePolicy:string? imagePullPolicy:string?
  securityContext:core.SecurityContext*? stdin:bool? stdinOnce:bool? tty:bool? targetContainerName:string?
core.EphemeralVolumeSource volumeClaimTemplate:core.PersistentVolumeClaimTemplate*?
core.Event kind:string? apiVersion:string? metadata:meta.ObjectMeta+ involvedObject:core.ObjectReference!+
  reason:string? message:string? source:core.EventSource? firstTimestamp:time? lastTimestamp:time? count:int32?
  type:string? eventTime:micro? series:core.EventSeries*? action:string? related:core.ObjectReference*?!
  reportingComponent:string reportingInstance:string
core.EventSeries count:int32? lastObservedTime:micro?
core.EventSource component:string? host:string?
core.ExecAction command:[]string?
core.FCVolumeSource targetWWNs:[]string? lun:int32*? fsType:string? readOnly:bool? wwids:[]string?
core.FileKeySelector! volumeName:string+ path:string+ key:string+ optional:bool*?
core.FlexVolumeSource driver:string+ fsType:string? secretRef:core.LocalObjectReference*?! readOnly:bool?
  options:{}string?
core.FlockerVolumeSource datasetName:string? datasetUUID:string?
core.GCEPersistentDiskVolumeSource pdName:string+ fsType:string? partition:int32? readOnly:bool?
core.GRPCAction port:int32+ service:string*
core.GitRepoVolumeSource repository:string+ revision:string? directory:string?
core.GlusterfsVolumeSource endpoints:string+ path:string+ readOnly:bool?
core.HTTPGetAction path:string? port:intorstring+ host:string? scheme:string? httpHeaders:[]core.HTTPHeader?
core.HTTPHeader name:string+ value:string+
core.HostAlias ip:string+ hostnames:[]string?
core.HostIP ip:string+
core.HostPathVolumeSource path:string+ type:string*?
core.ISCSIVolumeSource targetPortal:string+ iqn:string+ lun:int32+ iscsiInterface:string? fsType:string?
  readOnly:bool? portals:[]string? chapAuthDiscovery:bool? chapAuthSession:bool?
  secretRef:core.LocalObjectReference*?! initiatorName:string*?
core.ImageVolumeSource reference:string? pullPolicy:string?
core.ImageVolumeStatus imageRef:string?+
core.KeyToPath key:string+ path:string+ mode:int32*?
core.Lifecycle postStart:core.LifecycleHandler*? preStop:core.LifecycleHandler*? stopSignal:string*?
core.LifecycleHandler exec:core.ExecAction*? httpGet:core.HTTPGetAction*? tcpSocket:core.TCPSocketAction*?
  sleep:core.SleepAction*?
core.LinuxContainerUser uid:int64+ gid:int64+ supplementalGroups:[]int64?
core.LoadBalancerIngress ip:string? hostname:string? ipMode:string*? ports:[]core.PortStatus?
core.LoadBalancerStatus ingress:[]core.LoadBalancerIngress?
core.LocalObjectReference! name:string?
core.NFSVolumeSource server:string+ path:string+ readOnly:bool?
core.Namespace kind:string? apiVersion:string? metadata:meta.ObjectMeta? spec:core.NamespaceSpec?
  status:core.NamespaceStatus?
core.NamespaceCondition type:string+ status:string+ lastTransitionTime:time? reason:string? message:string?
core.NamespaceSpec finalizers:[]string?
core.NamespaceStatus phase:string? conditions:[]core.NamespaceCondition?@type%type
core.Node kind:string? apiVersion:string? metadata:meta.ObjectMeta? spec:core.NodeSpec? status:core.NodeStatus?
core.NodeAddress type:string+ address:string+
core.NodeAffinity requiredDuringSchedulingIgnoredDuringExecution:core.NodeSelector*?!
  preferredDuringSchedulingIgnoredDuringExecution:[]core.PreferredSchedulingTerm?
core.NodeAllocatableResourceClaimStatus resourceClaimName:string+ containers:[]string?@= resources:{}quantity+
core.NodeCondition type:string+ status:string+ lastHeartbeatTime:time? lastTransitionTime:time? reason:string?
  message:string?
core.NodeConfigSource configMap:core.ConfigMapNodeConfigSource*?
core.NodeConfigStatus assigned:core.NodeConfigSource*? active:core.NodeConfigSource*?
  lastKnownGood:core.NodeConfigSource*? error:string?
core.NodeDaemonEndpoints kubeletEndpoint:core.DaemonEndpoint?
core.NodeFeatures supplementalGroupsPolicy:bool*?
core.NodeRuntimeHandler name:string features:core.NodeRuntimeHandlerFeatures*?
core.NodeRuntimeHandlerFeatures recursiveReadOnlyMounts:bool*? userNamespaces:bool*?
core.NodeSelector! nodeSelectorTerms:[]core.NodeSelectorTerm+
core.NodeSelectorRequirement key:string+ operator:string+ values:[]string?
core.NodeSelectorTerm! matchExpressions:[]core.NodeSelectorRequirement? matchFields:[]core.NodeSelectorRequirement?
core.NodeSpec podCIDR:string? podCIDRs:[]string?@=% providerID:string? unschedulable:bool? taints:[]core.Taint?
  configSource:core.NodeConfigSource*? externalID:string?
core.NodeStatus capacity:{}quantity? allocatable:{}quantity? phase:string?
  conditions:[]core.NodeCondition?@type%type addresses:[]core.NodeAddress?@type%type
  daemonEndpoints:core.NodeDaemonEndpoints? nodeInfo:core.NodeSystemInfo? images:[]core.ContainerImage?
  volumesInUse:[]string? volumesAttached:[]core.AttachedVolume? config:core.NodeConfigStatus*?
  runtimeHandlers:[]core.NodeRuntimeHandler? features:core.NodeFeatures*? declaredFeatures:[]string?
core.NodeSwapStatus capacity:int64*?
core.NodeSystemInfo machineID:string+ systemUUID:string+ bootID:string+ kernelVersion:string+ osImage:string+
  containerRuntimeVersion:string+ kubeletVersion:string+ kubeProxyVersion:string+ operatingSystem:string+
  architecture:string+ swap:core.NodeSwapStatus*?
core.ObjectFieldSelector! apiVersion:string? fieldPath:string+
core.ObjectReference! kind:string? namespace:string? name:string? uid:string? apiVersion:string?
  resourceVersion:string? fieldPath:string?
core.PersistentVolumeClaimSpec accessModes:[]string? selector:meta.LabelSelector*?!
  resources:core.VolumeResourceRequirements? volumeName:string? storageClassName:string*? volumeMode:string*?
  dataSource:core.TypedLocalObjectReference*?! dataSourceRef:core.TypedObjectReference*?
  volumeAttributesClassName:string*?
core.PersistentVolumeClaimTemplate metadata:meta.ObjectMeta? spec:core.PersistentVolumeClaimSpec+
core.PersistentVolumeClaimVolumeSource claimName:string+ readOnly:bool?
core.PhotonPersistentDiskVolumeSource pdID:string+ fsType:string?
core.Pod kind:string? apiVersion:string? metadata:meta.ObjectMeta? spec:core.PodSpec? status:core.PodStatus?
core.PodAffinity requiredDuringSchedulingIgnoredDuringExecution:[]core.PodAffinityTerm?
  preferredDuringSchedulingIgnoredDuringExecution:[]core.WeightedPodAffinityTerm?
core.PodAffinityTerm labelSelector:meta.LabelSelector*?! namespaces:[]string? topologyKey:string+
  namespaceSelector:meta.LabelSelector*?! matchLabelKeys:[]string? mismatchLabelKeys:[]string?
core.PodAntiAffinity requiredDuringSchedulingIgnoredDuringExecution:[]core.PodAffinityTerm?
  preferredDuringSchedulingIgnoredDuringExecution:[]core.WeightedPodAffinityTerm?
core.PodCertificateProjection signerName:string?+ keyType:string?+ maxExpirationSeconds:int32*?
  credentialBundlePath:string? keyPath:string? certificateChainPath:string? userAnnotations:{}string?
core.PodCondition type:string+ observedGeneration:int64? status:string+ lastProbeTime:time? lastTransitionTime:time?
  reason:string? message:string?
core.PodDNSConfig nameservers:[]string? searches:[]string? options:[]core.PodDNSConfigOption?
core.PodDNSConfigOption name:string? value:string*?
core.PodExtendedResourceClaimStatus requestMappings:[]core.ContainerExtendedResourceRequest+
  resourceClaimName:string+
core.PodIP ip:string+
core.PodOS name:string+
core.PodReadinessGate conditionType:string+
core.PodResourceClaim name:string+ resourceClaimName:string*? resourceClaimTemplateName:string*?
core.PodResourceClaimStatus name:string+ resourceClaimName:string*?
core.PodSchedulingGate name:string+
core.PodSchedulingGroup podGroupName:string*?
core.PodSecurityContext seLinuxOptions:core.SELinuxOptions*? windowsOptions:core.WindowsSecurityContextOptions*?
  runAsUser:int64*? runAsGroup:int64*? runAsNonRoot:bool*? supplementalGroups:[]int64?
  supplementalGroupsPolicy:string*? fsGroup:int64*? sysctls:[]core.Sysctl? fsGroupChangePolicy:string*?
  seccompProfile:core.SeccompProfile*? appArmorProfile:core.AppArmorProfile*? seLinuxChangePolicy:string*?
core.PodSpec volumes:[]core.Volume?@name%name& initContainers:[]core.Container?@name%name
  containers:[]core.Container@name%name+ ephemeralContainers:[]core.EphemeralContainer?@name%name
  restartPolicy:string? terminationGracePeriodSeconds:int64*? activeDeadlineSeconds:int64*? dnsPolicy:string?
  nodeSelector:{}string?! serviceAccountName:string? serviceAccount:string? automountServiceAccountToken:bool*?
  nodeName:string? hostNetwork:bool? hostPID:bool? hostIPC:bool? shareProcessNamespace:bool*?
  securityContext:core.PodSecurityContext*? imagePullSecrets:[]core.LocalObjectReference?@name%name hostname:string?
  subdomain:string? affinity:core.Affinity*? schedulerName:string? tolerations:[]core.Toleration?
  hostAliases:[]core.HostAlias?@ip%ip priorityClassName:string? priority:int32*? dnsConfig:core.PodDNSConfig*?
  readinessGates:[]core.PodReadinessGate? runtimeClassName:string*? enableServiceLinks:bool*?
  preemptionPolicy:string*? overhead:{}quantity?
  topologySpreadConstraints:[]core.TopologySpreadConstraint?@topologyKey,whenUnsatisfiable%topologyKey
  setHostnameAsFQDN:bool*? os:core.PodOS*? hostUsers:bool*? schedulingGates:[]core.PodSchedulingGate?@name%name
  resourceClaims:[]core.PodResourceClaim?@name%name& resources:core.ResourceRequirements*? hostnameOverride:string*?
  schedulingGroup:core.PodSchedulingGroup*?
core.PodStatus observedGeneration:int64? phase:string? conditions:[]core.PodCondition?@type%type message:string?
  reason:string? nominatedNodeName:string? hostIP:string? hostIPs:[]core.HostIP?%ip podIP:string?
  podIPs:[]core.PodIP?@ip%ip startTime:time*? initContainerStatuses:[]core.ContainerStatus?
  containerStatuses:[]core.ContainerStatus? qosClass:string? ephemeralContainerStatuses:[]core.ContainerStatus?
  resize:string? resourceClaimStatuses:[]core.PodResourceClaimStatus?@name%name&
  extendedResourceClaimStatus:core.PodExtendedResourceClaimStatus*? allocatedResources:{}quantity?
  resources:core.ResourceRequirements*?
  nodeAllocatableResourceClaimStatuses:[]core.NodeAllocatableResourceClaimStatus?
core.PodTemplateSpec metadata:meta.ObjectMeta? spec:core.PodSpec?
core.PortStatus port:int32+ protocol:string+ error:string*?
core.PortworxVolumeSource volumeID:string+ fsType:string? readOnly:bool?
core.PreferredSchedulingTerm weight:int32+ preference:core.NodeSelectorTerm!+
core.Probe exec:core.ExecAction*? httpGet:core.HTTPGetAction*? tcpSocket:core.TCPSocketAction*?
  grpc:core.GRPCAction*? initialDelaySeconds:int32? timeoutSeconds:int32? periodSeconds:int32?
  successThreshold:int32? failureThreshold:int32? terminationGracePeriodSeconds:int64*?
core.ProjectedVolumeSource sources:[]core.VolumeProjection defaultMode:int32*?
core.QuobyteVolumeSource registry:string+ volume:string+ readOnly:bool? user:string? group:string? tenant:string?
core.RBDVolumeSource monitors:[]string+ image:string+ fsType:string? pool:string? user:string? keyring:string?
  secretRef:core.LocalObjectReference*?! readOnly:bool?
core.ResourceClaim name:string+ request:string?
core.ResourceFieldSelector! containerName:string? resource:string+ divisor:quantity?
core.ResourceHealth resourceID:string+ health:string? message:string*?
core.ResourceRequirements limits:{}quantity? requests:{}quantity? claims:[]core.ResourceClaim?@name
core.ResourceStatus name:string+ resources:[]core.ResourceHealth?@resourceID
core.SELinuxOptions user:string? role:string? type:string? level:string?
core.ScaleIOVolumeSource gateway:string+ system:string+ secretRef:core.LocalObjectReference*!+ sslEnabled:bool?
  protectionDomain:string? storagePool:string? storageMode:string? volumeName:string? fsType:string? readOnly:bool?
core.SeccompProfile type:string+ localhostProfile:string*?
core.Secret kind:string? apiVersion:string? metadata:meta.ObjectMeta? immutable:bool*? data:{}bytes?
  stringData:{}string? type:string?
core.SecretEnvSource name:string? optional:bool*?
core.SecretKeySelector! name:string? key:string+ optional:bool*?
core.SecretProjection name:string? items:[]core.KeyToPath? optional:bool*?
core.SecretVolumeSource secretName:string? items:[]core.KeyToPath? defaultMode:int32*? optional:bool*?
core.SecurityContext capabilities:core.Capabilities*? privileged:bool*? seLinuxOptions:core.SELinuxOptions*?
  windowsOptions:core.WindowsSecurityContextOptions*? runAsUser:int64*? runAsGroup:int64*? runAsNonRoot:bool*?
  readOnlyRootFilesystem:bool*? allowPrivilegeEscalation:bool*? procMount:string*?
  seccompProfile:core.SeccompProfile*? appArmorProfile:core.AppArmorProfile*?
core.Service kind:string? apiVersion:string? metadata:meta.ObjectMeta? spec:core.ServiceSpec?
  status:core.ServiceStatus?
core.ServiceAccount kind:string? apiVersion:string? metadata:meta.ObjectMeta?
  secrets:[]core.ObjectReference?@name%name imagePullSecrets:[]core.LocalObjectReference?
  automountServiceAccountToken:bool*?
core.ServiceAccountTokenProjection audience:string? expirationSeconds:int64*? path:string+
core.ServicePort name:string? protocol:string? appProtocol:string*? port:int32+ targetPort:intorstring?
  nodePort:int32?
core.ServiceSpec ports:[]core.ServicePort?@port,protocol%port selector:{}string?! clusterIP:string?
  clusterIPs:[]string? type:string? externalIPs:[]string? sessionAffinity:string? loadBalancerIP:string?
  loadBalancerSourceRanges:[]string? externalName:string? externalTrafficPolicy:string? healthCheckNodePort:int32?
  publishNotReadyAddresses:bool? sessionAffinityConfig:core.SessionAffinityConfig*? ipFamilies:[]string?
  ipFamilyPolicy:string*? allocateLoadBalancerNodePorts:bool*? loadBalancerClass:string*?
  internalTrafficPolicy:string*? trafficDistribution:string*?
core.ServiceStatus loadBalancer:core.LoadBalancerStatus? conditions:[]meta.Condition?@type%type
core.SessionAffinityConfig clientIP:core.ClientIPConfig*?
core.SleepAction seconds:int64+
core.StorageOSVolumeSource volumeName:string? volumeNamespace:string? fsType:string? readOnly:bool?
  secretRef:core.LocalObjectReference*?!
core.Sysctl name:string+ value:string+
core.TCPSocketAction port:intorstring+ host:string?
core.Taint key:string+ value:string? effect:string+ timeAdded:time*?
core.Toleration key:string? operator:string? value:string? effect:string? tolerationSeconds:int64*?
core.TopologySpreadConstraint maxSkew:int32+ topologyKey:string+ whenUnsatisfiable:string+
  labelSelector:meta.LabelSelector*?! minDomains:int32*? nodeAffinityPolicy:string*? nodeTaintsPolicy:string*?
  matchLabelKeys:[]string?
core.TypedLocalObjectReference! apiGroup:string* kind:string+ name:string+
core.TypedObjectReference apiGroup:string* kind:string+ name:string+ namespace:string*?
core.Volume name:string+ hostPath:core.HostPathVolumeSource*? emptyDir:core.EmptyDirVolumeSource*?
  gcePersistentDisk:core.GCEPersistentDiskVolumeSource*?
  awsElasticBlockStore:core.AWSElasticBlockStoreVolumeSource*? gitRepo:core.GitRepoVolumeSource*?
  secret:core.SecretVolumeSource*? nfs:core.NFSVolumeSource*? iscsi:core.ISCSIVolumeSource*?
  glusterfs:core.GlusterfsVolumeSource*? persistentVolumeClaim:core.PersistentVolumeClaimVolumeSource*?
  rbd:core.RBDVolumeSource*? flexVolume:core.FlexVolumeSource*? cinder:core.CinderVolumeSource*?
  cephfs:core.CephFSVolumeSource*? flocker:core.FlockerVolumeSource*? downwardAPI:core.DownwardAPIVolumeSource*?
  fc:core.FCVolumeSource*? azureFile:core.AzureFileVolumeSource*? configMap:core.ConfigMapVolumeSource*?
  vsphereVolume:core.VsphereVirtualDiskVolumeSource*? quobyte:core.QuobyteVolumeSource*?
  azureDisk:core.AzureDiskVolumeSource*? photonPersistentDisk:core.PhotonPersistentDiskVolumeSource*?
  projected:core.ProjectedVolumeSource*? portworxVolume:core.PortworxVolumeSource*?
  scaleIO:core.ScaleIOVolumeSource*? storageos:core.StorageOSVolumeSource*? csi:core.CSIVolumeSource*?
  ephemeral:core.EphemeralVolumeSource*? image:core.ImageVolumeSource*?
core.VolumeDevice name:string+ devicePath:string+
core.VolumeMount name:string+ readOnly:bool? recursiveReadOnly:string*? mountPath:string+ subPath:string?
  mountPropagation:string*? subPathExpr:string?
core.VolumeMountStatus name:string+ mountPath:string+ readOnly:bool? recursiveReadOnly:string*?
  volumeStatus:core.VolumeStatus*?
core.VolumeProjection secret:core.SecretProjection*? downwardAPI:core.DownwardAPIProjection*?
  configMap:core.ConfigMapProjection*? serviceAccountToken:core.ServiceAccountTokenProjection*?
  clusterTrustBundle:core.ClusterTrustBundleProjection*? podCertificate:core.PodCertificateProjection*?
core.VolumeResourceRequirements limits:{}quantity? requests:{}quantity?
core.VolumeStatus image:core.ImageVolumeStatus*?
core.VsphereVirtualDiskVolumeSource volumePath:string+ fsType:string? storagePolicyName:string?
  storagePolicyID:string?
core.WeightedPodAffinityTerm weight:int32+ podAffinityTerm:core.PodAffinityTerm+
core.WindowsSecurityContextOptions gmsaCredentialSpecName:string*? gmsaCredentialSpec:string*?
  runAsUserName:string*? hostProcess:bool*?
)";

}  // namespace gso::sim
