"""`rebalancer demo`, as a process of its own: tracing can be set up once in each."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Finished, assert_error, run_in

HEADER = "apiVersion: rebalancer/v1alpha1\nkind: RebalancerPolicy\n"
FAST = ("demo", "--speed", "1000000")
TRACE_FILE = "rebalancer-demo-trace.jsonl"
BIG_VM = "rhel7-red-llama"


def first_and_last_state(done: Finished) -> list[str]:
    """Phase and node of the big VM in the first and in the last table."""
    lines = done.stdout.splitlines()
    return [" ".join(line.split()[1:]) for line in lines if line.startswith(f"{BIG_VM} ")]


def spans(file: Path) -> list[dict[str, Any]]:
    documents = [json.loads(line) for line in file.read_text().splitlines()]
    return [
        span
        for document in documents
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(folder: Path) -> Finished:
    """A demo with nothing but its speed chosen."""
    return run_in(folder, *FAST)


def test_demo_ends_with_the_vm_running(demo: Finished) -> None:
    assert (demo.code, demo.stderr) == (0, "")
    before, after = first_and_last_state(demo)
    assert before == "Scheduling -"
    assert after.startswith("Running worker-")


def test_demo_shows_plan_events_and_cluster(demo: Finished) -> None:
    assert f"FitPendingVMs default/{BIG_VM}: planned on worker-" in demo.stdout
    assert "(proven cheapest)" in demo.stdout
    codes = [line.split()[1] for line in demo.stdout.splitlines() if line.startswith("20")]
    assert [code for code in codes if code != "phase"] == [
        "planned",
        "held",
        "created",
        "succeeded",
        "bound",
    ]


def test_piped_demo_has_no_colours(demo: Finished) -> None:
    assert "\x1b" not in demo.stdout


def test_two_demos_are_the_same(demo: Finished, folder: Path) -> None:
    assert run_in(folder, *FAST) == demo


def test_demo_writes_its_trace_for_jaeger(demo: Finished, folder: Path) -> None:
    assert demo.stdout.endswith(f"\nTrace written to {TRACE_FILE}\n")
    found = spans(folder / TRACE_FILE)
    names = {span["name"].split()[0] for span in found}
    assert {"cycle", "snapshot", "strategy", "solve", "plan", "move", "Running"} <= names
    assert len({span["traceId"] for span in found}) == 1
    assert all(len(span["traceId"]) == 32 and len(span["spanId"]) == 16 for span in found)
    known = {span["spanId"] for span in found}
    assert [s["name"] for s in found if s.get("parentSpanId") not in known] == ["cycle"]


@pytest.mark.parametrize(
    "variables", [{"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}]
)
def test_demo_writes_no_trace_where_none_is_wanted(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    done = run_in(tmp_path, *FAST, env=variables)
    assert (done.code, done.stderr) == (0, "")
    assert "Trace written" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_trace_goes_to_the_file_that_is_named(tmp_path: Path) -> None:
    done = run_in(
        tmp_path, *FAST, "--trace-file", "mine.jsonl", env={"OTEL_TRACES_EXPORTER": "none"}
    )
    assert "Trace written to mine.jsonl" in done.stdout
    assert spans(tmp_path / "mine.jsonl")
    assert not (tmp_path / TRACE_FILE).exists()


def test_trace_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = run_in(tmp_path, *FAST, "--trace-file", "no/such/folder.jsonl")
    assert done.code == 2
    assert "trace file no/such/folder.jsonl: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_exporter_that_is_not_known_is_named_before_anything_happens(tmp_path: Path) -> None:
    done = run_in(tmp_path, *FAST, env={"OTEL_TRACES_EXPORTER": "oltp"})
    assert_error(done, 2, "OTEL_TRACES_EXPORTER: 'oltp' is not known")


@pytest.mark.parametrize(
    ("mode", "code", "says"),
    [
        ("Recommend", 4, f"FitPendingVMs default/{BIG_VM}: planned on worker-"),
        ("Off", 0, "Nothing to do: no active strategy has a goal."),
    ],
)
def test_demo_obeys_the_policy(tmp_path: Path, mode: str, code: int, says: str) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"{HEADER}strategies: {{FitPendingVMs: {{mode: '{mode}'}}}}")
    done = run_in(tmp_path, *FAST, "--policy", policy)
    assert (done.code, done.stderr) == (code, "")
    assert says in done.stdout
    assert first_and_last_state(done) == ["Scheduling -", "Scheduling -"]
