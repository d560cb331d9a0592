"""`--from` what is no good dump: a clear error or a named refusal, never a traceback."""

import copy
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.cli.main import main
from tests.cli import dumps
from tests.cli.command import Cli, Finished, assert_error, outside_variables
from tests.cluster import wire_builders as wire

Change = Callable[[wire.Json], object]


@pytest.fixture
def good(tmp_path: Path) -> wire.Json:
    """db may leave n1 for n2; then big fits on n1."""
    decoded: wire.Json = json.loads(dumps.one_move_away(tmp_path / "good.json").read_text())
    return decoded


def item(dump: wire.Json, kind: str, name: str) -> wire.Json:
    return next(
        each for each in dump["items"] if each["kind"] == kind and each["metadata"]["name"] == name
    )


def n1(dump: wire.Json) -> wire.Json:
    return item(dump, "Node", "n1")


def launcher(dump: wire.Json) -> wire.Json:
    return item(dump, "Pod", "virt-launcher-db")


def ask_memory(quantity: Any) -> Change:
    def change(dump: wire.Json) -> None:
        launcher(dump)["spec"]["containers"][0]["resources"]["requests"]["memory"] = quantity

    return change


def offer_memory(quantity: Any) -> Change:
    return lambda dump: n1(dump)["status"]["allocatable"].update(memory=quantity)


def add_a_smaller_n1(dump: wire.Json) -> None:
    second = copy.deepcopy(n1(dump))
    second["status"]["allocatable"]["memory"] = "1Gi"
    dump["items"].append(second)


def copy_db_as_web(dump: wire.Json) -> None:
    second = copy.deepcopy(item(dump, "VirtualMachineInstance", "db"))
    second["metadata"]["name"] = "web"
    dump["items"].append(second)


def annotate(kind: str, name: str, key: str, value: str) -> Change:
    return lambda dump: item(dump, kind, name)["metadata"].update(annotations={key: value})


def label_n1(labels: Any) -> Change:
    return lambda dump: n1(dump)["metadata"].update(labels=labels)


class TestRefusedDumps:
    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda dump: n1(dump).update(kind="Pod"), "Pod n1: metadata.namespace: is missing"),
            (offer_memory("9e99"), "Node n1: status.allocatable.memory: '9e99' is larger than"),
            (offer_memory("-5Gi"), "Node n1: status.allocatable.memory: '-5Gi' is negative"),
            (offer_memory(None), "Node n1: status.allocatable[memory]: null: expected"),
            (offer_memory([]), "Node n1: status.allocatable[memory]: []: expected"),
            (
                ask_memory("9e99"),
                "Pod shop/virt-launcher-db: container compute.resources.requests.memory: '9e99'",
            ),
            (
                ask_memory(""),
                "Pod shop/virt-launcher-db: container compute.resources.requests.memory: '' is",
            ),
            (ask_memory("9" * 900), f"memory: '{'9' * 80}'… is larger than a quantity can be"),
            (ask_memory("9" * 10_000), f"memory: '{'9' * 80}'… is not a quantity"),
            (ask_memory(int("9" * 4000)), "container compute.resources.requests"),
            (lambda dump: launcher(dump).pop("status"), "virt-launcher-db: status.phase: is miss"),
            (add_a_smaller_n1, "Node n1 is there twice, and differs: in "),
            (
                copy_db_as_web,
                "shop/web: metadata.uid: db-uid is that of VirtualMachineInstance shop/db as well",
            ),
            (label_n1("zone=a"), 'Node n1: metadata.labels: "zone=a": expected'),
            (label_n1({"zone": 5}), "Node n1: metadata.labels[zone]: 5: expected"),
        ],
    )
    def test_object_that_cannot_be_used_is_named_with_what_is_wrong(
        self, cli: Cli, good: wire.Json, change: Change, says: str
    ) -> None:
        change(good)
        Path("bad.json").write_text(json.dumps(good))
        assert_error(cli("plan", "--from", "bad.json"), 2, says, "bad.json, item ")

    def test_dump_of_other_kinds_says_which_command_prints_the_right_ones(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
        dump = dumps.dump(tmp_path / "dump.json", config_map)
        done = cli("plan", "--from", dump)
        assert_error(done, 2, "no Node and no Pod and no ", "add what this prints: kubectl get ")

    def test_json_that_is_cut_off_is_named_with_the_place(self, cli: Cli, good: wire.Json) -> None:
        Path("cut.json").write_text(json.dumps(good)[:1000])
        assert_error(cli("plan", "--from", "cut.json"), 2, "error: cut.json:1:")

    def test_yaml_that_is_cut_off_is_never_taken_for_a_smaller_cluster(
        self, cli: Cli, good: wire.Json
    ) -> None:
        """Cut between two items it is well-formed, with the last items and the kind missing."""
        lines = yaml.dump(good, sort_keys=True).splitlines(keepends=True)
        begins = [number for number, line in enumerate(lines) if line.startswith("- ")]
        for number in (*begins[1:], len(lines) // 3, len(lines) // 2):
            Path("cut.yaml").write_text("".join(lines[:number]))
            assert_error(cli("plan", "--from", "cut.yaml"), 2, "cut.yaml")
        Path("cut.yaml").write_text("".join(lines[: begins[-1]]))
        assert_error(cli("plan", "--from", "cut.yaml"), 2, "it was cut off; dump it again")


class TestStrangeButTrue:
    """What a cluster could hold is planned with; VMs that cannot be judged stay."""

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda dump: launcher(dump)["metadata"].pop("ownerReferences"), "planned on n1"),
            (
                lambda dump: launcher(dump)["metadata"].update(ownerReferences=[], labels={}),
                "shop/db  launcher-pods  it has 0 live launcher pods",
            ),
            (
                lambda dump: dump["items"].remove(item(dump, "VirtualMachineInstance", "db")),
                "no VM in the cluster may be moved",
            ),
            (ask_memory("7Ei"), "shop/db  no-other-node"),
            (offer_memory("0"), "headroom -10240 MiB of 0 MiB"),
            (annotate("Pod", "virt-launcher-db", "x", "y" * 10_000_000), "planned on n1"),
            (
                annotate("VirtualMachineInstance", "db", "rebalancer/opt-out", "y" * 10_000_000),
                "shop/db  opted-out  annotation rebalancer/opt-out keeps it where it is",
            ),
            (
                lambda dump: n1(dump)["metadata"]["labels"].update(
                    {"\x1b[2J": "\x07", "a b": "{0}", "x" * 5000: "\u202e", "": ""}
                ),
                "planned on n1",
            ),
        ],
        ids=[
            "launcher without owner",
            "launcher without owner and labels",
            "launcher without VMI",
            "absurd request",
            "node without memory",
            "annotation of 10 MB",
            "opt-out of 10 MB",
            "hostile labels",
        ],
    )
    def test_it_is_planned_or_named(
        self, cli: Cli, good: wire.Json, change: Change, says: str
    ) -> None:
        change(good)
        Path("odd.json").write_text(json.dumps(good))
        done = cli("plan", "--from", "odd.json")
        assert (done.code, done.stderr) == (0, "")
        assert says in done.stdout
        assert len(done.stdout) < 5000
        assert "\x1b" not in done.stdout


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value within a structure, except to the whole."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(entries):
        yield (*above, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*above, key))


