"""Why a VM has nowhere to go is told in a line that does not grow with the cluster."""

import pytest
from msgspec.structs import replace

from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.no_other_node import no_other_node
from tests.builders import cluster, node, vm
from tests.drain.views import view_of

CASES = {
    "there is no other node": (cluster(node("n1"), vm("a", on="n1")), "there is none"),
    "few nodes are named": (
        cluster(
            node("n1"),
            node("n2", is_unschedulable=True),
            node("n3", drain_sign="to be emptied"),
            vm("a", on="n1"),
        ),
        "n2: NodeUnschedulable; n3: being drained",
    ),
    "of many the number is told, and of room the most there is": (
        cluster(
            node("n1"),
            *(node(f"small-{i}", memory=f"{i}Gi") for i in range(1, 6)),
            *(node(f"closed-{i}", is_unschedulable=True) for i in range(4)),
            vm("a", on="n1", memory="8Gi"),
        ),
        "4 nodes: NodeUnschedulable; 5 nodes: memory: needs 8589934592 (8192 MiB),"
        " headroom 5120 MiB of 5120 MiB on small-5, the roomiest",
    ),
    "a fuller node that has room is not the roomiest of those without": (
        cluster(
            node("n0", is_unschedulable=True),
            node("n1"),
            node("n2", memory="1Gi"),
            node("n3", memory="1Gi"),
            vm("a", on="n1", memory="2Gi"),
        ),
        "n0: NodeUnschedulable; n2, n3: memory: needs 2147483648 (2048 MiB),"
        " headroom 1024 MiB of 1024 MiB on n2, the roomiest",
    ),
}


@pytest.mark.parametrize(("snapshot", "bars"), CASES.values(), ids=CASES.keys())
def test_what_bars_the_vm_from_every_other_node(snapshot: Snapshot, bars: str) -> None:
    view = view_of(snapshot)
    [refusal] = no_other_node(view.movers.movers, view.state)
    assert refusal.message == f"no other node takes it now ({bars})"


def test_one_vms_own_launcher_bars_no_other_that_is_like_it() -> None:
    launched = [vm(f"vm-{i}", on=f"n{i}", memory="8Gi") for i in (1, 2, 3)]
    _, first = launched[0]
    # As the reader has it, equal requests and selectors are one object.
    same = {
        "requests": first.requests,
        "node_selector": first.node_selector,
        "launcher_containers": first.launcher_containers,
    }
    view = view_of(
        cluster(
            *(node(name, memory="10Gi") for name in ("n1", "n2", "n3")),
            *((vmi, replace(launcher, **same)) for vmi, launcher in launched),
        )
    )
    assert len(view.movers.kinds.found) == len(view.movers.classes) == 1
    for refusal in no_other_node(view.movers.movers, view.state):
        assert "InterPodAffinity" not in refusal.message
        assert "memory: needs 8589934592" in refusal.message
