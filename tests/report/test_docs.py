"""docs/plan.md is the contract of the JSON: it has every field and every code, and no others.

`UPDATE_GOLDEN=1` writes its example anew.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from rebalancer.cluster.request_scenario import request_cluster
from rebalancer.execution.move_run import State
from rebalancer.execution.outcome import Ending
from rebalancer.model.keys import PREFER_NO_EVICTION
from rebalancer.model.objects import Taint
from rebalancer.model.plan import MOVES_UNDER_WAY, Verdict
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.cost import base_cost, target_charges, with_target_charges
from rebalancer.policy.model import CostPolicy, Mode
from rebalancer.report.plan_json import plan_document, to_json
from rebalancer.scheduling.filters import NODE_RESOURCES_FIT, RULES
from rebalancer.scheduling.state import ClusterState
from rebalancer_strategies.fit_pending_vms import STRATEGY
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from tests.builders import cluster, migration, node, vm
from tests.report import contract

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "docs" / "plan.md"
FIT = (ActiveStrategy(STRATEGY, Mode.AUTOMATIC, FitPendingVMsSettings()),)
ENDINGS = {ending.value for ending in Ending}

# Where sources write a code down: as an argument, or as the first of a pair that is returned.
REASON = (r'\bReason\(\s*(?:code=)?"([a-z-]+)"', r'_finding\(\s*Verdict\.\w+,\s*"([a-z-]+)"')
REFUSAL = (r'\bRefusal\(\s*[\w.]+,\s*"([a-z-]+)"', r'return "([a-z-]+)", ')
REFUSED_CREATION = (r'\b_Kind\(\s*"([a-z-]+)"', r'code: str = "([a-z-]+)"')
EVENT = (r'_tell\(\s*"([a-z-]+)"', r'\bEvent\(\s*[\w.]+\(\),\s*"([a-z-]+)"')


def written(patterns: Iterable[str], *places: str) -> set[str]:
    """All codes that the sources below these places write down."""
    paths = [path for place in places for path in (ROOT / place).rglob("*.py")]
    texts = [path.read_text() for path in paths]
    return {code for text in texts for pattern in patterns for code in re.findall(pattern, text)}


def section(heading: str) -> str:
    """A section of the contract without those below it."""
    pattern = rf"^#+ {heading}\n(.*?)(?=^#|\Z)"
    found = re.search(pattern, CONTRACT.read_text(), re.DOTALL | re.MULTILINE)
    assert found, f"docs/plan.md has no section {heading}"
    return found[1]


def first_column(heading: str) -> set[str]:
    """What a section's table has in backticks in its first column."""
    cells = re.findall(r"^\|([^|]*)\|", section(heading), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_contract_lists_every_verdict_and_ending() -> None:
    assert first_column("Verdicts") == {verdict.value for verdict in Verdict}
    assert first_column("Endings") == ENDINGS


def test_contract_lists_every_reason() -> None:
    planning = written(REASON, "rebalancer/drain", "rebalancer/planning", "strategies")
    assert first_column("Reason codes") == planning | {MOVES_UNDER_WAY}


def test_contract_names_every_rule_that_bars_a_node() -> None:
    named = re.findall(r"`([A-Z][A-Za-z]+)`", section("Reason codes"))
    assert set(named) == {rule.name for rule in (*RULES, NODE_RESOURCES_FIT)}


def test_contract_lists_every_refusal() -> None:
    movability = written(REFUSAL, "rebalancer/scheduling")
    others = written(REFUSAL[:1], "rebalancer/planning", "strategies")
    assert first_column("Refusal codes") == movability | others


def test_contract_lists_every_code_of_a_refused_migration() -> None:
    codes = written(REFUSED_CREATION, "rebalancer")
    assert first_column("Codes of refused migrations") == codes


def test_contract_lists_every_event() -> None:
    ends_of_moves = {state.value for state in (State.SUCCEEDED, State.FAILED, State.STALLED)}
    assert first_column("Event codes") == written(EVENT, "rebalancer") | ENDINGS | ends_of_moves


def test_contract_lists_every_term_of_a_cost() -> None:
    avoided = Taint("example.com/busy", "PreferNoSchedule")
    zones = [{"topology.kubernetes.io/zone": zone} for zone in "ab"]
    snapshot = cluster(
        node("n1", labels=zones[0]),
        node("n2", labels=zones[1], taints=(avoided,)),
        vm("a", on="n1", priority=1000, annotations={PREFER_NO_EVICTION: ""}),
        migration("failed", "a", "Failed"),
        migration("moved", "a", "Succeeded"),
    )
    [vmi], [pod] = snapshot.vmis, snapshot.pods
    policy = CostPolicy(prefer_no_eviction_seconds=1)
    charges = target_charges(pod, snapshot.nodes[0], ClusterState(snapshot), policy)
    cost = with_target_charges(base_cost(vmi, pod, snapshot, policy), charges, 1)
    assert first_column("Terms") == set(cost.terms)


@pytest.mark.parametrize(
    ("heading", "shape", "nested"),
    [
        ("Plan", contract.Plan, {"snapshot": contract.Read}),
        ("Goal", contract.Goal, {"subject": contract.Subject}),
        ("Reason", contract.Reason, {}),
        ("Move", contract.Move, {}),
        ("Refused VM", contract.Refusal, {}),
        ("Cycle result", contract.CycleResult, {}),
        ("Outcome", contract.Outcome, {}),
        ("Explanation", contract.Explanation, {}),
        (
            "Node explanation",
            contract.NodeExplanation,
            {
                "resources": contract.Room,
                "residents": contract.Resident,
                "candidates": contract.Candidate,
            },
        ),
        ("Cheapest nodes", contract.CheapestNodes, {"nodes": contract.CheapNode}),
        ("Rolling plan", contract.RollingPlan, {"nodes": contract.Turn}),
    ],
)
def test_contract_has_every_field(
    heading: str, shape: type[contract.Strict], nested: dict[str, type[contract.Strict]]
) -> None:
    inner = {f"{name}.{field}" for name, part in nested.items() for field in fields(part)}
    assert first_column(heading) == fields(shape) | inner


def fields(shape: type[contract.Strict]) -> set[str]:
    """As they are spelled in JSON."""
    return set(shape.__struct_encode_fields__)


def test_example_is_the_demos_plan() -> None:
    plan = make_plan(request_cluster().read(), FIT, PlanningContext())
    example = f"```json\n{to_json(plan_document(plan))}\n```"
    if os.environ.get("UPDATE_GOLDEN"):
        anew = re.sub(r"```json\n.*?```", lambda _: example, CONTRACT.read_text(), flags=re.DOTALL)
        CONTRACT.write_text(anew)
    assert example in CONTRACT.read_text()
