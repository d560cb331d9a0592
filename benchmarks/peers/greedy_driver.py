"""Evicts as a descheduler would and lets a scheduler place: no chain of moves, no look ahead.

For each node that the pending VM may land on: the largest VMs that have a home go first, each to
the tightest fit, until there is room. Of all nodes the one that costs the fewest MiB is taken.
Imports nothing of the project; see instance.py and answer.py for what it reads and prints.
"""

import sys
import time
from pathlib import Path
from typing import NamedTuple


class VM(NamedTuple):
    node: int
    cpu: int
    memory: int
    homes: frozenset[int]


def _read(path: str) -> tuple[list[list[int]], list[VM], VM]:
    """Room on each node, the VMs, and the pending one."""
    room: list[list[int]] = []
    classes: list[frozenset[int]] = []
    vms: list[VM] = []
    for line in Path(path).read_text().splitlines():
        word, *rest = line.split()
        numbers = [int(number) for number in rest]
        if word == "node":
            room.append(numbers)
        elif word == "class":
            classes.append(frozenset(numbers))
        else:
            vms.append(VM(numbers[0], numbers[1], numbers[2], classes[numbers[3]]))
    pending = vms.pop()
    for vm in vms:
        room[vm.node][0] -= vm.cpu
        room[vm.node][1] -= vm.memory
    return room, vms, pending


def _fits(vm: VM, room: list[int]) -> bool:
    return vm.cpu <= room[0] and vm.memory <= room[1]


def _clear(
    node: int, room: list[list[int]], vms: list[VM], pending: VM
) -> list[tuple[int, int]] | None:
    room = [list(amounts) for amounts in room]
    moves = []
    here = sorted((i for i, vm in enumerate(vms) if vm.node == node), key=lambda i: -vms[i].memory)
    for index in here:
        if _fits(pending, room[node]):
            break
        vm = vms[index]
        homes = [target for target in vm.homes if target != node and _fits(vm, room[target])]
        if not homes:
            continue
        target = min(homes, key=lambda home: (room[home][1], home))
        room[target][0] -= vm.cpu
        room[target][1] -= vm.memory
        room[node][0] += vm.cpu
        room[node][1] += vm.memory
        moves.append((index, target))
    return moves if _fits(pending, room[node]) else None


def main() -> None:
    room, vms, pending = _read(sys.argv[1])
    start = time.perf_counter()
    plans = [
        (sum(vms[vm].memory for vm, _ in moves), node, moves)
        for node in sorted(pending.homes)
        if (moves := _clear(node, room, vms, pending)) is not None
    ]
    print(f"seconds {time.perf_counter() - start:.4f}")
    if not plans:
        print("status none")
        return
    _, node, moves = min(plans)
    print(f"status found\nlanding {node}")
    for vm, target in moves:
        print(f"move {vm} {target}")


if __name__ == "__main__":
    main()
