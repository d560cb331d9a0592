"""What strategies propose and the executor carries out; `docs/plan.md` has it as JSON."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from rebalancer.model.objects import ObjectKey


class Verdict(StrEnum):
    """What becomes of a goal."""

    PLANNED = "planned"
    FITS = "fits"
    MET = "met"
    WAITING = "waiting"
    NOT_ABOUT_ROOM = "not-about-room"
    NOT_WORTH_IT = "not-worth-it"
    IMPOSSIBLE = "impossible"
    UNPROVEN = "unproven"


MOVES_UNDER_WAY = "moves-under-way"
"""Code of the reason of a goal that waits for migrations of ours; the executor adopts those."""


class Reason(Struct, frozen=True):
    """Why a verdict is what it is, on one node or about one object where it names them."""

    code: str
    message: str
    node: str = ""
    object: str = ""


class Refusal(Struct, frozen=True):
    """A VM that was looked at and must stay where it is."""

    vmi: ObjectKey
    code: str
    message: str


class Cost(Struct, frozen=True):
    """What one migration costs, in seconds of migration or their equivalent."""

    terms: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.terms.values())


class Move(Struct, frozen=True):
    """One VMI from its node to another; it may start when those in `after` have succeeded.

    A VMI that makes a detour has several moves, each from where the one before has brought it.
    """

    id: str
    vmi: ObjectKey
    vmi_uid: str
    source: str
    target: str
    bytes: int
    seconds: float
    cost: Cost
    after: tuple[str, ...] = ()


VMI_KIND = "VirtualMachineInstance"
NODE_KIND = "Node"


class Subject(Struct, frozen=True):
    """The object that a goal is about.

    `uid` is put as a label on what is created for the goal, so it is a valid label value and no
    other subject's.
    """

    kind: str
    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Goal(Struct, frozen=True):
    """What one strategy wants for one object, and what is known about it.

    `cost` is that of the goal's moves; `bound` says what every executable plan costs at least.
    A goal about a VirtualMachineInstance is reached when its pending launcher pod is bound to
    `node`, be that its first or the target pod of a migration; any other when its moves are done.
    """

    strategy: str
    subject: Subject
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    node: str = ""
    cost: float | None = None
    bound: float | None = None
    proven: bool = False
    move_ids: tuple[str, ...] = ()
    is_divisible: bool = False
    """Whether the first of its moves are worth making by themselves, where a budget for one cycle
    does not allow all of them."""

    migration_uid: str = ""
    """Of the migration whose target pod waits for a node; empty where the VM itself does."""

    figures: Mapping[str, float] = {}
    """What was measured for it, to be watched over time."""

    @property
    def is_for_vm(self) -> bool:
        return self.subject.kind == VMI_KIND


class Proposal(Struct, frozen=True):
    """A goal with the moves that reach it (none unless it is planned), in a workable order."""

    goal: Goal
    moves: tuple[Move, ...] = ()
    refused: tuple[Refusal, ...] = ()


class Plan(Struct, frozen=True):
    """Proposals accepted together: goals, and a graph of moves."""

    id: str
    goals: tuple[Goal, ...] = ()
    moves: tuple[Move, ...] = ()
    estimated_seconds: float = 0.0
    """From the first move's start to the last one's end under the limits on migrations."""
    refused: tuple[Refusal, ...] = ()
    node_count: int = 0
    pod_count: int = 0
    vmi_count: int = 0
    missing: tuple[str, ...] = ()
    """Kinds of object that the plan was made without, as in `Snapshot`."""
