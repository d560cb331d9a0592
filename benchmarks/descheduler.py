"""Evening out requests on a real control plane, beside the descheduler's LowNodeUtilization.

    python -m benchmarks.descheduler

The control plane is that of the tests; etcd, kube-apiserver, kube-scheduler, virt-api and
virt-controller are the real programs. An eviction of a launcher pod goes the way it goes in any
cluster: virt-api refuses it and marks the VM, virt-controller migrates it, kube-scheduler chooses
the node. Each contender starts from the same cluster, made anew for it, and is run several times;
before the next run all migrations have ended, or found no node.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.peers.programs import UnavailableError, descheduler
from benchmarks.report import heading, machine, row
from rebalancer.model.keys import ZONE
from rebalancer.model.quantity import parse_amount
from tests.controlplane import builders
from tests.controlplane.api import Api, Object, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.processes import free_ports
from tests.controlplane.reset import reset
from tests.controlplane.scenario import add_nodes, start_vmis
from tests.controlplane.waiting import wait_for

_NODE_GIB = 64
_SIZES_GIB = (2, 4, 8, 16)
_OVERHEAD_GIB = 0.35
_TIED_SHARE = 0.2
"""Of the VMs, which may only go to nodes of their zone."""
_ABOVE, _BELOW = 70, 50
"""Per cent of a node's memory."""
_MOST_MOVES = 5
_SETTLED_SECONDS = 180.0
_RUN_SECONDS = 300
_MIGRATIONS = path_of("virtualmachineinstancemigrations")
_VMIS = path_of("virtualmachineinstances")


class Start(NamedTuple):
    """A cluster to begin with."""

    nodes: Sequence[Object]
    vmis: Mapping[str, Sequence[Object]]
    """By node."""


class Load(NamedTuple):
    """Of the nodes' memory, by what pods request."""

    deviation: float
    """Sum over nodes of the squared distance from the mean utilisation."""
    peak: float


class Contender(NamedTuple):
    name: str
    run: Callable[[ControlPlane], None]
    """Once, to its end."""


def generated(seed: int) -> Start:
    """Some nodes are nearly full, the others half empty; two zones."""
    random = Random(seed)
    count = 6 + 2 * (seed % 4)
    nodes, vmis = [], {}
    for i in range(count):
        name, zone = f"n{i}", f"z{i % 2}"
        nodes.append(builders.node(name, memory=f"{_NODE_GIB}Gi", labels={ZONE: zone}))
        is_hot = i < count // 3
        left = _NODE_GIB * (random.uniform(0.85, 0.97) if is_hot else random.uniform(0.1, 0.5))
        on_node: list[Object] = []
        while (gib := random.choice(_SIZES_GIB)) + _OVERHEAD_GIB <= left:
            tie = {ZONE: zone} if random.random() < _TIED_SHARE else {}
            vm_name = f"{name}-vm{len(on_node)}"
            on_node.append(builders.vmi(vm_name, guest_memory=f"{gib}Gi", nodeSelector=tie))
            left -= gib + _OVERHEAD_GIB
        vmis[name] = on_node
    return Start(nodes, vmis)


def short_of_cpu() -> Start:
    """Two nodes are nearly full, the others nearly empty; but of the VMs there, one alone finds the
    CPU that it needs elsewhere, and each of them does by itself.
    """
    nodes, vmis = [], {}
    for name, cpu, sizes, cores in (
        *((f"hot{i}", "16", (19, 19, 19), 20) for i in range(2)),
        *((f"cold{i}", "4" if i == 0 else "2", (8,), 8) for i in range(3)),
    ):
        nodes.append(builders.node(name, memory=f"{_NODE_GIB}Gi", cpu=cpu))
        vmis[name] = [
            builders.vmi(f"{name}-vm{i}", guest_memory=f"{gib}Gi", cores=cores)
            for i, gib in enumerate(sizes)
        ]
    return Start(nodes, vmis)


def _lay(plane: ControlPlane, start: Start) -> None:
    reset(plane)
    with plane.api() as api:
        namespace = {"metadata": {"name": "kubevirt-rebalancer"}}
        api.create(path_of("namespaces"), {"apiVersion": "v1", "kind": "Namespace", **namespace})
        add_nodes(api, start.nodes)
        start_vmis(api, start.vmis)


def _load(api: Api) -> Load:
    requested = {node["metadata"]["name"]: 0 for node in api.list(path_of("nodes"))}
    for pod in api.list(path_of("pods")):
        node = pod["spec"].get("nodeName")
        if node in requested and pod["status"]["phase"] in ("Pending", "Running"):
            requested[node] += sum(
                parse_amount(
                    container["resources"].get("requests", {}).get("memory", "0"), "memory"
                )
                for container in pod["spec"]["containers"]
            )
    shares = [amount / (_NODE_GIB * 2**30) for amount in requested.values()]
    mean = sum(shares) / len(shares)
    return Load(sum((share - mean) ** 2 for share in shares), max(shares))


def _settle(api: Api) -> int:
    """Waits until no migration is on its way; how many found no node."""

    def open_vms() -> list[tuple[str, bool]]:
        unplaced = {
            pod["metadata"]["labels"].get("kubevirt.io/created-by")
            for pod in api.list(path_of("pods"), labelSelector="kubevirt.io=virt-launcher")
            if any(
                each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
                for each in pod["status"].get("conditions", [])
            )
        }
        moving = {
            each["spec"]["vmiName"]
            for each in api.list(_MIGRATIONS)
            if each.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        }
        return [
            (vmi["metadata"]["name"], vmi["metadata"]["uid"] in unplaced)
            for vmi in api.list(_VMIS)
            if vmi["metadata"]["name"] in moving
            or vmi["status"].get("evacuationNodeName") == vmi["status"]["nodeName"]
        ]

    def is_settled(vms: Sequence[tuple[str, bool]]) -> bool:
        return all(is_unplaced for _, is_unplaced in vms)

    return len(wait_for(open_vms, is_settled, "migrations to end", _SETTLED_SECONDS))


