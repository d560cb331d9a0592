"""Room for pods that do not exist: VMs that a loss would stop, or VMs to come."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Move, Refusal
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.fit import solve_wherever_pods_are
from rebalancer.planning.movers import MILLISECONDS, fit_problem, to_moves
from rebalancer.planning.problem import INFINITE
from rebalancer.planning.replay import carried_out
from rebalancer.planning.view import View
from rebalancer.policy.model import HoldKind
from rebalancer.scheduling.feasibility import Feasibility, evaluate


class MadeRoom(NamedTuple):
    """Moves after which pods have places beside each other, and those that still have none."""

    moves: tuple[Move, ...] = ()
    cost_seconds: float = 0.0
    is_proven: bool = True
    """Nothing cheaper makes that room."""
    without: tuple[Pod, ...] = ()
    is_impossible: bool = False
    """Proven for the first of those without a place, where all before it are placed."""


def make_room(pods: Sequence[Pod], view: View) -> MadeRoom:
    """Places the pods in their order, each in the tightest room there is, else by moving VMs.

    Moves for a later pod wait for all those for earlier ones, and move other VMs. Nothing is held:
    no pod waits for that room.
    """
    view = replace(view, context=_without_holds(view.context))
    made = MadeRoom()
    for pod in pods:
        answer = evaluate(pod, view.state)
        if answer.feasible.any():
            view = _with_pod(view, pod, _tightest(answer))
            continue
        problem = fit_problem(answer, view.movers, view.context)
        relaxed = fit_problem(answer, view.movers, view.context, ignores_placement=True)
        outcome = solve_wherever_pods_are(problem, relaxed, view.second_stage)
        solution = outcome.solution
        if solution is None:
            is_first = not made.without and not made.moves
            made = made._replace(
                without=(*made.without, pod), is_impossible=is_first and outcome.bound == INFINITE
            )
            continue
        moves = to_moves(solution.moves, problem, view.movers, view.context)
        earlier = tuple(move.id for move in made.moves)
        moves = tuple(replace(move, after=(*earlier, *move.after)) for move in moves)
        made = made._replace(
            moves=(*made.moves, *moves),
            cost_seconds=made.cost_seconds + solution.cost / MILLISECONDS,
            is_proven=not made.moves and outcome.is_proven,
        )
        view = _after(view, moves)
        view = _with_pod(view, pod, solution.node)
    return made


def _tightest(answer: Feasibility) -> int:
    """Where the least memory is left over."""
    left = answer.state.headroom("memory").astype(np.float64)
    return int(np.argmin(np.where(answer.feasible, left, np.inf)))


def _with_pod(view: View, pod: Pod, node: int) -> View:
    name = view.state.nodes[node].name
    return replace(view, snapshot=view.snapshot.with_pod_on(pod, name))


def _after(view: View, moves: Sequence[Move]) -> View:
    moved = {
        move.vmi: Refusal(move.vmi, "moved-before", "it is moved for this goal already")
        for move in moves
    }
    context = replace(view.context, avoided={**view.context.avoided, **moved})
    return replace(view, snapshot=carried_out(view.snapshot, moves), context=context)


def _without_holds(context: PlanningContext) -> PlanningContext:
    hold = context.execution.hold.model_copy(update={"kind": HoldKind.NONE})
    return replace(context, execution=context.execution.model_copy(update={"hold": hold}))