STRANGE: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 2**70, 1.5, "", "x", "-1Gi", "9e99", "\x1b[2J", "{0}", [], [None], {}]
)


@st.composite
def broken_dumps(draw: st.DrawFn) -> tuple[str, bytes]:
    """A suffix and the bytes of a good dump with keys dropped, values swapped, bytes cut off."""
    with tempfile.TemporaryDirectory() as folder:
        text = dumps.one_move_away(Path(folder, "good.json")).read_text()
    dump = json.loads(text)
    for _ in range(draw(st.integers(0, 4))):
        *above, last = draw(st.sampled_from(list(places(dump))))
        holder = dump
        for key in above:
            holder = holder[key]
        if draw(st.booleans()):
            del holder[last]
        else:
            holder[last] = copy.deepcopy(draw(STRANGE))  # it may be broken in turn
        if not dump:
            break
    suffix = draw(st.sampled_from([".json", ".yaml"]))
    content = json.dumps(dump).encode() if suffix == ".json" else yaml.dump(dump).encode()
    if draw(st.booleans()):
        content = content[: draw(st.integers(0, len(content)))]
    return suffix, content


def run(*arguments: str) -> Finished:
    out, err = io.StringIO(), io.StringIO()
    clean = {name: value for name, value in os.environ.items() if name not in outside_variables()}
    with (
        mock.patch.object(sys, "argv", ["rebalancer", *arguments]),
        mock.patch.dict(os.environ, clean, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main()
    code = end.value.code or 0
    assert isinstance(code, int)
    return Finished(code, out.getvalue(), err.getvalue())


@settings(max_examples=60, deadline=None)
@given(
    command=st.sampled_from([("plan",), ("explain", "big"), ("explain", "node", "n1")]),
    broken=broken_dumps(),
)
def test_whatever_has_happened_to_a_dump_there_is_an_answer_or_an_error(
    command: tuple[str, ...], broken: tuple[str, bytes]
) -> None:
    suffix, content = broken
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"dump{suffix}")
        file.write_bytes(content)
        done = run(*command, "--from", str(file))
    if done.code == 0:
        assert done.stderr == ""
    else:
        assert_error(done, 2, "error: ")
    assert "\x1b" not in done.stdout + done.stderr
