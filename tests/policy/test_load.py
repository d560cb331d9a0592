from pathlib import Path

import pytest
from pydantic import ValidationError

from rebalancer.errors import InputError
from rebalancer.policy.load import load_policy, read_policy
from rebalancer.policy.model import ExecutionPolicy, Mode, SchedulePolicy, Section
from rebalancer.policy.root import RebalancerPolicy, enabled_strategies, policy_type
from tests.policy.strategies import (
    STRATEGIES,
    FitPendingVMsSettings,
    SpreadHeadroomSettings,
    StrategyStub,
)

HEADER = "apiVersion: rebalancer/v1alpha1\nkind: RebalancerPolicy\n"


def load(tmp_path: Path, text: str) -> RebalancerPolicy:
    file = tmp_path / "policy.yaml"
    file.write_text(HEADER + text)
    return load_policy(file, STRATEGIES, {})


def test_header_alone_is_the_built_in_policy(tmp_path: Path) -> None:
    policy = load(tmp_path, "")
    assert policy.model_dump() == load_policy(None, STRATEGIES, {}).model_dump()
    assert policy.schedule == SchedulePolicy()
    assert policy.execution == ExecutionPolicy()


def test_file_overrides_only_what_it_names(tmp_path: Path) -> None:
    policy = load(tmp_path, "execution: {budget: {maxPerCycle: 5}}")
    assert policy.execution.budget.max_per_cycle == 5
    assert policy.execution.budget.max_inbound_per_node == 2


def test_off_is_the_mode_and_no_boolean(tmp_path: Path) -> None:
    assert enabled_strategies(load(tmp_path, "strategies: {FitPendingVMs: {mode: Off}}")) == []


def test_strategy_keeps_its_own_default_mode_and_settings(tmp_path: Path) -> None:
    enabled = enabled_strategies(load(tmp_path, "strategies: {SpreadHeadroom: {mode: Recommend}}"))
    assert enabled == [
        ("SpreadHeadroom", Mode.RECOMMEND, SpreadHeadroomSettings()),
        ("FitPendingVMs", Mode.AUTOMATIC, FitPendingVMsSettings()),
    ]


def test_strategies_come_in_the_order_of_the_file_then_in_their_own(tmp_path: Path) -> None:
    def order(text: str) -> list[str]:
        return [name for name, _, _ in enabled_strategies(load(tmp_path, text))]

    fit, spread = "FitPendingVMs: {}", "SpreadHeadroom: {mode: Automatic}"
    assert order(f"strategies: {{{spread}, {fit}}}") == ["SpreadHeadroom", "FitPendingVMs"]
    assert order(f"strategies: {{{fit}, {spread}}}") == ["FitPendingVMs", "SpreadHeadroom"]
    assert order(f"strategies: {{{spread}}}") == ["SpreadHeadroom", "FitPendingVMs"]


def test_a_key_of_the_file_is_never_taken_for_an_argument_of_the_settings_class(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="_env_file: unknown key"):
        load(tmp_path, "_env_file: .env")


def test_cron_may_step_through_weekdays_but_not_number_them(tmp_path: Path) -> None:
    assert load(tmp_path, "schedule: {cron: 0 2 * * */2}").schedule.cron == "0 2 * * */2"
    with pytest.raises(InputError, match="weekdays by name"):
        load(tmp_path, "schedule: {cron: '0 2 * * mon,3'}")


def test_policy_cannot_be_changed(tmp_path: Path) -> None:
    policy = load(tmp_path, "")
    with pytest.raises(ValidationError, match="frozen"):
        policy.execution.namespace = "elsewhere"


def test_policy_made_in_code_does_not_look_at_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("kind", "Surprise")
    monkeypatch.setenv("schedule", '{"intervalSeconds": 1}')
    policy = policy_type(STRATEGIES).model_validate(
        {
            "apiVersion": "rebalancer/v1alpha1",
            "kind": "RebalancerPolicy",
            "execution": ExecutionPolicy(namespace="here"),
        }
    )
    assert policy.schedule == SchedulePolicy()
    assert policy.execution.namespace == "here"


def test_strategy_without_default_settings_is_refused_by_name() -> None:
    class NeedsShare(Section):
        share: float

    with pytest.raises(InputError, match="strategy Even: its settings lack a default for share"):
        policy_type({"Even": StrategyStub(NeedsShare)})


@pytest.mark.parametrize("name", ["model_config", "even-out", "Even__Out", "copy", ""])
def test_strategy_whose_name_is_no_key_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="PascalCase"):
        policy_type({name: StrategyStub(Section)})


def test_origins_tell_line_and_variable(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(HEADER + "planning:\n  maxMovesPerGoal: 3\n  deadlineSeconds: 5\n")
    environ = {"REBALANCER_PLANNING__DEADLINE_SECONDS": "7"}
    origins = read_policy(file, STRATEGIES, environ).origins
    assert origins["planning", "maxMovesPerGoal"] == f"{file}:4"
    assert origins["planning", "deadlineSeconds"] == "REBALANCER_PLANNING__DEADLINE_SECONDS"
