"""WatchHeadroom: says whether a VM of a given size could start now. It moves nothing."""

from collections.abc import Sequence

from pydantic import Field

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Goal, Proposal, Reason, Subject, Verdict
from rebalancer.model.quantity import format_amount
from rebalancer.planning.view import View
from rebalancer.policy.model import Mode, Section
from rebalancer.scheduling.feasibility import Feasibility, evaluate
from rebalancer.strategy import Strategy

NAME = "WatchHeadroom"


class WatchHeadroomSettings(Section):
    memory_bytes: int = Field(
        default=16 * 2**30,
        gt=0,
        description="What the launcher pod of the VM that must be able to start requests.",
    )


def propose(view: View, settings: Section) -> Sequence[Proposal]:
    """One goal: that the VM fits on some node. Unmet, it is `unproven`, as nothing was planned."""
    assert isinstance(settings, WatchHeadroomSettings)
    answer = evaluate(_launcher(settings.memory_bytes), view.state)
    subject = Subject("Headroom", "", format_amount(settings.memory_bytes, "memory"))
    if answer.feasible.any():
        return [Proposal(Goal(NAME, subject, Verdict.FITS, reasons=_homes(answer)))]
    return [Proposal(Goal(NAME, subject, Verdict.UNPROVEN, reasons=_barriers(answer)))]


def _launcher(memory_bytes: int) -> Pod:
    """The pod that KubeVirt would make for the VM, as far as this strategy looks at it."""
    return Pod(
        namespace="",
        name="headroom",
        uid="headroom",
        requests={"memory": memory_bytes, "pods": 1},
        node_selector={"kubevirt.io/schedulable": "true"},
    )


def _homes(answer: Feasibility) -> tuple[Reason, ...]:
    nodes = zip(answer.state.nodes, answer.feasible, strict=True)
    return tuple(
        Reason("headroom", "has room for it", node=node.name) for node, fits in nodes if fits
    )


def _barriers(answer: Feasibility) -> tuple[Reason, ...]:
    """The summary first, then what bars each node."""
    nodes = range(len(answer.state.nodes))
    return (
        Reason("no-headroom", "no node has room for it now"),
        *(reason for node in nodes for reason in answer.reasons(node)),
    )


STRATEGY = Strategy(
    name=NAME,
    settings_type=WatchHeadroomSettings,
    propose=propose,
    default_mode=Mode.RECOMMEND,
)
