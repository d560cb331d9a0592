"""Clusters as drains see them."""

from hypothesis import strategies as st

from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.view import View
from tests.builders import Thing, cluster, node, pod, vm


def view(*things: Thing) -> View:
    return view_of(cluster(*things))


def view_of(snapshot: Snapshot, context: PlanningContext | None = None) -> View:
    """Planned by direct search alone, without a solver."""
    return View(snapshot, context or PlanningContext(), lambda _problem, known: known)


@st.composite
def small_clusters(draw: st.DrawFn) -> Snapshot:
    """Three or four nodes of 8 GiB with small VMs, and other pods that take room."""
    names = [f"n{i}" for i in range(draw(st.integers(3, 4)))]
    things: list[Thing] = [node(name, memory="8Gi") for name in names]
    for name in names:
        sizes = draw(st.lists(st.integers(1, 3), max_size=2))
        things += [vm(f"{name}-{i}", on=name, memory=f"{size}Gi") for i, size in enumerate(sizes)]
        if taken := draw(st.integers(0, 2)):
            things.append(pod(f"fixed-{name}", on=name, memory=f"{taken}Gi"))
    return cluster(*things)
