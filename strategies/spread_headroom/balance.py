"""The goal of evening out load."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.model.plan import Goal, Proposal, Reason, Subject, Verdict
from rebalancer.model.wording import count_of
from rebalancer.planning import checker
from rebalancer.planning.cost import prefers_no_eviction
from rebalancer.planning.measured_load import NodeLoad, NodeLoads, node_loads
from rebalancer.planning.movers import (
    MILLISECONDS,
    Mover,
    move_problem,
    resources_in_play,
    to_moves,
)
from rebalancer.planning.problem import Moves
from rebalancer.planning.spread import even_out
from rebalancer.planning.spread_problem import FloatArray, Measure, SpreadProblem
from rebalancer.planning.view import View
from rebalancer.scheduling.state import BoolArray
from rebalancer_strategies.spread_headroom.goals import NAME, migrations
from rebalancer_strategies.spread_headroom.headroom import Headroom
from rebalancer_strategies.spread_headroom.settings import BalanceSettings, Basis

_MEASURES = {"SquaredDeviation": Measure.SQUARED_DEVIATION, "Peak": Measure.PEAK}
_WHAT = {Basis.REQUESTS: "requests", Basis.MEASURED_LOAD: "measured load"}


def balance_proposal(settings: BalanceSettings, headroom: Headroom) -> Proposal:
    """At most so many moves that are each worth their cost, and together cost no headroom."""
    view = headroom.view
    goal = Goal(
        NAME,
        Subject("Balance", "", _WHAT[settings.by], "balance"),
        Verdict.MET,
        is_divisible=True,
    )
    found = _load(settings, view)
    if not found.counts.any():
        return Proposal(replace(goal, verdict=Verdict.UNPROVEN, reasons=found.notes))
    goal = replace(goal, figures={"highestUtilisation": found.highest, **goal.figures})
    share = f"{found.highest:.0%} of {found.what}"
    if not found.is_hot:
        calm = f"the busiest node is at {share}; nothing moves below {settings.only_above:.0%}"
        return Proposal(replace(goal, reasons=(Reason("calm", calm), *found.notes)))
    hot = Reason("hot", f"the busiest node is at {share}", node=found.busiest)
    if view.snapshot.migrations_in_flight:
        reasons = (hot, migrations(view), *found.notes)
        return Proposal(replace(goal, verdict=Verdict.WAITING, reasons=reasons))
    problem = _problem(found, settings, view)
    moves = even_out(problem).moves
    for count in range(len(moves), 0, -1):
        proposal = _planned(goal, moves[:count], problem, view)
        if proposal is not None and headroom.is_kept_by(proposal.moves):
            reasons = (hot, *proposal.goal.reasons, *found.notes)
            return replace(proposal, goal=replace(proposal.goal, reasons=reasons))
    why = "no migrations lower it by what they cost"
    if moves:
        why = "migrations that would lower it break a rule, or leave too little headroom"
    return Proposal(replace(goal, reasons=(hot, Reason("no-gain", why), *found.notes)))


class _Load(NamedTuple):
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


def _load(settings: BalanceSettings, view: View) -> _Load:
    state = view.state
    names = [node.name for node in state.nodes]
    is_open = state.is_ready & ~state.is_unschedulable & ~state.is_draining
    if settings.by is Basis.MEASURED_LOAD:
        loads = node_loads(view.snapshot, view.context.measured_load)
        return _measured(loads, settings, view, is_open)
    resources = settings.resources
    load = np.column_stack([state.requested(r) for r in resources]).astype(np.float64)
    capacity = np.column_stack([state.allocatable(r) for r in resources]).astype(np.float64)
    movers = [[mover.released.get(r, 0) for r in resources] for mover in view.movers.movers]
    mover_load = np.array(movers, np.float64).reshape(len(movers), len(resources))
    counts = is_open & (capacity > 0).all(axis=1) & _takes_part(view)
    shares = (load / np.maximum(capacity, 1))[counts]
    is_hot = bool((shares > settings.only_above).any())
    what = f"requested {' or '.join(resources)}"
    return _Load(what, load, capacity, mover_load, counts, is_hot, names=names)


def _takes_part(view: View) -> BoolArray:
    """Nodes that VMs may come to or leave; others, such as control planes, are no measure."""
    takes_part = np.zeros(len(view.state.nodes), np.bool_)
    for rules in view.movers.classes:
        takes_part |= rules.allowed
    for mover in view.movers.movers:
        takes_part[mover.source] = True
    return takes_part


def _measured(loads: NodeLoads, settings: BalanceSettings, view: View, is_open: BoolArray) -> _Load:
    state, measured = view.state, view.snapshot.measured_load
    resource = view.context.measured_load.resource
    names = [node.name for node in state.nodes]
    capacity = state.allocatable(resource).astype(np.float64)
    is_sampled = state.mask(name in loads.by_node for name in names)
    shares = [loads.by_node[n].share if n in loads.by_node else 0.0 for n in names]
    usage = measured.usage if measured else {}
    mover_load = [float(usage.get(mover.vmi.key, np.nan)) for mover in view.movers.movers]
    counts = is_open & is_sampled & (capacity > 0) & _takes_part(view)
    counted = [loads.by_node[n] for n, does in zip(names, counts, strict=True) if does]
    waiting = [
        Reason("under-pressure", _pressure(loads.by_node[name], resource), node=name)
        for name, is_counted in zip(names, counts, strict=True)
        if is_counted and loads.by_node[name].is_under_pressure(settings.only_above_pressure)
    ]
    is_hot = bool(waiting) or any(each.is_hot(settings.only_above) for each in counted)
    return _Load(
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


def _problem(found: _Load, settings: BalanceSettings, view: View) -> SpreadProblem:
    """Movers that must stay for this goal are of a class that may go nowhere."""
    base = move_problem(view.movers, view.context, resources_in_play(view.movers))
    rows = [*base.allowed, np.zeros(base.node_count, np.bool_)]
    charges = [*base.charge, np.zeros(base.node_count, np.int64)]
    nowhere = len(base.allowed)
    classes = base.mover_class.copy()
    for index, mover in enumerate(view.movers.movers):
        if not _may_be_moved(mover, view) or np.isnan(found.mover_load[index]).any():
            classes[index] = nowhere
        elif left := _left_lately(mover, settings, view):
            number = int(classes[index])
            rows.append(rows[number] & ~view.state.mask(n.name in left for n in view.state.nodes))
            charges.append(charges[number])
            classes[index] = len(rows) - 1
    kept_apart = {
        "mover_class": classes,
        "allowed": np.array(rows),
        "charge": np.array(charges),
        "max_moves": settings.max_moves,
    }
    return SpreadProblem(
        **(base.fields() | kept_apart),
        load=found.load,
        capacity=np.maximum(found.capacity, 1),
        mover_load=np.nan_to_num(found.mover_load),
        counts=found.counts,
        measure=_MEASURES[settings.measure],
        min_gain_per_cost_second=settings.min_gain_per_cost_second,
    )


def _may_be_moved(mover: Mover, view: View) -> bool:
    """For no one's need, neither a paused VM is moved nor one that would rather stay."""
    pod = view.snapshot.launchers_by_vmi[mover.vmi.uid][0]
    return not (mover.vmi.is_paused or prefers_no_eviction(mover.vmi, pod))


def _left_lately(mover: Mover, settings: BalanceSettings, view: View) -> set[str]:
    since = view.snapshot.taken_at - timedelta(seconds=settings.no_return_seconds)
    return {
        migration.source_node_name
        for migration in view.snapshot.migrations_by_vmi.get(mover.vmi.key, ())
        if migration.ended_at is not None and migration.ended_at > since
    } - {""}


def _planned(goal: Goal, moves: Moves, problem: SpreadProblem, view: View) -> Proposal | None:
    """None where so many of the moves are not worth it, or break a rule together."""
    before, after = problem.value, problem.after(moves).value
    if before - after <= problem.price(moves):
        return None
    planned = to_moves(moves, problem, view.movers, view.context)
    text = (
        f"{count_of(len(planned), 'migration')} would lower the {problem.measure.value} from"
        f" {before:.4f} to {after:.4f}"
    )
    goal = replace(
        goal,
        verdict=Verdict.PLANNED,
        reasons=(Reason("evens-out", text),),
        cost=problem.cost(moves) / MILLISECONDS,
        move_ids=tuple(move.id for move in planned),
        figures={**goal.figures, "before": before, "after": after},
    )
    if checker.violations(view.snapshot, [goal], planned):
        return None
    return Proposal(goal, planned)
