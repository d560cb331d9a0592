"""A plan and a cycle's result as JSON; docs/plan.md is the contract."""

import json
from typing import Any

from rebalancer.execution.outcome import GoalOutcome
from rebalancer.loop import CycleResult
from rebalancer.model.plan import Goal, Move, Plan, Reason, Refusal, Subject

API_VERSION = "rebalancer/v1alpha1"


def plan_document(plan: Plan) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "id": plan.id,
        "snapshot": {
            "nodes": plan.node_count,
            "pods": plan.pod_count,
            "vmis": plan.vmi_count,
            "missing": list(plan.missing),
        },
        "goals": [_goal(goal) for goal in plan.goals],
        "moves": [move_document(move) for move in plan.moves],
        "estimatedSeconds": plan.estimated_seconds,
        "refused": [_refusal(refusal) for refusal in plan.refused],
    }


def result_document(result: CycleResult) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "CycleResult",
        "plan": plan_document(result.plan),
        "outcomes": [_outcome(outcome) for outcome in result.outcomes],
        "unmet": [_subject(subject) for subject in result.unmet()],
    }


def to_json(document: dict[str, Any]) -> str:
    """ASCII only, so that nothing a name holds can act on a terminal or break a parser."""
    return json.dumps(document, indent=2, allow_nan=False)


def reason_document(reason: Reason) -> dict[str, Any]:
    return {
        "code": reason.code,
        "node": reason.node,
        "object": reason.object,
        "message": reason.message,
    }


def _subject(subject: Subject) -> dict[str, Any]:
    return {"kind": subject.kind, "namespace": subject.namespace, "name": subject.name}


def _goal(goal: Goal) -> dict[str, Any]:
    return {
        "strategy": goal.strategy,
        "subject": _subject(goal.subject),
        "verdict": goal.verdict.value,
        "node": goal.node,
        "cost": goal.cost,
        "bound": goal.bound,
        "proven": goal.proven,
        "moves": list(goal.move_ids),
        "figures": dict(goal.figures),
        "reasons": [reason_document(reason) for reason in goal.reasons],
    }


def move_document(move: Move) -> dict[str, Any]:
    return {
        "id": move.id,
        "namespace": move.vmi.namespace,
        "name": move.vmi.name,
        "source": move.source,
        "target": move.target,
        "after": list(move.after),
        "bytes": move.bytes,
        "seconds": move.seconds,
        "cost": move.cost.total,
        "terms": dict(move.cost.terms),
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "namespace": refusal.vmi.namespace,
        "name": refusal.vmi.name,
        "code": refusal.code,
        "message": refusal.message,
    }


def _outcome(outcome: GoalOutcome) -> dict[str, Any]:
    return {
        "subject": _subject(outcome.subject),
        "ending": outcome.ending.value,
        "message": outcome.message,
        "migrations": outcome.migrations,
        "refused": [_refusal(refusal) for refusal in outcome.refused],
    }
