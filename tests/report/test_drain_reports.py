"""What is said about the cheapest nodes and about a pool in rolling order; `UPDATE_GOLDEN=1` writes
the golden files anew."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from rebalancer.drain.cheapest import Cheapest
from rebalancer.drain.rolling import Rolling, Turn
from rebalancer.loop import CycleResult
from rebalancer.model.plan import NODE_KIND, Goal, Plan, Proposal, Reason, Subject, Verdict
from rebalancer.report.cheapest import cheapest_document, cheapest_tables
from rebalancer.report.plan_json import plan_document, result_document, to_json
from rebalancer.report.rolling import rolling_document, rolling_tables
from tests.builders import vm
from tests.golden import assert_golden
from tests.report import contract
from tests.report.rendering import Terminal, piped
from tests.report.samples import move

GOLDEN = Path(__file__).parent / "golden"
DB = move(vm("db", on="worker-1", memory="8Gi"), "worker-2")
WEB = move(vm("web", on="worker-2", memory="4Gi"), "worker-1", "default/db")
STUCK = Reason(
    "cannot-leave",
    "default/gpu stays: KubeVirt cannot live-migrate it (HostDeviceNotLiveMigratable: it has a"
    " GPU); mend what KubeVirt names, or stop the VM",
    object="default/gpu",
)
LEAVING = Reason("leaving", "default/old: it is being deleted", object="default/old")
HANGS = Reason(
    "eviction-would-hang",
    "PodDisruptionBudget shop/queue allows no disruption now, so evictions of queue-0 hang; live"
    " migrations are no evictions",
    node="worker-3",
    object="shop/queue",
)
NOT_READY = Reason("node-not-ready", "it is not ready", node="worker-9")


def rolling() -> Rolling:
    worker_1 = Turn("worker-1", (DB,), 64.0, 74.0, True, (), ())
    worker_2 = Turn("worker-2", (WEB, replace(DB, source="worker-2")), 96.0, 116.0, False, (), ())
    worker_3 = Turn("worker-3", (), 0.0, 0.0, True, (STUCK, LEAVING), (HANGS,))
    return Rolling((worker_1, worker_2, worker_3), (NOT_READY,))


def cheapest(wanted: int, cost: float | None = 74.0) -> Cheapest:
    goal = Goal(
        "ConsolidateForDrain",
        Subject(NODE_KIND, "", "worker-1", "node-worker-1"),
        Verdict.PLANNED,
        cost=cost,
        proven=True,
        move_ids=(DB.id,),
    )
    left_out = replace(STUCK, node="worker-3"), NOT_READY
    return Cheapest(wanted, (Proposal(goal, (DB,)),), 74.0 if wanted == 1 else None, left_out)


def test_rolling_plan_reads_as_in_its_golden_files_and_keeps_the_contract() -> None:
    text = to_json(rolling_document(rolling()))
    msgspec.json.decode(text, type=contract.RollingPlan)
    assert_golden(GOLDEN / "rolling.json", f"{text}\n")
    assert_golden(GOLDEN / "rolling.txt", piped(rolling_tables(rolling())))


def test_rolling_plan_stays_readable_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Terminal(monkeypatch, 60).text(rolling_tables(rolling()))
    assert max(map(len, text.splitlines())) <= 60
    assert "default/gpu" in text


def test_cheapest_nodes_read_as_in_their_golden_files_and_keep_the_contract() -> None:
    text = to_json(cheapest_document(cheapest(1), plan_document(Plan("0123456789ab"))))
    msgspec.json.decode(text, type=contract.CheapestNodes)
    assert_golden(GOLDEN / "cheapest.json", f"{text}\n")
    assert_golden(GOLDEN / "cheapest.txt", piped(cheapest_tables(cheapest(1))))


def test_a_choice_that_is_not_proven_is_told_with_its_bound() -> None:
    text = piped(cheapest_tables(cheapest(1, cost=90.0)))
    assert "Cost together: 90.0 s (none is cheaper than 74.0 s)\n" in text


def test_fewer_nodes_than_wanted_are_told() -> None:
    text = piped(cheapest_tables(cheapest(2)))
    assert "Only 1 of 2 nodes can be emptied.\n" in text


def test_result_of_emptying_the_cheapest_nodes_takes_the_place_of_the_plan() -> None:
    result = CycleResult(Plan("0123456789ab"))
    document = cheapest_document(cheapest(1), result_document(result))
    found = msgspec.convert(document, contract.CheapestNodes)
    assert found.plan is None
    assert found.result is not None
