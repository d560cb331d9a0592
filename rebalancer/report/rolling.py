"""A pool in rolling order, for people and for programs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rebalancer.drain.proposal import STUCK
from rebalancer.drain.rolling import Rolling, Turn
from rebalancer.model.plan import Reason
from rebalancer.model.quantity import format_amount
from rebalancer.report.plan_json import API_VERSION, move_document, reason_document
from rebalancer.report.plan_tables import left_out_rows, shortened
from rebalancer.report.rows import Labelled, Rows, cell, spaced

_NUMBERS = ("MIGRATIONS", "SIZE", "TIME", "COST")


def rolling_document(found: Rolling) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "RollingPlan",
        "nodes": [
            {
                "node": turn.node,
                "moves": [move_document(move) for move in turn.moves],
                "estimatedSeconds": turn.estimated_seconds,
                "cost": turn.cost,
                "proven": turn.proven,
                "stuck": turn.is_stuck,
                "leftBehind": [reason_document(reason) for reason in turn.left_behind],
                "warnings": [reason_document(reason) for reason in turn.warnings],
            }
            for turn in found.turns
        ],
        "migrations": len(found.moves),
        "bytes": sum(move.bytes for move in found.moves),
        "estimatedSeconds": sum(turn.estimated_seconds for turn in found.turns),
        "cost": sum(turn.cost for turn in found.turns),
        "stuck": [turn.node for turn in found.stuck],
        "leftOut": [reason_document(reason) for reason in found.left_out],
    }


def progress_line(turn: Turn, number: int, total: int) -> Text:
    stuck = "; stuck" if turn.is_stuck else ""
    return cell(f"{number} of {total}: {turn.node}: migrations: {len(turn.moves)}{stuck}")


def rolling_tables(found: Rolling) -> Iterator[RenderableType]:
    """A row for each node, totals, and what keeps VMs on nodes."""
    return spaced(_blocks(found))


def _blocks(found: Rolling) -> Iterator[Iterable[RenderableType]]:
    rows = Rows("NODE", *_NUMBERS, "STUCK", right=_NUMBERS)
    for turn in found.turns:
        stuck = [
            reason.object or reason.code for reason in turn.left_behind if reason.code in STUCK
        ]
        text = cell(", ".join(stuck), "bold red") if stuck else Text("-")
        rows.add(cell(turn.node), *_figures([turn]), text)
    rows.add(
        Text("TOTAL"),
        *_figures(found.turns),
        Text(f"{len(found.stuck)} of {len(found.turns)} nodes"),
    )
    yield [rows]
    for turn in found.turns:
        if reasons := (*turn.left_behind, *turn.warnings):
            yield _remarks(turn.node, reasons)
    if found.left_out:
        yield left_out_rows(found.left_out)


def _figures(turns: Sequence[Turn]) -> Iterator[Text]:
    moves = [move for turn in turns for move in turn.moves]
    yield Text(str(len(moves)))
    yield Text(format_amount(sum(move.bytes for move in moves), "memory"))
    yield Text(f"{sum(turn.estimated_seconds for turn in turns):.0f} s")
    yield Text(f"{sum(turn.cost for turn in turns):.1f} s")


def _remarks(node: str, reasons: Sequence[Reason]) -> Iterator[RenderableType]:
    yield cell(f"{node}:")
    shown, more = shortened(reasons)
    for reason in shown:
        yield Labelled(Text("  "), cell(reason.message))
    if more:
        yield Text(f"  {more}")
