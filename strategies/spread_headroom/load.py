"""The load that balance evens out: what counts of each node, and whether any is hot."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rebalancer.model.plan import Reason
from rebalancer.planning.measured_load import NodeLoad, NodeLoads, node_loads
from rebalancer.planning.spread_problem import FloatArray
from rebalancer.planning.view import View
from rebalancer.scheduling.state import BoolArray
from rebalancer_strategies.spread_headroom.settings import BalanceSettings, Basis


class Load(NamedTuple):
    """What counts of each node, and what of it goes with each mover. Axis d: resource."""

    what: str
    load: FloatArray
    """(n, d)"""
    capacity: FloatArray
    """(n, d)"""
    mover_load: FloatArray
    """(m, d); nan for a mover of which it is not known."""
    counts: BoolArray
    """(n,)"""
    is_hot: bool
    notes: tuple[Reason, ...] = ()
    names: Sequence[str] = ()

    @property
    def _utilisation(self) -> FloatArray:
        shares = (self.load / np.maximum(self.capacity, 1)).max(axis=1)
        return np.where(self.counts, shares, -np.inf)

    @property
    def highest(self) -> float:
        return float(self._utilisation.max())

    @property
    def busiest(self) -> str:
        return self.names[int(self._utilisation.argmax())]


def load_of(settings: BalanceSettings, view: View) -> Load:
    """As pods request it, or as it was measured."""
    state = view.state
    names = [node.name for node in state.nodes]
    is_open = state.is_ready & ~state.is_unschedulable & ~state.is_draining
    if settings.by is Basis.MEASURED_LOAD:
        loads = node_loads(view.snapshot, view.context.measured_load)
        return _measured(loads, settings, view, is_open)
    resources = settings.resources
    load = np.column_stack([state.requested(r) for r in resources]).astype(np.float64)
    capacity = np.column_stack([state.allocatable(r) for r in resources]).astype(np.float64)
    released = [[kind.released.get(r, 0) for r in resources] for kind in view.movers.kinds.found]
    mover_load = np.array(released, np.float64).reshape(-1, len(resources))[view.movers.kind]
    counts = is_open & (capacity > 0).all(axis=1) & _takes_part(view)
    shares = (load / np.maximum(capacity, 1))[counts]
    is_hot = bool((shares > settings.only_above).any())
    what = f"requested {' or '.join(resources)}"
    return Load(what, load, capacity, mover_load, counts, is_hot, names=names)


def _takes_part(view: View) -> BoolArray:
    """Nodes that VMs may come to or leave; others, such as control planes, are no measure."""
    takes_part = np.zeros(len(view.state.nodes), np.bool_)
    for rules in view.movers.classes:
        takes_part |= rules.allowed
    takes_part[view.movers.source] = True
    return takes_part


def _measured(loads: NodeLoads, settings: BalanceSettings, view: View, is_open: BoolArray) -> Load:
    state, measured = view.state, view.snapshot.measured_load
    resource = view.context.measured_load.resource
    names = [node.name for node in state.nodes]
    capacity = state.allocatable(resource).astype(np.float64)
    is_sampled = state.mask(name in loads.by_node for name in names)
    shares = [loads.by_node[n].share if n in loads.by_node else 0.0 for n in names]
    usage = measured.usage if measured else {}
    mover_load = [float(usage.get(vmi.key, np.nan)) for vmi in view.movers.vmis]
    counts = is_open & is_sampled & (capacity > 0) & _takes_part(view)
    counted = [loads.by_node[n] for n, does in zip(names, counts, strict=True) if does]
    waiting = [
        Reason("under-pressure", _pressure(loads.by_node[name], resource), node=name)
        for name, is_counted in zip(names, counts, strict=True)
        if is_counted and loads.by_node[name].is_under_pressure(settings.only_above_pressure)
    ]
    is_hot = bool(waiting) or any(each.is_hot(settings.only_above) for each in counted)
    return Load(
        f"measured {resource}",
        (np.array(shares) * capacity)[:, None],
        capacity[:, None],
        np.array(mover_load, np.float64)[:, None],
        counts,
        is_hot,
        (*waiting, *loads.left_out),
        names,
    )


def _pressure(load: NodeLoad, resource: str) -> str:
    lowest, highest = min(load.latest_pressure), max(load.latest_pressure)
    return f"tasks wait for {resource} {lowest:.0%} to {highest:.0%} of the time"
