"""A plan as tables for a terminal or a pipe."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rebalancer.model.plan import Goal, Plan, Reason, Verdict
from rebalancer.model.quantity import format_amount
from rebalancer.model.snapshot import Snapshot
from rebalancer.report.text import printable
from rebalancer.scheduling.state import ClusterState

_ALL_NODES_UP_TO = 20
"""Larger clusters only show the nodes that a plan touches."""

_STYLES = {
    Verdict.PLANNED: "bold green",
    Verdict.FITS: "green",
    Verdict.WAITING: "yellow",
    Verdict.NOT_ABOUT_ROOM: "magenta",
    Verdict.IMPOSSIBLE: "bold red",
    Verdict.UNPROVEN: "yellow",
}


def plan_tables(plan: Plan, snapshot: Snapshot) -> Iterator[RenderableType]:
    """Goals with their reasons, then moves, then nodes before and after."""
    if not plan.goals:
        yield Text("No VM is waiting for room.")
        return
    for goal in plan.goals:
        yield from _goal(goal)
    if plan.refused:
        yield _refusals(plan)
    if plan.moves:
        yield _moves(plan)
    yield _nodes(plan, snapshot)


def vm_table(snapshot: Snapshot) -> Table:
    """All VMs with phase and node, as `kubectl get vmi` shows them."""
    result = table("NAMESPACE", "NAME", "PHASE", "NODE")
    for vmi in sorted(snapshot.vmis, key=lambda vmi: vmi.key):
        result.add_row(
            cell(vmi.namespace), cell(vmi.name), cell(vmi.phase), cell(vmi.node_name or "-")
        )
    return result


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """A table without lines, as kubectl prints them; columns named in `right` are numbers."""
    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left")
    return result


def cell(text: str, style: str = "") -> Text:
    """A cell in which nothing is markup."""
    return Text(printable(text), style=style)


def _goal(goal: Goal) -> Iterator[Text]:
    line = cell(f"{goal.strategy} {goal.subject}: ")
    line.append(goal.verdict.value, _STYLES[goal.verdict])
    if goal.node:
        line.append(printable(f" on {goal.node}"))
    if goal.cost is not None:
        proof = "proven cheapest" if goal.proven else f"at least {goal.bound or 0:.1f} s"
        line.append(f", cost {goal.cost:.1f} s ({proof})")
    yield line
    for reason in goal.reasons:
        yield cell(f"  {_place(reason)}{reason.message}")
    yield Text()


def _place(reason: Reason) -> str:
    return f"{reason.node}: " if reason.node else ""


def _refusals(plan: Plan) -> Table:
    result = table("STAYS", "CODE", "WHY")
    for refusal in plan.refused:
        result.add_row(cell(str(refusal.vmi)), cell(refusal.code), cell(refusal.message))
    result.add_row()
    return result


def _moves(plan: Plan) -> Table:
    result = table(
        "MIGRATE", "FROM", "TO", "SIZE", "TIME", "COST", "AFTER", right=("SIZE", "TIME", "COST")
    )
    for move in plan.moves:
        result.add_row(
            cell(str(move.vmi)),
            cell(move.source),
            cell(move.target),
            format_amount(move.bytes, "memory"),
            f"{move.seconds:.0f} s",
            f"{move.cost.total:.1f} s",
            cell(", ".join(move.after) or "-"),
        )
    result.add_row()
    return result


def _nodes(plan: Plan, snapshot: Snapshot) -> Table:
    before = ClusterState(snapshot)
    after = ClusterState(_carried_out(plan, snapshot))
    touched = {goal.node for goal in plan.goals}
    touched |= {name for move in plan.moves for name in (move.source, move.target)}
    result = table(
        "NODE", "MEMORY", "BEFORE", "AFTER", "HEADROOM", right=("MEMORY", "BEFORE", "AFTER")
    )
    for index, node in enumerate(snapshot.nodes):
        if len(snapshot.nodes) > _ALL_NODES_UP_TO and node.name not in touched:
            continue
        allocatable = int(before.allocatable("memory")[index])
        shares = [int(state.requested("memory")[index]) for state in (before, after)]
        changed = "bold" if shares[0] != shares[1] else ""
        result.add_row(
            cell(node.name),
            format_amount(allocatable, "memory"),
            _share(shares[0], allocatable),
            Text(_share(shares[1], allocatable), changed),
            format_amount(int(after.headroom("memory")[index]), "memory"),
        )
    return result


def _share(amount: int, allocatable: int) -> str:
    percent = f"{amount / allocatable:.0%}" if allocatable else "-"
    return f"{format_amount(amount, 'memory')} ({percent})"


def _carried_out(plan: Plan, snapshot: Snapshot) -> Snapshot:
    for move in plan.moves:
        pod = snapshot.launchers_by_vmi[move.vmi_uid][0]
        snapshot = snapshot.with_pod_on(pod, move.target)
    for goal in plan.goals:
        if goal.verdict is Verdict.PLANNED:
            launchers = snapshot.launchers_by_vmi[goal.subject.uid]
            pending = next(pod for pod in launchers if pod.node_name is None)
            snapshot = snapshot.with_pod_on(pending, goal.node)
    return snapshot
