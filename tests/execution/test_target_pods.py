"""Room made for an evacuation by KubeVirt, on the simulated cluster."""

from datetime import timedelta
from typing import Any

import pytest

from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.cluster.simulation.scripts import Stall
from rebalancer.execution.events import Event
from rebalancer.loop import CycleResult, run_cycle
from rebalancer.model.keys import HOSTNAME
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer_strategies.fit_pending_vms import STRATEGY
from tests.builders import NOW, cluster, evacuated, key, node, pod, vm
from tests.strategies.decisions import automatic

TARGET = key("virt-launcher-big-target")


def simulate(**target_fields: Any) -> SimulatedCluster:
    """big leaves n1 for n2 once b has gone from there to n3."""
    big = vm("big", on="n1", memory="12Gi")
    return SimulatedCluster(
        cluster(
            node("n1", memory="32Gi", is_unschedulable=True),
            node("n2", memory="16Gi"),
            node("n3", memory="16Gi"),
            evacuated(big, **{"created_at": NOW, **target_fields}),
            vm("b", on="n2", memory="6Gi"),
            pod("fixed", on="n3", memory="8Gi"),
        )
    )


def cycle(simulated: SimulatedCluster, events: list[Event]) -> CycleResult:
    return run_cycle(simulated, [automatic(STRATEGY)], PlanningContext(), events.append)


def codes(events: list[Event]) -> list[str]:
    return [event.code for event in events if event.code != "phase"]


def homes(snapshot: Snapshot) -> dict[str, str | None]:
    return {vmi.name: vmi.node_name for vmi in snapshot.vmis}


def locks(snapshot: Snapshot) -> list[str]:
    return [p.name for p in snapshot.pods if p.name.startswith("hold-") and not p.is_terminating]


@pytest.mark.parametrize(
    "fields", [{}, {"node_selector": {HOSTNAME: "n2"}}], ids=["anywhere", "pinned to a node"]
)
def test_room_is_made_and_held_until_the_target_pod_is_bound(fields: dict[str, Any]) -> None:
    simulated = simulate(**fields)
    thief = pod("thief", memory="14Gi", node_selector={HOSTNAME: "n2"})
    simulated.at(1, lambda: simulated.add_pod(thief))
    events: list[Event] = []
    result = cycle(simulated, events)
    assert codes(events) == ["planned", "held", "created", "succeeded", "bound"]
    assert not result.unmet()
    assert simulated.read().pod_by_key[TARGET].node_name == "n2"
    assert locks(simulated.read()) == []
    simulated.advance(timedelta(minutes=5).total_seconds())
    assert homes(simulated.read()) == {"big": "n2", "b": "n3"}


def test_the_hold_is_released_when_the_migration_gives_up() -> None:
    """KubeVirt gives its target pod five minutes, which another VM's migration may outlast."""
    simulated = simulate()
    simulated.script_migrations(key("b"), Stall())
    events: list[Event] = []
    simulated.at(400, lambda: simulated.release(key("b")))
    cycle(simulated, events)
    assert codes(events) == ["planned", "held", "created", "succeeded", "gone"]
    snapshot = simulated.read()
    phases = {migration.vmi_name: migration.phase for migration in snapshot.migrations}
    assert phases == {"big": "Failed", "b": "Succeeded"}
    assert locks(snapshot) == []


def test_nothing_more_is_started_for_a_migration_that_has_given_up() -> None:
    simulated = simulate()
    events: list[Event] = []

    def give_up_once_held(event: Event) -> None:
        events.append(event)
        if event.code == "held":
            simulated.delete_pod(TARGET)

    run_cycle(simulated, [automatic(STRATEGY)], PlanningContext(), give_up_once_held)
    assert codes(events) == ["planned", "held", "gone"]
    assert homes(simulated.read())["b"] == "n2"
    assert locks(simulated.read()) == []
