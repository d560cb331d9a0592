"""How long reading a large cluster and filtering its nodes takes, beside the least it can take.

    python -m benchmarks.read_and_filter

Reading, from bytes to arrays, is set against decoding the same bytes into typed structs: with every
field that is read typed, and with what many pods have in common left as bytes, which is how the
reader itself begins.
Filtering is set against one comparison of all nodes with a number for each filter and each label
selected by, in the same process.
"""

import argparse
import platform
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rebalancer.cli.garbage import collect_seldom
from rebalancer.cluster import wire
from rebalancer.cluster.collect import collect
from rebalancer.cluster.decode import ObjectDecoder
from rebalancer.cluster.kinds import NODE, POD, Kind
from rebalancer.cluster.live import PAGE_SIZE
from rebalancer.model.objects import ObjectKey
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.filters import NODE_RESOURCES_FIT, RULES
from rebalancer.scheduling.state import ClusterState

_SELECTORS = 80
"""CPU features that a launcher pod of a host-model VM selects by."""
_GROUPS = 500
"""Sets of VMs that keep off each other's nodes."""
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_ROUNDS = 5


class Pages(NamedTuple):
    nodes: list[bytes]
    pods: list[bytes]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    collect_seldom()
    pages = generate(options.nodes, options.pods, random.Random(options.seed))
    megabytes = sum(map(len, (*pages.nodes, *pages.pods))) / 1e6
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}")
    print(
        f"{options.nodes} nodes, {options.pods} launcher pods, {megabytes:.0f} MB of JSON,"
        f" seed {options.seed}; best of {_ROUNDS}"
    )
    typed, _ = _best(lambda: decode(pages, TypedPod))
    lazy, _ = _best(lambda: decode(pages, wire.Pod))
    reading, state = _best(lambda: read(pages))
    print(f"decode, every field typed:      {typed:.2f} s")
    print(f"decode, common fields as bytes: {lazy:.2f} s")
    print(
        f"read to arrays:                 {reading:.2f} s,"
        f" {reading / typed:.2f} and {reading / lazy:.2f} times those"
    )
    for name, pod in pending(state.snapshot).items():
        _measure_filters(name, pod, state)


def _measure_filters(name: str, key: ObjectKey, state: ClusterState) -> None:
    pod = state.snapshot.pod_by_key[key]
    first, _ = _best(lambda: evaluate(pod, ClusterState(state.snapshot)))
    best, feasibility = _best(lambda: evaluate(pod, state))
    numbers = np.arange(len(state.nodes))
    bound, _ = _best(lambda: [numbers >= n for n in range(len(pod.node_selector) + len(RULES))])
    allowed = int(feasibility.feasible.sum())
    print(
        f"all filters, {name}: {best * 1e3:.1f} ms ({best / bound:.1f} times one comparison for"
        f" each rule and selector), {allowed} nodes feasible; on a new state {first * 1e3:.0f} ms"
    )
    for rule in (*RULES, NODE_RESOURCES_FIT):
        seconds, _ = _best(partial(rule.allowed, pod, state))
        if seconds > 0.0005:
            print(f"    {rule.name}: {seconds * 1e3:.1f} ms")


class TypedContainer(wire.Container):
    resources: wire.Resources | None = None  # type: ignore[assignment]


class TypedPodSpec(wire.PodSpec):
    node_selector: dict[str, str] | None = None  # type: ignore[assignment]
    affinity: wire.Affinity | None = None  # type: ignore[assignment]
    tolerations: list[wire.Toleration] | None = None  # type: ignore[assignment]
    topology_spread_constraints: list[wire.TopologySpreadConstraint] | None = None  # type: ignore[assignment]
    containers: list[TypedContainer] | None = None  # type: ignore[assignment]


class TypedPod(wire.Object):
    spec: TypedPodSpec | None = None
    status: wire.PodStatus | None = None


def decode(pages: Pages, pod_shape: Any) -> list[Any]:
    node_page = msgspec.json.Decoder(wire.Page[wire.Node])
    pod_page = msgspec.json.Decoder(wire.Page[pod_shape])
    return [
        *(node_page.decode(page) for page in pages.nodes),
        *(pod_page.decode(page) for page in pages.pods),
    ]


