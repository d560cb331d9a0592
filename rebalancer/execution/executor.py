"""Carries out a plan step by step, looking anew before each.

The executor is level-triggered: it reads what concerns the plan, takes that in, does what may be
done, and sleeps until something may have changed. A missed or repeated wake-up changes nothing.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from opentelemetry import trace

from rebalancer.cluster.protocols import Cluster, Leadership
from rebalancer.errors import ClusterError, ConflictError, RefusedError
from rebalancer.execution.budget import Budget
from rebalancer.execution.events import Event, Listener
from rebalancer.execution.goal_run import GoalRun
from rebalancer.execution.holds import holds_for, holds_of
from rebalancer.execution.migration_request import migration_request
from rebalancer.execution.move_run import MoveRun
from rebalancer.execution.notices import Notifier
from rebalancer.execution.outcome import Ending, GoalOutcome
from rebalancer.execution.recheck import is_open, surprise, unsettled
from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import Goal, Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext

_LOOK_SECONDS = 5.0
"""Longest time between two looks, should no change be noticed; a guess, and cheap."""

_tracer = trace.get_tracer("rebalancer")


class Tools(NamedTuple):
    """What execution works with."""

    cluster: Cluster
    leadership: Leadership
    context: PlanningContext
    listener: Listener
    should_stop: Callable[[], bool]
    """Asked at each step; when it says yes, execution leaves everything as it is and returns."""
    notifier: Notifier
    objection: Callable[[Goal, Snapshot], str | None] = lambda _goal, _snapshot: None
    """Asked before each migration: why its goal's strategy no longer wants the goal, or None."""


def execute(
    plan: Plan, goals: Sequence[Goal], snapshot: Snapshot, tools: Tools, started_before: int
) -> tuple[GoalOutcome, ...]:
    """Carries out these goals of the plan and sees each to its end.

    `started_before`: migrations started earlier in this cycle; the budget counts them.

    Raises: ClusterError if the cluster can no longer be read. Then, as when it is told to stop,
    what is in flight goes on, holds stay, and the next cycle adopts both.
    """
    with _tracer.start_as_current_span("plan", attributes={"rebalancer.plan": plan.id}):
        return _Execution(plan, goals, snapshot, tools, started_before).run()


