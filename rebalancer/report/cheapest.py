"""Which nodes cost least to empty, for people and for programs."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rebalancer.drain.cheapest import Cheapest
from rebalancer.report.plan_json import API_VERSION, reason_document
from rebalancer.report.plan_tables import left_out_rows, proof
from rebalancer.report.rows import Rows, cell, spaced


def cheapest_document(found: Cheapest, followed_by: dict[str, Any]) -> dict[str, Any]:
    """`followed_by`: the document of the plan for these nodes, or of its result."""
    is_plan = followed_by["kind"] == "Plan"
    return {
        "apiVersion": API_VERSION,
        "kind": "CheapestNodes",
        "wanted": found.wanted,
        "nodes": [
            {
                "node": proposal.goal.subject.name,
                "migrations": len(proposal.moves),
                "cost": proposal.goal.cost or 0.0,
            }
            for proposal in found.chosen
        ],
        "cost": found.cost,
        "bound": found.bound,
        "proven": found.proven,
        "leftOut": [reason_document(reason) for reason in found.left_out],
        "plan": followed_by if is_plan else None,
        "result": None if is_plan else followed_by,
    }


def cheapest_tables(found: Cheapest) -> Iterator[RenderableType]:
    return spaced(_blocks(found))


def _blocks(found: Cheapest) -> Iterator[Iterable[RenderableType]]:
    if found.chosen:
        rows = Rows("CHEAPEST", "MIGRATIONS", "COST", right=("MIGRATIONS", "COST"))
        for proposal in found.chosen:
            rows.add(
                cell(proposal.goal.subject.name),
                Text(str(len(proposal.moves))),
                Text(f"{proposal.goal.cost or 0:.1f} s"),
            )
        yield [rows]
    missing = found.wanted - len(found.chosen)
    if missing:
        line = f"Only {len(found.chosen)} of {found.wanted} nodes can be emptied."
        yield [Text(line, "bold red")]
    else:
        yield [Text(f"Cost together: {found.cost:.1f} s ({proof(found.proven, found.bound)})")]
    if found.left_out:
        yield left_out_rows(found.left_out)
