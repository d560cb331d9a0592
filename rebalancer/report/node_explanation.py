"""An explanation of a node, for people and for programs."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rebalancer.explain.node import NodeExplanation, Resident
from rebalancer.model.quantity import format_amount
from rebalancer.report.explanation import possible, why_not
from rebalancer.report.plan_json import API_VERSION, reason_document
from rebalancer.report.rows import Labelled, Rows, cell


def node_explanation_document(explanation: NodeExplanation) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeExplanation",
        "node": explanation.node,
        "conditions": list(explanation.conditions),
        "resources": {
            each.resource: {
                "allocatable": each.allocatable,
                "requested": each.requested,
                "freeable": each.freeable,
            }
            for each in explanation.resources
        },
        "residents": [
            {
                "namespace": each.vmi.namespace,
                "name": each.vmi.name,
                "memory": each.memory_bytes,
                "refused": each.refusal
                and {"code": each.refusal.code, "message": each.refusal.message},
                "targets": list(each.targets),
                "groupedReasons": each.grouped_reasons,
            }
            for each in explanation.residents
        ],
        "candidates": [
            {
                "namespace": each.vmi.namespace,
                "name": each.vmi.name,
                "feasible": not each.reasons,
                "reasons": [reason_document(reason) for reason in each.reasons],
            }
            for each in explanation.candidates
        ],
    }


def node_explanation_tables(explanation: NodeExplanation) -> Iterator[RenderableType]:
    yield Labelled(Text(), cell(f"node {explanation.node}", "bold"))
    for condition in explanation.conditions:
        yield Labelled(Text("  "), cell(condition, "yellow"))
    yield Text()
    amounts = ("ALLOCATABLE", "REQUESTED", "HEADROOM", "FREEABLE")
    room = Rows("RESOURCE", *amounts, right=amounts)
    for each in explanation.resources:
        headroom = each.allocatable - each.requested
        columns = (each.allocatable, each.requested, headroom, each.freeable)
        room.add(cell(each.resource), *(cell(format_amount(n, each.resource)) for n in columns))
    yield room
    if explanation.residents:
        yield Text()
        residents = Rows("VM HERE", "MEMORY", "MAY LEAVE", "FOR, OR WHY NOT", right=("MEMORY",))
        for resident in explanation.residents:
            memory = format_amount(resident.memory_bytes, "memory")
            may_leave = possible(bool(resident.targets))
            residents.add(cell(str(resident.vmi)), cell(memory), may_leave, _outlook(resident))
        yield residents
    if explanation.candidates:
        yield Text()
        candidates = Rows("PENDING VM", "FITS HERE", "WHY NOT")
        for candidate in explanation.candidates:
            fits = possible(not candidate.reasons)
            candidates.add(cell(str(candidate.vmi)), fits, why_not(candidate.reasons))
        yield candidates


def _outlook(resident: Resident) -> Text:
    if resident.refusal:
        return cell(f"{resident.refusal.code}: {resident.refusal.message}")
    if not resident.targets:
        return cell(resident.grouped_reasons or "there is no other node")
    first, *others = resident.targets
    return cell(f"{len(resident.targets)} nodes, such as {first}" if others else first)
