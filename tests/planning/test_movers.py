"""What is worked out once for many VMs is what each of them alone would need."""

import numpy as np
from hypothesis import given
from msgspec.structs import replace

from rebalancer.model.keys import CREATED_BY, HOSTNAME
from rebalancer.model.objects import (
    CSINode,
    LabelSelector,
    PodAffinityTerm,
    Requirement,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning import cost
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import (
    MILLISECONDS,
    Movers,
    find_movers,
    move_problem,
    refusal_of,
    resources_in_play,
)
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState
from rebalancer.scheduling.target_pod import released_requests, target_pod
from tests.builders import Thing, cluster, node, vm
from tests.planning.clusters import DRIVER, claimed, clusters

CONTEXT = PlanningContext()


def found_in(snapshot: Snapshot) -> Movers:
    return find_movers(ClusterState(snapshot), CONTEXT)


@given(clusters())
def test_each_mover_goes_where_its_own_target_pod_may_go(snapshot: Snapshot) -> None:
    movers = found_in(snapshot)
    state = movers.state
    for mover in movers.movers:
        pod = target_pod(mover.vmi, mover.source_pod, snapshot)
        assert mover.target_pod == pod
        feasibility = evaluate(pod, state)
        elsewhere = np.arange(len(state.nodes)) != mover.source
        assert (mover.rules.allowed == feasibility.allowed)[elsewhere].all()
        always = mover.rules.allowed_wherever_pods_are == feasibility.allowed_wherever_pods_are
        assert always.all()
        charges = cost.target_charges(pod, state.nodes[mover.source], state, CONTEXT.cost)
        assert {name: list(seconds) for name, seconds in mover.rules.charges.items()} == {
            name: list(seconds) for name, seconds in charges.items()
        }


@given(clusters())
def test_the_arrays_tell_of_each_mover_what_it_alone_would(snapshot: Snapshot) -> None:
    movers = found_in(snapshot)
    resources = resources_in_play(movers) or ["pods"]
    problem = move_problem(movers, CONTEXT, resources)
    for i, mover in enumerate(movers.movers):
        pod = target_pod(mover.vmi, mover.source_pod, snapshot)
        released = released_requests(mover.source_pod, snapshot)
        alone = cost.base_cost(mover.vmi, pod, snapshot, CONTEXT.cost)
        assert movers.state.nodes[problem.mover_node[i]].name == mover.source_pod.node_name
        assert problem.mover_request[i].tolist() == [pod.requests.get(r, 0) for r in resources]
        assert problem.mover_release[i].tolist() == [released.get(r, 0) for r in resources]
        assert problem.mover_cost[i] == round(alone.total * MILLISECONDS)
        assert mover.cost == alone


@given(clusters())
def test_every_vm_is_a_mover_or_refused(snapshot: Snapshot) -> None:
    movers = found_in(snapshot)
    refused = {each.vmi: each for refusals in movers.refused.values() for each in refusals}
    movable = [mover.vmi for mover in movers.movers]
    assert movable == sorted(movable, key=lambda vmi: vmi.key)
    assert {vmi.key for vmi in movable} == {vmi.key for vmi in snapshot.vmis} - refused.keys()
    for vmi in snapshot.vmis:
        assert refused.get(vmi.key) == refusal_of(vmi, snapshot, CONTEXT)


def with_volumes(*, most: int) -> Movers:
    """A VM on each of n1 and n2, with a volume of its own; no node takes more than that."""
    things: list[Thing] = [node("n1"), node("n2")]
    for name, on in (("a", "n1"), ("b", "n2")):
        things += [*vm(name, on=on, claim_names=(name,)), *claimed(name, name)]
    limits = tuple(CSINode(name, {DRIVER: most}) for name in ("n1", "n2"))
    return found_in(replace(cluster(*things), csi_nodes=limits))


def test_vms_with_a_volume_each_of_a_driver_with_limits_are_of_one_class() -> None:
    movers = with_volumes(most=2)
    assert [mover.rules.number for mover in movers.movers] == [0, 0]
    assert movers.allowed.all()


def test_a_node_that_takes_no_more_volumes_is_left_to_those_that_are_there() -> None:
    assert with_volumes(most=1).allowed.tolist() == [[True, False], [False, True]]


def test_vms_that_have_been_migrated_are_no_classes_of_their_own() -> None:
    def apart(name: str) -> PodAffinityTerm:
        selector = LabelSelector((Requirement(CREATED_BY, "In", (f"vmi-{name}",)),))
        return PodAffinityTerm(HOSTNAME, selector, ("default",))

    migrated = [vm(name, on="n1", pod_anti_affinity=(apart(name),)) for name in "ab"]
    movers = found_in(cluster(node("n1"), node("n2"), *migrated, vm("c", on="n2")))
    assert [mover.rules.number for mover in movers.movers] == [0, 0, 0]
    assert movers.classes[0].allowed.all()
