"""Explanations of a pending and of a running VM; `UPDATE_GOLDEN=1` writes the files anew."""

from pathlib import Path

import msgspec
import pytest

from rebalancer.explain import Explanation, explain_vmi, find_vmi
from rebalancer.model.keys import OPT_OUT
from rebalancer.planning.context import PlanningContext
from rebalancer.report.explanation import explanation_document, explanation_tables
from rebalancer.report.plan_json import to_json
from tests.builders import cluster, node, pending_vm, vm
from tests.golden import assert_golden
from tests.report import contract
from tests.report.rendering import Terminal, piped

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("pending", "running")


def explanation(name: str) -> Explanation:
    snapshot = cluster(
        node("worker-1", memory="16Gi"),
        node("worker-2", memory="16Gi"),
        node("worker-3", memory="2Gi", is_unschedulable=True),
        vm("running", on="worker-1", memory="10Gi", vmi={"annotations": {OPT_OUT: "true"}}),
        pending_vm("pending", "12Gi"),
    )
    return explain_vmi(snapshot, find_vmi(snapshot, name), PlanningContext())


@pytest.mark.parametrize("name", NAMES)
def test_explanation_reads_as_in_its_golden_file(name: str) -> None:
    text = piped(explanation_tables(explanation(name)))
    assert_golden(GOLDEN / f"explanation-{name}.txt", text)


@pytest.mark.parametrize("name", NAMES)
def test_explanation_as_json_keeps_the_contract(name: str) -> None:
    text = to_json(explanation_document(explanation(name)))
    msgspec.json.decode(text, type=contract.Explanation)
    assert_golden(GOLDEN / f"explanation-{name}.json", f"{text}\n")


def test_explanation_stays_readable_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Terminal(monkeypatch, 60).text(explanation_tables(explanation("pending")))
    assert max(map(len, text.splitlines())) <= 60
    assert_golden(GOLDEN / "explanation-pending-60-columns.txt", text)
