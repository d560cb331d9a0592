"""Lets Ganeti's hbal spread the VMs, and looks whether the pending one happens to fit then.

It has no goal of making room, and knows nothing of nodes that a VM may not go to. Imports nothing
of the project; see instance.py and answer.py for what it reads and prints.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# group | nodes | instances | tags | policies, as ganeti-htools' text backend has them: hbal(1).
_LIMITS = "1048576,1000000,1048576,16,8,12"
_POLICY = f"128,1,0,0,1,1|128,1,0,0,1,1;{_LIMITS}|diskless,plain,drbd,rbd,ext|1.0|32.0"
_MOVE = re.compile(r"\s*\d+\.\s+vm(\d+)\s+n\d+\s+=>\s+n(\d+)\s")


def _text(path: str) -> tuple[str, list[list[int]], list[list[int]], list[int]]:
    """hbal's input, room on each node, the VMs, and the pending one."""
    room: list[list[int]] = []
    classes: list[list[int]] = []
    vms: list[list[int]] = []
    for line in Path(path).read_text().splitlines():
        word, *rest = line.split()
        numbers = [int(number) for number in rest]
        {"node": room, "class": classes}.get(word, vms).append(numbers)
    pending = vms.pop()
    capacity = [tuple(amounts) for amounts in room]
    for node, cpu, memory, _ in vms:
        room[node][0] -= cpu
        room[node][1] -= memory
    nodes = [
        f"n{i}|{memory}|0|{room[i][1]}|1000000|1000000|{cpu}|N|g1|1"
        for i, (cpu, memory) in enumerate(capacity)
    ]
    instances = [
        f"vm{i}|{memory}|0|{cpu}|running|Y|n{node}||ext||1"
        for i, (node, cpu, memory, _) in enumerate(vms)
    ]
    sections = ["default|g1|preferred||", "\n".join(nodes), "\n".join(instances), ""]
    policies = f"|{_POLICY}\ndefault|{_POLICY}\n"
    return "\n\n".join([*sections, policies]), room, vms, [*pending[1:3], *classes[pending[3]]]


def main() -> None:
    text, room, vms, (cpu, memory, *homes) = _text(sys.argv[1])
    with tempfile.NamedTemporaryFile("w", suffix=".data") as file:
        file.write(text)
        file.flush()
        start = time.perf_counter()
        # A policy's CPU ratio alone does not stop it from overfilling.
        command = ["hbal", "--max-cpu=1", "-t", file.name]
        limit = float(sys.argv[2])
        try:
            found = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            # It tells nothing before it is done.
            print(f"seconds {limit}\nstatus none")
            return
    print(f"seconds {time.perf_counter() - start:.3f}")
    moves = [(int(vm), int(node)) for vm, node in _MOVE.findall(found.stdout)]
    for vm, target in moves:
        source = vms[vm][0]
        for resource in (0, 1):
            room[source][resource] += vms[vm][1 + resource]
            room[target][resource] -= vms[vm][1 + resource]
        vms[vm][0] = target
    landing = [node for node in homes if room[node][0] >= cpu and room[node][1] >= memory]
    print("status found" if landing else "status none")
    if landing:
        print(f"landing {landing[0]}")
    for vm, target in moves:
        print(f"move {vm} {target}")


if __name__ == "__main__":
    main()
