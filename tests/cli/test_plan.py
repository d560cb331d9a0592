"""`rebalancer plan`, from dumps."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli import dumps
from tests.cli.command import Cli, Finished, assert_error, run_in
from tests.cluster import wire_builders as wire
from tests.report import contract


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return dumps.one_move_away(tmp_path / "dump.json")


def document(done: Finished) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(done.stdout)
    return decoded


def test_plan_is_shown_with_its_moves(cli: Cli, dump: Path) -> None:
    done = cli("plan", "--from", dump)
    assert (done.code, done.stderr) == (0, "")
    assert "FitPendingVMs shop/big: planned on n1, cost 90.0 s (proven cheapest)" in done.stdout
    assert "shop/db  n1    n2  10240 MiB  80 s  90.0 s  -" in done.stdout


def test_piped_plan_has_neither_colours_nor_folded_lines(cli: Cli, tmp_path: Path) -> None:
    name = "worker-green." + ".".join(["availability-zone"] * 10)
    objects = [dumps.node(name, "16Gi"), *dumps.vm("db", "10Gi", on=name)]
    dump = dumps.dump(tmp_path / "dump.json", *objects, *dumps.pending_vm("big", "17Gi"))
    done = cli("plan", "--from", dump)
    assert "\x1b" not in done.stdout
    *_, line = done.stdout.splitlines()
    assert line.split() == [name, "10240", "MiB", "(62%)", "6144", "MiB"]


def test_plan_as_json_keeps_the_contract(cli: Cli, dump: Path) -> None:
    done = cli("plan", "--from", dump, "-o", "json")
    assert (done.code, done.stderr) == (0, "")
    plan = msgspec.json.decode(done.stdout, type=contract.Plan)
    assert [(move.name, move.source, move.target) for move in plan.moves] == [("db", "n1", "n2")]
    assert plan.snapshot.missing[0] == "KubeVirt"


def test_equal_dumps_give_the_same_plan_byte_by_byte(cli: Cli, dump: Path) -> None:
    assert cli("plan", "--from", dump, "-o", "json") == cli("plan", "--from", dump, "-o", "json")


@pytest.mark.parametrize(
    ("make", "code"),
    [(dumps.at_rest, 0), (dumps.one_move_away, 3), (dumps.without_a_way, 4)],
)
@pytest.mark.parametrize("output", ["table", "json"])
def test_detailed_exit_code_tells_what_there_is_to_do(
    cli: Cli, tmp_path: Path, make: Any, code: int, output: str
) -> None:
    dump = make(tmp_path / "dump.json")
    plain = cli("plan", "--from", dump, "-o", output)
    detailed = cli("plan", "--from", dump, "-o", output, "--detailed-exitcode")
    assert (plain.code, detailed.code) == (0, code)
    assert plain.stdout == detailed.stdout != ""


def test_policy_of_the_environment_holds(cli: Cli, dump: Path) -> None:
    cli.monkeypatch.setenv("REBALANCER_STRATEGIES__FIT_PENDING_VMS__MODE", "Off")
    done = cli("plan", "--from", dump)
    assert "Nothing to do: no active strategy has a goal." in done.stdout


def test_dump_may_come_in_folders_and_several_files(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "must-gather"
    folder.mkdir()
    whole = json.loads(dumps.one_move_away(tmp_path / "whole.json").read_text())["items"]
    dumps.dump(folder / "nodes.json", *whole[:2])
    rest = dumps.dump(tmp_path / "rest.json", *whole[2:])
    done = cli("plan", "-o", "json", "--from", folder, "--from", rest)
    assert document(done) == document(cli("plan", "-o", "json", "--from", tmp_path / "whole.json"))


def test_dump_may_come_through_a_pipe(tmp_path: Path, dump: Path) -> None:
    done = run_in(tmp_path, "plan", "--from", "-", stdin=dump.read_text())
    assert (done.code, done.stderr) == (0, "")
    assert "planned on n1" in done.stdout


def test_missing_file_is_named(cli: Cli) -> None:
    assert_error(cli("plan", "--from", "nowhere.json"), 2, "nowhere.json: cannot be read: ")


def test_folder_without_objects_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_error(cli("plan", "--from", "empty"), 2, "empty: no Node and no Pod and no ")


def test_file_that_is_no_dump_is_named_with_the_place(cli: Cli) -> None:
    Path("broken.json").write_text('{"kind": [}')
    assert_error(cli("plan", "--from", "broken.json"), 2, "broken.json")


def test_object_that_cannot_be_read_is_named_with_its_field(cli: Cli, tmp_path: Path) -> None:
    dump = dumps.dump(tmp_path / "d.json", wire.node("n1", {"cpu": "16", "memory": "sixteen"}))
    done = cli("plan", "--from", dump)
    assert_error(done, 2, "Node n1: ", "memory", "'sixteen' is not a quantity")


def test_name_with_terminal_codes_is_told_without_them(cli: Cli, tmp_path: Path) -> None:
    bad = wire.node("n1\x1b]0;owned\x07\nerror: none", {"memory": "sixteen"})
    done = cli("plan", "--from", dumps.dump(tmp_path / "d.json", bad))
    assert_error(done, 2, r"n1\x1b]0;owned\x07")
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("option", ["--kubeconfig", "--context"])
def test_files_and_a_cluster_cannot_be_read_at_once(cli: Cli, dump: Path, option: str) -> None:
    done = cli("plan", "--from", dump, option, "x")
    assert_error(done, 2, "--from reads files; it cannot go with --kubeconfig or --context")


@pytest.mark.parametrize("command", [["plan"], ["run"], ["serve"], ["explain", "vm"]])
def test_without_any_cluster_it_is_said_how_to_name_one(cli: Cli, command: list[str]) -> None:
    done = cli(*command)
    assert_error(done, 2, "no cluster: ", "name a kubeconfig, or read a dump with --from")


@pytest.mark.parametrize("command", [["plan"], ["run"], ["serve"], ["explain", "vm"]])
def test_kubeconfig_that_does_not_exist_is_named(cli: Cli, command: list[str]) -> None:
    done = cli(*command, "--kubeconfig", "nowhere")
    assert_error(done, 2, "kubeconfig nowhere: no such file")
