"""Plans and results as programs see them; `UPDATE_GOLDEN=1` writes the golden files anew."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rebalancer.execution.outcome import Ending, GoalOutcome
from rebalancer.loop import CycleResult
from rebalancer.report.plan_json import plan_document, result_document, to_json
from tests.golden import assert_golden
from tests.report import contract
from tests.report.samples import SAMPLES, impossible, one_move, several_goals

GOLDEN = Path(__file__).parent / "golden"
Document = dict[str, Any]


def result() -> Document:
    plan = several_goals().plan
    outcomes = (GoalOutcome(plan.goals[0].subject, Ending.BOUND, "is bound to worker-1", 1),)
    return result_document(CycleResult(plan, outcomes))


def without_one_field(value: Any) -> Iterator[Any]:
    """The value many times, each time without another of its fields, however deep."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from ([*value[:i], less, *value[i + 1 :]] for less in without_one_field(item))
    if isinstance(value, dict):
        for name in value.keys() - {"terms"}:
            yield {key: kept for key, kept in value.items() if key != name}
            yield from ({**value, name: less} for less in without_one_field(value[name]))


@pytest.mark.parametrize("name", SAMPLES)
def test_plan_reads_as_in_its_golden_file_and_keeps_the_contract(name: str) -> None:
    text = to_json(plan_document(SAMPLES[name]().plan))
    msgspec.json.decode(text, type=contract.Plan)
    if name != "large-cluster":
        assert_golden(GOLDEN / f"{name}.json", f"{text}\n")


def test_programs_get_all_reasons_and_refused_vms_of_a_large_cluster() -> None:
    document = plan_document(SAMPLES["large-cluster"]().plan)
    assert len(document["goals"][0]["reasons"]) == 200
    assert len(document["refused"]) == 21


def test_result_reads_as_in_its_golden_file_and_keeps_the_contract() -> None:
    text = to_json(result())
    msgspec.json.decode(text, type=contract.CycleResult)
    assert_golden(GOLDEN / "result.json", f"{text}\n")


@pytest.mark.parametrize("document", [plan_document(one_move().plan), result()])
def test_contract_notices_every_field_that_is_gone(document: Document) -> None:
    shape = contract.Plan if document["kind"] == "Plan" else contract.CycleResult
    for less in without_one_field(document):
        with pytest.raises(msgspec.ValidationError, match="missing required field"):
            msgspec.convert(less, shape)


def test_moves_can_be_found_from_their_goal() -> None:
    document = plan_document(several_goals().plan)
    moves = {move["id"]: move["name"] for move in document["moves"]}
    names = [[moves[move_id] for move_id in goal["moves"]] for goal in document["goals"]]
    assert names == [["a"], ["b"], []]


def test_number_that_json_cannot_hold_is_never_printed() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"cost": float("nan")})


def test_equal_plans_give_equal_bytes() -> None:
    assert to_json(plan_document(impossible().plan)) == to_json(plan_document(impossible().plan))


def test_json_is_what_a_parser_reads_back() -> None:
    document = plan_document(one_move().plan)
    assert json.loads(to_json(document)) == document
