// Protobuf field numbers of the built-in types.
// Facts of the Kubernetes API v1.36 (generated.proto of k8s.io/api, apimachinery and apiextensions-apiserver). One type
// a line, continued on indented lines: FIELD=NUMBER; NUMBER(…) is a message whose fields JSON has inline.
#include "tests/sim/apiserver/builtin_types.h"

namespace gso::sim {

const char* const kFieldNumbers = R"(
core.AWSElasticBlockStoreVolumeSource volumeID=1 fsType=2 partition=3 readOnly=4
core.Affinity nodeAffinity=1 podAffinity=2 podAntiAffinity=3
core.AppArmorProfile type=1 localhostProfile=2
core.AttachedVolume name=1 devicePath=2
core.AzureDiskVolumeSource diskName=1 diskURI=2 cachingMode=3 fsType=4 readOnly=5 kind=6
core.AzureFileVolumeSource secretName=1 shareName=2 readOnly=3
core.Binding metadata=1 target=2
core.CSIVolumeSource driver=1 readOnly=2 fsType=3 volumeAttributes=4 nodePublishSecretRef=5
core.Capabilities add=1 drop=2
core.CephFSVolumeSource monitors=1 path=2 user=3 secretFile=4 secretRef=5 readOnly=6
core.CinderVolumeSource volumeID=1 fsType=2 readOnly=3 secretRef=4
core.ClientIPConfig timeoutSeconds=1
core.ClusterTrustBundleProjection name=1 signerName=2 labelSelector=3 optional=5 path=4
core.ConfigMap metadata=1 immutable=4 data=2 binaryData=3
core.ConfigMapEnvSource 1(name=1) optional=2
core.ConfigMapKeySelector 1(name=1) key=2 optional=3
core.ConfigMapNodeConfigSource namespace=1 name=2 uid=3 resourceVersion=4 kubeletConfigKey=5
core.ConfigMapProjection 1(name=1) items=2 optional=4
core.ConfigMapVolumeSource 1(name=1) items=2 defaultMode=3 optional=4
core.Container name=1 image=2 command=3 args=4 workingDir=5 ports=6 envFrom=19 env=7 resources=8 resizePolicy=23
  restartPolicy=24 restartPolicyRules=25 volumeMounts=9 volumeDevices=21 livenessProbe=10 readinessProbe=11
  startupProbe=22 lifecycle=12 terminationMessagePath=13 terminationMessagePolicy=20 imagePullPolicy=14
  securityContext=15 stdin=16 stdinOnce=17 tty=18
core.ContainerExtendedResourceRequest containerName=1 resourceName=2 requestName=3
core.ContainerImage names=1 sizeBytes=2
core.ContainerPort name=1 hostPort=2 containerPort=3 protocol=4 hostIP=5
core.ContainerResizePolicy resourceName=1 restartPolicy=2
core.ContainerRestartRule action=1 exitCodes=2
core.ContainerRestartRuleOnExitCodes operator=1 values=2
core.ContainerState waiting=1 running=2 terminated=3
core.ContainerStateRunning startedAt=1
core.ContainerStateTerminated exitCode=1 signal=2 reason=3 message=4 startedAt=5 finishedAt=6 containerID=7
core.ContainerStateWaiting reason=1 message=2
core.ContainerStatus name=1 state=2 lastState=3 ready=4 restartCount=5 image=6 imageID=7 containerID=8 started=9
  allocatedResources=10 resources=11 volumeMounts=12 user=13 allocatedResourcesStatus=14 stopSignal=15
core.ContainerUser linux=1
core.DaemonEndpoint Port=1
core.DownwardAPIProjection items=1
core.DownwardAPIVolumeFile path=1 fieldRef=2 resourceFieldRef=3 mode=4
core.DownwardAPIVolumeSource items=1 defaultMode=2
core.EmptyDirVolumeSource medium=1 sizeLimit=2
core.EnvFromSource prefix=1 configMapRef=2 secretRef=3
core.EnvVar name=1 value=2 valueFrom=3
core.EnvVarSource fieldRef=1 resourceFieldRef=2 configMapKeyRef=3 secretKeyRef=4 fileKeyRef=5
core.EphemeralContainer 1(name=1 image=2 command=3 args=4 workingDir=5 ports=6 envFrom=19 env=7 resources=8
  resizePolicy=23 restartPolicy=24 restartPolicyRules=25 volumeMounts=9 volumeDevices=21 livenessProbe=10
  readinessProbe=11 startupProbe=22 lifecycle=12 terminationMessagePath=13 terminationMessagePolicy=20
  imagePullPolicy=14 securityContext=15 stdin=16 stdinOnce=17 tty=18) targetContainerName=2
core.EphemeralVolumeSource volumeClaimTemplate=1
core.Event metadata=1 involvedObject=2 reason=3 message=4 source=5 firstTimestamp=6 lastTimestamp=7 count=8 type=9
  eventTime=10 series=11 action=12 related=13 reportingComponent=14 reportingInstance=15
core.EventSeries count=1 lastObservedTime=2
core.EventSource component=1 host=2
core.ExecAction command=1
core.FCVolumeSource targetWWNs=1 lun=2 fsType=3 readOnly=4 wwids=5
core.FileKeySelector volumeName=1 path=2 key=3 optional=4
core.FlexVolumeSource driver=1 fsType=2 secretRef=3 readOnly=4 options=5
core.FlockerVolumeSource datasetName=1 datasetUUID=2
core.GCEPersistentDiskVolumeSource pdName=1 fsType=2 partition=3 readOnly=4
core.GRPCAction port=1 service=2
core.GitRepoVolumeSource repository=1 revision=2 directory=3
core.GlusterfsVolumeSource endpoints=1 path=2 readOnly=3
core.HTTPGetAction path=1 port=2 host=3 scheme=4 httpHeaders=5
core.HTTPHeader name=1 value=2
core.HostAlias ip=1 hostnames=2
core.HostIP ip=1
core.HostPathVolumeSource path=1 type=2
core.ISCSIVolumeSource targetPortal=1 iqn=2 lun=3 iscsiInterface=4 fsType=5 readOnly=6 portals=7 chapAuthDiscovery=8
  chapAuthSession=11 secretRef=10 initiatorName=12
core.ImageVolumeSource reference=1 pullPolicy=2
core.ImageVolumeStatus imageRef=1
core.KeyToPath key=1 path=2 mode=3
core.Lifecycle postStart=1 preStop=2 stopSignal=3
core.LifecycleHandler exec=1 httpGet=2 tcpSocket=3 sleep=4
core.LinuxContainerUser uid=1 gid=2 supplementalGroups=3
core.LoadBalancerIngress ip=1 hostname=2 ipMode=3 ports=4
core.LoadBalancerStatus ingress=1
core.LocalObjectReference name=1
core.NFSVolumeSource server=1 path=2 readOnly=3
core.Namespace metadata=1 spec=2 status=3
core.NamespaceCondition type=1 status=2 lastTransitionTime=4 reason=5 message=6
core.NamespaceSpec finalizers=1
core.NamespaceStatus phase=1 conditions=2
core.Node metadata=1 spec=2 status=3
core.NodeAddress type=1 address=2
core.NodeAffinity requiredDuringSchedulingIgnoredDuringExecution=1 preferredDuringSchedulingIgnoredDuringExecution=2
core.NodeAllocatableResourceClaimStatus resourceClaimName=1 containers=2 resources=3
core.NodeCondition type=1 status=2 lastHeartbeatTime=3 lastTransitionTime=4 reason=5 message=6
core.NodeConfigSource configMap=2
core.NodeConfigStatus assigned=1 active=2 lastKnownGood=3 error=4
core.NodeDaemonEndpoints kubeletEndpoint=1
core.NodeFeatures supplementalGroupsPolicy=1
core.NodeRuntimeHandler name=1 features=2
core.NodeRuntimeHandlerFeatures recursiveReadOnlyMounts=1 userNamespaces=2
core.NodeSelector nodeSelectorTerms=1
core.NodeSelectorRequirement key=1 operator=2 values=3
core.NodeSelectorTerm matchExpressions=1 matchFields=2
core.NodeSpec podCIDR=1 podCIDRs=7 providerID=3 unschedulable=4 taints=5 configSource=6 externalID=2
core.NodeStatus capacity=1 allocatable=2 phase=3 conditions=4 addresses=5 daemonEndpoints=6 nodeInfo=7 images=8
  volumesInUse=9 volumesAttached=10 config=11 runtimeHandlers=12 features=13 declaredFeatures=14
core.NodeSwapStatus capacity=1
core.NodeSystemInfo machineID=1 systemUUID=2 bootID=3 kernelVersion=4 osImage=5 containerRuntimeVersion=6
  kubeletVersion=7 kubeProxyVersion=8 operatingSystem=9 architecture=10 swap=11
core.ObjectFieldSelector apiVersion=1 fieldPath=2
core.ObjectReference kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6 fieldPath=7
core.PersistentVolumeClaimSpec accessModes=1 selector=4 resources=2 volumeName=3 storageClassName=5 volumeMode=6
  dataSource=7 dataSourceRef=8 volumeAttributesClassName=9
core.PersistentVolumeClaimTemplate metadata=1 spec=2
core.PersistentVolumeClaimVolumeSource claimName=1 readOnly=2
core.PhotonPersistentDiskVolumeSource pdID=1 fsType=2
core.Pod metadata=1 spec=2 status=3
core.PodAffinity requiredDuringSchedulingIgnoredDuringExecution=1 preferredDuringSchedulingIgnoredDuringExecution=2
core.PodAffinityTerm labelSelector=1 namespaces=2 topologyKey=3 namespaceSelector=4 matchLabelKeys=5
  mismatchLabelKeys=6
core.PodAntiAffinity requiredDuringSchedulingIgnoredDuringExecution=1
  preferredDuringSchedulingIgnoredDuringExecution=2
core.PodCertificateProjection signerName=1 keyType=2 maxExpirationSeconds=3 credentialBundlePath=4 keyPath=5
  certificateChainPath=6 userAnnotations=7
core.PodCondition type=1 observedGeneration=7 status=2 lastProbeTime=3 lastTransitionTime=4 reason=5 message=6
core.PodDNSConfig nameservers=1 searches=2 options=3
core.PodDNSConfigOption name=1 value=2
core.PodExtendedResourceClaimStatus requestMappings=1 resourceClaimName=2
core.PodIP ip=1
core.PodOS name=1
core.PodReadinessGate conditionType=1
core.PodResourceClaim name=1 resourceClaimName=3 resourceClaimTemplateName=4
core.PodResourceClaimStatus name=1 resourceClaimName=2
core.PodSchedulingGate name=1
core.PodSchedulingGroup podGroupName=1
core.PodSecurityContext seLinuxOptions=1 windowsOptions=8 runAsUser=2 runAsGroup=6 runAsNonRoot=3 supplementalGroups=4
  supplementalGroupsPolicy=12 fsGroup=5 sysctls=7 fsGroupChangePolicy=9 seccompProfile=10 appArmorProfile=11
  seLinuxChangePolicy=13
core.PodSpec volumes=1 initContainers=20 containers=2 ephemeralContainers=34 restartPolicy=3
  terminationGracePeriodSeconds=4 activeDeadlineSeconds=5 dnsPolicy=6 nodeSelector=7 serviceAccountName=8
  serviceAccount=9 automountServiceAccountToken=21 nodeName=10 hostNetwork=11 hostPID=12 hostIPC=13
  shareProcessNamespace=27 securityContext=14 imagePullSecrets=15 hostname=16 subdomain=17 affinity=18
  schedulerName=19 tolerations=22 hostAliases=23 priorityClassName=24 priority=25 dnsConfig=26 readinessGates=28
  runtimeClassName=29 enableServiceLinks=30 preemptionPolicy=31 overhead=32 topologySpreadConstraints=33
  setHostnameAsFQDN=35 os=36 hostUsers=37 schedulingGates=38 resourceClaims=39 resources=40 hostnameOverride=41
  schedulingGroup=43
core.PodStatus observedGeneration=17 phase=1 conditions=2 message=3 reason=4 nominatedNodeName=11 hostIP=5 hostIPs=16
  podIP=6 podIPs=12 startTime=7 initContainerStatuses=10 containerStatuses=8 qosClass=9 ephemeralContainerStatuses=13
  resize=14 resourceClaimStatuses=15 extendedResourceClaimStatus=18 allocatedResources=19 resources=20
  nodeAllocatableResourceClaimStatuses=21
core.PodTemplateSpec metadata=1 spec=2
core.PortStatus port=1 protocol=2 error=3
core.PortworxVolumeSource volumeID=1 fsType=2 readOnly=3
core.PreferredSchedulingTerm weight=1 preference=2
core.Probe 1(exec=1 httpGet=2 tcpSocket=3 grpc=4) initialDelaySeconds=2 timeoutSeconds=3 periodSeconds=4
  successThreshold=5 failureThreshold=6 terminationGracePeriodSeconds=7
core.ProjectedVolumeSource sources=1 defaultMode=2
core.QuobyteVolumeSource registry=1 volume=2 readOnly=3 user=4 group=5 tenant=6
core.RBDVolumeSource monitors=1 image=2 fsType=3 pool=4 user=5 keyring=6 secretRef=7 readOnly=8
core.ResourceClaim name=1 request=2
core.ResourceFieldSelector containerName=1 resource=2 divisor=3
core.ResourceHealth resourceID=1 health=2 message=6
core.ResourceRequirements limits=1 requests=2 claims=3
core.ResourceStatus name=1 resources=2
core.SELinuxOptions user=1 role=2 type=3 level=4
core.ScaleIOVolumeSource gateway=1 system=2 secretRef=3 sslEnabled=4 protectionDomain=5 storagePool=6 storageMode=7
  volumeName=8 fsType=9 readOnly=10
core.SeccompProfile type=1 localhostProfile=2
core.Secret metadata=1 immutable=5 data=2 stringData=4 type=3
core.SecretEnvSource 1(name=1) optional=2
core.SecretKeySelector 1(name=1) key=2 optional=3
core.SecretProjection 1(name=1) items=2 optional=4
core.SecretVolumeSource secretName=1 items=2 defaultMode=3 optional=4
core.SecurityContext capabilities=1 privileged=2 seLinuxOptions=3 windowsOptions=10 runAsUser=4 runAsGroup=8
  runAsNonRoot=5 readOnlyRootFilesystem=6 allowPrivilegeEscalation=7 procMount=9 seccompProfile=11 appArmorProfile=12
core.Service metadata=1 spec=2 status=3
core.ServiceAccount metadata=1 secrets=2 imagePullSecrets=3 automountServiceAccountToken=4
core.ServiceAccountTokenProjection audience=1 expirationSeconds=2 path=3
core.ServicePort name=1 protocol=2 appProtocol=6 port=3 targetPort=4 nodePort=5
core.ServiceSpec ports=1 selector=2 clusterIP=3 clusterIPs=18 type=4 externalIPs=5 sessionAffinity=7 loadBalancerIP=8
  loadBalancerSourceRanges=9 externalName=10 externalTrafficPolicy=11 healthCheckNodePort=12
  publishNotReadyAddresses=13 sessionAffinityConfig=14 ipFamilies=19 ipFamilyPolicy=17
  allocateLoadBalancerNodePorts=20 loadBalancerClass=21 internalTrafficPolicy=22 trafficDistribution=23
core.ServiceStatus loadBalancer=1 conditions=2
core.SessionAffinityConfig clientIP=1
core.SleepAction seconds=1
core.StorageOSVolumeSource volumeName=1 volumeNamespace=2 fsType=3 readOnly=4 secretRef=5
core.Sysctl name=1 value=2
core.TCPSocketAction port=1 host=2
core.Taint key=1 value=2 effect=3 timeAdded=4
core.Toleration key=1 operator=2 value=3 effect=4 tolerationSeconds=5
core.TopologySpreadConstraint maxSkew=1 topologyKey=2 whenUnsatisfiable=3 labelSelector=4 minDomains=5
  nodeAffinityPolicy=6 nodeTaintsPolicy=7 matchLabelKeys=8
core.TypedLocalObjectReference apiGroup=1 kind=2 name=3
core.TypedObjectReference apiGroup=1 kind=2 name=3 namespace=4
core.Volume name=1 2(hostPath=1 emptyDir=2 gcePersistentDisk=3 awsElasticBlockStore=4 gitRepo=5 secret=6 nfs=7 iscsi=8
  glusterfs=9 persistentVolumeClaim=10 rbd=11 flexVolume=12 cinder=13 cephfs=14 flocker=15 downwardAPI=16 fc=17
  azureFile=18 configMap=19 vsphereVolume=20 quobyte=21 azureDisk=22 photonPersistentDisk=23 projected=26
  portworxVolume=24 scaleIO=25 storageos=27 csi=28 ephemeral=29 image=30)
core.VolumeDevice name=1 devicePath=2
core.VolumeMount name=1 readOnly=2 recursiveReadOnly=7 mountPath=3 subPath=4 mountPropagation=5 subPathExpr=6
core.VolumeMountStatus name=1 mountPath=2 readOnly=3 recursiveReadOnly=4 volumeStatus=5
core.VolumeProjection secret=1 downwardAPI=2 configMap=3 serviceAccountToken=4 clusterTrustBundle=5 podCertificate=6
core.VolumeResourceRequirements limits=1 requests=2
core.VolumeStatus image=1
core.VsphereVirtualDiskVolumeSource volumePath=1 fsType=2 storagePolicyName=3 storagePolicyID=4
core.WeightedPodAffinityTerm weight=1 podAffinityTerm=2
core.WindowsSecurityContextOptions gmsaCredentialSpecName=1 gmsaCredentialSpec=2 runAsUserName=3 hostProcess=4
)"
                                  R"(
