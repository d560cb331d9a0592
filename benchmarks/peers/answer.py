"""What a program answers, one fact a line, and what it is worth:

status proven|found|impossible|none
seconds S                   of its own solving, without starting up
landing NODE
move VM NODE                in an order that is said to work
"""

from typing import NamedTuple

from benchmarks.peers.instance import Instance
from benchmarks.replay import NotExecutableError, replay
from rebalancer.planning.problem import Moves


class Answer(NamedTuple):
    """One program's answer for one instance."""

    status: str
    seconds: float
    landing: int | None = None
    moves: Moves = ()

    def is_executable(self, instance: Instance) -> str:
        """`yes`, or why the moves cannot be carried out one after the other; empty without any."""
        if self.landing is None:
            return ""
        try:
            replay(instance.problem, self.moves, self.landing)
        except NotExecutableError as error:
            return f"no: {error}"
        return "yes"

    def copied_gib(self, instance: Instance) -> float:
        return instance.problem.cost(self.moves) / 1024


def read_answer(text: str) -> Answer:
    """Raises: ValueError on anything else than an answer."""
    status, seconds, landing = "", 0.0, None
    moves: list[tuple[int, int]] = []
    for line in text.splitlines():
        match line.split():
            case ["status", word]:
                status = word
            case ["seconds", number]:
                seconds = float(number)
            case ["landing", node]:
                landing = int(node)
            case ["move", vm, node]:
                moves.append((int(vm), int(node)))
            case _:
                raise ValueError(f"no line of an answer: {line}")
    return Answer(status, seconds, landing, tuple(moves))
