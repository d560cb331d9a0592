"""A large cluster's manifests, as an API server lists them: nodes, VMIs, launcher pods, volumes.

Equal recipes give equal clusters.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from rebalancer.cluster.collect import collect
from rebalancer.cluster.decode import ObjectDecoder
from rebalancer.cluster.kinds import CLAIM, MIGRATION, NAMESPACE, NODE, POD, VMI, VOLUME, Kind
from rebalancer.cluster.live import PAGE_SIZE
from rebalancer.model.snapshot import Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FEATURES = [f"cpu-feature.node.kubevirt.io/f{i:02}" for i in range(80)]
"""What a host model asks of a target."""

_MIGRATION_MODEL = "cpu-model-migration.node.kubevirt.io/"
_MACHINE_TYPE = "pc-q35-rhel9.6.0"
_NAMESPACES = 100
_ZONES = 4
_GROUP_SIZE = 3
_NODE_AMOUNTS = {
    "cpu": "64",
    "memory": "512Gi",
    "pods": "250",
    **dict.fromkeys((f"devices.kubevirt.io/{name}" for name in ("kvm", "tun", "vhost-net")), "1k"),
}
_DEVICES = dict.fromkeys((f"devices.kubevirt.io/{name}" for name in ("kvm", "tun")), "1")


class Recipe(NamedTuple):
    """All that a cluster depends on. Shares are of the VMs."""

    nodes: int = 5_000
    vms: int = 100_000
    seed: int = 0
    has_volumes: bool = False
    """Each VM has a claim with a volume of a CSI driver behind it."""
    grouped_share: float = 0.02
    """VMs that keep off the nodes of two others, by anti-affinity."""
    pinned_share: float = 0.03
    """VMs that cannot be live-migrated."""
    moved_share: float = 0.05
    """VMs that have been migrated within the last two days."""
    target_share: float = 0.5
    """VMs whose launcher pod was the target of a migration: it selects by the host model of the
    node before, and keeps off the VM's other launcher pods."""


Pages = Mapping[Kind, Sequence[bytes]]
"""What the API server answers to the list requests for each kind."""


def generate(recipe: Recipe) -> Pages:
    rng = random.Random(recipe.seed)
    objects: dict[Kind, list[Any]] = {
        NODE: [_node(i) for i in range(recipe.nodes)],
        NAMESPACE: [{"metadata": {"name": f"ns-{i}"}} for i in range(_NAMESPACES)],
        MIGRATION: [],
        VMI: [],
        POD: [],
        CLAIM: [],
        VOLUME: [],
    }
    for i in range(recipe.vms):
        group = i // _GROUP_SIZE
        is_grouped = group < recipe.grouped_share * recipe.vms / _GROUP_SIZE
        vm = _Vm(
            name=f"vm-{i}",
            namespace=f"ns-{(group if is_grouped else i) % _NAMESPACES}",
            node=i % recipe.nodes,
            gib=rng.choice((2, 4, 8, 16, 32)),
            cores=rng.choice((1, 2, 4)),
            group=f"group-{group}" if is_grouped else "",
            claim=f"disk-{i}" if recipe.has_volumes else "",
        )
        objects[VMI].append(vm.instance(is_pinned=rng.random() < recipe.pinned_share))
        objects[POD].append(vm.launcher(is_target=rng.random() < recipe.target_share))
        if rng.random() < recipe.moved_share:
            objects[MIGRATION].append(vm.migration(NOW - timedelta(hours=rng.uniform(1, 48))))
        if vm.claim:
            objects[CLAIM].append(vm.disk_claim())
            objects[VOLUME].append(vm.disk())
    return {kind: _pages(items) for kind, items in objects.items()}


def read(pages: Pages) -> Snapshot:
    decoder = ObjectDecoder()
    return collect(
        {
            kind: [item for page in found for item in decoder.decode_page(kind, page).objects]
            for kind, found in pages.items()
        },
        NOW,
    )


def _pages(items: Sequence[Any]) -> list[bytes]:
    starts = range(0, len(items), PAGE_SIZE)
    return [msgspec.json.encode({"items": items[i : i + PAGE_SIZE]}) for i in starts]


