"""Clusters in the text format of ganeti-htools, and what its hbal makes of them: hbal(1).

CPUs are millicores, and what pods take that are no VMs is taken off their nodes. Ganeti knows
nothing of rules about where a VM may go: `anywhere` gives it clusters without any.
"""

import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.generator import CPU, MEMORY, Cluster
from rebalancer.planning.problem import Moves

ANY_SIZE = "128,1,0,0,1,1|128,1,0,0,1,1;1048576,1000000,1048576,16,8,12"
"""Of VMs: the least and the most MiB and millicores, and what is usual."""
_MOVE = re.compile(r"^ *\d+\. vm(\d+) +n\d+ +=> +n(\d+) ", re.MULTILINE)
_SCORE = re.compile(r"^Initial score: ([\d.]+)", re.MULTILINE)


class Balanced(NamedTuple):
    """What hbal would do, and its score before that; the lower the better."""

    moves: Moves
    score: float
    seconds: float


def anywhere(cluster: Cluster) -> Cluster:
    """The same cluster where every VM may go to every node."""
    return cluster._replace(
        vm_class=np.zeros_like(cluster.vm_class),
        vm_group=np.full_like(cluster.vm_group, -1),
        vm_is_pinned=np.zeros_like(cluster.vm_is_pinned),
        allowed=np.ones((1, len(cluster.allocatable)), np.bool_),
    )


def cluster_text(cluster: Cluster, sizes: str = ANY_SIZE) -> str:
    """Groups, nodes, instances, the cluster's tags (none) and policies: see hspace(1).

    A node has one CPU more than it has for VMs, since Ganeti keeps one for itself.
    """
    capacity = cluster.allocatable.copy()
    np.subtract.at(capacity, cluster.pod_node, cluster.pod_request)
    headroom = cluster.headroom
    nodes = [
        f"n{i}|{row[MEMORY]}|0|{headroom[i, MEMORY]}|1000000|1000000|{row[CPU] + 1}|N|g1|1"
        for i, row in enumerate(capacity)
    ]
    vms = zip(cluster.vm_node.tolist(), cluster.vm_request.tolist(), strict=True)
    instances = [
        f"vm{i}|{request[MEMORY]}|0|{request[CPU]}|running|Y|n{node}||ext||1"
        for i, (node, request) in enumerate(vms)
    ]
    policy = f"{sizes}|diskless,plain,drbd,rbd,ext|1.0|32.0"
    sections = ["default|g1|preferred||", "\n".join(nodes), "\n".join(instances)]
    return "\n\n".join(sections) + f"\n\n\n|{policy}\ndefault|{policy}\n"


def hbal(cluster: Cluster, options: Sequence[str], limit_seconds: float) -> Balanced | None:
    """None if it was not done by then: it tells nothing before.

    Its score counts what is requested, not loads that it would make up where none are measured.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".data") as file:
        file.write(cluster_text(cluster))
        file.flush()
        # A policy's CPU ratio alone does not stop it from overfilling.
        command = ["hbal", "--max-cpu=1", "--ignore-dynu", "-t", file.name, *options]
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=limit_seconds
            )
        except subprocess.TimeoutExpired:
            return None
    seconds = time.perf_counter() - start
    moves = tuple((int(vm), int(node)) for vm, node in _MOVE.findall(done.stdout))
    score = _SCORE.search(done.stdout)
    if score is None:
        raise ValueError(f"hbal tells no score: {done.stdout[-300:]}")
    return Balanced(moves, float(score[1]), seconds)


def moved(cluster: Cluster, moves: Moves) -> Cluster:
    """The cluster once the moves have been made."""
    vm_node = cluster.vm_node.copy()
    for vm, node in moves:
        vm_node[vm] = node
    return cluster._replace(vm_node=vm_node)
