"""An explanation of a VM, for people and for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rebalancer.explain.vmi import Explanation
from rebalancer.model.plan import Reason
from rebalancer.model.quantity import format_amount
from rebalancer.report.plan_json import API_VERSION, reason_document
from rebalancer.report.rows import Labelled, Rows, cell


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    refusal = explanation.refusal
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "namespace": explanation.vmi.namespace,
        "name": explanation.vmi.name,
        "pod": explanation.pod,
        "requests": explanation.requests,
        "node": explanation.node,
        "schedulerMessage": explanation.scheduler_message,
        "refused": refusal and {"code": refusal.code, "message": refusal.message},
        "groupedReasons": explanation.grouped_reasons,
        "nodes": [
            {
                "node": answer.node,
                "feasible": not answer.reasons,
                "reasons": [reason_document(reason) for reason in answer.reasons],
            }
            for answer in explanation.nodes
        ],
    }


def explanation_tables(explanation: Explanation) -> Iterator[RenderableType]:
    where = f"is on {explanation.node}" if explanation.node else "has no node"
    yield Labelled(Text(), cell(f"{explanation.vmi} {where}; pod {explanation.pod}", "bold"))
    amounts = (
        f"{resource} {format_amount(amount, resource)}"
        for resource, amount in sorted(explanation.requests.items())
    )
    yield Labelled(Text("asks for "), cell(", ".join(amounts)))
    if explanation.scheduler_message:
        yield Labelled(Text("scheduler: "), cell(explanation.scheduler_message))
    if explanation.refusal:
        yield Labelled(Text("may not be moved: "), cell(explanation.refusal.message, "yellow"))
    if explanation.grouped_reasons:
        yield Labelled(Text("barred by: "), cell(explanation.grouped_reasons))
    yield Text()
    result = Rows("NODE", "POSSIBLE", "WHY NOT")
    for answer in explanation.nodes:
        result.add(
            cell(answer.node),
            possible(not answer.reasons),
            why_not(answer.reasons),
        )
    yield result


def possible(is_so: bool) -> Text:
    return cell("yes", "green") if is_so else cell("no", "red")


def why_not(reasons: Sequence[Reason]) -> Text:
    return cell("; ".join(f"{reason.code}: {reason.message}" for reason in reasons))
