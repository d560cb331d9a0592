from pathlib import Path

import pytest

from rebalancer.policy.load import load_policy, read_policy
from rebalancer.policy.text import changes, default_text, text_in_force
from rebalancer.yaml import load_documents
from tests.policy.strategies import STRATEGIES

HEADER = "apiVersion: rebalancer/v1alpha1\nkind: RebalancerPolicy\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("policy.yaml")


def test_default_text_loads_to_the_defaults(file: Path) -> None:
    file.write_text(default_text(STRATEGIES))
    policy, origins = read_policy(file, STRATEGIES, {})
    assert policy.model_dump() == load_policy(None, STRATEGIES, {}).model_dump()
    assert changes(policy, origins) == {}


def test_policy_in_force_says_where_each_change_comes_from(file: Path) -> None:
    file.write_text(
        HEADER
        + "schedule: {intervalSeconds: 30, jitterSeconds: 5}\n"
        + "strategies:\n  SpreadHeadroom:\n    mode: Recommend\n    settings: {zones: [a, b]}\n"
    )
    environ = {"REBALANCER_PLANNING__MAX_MOVES_PER_GOAL": "3"}
    lines = text_in_force(*read_policy(file, STRATEGIES, environ)).splitlines()
    assert [line for line in lines if "#" in line] == [
        "  intervalSeconds: 30  # policy.yaml:3",
        "  maxMovesPerGoal: 3  # REBALANCER_PLANNING__MAX_MOVES_PER_GOAL",
        "    mode: Recommend  # policy.yaml:6",
        "      zones: [a, b]  # policy.yaml:7",
    ]
    assert "  jitterSeconds: 5" in lines


@pytest.mark.parametrize(
    "image", ["1e3", "0o17", "null", "Off", "a: b", "a #b", 'q"\\', "\u0007\x7f\u2028é", " x "]
)
def test_text_of_a_policy_loads_to_the_same_policy(file: Path, image: str) -> None:
    policy = read_policy(None, STRATEGIES, {"REBALANCER_EXECUTION__HOLD__IMAGE": image})
    text = text_in_force(*policy)
    file.write_text(text)
    again = load_policy(file, STRATEGIES, {})
    assert again.execution.hold.image == image
    assert again.model_dump() == policy.policy.model_dump()


def test_text_in_force_keeps_the_order_of_the_strategies(file: Path) -> None:
    file.write_text(HEADER + "strategies: {SpreadHeadroom: {}}")
    [document] = load_documents(text_in_force(*read_policy(file, STRATEGIES, {})), "shown")
    assert isinstance(document, dict)
    assert list(document["strategies"]) == ["SpreadHeadroom", "FitPendingVMs"]
