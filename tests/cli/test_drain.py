"""`rebalancer drain` and `rebalancer rolling`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rebalancer.cluster.protocols import Cluster
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.model.objects import Condition
from tests.builders import Thing, cluster, node, vm
from tests.cli import dumps
from tests.cli.command import Cli, assert_error
from tests.report import contract

UseCluster = Callable[[Cluster], None]
STUCK = {"live_migratable": Condition("False", "DisksNotLiveMigratable", "its disk is there")}
MARKED: dict[str, Any] = {"drain_sign": "label rebalancer/drain"}


def small(name: str, on: str, **fields: Any) -> Thing:
    return vm(name, on=on, memory="4Gi", **fields)


def simulated(*more: Thing) -> SimulatedCluster:
    """n1 has two VMs, n2 one, and n3, which bears a sign, another."""
    nodes = node("n1"), node("n2"), node("n3", **MARKED)
    vms = small("a", "n1"), small("b", "n1"), small("c", "n2"), small("d", "n3")
    return SimulatedCluster(cluster(*nodes, *vms, *more))


def places(cluster: SimulatedCluster) -> dict[str, str | None]:
    return {vmi.name: vmi.node_name for vmi in cluster.read().vmis}


def test_named_node_is_emptied_and_one_with_a_sign_is_neither_source_nor_target(
    cli: Cli, use_cluster: UseCluster
) -> None:
    use_cluster(cluster := simulated())
    done = cli("drain", "n1")
    assert done.code == 0, done.stderr
    assert places(cluster) == {"a": "n2", "b": "n2", "c": "n2", "d": "n3"}
    assert "n1    done            2  migrations done: 2" in done.stdout
    assert not cluster.read().node_by_name["n1"].is_unschedulable


def test_several_nodes_are_emptied_none_into_another(cli: Cli, use_cluster: UseCluster) -> None:
    use_cluster(cluster := simulated(node("n4")))
    assert cli("drain", "n1", "n2", "n1").code == 0
    assert places(cluster) == {"a": "n4", "b": "n4", "c": "n4", "d": "n3"}


def test_drain_goes_on_over_the_budget_of_one_cycle(cli: Cli, use_cluster: UseCluster) -> None:
    use_cluster(cluster := simulated(*(small(f"v{i}", "n1") for i in range(3)), node("n4")))
    cli.monkeypatch.setenv("REBALANCER_EXECUTION__BUDGET__MAX_PER_CYCLE", "2")
    cli.monkeypatch.setenv("REBALANCER_EXECUTION__BUDGET__MAX_IN_FLIGHT_PER_CLUSTER", "2")
    done = cli("drain", "n1", "-o", "json")
    assert done.code == 0, done.stderr
    result = msgspec.json.decode(done.stdout, type=contract.CycleResult)
    assert [(outcome.ending, outcome.migrations) for outcome in result.outcomes] == [("done", 5)]
    assert "n1" not in places(cluster).values()


def test_second_node_has_its_turn_when_the_first_takes_a_whole_cycle(
    cli: Cli, use_cluster: UseCluster
) -> None:
    use_cluster(cluster := simulated(node("n4")))
    cli.monkeypatch.setenv("REBALANCER_EXECUTION__BUDGET__MAX_PER_CYCLE", "2")
    cli.monkeypatch.setenv("REBALANCER_EXECUTION__BUDGET__MAX_IN_FLIGHT_PER_CLUSTER", "2")
    assert cli("drain", "n1", "n2").code == 0
    assert {"n1", "n2"}.isdisjoint(places(cluster).values())


def test_vm_that_is_left_is_told_with_what_to_do_and_ends_with_4(
    cli: Cli, use_cluster: UseCluster
) -> None:
    use_cluster(cluster := simulated(small("tied", "n1", vmi=STUCK)))
    done = cli("drain", "n1")
    assert done.code == 4
    assert "default/tied stays: KubeVirt cannot live-migrate it" in done.stdout
    assert {name for name, at in places(cluster).items() if at == "n1"} == {"tied"}
    assert cli("drain", "n1", "--dry-run").code == 4


@pytest.mark.parametrize("choice", [["n1"], ["--cheapest", "1"]])
def test_dry_run_shows_the_plan_and_changes_nothing(
    cli: Cli, use_cluster: UseCluster, choice: list[str]
) -> None:
    use_cluster(cluster := simulated())
    before = cluster.read()
    done = cli("drain", *choice, "--dry-run")
    assert (done.code, done.stderr) == (0, "")
    assert "MIGRATE" in done.stdout
    assert "`kubectl cordon n" in done.stdout
    assert cluster.read() == before


def test_files_can_be_asked_as_well(cli: Cli, tmp_path: Path) -> None:
    objects = [dumps.node("n1", "16Gi"), dumps.node("n2", "16Gi"), *dumps.vm("db", "4Gi", on="n1")]
    dump = dumps.dump(tmp_path / "dump.json", *objects)
    done = cli("drain", "n1", "--from", dump, "-o", "json")
    assert (done.code, done.stderr) == (0, "")
    plan = msgspec.json.decode(done.stdout, type=contract.Plan)
    assert [(move.name, move.target) for move in plan.moves] == [("db", "n2")]
    assert cli("rolling", "--from", dump).code == 0


def test_cheapest_nodes_are_named_with_their_cost_and_emptied(
    cli: Cli, use_cluster: UseCluster
) -> None:
    use_cluster(cluster := simulated())
    done = cli("drain", "--cheapest", "1")
    assert done.code == 0, done.stderr
    assert "n2                 1  42.0 s\n" in done.stdout
    assert "Cost together: 42.0 s (proven cheapest)" in done.stdout
    assert "n3        already-draining  label rebalancer/drain" in done.stdout
    assert places(cluster)["c"] == "n1"


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_cheapest_as_json_keeps_the_contract(
    cli: Cli, use_cluster: UseCluster, more: list[str]
) -> None:
    use_cluster(simulated())
    done = cli("drain", "--cheapest", "1", "-o", "json", *more)
    found = msgspec.json.decode(done.stdout, type=contract.CheapestNodes)
    assert [each.node for each in found.nodes] == ["n2"]
    assert (found.plan is None, found.result is None) == (not more, bool(more))


def test_fewer_nodes_than_wanted_are_emptied_and_end_with_4(
    cli: Cli, use_cluster: UseCluster
) -> None:
    use_cluster(cluster := simulated())
    done = cli("drain", "--cheapest", "2")
    assert done.code == 4
    assert "Only 1 of 2 nodes can be emptied." in done.stdout
    assert places(cluster)["c"] == "n1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name the nodes to empty, or let --cheapest K choose them"),
        (["n1", "--cheapest", "1"], "one of the two"),
        (["n1", "--selector", "a=b"], "--selector says what --cheapest may choose from"),
        (["--cheapest", "1", "--selector", "a"], "--selector a: must be KEY=VALUE"),
        (["--cheapest", "1", "-l", "a=b,a=c"], "each key once"),
        (["worker"], "Node worker is none of the 3 there are: n1, n2, n3"),
    ],
)
def test_drain_that_cannot_be_understood_is_refused_before_anything_is_done(
    cli: Cli, use_cluster: UseCluster, arguments: list[str], says: str
) -> None:
    use_cluster(cluster := simulated())
    assert_error(cli("drain", *arguments), 2, says)
    assert cluster.read().migrations == ()


def test_rolling_tells_each_turn_as_it_is_planned_and_changes_nothing(
    cli: Cli, use_cluster: UseCluster
) -> None:
    use_cluster(cluster := simulated())
    before = cluster.read()
    done = cli("rolling")
    assert done.code == 0
    assert done.stderr.splitlines()[0] == "1 of 3: n2: migrations: 1"
    assert "STUCK" in done.stdout
    assert cluster.read() == before


def test_rolling_ends_with_4_where_a_node_gets_stuck(cli: Cli, use_cluster: UseCluster) -> None:
    use_cluster(simulated(small("tied", "n1", vmi=STUCK)))
    done = cli("rolling", "-o", "json")
    assert done.code == 4
    found = msgspec.json.decode(done.stdout, type=contract.RollingPlan)
    assert found.stuck == ["n1"]


def test_rolling_looks_at_the_nodes_with_the_labels_only(cli: Cli, use_cluster: UseCluster) -> None:
    use_cluster(simulated(small("tied", "n1", vmi=STUCK), node("n4", labels={"pool": "a"})))
    done = cli("rolling", "--selector", "pool=a,kubernetes.io/arch=amd64")
    assert (done.code, done.stderr) == (0, "1 of 1: n4: migrations: 0\n")
