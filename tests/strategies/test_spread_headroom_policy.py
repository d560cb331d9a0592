"""Settings of SpreadHeadroom that oppose each other, or the rest of the policy."""

from pathlib import Path

import pytest

from rebalancer.policy.load import load_policy
from rebalancer.policy.problems import PolicyError
from rebalancer.strategy import load_strategies

HEAD = "apiVersion: rebalancer/v1alpha1\nkind: RebalancerPolicy\n"


def spread(settings: str, mode: str = "Recommend") -> str:
    section = f"{{mode: {mode}, settings: {settings}}}"
    return f"{HEAD}strategies:\n  SpreadHeadroom: {section}\n"


PROBLEMS = {
    "measured-load-without-prometheus": (
        spread("{balance: {by: MeasuredLoad}}"),
        "strategies.SpreadHeadroom: balance.by MeasuredLoad needs prometheus.url",
    ),
    "balance-without-cooldown": (
        spread("{}") + "execution: {cooldownSeconds: 0}\n",
        "must not go with execution.cooldownSeconds 0",
    ),
    "no-amount": (spread("{headroom: {sizes: [{name: a, memory: 1Gb}]}}"), "1Gb"),
    "nothing": (spread("{headroom: {sizes: [{name: a, memory: 0}]}}"), "sizes"),
    "twice": (
        spread("{headroom: {sizes: [{name: a, memory: 1Gi}, {name: a, memory: 2Gi}]}}"),
        "two sizes are called a",
    ),
}


@pytest.mark.parametrize(("text", "says"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_settings_that_cannot_work_are_refused_when_the_policy_is_read(
    text: str, says: str, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(text)
    with pytest.raises(PolicyError, match=says.replace(".", r"\.")):
        load_policy(policy, load_strategies(), {})


def test_a_strategy_that_is_off_contradicts_nothing(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(spread("{balance: {by: MeasuredLoad}}", mode="Off"))
    load_policy(policy, load_strategies(), {})
