"""The pods of a snapshot as columns, so that of 100,000 those are found at once that are meant."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rebalancer.model.objects import LabelSelector, Pod, PodAffinityTerm, Requirement
from rebalancer.scheduling.label_index import LabelIndex
from rebalancer.scheduling.matching import meets

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

NamespaceTest = Callable[[str], bool]

_NONE = -1


class Column:
    """A text for each of many things, or none, as codes; -1 stands for none."""

    def __init__(self, values: Sequence[str | None]) -> None:
        texts = dict.fromkeys(values)
        texts.pop(None, None)
        self.code_of: dict[str | None, int] = {text: code for code, text in enumerate(texts)}
        code_of = {**self.code_of, None: _NONE}
        self.codes: IntArray = np.array([*map(code_of.__getitem__, values)], np.int64)

    def having(self, values: Iterable[str]) -> IntArray:
        """Positions of those that have one of these texts, in order."""
        order, starts = self._by_code
        codes = {self.code_of[value] for value in values if value in self.code_of}
        found = [order[starts[code] : starts[code + 1]] for code in codes]
        if len(found) == 1:
            return found[0]
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)

    @cached_property
    def _by_code(self) -> tuple[IntArray, IntArray]:
        """Positions by code, and where each code's begin; those without text are left out."""
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(len(self.code_of) + 1))
        return order, starts

    def meeting(self, requirement: Requirement, positions: IntArray) -> IntArray:
        """Those of the positions where the text meets a requirement of a label selector."""
        match requirement.operator:
            case "In" | "NotIn":
                wanted = [self.code_of[v] for v in requirement.values if v in self.code_of]
                is_in = np.isin(self.codes[positions], wanted)
                return positions[is_in if requirement.operator == "In" else ~is_in]
            case _:
                return self.where(lambda value: meets(requirement, value), positions)

    def where(self, test: Callable[[str | None], bool], positions: IntArray) -> IntArray:
        """Those of the positions where the text passes, each different one being asked once."""
        codes = self.codes[positions]
        is_met = np.bincount(codes + 1, minlength=1) > 0
        verdicts = np.zeros(len(is_met), np.bool_)
        for number in np.flatnonzero(is_met).tolist():
            verdicts[number] = test(self._texts[number - 1])
        return positions[verdicts[codes + 1]]

    @cached_property
    def _texts(self) -> list[str | None]:
        """By code."""
        return [*self.code_of, None]


class PlacedPods:
    """Columns over the pods of a snapshot; pods are told by their position there.

    Args:
        node: for each the index of the node where it holds room, or -1.
    """

    def __init__(self, pods: Sequence[Pod], node: IntArray) -> None:
        self.pods = pods
        self.node = node
        self._parts = [_Part(pods, 0)]

    def after(self, pods: Sequence[Pod], node: IntArray, changed: Sequence[int]) -> "PlacedPods":
        """With more pods behind these, and with some in their place that are on a node now.

        Args:
            changed: positions of all that are new or in another's place.
        """
        after = PlacedPods(pods, node)
        whole = self._parts[0]
        after._parts = [whole, _Part(pods[whole.stop :], whole.stop)]
        for name, test in _FLAGS.items():
            if name in vars(self):
                flags = np.append(vars(self)[name], np.zeros(len(pods) - len(self.pods), np.bool_))
                flags[changed] = [test(pods[position]) for position in changed]
                vars(after)[name] = flags
        return after

    @cached_property
    def is_bound(self) -> BoolArray:
        """Which are there; the others are only expected."""
        return np.array([*map(_FLAGS["is_bound"], self.pods)], np.bool_)

    @cached_property
    def is_terminating(self) -> BoolArray:
        return np.array([*map(_FLAGS["is_terminating"], self.pods)], np.bool_)

    def selected(
        self, selector: LabelSelector | None, is_meant: NamespaceTest | None = None
    ) -> IntArray:
        """Positions of the pods that hold room, in namespaces that are meant, without a test in
        any, with labels that the selector selects; without one, none.
        """
        if selector is None:
            return np.empty(0, np.int64)
        found = [part.selected(selector, is_meant, self.node) for part in self._parts]
        return np.concatenate(found)


_FLAGS: Mapping[str, Callable[[Pod], bool]] = {
    "is_bound": lambda pod: pod.node_name is not None,
    "is_terminating": lambda pod: pod.is_terminating,
}


class _Part:
    """Labels and namespaces, as columns, of pods that follow each other from position `start`."""

    def __init__(self, pods: Sequence[Pod], start: int) -> None:
        self._pods = pods
        self._start = start
        self.stop = start + len(pods)
        self._columns: dict[str, Column] = {}

    @cached_property
    def _namespaces(self) -> Column:
        return Column([pod.namespace for pod in self._pods])

    def selected(
        self, selector: LabelSelector, is_meant: NamespaceTest | None, node: IntArray
    ) -> IntArray:
        """As `PlacedPods.selected`, of these pods; `node` is of all."""
        requirements = sorted(selector.requirements, key=lambda each: each.operator != "In")
        if requirements and requirements[0].operator == "In":
            # Most selectors mean few pods, which are found by their label.
            first = requirements.pop(0)
            positions = self._labels(first.key).having(first.values)
            positions = positions[node[self._start + positions] >= 0]
        else:
            positions = np.flatnonzero(node[self._start : self.stop] >= 0)
        for requirement in requirements:
            positions = self._labels(requirement.key).meeting(requirement, positions)
        if is_meant is not None:
            positions = self._namespaces.where(
                lambda name: name is not None and is_meant(name), positions
            )
        return self._start + positions

    def _labels(self, key: str) -> Column:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = Column([pod.labels.get(key) for pod in self._pods])
        return column


class PlacedTerms:
    """Required anti-affinity of the pods that are there, found by the pods that it keeps off."""

    def __init__(self, pods: Sequence[Pod], node: IntArray) -> None:
        holders: dict[PodAffinityTerm, list[int]] = {}
        # Equal terms are mostly one object, and comparing those costs next to nothing.
        by_identity: dict[int, list[list[int]]] = {}
        for position, pod in enumerate(pods):
            if not pod.pod_anti_affinity or node[position] < 0:
                continue
            lists = by_identity.get(id(pod.pod_anti_affinity))
            if lists is None:
                lists = [holders.setdefault(term, []) for term in pod.pod_anti_affinity]
                by_identity[id(pod.pod_anti_affinity)] = lists
            for positions in lists:
                positions.append(position)
        self.holders: Mapping[PodAffinityTerm, list[int]] = holders
        """Term to the positions of the pods that have it."""
        self._index = LabelIndex((term.selector, term) for term in holders)

    def after(self, pods: Sequence[Pod], arrived: Iterable[int]) -> "PlacedTerms":
        """With those of the pods at more positions."""
        after = copy(self)
        held = after.holders = dict(self.holders)
        for position in arrived:
            for term in pods[position].pod_anti_affinity:
                held[term] = sorted((*held.get(term, ()), position))
        new = (term for term in islice(held, len(self.holders), None))
        after._index = self._index.with_more((term.selector, term) for term in new)
        return after

    def candidates(self, pod: Pod) -> list[PodAffinityTerm]:
        """Terms that may mean the pod; all others do not."""
        return self._index.candidates(pod.labels)