def _node(number: int) -> Any:
    vendor, model = _cpu_of(number)
    labels = {
        "kubernetes.io/hostname": f"n{number}",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{number % _ZONES}",
        "kubevirt.io/schedulable": "true",
        f"machine-type.node.kubevirt.io/{_MACHINE_TYPE}": "true",
        f"cpu-vendor.node.kubevirt.io/{vendor}": "true",
        f"host-model-cpu.node.kubevirt.io/{model}": "true",
        f"{_MIGRATION_MODEL}{model}": "true",
        **dict.fromkeys(FEATURES, "true"),
        **dict.fromkeys((_required(feature) for feature in FEATURES), "true"),
    }
    is_dedicated = number % 9 == 0
    taint = {"key": "maintenance", "value": "soon", "effect": "PreferNoSchedule"}
    return {
        "metadata": {"name": f"n{number}", "labels": labels},
        "spec": {"taints": [taint] if is_dedicated else []},
        "status": {
            "allocatable": _NODE_AMOUNTS,
            "capacity": _NODE_AMOUNTS,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _cpu_of(node: int) -> tuple[str, str]:
    """Vendor and host model."""
    if node % 3 == 0:
        return "AMD", "EPYC"
    return "Intel", ("Skylake-Server", "Icelake-Server")[node % 2]


def _required(feature: str) -> str:
    return feature.replace("cpu-feature.", "host-model-required-features.")


class _Vm(NamedTuple):
    name: str
    namespace: str
    node: int
    gib: int
    cores: int
    group: str
    claim: str

    def instance(self, *, is_pinned: bool) -> Any:
        condition = {"type": "LiveMigratable", "status": "False" if is_pinned else "True"}
        return {
            "metadata": self._metadata(self.name, f"uid-{self.name}", self._labels()),
            "spec": {
                "architecture": "amd64",
                "affinity": _anti_affinity(self._terms()),
                "evictionStrategy": "LiveMigrate",
                "domain": {
                    "cpu": {"cores": self.cores, "sockets": 1, "threads": 1, "model": "host-model"},
                    "memory": {"guest": f"{self.gib}Gi"},
                    "machine": {"type": "q35"},
                    "devices": {"interfaces": [{"name": "default", "masquerade": {}}]},
                    "resources": {"requests": {"memory": f"{self.gib}Gi"}},
                },
            },
            "status": {
                "phase": "Running",
                "nodeName": f"n{self.node}",
                "machine": {"type": _MACHINE_TYPE},
                "memory": {"guestCurrent": f"{self.gib}Gi"},
                "conditions": [{"type": "Ready", "status": "True"}, condition],
            },
        }

    def launcher(self, *, is_target: bool) -> Any:
        labels = {
            "kubevirt.io": "virt-launcher",
            "kubevirt.io/created-by": f"uid-{self.name}",
            "vm.kubevirt.io/name": self.name,
            "kubevirt.io/nodeName": f"n{self.node}",
            **self._labels(),
        }
        overhead_mib = 300
        requests = {
            "cpu": f"{self.cores * 100}m",
            "memory": f"{self.gib * 1024 + overhead_mib}Mi",
            **_DEVICES,
        }
        selector = {"kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64"}
        terms = self._terms()
        if is_target:
            _, model = _cpu_of(self.node)
            selector |= dict.fromkeys((*FEATURES, f"{_MIGRATION_MODEL}{model}"), "true")
            terms = [*terms, _apart("kubevirt.io/created-by", f"uid-{self.name}")]
        volumes = [{"name": "rootdisk", "persistentVolumeClaim": {"claimName": self.claim}}]
        toleration = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}
        return {
            "metadata": self._metadata(
                f"virt-launcher-{self.name}", f"uid-launcher-{self.name}", labels
            ),
            "spec": {
                "nodeName": f"n{self.node}",
                "nodeSelector": selector,
                "affinity": _anti_affinity(terms),
                "tolerations": [toleration],
                "containers": [{"name": "compute", "resources": {"requests": requests}}],
                "volumes": volumes if self.claim else [],
            },
            "status": {"phase": "Running"},
        }

    def migration(self, ended_at: datetime) -> Any:
        ended = {"phase": "Succeeded", "phaseTransitionTimestamp": ended_at}
        name = f"move-{self.name}"
        return {
            "metadata": {
                **self._metadata(name, f"uid-{name}", {}),
                "creationTimestamp": ended_at - timedelta(minutes=2),
            },
            "spec": {"vmiName": self.name},
            "status": {"phase": "Succeeded", "phaseTransitionTimestamps": [ended]},
        }

    def disk_claim(self) -> Any:
        return {
            "metadata": {
                **self._metadata(self.claim, f"uid-{self.claim}", {}),
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "shared",
                "volumeName": f"pv-{self.claim}",
            },
            "status": {"phase": "Bound"},
        }

    def disk(self) -> Any:
        csi = {"driver": "rbd.csi.ceph.com", "volumeHandle": self.claim}
        return {"metadata": {"name": f"pv-{self.claim}"}, "spec": {"csi": csi}}

    def _metadata(self, name: str, uid: str, labels: Mapping[str, str]) -> Any:
        return {"namespace": self.namespace, "name": name, "uid": uid, "labels": labels}

    def _labels(self) -> Mapping[str, str]:
        app = {"app": f"app-{self.name}"}
        return {**app, "group": self.group} if self.group else app

    def _terms(self) -> list[Any]:
        return [_apart("group", self.group)] if self.group else []


def _apart(label: str, value: str) -> Any:
    return {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {label: value}},
    }


def _anti_affinity(terms: Sequence[Any]) -> Any:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
