"""A plan as tables for a terminal or a pipe."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import RenderableType
from rich.text import Text

from rebalancer.model.plan import Goal, Move, Plan, Reason, Refusal, Verdict
from rebalancer.model.quantity import format_amount
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.replay import carried_out
from rebalancer.report.rows import Labelled, Rows, cell, spaced
from rebalancer.scheduling.state import ClusterState

_LONGEST_LIST = 20
"""Of reasons, VMs and nodes: what a person reads. In larger clusters only the nodes that the plan
touches are shown."""

_STYLES = {
    Verdict.PLANNED: "bold green",
    Verdict.FITS: "green",
    Verdict.MET: "green",
    Verdict.WAITING: "yellow",
    Verdict.NOT_ABOUT_ROOM: "magenta",
    Verdict.NOT_WORTH_IT: "magenta",
    Verdict.IMPOSSIBLE: "bold red",
    Verdict.UNPROVEN: "yellow",
}


def plan_tables(plan: Plan, snapshot: Snapshot) -> Iterator[RenderableType]:
    """Goals, each with its reasons and moves, then what must stay, then nodes before and after."""
    return spaced(_blocks(plan, snapshot))


def _blocks(plan: Plan, snapshot: Snapshot) -> Iterator[Iterable[RenderableType]]:
    if snapshot.missing:
        yield [cell(f"Missing from what was read: {', '.join(snapshot.missing)}", "yellow")]
    if (load := snapshot.measured_load) and load.problem:
        yield [cell(f"Measured load: {load.problem}", "yellow")]
    if not plan.goals:
        yield [Text("Nothing to do: no active strategy has a goal.")]
        return
    moves = {move.id: move for move in plan.moves}
    for goal in plan.goals:
        yield goal_lines(goal)
        if goal.move_ids:
            yield [_moves([moves[move_id] for move_id in goal.move_ids])]
    if plan.moves:
        yield [Text(f"Estimated time for all migrations: {plan.estimated_seconds:.0f} s")]
    if plan.refused:
        yield _refusals(plan.refused)
    if nodes := _nodes_to_show(plan, snapshot):
        yield [_nodes(nodes, plan, snapshot)]


def goal_lines(goal: Goal) -> Iterator[RenderableType]:
    """What became of a goal, and why."""
    line = cell(f"{goal.strategy} {goal.subject}: ")
    line.append(goal.verdict.value, _STYLES[goal.verdict])
    if goal.node:
        line.append_text(cell(f" on {goal.node}"))
    if goal.cost is not None:
        line.append(f", cost {goal.cost:.1f} s ({proof(goal.proven, goal.bound)})")
    yield Labelled(Text(), line)
    shown, more = shortened(goal.reasons)
    for reason in shown:
        place = f"{reason.node}: " if reason.node else ""
        yield Labelled(Text("  "), cell(f"{place}{reason.message}"))
    if more:
        yield Text(f"  {more}")


def vm_table(snapshot: Snapshot) -> Rows:
    """The VMs with phase and node, as `kubectl get vmi` shows those of one namespace."""
    result = Rows("NAME", "PHASE", "NODE")
    for vmi in sorted(snapshot.vmis, key=lambda vmi: vmi.key):
        result.add(cell(vmi.name), cell(vmi.phase), cell(vmi.node_name or "-"))
    return result


def _refusals(refused: Sequence[Refusal]) -> Iterator[RenderableType]:
    result = Rows("STAYS", "CODE", "WHY")
    shown, more = shortened(refused)
    for refusal in shown:
        result.add(cell(str(refusal.vmi)), cell(refusal.code), cell(refusal.message))
    yield result
    if more:
        yield Text(more)


def _moves(moves: Sequence[Move]) -> Rows:
    result = Rows(
        "MIGRATE", "FROM", "TO", "SIZE", "TIME", "COST", "AFTER", right=("SIZE", "TIME", "COST")
    )
    for move in moves:
        result.add(
            cell(str(move.vmi)),
            cell(move.source),
            cell(move.target),
            Text(format_amount(move.bytes, "memory")),
            Text(f"{move.seconds:.0f} s"),
            Text(f"{move.cost.total:.1f} s"),
            cell(", ".join(move.after) or "-"),
        )
    return result


def _nodes_to_show(plan: Plan, snapshot: Snapshot) -> list[str]:
    names = [node.name for node in snapshot.nodes]
    if len(names) <= _LONGEST_LIST:
        return names
    touched = {name for move in plan.moves for name in (move.source, move.target)}
    touched |= {goal.node for goal in plan.goals}
    return [name for name in names if name in touched]


def _nodes(names: Sequence[str], plan: Plan, snapshot: Snapshot) -> Rows:
    """Requested memory of each node, now and, if there are moves, when they are done."""
    before = ClusterState(snapshot)
    after = ClusterState(_outcome(plan, snapshot))
    numbers = ("MEMORY BEFORE", "MEMORY AFTER") if plan.moves else ("MEMORY REQUESTED",)
    result = Rows("NODE", *numbers, "HEADROOM", right=(*numbers, "HEADROOM"))
    for name in names:
        shares = [_share(name, state) for state in (before, after)][: len(numbers)]
        is_changed = len(set(shares)) > 1
        headroom = int(after.headroom("memory")[after.index[name]])
        result.add(
            cell(name),
            *(Text(share) for share in shares[:-1]),
            Text(shares[-1], "bold" if is_changed else ""),
            Text(format_amount(headroom, "memory")),
        )
    return result


def _share(name: str, state: ClusterState) -> str:
    """With the percentage cut off, not rounded, as `kubectl describe node` has it."""
    index = state.index[name]
    requested = int(state.requested("memory")[index])
    allocatable = int(state.allocatable("memory")[index])
    percent = f"{requested * 100 // allocatable}%" if allocatable else "-"
    return f"{format_amount(requested, 'memory')} ({percent})"


def _outcome(plan: Plan, snapshot: Snapshot) -> Snapshot:
    """When all moves are done and the VMs that waited for them are bound."""
    snapshot = carried_out(snapshot, plan.moves)
    for goal in plan.goals:
        if goal.verdict is Verdict.PLANNED and goal.is_for_vm:
            launchers = snapshot.launchers_by_vmi[goal.subject.uid]
            pending = next(pod for pod in launchers if pod.node_name is None)
            snapshot = snapshot.with_pod_on(pending, goal.node)
    return snapshot


def proof(proven: bool, bound: float | None) -> str:
    """What is known about cheaper ways."""
    return "proven cheapest" if proven else f"none is cheaper than {bound or 0:.1f} s"


def left_out_rows(reasons: Sequence[Reason]) -> Iterator[RenderableType]:
    """Nodes that were not looked at, or could not be chosen."""
    rows = Rows("LEFT OUT", "CODE", "WHY")
    shown, more = shortened(reasons)
    for reason in shown:
        rows.add(cell(reason.node), cell(reason.code), cell(reason.message))
    yield rows
    if more:
        yield Text(more)


T = TypeVar("T")


def shortened(items: Sequence[T]) -> tuple[Sequence[T], str]:
    """As many as a person reads, and a line that says how many there are besides."""
    left_out = len(items) - _LONGEST_LIST
    more = f"... and {left_out} more; -o json has them all" if left_out > 0 else ""
    return items[:_LONGEST_LIST], more
