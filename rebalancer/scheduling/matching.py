"""Selectors against labels, as k8s.io/apimachinery and the scheduler match them."""

from collections.abc import Mapping

from rebalancer.model.objects import LabelSelector, Requirement, Taint, Toleration


def meets(requirement: Requirement, value: str | None) -> bool:
    """Whether a label's value (None: no such label) meets one expression.

    Source: k8s.io/apimachinery pkg/labels/selector.go, Requirement.Matches: NotIn holds for a
    label that is absent, Gt and Lt compare integers and fail on anything else.
    """
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _compares(requirement, value)


def _compares(requirement: Requirement, value: str) -> bool:
    try:
        left, right = int(value), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return left > right if requirement.operator == "Gt" else left < right


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    return all(meets(req, labels.get(req.key)) for req in selector.requirements)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Source: k8s.io/component-helpers scheduling/corev1/helpers.go, ToleratesTaint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value
