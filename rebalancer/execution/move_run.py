"""One move being carried out, and its span in the trace."""

from datetime import datetime
from enum import StrEnum

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from rebalancer.errors import RefusedError
from rebalancer.model.objects import Migration
from rebalancer.model.plan import Goal, Move, Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.migration_deadline import is_overdue

_tracer = trace.get_tracer("rebalancer")


class State(StrEnum):
    """waiting -> refused, or waiting -> created -> succeeded | failed | stalled."""

    WAITING = "waiting"
    REFUSED = "refused"
    CREATED = "created"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STALLED = "stalled"


class MoveRun:
    """What has become of one move so far."""

    def __init__(self, move: Move, goal: Goal) -> None:
        self.move = move
        self.goal = goal
        self.state = State.WAITING
        self.migration_name = ""
        self.message = ""
        self.refusal: Refusal | None = None
        self.phase = ""
        self.ended_at: datetime | None = None
        self.waits_since: datetime | None = None
        self._span: Span | None = None

    @property
    def is_in_flight(self) -> bool:
        return self.state is State.CREATED

    def start_span(self) -> str:
        """Opens the move's span; returns its trace id, empty when nothing is traced."""
        move = self.move
        self._span = _tracer.start_span(
            f"move {move.vmi}",
            attributes={
                "rebalancer.vmi.namespace": move.vmi.namespace,
                "rebalancer.vmi.name": move.vmi.name,
                "rebalancer.source": move.source,
                "rebalancer.target": move.target,
                "rebalancer.cost": move.cost.total,
                "rebalancer.bytes": move.bytes,
                "rebalancer.estimated_seconds": move.seconds,
                "rebalancer.goal": str(self.goal.subject),
            },
        )
        context = self._span.get_span_context()
        return trace.format_trace_id(context.trace_id) if context.is_valid else ""

    def created(self, name: str) -> None:
        self.state, self.migration_name = State.CREATED, name

    def refused(self, name: str, error: RefusedError) -> None:
        """The cluster did not accept the migration of that name, and would not the next time."""
        if not error.concerns_all:
            self.refusal = Refusal(self.move.vmi, error.code, str(error))
        if self._span is not None:
            self._span.set_attribute("rebalancer.refusal", error.code)
        message = f"migration {name} of VM {self.move.vmi} was refused ({error.code}): {error}"
        self._end(State.REFUSED, message, migration=None)

    def observe(self, snapshot: Snapshot) -> bool:
        """Takes in the migration's present state; returns whether the move has ended by it."""
        if not self.is_in_flight:
            return False
        migrations = snapshot.migrations_by_vmi.get(self.move.vmi, ())
        migration = next((m for m in migrations if m.name == self.migration_name), None)
        self.phase = migration.phase if migration else ""
        if migration is None:
            self._end(State.FAILED, f"migration {self.migration_name} has vanished", None)
        elif migration.phase == "Succeeded":
            self._end_succeeded(migration, snapshot)
        elif migration.phase == "Failed":
            reason = migration.failure_reason or "KubeVirt gave no reason"
            self._end(State.FAILED, f"migration {migration.name} failed: {reason}", migration)
        elif is_overdue(migration, snapshot):
            self._end(
                State.STALLED,
                f"migration {migration.name} is still {migration.phase or 'unseen'} past its"
                " deadline; it is left to KubeVirt and counts as in flight",
                migration,
            )
        return not self.is_in_flight

    def _end_succeeded(self, migration: Migration, snapshot: Snapshot) -> None:
        vmi = snapshot.vmi_by_key.get(self.move.vmi)
        if vmi is None or vmi.node_name == self.move.target:
            self._end(State.SUCCEEDED, f"migration {migration.name} succeeded", migration)
        else:
            self._end(
                State.FAILED,
                f"migration {migration.name} succeeded, but the VM is on {vmi.node_name}",
                migration,
            )

    def _end(self, state: State, message: str, migration: Migration | None) -> None:
        self.state, self.message = state, message
        self.ended_at = migration.ended_at if migration else None
        if self._span is None:
            return
        if migration is not None:
            self._phase_spans(migration)
        is_good = state is State.SUCCEEDED
        self._span.set_attribute("rebalancer.outcome", state.value)
        status = StatusCode.OK if is_good else StatusCode.ERROR
        self._span.set_status(Status(status, None if is_good else message))
        self._span.end()

    def _phase_spans(self, migration: Migration) -> None:
        """One child per phase, with the times that KubeVirt noted."""
        assert self._span is not None
        parent = set_span_in_context(self._span)
        times = migration.phase_times
        for (phase, start), (_, end) in zip(times, (*times[1:], *times[-1:]), strict=True):
            span = _tracer.start_span(phase, context=parent, start_time=nanoseconds(start))
            span.end(end_time=nanoseconds(end))


def nanoseconds(moment: datetime) -> int:
    """Since the epoch, as spans have their times."""
    return int(moment.timestamp() * 1_000_000_000)