apiextensions.CustomResourceColumnDefinition name=1 type=2 format=3 description=4 priority=5 jsonPath=6
apiextensions.CustomResourceConversion strategy=1 webhook=2
apiextensions.CustomResourceDefinition metadata=1 spec=2 status=3
apiextensions.CustomResourceDefinitionCondition type=1 status=2 lastTransitionTime=3 reason=4 message=5
  observedGeneration=6
apiextensions.CustomResourceDefinitionNames plural=1 singular=2 shortNames=3 kind=4 listKind=5 categories=6
apiextensions.CustomResourceDefinitionSpec group=1 names=3 scope=4 versions=7 conversion=9 preserveUnknownFields=10
apiextensions.CustomResourceDefinitionStatus conditions=1 acceptedNames=2 storedVersions=3 observedGeneration=4
apiextensions.CustomResourceDefinitionVersion name=1 served=2 storage=3 deprecated=7 deprecationWarning=8 schema=4
  subresources=5 additionalPrinterColumns=6 selectableFields=9
apiextensions.CustomResourceSubresourceScale specReplicasPath=1 statusReplicasPath=2 labelSelectorPath=3
apiextensions.CustomResourceSubresourceStatus
apiextensions.CustomResourceSubresources status=1 scale=2
apiextensions.CustomResourceValidation openAPIV3Schema=1
apiextensions.SelectableField jsonPath=1
apiextensions.ServiceReference namespace=1 name=2 path=3 port=4
apiextensions.WebhookClientConfig url=3 service=1 caBundle=2
apiextensions.WebhookConversion clientConfig=2 conversionReviewVersions=3
apps.ControllerRevision metadata=1 data=2 revision=3
apps.DaemonSet metadata=1 spec=2 status=3
apps.DaemonSetCondition type=1 status=2 lastTransitionTime=3 reason=4 message=5
apps.DaemonSetSpec selector=1 template=2 updateStrategy=3 minReadySeconds=4 revisionHistoryLimit=6
apps.DaemonSetStatus currentNumberScheduled=1 numberMisscheduled=2 desiredNumberScheduled=3 numberReady=4
  observedGeneration=5 updatedNumberScheduled=6 numberAvailable=7 numberUnavailable=8 collisionCount=9 conditions=10
