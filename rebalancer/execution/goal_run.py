"""One goal being carried out: its moves, the hold on its node, and the wait for its VM."""

from datetime import datetime

from opentelemetry import trace
from opentelemetry.trace import StatusCode

from rebalancer.execution.move_run import MoveRun, State, nanoseconds
from rebalancer.execution.outcome import Ending, GoalOutcome
from rebalancer.execution.recheck import bound_node, is_open
from rebalancer.model.keys import GOAL_UID
from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import NODE_KIND, Goal, Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.timetable import start_order
from rebalancer.scheduling.migration_deadline import is_overdue

_tracer = trace.get_tracer("rebalancer")


class GoalRun:
    """What has become of one goal so far.

    Once `dropped_because` is set nothing more is started for it; it ends when what is in flight
    has ended.
    """

    def __init__(self, goal: Goal, moves: list[Move]) -> None:
        self.goal = goal
        self.moves = [MoveRun(move, goal) for move in moves]
        self.is_admitted = False
        self.left_out = 0
        """Moves that the budget for one cycle has no room for."""
        self.holds: list[ObjectKey] = []
        self.dropped_because = ""
        self.is_pointless = False
        self.room_since: datetime | None = None
        self.outcome: GoalOutcome | None = None

    @property
    def uid(self) -> str:
        return self.goal.subject.uid

    @property
    def vmis(self) -> set[ObjectKey]:
        """All that it is about."""
        subject = self.goal.subject
        own = {ObjectKey(subject.namespace, subject.name)} if self.goal.is_for_vm else set()
        return own | {run.move.vmi for run in self.moves}

    @property
    def nodes(self) -> set[str]:
        """All that it is about."""
        subject = self.goal.subject
        own = {self.goal.node, subject.name if subject.kind == NODE_KIND else ""} - {""}
        ends = {name for run in self.moves for name in (run.move.source, run.move.target)}
        return own | ends

    def limit(self, count: int) -> None:
        """Leaves out all but the first moves; those wait for none that come later."""
        self.left_out = max(len(self.moves) - count, 0)
        self.moves = self.moves[:count]

    def ready_moves(self) -> list[MoveRun]:
        """Moves that have not started although all that they wait for has succeeded, the most
        urgent first.
        """
        done = {run.move.id for run in self.moves if run.state is State.SUCCEEDED}
        waiting = {run.move.id: run for run in self.moves if run.state is State.WAITING}
        unstarted = [run.move for run in waiting.values()]
        ready = [move for move in unstarted if done.issuperset(move.after)]
        return [waiting[move.id] for move in start_order(ready, unstarted)]

    def drop(self, why: str, *, is_pointless: bool = False) -> None:
        """`is_pointless`: what it is dropped for would bar any other plan in this cycle as well."""
        self.dropped_because = self.dropped_because or why
        self.is_pointless = self.is_pointless or is_pointless

    @property
    def is_to_settle(self) -> bool:
        """Whether the next look will end it, so that there is nothing to wait for."""
        return self.dropped_because != "" and not any(run.is_in_flight for run in self.moves)

    def observe(self, snapshot: Snapshot, bind_timeout_seconds: int) -> list[MoveRun]:
        """Takes in the present state; returns the moves that have ended by it."""
        ended = [run for run in self.moves if run.observe(snapshot)]
        for run in ended:
            if run.state is not State.SUCCEEDED:
                self.drop(run.message)
        self._conclude(snapshot, bind_timeout_seconds)
        return ended

    def _conclude(self, snapshot: Snapshot, bind_timeout_seconds: int) -> None:
        if any(run.is_in_flight for run in self.moves):
            return
        node = bound_node(self.goal, snapshot) if self.goal.is_for_vm else None
        if node:
            self._trace_binding(node, snapshot.taken_at)
            self.end(Ending.BOUND, f"is bound to {node}")
        elif not is_open(self.goal, snapshot):
            self.end(Ending.GONE, "no longer waits for a node")
        elif self.dropped_because:
            self._end_dropped()
        elif self._still_moving(snapshot):
            return
        elif self.goal.is_for_vm:
            self._wait_for_binding(snapshot, bind_timeout_seconds)
        else:
            self._end_done()

    def _end_done(self) -> None:
        message = f"migrations done: {len(self.moves)}"
        if self.left_out:
            message += f"; {self.left_out} more follow in a later cycle"
        self.end(Ending.PARTLY_DONE if self.left_out else Ending.DONE, message)

    def _end_dropped(self) -> None:
        has_started = any(run.migration_name for run in self.moves)
        is_over = self.is_pointless and not has_started
        self.end(Ending.NOT_STARTED if is_over else Ending.DROPPED, self.dropped_because)

    def _still_moving(self, snapshot: Snapshot) -> bool:
        """Whether moves are left, or migrations of an earlier run for the same goal."""
        return any(run.state is State.WAITING for run in self.moves) or any(
            migration.labels.get(GOAL_UID) == self.uid and not is_overdue(migration, snapshot)
            for migration in snapshot.migrations_in_flight
        )

    def _wait_for_binding(self, snapshot: Snapshot, bind_timeout_seconds: int) -> None:
        self.room_since = self.room_since or snapshot.taken_at
        waited = (snapshot.taken_at - self.room_since).total_seconds()
        if waited > bind_timeout_seconds:
            self.end(
                Ending.DROPPED,
                f"room was made, but the scheduler has not bound it for {waited:.0f} s",
            )

    def _trace_binding(self, node: str, bound_at: datetime) -> None:
        """The time from when the last move had ended until the VM was seen to have its node."""
        room_at = max((run.ended_at for run in self.moves if run.ended_at), default=bound_at)
        attributes = {
            "rebalancer.vmi.namespace": self.goal.subject.namespace,
            "rebalancer.vmi.name": self.goal.subject.name,
            "rebalancer.node": node,
        }
        span = _tracer.start_span(
            "beneficiary bound", start_time=nanoseconds(room_at), attributes=attributes
        )
        span.set_status(StatusCode.OK)
        span.end(end_time=nanoseconds(bound_at))

    def end(self, ending: Ending, message: str) -> GoalOutcome:
        started = sum(run.migration_name != "" for run in self.moves)
        refused = tuple(run.refusal for run in self.moves if run.refusal)
        self.outcome = GoalOutcome(self.goal.subject, ending, message, started, refused)
        return self.outcome
