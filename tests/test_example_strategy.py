"""The example of a strategy is found by its entry point and takes part like any other."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rebalancer.cli.main import app
from rebalancer.model.plan import Goal, Plan, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.load import load_policy
from rebalancer.policy.root import enabled_strategies
from rebalancer.strategy import ENTRY_POINT_GROUP, load_strategies
from tests.builders import cluster, node, pod

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "strategy"
MEMORY_BYTES = "REBALANCER_STRATEGIES__WATCH_HEADROOM__SETTINGS__MEMORY_BYTES"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What pip would leave of the example, but for the copy of its module."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    entry_points = project["entry-points"][ENTRY_POINT_GROUP].items()
    lines = [f"[{ENTRY_POINT_GROUP}]", *(f"{name} = {value}" for name, value in entry_points)]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield
    sys.modules.pop("watch_headroom", None)


def plan_for(snapshot: Snapshot, environ: dict[str, str]) -> Plan:
    """As the command makes it: policy from the environment, strategies from entry points."""
    strategies = load_strategies()
    policy = load_policy(None, strategies, environ)
    active = [
        ActiveStrategy(strategies[name], mode, settings)
        for name, mode, settings in enabled_strategies(policy)
    ]
    return make_plan(snapshot, active, PlanningContext())


def only_goal(snapshot: Snapshot, environ: dict[str, str]) -> Goal:
    (goal,) = plan_for(snapshot, environ).goals
    return goal


def with_free_gib(free: int) -> Snapshot:
    return cluster(
        node("n1", memory="32Gi"),
        node("n2", memory="64Gi", is_unschedulable=True),
        pod("fixed", on="n1", memory=f"{32 - free}Gi"),
    )


def test_policy_lists_it_with_its_settings() -> None:
    shown = CliRunner().invoke(app, ["policy", "show"])
    assert shown.exit_code == 0
    assert "  WatchHeadroom:\n    mode: Recommend\n" in shown.stdout
    assert "memoryBytes: 17179869184" in shown.stdout


def test_it_is_met_where_a_node_has_room() -> None:
    goal = only_goal(with_free_gib(16), {})
    assert (goal.strategy, goal.verdict) == ("WatchHeadroom", Verdict.FITS)
    assert [reason.node for reason in goal.reasons] == ["n1"]


def test_unmet_it_says_what_bars_each_node() -> None:
    goal = only_goal(with_free_gib(15), {})
    assert goal.verdict is Verdict.UNPROVEN
    assert [(reason.node, reason.code) for reason in goal.reasons] == [
        ("", "no-headroom"),
        ("n1", "NodeResourcesFit"),
        ("n2", "NodeUnschedulable"),
    ]


def test_size_is_a_key_of_the_policy() -> None:
    assert only_goal(with_free_gib(15), {MEMORY_BYTES: str(15 * 2**30)}).verdict is Verdict.FITS
