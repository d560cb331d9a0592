"""Whatever a cluster puts into names and messages is shown, never acted upon."""

import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from rich.console import RenderableType

from rebalancer.cli.terminal import console
from rebalancer.drain.cheapest import Cheapest
from rebalancer.drain.rolling import Rolling, Turn
from rebalancer.execution.events import Event
from rebalancer.execution.outcome import Ending, GoalOutcome
from rebalancer.explain.node import Candidate, NodeExplanation, NodeResource, Resident
from rebalancer.explain.vmi import Explanation, NodeAnswer
from rebalancer.loop import CycleResult
from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import NODE_KIND, Goal, Proposal, Reason, Refusal, Subject, Verdict
from rebalancer.report.cheapest import cheapest_document, cheapest_tables
from rebalancer.report.events import EventLines
from rebalancer.report.explanation import explanation_document, explanation_tables
from rebalancer.report.node_explanation import node_explanation_document, node_explanation_tables
from rebalancer.report.plan_json import plan_document, result_document, to_json
from rebalancer.report.plan_tables import plan_tables, vm_table
from rebalancer.report.result_tables import result_tables
from rebalancer.report.rolling import progress_line, rolling_document, rolling_tables
from rebalancer.report.text import printable
from tests.builders import NOW, cluster, node, pending_vm, vm
from tests.report.rendering import Terminal, piped
from tests.report.samples import Sample, goal, move, sample

HOSTILE = {
    "ansi-colour": "\x1b[7;35mred\x1b[0m",
    "terminal-title": "\x1b]0;owned\x07",
    "c1-control": "\x9b7;35m",
    "backspaces": "\b\b\b\b\x7f",
    "carriage-return": "all is well\rerror",
    "newlines": "a\nb\r\nc\u2028d\x85e",
    "right-to-left": "\u202etxt.exe\u200f",
    "markup": "[red]x[/red] [/] [link=https://example.org]y[/link]",
    "emoji-code": ":warning:",
    "nul": "\0",
    "lone-surrogate": "\udc80",
    "ten-kilobytes": "x" * 10_000,
    "ten-kilobytes-of-words": "word " * 2_000,
    "wide": "語" * 100,
}
STYLE = re.compile(r"\x1b\[[0-9;]*m")

hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())


def plan_with(text: str) -> Sample:
    first, second = f"worker-1{text}", f"worker-2{text}"
    mover = vm(f"db{text}", on=first, memory="8Gi", namespace=f"shop{text}")
    pending = pending_vm(f"big{text}", "16Gi")
    planned = goal(
        Verdict.PLANNED,
        Reason(f"code{text}", f"message{text}", node=first, object=f"object{text}"),
        vm_name=f"big{text}",
        node=first,
        cost=1.0,
        move_ids=(str(mover[0].key),),
    )
    return sample(
        planned,
        on=cluster(
            node(first, memory="32Gi"),
            node(second, memory="32Gi"),
            mover,
            pending,
            missing=(f"Kind{text}",),
        ),
        moves=[move(mover, second, f"other{text}")],
        refused=(Refusal(ObjectKey("ns", f"stays{text}"), f"code{text}", f"message{text}"),),
    )


def result_with(text: str) -> CycleResult:
    plan = plan_with(text).plan
    outcome = GoalOutcome(plan.goals[0].subject, Ending.DROPPED, f"message{text}", 1)
    return CycleResult(plan, (outcome,))


def explanation_with(text: str) -> Explanation:
    reason = Reason(f"code{text}", f"message{text}", node=f"worker-1{text}")
    return Explanation(
        vmi=ObjectKey("shop", f"db{text}"),
        pod=f"pod{text}",
        requests={f"example.org/gpu{text}": 1},
        node=f"worker-1{text}",
        scheduler_message=f"scheduler{text}",
        refusal=Refusal(ObjectKey("shop", f"db{text}"), f"code{text}", f"refusal{text}"),
        nodes=(NodeAnswer(f"worker-1{text}", (reason,)), NodeAnswer(f"worker-2{text}", ())),
        grouped_reasons=f"1 reason{text}",
    )


