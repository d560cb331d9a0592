"""How long a migration may take before it is taken for stalled."""

from datetime import timedelta

import pytest

from rebalancer.model.objects import MigrationConfiguration, MigrationState
from rebalancer.scheduling.migration_deadline import deadline_seconds, is_overdue
from tests.builders import NOW, cluster, migration, node, vm


@pytest.mark.parametrize(
    ("memory", "configuration", "seconds"),
    [
        ("64Gi", MigrationConfiguration(completion_timeout_seconds_per_gib=800), 64 * 800 + 150),
        ("64Gi", MigrationConfiguration(), 64 * 150 + 150),
        ("512Mi", MigrationConfiguration(), 150 + 150),
        ("1025Mi", MigrationConfiguration(progress_timeout_seconds=30), 2 * 150 + 30),
    ],
)
def test_the_deadline_grows_with_the_guest(
    memory: str, configuration: MigrationConfiguration, seconds: int
) -> None:
    """kubevirt/kubevirt#12848: 800 s per GiB were 14 hours for 64 GiB, 150 are 2 h 40."""
    vmi, _ = vm("a", on="n1", memory=memory)
    assert deadline_seconds(vmi, cluster(configuration)) == seconds


def test_what_the_vmi_notes_of_its_migration_goes_before_the_kubevirt_cr() -> None:
    state = MigrationState(completion_timeout_seconds_per_gib=10, progress_timeout_seconds=0)
    vmi, _ = vm("a", on="n1", memory="4Gi", vmi={"migration_state": state})
    assert deadline_seconds(vmi, cluster()) == 40


def test_a_migration_is_overdue_once_its_deadline_has_passed() -> None:
    limits = MigrationConfiguration(
        completion_timeout_seconds_per_gib=100, progress_timeout_seconds=0
    )
    move = migration("m", "a", created_at=NOW)
    things = node("n1"), vm("a", on="n1", memory="2Gi"), move, limits
    assert not is_overdue(move, cluster(*things, taken_at=NOW + timedelta(seconds=200)))
    assert is_overdue(move, cluster(*things, taken_at=NOW + timedelta(seconds=201)))


def test_a_migration_without_its_vm_is_overdue() -> None:
    move = migration("m", "gone", created_at=NOW)
    assert is_overdue(move, cluster(node("n1"), move))