def _low_node_utilization(name: str, program: Path, arguments: Mapping[str, object]) -> Contender:
    """With what KubeVirt's users set: evictions in background, at most as many as migrations."""
    evictor = {"nodeFit": True, "podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}}
    policy = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "maxNoOfPodsToEvictTotal": _MOST_MOVES,
        "profiles": [
            {
                "name": "spread",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": evictor},
                    {"name": "LowNodeUtilization", "args": arguments},
                ],
                "plugins": {"balance": {"enabled": ["LowNodeUtilization"]}},
            }
        ],
    }

    def run(plane: ControlPlane) -> None:
        file = plane.folder / "descheduler-policy.yaml"
        file.write_text(json.dumps(policy))
        [port] = free_ports(1)
        command = [str(program), f"--policy-config-file={file}", "--descheduling-interval=0"]
        command += ["--feature-gates=EvictionsInBackground=true", "--v=3"]
        command += ["--bind-address=127.0.0.1", f"--secure-port={port}"]
        command += [f"--cert-dir={plane.folder / 'descheduler'}"]
        _call([*command, f"--kubeconfig={plane.kubeconfig()}"], plane.logs / "descheduler.log")

    return Contender(name, run)


def _spread_headroom(name: str, only_above: float) -> Contender:
    """The balance alone, by the same resource; no headroom is asked for."""
    balance = {"resources": ["memory"], "onlyAbove": only_above, "maxMoves": _MOST_MOVES}
    settings = {"headroom": {"failureDomain": "None"}, "balance": balance}
    policy = {
        "apiVersion": "rebalancer/v1alpha1",
        "kind": "RebalancerPolicy",
        "strategies": {
            "FitPendingVMs": {"mode": "Off"},
            "ConsolidateForDrain": {"mode": "Off"},
            "SpreadHeadroom": {"mode": "Automatic", "settings": settings},
        },
    }

    def run(plane: ControlPlane) -> None:
        file = plane.folder / "rebalancer-policy.yaml"
        file.write_text(json.dumps(policy))
        command = [sys.executable, "-m", "rebalancer.cli.main", "run", "--policy", str(file)]
        _call([*command, f"--kubeconfig={plane.kubeconfig()}"], plane.logs / "rebalancer.log")

    return Contender(name, run)


def _call(command: Sequence[str], log: Path) -> None:
    own = {key: value for key, value in os.environ.items() if not key.startswith("REBALANCER_")}
    with log.open("a") as output:
        subprocess.run(
            command, stdout=output, stderr=output, env=own, check=True, timeout=_RUN_SECONDS
        )


def _rows(name: str, contender: Contender, plane: ControlPlane, rounds: int) -> Iterator[str]:
    with plane.api() as api:
        before, moves, unplaced = _load(api), 0, 0
        yield row([name, contender.name, "start", "", "", *_told(before)])
        for number in range(1, rounds + 1):
            contender.run(plane)
            unplaced = _settle(api)
            ended = api.list(_MIGRATIONS)
            done = sum(each["status"]["phase"] == "Succeeded" for each in ended)
            yield row([name, contender.name, number, done - moves, unplaced, *_told(_load(api))])
            moves = done


def _told(load: Load) -> tuple[str, str]:
    return f"{load.deviation:.4f}", f"{load.peak:.0%}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clusters", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--keep", action="store_true", help="the logs, and say where")
    options = parser.parse_args()
    try:
        program = descheduler()
    except UnavailableError as error:
        print(f"the descheduler cannot be had: {error}", file=sys.stderr)
        return 1
    fixed = {"thresholds": {"memory": _BELOW}, "targetThresholds": {"memory": _ABOVE}}
    deviation = {
        "useDeviationThresholds": True,
        **{key: {"memory": 10} for key in ("thresholds", "targetThresholds")},
    }
    contenders = [
        _low_node_utilization(f"descheduler {_BELOW}/{_ABOVE} %", program, fixed),
        _low_node_utilization("descheduler, mean ± 10 %", program, deviation),
        _spread_headroom(f"SpreadHeadroom above {_ABOVE} %", _ABOVE / 100),
        _spread_headroom("SpreadHeadroom always", 0),
    ]
    print(f"{machine()}; at most {_MOST_MOVES} moves a run\n")
    columns = ["cluster", "by", "run", "moves", "without a node", "squared deviation", "peak"]
    print(heading(columns))
    plane = ControlPlane()
    try:
        plane.start()
        seeds = range(options.seed, options.seed + options.clusters)
        starts = {f"seed {seed}": generated(seed) for seed in seeds}
        for shape, start in {**starts, "short of CPU": short_of_cpu()}.items():
            count = sum(map(len, start.vmis.values()))
            name = f"{shape}, {len(start.nodes)} nodes, {count} VMs"
            for contender in contenders:
                _lay(plane, start)
                for line in _rows(name, contender, plane, options.rounds):
                    print(line, flush=True)
    finally:
        plane.stop(keep_folder=options.keep)
        if options.keep:
            print(f"logs: {plane.logs}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
