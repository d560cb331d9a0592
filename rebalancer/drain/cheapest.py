"""Which nodes cost least to empty.

Greedy, one node after the other; a bound tells how far that may be from the best.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from rebalancer.drain.least_cost import least_costs
from rebalancer.drain.occupants import occupants, what_to_do
from rebalancer.drain.pool import Pool, pool_of, without_signs
from rebalancer.drain.proposal import Drain, left_behind, propose_drain
from rebalancer.model.plan import Proposal, Reason
from rebalancer.planning.checked import checked
from rebalancer.planning.movers import MILLISECONDS
from rebalancer.planning.view import View


class Cheapest(Struct, frozen=True):
    """The choice, and what is known about it. Costs are in seconds."""

    wanted: int
    chosen: tuple[Proposal, ...]
    """One for each node, in the order in which they are to be emptied; all VMs leave."""
    bound: float | None
    """What emptying so many nodes costs at least; None where there are not so many."""
    left_out: tuple[Reason, ...]
    """The nodes that could not be chosen, by name."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(proposal.goal.subject.name for proposal in self.chosen)

    @property
    def cost(self) -> float:
        return sum(_milliseconds(proposal.goal.cost) for proposal in self.chosen) / MILLISECONDS

    @property
    def proven(self) -> bool:
        """Whether no other choice costs less."""
        return len(self.chosen) == self.wanted and self.cost == self.bound


def cheapest_to_empty(wanted: int, selector: Mapping[str, str], cluster: View) -> Cheapest:
    """As many nodes as are wanted, or as can be emptied, out of those with these labels."""
    pool = without_signs(pool_of(cluster.snapshot, selector), cluster.snapshot)
    pool = _without_stuck(pool, cluster)
    least = least_costs(cluster)
    search = _Search(pool.names, least, cluster)
    chosen = search.choose(wanted)
    bounds = sorted(least[name] for name in pool.names if name not in search.hopeless)
    left_out = (*pool.left_out, *search.failed.values())
    return Cheapest(
        wanted=wanted,
        chosen=tuple(chosen),
        bound=sum(bounds[:wanted]) / MILLISECONDS if len(bounds) >= wanted else None,
        left_out=tuple(sorted(left_out, key=lambda reason: reason.node)),
    )


class _Search:
    """Chooses one node after the other.

    Attributes:
        failed: nodes that cannot be emptied, or no longer beside those chosen before, with why.
        hopeless: of these the ones of which that is proven, whatever else is chosen.
    """

    def __init__(self, names: Sequence[str], least: Counter[str], cluster: View) -> None:
        self.cluster = cluster
        self.least = least
        self.open = sorted(names, key=lambda name: (least[name], name))
        self.failed: dict[str, Reason] = {}
        self.hopeless: set[str] = set()

    def choose(self, wanted: int) -> list[Proposal]:
        chosen: list[Proposal] = []
        view = self.cluster
        while len(chosen) < wanted:
            best = self._cheapest(chosen, wanted - len(chosen), view)
            if best is None:
                break
            chosen.append(best)
            self.open.remove(best.goal.subject.name)
            view = view.after(best)
        return chosen

    def _cheapest(self, chosen: Sequence[Proposal], missing: int, view: View) -> Proposal | None:
        """Looked at in the order of what they cost at least, until the next cannot be cheaper."""
        closed = {proposal.goal.subject.name for proposal in chosen}
        best: Proposal | None = None
        for name in tuple(self.open):
            if best is not None and self.least[name] >= _milliseconds(best.goal.cost):
                break
            spared = set(islice((other for other in self.open if other != name), missing - 1))
            proposal = self._emptying(name, closed, spared, view)
            if proposal and (
                best is None or _milliseconds(proposal.goal.cost) < _milliseconds(best.goal.cost)
            ):
                best = proposal
        return best

    def _emptying(
        self, name: str, closed: Collection[str], spared: Collection[str], view: View
    ) -> Proposal | None:
        """`spared`: nodes that may be chosen next, so that VMs only go there if they must."""
        proposal = _proposal(name, {*closed, *spared}, view)
        if spared and left_behind(proposal.goal):
            proposal = _proposal(name, closed, view)
        left = left_behind(proposal.goal)
        if not left:
            return proposal
        self.open.remove(name)
        if proposal.goal.proven and not closed:
            self.hopeless.add(name)
        self.failed[name] = replace(left[0], node=name)
        return None


def _proposal(name: str, closed: Collection[str], view: View) -> Proposal:
    drain = Drain(name, "to be emptied")
    return checked(propose_drain(drain, {name, *closed}, view), view.snapshot)


def _without_stuck(pool: Pool, cluster: View) -> Pool:
    """The pool without nodes whose VMs cannot all leave now, however much room there were."""
    left_out: dict[str, Reason] = {}
    for name in pool.names:
        there = occupants(name, cluster.movers)
        if there.stuck:
            first = there.stuck[0]
            left_out[name] = Reason(
                "cannot-leave", what_to_do(first), node=name, object=str(first.vmi)
            )
        elif there.leaving:
            first = there.leaving[0]
            message = f"{first.vmi}: {first.message}"
            left_out[name] = Reason("leaving", message, node=name, object=str(first.vmi))
    names = tuple(name for name in pool.names if name not in left_out)
    return Pool(names, (*pool.left_out, *left_out.values()))


def _milliseconds(seconds: float | None) -> int:
    return round((seconds or 0) * MILLISECONDS)
