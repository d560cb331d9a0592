"""How goals end."""

from enum import StrEnum

from msgspec import Struct

from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import Refusal, Subject


class Ending(StrEnum):
    BOUND = "bound"
    """The VM has its node."""
    DONE = "done"
    """All its moves are done, and no VM was to be bound."""
    PARTLY_DONE = "partly-done"
    """As many of its moves are done as the budget of one cycle allows."""
    GONE = "gone"
    """The VM no longer waits: it was deleted or stopped."""
    DROPPED = "dropped"
    """Something was not as planned; what had not started will not start, and is planned anew."""
    NOT_STARTED = "not-started"
    """Nothing was done for it, and nothing would change by trying again in this cycle."""


class GoalOutcome(Struct, frozen=True):
    subject: Subject
    ending: Ending
    message: str
    migrations: int = 0
    """How many were started for it."""

    refused: tuple[Refusal, ...] = ()
    """VMs whose migration the cluster did not accept, and why."""

    @property
    def vmi(self) -> ObjectKey:
        return ObjectKey(self.subject.namespace, self.subject.name)
