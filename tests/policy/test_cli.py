import json
import os
import sys
from pathlib import Path

import pytest

from rebalancer.cli.main import main
from rebalancer.policy.load import load_policy
from rebalancer.strategy import load_strategies

HEADER = "apiVersion: rebalancer/v1alpha1\nkind: RebalancerPolicy\n"
MAX_PER_CYCLE = "REBALANCER_EXECUTION__BUDGET__MAX_PER_CYCLE"


class Cli:
    """Runs `rebalancer policy ...` in an empty folder, with no variables but those set here."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
    ) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        monkeypatch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("REBALANCER_")]:
            monkeypatch.delenv(name)

    def __call__(self, *arguments: str) -> tuple[int | str | None, str, str]:
        """Exit code, stdout and stderr."""
        self.monkeypatch.setattr(sys, "argv", ["rebalancer", "policy", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        captured = self.capsys.readouterr()
        return end.value.code, captured.out, captured.err


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    return Cli(monkeypatch, capsys, tmp_path)


def test_valid_policy_is_said_to_be_valid(cli: Cli) -> None:
    Path("policy.yaml").write_text(HEADER)
    assert cli("validate", "policy.yaml") == (0, "policy.yaml: valid\n", "")
    assert cli("validate") == (0, "defaults: valid\n", "")


def test_bad_policy_ends_with_2_and_its_problems_on_stderr(cli: Cli) -> None:
    Path("policy.yaml").write_text(HEADER + "planning: {maxMovesPerGoal: 0}\nshedule: {}")
    assert cli("validate", "policy.yaml") == (
        2,
        "",
        "error: policy.yaml:3: planning.maxMovesPerGoal: must be an integer of at least 1, not 0\n"
        "policy.yaml:4: shedule: unknown key; did you mean schedule?\n",
    )


def test_problems_are_told_as_json_too(cli: Cli) -> None:
    Path("policy.yaml").write_text(HEADER + "planning: {maxMovesPerGol: 1}")
    code, out, err = cli("validate", "policy.yaml", "-o", "json")
    assert (code, err) == (2, "")
    assert json.loads(out) == {
        "valid": False,
        "problems": [
            {
                "message": "unknown key; did you mean maxMovesPerGoal?",
                "key": "planning.maxMovesPerGol",
                "file": "policy.yaml",
                "line": 3,
                "variables": [],
                "allowed": "deadlineSeconds, solverMemoryMebibytes, maxMovesPerGoal",
                "suggestion": "maxMovesPerGoal",
            }
        ],
    }
    assert json.loads(cli("validate", "-o", "json")[1]) == {"valid": True, "problems": []}


def test_file_that_is_no_yaml_is_one_problem(cli: Cli) -> None:
    Path("policy.yaml").write_text("kind: [}")
    code, out, _ = cli("validate", "policy.yaml", "-o", "json")
    assert code == 2
    [problem] = json.loads(out)["problems"]
    assert problem["message"].startswith("policy.yaml:1:8: ")


def test_file_may_be_named_by_the_environment(cli: Cli) -> None:
    Path("mine.yaml").write_text(HEADER)
    cli.monkeypatch.setenv("REBALANCER_POLICY", "mine.yaml")
    assert cli("validate") == (0, "mine.yaml: valid\n", "")


def test_shown_policy_is_the_one_in_force_with_its_origins(cli: Cli) -> None:
    Path("policy.yaml").write_text(HEADER + "schedule: {intervalSeconds: 30}")
    cli.monkeypatch.setenv(MAX_PER_CYCLE, "5")
    code, out, _ = cli("show", "policy.yaml")
    assert code == 0
    assert f"    maxPerCycle: 5  # {MAX_PER_CYCLE}\n" in out
    assert "  intervalSeconds: 30  # policy.yaml:3\n" in out
    shown = json.loads(cli("show", "policy.yaml", "-o", "json")[1])
    assert shown["policy"]["execution"]["budget"]["maxPerCycle"] == 5
    assert shown["origins"] == {
        "execution.budget.maxPerCycle": MAX_PER_CYCLE,
        "schedule.intervalSeconds": "policy.yaml:3",
    }


def test_default_and_schema_print_what_is_shipped(cli: Cli) -> None:
    config = Path(__file__).parents[2] / "config"
    assert cli("default")[1] == (config / "policy.yaml").read_text()
    assert cli("schema")[1] == (config / "policy.schema.json").read_text()


def test_printed_default_is_a_policy(cli: Cli) -> None:
    Path("policy.yaml").write_text(cli("default")[1])
    load_policy(Path("policy.yaml"), load_strategies(), {})
