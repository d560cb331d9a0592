"""From load to the arrays of a spread problem."""

from datetime import timedelta

import numpy as np

from rebalancer.planning.cost import prefers_no_eviction
from rebalancer.planning.movers import Mover, move_problem, resources_in_play
from rebalancer.planning.spread_problem import Measure, SpreadProblem
from rebalancer.planning.view import View
from rebalancer_strategies.spread_headroom.load import Load
from rebalancer_strategies.spread_headroom.settings import BalanceSettings

_MEASURES = {"SquaredDeviation": Measure.SQUARED_DEVIATION, "Peak": Measure.PEAK}


def balance_problem(found: Load, settings: BalanceSettings, view: View) -> SpreadProblem:
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
