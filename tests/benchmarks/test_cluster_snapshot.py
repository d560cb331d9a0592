"""A generated cluster and the snapshot made of it are the same cluster."""

import numpy as np
from msgspec.structs import replace

from benchmarks.cluster_snapshot import snapshot_of
from benchmarks.generator import MEMORY, PODS, Recipe, generate
from benchmarks.headroom import losses, plain_loop
from rebalancer.headroom.failover import Verdict
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState

RECIPE = Recipe("50/500", 0.95, seed=1, grouped_share=0)


def test_nodes_have_the_same_headroom_and_vms_may_go_to_the_same_nodes() -> None:
    cluster = generate(RECIPE)
    assert cluster is not None
    state = ClusterState(snapshot_of(cluster))
    np.testing.assert_array_equal(state.headroom("memory"), cluster.headroom[:, MEMORY] * 2**20)
    np.testing.assert_array_equal(state.headroom("pods"), cluster.headroom[:, PODS])
    for vmi, vm_class in zip(state.snapshot.vmis, cluster.vm_class, strict=True):
        (launcher,) = state.snapshot.launchers_by_vmi[vmi.uid]
        allowed = evaluate(replace(launcher, node_name=None), state).allowed
        np.testing.assert_array_equal(allowed, cluster.allowed[vm_class])


def test_every_loss_that_the_plain_loop_survives_is_survived() -> None:
    cluster = generate(RECIPE)
    assert cluster is not None
    found = losses(snapshot_of(cluster)).losses
    for i, loss in enumerate(found):
        if plain_loop(cluster, range(i, i + 1)):
            assert loss.verdict is Verdict.SURVIVES