def node_explanation_with(text: str) -> NodeExplanation:
    vmi = ObjectKey("shop", f"db{text}")
    return NodeExplanation(
        node=f"worker-1{text}",
        conditions=(f"taint {text}",),
        resources=(NodeResource(f"example.org/gpu{text}", 2, 1, 1),),
        residents=(
            Resident(vmi, 1, Refusal(vmi, f"code{text}", f"refusal{text}"), (), ""),
            Resident(vmi, 1, None, (f"worker-2{text}",), f"1 reason{text}"),
        ),
        candidates=(Candidate(vmi, (Reason(f"code{text}", f"message{text}"),)),),
    )


def rolling_with(text: str) -> Rolling:
    reasons = (Reason("cannot-leave", f"message{text}", object=f"shop/db{text}"),)
    left_out = (Reason(f"code{text}", f"message{text}", node=f"worker-2{text}"),)
    turn = Turn(f"worker-1{text}", (), 0.0, 0.0, True, reasons, reasons)
    return Rolling((turn,), left_out)


def cheapest_with(text: str) -> Cheapest:
    left_out = (Reason(f"code{text}", f"message{text}", node=f"worker-2{text}"),)
    subject = Subject(NODE_KIND, "", f"worker-1{text}")
    chosen = Proposal(Goal("ConsolidateForDrain", subject, Verdict.MET))
    return Cheapest(1, (chosen,), 0.0, left_out)


def parts_with(text: str) -> Iterator[RenderableType]:
    sample = plan_with(text)
    yield vm_table(sample.snapshot)
    yield from plan_tables(*sample)
    yield from result_tables(result_with(text))
    yield from explanation_tables(explanation_with(text))
    yield from node_explanation_tables(node_explanation_with(text))
    yield from rolling_tables(rolling_with(text))
    yield progress_line(rolling_with(text).turns[0], 1, 1)
    yield from cheapest_tables(cheapest_with(text))


def event_with(text: str) -> Event:
    return Event(NOW, f"code{text}", f"subject{text}", f"message{text}")


@hostile
def test_piped_tables_keep_their_shape_and_show_the_text_as_escapes(text: str) -> None:
    shown = piped(parts_with(text))
    assert all(line.isprintable() for line in shown.split("\n"))
    assert shown.count("\n") == piped(parts_with("")).count("\n")
    assert f"message{printable(text)}".rstrip() in shown


@hostile
def test_terminal_gets_no_styles_but_our_own(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch, 80)
    shown = terminal.show(parts_with(text))
    ours = set(STYLE.findall(terminal.show(parts_with(""))))
    assert set(STYLE.findall(shown)) <= ours
    assert all(line.isprintable() for line in STYLE.sub("", shown).split("\n"))


@hostile
def test_event_stays_one_printable_line(text: str) -> None:
    stream = StringIO()
    EventLines(console(stream))(event_with(text))
    line, end = stream.getvalue().split("\n")
    assert line.isprintable()
    assert line.endswith(f"subject{printable(text)}: message{printable(text)}")
    assert end == ""


@hostile
@pytest.mark.parametrize(
    "document_with",
    [
        lambda text: plan_document(plan_with(text).plan),
        lambda text: result_document(result_with(text)),
        lambda text: explanation_document(explanation_with(text)),
        lambda text: node_explanation_document(node_explanation_with(text)),
        lambda text: rolling_document(rolling_with(text)),
        lambda text: cheapest_document(cheapest_with(text), plan_document(plan_with(text).plan)),
    ],
    ids=["plan", "result", "explanation", "explanation of a node", "rolling", "cheapest"],
)
def test_json_is_plain_ascii_and_reads_back_as_it_was(text: str, document_with: Any) -> None:
    document = document_with(text)
    printed = to_json(document)
    assert printed.isascii()
    assert all(line.isprintable() for line in printed.split("\n"))
    assert json.loads(printed) == document
