"""Asks proxlb-solver; runs in its own virtual environment and imports nothing of the project.

The pending VM is one whose node is gone, and balanciness 1 moves only what must move, so that the
fewest MiB are copied. See instance.py and answer.py for what it reads and prints.
"""

import sys
import time
from pathlib import Path

from proxlb_solver import VM, Balancing, Cluster, Constraints, Node, solve_reachable
from proxlb_solver.models import Expect

_PENDING = "pending"
_MIB = 2**20


def _cluster(path: str) -> Cluster:
    nodes: list[Node] = []
    classes: list[list[str]] = []
    vms: list[VM] = []
    pins: list[dict[str, object]] = []
    for line in Path(path).read_text().splitlines():
        word, *rest = line.split()
        if word == "node":
            cpu, memory = map(int, rest)
            # Millicores pass for cores: all that matters is that they add up.
            nodes.append(Node(name=str(len(nodes)), cpu_total=cpu, memory_total=memory * _MIB))
        elif word == "class":
            classes.append(rest)
        else:
            node, cpu_, memory_, kind = rest
            is_pending = word == _PENDING
            name, home = (_PENDING, "gone") if is_pending else (str(len(vms)), node)
            vms.append(VM(name=name, node=home, cpu=int(cpu_), memory=int(memory_) * _MIB))
            stays = [] if is_pending else [node]
            pins.append({"vm": name, "nodes": [*classes[int(kind)], *stays]})
    return Cluster(
        name="fit",
        description="",
        balancing=Balancing(balanciness=1, cpu_overcommit=1.0),
        nodes=nodes,
        vms=vms,
        constraints=Constraints(pin=pins),
        expect=Expect(),
    )


def main() -> None:
    cluster = _cluster(sys.argv[1])
    start = time.perf_counter()
    solution, plan = solve_reachable(cluster, total_time_limit_s=float(sys.argv[2]))
    print(f"seconds {time.perf_counter() - start:.3f}")
    if not solution.feasible:
        is_sure = solution.stats.status == "INFEASIBLE"
        print(f"status {'impossible' if is_sure else 'none'}")
        return
    if not (solution.path_feasible and plan.path_feasible):
        print("status none")
        return
    is_first = solution.reachability_attempts == 1 and not plan.temp_moves
    print(f"status {'proven' if solution.stats.status == 'OPTIMAL' and is_first else 'found'}")
    for step in plan.steps:
        for move in step.migrations:
            if move.vm == _PENDING:
                print(f"landing {move.target}")
            else:
                print(f"move {move.vm} {move.target}")


if __name__ == "__main__":
    main()
