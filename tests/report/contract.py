"""The fields of the JSON documents that programs rely on: these, of these types, and no others."""

from typing import Literal

from msgspec import Struct

ApiVersion = Literal["rebalancer/v1alpha1"]


class Strict(Struct, forbid_unknown_fields=True, rename="camel"):
    """No field has a default, so each must be there."""


class Subject(Strict):
    kind: str
    namespace: str
    name: str


class Reason(Strict):
    code: str
    node: str
    object: str
    message: str


Verdict = Literal[
    "planned",
    "fits",
    "met",
    "waiting",
    "not-about-room",
    "not-worth-it",
    "impossible",
    "unproven",
]


class Goal(Strict):
    strategy: str
    subject: Subject
    verdict: Verdict
    node: str
    cost: float | None
    bound: float | None
    proven: bool
    moves: list[str]
    figures: dict[str, float]
    reasons: list[Reason]


class Move(Strict):
    id: str
    namespace: str
    name: str
    source: str
    target: str
    after: list[str]
    bytes: int
    seconds: float
    cost: float
    terms: dict[str, float]


class Refusal(Strict):
    namespace: str
    name: str
    code: str
    message: str


class Read(Strict):
    nodes: int
    pods: int
    vmis: int
    missing: list[str]


class Plan(Strict):
    api_version: ApiVersion
    kind: Literal["Plan"]
    id: str
    snapshot: Read
    goals: list[Goal]
    moves: list[Move]
    estimated_seconds: float
    refused: list[Refusal]


class Outcome(Strict):
    subject: Subject
    ending: Literal["bound", "done", "partly-done", "gone", "dropped", "not-started"]
    message: str
    migrations: int
    refused: list[Refusal]


class CycleResult(Strict):
    api_version: ApiVersion
    kind: Literal["CycleResult"]
    plan: Plan
    outcomes: list[Outcome]
    unmet: list[Subject]


class RefusedMove(Strict):
    code: str
    message: str


class NodeAnswer(Strict):
    node: str
    feasible: bool
    reasons: list[Reason]


class Explanation(Strict):
    api_version: ApiVersion
    kind: Literal["Explanation"]
    namespace: str
    name: str
    pod: str
    requests: dict[str, int]
    node: str
    scheduler_message: str
    refused: RefusedMove | None
    grouped_reasons: str
    nodes: list[NodeAnswer]


class Room(Strict):
    allocatable: int
    requested: int
    freeable: int


class Resident(Strict):
    namespace: str
    name: str
    memory: int
    refused: RefusedMove | None
    targets: list[str]
    grouped_reasons: str


class Candidate(Strict):
    namespace: str
    name: str
    feasible: bool
    reasons: list[Reason]


class NodeExplanation(Strict):
    api_version: ApiVersion
    kind: Literal["NodeExplanation"]
    node: str
    conditions: list[str]
    resources: dict[str, Room]
    residents: list[Resident]
    candidates: list[Candidate]


class CheapNode(Strict):
    node: str
    migrations: int
    cost: float


class CheapestNodes(Strict):
    api_version: ApiVersion
    kind: Literal["CheapestNodes"]
    wanted: int
    nodes: list[CheapNode]
    cost: float
    bound: float | None
    proven: bool
    left_out: list[Reason]
    plan: Plan | None
    result: CycleResult | None


class Turn(Strict):
    node: str
    moves: list[Move]
    estimated_seconds: float
    cost: float
    proven: bool
    stuck: bool
    left_behind: list[Reason]
    warnings: list[Reason]


class RollingPlan(Strict):
    api_version: ApiVersion
    kind: Literal["RollingPlan"]
    nodes: list[Turn]
    migrations: int
    bytes: int
    estimated_seconds: float
    cost: float
    stuck: list[str]
    left_out: list[Reason]
