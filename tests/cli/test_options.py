"""What the command does with options, policies and streams that it cannot use."""

import subprocess
from pathlib import Path

import pytest

from tests.cli import dumps
from tests.cli.command import Cli, assert_error, command, environment

HEADER = "apiVersion: rebalancer/v1alpha1\nkind: RebalancerPolicy\n"
COMMANDS = ("demo", "plan", "run", "serve", "drain", "rolling", "explain", "policy")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fly"], "fly"),
        (["plan", "--no-such-option"], "--no-such-option"),
        (["plan", "-o", "yaml"], "--output"),
        (["plan", "surplus"], "surplus"),
        (["explain"], "VM"),
        (["demo", "--speed", "0"], "--speed"),
        (["demo", "--speed", "nan"], "--speed"),
        (["run", "--from", "dump.json"], "--from"),
    ],
)
def test_option_that_is_not_understood_is_named(cli: Cli, arguments: list[str], says: str) -> None:
    assert_error(cli(*arguments), 2, says, "Usage: rebalancer")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(cli: Cli, name: str) -> None:
    done = cli(name, "--help")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: rebalancer {name} ")


def test_without_arguments_all_commands_are_listed(cli: Cli) -> None:
    done = cli()
    assert all(f"  {name}  " in done.stdout + done.stderr for name in COMMANDS)


@pytest.mark.parametrize(
    "arguments", [["demo"], ["plan"], ["run"], ["serve"], ["explain", "vm"]], ids=lambda a: a[0]
)
def test_policy_that_is_wrong_stops_every_command_before_it_does_anything(
    cli: Cli, arguments: list[str]
) -> None:
    Path("policy.yaml").write_text(HEADER + "planning: {maxMovesPerGol: 1}")
    done = cli(*arguments, "--policy", "policy.yaml")
    assert_error(done, 2, "policy.yaml:3: planning.maxMovesPerGol: unknown key")


def test_policy_may_be_named_by_the_environment(cli: Cli) -> None:
    cli.monkeypatch.setenv("REBALANCER_POLICY", "nowhere.yaml")
    assert_error(cli("plan"), 2, "nowhere.yaml: cannot be read")


def test_strategy_that_is_broken_is_named(cli: Cli) -> None:
    cli.monkeypatch.setattr("rebalancer.strategy.entry_points", _broken_entry_point)
    assert_error(cli("plan"), 2, "strategy Mine (no_such_module:MINE) cannot be imported")


def _broken_entry_point(**_: str) -> list[object]:
    from importlib.metadata import EntryPoint

    return [EntryPoint("Mine", "no_such_module:MINE", "rebalancer.strategies")]


@pytest.mark.parametrize("output", ["table", "json"])
def test_reader_that_goes_away_ends_the_command_without_a_traceback(
    tmp_path: Path, output: str
) -> None:
    dump = dumps.one_move_away(tmp_path / "dump.json")
    with subprocess.Popen(
        command("plan", "--from", dump, "-o", output),
        cwd=tmp_path,
        env=environment(tmp_path, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1
