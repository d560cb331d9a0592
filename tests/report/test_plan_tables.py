"""Plans as a person sees them; `UPDATE_GOLDEN=1` writes the golden files anew."""

from pathlib import Path

import pytest

from rebalancer.model.snapshot import Snapshot
from rebalancer.report.plan_tables import plan_tables, vm_table
from tests.builders import cluster, node, pending_vm, vm
from tests.golden import assert_golden
from tests.report.rendering import Terminal, piped
from tests.report.samples import SAMPLES, one_move, several_moves

GOLDEN = Path(__file__).parent / "golden"


def long_names() -> Snapshot:
    name = "worker-green.availability-zone-1.openshift.example.org"
    return cluster(
        node(name),
        vm("centos-stream8-empty-whitefish", on=name),
        pending_vm("rhel7-red-llama", "16Gi"),
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_piped_plan_reads_as_in_its_golden_file(name: str) -> None:
    assert_golden(GOLDEN / f"{name}.txt", piped(plan_tables(*SAMPLES[name]())))


@pytest.mark.parametrize("columns", [60, 80])
def test_plan_stays_readable_in_a_narrow_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Terminal(monkeypatch, columns).text(plan_tables(*several_moves()))
    assert max(map(len, text.splitlines())) <= columns
    assert_golden(GOLDEN / f"several-moves-{columns}-columns.txt", text)


def test_vms_are_listed_with_phase_and_node() -> None:
    assert_golden(GOLDEN / "vms.txt", piped([vm_table(long_names())]))


def test_long_names_stay_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = long_names()
    text = Terminal(monkeypatch, 66).text([vm_table(snapshot)])
    assert snapshot.nodes[0].name in text
    assert all(vmi.name in text for vmi in snapshot.vmis)


def test_colours_say_what_became_of_a_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal(monkeypatch, 120).show(plan_tables(*one_move()))
    assert "FitPendingVMs default/big: \x1b[1;32mplanned\x1b[0m on worker-1" in shown
    assert "\x1b[1mMIGRATE" in shown
    assert "\x1b[1m28672 MiB (87%)" in shown


def test_no_color_leaves_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch, 120)
    monkeypatch.setenv("NO_COLOR", "1")
    shown = terminal.show(plan_tables(*one_move()))
    assert "\x1b[1mplanned\x1b[0m" in shown
    assert "32m" not in shown
