"""The object that a person means by a name."""

from collections.abc import Iterable
from difflib import get_close_matches

from rebalancer.errors import InputError
from rebalancer.model.objects import Node, VirtualMachineInstance
from rebalancer.model.snapshot import Snapshot

_FEW = 10
"""Names that an error lists in full."""


def find_vmi(snapshot: Snapshot, name: str) -> VirtualMachineInstance:
    """The VMI called `namespace/name`, or `name` where only one namespace has one of that name.

    Raises: InputError that says which names are meant, or come close.
    """
    by_name: dict[str, list[VirtualMachineInstance]] = {}
    for vmi in snapshot.vmis:
        for known in (vmi.name, str(vmi.key)):
            by_name.setdefault(known, []).append(vmi)
    matches = by_name.get(name, [])
    if len(matches) == 1:
        return matches[0]
    if matches:
        keys = ", ".join(sorted(str(vmi.key) for vmi in matches))
        raise InputError(f"VirtualMachineInstance {name} could be any of these, name one: {keys}")
    raise _unknown("VirtualMachineInstance", name, by_name, len(snapshot.vmis))


def find_node(snapshot: Snapshot, name: str) -> Node:
    """Raises: InputError that says which name comes close, or which there are if they are few."""
    nodes = snapshot.node_by_name
    if name not in nodes:
        raise _unknown("Node", name, nodes, len(nodes), nodes if len(nodes) <= _FEW else ())
    return nodes[name]


def _unknown(
    kind: str, name: str, known: Iterable[str], count: int, listed: Iterable[str] = ()
) -> InputError:
    close = get_close_matches(name, known, n=1)
    names = ", ".join(listed)
    hint = f"; did you mean {close[0]}?" if close else f": {names}" if names else ""
    return InputError(f"{kind} {name} is none of the {count} there are{hint}")
