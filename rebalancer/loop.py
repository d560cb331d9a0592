"""One cycle: read, plan, carry out, and plan anew after a surprise."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace
from opentelemetry import trace

from rebalancer.cluster.protocols import Cluster
from rebalancer.errors import ClusterError
from rebalancer.execution.events import Event, Listener
from rebalancer.execution.executor import Tools, execute
from rebalancer.execution.holds import holds_for, holds_of, left_over
from rebalancer.execution.notices import Notifier
from rebalancer.execution.outcome import Ending, GoalOutcome
from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import MOVES_UNDER_WAY, Goal, Plan, Refusal, Subject, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import Mode

_tracer = trace.get_tracer("rebalancer")


_NOTHING_TO_DO = {Verdict.FITS, Verdict.MET, Verdict.NOT_ABOUT_ROOM}
_IN_HAND = {Verdict.PLANNED, Verdict.WAITING}
_MET = {Ending.BOUND, Ending.DONE, Ending.GONE}


class CycleResult(Struct, frozen=True):
    """The last plan of a cycle, and how the goals ended that were acted upon."""

    plan: Plan
    outcomes: tuple[GoalOutcome, ...] = ()

    def unmet(self) -> tuple[Subject, ...]:
        """Goals that could be about room and have none in the end."""
        ended = {outcome.subject: outcome.ending for outcome in self.outcomes}
        return tuple(
            goal.subject
            for goal in self.plan.goals
            if goal.verdict not in _NOTHING_TO_DO
            and not (goal.verdict in _IN_HAND and ended.get(goal.subject) in _MET)
        )


def run_cycle(
    cluster: Cluster,
    strategies: Sequence[ActiveStrategy],
    context: PlanningContext,
    listener: Listener,
    should_stop: Callable[[], bool] = lambda: False,
) -> CycleResult:
    """Brings every goal as far as it can be brought now.

    Raises: ClusterError, NotLeaderError (nothing was done then), InputError.
    """
    with _led(cluster, strategies, context, listener, should_stop) as tools:
        return _run_led(strategies, tools)


def run_cycles(
    cluster: Cluster,
    strategies: Sequence[ActiveStrategy],
    context: PlanningContext,
    listener: Listener,
    should_stop: Callable[[], bool] = lambda: False,
) -> CycleResult:
    """Cycles as long as goals are unmet and one has started as many migrations as it may.

    Nobody else acts in between. The result is the last one's, with the outcomes of all. Raises: as
    `run_cycle`.
    """
    limit = context.execution.budget.max_per_cycle
    outcomes: dict[Subject, GoalOutcome] = {}
    with _led(cluster, strategies, context, listener, should_stop) as tools:
        while True:
            result = _run_led(strategies, tools)
            for outcome in result.outcomes:
                outcomes[outcome.subject] = _joined(outcomes.get(outcome.subject), outcome)
            started = sum(outcome.migrations for outcome in result.outcomes)
            is_over = started < limit or not result.unmet() or should_stop()
            if is_over or _has_lost_lead(tools):
                return replace(result, outcomes=tuple(outcomes.values()))


@contextmanager
def _led(
    cluster: Cluster,
    strategies: Sequence[ActiveStrategy],
    context: PlanningContext,
    listener: Listener,
    should_stop: Callable[[], bool],
) -> Iterator[Tools]:
    """With the right to act. Raises: NotLeaderError."""
    notifier, objection = Notifier(cluster, listener), _objection_of(strategies)
    with cluster.leadership() as leadership:
        yield Tools(cluster, leadership, context, listener, should_stop, notifier, objection)


def _has_lost_lead(tools: Tools) -> bool:
    if tools.leadership.is_held():
        return False
    message = "another rebalancer may have taken over; the rest is not begun, so start again"
    tools.listener(Event(tools.cluster.now(), "lease-lost", "cycle", message))
    return True


def _run_led(strategies: Sequence[ActiveStrategy], tools: Tools) -> CycleResult:
    with _tracer.start_as_current_span("cycle") as span:
        result = _Cycle(strategies, tools).run()
        span.set_attribute("rebalancer.plan", result.plan.id)
        span.set_attribute("rebalancer.unmet", len(result.unmet()))
        return result


def _objection_of(
    strategies: Sequence[ActiveStrategy],
) -> Callable[[Goal, Snapshot], str | None]:
    active = {each.strategy.name: each for each in strategies}

    def objection(goal: Goal, snapshot: Snapshot) -> str | None:
        strategy, _, settings = active[goal.strategy]
        return strategy.objection(goal, snapshot, settings)

    return objection


class _Cycle:
    def __init__(self, strategies: Sequence[ActiveStrategy], tools: Tools) -> None:
        self.strategies = strategies
        self.tools = tools
        self.outcomes: dict[Subject, GoalOutcome] = {}
        self.avoided: dict[ObjectKey, Refusal] = {}

    def run(self) -> CycleResult:
        rounds = self.tools.context.execution.max_rounds_per_cycle
        for remaining in reversed(range(rounds)):
            snapshot = self._read()
            context = replace(self.tools.context, avoided=self.avoided)
            plan = make_plan(snapshot, self.strategies, context)
            self._tell("planned", f"plan {plan.id}", summary(plan))
            outcomes = self._carry_out(plan, snapshot)
            if not (remaining and self._worth_another_round(plan, outcomes)):
                break
        for goal in plan.goals:
            self.tools.notifier.refused(goal)
        return CycleResult(plan, tuple(self.outcomes.values()))

    def _read(self) -> Snapshot:
        with _tracer.start_as_current_span("snapshot") as span:
            snapshot = self.tools.cluster.read()
            span.set_attribute("rebalancer.nodes", len(snapshot.nodes))
            span.set_attribute("rebalancer.pods", len(snapshot.pods))
            span.set_attribute("rebalancer.vmis", len(snapshot.vmis))
        if (load := snapshot.measured_load) and load.problem:
            self._tell("load-missing", "snapshot", load.problem)
        return snapshot

    def _carry_out(self, plan: Plan, snapshot: Snapshot) -> tuple[GoalOutcome, ...]:
        goals = [goal for goal in plan.goals if self._is_to_do(goal, snapshot)]
        self._clear_holds(goals, plan, snapshot)
        if not goals:
            return ()
        started = sum(outcome.migrations for outcome in self.outcomes.values())
        outcomes = execute(plan, goals, snapshot, self.tools, started)
        for outcome in outcomes:
            self._note(outcome)
        return outcomes

    def _is_to_do(self, goal: Goal, snapshot: Snapshot) -> bool:
        """A plan to carry out, or what an earlier run began and left to be seen to its end."""
        modes = {active.strategy.name: active.mode for active in self.strategies}
        if modes[goal.strategy] is not Mode.AUTOMATIC or self._is_done(goal):
            return False
        if goal.verdict is Verdict.WAITING:
            return any(reason.code == MOVES_UNDER_WAY for reason in goal.reasons)
        if goal.verdict is Verdict.FITS:
            return bool(holds_of(goal, snapshot))
        return goal.verdict is Verdict.PLANNED

    def _is_done(self, goal: Goal) -> bool:
        """A goal whose moves are done is looked at again in this cycle, but goes on in the next."""
        outcome = self.outcomes.get(goal.subject)
        return outcome is not None and outcome.ending in {Ending.DONE, Ending.PARTLY_DONE}

    def _clear_holds(self, goals: Sequence[Goal], plan: Plan, snapshot: Snapshot) -> None:
        moves = {move.id: move for move in plan.moves}
        wanted = [
            hold
            for goal in goals
            for hold in holds_for(
                goal, [moves[i] for i in goal.move_ids], snapshot, self.tools.context
            )
        ]
        adopted = [goal for goal in goals if not goal.move_ids]
        namespace = self.tools.context.execution.namespace
        for key in left_over(snapshot, adopted, wanted, namespace):
            try:
                self.tools.cluster.delete_hold(key)
                self._tell("hold-cleared", str(key), "was left over from an earlier run")
            except ClusterError as error:
                self._tell("hold-left", str(key), f"cannot be deleted: {error}")

    def _note(self, outcome: GoalOutcome) -> None:
        """A goal planned again keeps what earlier rounds have started and been refused for it."""
        self.avoided.update((refusal.vmi, refusal) for refusal in outcome.refused)
        self.outcomes[outcome.subject] = _joined(self.outcomes.get(outcome.subject), outcome)

    def _worth_another_round(self, plan: Plan, outcomes: Sequence[GoalOutcome]) -> bool:
        """After a surprise, to see what is left when moves are done, or when a goal that stood
        behind others may have its turn.
        """
        if self.tools.should_stop() or not self.tools.leadership.is_held():
            return False
        endings = {outcome.ending for outcome in outcomes}
        is_somebody_waiting = any(goal.verdict is Verdict.WAITING for goal in plan.goals)
        ended_anew = not endings.isdisjoint({Ending.DROPPED, Ending.DONE})
        return ended_anew or (Ending.BOUND in endings and is_somebody_waiting)

    def _tell(self, code: str, subject: str, message: str) -> None:
        self.tools.listener(Event(self.tools.cluster.now(), code, subject, message))


def _joined(earlier: GoalOutcome | None, outcome: GoalOutcome) -> GoalOutcome:
    if earlier is None:
        return outcome
    return replace(
        outcome,
        migrations=earlier.migrations + outcome.migrations,
        refused=earlier.refused + outcome.refused,
    )


def summary(plan: Plan) -> str:
    """Goals by verdict, and the moves, in one line."""
    if not plan.goals:
        return "nothing to do"
    counts = Counter(goal.verdict for goal in plan.goals)
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    return f"{', '.join(parts)}; migrations: {len(plan.moves)}"
