"""Who finds room for the VM, at what cost: `python -m benchmarks.peers --help`."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.generator import Recipe
from benchmarks.measure import measure_planner
from benchmarks.peers.answer import Answer, read_answer
from benchmarks.peers.instance import Instance, generated, micro_cases
from benchmarks.peers.programs import PROGRAMS, Command, UnavailableError
from benchmarks.report import duration, heading, machine, row

_GRACE_SECONDS = 30
"""For starting up and building a model, before a process is killed."""


def _ours(instance: Instance, limit_seconds: int) -> Answer:
    measured = measure_planner(instance.problem, limit_seconds)
    outcome, seconds = measured.value, measured.seconds
    solution = outcome.solution
    if solution is None:
        return Answer("impossible" if outcome.is_proven else "none", seconds)
    status = "proven" if outcome.is_proven else "found"
    return Answer(status, seconds, solution.node, solution.moves)


def _theirs(instance: Instance, command: Command, limit_seconds: int) -> Answer:
    with tempfile.NamedTemporaryFile("w", suffix=".instance") as file:
        file.write(instance.text())
        file.flush()
        try:
            done = subprocess.run(
                command(Path(file.name), limit_seconds),
                capture_output=True,
                text=True,
                check=False,
                timeout=limit_seconds + _GRACE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return Answer("killed", limit_seconds + _GRACE_SECONDS)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        return Answer(f"failed: {last[:80]}", 0)
    return read_answer(done.stdout)


def _print_rows(instance: Instance, commands: Mapping[str, Command], limit_seconds: int) -> None:
    answers = [("planner", _ours(instance, limit_seconds))]
    answers += [(name, _theirs(instance, run, limit_seconds)) for name, run in commands.items()]
    for name, answer in answers:
        copied = f"{answer.copied_gib(instance):.1f} GiB" if answer.moves else ""
        moves = len(answer.moves) if answer.moves else ""
        executable = answer.is_executable(instance)
        cells = [name, answer.status, copied, moves, duration(answer.seconds), executable]
        print(row([instance.name, *cells]), flush=True)


def _available() -> tuple[dict[str, Command], list[str]]:
    """Commands by name, and who is missing, with the reason."""
    commands: dict[str, Command] = {}
    missing = []
    for program in PROGRAMS:
        try:
            commands[program.name] = program.prepare()
        except UnavailableError as error:
            missing.append(f"{program.name} could not be had: {error}")
    return commands, missing


def main(
    shape: Annotated[list[str], typer.Option(help="Repeatable.")] = ["16/150", "50/500"],  # noqa: B006
    fill: Annotated[list[float], typer.Option(help="Repeatable.")] = [0.95],  # noqa: B006
    mode: Annotated[list[str], typer.Option(help="Repeatable.")] = ["hole2"],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Clusters in each cell.")] = 2,
    limit_seconds: Annotated[int, typer.Option(help="For each program and cluster.")] = 30,
) -> None:
    """Prints a Markdown table; every plan is replayed. Fails if a peer could not be had."""
    commands, missing = _available()
    for text in missing:
        print(f"**{text}**\n")
        print(text, file=sys.stderr)
    recipes = [Recipe(s, f, i, m) for s in shape for f in fill for m in mode for i in range(seeds)]
    instances = [*micro_cases(), *filter(None, map(generated, recipes))]
    print(f"{machine()}; at most {limit_seconds} s each\n")
    print(heading(["cluster", "program", "answer", "copied", "moves", "time", "executable"]))
    for instance in instances:
        _print_rows(instance, commands, limit_seconds)
    if missing:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
