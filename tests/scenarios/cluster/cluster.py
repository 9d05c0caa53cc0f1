"""A `Cluster`: the parts of the model joined to one whole, and fleets of equal nodes to begin a story with."""
import copy

from .expectations import expect
from .looks import Looks
from .nodes import Nodes
from .objects import Objects
from .operator_objects import OperatorObjects
from .plugin_installation import PluginInstallation
from .pods import Pods
from .profile_config_map import ProfileConfigMap
from .profile_texts import mps
from .reactions import Reactions
from .times import moment


class Cluster(Objects, OperatorObjects, PluginInstallation, ProfileConfigMap, Nodes, Pods, Reactions, Looks):
    """Manifests of one cluster, with the fleet behind them. All state is here; each part has the methods of one subject."""

    def __init__(self, profiles, default="any", layout="gpu-operator", version="v0.20.0", on_delete=False, crds=True,
                 gfd=True, start="2026-03-02T08:00:00Z", namespace=None, config_map="mps-config", fallbacks="empty",
                 options=()):
        # Time, and the operator's looks.
        self.clock = moment(start)
        self.changed = self.clock     # When an object was changed last.
        self.last_tick = None
        self.ticks = []
        self.options = list(options)  # Of `plan`.
        # Objects.
        self.objects = {}
        self.counter = 0
        self.gone = set()             # What was removed since the last look.
        self.pods_by_node = None
        self.served_crds = crds
        # The plugin installation.
        self.gfd = gfd and layout == "gpu-operator"
        self.layout, self.version, self.on_delete = layout, version, on_delete
        self.namespace = namespace or ("gpu-operator" if layout == "gpu-operator" else "nvidia-device-plugin")
        self.config_map, self.default, self.fallbacks = config_map, default, fallbacks
        self.revisions, self.newest = [], None        # Templates of the DaemonSets.
        self.restarts_wanted, self.restarts = [], []  # Of DaemonSets: (name, what for).
        self.history = []             # (moment, data) of the plugin's ConfigMap.
        # Nodes and pods.
        self.machines = {}
        self.loaded = {}              # Pod uid: the text that its main container has loaded.
        self.selected = {}            # Pod uid: the key of that text.
        self.followed = {}            # Pod uid: the node's profile label and the default key of its template.
        self.bad_templates = set()    # Templates whose pods never get Ready.
        self.refuses_eviction = set()
        self.file_mode = False        # GFD writes a file: its labels are gone while it restarts.

        self.install_gpu_software()
        self.configure(profiles)
        if crds:
            self.install_crds()

    def copy(self):
        """The same cluster once more, to go on otherwise from here."""
        return copy.deepcopy(self)

    def adopt(self, other):
        """Puts the objects of another cluster beside these, as a second installation; only this fleet goes on."""
        for key, obj in other.objects.items():
            if obj["kind"] not in ("ClusterPolicy", "CustomResourceDefinition", "SharingPolicy"):
                self.objects[key] = obj
        self.pods_by_node = None


def numbered(count, prefix="n"):
    """The names n01, n02, ... of so many nodes."""
    return ["%s%02d" % (prefix, number) for number in range(1, count + 1)]


def fleet(count, text, gpus=2, product="NVIDIA-A100-SXM4-40GB", more=None, rollout=None, **options):
    """A cluster of equal nodes n01, n02, ... on one default profile `any`, with the operator installed on it."""
    cluster = Cluster(dict({"any": text}, **(more or {})), **options)
    cluster.add_nodes(*numbered(count), gpus=gpus, product=product)
    if rollout:
        cluster.policy(rollout=rollout)
    cluster.install()
    return cluster


def held_canary(count):
    """Equal nodes under a new profile, and a person holds n01 in its change: its GPUs serve nobody, and the others wait."""
    cluster = fleet(count, mps(4))
    cluster.edit(any=mps(8))
    for _ in range(40):
        if cluster.in_progress():
            break
        cluster.after("10s")
    expect("in a change", cluster.in_progress(), ["n01"])
    cluster.annotate("Node", "n01", "gpusharing.dev/hold", "true")
    return cluster
