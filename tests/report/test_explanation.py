"""Explanations of a pending and of a running VM; `UPDATE_GOLDEN=1` writes the files anew."""

from pathlib import Path

import msgspec
import pytest

from rebalancer.explain.lookup import find_node, find_vmi
from rebalancer.explain.node import NodeExplanation, explain_node
from rebalancer.explain.vmi import Explanation, explain_vmi
from rebalancer.model.keys import OPT_OUT
from rebalancer.model.objects import Taint
from rebalancer.planning.context import PlanningContext
from rebalancer.report.explanation import explanation_document, explanation_tables
from rebalancer.report.node_explanation import (
    node_explanation_document,
    node_explanation_tables,
)
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


def of_node() -> NodeExplanation:
    """A node with a VM that may leave, one that has no other node, and one that must stay."""
    snapshot = cluster(
        node("worker-1", memory="32Gi"),
        node("worker-2", memory="8Gi", taints=(Taint("gpu", "NoSchedule", "yes"),)),
        node("worker-3", memory="8Gi"),
        vm("small", on="worker-1", memory="6Gi"),
        vm("large", on="worker-1", memory="12Gi"),
        vm("kept", on="worker-1", memory="4Gi", vmi={"annotations": {OPT_OUT: "true"}}),
        pending_vm("pending", "12Gi"),
    )
    return explain_node(snapshot, find_node(snapshot, "worker-1"), PlanningContext())


def test_explanation_of_a_node_reads_as_in_its_golden_file() -> None:
    assert_golden(GOLDEN / "explanation-node.txt", piped(node_explanation_tables(of_node())))


def test_explanation_of_a_node_as_json_keeps_the_contract() -> None:
    text = to_json(node_explanation_document(of_node()))
    msgspec.json.decode(text, type=contract.NodeExplanation)
    assert_golden(GOLDEN / "explanation-node.json", f"{text}\n")


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
