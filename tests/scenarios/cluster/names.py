"""Names of labels, DaemonSets and owners, as a cluster with the GPU software and the operator has them."""
STATE_LABEL = "gpusharing.dev/state"
REVISION = "gpusharing.dev/revision"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
GPU = "nvidia.com/gpu"
OWN_PREFIX = "gpusharing.dev/"
FIELD_MANAGER = "gpu-sharing-operator"
OPERATOR_NAMESPACE = "gpu-sharing-operator"

# Parts of a plugin installation: the names of the DaemonSet and of its main container.
COMPONENTS = {
    "plugin": ("nvidia-device-plugin-daemonset", "nvidia-device-plugin"),
    "gfd": ("gpu-feature-discovery", "gpu-feature-discovery"),
    "mps": ("nvidia-device-plugin-mps-control-daemon", "mps-control-daemon-ctr"),
}

# What GPU feature discovery writes on a node.
GFD_LABELS = ["nvidia.com/gpu.count", "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy",
              "nvidia.com/gpu.product", "nvidia.com/mps.capable", "nvidia.com/gpu.compute.major",
              "nvidia.com/gpu.compute.minor"]