class _Execution:
    def __init__(
        self,
        plan: Plan,
        goals: Sequence[Goal],
        snapshot: Snapshot,
        tools: Tools,
        started_before: int,
    ) -> None:
        self.plan = plan
        self.tools = tools
        self.snapshot = snapshot
        self.started = started_before
        moves = {move.id: move for move in plan.moves}
        self.runs = [GoalRun(goal, [moves[i] for i in goal.move_ids]) for goal in goals]

    def run(self) -> tuple[GoalOutcome, ...]:
        for goal in self.runs:
            self._admit(goal)
        while self._open() and not self.tools.should_stop():
            self._look()
            self._start_moves()
            if self._open() and not any(goal.is_to_settle for goal in self._open()):
                vmis = set[ObjectKey]().union(*(goal.vmis for goal in self._open()))
                self.tools.cluster.wait_for_change(vmis, _LOOK_SECONDS)
        for goal in self._open():
            message = "left as it is; what is in flight goes on, and the next cycle adopts it"
            self._tell("stopped", str(goal.goal.subject), message)
        return tuple(goal.outcome for goal in self.runs if goal.outcome)

    def _open(self) -> list[GoalRun]:
        return [run for run in self.runs if run.outcome is None]

    def _admit(self, goal: GoalRun) -> None:
        """Begins a goal: if all of it may be carried out, or a part that is worth it by itself, and
        once its nodes are held.
        """
        limit = self.tools.context.execution.budget.max_per_cycle
        left = limit - self.started - sum(len(g.moves) for g in self.runs if g.is_admitted)
        if goal.goal.is_divisible and left > 0:
            goal.limit(left)
        if len(goal.moves) > left:
            self._end(
                goal,
                Ending.NOT_STARTED,
                f"needs {len(goal.moves)} migrations, and execution.budget.maxPerCycle ({limit})"
                f" leaves {left} in this cycle",
            )
            return
        goal.is_admitted = True
        goal.holds = holds_of(goal.goal, self.snapshot)
        try:
            self._hold(goal)
        except RefusedError as error:
            self._end(goal, Ending.NOT_STARTED, f"its nodes cannot be held: {error}")
        except ClusterError as error:
            # It may exist all the same; the next round finds it, and so does not make a second.
            message = f"it is not known whether its nodes are held: {error}"
            self._end(goal, Ending.DROPPED, message)

    def _hold(self, goal: GoalRun) -> None:
        """Makes the holds that are not there: all at first, later those that were preempted."""
        moves = [run.move for run in goal.moves]
        for wanted in holds_for(goal.goal, moves, self.snapshot, self.tools.context):
            if wanted.key not in self.snapshot.pod_by_key:
                self.tools.cluster.create_hold(wanted)
                self._tell("held", str(goal.goal.subject), f"node {wanted.node_name} is held")
            if wanted.key not in goal.holds:
                goal.holds.append(wanted.key)

    def _look(self) -> None:
        """Reads what concerns the open goals, and takes it in."""
        nodes, vmis = set[str](), set[ObjectKey]()
        for goal in self._open():
            nodes |= goal.nodes
            vmis |= goal.vmis
        self.snapshot = self.tools.cluster.reread(self.snapshot, nodes, vmis)
        for goal in self._open():
            self._observe(goal)
            if goal.outcome is not None:
                self._conclude(goal, goal.outcome)
            elif is_open(goal.goal, self.snapshot):
                self._keep_holds(goal)

    def _observe(self, goal: GoalRun) -> None:
        phases = {run: run.phase for run in goal.moves}
        ended = goal.observe(self.snapshot, self.tools.context.execution.bind_timeout_seconds)
        for run in goal.moves:
            if run in ended:
                self._tell(run.state.value, str(run.move.vmi), run.message)
            elif run.phase != phases[run]:
                self._tell("phase", str(run.move.vmi), f"its migration is {run.phase}")

    def _keep_holds(self, goal: GoalRun) -> None:
        try:
            self._hold(goal)
        except ClusterError as error:
            goal.drop(f"its nodes are no longer held: {error}")

    def _end(self, goal: GoalRun, ending: Ending, message: str) -> None:
        self._conclude(goal, goal.end(ending, message))

    def _conclude(self, goal: GoalRun, outcome: GoalOutcome) -> None:
        """Lets the nodes go, and tells how the goal has ended."""
        for hold in goal.holds:
            try:
                self.tools.cluster.delete_hold(hold)
            except ClusterError as error:
                # It ends by itself in time, and the next cycle deletes it.
                self._tell("hold-left", str(hold), f"cannot be deleted yet: {error}")
        self._tell(outcome.ending.value, str(outcome.subject), outcome.message)
        self.tools.notifier.ended(outcome)

    def _start_moves(self) -> None:
        for goal in self._open():
            for run in goal.ready_moves():
                if goal.dropped_because or not is_open(goal.goal, self.snapshot):
                    break
                self._consider(goal, run)

    def _consider(self, goal: GoalRun, run: MoveRun) -> None:
        """Starts a move if it may start now; else notes why not."""
        if not self.tools.leadership.is_held():
            goal.drop("another rebalancer has taken over")
            return
        in_flight = [r.move for g in self.runs for r in g.moves if r.is_in_flight]
        goal_moves = [other.move for other in goal.moves]
        budget = Budget(self.tools.context.execution.budget, self.snapshot)
        refusal = budget.refusal(run.move, in_flight)
        if refusal := refusal or unsettled(run.move, goal_moves, self.snapshot):
            self._wait(goal, run, refusal)
            return
        problem = self.tools.objection(goal.goal, self.snapshot) or surprise(
            run.move, goal.goal, goal_moves, self.snapshot, self.tools.context
        )
        if problem:
            goal.drop(problem)
            return
        self._create(goal, run)

    def _wait(self, goal: GoalRun, run: MoveRun, refusal: str) -> None:
        now = self.snapshot.taken_at
        if run.waits_since is None:
            run.waits_since = now
            self._tell("waits", str(run.move.vmi), refusal)
        limit = self.tools.context.execution.start_timeout_seconds
        if (now - run.waits_since).total_seconds() > limit:
            goal.drop(f"VM {run.move.vmi} could not start within {limit} s: {refusal}")

    def _create(self, goal: GoalRun, run: MoveRun) -> None:
        trace_id = run.start_span()
        request = migration_request(run.move, goal.goal, self.plan.id, trace_id, self.snapshot)
        try:
            self.tools.cluster.create_migration(request)
        except RefusedError as error:
            run.refused(request.name, error)
            goal.drop(run.message, is_pointless=error.concerns_all)
            self._tell("refused", str(run.move.vmi), run.message)
            return
        except ConflictError:
            # Made by an earlier try whose answer was lost, or by another rebalancer just now;
            # either way it exists once, and is looked after from here on.
            pass
        except ClusterError as error:
            # Whether it exists shows at the next look: followed if so, dropped if not.
            self._tell("unsure", str(run.move.vmi), str(error))
        run.created(request.name)
        self.started += 1
        self._tell(
            "created",
            str(run.move.vmi),
            f"migration {request.name} from {run.move.source} to {run.move.target}",
        )
        self.tools.notifier.migrating(run.move, goal.goal, request.name)

    def _tell(self, code: str, subject: str, message: str) -> None:
        self.tools.listener(Event(self.tools.cluster.now(), code, subject, message))