apps.DaemonSetUpdateStrategy type=1 rollingUpdate=2
apps.Deployment metadata=1 spec=2 status=3
apps.DeploymentCondition type=1 status=2 lastUpdateTime=6 lastTransitionTime=7 reason=4 message=5
apps.DeploymentSpec replicas=1 selector=2 template=3 strategy=4 minReadySeconds=5 revisionHistoryLimit=6 paused=7
  progressDeadlineSeconds=9
apps.DeploymentStatus observedGeneration=1 replicas=2 updatedReplicas=3 readyReplicas=7 availableReplicas=4
  unavailableReplicas=5 terminatingReplicas=9 conditions=6 collisionCount=8
apps.DeploymentStrategy type=1 rollingUpdate=2
apps.ReplicaSet metadata=1 spec=2 status=3
apps.ReplicaSetCondition type=1 status=2 lastTransitionTime=3 reason=4 message=5
apps.ReplicaSetSpec replicas=1 minReadySeconds=4 selector=2 template=3
apps.ReplicaSetStatus replicas=1 fullyLabeledReplicas=2 readyReplicas=4 availableReplicas=5 terminatingReplicas=7
  observedGeneration=3 conditions=6
apps.RollingUpdateDaemonSet maxUnavailable=1 maxSurge=2
apps.RollingUpdateDeployment maxUnavailable=1 maxSurge=2
authorization.FieldSelectorAttributes rawSelector=1 requirements=2
authorization.LabelSelectorAttributes rawSelector=1 requirements=2
authorization.NonResourceAttributes path=1 verb=2
authorization.ResourceAttributes namespace=1 verb=2 group=3 version=4 resource=5 subresource=6 name=7 fieldSelector=8
  labelSelector=9
