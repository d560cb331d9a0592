"""What is done for an object, or why nothing is, is told by Events on that object."""

from rebalancer.cluster.protocols import Notice
from rebalancer.errors import ClusterError
from rebalancer.execution.events import Event
from rebalancer.model.plan import Subject
from tests.builders import node, pending_vm, pod
from tests.execution.test_cycle import codes, cycle, endings, one_move_away, simulate


def on_vm(name: str, reason: str, message: str, *, is_warning: bool = False) -> Notice:
    subject = Subject("VirtualMachineInstance", "default", name, f"vmi-{name}")
    return Notice(subject, reason, message, is_warning)


def test_the_vm_that_moves_and_the_one_that_waits_are_told_why() -> None:
    simulated = simulate(*one_move_away())
    cycle(simulated)
    (migration,) = simulated.read().migrations
    for_p = f"migration {migration.name} to n2, by FitPendingVMs for default/p"
    bound = "is bound to n1; 1 migration started for it"
    assert simulated.notices == [
        on_vm("a", "RebalanceMigration", for_p),
        on_vm("p", "RebalanceBound", bound),
    ]


def test_what_is_impossible_is_told_once() -> None:
    full = (node("n1", memory="16Gi"), pod("fixed", on="n1", memory="10Gi"))
    simulated = simulate(*full, pending_vm("p", "11Gi"))
    cycle(simulated)
    (notice,) = simulated.notices
    assert (notice.reason, notice.is_warning) == ("RebalanceImpossible", True)
    cycle(simulated)
    assert simulated.notices == [notice]


def test_a_goal_that_was_dropped_is_a_warning() -> None:
    simulated = simulate(*one_move_away())
    simulated.fail_next("create_hold", ClusterError("no answer"))
    cycle(simulated)
    warnings = [notice.reason for notice in simulated.notices if notice.is_warning]
    assert warnings == ["RebalanceDropped"]


def test_a_cycle_goes_on_without_events_and_says_so_once() -> None:
    simulated = simulate(*one_move_away())
    simulated.fail_next("create_event", ClusterError("events is forbidden"))
    events: list[Event] = []
    assert endings(cycle(simulated, events)) == {"p": "bound"}
    assert codes(events) == ["planned", "held", "created", "event-lost", "succeeded", "bound"]
    assert simulated.notices == []