def read(pages: Pages) -> ClusterState:
    decoder = ObjectDecoder()
    objects: dict[Kind, Sequence[Any]] = {
        kind: [item for page in data for item in decoder.decode_page(kind, page).objects]
        for kind, data in ((NODE, pages.nodes), (POD, pages.pods))
    }
    state = ClusterState(collect(objects, _NOW))
    for resource in ("cpu", "memory", "pods", "devices.kubevirt.io/kvm"):
        state.headroom(resource)
    return state


def pending(snapshot: Snapshot) -> dict[str, ObjectKey]:
    """The pods to filter for, by what they stand for."""
    return {pod.name: pod.key for pod in snapshot.pods if pod.node_name is None}


def generate(node_count: int, pod_count: int, rng: random.Random) -> Pages:
    features = [f"cpu-feature.node.kubevirt.io/f{i:02}" for i in range(_SELECTORS)]
    nodes = [_node(i, features) for i in range(node_count)]
    pods = [_pod(f"vm-{i}", i % node_count, features, rng) for i in range(pod_count)]
    pods += [_plain_pending(features), _entangled_pending(features)]
    return Pages(_pages(nodes), _pages(pods))


def _pages(items: list[Any]) -> list[bytes]:
    starts = range(0, len(items), PAGE_SIZE)
    return [msgspec.json.encode({"items": items[i : i + PAGE_SIZE]}) for i in starts]


def _node(number: int, features: Sequence[str]) -> Any:
    labels = {
        "kubernetes.io/hostname": f"n{number}",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "kubevirt.io/schedulable": "true",
        **dict.fromkeys(features, "true"),
    }
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "250", "devices.kubevirt.io/kvm": "1k"}
    taints = [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}] if number % 9 == 0 else []
    return {
        "metadata": {"name": f"n{number}", "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(
    name: str, node: int | None, features: Sequence[str], rng: random.Random, **affinity: Any
) -> Any:
    group = f"group-{rng.randrange(_GROUPS)}"
    if node is not None and rng.random() < 0.2:
        affinity = {"podAntiAffinity": _terms("kubernetes.io/hostname", group=group)}
    memory = rng.choice(("4Gi", "8Gi", "16Gi", "32Gi"))
    return {
        "metadata": {
            "name": name,
            "namespace": f"ns-{rng.randrange(100)}" if node is not None else "ns-0",
            "uid": f"uid-{name}",
            "labels": {
                "kubevirt.io": "virt-launcher",
                "kubevirt.io/created-by": f"vmi-{name}",
                "vm.kubevirt.io/name": name,
                "group": group,
            },
            "annotations": {"kubevirt.io/domain": name},
        },
        "spec": {
            "nodeName": None if node is None else f"n{node}",
            "nodeSelector": {"kubevirt.io/schedulable": "true", **dict.fromkeys(features, "true")},
            "affinity": affinity,
            "tolerations": [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}],
            "containers": [
                {
                    "name": "compute",
                    "resources": {
                        "requests": {
                            "cpu": "500m",
                            "memory": memory,
                            "devices.kubevirt.io/kvm": "1",
                        }
                    },
                }
            ],
        },
        "status": {"phase": "Pending" if node is None else "Running"},
    }


def _terms(topology_key: str, **labels: str) -> Any:
    term = {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _plain_pending(features: Sequence[str]) -> Any:
    return _pod("a pod without affinity", None, features, random.Random(1))


def _entangled_pending(features: Sequence[str]) -> Any:
    """With affinity, anti-affinity and topology spread of its own."""
    pod = _pod(
        "a pod with affinity and spread",
        None,
        features,
        random.Random(1),
        podAntiAffinity=_terms("kubernetes.io/hostname", group="group-1"),
        podAffinity=_terms("topology.kubernetes.io/zone", group="group-2"),
    )
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "topologyKey": "topology.kubernetes.io/zone",
            "maxSkew": 50,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"kubevirt.io": "virt-launcher"}},
        }
    ]
    return pod


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = run()
    return time.perf_counter() - started, result


def _best(run: Callable[[], Any]) -> tuple[float, Any]:
    timings = [_timed(run) for _ in range(_ROUNDS)]
    return min(seconds for seconds, _ in timings), timings[-1][1]


if __name__ == "__main__":
    main()
