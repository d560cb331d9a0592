"""Random clusters and pods for the API server, with whatever the scheduler's filters look at.

Values are few, so that selectors meet labels, pods meet each other's terms, and amounts come close
to what is left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.controlplane.api import Object

NAMESPACES = {"red": {"team": "a"}, "green": {"team": "b"}, "blue": {}}
RUNTIME_CLASS = "sandboxed"
PRIORITY_CLASS = "high"

NODES = 12
TESTED_PODS = 40
_ZONE = "topology.kubernetes.io/zone"
STORAGE_CLASSES: list[Object] = [
    {"metadata": {"name": "at-once"}, "provisioner": "rbd.example.com"},
    *(
        {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": topologies,
        }
        for name, provisioner, topologies in (
            ("anywhere", "rbd.example.com", []),
            (
                "in-zone-a",
                "nfs.example.com",
                [{"matchLabelExpressions": [{"key": _ZONE, "values": ["a"]}]}],
            ),
            ("by-hand", "kubernetes.io/no-provisioner", []),
        )
    ),
]
CSI_DRIVER: Object = {
    "metadata": {"name": "rbd.example.com"},
    "spec": {"storageCapacity": False},
}
_DRIVERS = ("rbd.example.com", "nfs.example.com")
_REGION = "topology.kubernetes.io/region"
_BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_TOPOLOGY_KEYS = (_ZONE, "rack", _HOSTNAME)
_GPU = "example.com/gpu"
_HUGEPAGES = "hugepages-2Mi"

T = TypeVar("T")


@dataclass
class Case:
    """A cluster, and the pods about which both are asked.

    Attributes:
        placed: pods that are bound, or nominated.
        statuses: by uid-less key (namespace, name): the status to write over that of the API.
        leaving: keys of placed pods to delete, which stay until their grace period is over.
    """

    seed: int
    nodes: list[Object] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    csi_nodes: list[Object] = field(default_factory=list)
    attachments: list[Object] = field(default_factory=list)
    placed: list[Object] = field(default_factory=list)
    tested: list[Object] = field(default_factory=list)
    statuses: dict[tuple[str, str], Object] = field(default_factory=dict)
    leaving: set[tuple[str, str]] = field(default_factory=set)


def generate(seed: int) -> Case:
    """Always the same for the same seed."""
    return _Generator(seed).case


class _Generator:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.case = Case(seed)
        self._node_names = [f"n{i:02}" for i in range(NODES)]
        self.case.nodes = [self._node(name) for name in self._node_names]
        for i in range(14):
            self._volume_and_claim(i)
        self._csi()
        for i in range(self._random.randint(15, 45)):
            self._placed_pod(i)
        for i in range(TESTED_PODS):
            self.case.tested.append(self._pod(f"asked-{i}", busy=True))

    # Chance

    def _often(self, probability: float) -> bool:
        return self._random.random() < probability

    def _one(self, *values: T) -> T:
        return self._random.choice(values)

    def _some(self, values: Sequence[T], least: int = 1) -> list[T]:
        return self._random.sample(values, self._random.randint(least, len(values)))

    # Nodes

    def _node(self, name: str) -> Object:
        labels = {_HOSTNAME: name} if self._often(0.92) else {}
        if self._often(0.85):
            labels[_ZONE] = self._one("a", "b", "c")
        if self._often(0.3):
            labels[_REGION] = self._one("r1", "r2")
        if self._often(0.1):
            labels[_BETA_ZONE] = self._one("a", "b")
        if self._often(0.6):
            labels["rack"] = self._one("1", "2")
        if self._often(0.7):
            labels["size"] = self._one("4", "10", "large", "")
        amounts = {
            "cpu": self._one("2", "4", "3900m"),
            "memory": self._one("4Gi", "6Gi", "8000000k"),
            "pods": self._one("3", "6", "20"),
            "ephemeral-storage": self._one("10Gi", "50Gi"),
            _HUGEPAGES: self._one("0", "16Mi", "64Mi"),
        }
        if self._often(0.5):
            amounts[_GPU] = self._one("0", "1", "2")
        spec: Object = {"unschedulable": self._often(0.08)}
        if self._often(0.4):
            spec["taints"] = [self._taint(key) for key in self._some(("dedicated", "gpu", "drain"))]
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
        }

    def _taint(self, key: str) -> Object:
        effect = self._one("NoSchedule", "NoExecute", "PreferNoSchedule")
        return {"key": key, "value": self._one("a", "b", ""), "effect": effect}

    # Volumes

    def _volume_and_claim(self, i: int) -> None:
        namespace = self._one(*NAMESPACES)
        name = f"disk-{i}"
        spec: Object = {
            "accessModes": [self._one("ReadWriteMany", "ReadWriteMany", "ReadWriteOncePod")],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        }
        annotations = {}
        if self._often(0.75):
            spec["volumeName"] = name
            if self._often(0.95):
                annotations["pv.kubernetes.io/bind-completed"] = "yes"
        else:
            names = [each["metadata"]["name"] for each in STORAGE_CLASSES]
            spec["storageClassName"] = self._one(*names, "anywhere", "anywhere", "gone", "")
            if self._often(0.15):
                annotations["volume.kubernetes.io/selected-node"] = self._one(*self._node_names)
        metadata = {"name": name, "namespace": namespace, "annotations": annotations}
        self.case.claims.append({"metadata": metadata, "spec": spec})
        if self._often(0.03):
            self.case.statuses[namespace, name] = {"phase": "Lost"}
        if self._often(0.97):
            self.case.volumes.append(self._volume(name, namespace, spec["accessModes"]))

    def _volume(self, name: str, namespace: str, access_modes: list[str]) -> Object:
        labels = {}
        if self._often(0.25):
            labels[self._one(_ZONE, _BETA_ZONE)] = self._one("a", "b", "a__b", "a__c")
        if self._often(0.1):
            labels[_REGION] = "r1"
        spec: Object = {
            "accessModes": access_modes,
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": namespace, "name": name},
            "storageClassName": "",
        }
        if self._often(0.75):
            spec["csi"] = {"driver": self._one(*_DRIVERS), "volumeHandle": self._one(name, "same")}
        else:
            spec["nfs"] = {"server": "nfs.example.com", "path": "/"}
        if self._often(0.3):
            terms = [self._node_term(with_fields=False) for _ in range(self._one(1, 2))]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _csi(self) -> None:
        for name in self._node_names:
            if self._often(0.7):
                drivers = [self._driver(driver) for driver in self._some(_DRIVERS)]
                self.case.csi_nodes.append(
                    {"metadata": {"name": name}, "spec": {"drivers": drivers}}
                )
        for i in range(self._random.randint(0, 6)):
            volume = self._one(*self.case.volumes)
            spec = {
                "attacher": self._one(*_DRIVERS),
                "nodeName": self._one(*self._node_names),
                "source": {"persistentVolumeName": volume["metadata"]["name"]},
            }
            self.case.attachments.append({"metadata": {"name": f"attached-{i}"}, "spec": spec})

    def _driver(self, name: str) -> Object:
        driver: Object = {"name": name, "nodeID": "node", "topologyKeys": None}
        if self._often(0.8):
            driver["allocatable"] = {"count": self._one(0, 1, 1, 2, 3)}
        return driver

    # Pods

    def _placed_pod(self, i: int) -> None:
        pod = self._pod(f"there-{i}", busy=False)
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if self._often(0.1):
            pod["spec"]["priorityClassName"] = PRIORITY_CLASS
            self.case.statuses[key] = {"nominatedNodeName": self._one(*self._node_names)}
        else:
            pod["spec"]["nodeName"] = self._one(*self._node_names, "not-there")
            if self._often(0.12):
                self.case.leaving.add(key)
            elif self._often(0.1):
                self.case.statuses[key] = {"phase": self._one("Succeeded", "Failed")}
        self.case.placed.append(pod)

    def _pod(self, name: str, *, busy: bool) -> Object:
        """A `busy` one asks for more."""
        namespace = self._one(*NAMESPACES)
        more = 1.0 if busy else 0.4
        labels = {"app": self._one("web", "db")}
        if self._often(0.6):
            labels["tier"] = self._one("1", "2")
        spec: Object = {
            "terminationGracePeriodSeconds": 3600,
            "containers": [self._container(f"c{n}", more) for n in range(self._one(1, 1, 2))],
        }
        if self._often(0.2 * more):
            spec["initContainers"] = self._init_containers()
        elif self._often(0.1 * more):
            # The API wants no less than the containers ask for.
            spec["resources"] = {"requests": {"cpu": "2500m", "memory": "3Gi"}}
        if self._often(0.1 * more):
            spec["runtimeClassName"] = RUNTIME_CLASS
        if self._often(0.15 * more):
            spec["nodeSelector"] = {self._one("rack", "size"): self._one("1", "2", "4", "")}
        if self._often(0.5 if busy else 0.2):
            spec["tolerations"] = [self._toleration() for _ in range(self._one(1, 2, 3))]
        if affinity := self._affinity(more):
            spec["affinity"] = affinity
        if self._often(0.3 * more):
            spec["topologySpreadConstraints"] = self._spread()
        own_claims = [c for c in self.case.claims if c["metadata"]["namespace"] == namespace]
        if own_claims and self._often(0.3 if busy else 0.2):
            spec["volumes"] = [
                {"name": f"v{n}", "persistentVolumeClaim": {"claimName": c["metadata"]["name"]}}
                for n, c in enumerate(self._some(own_claims)[:3])
            ]
        if busy and self._often(0.02):
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _container(self, name: str, more: float) -> Object:
        requests: dict[str, str] = {}
        if self._often(0.8):
            requests["cpu"] = self._one("1m", "100m", "0.5", "1") if self._often(more) else "10m"
        if self._often(0.8):
            requests["memory"] = self._one("64Mi", "1Gi", "1500M", "128974848000m")
        if self._often(0.15 * more):
            requests["ephemeral-storage"] = self._one("5Gi", "9Gi", "20G")
        limits: dict[str, str] = {}
        if self._often(0.12):
            limits[_GPU] = self._one("0", "1", "2")
        if self._often(0.08):
            limits[_HUGEPAGES] = self._one("8Mi", "16Mi", "32Mi")
            requests.setdefault("memory", "64Mi")
        resources = {"requests": requests, "limits": limits}
        container: Object = {"name": name, "image": "main:test", "resources": resources}
        # The API refuses a port that two containers of a pod ask for.
        if name.endswith("0") and self._often(0.12):
            container["ports"] = self._ports()
        return container

    def _ports(self) -> list[Object]:
        number = self._one(8080, 9090)
        port: Object = {"containerPort": number, "hostPort": number}
        if self._often(0.3):
            port["protocol"] = "UDP"
        if self._often(0.4):
            port["hostIP"] = self._one("127.0.0.1", "10.0.0.1", "0.0.0.0")
        return [port]

    def _init_containers(self) -> list[Object]:
        containers = [self._container(f"i{n}", 1.0) for n in range(self._one(1, 2))]
        for container in containers:
            if self._often(0.5):
                container["restartPolicy"] = "Always"
        return containers

    def _toleration(self) -> Object:
        toleration: Object = {"operator": self._one("Exists", "Equal")}
        if toleration["operator"] == "Equal":
            toleration |= {"key": self._one("dedicated", "gpu"), "value": self._one("a", "b", "")}
        elif self._often(0.85):
            keys = ("dedicated", "gpu", "drain", "node.kubernetes.io/unschedulable")
            toleration["key"] = self._one(*keys)
        if self._often(0.4):
            toleration["effect"] = self._one("NoSchedule", "NoExecute", "PreferNoSchedule")
        return toleration

    # Affinity

    def _affinity(self, more: float) -> Object:
        affinity: Object = {}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        if self._often(0.3 * more):
            terms = [self._node_term() for _ in range(self._one(1, 2))]
            affinity["nodeAffinity"] = {required: {"nodeSelectorTerms": terms}}
        if self._often(0.2 * more):
            terms = [self._pod_term() for _ in range(self._one(1, 1, 2))]
            affinity["podAffinity"] = {required: terms}
        if self._often(0.35 * more):
            terms = [self._pod_term() for _ in range(self._one(1, 1, 2))]
            affinity["podAntiAffinity"] = {required: terms}
        return affinity

    def _node_term(self, *, with_fields: bool = True) -> Object:
        term: Object = {}
        if self._often(0.85) or not with_fields:
            term["matchExpressions"] = [self._node_expression() for _ in range(self._one(1, 1, 2))]
        if with_fields and self._often(0.2):
            operator = self._one("In", "NotIn")
            name = self._one(*self._node_names, "not-there")
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
        return term

    def _node_expression(self) -> Object:
        operator = self._one("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        key = self._one("size", "rack", _ZONE)
        expression: Object = {"key": key, "operator": operator}
        if operator in ("Gt", "Lt"):
            expression |= {"key": "size", "values": [self._one("0", "3", "4", "7")]}
        elif operator in ("In", "NotIn"):
            values = {"size": ("4", "10", "large"), "rack": ("1", "2"), _ZONE: ("a", "b", "c")}
            expression["values"] = self._some(values[key])
        return expression

    def _pod_term(self) -> Object:
        term: Object = {"topologyKey": self._one(*_TOPOLOGY_KEYS)}
        if self._often(0.95):
            term["labelSelector"] = self._label_selector()
        if self._often(0.25):
            term["namespaces"] = self._some(tuple(NAMESPACES))
        if self._often(0.3):
            selectors: tuple[Object, ...] = (
                {},
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            )
            term["namespaceSelector"] = self._one(*selectors)
        if "labelSelector" in term and self._often(0.15):
            which = self._one("matchLabelKeys", "mismatchLabelKeys")
            if not _mentions(term["labelSelector"], "tier"):
                term[which] = ["tier"]
        return term

    def _label_selector(self) -> Object:
        ways: tuple[Callable[[], Object], ...] = (
            lambda: {"matchLabels": {"app": self._one("web", "db", "none")}},
            lambda: {"matchLabels": {"app": self._one("web", "db"), "tier": "1"}},
            lambda: {"matchExpressions": [self._label_expression()]},
            lambda: {},
        )
        return self._random.choices(ways, (6, 3, 4, 1))[0]()

    def _label_expression(self) -> Object:
        operator = self._one("In", "NotIn", "Exists", "DoesNotExist")
        expression: Object = {"key": "tier", "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = self._some(("1", "2", "3"))
        return expression

    def _spread(self) -> list[Object]:
        keys = self._some(_TOPOLOGY_KEYS)[:2]
        return [self._spread_over(key) for key in keys]

    def _spread_over(self, key: str) -> Object:
        hard = self._often(0.85)
        constraint: Object = {
            "topologyKey": key,
            "maxSkew": self._one(1, 1, 2, 3),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        if self._often(0.93):
            constraint["labelSelector"] = self._label_selector()
            if self._often(0.2) and not _mentions(constraint["labelSelector"], "tier"):
                constraint["matchLabelKeys"] = ["tier"]
        if hard and self._often(0.25):
            constraint["minDomains"] = self._one(1, 2, 3, 4)
        if self._often(0.3):
            constraint["nodeAffinityPolicy"] = self._one("Honor", "Ignore")
        if self._often(0.3):
            constraint["nodeTaintsPolicy"] = self._one("Honor", "Ignore")
        return constraint


def _mentions(selector: Object, key: str) -> bool:
    """The API refuses label keys that the selector names as well."""
    expressions = selector.get("matchExpressions", [])
    return key in selector.get("matchLabels", {}) or any(each["key"] == key for each in expressions)
