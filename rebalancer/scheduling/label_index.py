"""Things by what their selectors ask of labels, so that a pod's own labels lead to them."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from rebalancer.model.objects import LabelSelector

T = TypeVar("T")
Label = tuple[str, str]


class LabelIndex(Generic[T]):
    """Most selectors ask for one value of one label; the others' things are always found."""

    def __init__(self, things: Iterable[tuple[LabelSelector | None, T]] = ()) -> None:
        self._by_label: dict[Label, list[T]] = {}
        self._others: list[T] = []
        for selector, thing in things:
            labels = required_labels(selector)
            if labels is None:
                self._others.append(thing)
            for label in labels or ():
                self._by_label.setdefault(label, []).append(thing)

    def candidates(self, labels: Mapping[str, str]) -> list[T]:
        """Those whose selectors may select a pod with these labels; all others' do not."""
        found = [thing for label in labels.items() for thing in self._by_label.get(label, ())]
        return list(dict.fromkeys([*found, *self._others]))

    def with_more(self, things: Iterable[tuple[LabelSelector | None, T]]) -> "LabelIndex[T]":
        """These behind those that are in this one."""
        more = LabelIndex(things)
        more._others[:0] = self._others
        for label, found in more._by_label.items():
            found[:0] = self._by_label.get(label, ())
        more._by_label = {**self._by_label, **more._by_label}
        return more


def required_labels(selector: LabelSelector | None) -> list[Label] | None:
    """Labels of which a pod must have one to be selected; None where it may have any."""
    if selector is None:
        return []
    for requirement in selector.requirements:
        if requirement.operator == "In":
            return [(requirement.key, value) for value in requirement.values]
    return None
