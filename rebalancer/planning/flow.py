"""Second stage: what only chains of moves can reach, as an integer flow of kinds of movers.

Searches below a cost that rises: only what can take part in a plan that cheap is in the model, so
the first models are small, and one without a solution raises the bound for all plans. Capacity
holds in the final state; whether an order exists is looked at afterwards, and a set of moves
without one is cut off and the search goes on.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rebalancer.planning.bounds import price_chains
from rebalancer.planning.flow_program import Flow, FlowProgram
from rebalancer.planning.ordering import OrderingLimitError, find_order
from rebalancer.planning.problem import INFINITE, FitProblem, Moves, Outcome, Solution
from rebalancer.planning.program import IntegerProgram
from rebalancer.planning.reduction import reduce
from rebalancer.planning.search import movers_with_home
from rebalancer.planning.solver import Answer

_FIRST_STEP = 0.1
"""The first search is below the known bound plus this part of it; each further one goes twice as
far above. From measurements: most problems that the first stage leaves open have a plan or a
bound within a few per cent.
"""

_WORK_SHARE = 0.3
"""Of the work that is left, what one search may use up while there are wider ones to come."""

_MAX_CUTS = 25
"""Sets of moves without an order that are cut off before the search is given up; a guess."""

OUT_OF_WORK = "the solver's time ran out"
DETOURS = "only plans that move a VM twice are left, and those are not searched"


def search_flows(
    problem: FitProblem, known: Outcome, work_limit: float
) -> Iterator[Outcome]:
    """Yields what is known whenever that is more than before."""
    return _FlowSearch(problem, known, work_limit).run()


class _FlowSearch:
    def __init__(self, problem, known, work_limit, solve):
        self.problem=problem; self.solve=solve
        self.best = known.solution
        self.lower = known.bound
        self.detours = INFINITE
        self.work = work_limit
        self.cuts = []
        self.why=""
        _, self.landing_bounds = price_chains(problem, movers_with_home(problem))
        self.cheapest = int(problem.mover_cost.min())
        self.log=[]

    @property
    def upper(self): return self.best.cost if self.best else INFINITE

    def dearest(self):
        p=self.problem
        return int(p.mover_cost.max()+p.charge.max())*p.max_moves+1

    def run(self):
        step = max(self.lower*_FIRST_STEP, self.cheapest)
        dearest=self.dearest()
        while self.lower < self.upper and self.work > 0 and not self.why:
            cutoff = min(self.lower + step, self.upper, dearest)
            is_last = cutoff >= min(self.upper, dearest)
            cutoff = int(np.ceil(cutoff))
            self.search_below(cutoff, self.work if is_last else self.work*_WORK_SHARE)
            step*=2
            if is_last and cutoff==dearest and self.lower>=dearest: self.lower=INFINITE
            yield self.outcome()
            if is_last and self.lower<self.upper: 
                if self.work<=0 : break
        if self.work<=0 and self.lower<self.upper: self.why=self.why or OUT_OF_WORK
        yield self.outcome()

    def outcome(self):
        return Outcome(self.best, min(self.lower,self.detours), self.why).normalised()

    def search_below(self, cutoff, work):
        p=self.problem
        import time
        t=time.process_time()
        part = reduce(p, self.landing_bounds, cutoff)
        flow = FlowProgram(p, part, self.landing_bounds)
        t2=time.process_time()
        rec=[cutoff,int(part.landing.sum()),len(flow.leaves),len(flow.arrives),round(t2-t,2)]
        self.log.append(rec)
        if not flow.lands or not flow.leaves:
            self.lower=max(self.lower,cutoff); return
        ip=flow.program
        ip.at_most(ip.objective(), cutoff-1)
        if self.lower>0: ip.at_least(ip.objective(), int(np.ceil(self.lower-1e-6)))
        for c in self.cuts: flow.cut(*c)
        while True:
            ans=self.solve(ip,min(work,self.work))
            rec+=[("det",round(ans.work,2),"cpu",round(time.process_time()-t2,2),"found",ans.values is not None and sum(a*b for a,b in zip(ans.values,ip.cost)),"bound",ans.bound)]
            self.work-=ans.work; work-=ans.work
            self.lower=max(self.lower,min(ans.bound,cutoff))
            if ans.values is None: return
            left,arrived,node=flow.read(ans.values)
            cost=sum(a*b for a,b in zip(ans.values,ip.cost))
            try: moves=self.order(left,arrived,node)
            except OrderingLimitError as e: self.why=str(e); return
            if moves is not None:
                sol=Solution(node,moves,p.cost(moves))
                if sol.cost<self.upper: self.best=sol
                if sol.cost<=cost: return
            self.detours=min(self.detours,cost+self.cheapest)
            self.cuts.append((left,arrived)); flow.cut(left,arrived)
            if len(self.cuts)>=_MAX_CUTS: self.why="many"; return
            if work<=0: return
    def order(self,left,arrived,node):
        p=self.problem
        slots=Counter(arrived); leaving=[]
        for m in sorted(left):
            own=int(p.kinds[m]),int(p.mover_node[m])
            if slots[own]: slots[own]-=1
            else: leaving.append(m)
        return find_order(p,p.kinds,leaving,+slots,node)
