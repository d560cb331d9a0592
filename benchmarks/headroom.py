"""What the loss of each single node means, and how many VMs still fit: how long that takes.

    python -m benchmarks.headroom

In the same run, for comparison: a plain loop that asks one node after the other for each VM, for
some of the losses; and Ganeti's hspace, which counts how many VMs of a size fit.
"""

import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from functools import partial
from typing import Annotated

import typer

from benchmarks.cluster_snapshot import snapshot_of
from benchmarks.generator import MEMORY, Cluster, Recipe, generate
from benchmarks.measure import measure
from benchmarks.peers.ganeti import cluster_text
from benchmarks.report import duration, heading, machine, row
from rebalancer.headroom.capacity import VMSize, capacity
from rebalancer.headroom.failover import (
    Failover,
    Verdict,
    failover,
    node_domains,
    zone_domains,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.state import ClusterState

_SIZES_GIB = (8, 32, 64)
_MILLICORES_PER_GIB = 250
_SAMPLE = 25
"""Losses that the plain loop looks at."""


def losses(snapshot: Snapshot, *, of_zones: bool = False) -> Failover:
    """From a snapshot that nobody has looked at yet."""
    state = ClusterState(snapshot)
    return failover(state, zone_domains(state) if of_zones else node_domains(state))


def plain_loop(cluster: Cluster, nodes: range) -> int:
    """How many of these nodes' losses it finds to be survived: the largest VM first, each on the
    first node that takes it. Anti-affinity is left out.
    """
    headroom = cluster.headroom.tolist()
    allowed = cluster.allowed.tolist()
    requests = cluster.vm_request.tolist()
    classes = cluster.vm_class.tolist()
    on: dict[int, list[int]] = {}
    for vm, node in enumerate(cluster.vm_node.tolist()):
        on.setdefault(node, []).append(vm)
    survived = 0
    for lost in nodes:
        left = [row.copy() for row in headroom]
        vms = sorted(on.get(lost, ()), key=lambda vm: requests[vm][MEMORY], reverse=True)
        survived += all(_place(requests[vm], allowed[classes[vm]], left, lost) for vm in vms)
    return survived


def _place(request: list[int], allowed: list[bool], left: list[list[int]], lost: int) -> bool:
    for node, room in enumerate(left):
        if (
            node != lost
            and allowed[node]
            and all(a >= b for a, b in zip(room, request, strict=True))
        ):
            left[node] = [a - b for a, b in zip(room, request, strict=True)]
            return True
    return False


def hspace_input(cluster: Cluster, mebibytes: int, millicores: int) -> str:
    """With no other size allowed, else hspace first fills the cluster with VMs of all sizes."""
    size = f"{mebibytes},{millicores}"
    return cluster_text(cluster, f"{size},0,0,1,1|{size},0,0,1,1;{size},1048576,16,8,12")


def hspace(cluster: Cluster, mebibytes: int, millicores: int, limit_seconds: float) -> list[str]:
    """How many VMs it counts, and in what time, reading included."""
    if shutil.which("hspace") is None:
        return ["not installed (ganeti-htools)", ""]
    with tempfile.NamedTemporaryFile("w", suffix=".data") as file:
        file.write(hspace_input(cluster, mebibytes, millicores))
        file.flush()
        command = ["hspace", "-t", file.name, "--no-capacity-checks", "--disk-template=ext"]
        command += [f"--standard-alloc=0,{mebibytes},{millicores}", "--max-cpu=1"]
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [*command, "--machine-readable=yes"],
                capture_output=True,
                text=True,
                check=True,
                timeout=limit_seconds,
            )
        except subprocess.TimeoutExpired:
            return ["none", f"stopped after {limit_seconds:g} s"]
        seconds = time.perf_counter() - start
    count = re.search(r"HTS_ALLOC_INSTANCES=(\d+)", done.stdout)
    return [count[1] if count else "none", duration(seconds)]


def main(
    shape: Annotated[str, typer.Option(help="A shape of benchmarks.generator.")] = "5000/100000",
    seed: int = 0,
    fills: Annotated[list[float], typer.Option("--fill")] = [0.7, 0.85, 0.95],  # noqa: B006
    mode: Annotated[str, typer.Option(help="How the cluster came about.")] = "hole2",
    limit: Annotated[float, typer.Option(help="Seconds for each count of hspace.")] = 60,
) -> None:
    """Prints the verdicts, the counts and the times."""
    print(machine())
    print(f"\n{shape}, {mode}, seed {seed}\n")
    columns = ["fill", "domains", "survives", "leaves down", "not proven", "time", "plain loop"]
    print(heading(columns))
    clusters = [generate(Recipe(shape, fill, seed, mode)) for fill in fills]
    for fill, cluster in zip(fills, clusters, strict=True):
        if cluster is not None:
            _print_losses(fill, cluster)
    print(f"\n{heading(['fill', 'GiB', 'fit', 'time', 'hspace', 'time'])}")
    for fill, cluster in zip(fills, clusters, strict=True):
        if cluster is not None:
            _print_counts(fill, cluster, limit)


def _print_losses(fill: float, cluster: Cluster) -> None:
    snapshot = snapshot_of(cluster)
    nodes = range(0, len(cluster.allocatable), max(1, len(cluster.allocatable) // _SAMPLE))
    loop = measure(lambda: plain_loop(cluster, nodes))
    whole_loop = loop.core_seconds * len(cluster.allocatable) / len(nodes)
    for name, of_zones in (("nodes", False), ("zones", True)):
        measured = measure(partial(losses, snapshot, of_zones=of_zones))
        verdicts = Counter(loss.verdict for loss in measured.value.losses)
        counts = [verdicts[verdict] for verdict in Verdict]
        beside = "" if of_zones else f"{duration(whole_loop)} (from {len(nodes)})"
        domains = f"{len(measured.value.losses)} {name}"
        print(row([fill, domains, *counts, duration(measured.core_seconds), beside]))


def _print_counts(fill: float, cluster: Cluster, limit_seconds: float) -> None:
    state = ClusterState(snapshot_of(cluster))
    for gib in _SIZES_GIB:
        mebibytes, millicores = gib * 1024 + 200 + 4 * gib, gib * _MILLICORES_PER_GIB
        size = VMSize(f"{gib} GiB", {"cpu": millicores, "memory": mebibytes * 2**20})
        measured = measure(partial(capacity, state, [size]))
        counted = hspace(cluster, mebibytes, millicores, limit_seconds)
        taken = duration(measured.core_seconds)
        print(row([fill, gib, measured.value[0].fits, taken, *counted]))


if __name__ == "__main__":
    typer.run(main)
