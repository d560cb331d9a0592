from collections.abc import Mapping
from pathlib import Path

import pytest

from rebalancer.policy.environment import variable_of
from rebalancer.policy.load import load_policy
from rebalancer.policy.model import Mode
from rebalancer.policy.problems import PolicyError
from rebalancer.policy.root import RebalancerPolicy, enabled_strategies
from tests.policy.strategies import STRATEGIES, SpreadHeadroomSettings, Target

HEADER = "apiVersion: rebalancer/v1alpha1\nkind: RebalancerPolicy\n"
MAX_PER_CYCLE = "REBALANCER_EXECUTION__BUDGET__MAX_PER_CYCLE"
CRON = "REBALANCER_SCHEDULE__CRON"


def load(environ: Mapping[str, str], file: Path | None = None) -> RebalancerPolicy:
    return load_policy(file, STRATEGIES, environ)


def problems(environ: Mapping[str, str], file: Path | None = None) -> list[str]:
    with pytest.raises(PolicyError) as refusal:
        load(environ, file)
    return [str(problem) for problem in refusal.value.problems]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("policy.yaml")


@pytest.mark.parametrize(
    ("path", "variable"),
    [
        (("execution", "budget", "maxPerCycle"), MAX_PER_CYCLE),
        (("strategies", "FitPendingVMs", "mode"), "REBALANCER_STRATEGIES__FIT_PENDING_VMS__MODE"),
        (("a", "memoryGiB"), "REBALANCER_A__MEMORY_GI_B"),
    ],
)
def test_variable_is_the_path_in_capitals(path: tuple[str, ...], variable: str) -> None:
    assert variable_of(path) == variable


def test_variable_overrides_default_and_file(file: Path) -> None:
    file.write_text(HEADER + "execution: {budget: {maxPerCycle: 7, maxInboundPerNode: 1}}")
    assert load({MAX_PER_CYCLE: "5"}).execution.budget.max_per_cycle == 5
    budget = load({MAX_PER_CYCLE: "5"}, file).execution.budget
    assert (budget.max_per_cycle, budget.max_inbound_per_node) == (5, 1)


def test_variable_sets_a_strategy_without_changing_the_order(file: Path) -> None:
    file.write_text(HEADER + "strategies: {SpreadHeadroom: {mode: Automatic}}")
    environ = {"REBALANCER_STRATEGIES__FIT_PENDING_VMS__MODE": "Recommend"}
    enabled = [(name, mode) for name, mode, _ in enabled_strategies(load(environ, file))]
    assert enabled == [("SpreadHeadroom", Mode.AUTOMATIC), ("FitPendingVMs", Mode.RECOMMEND)]


def test_text_is_taken_as_it_is_and_everything_else_as_json() -> None:
    settings = "REBALANCER_STRATEGIES__SPREAD_HEADROOM__SETTINGS__"
    environ = {
        CRON: "*/5 * * * *",
        "REBALANCER_EXECUTION__NAMESPACE": "123",
        f"{settings}ZONES": '["a", "b"]',
        f"{settings}TARGET__SHARE": "0.5",
        "REBALANCER_STRATEGIES__SPREAD_HEADROOM__MODE": "Automatic",
    }
    policy = load(environ)
    assert policy.schedule.cron == "*/5 * * * *"
    assert policy.execution.namespace == "123"
    assert enabled_strategies(policy)[1].settings == SpreadHeadroomSettings(
        zones=["a", "b"], target=Target(share=0.5)
    )


def test_null_unsets_what_may_be_null(file: Path) -> None:
    file.write_text(HEADER + "schedule: {cron: 0 * * * *}\nexecution: {namespace: somewhere}")
    policy = load({CRON: "null", "REBALANCER_EXECUTION__NAMESPACE": "null"}, file)
    assert policy.schedule.cron is None
    assert policy.execution.namespace == "null"


@pytest.mark.parametrize(
    "text", ["five", "", " ", "1.5", "true", "null", "05", "[5]", "NaN", "0", "[" * 10**5]
)
def test_bad_value_names_the_variable_and_what_is_allowed(text: str) -> None:
    [problem] = problems({MAX_PER_CYCLE: text})
    assert problem.startswith(
        f"{MAX_PER_CYCLE}: execution.budget.maxPerCycle: must be an integer of at least 1, not "
    )


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("ZONES", "a", 'zones: must be a list, not "a"'),
        ("ZONES", '["a", 1]', "zones: Input should be a valid string; this is 1"),
        ("LIMIT", "many", 'limit: must be an integer or none, not "many"'),
    ],
)
def test_part_of_a_value_is_shown_where_only_that_is_wrong(
    key: str, text: str, problem: str
) -> None:
    variable = f"REBALANCER_STRATEGIES__SPREAD_HEADROOM__SETTINGS__{key}"
    [message] = problems({variable: text})
    assert message == f"{variable}: strategies.SpreadHeadroom.settings.{problem}"


