"""`rebalancer explain`, from dumps."""

from pathlib import Path

import msgspec
import pytest

from tests.cli import dumps
from tests.cli.command import Cli, assert_error, run_in
from tests.report import contract


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return dumps.one_move_away(tmp_path / "dump.json")


def test_pending_vm_is_explained_for_each_node(cli: Cli, dump: Path) -> None:
    done = cli("explain", "big", "--from", dump)
    assert (done.code, done.stderr) == (0, "")
    assert "shop/big has no node; pod virt-launcher-big" in done.stdout
    assert f"scheduler: {dumps.MESSAGE}" in done.stdout
    assert "n1    no        NodeResourcesFit: memory: needs 12884901888" in done.stdout


def test_running_vm_is_explained_for_the_other_nodes(cli: Cli, dump: Path) -> None:
    done = cli("explain", "shop/db", "--from", dump)
    assert "shop/db is on n1; pod virt-launcher-db" in done.stdout
    assert "n2    yes" in done.stdout


def test_explanation_as_json_keeps_the_contract(cli: Cli, dump: Path) -> None:
    done = cli("explain", "big", "--from", dump, "-o", "json")
    assert (done.code, done.stderr) == (0, "")
    explanation = msgspec.json.decode(done.stdout, type=contract.Explanation)
    assert [answer.feasible for answer in explanation.nodes] == [False, False]
    assert explanation.requests["memory"] == 12 * 2**30


def test_unknown_vm_is_answered_with_the_one_that_is_meant(cli: Cli, dump: Path) -> None:
    done = cli("explain", "bigg", "--from", dump, "-o", "json")
    assert_error(done, 2, "VirtualMachineInstance bigg is none of the 2 there are; did you mean")


def test_name_that_several_vms_have_is_answered_with_all(cli: Cli, tmp_path: Path) -> None:
    namesake, _ = dumps.vm("db", "1Gi", on="n1", namespace="x")
    namesake["metadata"]["uid"] = "another-uid"
    objects = [dumps.node("n1", "16Gi"), *dumps.vm("db", "1Gi", on="n1"), namesake]
    dump = dumps.dump(tmp_path / "dump.json", *objects)
    assert_error(cli("explain", "db", "--from", dump), 2, "name one: shop/db, x/db")


def test_hostile_name_is_refused_without_being_acted_upon(cli: Cli, dump: Path) -> None:
    done = cli("explain", "a\x1b[31m[red]\nb", "--from", dump)
    assert_error(done, 2, r"a\x1b[31m[red]")
    assert "\x1b" not in done.stderr


def test_letters_that_the_terminal_lacks_are_shown_as_escapes(tmp_path: Path) -> None:
    dump = dumps.one_move_away(tmp_path / "dump.json", message="zu groß: 語")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = run_in(tmp_path, "explain", "big", "--from", dump, env=ascii_only)
    assert (done.code, done.stderr) == (0, "")
    assert r"scheduler: zu gro\xdf: \u8a9e" in done.stdout


def test_node_is_explained_with_its_vms_and_the_pending_ones(cli: Cli, dump: Path) -> None:
    done = cli("explain", "node", "n1", "--from", dump)
    assert (done.code, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["shop/db", "10240", "MiB", "yes", "n2"] in lines
    assert any(line[:2] == ["shop/big", "no"] for line in lines)


def test_explanation_of_a_node_as_json_keeps_the_contract(cli: Cli, dump: Path) -> None:
    done = cli("explain", "node", "n1", "--from", dump, "-o", "json")
    assert (done.code, done.stderr) == (0, "")
    explanation = msgspec.json.decode(done.stdout, type=contract.NodeExplanation)
    assert [resident.targets for resident in explanation.residents] == [["n2"]]


def test_vm_that_is_called_node_is_still_a_vm(cli: Cli, tmp_path: Path) -> None:
    named = dumps.vm("node", "1Gi", on="n1")
    dump = dumps.dump(tmp_path / "dump.json", dumps.node("n1", "16Gi"), *named)
    assert "shop/node is on n1" in cli("explain", "node", "--from", dump).stdout


@pytest.mark.parametrize("words", [("a", "b"), ("node", "n1", "n2")])
def test_more_than_one_subject_is_refused(cli: Cli, dump: Path, words: tuple[str, ...]) -> None:
    assert_error(cli("explain", *words, "--from", dump), 2, "name one VM, or one node as")
