"""The pods that hold room on nodes, as columns, so that 100,000 of them are selected at once."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalancer.model.objects import LabelSelector, Pod, PodAffinityTerm, Requirement
from rebalancer.scheduling.matching import meets

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

NamespaceTest = Callable[[str], bool]


class Column:
    """A text per pod, or none, as codes; -1 stands for none."""

    def __init__(self, values: Sequence[str | None]) -> None:
        codes: dict[str | None, int] = {None: -1}
        self.codes = np.fromiter(
            (codes.setdefault(value, len(codes) - 1) for value in values), np.int64, len(values)
        )
        del codes[None]
        self.code_of: dict[str | None, int] = codes

    def meets(self, requirement: Requirement) -> BoolArray:
        """Where the text meets a requirement of a label selector."""
        match requirement.operator:
            case "In" | "NotIn":
                wanted = [self.code_of[v] for v in requirement.values if v in self.code_of]
                is_in = self.codes == wanted[0] if len(wanted) == 1 else np.isin(self.codes, wanted)
                return is_in if requirement.operator == "In" else ~is_in
            case _:
                return self.where(lambda value: meets(requirement, value))

    def where(self, test: Callable[[str | None], bool]) -> BoolArray:
        """Where the text passes, each different one being asked once."""
        verdicts = [test(value) for value in (*self.code_of, None)]
        return np.array(verdicts, np.bool_)[self.codes]


class PlacedPods:
    """Columns over pods, in the order of `pods`.

    Args:
        placements: each pod with the index of its node.
    """

    def __init__(self, placements: Sequence[tuple[Pod, int]]) -> None:
        self.pods = tuple(pod for pod, _ in placements)
        self.node: IntArray = np.fromiter(
            (node for _, node in placements), np.int64, len(self.pods)
        )
        self._columns: dict[str, Column] = {}

    @cached_property
    def is_bound(self) -> BoolArray:
        """Which are there; the others are only expected."""
        return self._flags(lambda pod: pod.node_name is not None)

    @cached_property
    def is_terminating(self) -> BoolArray:
        return self._flags(lambda pod: pod.is_terminating)

    @cached_property
    def _namespaces(self) -> Column:
        return Column([pod.namespace for pod in self.pods])

    def selected(self, selector: LabelSelector | None) -> BoolArray:
        """Which pods have labels that the selector selects; without one, none."""
        if selector is None:
            return np.zeros(len(self.pods), np.bool_)
        mask = np.ones(len(self.pods), np.bool_)
        for requirement in selector.requirements:
            mask &= self._labels(requirement.key).meets(requirement)
        return mask

    def in_namespaces(self, is_meant: NamespaceTest) -> BoolArray:
        return self._namespaces.where(lambda name: name is not None and is_meant(name))

    def _labels(self, key: str) -> Column:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = Column([pod.labels.get(key) for pod in self.pods])
        return column

    def _flags(self, test: Callable[[Pod], bool]) -> BoolArray:
        return np.fromiter(map(test, self.pods), np.bool_, len(self.pods))


class PlacedTerms:
    """Required anti-affinity of the pods that are there, found by the pods that it keeps off.

    Most terms ask for one value of one label, so a pod's own labels lead to the terms about it.
    """

    def __init__(self, placements: Sequence[tuple[Pod, int]]) -> None:
        holders: dict[PodAffinityTerm, list[int]] = {}
        # Equal terms are mostly one object, and comparing those costs next to nothing.
        by_identity: dict[int, list[list[int]]] = {}
        for position, (pod, _) in enumerate(placements):
            if not pod.pod_anti_affinity:
                continue
            lists = by_identity.get(id(pod.pod_anti_affinity))
            if lists is None:
                lists = [holders.setdefault(term, []) for term in pod.pod_anti_affinity]
                by_identity[id(pod.pod_anti_affinity)] = lists
            for positions in lists:
                positions.append(position)
        self.holders = holders
        """Term to the positions, among the placed pods, of those that have it."""
        self._by_label: dict[tuple[str, str], list[PodAffinityTerm]] = {}
        self._others: list[PodAffinityTerm] = []
        for term in holders:
            pairs = _label_pairs(term)
            if pairs is None:
                self._others.append(term)
            for pair in pairs or ():
                self._by_label.setdefault(pair, []).append(term)

    def candidates(self, pod: Pod) -> list[PodAffinityTerm]:
        """Terms that may mean the pod; all others do not."""
        found = [term for pair in pod.labels.items() for term in self._by_label.get(pair, ())]
        return list(dict.fromkeys([*found, *self._others]))


def _label_pairs(term: PodAffinityTerm) -> list[tuple[str, str]] | None:
    """Labels of which a pod must have one for the term to mean it; None where there are none."""
    if term.selector is None:
        return []
    for requirement in term.selector.requirements:
        if requirement.operator == "In":
            return [(requirement.key, value) for value in requirement.values]
    return None