authorization.SelfSubjectAccessReview metadata=1 spec=2 status=3
authorization.SelfSubjectAccessReviewSpec resourceAttributes=1 nonResourceAttributes=2
authorization.SubjectAccessReviewStatus allowed=1 denied=4 reason=2 evaluationError=3
coordination.Lease metadata=1 spec=2
coordination.LeaseSpec holderIdentity=1 leaseDurationSeconds=2 acquireTime=3 renewTime=4 leaseTransitions=5 strategy=6
  preferredHolder=7
events.Event metadata=1 eventTime=2 series=3 reportingController=4 reportingInstance=5 action=6 reason=7 regarding=8
  related=9 note=10 type=11 deprecatedSource=12 deprecatedFirstTimestamp=13 deprecatedLastTimestamp=14
  deprecatedCount=15
events.EventSeries count=1 lastObservedTime=2
meta.Condition type=1 status=2 observedGeneration=3 lastTransitionTime=4 reason=5 message=6
meta.DeleteOptions gracePeriodSeconds=1 preconditions=2 orphanDependents=3 propagationPolicy=4 dryRun=5
  ignoreStoreReadErrorWithClusterBreakingPotential=6
meta.FieldSelectorRequirement key=1 operator=2 values=3
meta.LabelSelector matchLabels=1 matchExpressions=2
meta.LabelSelectorRequirement key=1 operator=2 values=3
meta.ManagedFieldsEntry manager=1 operation=2 apiVersion=3 time=4 fieldsType=6 fieldsV1=7 subresource=8
meta.ObjectMeta name=1 generateName=2 namespace=3 selfLink=4 uid=5 resourceVersion=6 generation=7 creationTimestamp=8
  deletionTimestamp=9 deletionGracePeriodSeconds=10 labels=11 annotations=12 ownerReferences=13 finalizers=14
  managedFields=17
