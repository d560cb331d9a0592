"""What the cluster's Events tell about an object, for whoever looks there."""

from rebalancer.cluster.protocols import Cluster, Notice
from rebalancer.errors import ClusterError
from rebalancer.execution.events import Event, Listener
from rebalancer.execution.outcome import Ending, GoalOutcome
from rebalancer.model.plan import NODE_KIND, VMI_KIND, Goal, Move, Subject, Verdict
from rebalancer.model.wording import count_of

_KINDS = {VMI_KIND, NODE_KIND}
"""Other subjects of goals are no objects of the cluster."""

_BAD_ENDINGS = {Ending.DROPPED, Ending.NOT_STARTED}
_REFUSALS = {Verdict.IMPOSSIBLE, Verdict.UNPROVEN, Verdict.NOT_WORTH_IT}


class Notifier:
    """Makes Events in the cluster; once that fails it is told, and no more are made."""

    def __init__(self, cluster: Cluster, listener: Listener) -> None:
        self._cluster = cluster
        self._listener = listener
        self._is_broken = False

    def migrating(self, move: Move, goal: Goal, migration: str) -> None:
        """On the VM that is moved: why, and where to."""
        subject = Subject(VMI_KIND, move.vmi.namespace, move.vmi.name, move.vmi_uid)
        message = f"migration {migration} to {move.target}, by {goal.strategy} for {goal.subject}"
        self._make(Notice(subject, "RebalanceMigration", message))

    def ended(self, outcome: GoalOutcome) -> None:
        """On what a goal was about: what has come of it."""
        count = count_of(outcome.migrations, "migration")
        message = f"{outcome.message}; {count} started for it"
        reason = _reason(outcome.ending.value)
        self._make(Notice(outcome.subject, reason, message, outcome.ending in _BAD_ENDINGS))

    def refused(self, goal: Goal) -> None:
        """On what a goal is about: why nothing is done, if that is so."""
        if goal.verdict in _REFUSALS and goal.reasons:
            # The others are in the plan; with their numbers each cycle would tell something new.
            message = goal.reasons[0].message
            self._make(Notice(goal.subject, _reason(goal.verdict.value), message, is_warning=True))

    def _make(self, notice: Notice) -> None:
        if self._is_broken or notice.subject.kind not in _KINDS:
            return
        try:
            self._cluster.create_event(notice)
        except ClusterError as error:
            self._is_broken = True
            message = f"no Events are made in this cycle: {error}"
            self._listener(Event(self._cluster.now(), "event-lost", str(notice.subject), message))


def _reason(code: str) -> str:
    """As Events have it: not-started becomes RebalanceNotStarted."""
    return "Rebalance" + "".join(word.capitalize() for word in code.split("-"))