def test_all_problems_of_file_and_environment_are_told_at_once(file: Path) -> None:
    file.write_text(HEADER + "planning: {maxMovesPerGoal: 0}\nshedule: {}")
    environ = {MAX_PER_CYCLE: "five", "REBALANCER_EXECUTION__BUGDET__MAX_PER_CYCLE": "5"}
    assert problems(environ, file) == [
        "policy.yaml:3: planning.maxMovesPerGoal: must be an integer of at least 1, not 0",
        "policy.yaml:4: shedule: unknown key; did you mean schedule?",
        f"{MAX_PER_CYCLE}: execution.budget.maxPerCycle: must be an integer of at least 1,"
        ' not "five"',
        "REBALANCER_EXECUTION__BUGDET__MAX_PER_CYCLE: no key of the policy has this variable;"
        f" did you mean {MAX_PER_CYCLE}?",
    ]


@pytest.mark.parametrize(
    "variable", ["REBALANCER_EXECUTION", "REBALANCER_KIND", "REBALANCER_", "REBALANCER_ZZZZZZ"]
)
def test_variable_that_sets_nothing_is_refused(variable: str) -> None:
    [problem] = problems({variable: "{}"})
    assert problem.startswith(f"{variable}: no key of the policy has this variable")


def test_variable_that_mends_a_wrong_value_is_enough(file: Path) -> None:
    file.write_text(HEADER + "execution: {budget: {maxPerCycle: 0}}")
    assert load({MAX_PER_CYCLE: "5"}, file).execution.budget.max_per_cycle == 5


def test_variable_does_not_hide_that_the_file_has_no_section_there(file: Path) -> None:
    file.write_text(HEADER + "execution: 5")
    assert problems({MAX_PER_CYCLE: "5"}, file) == [
        "policy.yaml:3: execution: must be a mapping, not 5"
    ]


def test_contradiction_names_the_section_and_the_variables_in_it(file: Path) -> None:
    file.write_text(HEADER + "execution:\n  budget:\n    maxInFlightPerCluster: 4")
    message = "execution.budget: maxInFlightPerCluster (4) must not exceed maxPerCycle (3)"
    assert problems({MAX_PER_CYCLE: "3"}, file) == [f"policy.yaml:4 and {MAX_PER_CYCLE}: {message}"]
    both = {MAX_PER_CYCLE: "3", "REBALANCER_EXECUTION__BUDGET__MAX_IN_FLIGHT_PER_CLUSTER": "4"}
    assert problems(both) == [
        f"REBALANCER_EXECUTION__BUDGET__MAX_IN_FLIGHT_PER_CLUSTER and {MAX_PER_CYCLE}: {message}"
    ]


def test_text_that_is_no_unicode_is_a_problem_and_no_crash() -> None:
    [problem] = problems({"REBALANCER_EXECUTION__NAMESPACE": "\udc80"})
    assert problem.startswith("REBALANCER_EXECUTION__NAMESPACE: execution: ")


def test_variables_of_the_command_line_and_of_services_are_left_alone() -> None:
    environ = {
        "REBALANCER_POLICY": "policy.yaml",
        # What the kubelet sets for Services named rebalancer and rebalancer-metrics.
        "REBALANCER_SERVICE_HOST": "10.0.0.7",
        "REBALANCER_SERVICE_PORT": "8080",
        "REBALANCER_SERVICE_PORT_HTTP_METRICS": "8080",
        "REBALANCER_PORT": "tcp://10.0.0.7:8080",
        "REBALANCER_PORT_8080_TCP": "tcp://10.0.0.7:8080",
        "REBALANCER_PORT_8080_TCP_PROTO": "tcp",
        "REBALANCER_PORT_8080_TCP_PORT": "8080",
        "REBALANCER_PORT_8080_TCP_ADDR": "10.0.0.7",
        "REBALANCER_METRICS_SERVICE_HOST": "10.0.0.8",
        "REBALANCER_METRICS_PORT_53_UDP_ADDR": "10.0.0.8",
        "PATH": "/bin",
    }
    assert load(environ).model_dump() == load({}).model_dump()
    environ["REBALANCER_PORTS"] = "1"
    assert len(problems(environ)) == 1


def test_caller_says_which_other_variables_are_no_policy() -> None:
    environ = {"REBALANCER_LOG_LEVEL": "debug"}
    policy = load_policy(None, STRATEGIES, environ, ignored={"REBALANCER_LOG_LEVEL"})
    assert policy.model_dump() == load({}).model_dump()