meta.OwnerReference apiVersion=5 kind=1 name=3 uid=4 controller=6 blockOwnerDeletion=7
meta.Preconditions uid=1 resourceVersion=2
node.Overhead podFixed=1
node.RuntimeClass metadata=1 handler=2 overhead=3 scheduling=4
node.Scheduling nodeSelector=1 tolerations=2
policy.Eviction metadata=1 deleteOptions=2
policy.PodDisruptionBudget metadata=1 spec=2 status=3
policy.PodDisruptionBudgetSpec minAvailable=1 selector=2 maxUnavailable=3 unhealthyPodEvictionPolicy=4
policy.PodDisruptionBudgetStatus observedGeneration=1 disruptedPods=2 disruptionsAllowed=3 currentHealthy=4
  desiredHealthy=5 expectedPods=6 conditions=7
rbac.AggregationRule clusterRoleSelectors=1
rbac.ClusterRole metadata=1 rules=2 aggregationRule=3
rbac.ClusterRoleBinding metadata=1 subjects=2 roleRef=3
rbac.PolicyRule verbs=1 apiGroups=2 resources=3 resourceNames=4 nonResourceURLs=5
rbac.Role metadata=1 rules=2
rbac.RoleBinding metadata=1 subjects=2 roleRef=3
rbac.RoleRef apiGroup=1 kind=2 name=3
rbac.Subject kind=1 apiGroup=2 name=3 namespace=4
scheduling.PriorityClass metadata=1 value=2 globalDefault=3 description=4 preemptionPolicy=5
)";

}  // namespace gso::sim
